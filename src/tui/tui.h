// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The panes: graph tree, node, console and status line on a curses screen.
 *
 * Draws what the sessions of the REPL's debugger know; every key that does something runs a command
 * through repl_execute, so whatever can be pressed can be scripted. One thread: the event loop's.
 * The caller keeps SIGINT for itself (the panes leave the terminal's signals on): Ctrl-C reaches
 * it.
 */
#ifndef GD_TUI_TUI_H
#define GD_TUI_TUI_H

#include "repl/core/repl.h"

/* Runs the panes on stdin and stdout until a command asks to quit or input ends, then puts the
 * terminal and the REPL's writer back. Where panes are not possible (no terminal, TERM=dumb or
 * unknown, a screen under 40x10) it says so in one line and runs repl_run_prompt instead. Fatal
 * signals restore the terminal first. GD_OK, or GD_ENOMEM / GD_EIO with nothing left changed. */
int tui_run(struct ev_loop *loop, struct repl *repl, struct gd_err *err);

/* Where the session only left the terminal (repl_has_left), the panes are kept, hear what happens,
 * and the next call shows them as they were. */
void tui_forget(void); /* at the end, before the debugger and the REPL: frees what was kept */

/* The commands layout, focus, winheight, bind and `help keys` work from now on: what they set
 * holds when the panes open. */
void tui_lend_screen(struct repl *repl);

#endif

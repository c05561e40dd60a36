// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The panes: graph tree, node, console, status line and others on a curses screen.
 *
 * Panes draw what the sessions of the REPL's debugger know. Every key that does something runs a
 * command through repl_execute, so whatever can be pressed can be scripted. Everything runs on the
 * thread of the event loop. The caller handles SIGINT (the panes leave the terminal's signals on),
 * so Ctrl-C reaches it.
 */
#ifndef GD_TUI_TUI_H
#define GD_TUI_TUI_H

#include "repl/core/repl.h"

/* Runs the panes on stdin and stdout until a command quits or input ends, then restores the
 * terminal and the REPL's writer. Where panes are not possible (no terminal, TERM=dumb or unknown,
 * a screen below 40x10) it says so in one line and calls repl_run_prompt. Fatal signals restore the
 * terminal first. GD_OK, or GD_ENOMEM / GD_EIO with nothing changed. */
int tui_run(struct ev_loop *loop, struct repl *repl, struct gd_err *err);

/* If the session only left the terminal (repl_has_left), the panes are kept and continue to receive
 * events; the next call shows them as they were. */
void tui_forget(void); /* frees kept panes; call before destroying debugger and REPL */

/* Makes the commands layout, focus, winheight, bind and `help keys` available; what they set takes
 * effect when the panes open. */
void tui_lend_screen(struct repl *repl);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Ctrl-C, from the key to what it stops.
 *
 * 1. The signal: app.c on_signal (handler) wakes output that waits for the terminal (out/tty_out.c
 *    tty_out_interrupt) and feeds the loop. `gradb attach` forwards the key (resident/
 *    resident_attach.c), and the session raises SIGINT for itself (resident/resident_peers.c).
 * 2. The loop: app.c on_interrupt calls repl_interrupt(). While a command waits, that sets
 *    debugger->interrupted and stops the work in progress. When none waits, the prompt clears its
 *    line (line/line.c line_interrupt), the panes theirs (tui/tui.c on_interrupt, which also
 *    answers a question with no), and a batch ends with STATUS_INTERRUPTED. With commands from a
 *    pipe there is no line to clear: a running training is asked to stop.
 * 3. The waiting command: repl_wait (wait.c), repl_work_at (work.c) and repl_out_wait (wait.c) see
 *    repl_is_interrupted() and end with GD_EINTR. After a resume, stops.c handle_interrupt asks the
 *    training to stop first; a second Ctrl-C gives the prompt back and the training runs on.
 * 4. Programs: `shell` and `pipe` leave Ctrl-C to theirs (commands/support/child.c); the one that
 *    `run` started is in a session of its own and never gets it (launch/launch.c exec_child).
 *
 * One thread; nothing here may be called from a signal handler.
 */
#ifndef GD_REPL_INTERRUPT_H
#define GD_REPL_INTERRUPT_H

#include <stdbool.h>

#include "base/error.h"

struct repl;

/* What Ctrl-C does. False: nothing waits, and the front end clears its line. */
bool repl_interrupt(struct repl *repl);
/* A wait is to end: Ctrl-C, the end of gradb, or a terminal that is left. */
bool repl_is_interrupted(const struct repl *repl);
/* It was answered, or came too early for this command. */
void repl_clear_interrupt(struct repl *repl);
/* GD_EINTR: "interrupted after 12.0 of 64.0 MiB" when work was in progress, else `otherwise`. */
int repl_interrupted(struct repl *repl, const char *otherwise, struct gd_err *err);
struct gd_progress_info;
int repl_interrupted_at(const struct gd_progress_info *at, struct gd_err *err);

#endif

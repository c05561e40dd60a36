// SPDX-License-Identifier: GPL-3.0-or-later
/* Programs that `shell` and `pipe` run. They own the terminal, and Ctrl-C, while they run. */
#ifndef GD_REPL_CHILD_H
#define GD_REPL_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "repl/core/command.h"

/* Before a child starts: *mask is for child_take_terminal. GD_EINTR: Ctrl-C came while earlier
 * output was still being written. */
int child_lend_terminal(struct repl *repl, sigset_t *mask, struct gd_err *err);
/* After its end: a Ctrl-C that was meant for the child is dropped. */
void child_take_terminal(struct repl *repl, const sigset_t *mask);
/* Starts the user's shell on the text, with `input` as its stdin (-1: gradb's). GD_EIO. */
int child_run(const char *text, int input, pid_t *ret, struct gd_err *err);
/* Runs the loop until the child ends, so that training processes are answered. Its wait status. */
int child_wait(struct repl *repl, pid_t pid);
/* Records the exit status. */
void child_result(struct command_call *call, int status);

#endif

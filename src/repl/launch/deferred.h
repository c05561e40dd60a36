// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands that only the training process can carry out (metric, catch exception), given before
 * there is one: they run at the first stop of the process, or of the job, that connects next.
 * Breakpoints and watchpoints need no such thing: the debugger keeps those itself.
 */
#ifndef GD_REPL_DEFERRED_H
#define GD_REPL_DEFERRED_H

#include <stdbool.h>

#include "base/error.h"

struct repl;
struct command_call;

/* False: no process has connected yet, so the command has to be kept. */
bool deferred_is_due(const struct command_call *call);
/* Keeps the line, call->command's name and these words, and says so. GD_ELIMIT. */
int deferred_keep(struct command_call *call, const char *words, struct gd_err *err);
/* Runs the lines that were kept, once. */
void deferred_run(struct repl *repl);

#endif

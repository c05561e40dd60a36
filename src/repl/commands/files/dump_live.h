// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `dump` of a training that runs: what the loop of runs and stops asks it. An armed dump ends runs
 * at the steps that it is to write, writes them, and goes on as the user had asked.
 */
#ifndef GD_REPL_DUMP_LIVE_H
#define GD_REPL_DUMP_LIVE_H

#include "repl/core/command.h"

/* Before a run: one that would pass the end of a step to be dumped is made to end there. */
void repl_dump_aim(struct repl *repl, struct gd_session *session, struct gd_run *run);
/* Whether a stop is of that kind alone: it is not told. */
bool repl_dump_is_passing(struct repl *repl, const struct gd_session *session);
/* Once a stop was told: writes what is due. true: the training runs again. */
bool repl_dump_at_stop(struct repl *repl, struct gd_session *session);
/* The graph grew while the training runs: the new nodes may be among those to be dumped. */
void repl_dump_graph(struct repl *repl, struct gd_session *session);
/* Ctrl-C while the training ran: where it stops next it stays. */
void repl_dump_interrupted(struct repl *repl);
/* `set dump-config`: reads the file, or forgets it. GD_EINVAL: it has mistakes, which are told. */
int repl_dump_set_config(struct command_call *call, const char *path, struct gd_err *err);

#endif

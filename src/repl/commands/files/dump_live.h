// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `dump` of a live training: what the loop of runs and stops asks it. An armed dump ends runs at
 * the steps that it has to write, writes them, and resumes what the user had asked for.
 */
#ifndef GD_REPL_DUMP_LIVE_H
#define GD_REPL_DUMP_LIVE_H

#include "repl/core/command.h"

/* Before a run: makes it end at the next step to be dumped. */
void repl_dump_aim(struct repl *repl, struct gd_session *session, struct gd_run *run);
/* The stop was caused only by the dump: it is not reported. */
bool repl_dump_is_passing(struct repl *repl, const struct gd_session *session);
/* After a stop was reported: writes what is due. true: the training runs again. */
bool repl_dump_at_stop(struct repl *repl, struct gd_session *session);
/* The graph grew while the training runs: the new nodes may have to be dumped. */
void repl_dump_graph(struct repl *repl, struct gd_session *session);
/* Ctrl-C while the training ran: it stays stopped at its next stop. */
void repl_dump_interrupted(struct repl *repl);
/* `set dump-config`: reads the file, or forgets it. GD_EINVAL: it has errors, which are
 * reported. */
int repl_dump_set_config(struct command_call *call, const char *path, struct gd_err *err);

#endif

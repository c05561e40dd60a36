// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands of the training script that concern all of its processes. */
#ifndef GD_REPL_EVERYONE_H
#define GD_REPL_EVERYONE_H

#include "repl/core/command.h"

/* repl_command, sent to every live process. *reply is the selected process's reply; its refusal is
 * the command's error. A refusal by another one is a warning that names its rank. All are asked,
 * unless Ctrl-C ends the wait. */
int everyone_command(struct command_call *call, const char *name, const char *args,
                     const char **reply, struct gd_err *err);

/* The same for the processes that move together with the selected one: the ranks of its job, or it
 * alone. Replies are JSON objects; one with "error" is a refusal. done is called for each process
 * that did what was asked, the selected one first; its refusal ends the command. Returns how many
 * refused or could not be asked in *refused. */
typedef void (*job_done_fn)(void *ctx, struct gd_session *session, const cJSON *reply);
int job_command(struct command_call *call, const char *name, const char *args, job_done_fn done,
                void *ctx, int *refused, struct gd_err *err);

/* Whether all of them are stopped, as job_command needs. */
bool job_is_stopped(const struct gd_session *session);
/* Runs the line at the end of the step, where they are. */
int job_at_step_end(struct command_call *call, const char *line, struct gd_err *err);

#endif

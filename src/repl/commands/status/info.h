// SPDX-License-Identifier: GPL-3.0-or-later
/* The subjects of `info`, each in the file that has its name, and what they share. */
#ifndef GD_REPL_INFO_H
#define GD_REPL_INFO_H

#include "repl/core/command.h"

struct gd_catalog;

int info_args(struct command_call *call, struct gd_err *err); /* info_locals.c */
int info_batch(struct command_call *call, struct gd_err *err);
int info_breakpoints(struct command_call *call, struct gd_err *err);
int info_conditions(struct command_call *call, struct gd_err *err);
int info_display(struct command_call *call, struct gd_err *err); /* data/display.c */
int info_dump(struct command_call *call, struct gd_err *err);
int info_events(struct command_call *call, struct gd_err *err);
int info_formats(struct command_call *call, struct gd_err *err);
int info_frame(struct command_call *call, struct gd_err *err); /* graph/frame.c */
int info_gradients(struct command_call *call, struct gd_err *err);
int info_graph(struct command_call *call, struct gd_err *err);
int info_history(struct command_call *call, struct gd_err *err);
int info_hits(struct command_call *call, struct gd_err *err);
int info_init(struct command_call *call, struct gd_err *err);
int info_line(struct command_call *call, struct gd_err *err);
int info_locals(struct command_call *call, struct gd_err *err);
int info_log(struct command_call *call, struct gd_err *err);
int info_lr(struct command_call *call, struct gd_err *err);
int info_memory(struct command_call *call, struct gd_err *err);
int info_metrics(struct command_call *call, struct gd_err *err);
int info_model(struct command_call *call, struct gd_err *err);
int info_node(struct command_call *call, struct gd_err *err); /* graph/node_info.c */
int info_nodes(struct command_call *call, struct gd_err *err);
int info_optimizer(struct command_call *call, struct gd_err *err);
int info_overflows(struct command_call *call, struct gd_err *err);
int info_params(struct command_call *call, struct gd_err *err);
int info_ranks(struct command_call *call, struct gd_err *err);
int info_rules(struct command_call *call, struct gd_err *err);
int info_scalars(struct command_call *call, struct gd_err *err);
/* graph/scope.c: the scope itself, and what is in it. GD_ENODATA */
int info_scope(struct command_call *call, gd_scope_id scope, bool all, struct gd_err *err);
int info_scopes(struct command_call *call, struct gd_err *err);
int info_session(struct command_call *call, struct gd_err *err);
int info_settings(struct command_call *call, struct gd_err *err); /* support/show.c */
int info_source(struct command_call *call, struct gd_err *err);   /* graph/sources.c */
int info_stack(struct command_call *call, struct gd_err *err);    /* graph/backtrace.c */
int info_statistics(struct command_call *call, struct gd_err *err);
int info_steps(struct command_call *call, struct gd_err *err);
int info_target(struct command_call *call, struct gd_err *err);
int info_timing(struct command_call *call, struct gd_err *err);
int info_types(struct command_call *call, struct gd_err *err);
int info_watchpoints(struct command_call *call, struct gd_err *err);

/* Moves the reply of the stopped training process to its command `command`, an object, into the
 * record. GD_EUNSUPPORTED: it is not a process that answers. */
int info_ask(struct command_call *call, const char *command, cJSON *record, struct gd_err *err);
/* Adds the rank, where the job has several. */
void info_add_moment(struct command_call *call, cJSON *record);
/* "Step 3, rank 0 of 2", without an end of line; the record has the step. */
void info_say_moment(struct command_call *call, const cJSON *record);

/* GD_ENODATA: the training process has not sent a graph. */
int info_need_graph(struct command_call *call, struct gd_graph_counts *counts, struct gd_err *err);
/* The catalog of the dump that the session shows. GD_EUNSUPPORTED: it is not a dump. */
int info_need_catalog(struct command_call *call, const struct gd_catalog **ret, struct gd_err *err);
/* Adds the members of the session to the record. */
void info_add_session(struct command_call *call, cJSON *record, const struct gd_session *session);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* The tables of `info timing`, of a report that a live session or a trace has filled. */
#ifndef GD_REPL_INFO_TIMING_H
#define GD_REPL_INFO_TIMING_H

#include "engine/timing/report.h"
#include "repl/commands/status/info.h"

#define TIMING_SUBJECTS "operators, types, shapes, modules, steps or advice"

/* `info timing SUBJECT`. all: each row. The report may be NULL. GD_EUSAGE: there is no such
 * subject; GD_ENODATA. */
int timing_show(struct command_call *call, const char *subject, const struct gd_time_report *report,
                bool all, struct gd_err *err);

/* The first rows of the types, or all. */
int timing_show_types(struct command_call *call, cJSON *record, const struct gd_time_report *report,
                      bool all, struct gd_err *err);
/* all: also the rules. */
void timing_show_advice(struct command_call *call, cJSON *record,
                        const struct gd_time_report *report, bool all);

/* info_timing_collectives.c: a line for what DDP measured, and one for what the program calls. */
void timing_show_communication(struct command_call *call, cJSON *record,
                               const struct gd_time_report *report);
/* A table of the collectives that the program calls, where there are some. */
void timing_show_collectives(struct command_call *call, const struct gd_time_report *report);

void timing_fill_step(cJSON *object, const struct gd_time_step *step);
/* "?" when it is unknown */
const char *timing_seconds(struct command_call *call, double seconds);
const char *timing_share(struct command_call *call, double seconds, double total); /* "12.5%", "" */

#endif

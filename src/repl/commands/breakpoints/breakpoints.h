// SPDX-License-Identifier: GPL-3.0-or-later
/* What the commands about breakpoints and watchpoints share. */
#ifndef GD_REPL_BREAKPOINTS_H
#define GD_REPL_BREAKPOINTS_H

#include "repl/core/command.h"

struct gd_condition;

/* Numbers as arguments: breakpoints and watchpoints share them (stop_numbers.c). */
struct stop_range {
    int first, last;
};
/* "3", "2-5" or "$bpnum". GD_EINVAL. */
int stop_range_parse(struct command_call *call, const char *text, struct stop_range *ret,
                     struct gd_err *err);
/* GD_ENOTFOUND: there is no breakpoint or watchpoint of that number. */
int stop_number_missing(int number, struct gd_err *err);

/* May delete the breakpoint or watchpoint of that number. */
typedef int (*stop_number_fn)(struct command_call *call, int number, void *ctx, struct gd_err *err);
/* Calls fn for each breakpoint and watchpoint that the words from `first` on name; without any, for
 * all. A single number must exist; a range covers those that do. */
int stop_numbers_each(struct command_call *call, int first, stop_number_fn fn, void *ctx,
                      struct gd_err *err);

/* "fc1 (Linear)", "relu*: 3 nodes", "fc1 (pending: no training process yet)"; in the arena. */
const char *breakpoint_place(struct command_call *call, const struct gd_breakpoint *at);
/* The command that sets it again. */
void breakpoint_line(const struct gd_breakpoint *at, struct gd_buf *out);
void breakpoint_record(struct command_call *call, cJSON *object, const struct gd_breakpoint *at);

/* Where to look after it fired, and what it usually means. */
void watch_advice(struct command_call *call, const struct gd_condition *condition);
/* Prints the text in lines that fit the output's width, indented by `indent` columns. */
void watch_fold(struct command_call *call, const char *text, int indent);
/* The same in lines of at most `width` columns after the indent. */
void watch_fold_to(struct command_call *call, const char *text, int indent, int width);

#endif

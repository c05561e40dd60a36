// SPDX-License-Identifier: GPL-3.0-or-later
/* The numbers of breakpoints and watchpoints, which they share, as arguments of commands. */
#ifndef GD_REPL_STOP_NUMBERS_H
#define GD_REPL_STOP_NUMBERS_H

#include "repl/core/command.h"

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
/* Calls fn for each breakpoint and watchpoint that the words from `first` on name. A single number
 * must exist; a range covers those that do. */
int stop_numbers_each(struct command_call *call, int first, stop_number_fn fn, void *ctx,
                      struct gd_err *err);
int stop_numbers_all(struct command_call *call, stop_number_fn fn, void *ctx, struct gd_err *err);

#endif

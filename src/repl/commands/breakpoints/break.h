// SPDX-License-Identifier: GPL-3.0-or-later
/* How breakpoints are shown and recorded. */
#ifndef GD_REPL_BREAK_H
#define GD_REPL_BREAK_H

#include "repl/core/command.h"

struct gd_buf;

/* "fc1 (Linear)", "relu*: 3 nodes", "fc1 (pending: no training process yet)" */
void breakpoint_place(struct command_call *call, const struct gd_breakpoint *at,
                      struct gd_buf *out);
void breakpoint_record(struct command_call *call, cJSON *object, const struct gd_breakpoint *at);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where the time of a step went, by the training process's clock. report.h has those of all
 * steps.
 */
#ifndef GD_ENGINE_TIMING_STEP_TIMES_H
#define GD_ENGINE_TIMING_STEP_TIMES_H

#include "engine/graph/graph.h"

enum gd_time {
    GD_TIME_DATA,
    GD_TIME_COMPILED, /* in code that a framework compiled, whose parts are not known */
    GD_TIME_FORWARD,
    GD_TIME_BACKWARD,
    GD_TIME_OPTIMIZER,
    GD_TIME_REST,
    GD_TIME_TOTAL,
    GD_TIMES,
};
const char *gd_time_name(enum gd_time part); /* "data", ... */

struct gd_op_time {
    gd_node_id node;
    uint32_t calls;
    double seconds;
};
#define GD_MAX_OP_TIMES 64

/* Of one step. Seconds; negative when not known. */
struct gd_step_times {
    int64_t step; /* 0: none came yet */
    double part[GD_TIMES];
    struct gd_op_time op[GD_MAX_OP_TIMES]; /* the slowest first, of the last measured step */
    int op_count;
};

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where the time of steps went, by the training process's clock: the last step, and earlier ones.
 */
#ifndef GD_ENGINE_STEP_TIMES_H
#define GD_ENGINE_STEP_TIMES_H

#include "engine/graph/graph.h"

enum gd_time {
    GD_TIME_DATA,
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
    struct gd_op_time op[GD_MAX_OP_TIMES]; /* the slowest first */
    int op_count;
};

/* Over all steps. If a part is unknown in one of them, its mean is unknown, and so is its median,
 * which covers the last GD_RECENT_STEPS: a single slow step, above all the first, stays in the mean
 * forever. */
#define GD_RECENT_STEPS 256
struct gd_past_times {
    int64_t count;
    double sum[GD_TIMES];
    double recent[GD_TIMES]
                 [GD_RECENT_STEPS]; /* a ring: the next one is put at count modulo its size */
};

void gd_past_times_add(struct gd_past_times *past, const struct gd_step_times *times);

/* Seconds; negative when not known. */
double gd_past_times_mean(const struct gd_past_times *past, enum gd_time part);
double gd_past_times_median(const struct gd_past_times *past, enum gd_time part);

#endif

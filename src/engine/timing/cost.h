// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What an operator computes and moves, by its shapes, and whether that makes it wait for memory.
 */
#ifndef GD_ENGINE_TIMING_COST_H
#define GD_ENGINE_TIMING_COST_H

#include "engine/timing/report.h"

enum gd_time_kind {
    GD_KIND_OTHER,
    GD_KIND_MATMUL,
    GD_KIND_CONV,
    GD_KIND_ELEMENTWISE,
    GD_KIND_CAST,   /* to another type of number */
    GD_KIND_LAYOUT, /* a copy in another order */
};
/* Of forward and backward, with any framework's spelling. */
enum gd_time_kind gd_time_kind_of(const char *type);

/* Of one call: floating-point operations, and bytes read and written. Negative: unknown. */
void gd_time_cost_of(const struct gd_time_operator *op, double *flops, double *bytes);

/* What the machine did best in the report: the rate of the fastest matrix product or convolution,
 * and of the fastest elementwise operator. Those faster than 10 us do not count: their time is that
 * of the call. 0: unknown. */
struct gd_time_balance {
    double flops, bytes; /* per second */
    const struct gd_time_operator *compute, *memory;
};
struct gd_time_balance gd_time_balance_of(const struct gd_time_report *report);

enum gd_time_bound { GD_BOUND_UNKNOWN, GD_BOUND_MEMORY, GD_BOUND_COMPUTE };
enum gd_time_bound gd_time_bound_of(const struct gd_time_balance *balance, double flops,
                                    double bytes);
const char *gd_time_bound_name(enum gd_time_bound bound); /* "memory", "compute"; "" */

#endif

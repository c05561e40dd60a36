// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How to split the reduction of gradients, so that most of it runs beside the backward pass.
 *
 * The gradients are known with the time at which each one is ready. A bucket is reduced when its
 * last gradient is ready and the previous bucket is done; that takes `latency` + bytes / `rate`.
 */
#ifndef GD_ENGINE_TIMING_SPLIT_H
#define GD_ENGINE_TIMING_SPLIT_H

#include "engine/timing/report.h"

#define GD_SPLIT_MOST 8 /* buckets: more of them hide little more, and their latency is unknown */

struct gd_split {
    int count;              /* buckets */
    int end[GD_SPLIT_MOST]; /* the number of gradients up to the end of each, in order of readiness
                             */
    double tail;            /* predicted: after the last gradient is ready */
};

/* The tail when buckets end there. */
double gd_split_tail(const struct gd_time_gradient *gradient, int count, const int *end,
                     int buckets, double latency, double rate);
/* The fewest buckets whose tail is within 5 % of the least possible. GD_ENOMEM. */
int gd_split_best(const struct gd_time_gradient *gradient, int count, double latency, double rate,
                  struct gd_split *ret, struct gd_err *err);
/* The same for buckets that are closed as soon as they hold `limit` bytes, as DDP does it. */
double gd_split_tail_of_limit(const struct gd_time_gradient *gradient, int count, double limit,
                              double latency, double rate, int *buckets);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * When what ran: steps, their parts, operators, and metrics over time, for a trace that other tools
 * show. A trace that was opened gives it whole; a live session collects it from what is reported
 * (gd_session_on_step_times), which says how long things took but not when they began: a step ends
 * when its report arrives, and its parts and operators are laid end to end from its beginning.
 */
#ifndef GD_ENGINE_TIMING_TIMELINE_H
#define GD_ENGINE_TIMING_TIMELINE_H

#include "engine/timing/step_times.h"

/* Beyond that, the older half is dropped: of a trace, and of a live session. */
#define GD_TIMELINE_SPANS ((size_t)1 << 22)
#define GD_TIMELINE_LIVE  ((size_t)1 << 18)
#define GD_TIMELINE_LANES 4096

enum gd_timeline_kind { GD_ON_STEP, GD_ON_PART, GD_ON_OPERATOR, GD_ON_METRIC };

struct gd_timeline_span {
    int64_t start; /* nanoseconds since gd_timeline.base */
    union {
        int64_t duration;
        double value; /* of a metric */
    };
    int64_t step;
    uint32_t what; /* the node, the enum gd_time, or the number of the metric's name */
    uint16_t lane; /* of an operator */
    uint8_t kind;
};

struct gd_timeline {
    struct gd_timeline_span *span;
    size_t count, cap;
    char **lane, **metric; /* names */
    size_t lanes, lane_cap, metrics, metric_cap;
    int64_t base;     /* nanoseconds since the epoch; 0: unknown */
    bool is_measured; /* the starts of parts and operators are; otherwise laid end to end */
    uint64_t dropped;
    /* private: operators of the step whose report is awaited */
    struct gd_op_time *pending;
    size_t pending_count, pending_cap;
    int64_t end; /* of the last step */
};

/* Times of any size; what does not fit becomes the largest or smallest number. */
static inline int64_t gd_time_add(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}
static inline int64_t gd_time_sub(int64_t a, int64_t b)
{
    int64_t difference;
    return !__builtin_sub_overflow(a, b, &difference) ? difference : a < 0 ? INT64_MIN : INT64_MAX;
}

/* NULL: out of memory. */
struct gd_timeline *gd_timeline_create(void);
void gd_timeline_destroy(struct gd_timeline *timeline); /* NULL is fine */
/* Out of memory and over the limits, what is added is dropped and counted. */
void gd_timeline_add(struct gd_timeline *timeline, const struct gd_timeline_span *span);
/* The number of a lane, or of a metric, by its name; 0 when there are too many. */
uint16_t gd_timeline_lane(struct gd_timeline *timeline, const char *name);
uint32_t gd_timeline_metric(struct gd_timeline *timeline, const char *name);

/* ---- what a live session reports; now: seconds since the epoch ------------------------------- */

void gd_timeline_on_op(struct gd_timeline *timeline, const struct gd_op_time *op);
void gd_timeline_on_step(struct gd_timeline *timeline, const struct gd_step_times *times,
                         const struct gd_graph *graph, double now);
void gd_timeline_on_scalar(struct gd_timeline *timeline, const char *name, double value,
                           int64_t step, double now);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/timing/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define MAX_PENDING 65536
#define MAX_METRICS 4096
#define LANE        "operators, end to end"

struct gd_timeline *gd_timeline_create(void)
{
    return calloc(1, sizeof(struct gd_timeline));
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

void gd_timeline_destroy(struct gd_timeline *timeline)
{
    if (timeline) {
        free_names(timeline->lane, timeline->lanes);
        free_names(timeline->metric, timeline->metrics);
        free(timeline->span);
        free(timeline->pending);
        free(timeline);
    }
}

void gd_timeline_add(struct gd_timeline *timeline, const struct gd_timeline_span *span)
{
    if (timeline->count == (timeline->is_measured ? GD_TIMELINE_SPANS : GD_TIMELINE_LIVE)) {
        size_t half = timeline->count / 2;

        memmove(timeline->span, timeline->span + half, half * sizeof(*timeline->span));
        timeline->count = half;
        timeline->dropped += half;
    }
    if (!gd_grow_list(&timeline->span, timeline->count, &timeline->cap, sizeof(*timeline->span))) {
        timeline->dropped++;
        return;
    }
    timeline->span[timeline->count++] = *span;
}

static size_t number_of(char ***names, size_t *count, size_t *cap, size_t max, const char *name)
{
    char *copy;

    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*names)[i], name) == 0) {
            return i;
        }
    }
    if (*count == max || !gd_grow_list(names, *count, cap, sizeof(**names)) ||
        !(copy = strdup(name))) {
        return 0;
    }
    (*names)[*count] = copy;
    return (*count)++;
}

uint16_t gd_timeline_lane(struct gd_timeline *timeline, const char *name)
{
    return (uint16_t)number_of(&timeline->lane, &timeline->lanes, &timeline->lane_cap,
                               GD_TIMELINE_LANES, name);
}

uint32_t gd_timeline_metric(struct gd_timeline *timeline, const char *name)
{
    return (uint32_t)number_of(&timeline->metric, &timeline->metrics, &timeline->metric_cap,
                               MAX_METRICS, name);
}

/* ---- a live session -------------------------------------------------------------------------- */

void gd_timeline_on_op(struct gd_timeline *timeline, const struct gd_op_time *op)
{
    if (timeline->pending_count < MAX_PENDING && isfinite(op->seconds) && op->seconds >= 0 &&
        gd_grow_list(&timeline->pending, timeline->pending_count, &timeline->pending_cap,
                     sizeof(*timeline->pending))) {
        timeline->pending[timeline->pending_count++] = *op;
    }
}

static int64_t to_nanoseconds(double seconds)
{
    return seconds > 0 && seconds < 1e9 ? llround(seconds * 1e9) : 0;
}

/* The place on the timeline of a moment; the first one is its beginning. */
static int64_t place_now(struct gd_timeline *timeline, double now)
{
    int64_t at = now > 0 && now < 9e9 ? (int64_t)(now * 1e6) * 1000 : 0;

    if (timeline->base == 0) {
        timeline->base = at;
    }
    return at - timeline->base;
}

/* By its name, as the agents give them. */
static enum gd_time part_of(const struct gd_graph *graph, gd_node_id node)
{
    const char *name = gd_graph_name(graph, node);

    return strncmp(name, "data/", 5) == 0         ? GD_TIME_DATA
           : strncmp(name, "backward/", 9) == 0   ? GD_TIME_BACKWARD
           : strncmp(name, "optimizer/", 10) == 0 ? GD_TIME_OPTIMIZER
                                                  : GD_TIME_FORWARD;
}

/* Operators follow each other as they do in the graph; those of a part begin in it. */
static void lay_operators(struct gd_timeline *timeline, const struct gd_graph *graph, int64_t step,
                          const int64_t begin[GD_TIME_TOTAL])
{
    int64_t start = begin[0];

    for (size_t i = 0; i < timeline->pending_count; i++) {
        const struct gd_op_time *op = &timeline->pending[i];
        int64_t from = begin[part_of(graph, op->node)];
        start = from > start ? from : start;
        struct gd_timeline_span span = {.start = start,
                                        .duration = to_nanoseconds(op->seconds),
                                        .step = step,
                                        .what = op->node,
                                        .lane = gd_timeline_lane(timeline, LANE),
                                        .kind = GD_ON_OPERATOR};

        gd_timeline_add(timeline, &span);
        start += span.duration;
    }
    timeline->pending_count = 0;
}

static int order_ops(const void *a, const void *b, void *graph)
{
    const struct gd_op_time *x = a, *y = b;
    uint32_t i = gd_graph_order(graph, x->node), k = gd_graph_order(graph, y->node);

    return i < k ? -1 : i > k;
}

void gd_timeline_on_step(struct gd_timeline *timeline, const struct gd_step_times *times,
                         const struct gd_graph *graph, double now)
{
    int64_t end = place_now(timeline, now),
            start = end - to_nanoseconds(times->part[GD_TIME_TOTAL]);
    struct gd_timeline_span span = {.step = times->step, .kind = GD_ON_STEP};
    int64_t begin[GD_TIME_TOTAL];

    if (timeline->count > 0 && start < timeline->end) { /* its report came late */
        end += timeline->end - start;
        start = timeline->end;
    }
    timeline->end = end;
    span.start = start;
    span.duration = end - start;
    gd_timeline_add(timeline, &span);
    span.kind = GD_ON_PART;
    for (enum gd_time part = 0; part < GD_TIME_TOTAL; part++) {
        span.duration = to_nanoseconds(times->part[part]);
        span.duration = span.duration > end - span.start ? end - span.start : span.duration;
        begin[part] = span.start;
        if (span.duration > 0) {
            span.what = part;
            gd_timeline_add(timeline, &span);
            span.start += span.duration;
        }
    }
    if (timeline->pending_count > 1) {
        qsort_r(timeline->pending, timeline->pending_count, sizeof(*timeline->pending), order_ops,
                (void *)(uintptr_t)graph);
    }
    lay_operators(timeline, graph, times->step, begin);
}

void gd_timeline_on_scalar(struct gd_timeline *timeline, const char *name, double value,
                           int64_t step, double now)
{
    if (isfinite(value)) {
        gd_timeline_add(timeline,
                        &(struct gd_timeline_span){.start = place_now(timeline, now),
                                                   .value = value,
                                                   .step = step,
                                                   .what = gd_timeline_metric(timeline, name),
                                                   .kind = GD_ON_METRIC});
    }
}

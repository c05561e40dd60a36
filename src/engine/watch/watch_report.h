// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a target reports about watchpoints: values of the plans that it was given
 * (gd_target_ops.watch_plan), and watchpoints that it cannot evaluate itself. Called in the thread
 * of the loop; everything is copied or judged before the call returns.
 */
#ifndef GD_ENGINE_WATCH_REPORT_H
#define GD_ENGINE_WATCH_REPORT_H

#include "base/stats.h"
#include "engine/target.h"

struct gd_session;

struct gd_watch_value {
    uint32_t plan;
    gd_node_id node; /* GD_NO_NODE: a scalar */
    uint32_t slot;
    const char *scalar; /* NULL: a node */
    enum gd_dtype dtype;
    const struct gd_shape *shape;
    const struct gd_stats *stats; /* NULL: `error` says why */
    unsigned error;               /* bits of enum gd_hit_error */
    int64_t value_step;           /* the step that computed it; -1 unknown */
    uint64_t cost_ns;
    const uint64_t *bins; /* GD_WATCH_BINS over stats->min to max; NULL: none */
};

struct gd_watch_moment {
    int64_t step;
    bool exact;    /* of a node that has just run; else of the end of the step */
    bool record;   /* sent for the history alone: nothing is judged */
    bool complete; /* no more values of this step will come: sums are judged with what there is */
    bool *meant; /* NULL, or set to false unless all that the values hold is meant to be there: the
                  * same need not be reported again, see WatchVerdict */
};

/* Judges every watchpoint that covers the values, and reports hits. Returns whether the training is
 * to stop here; then `why` says so in one line of at most `size` bytes. A report may come in parts:
 * one call for each part; the answer holds for all of them. */
bool gd_watch_on_values(struct gd_session *session, const struct gd_watch_moment *moment,
                        const struct gd_watch_value *values, size_t count, char *why, size_t size);

/* The process cannot evaluate watchpoint `id` itself (a GPU without values of the previous step):
 * from now on gradb does, by a plan. */
void gd_watch_on_unable(struct gd_session *session, int32_t id);

#endif

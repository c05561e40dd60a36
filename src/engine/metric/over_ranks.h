// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Metrics over all ranks of a job (base/metric.h, `ranks`). Each rank reports what it counted in a
 * step. When all have passed the step, gradb adds that up, and the result is the metric of the step
 * in every session of the job.
 *
 * There is a number only when it is over all samples: ranks that are lost, or never connected, have
 * samples that nobody knows. Ranks that have ended, or have no batch in that step, have none. An
 * evaluation is over the ranks that evaluate.
 *
 * A rank that waits for the verdict on an event waits for the counts of the others, too
 * (over_ranks_await): between two steps, where no collective of the others needs it. As that cannot
 * be known for certain, it waits for a limited time, after which such metrics count as unknown.
 */
#ifndef GD_ENGINE_OVER_RANKS_H
#define GD_ENGINE_OVER_RANKS_H

#include "base/metric.h"
#include "engine/ranks.h"

/* Of each rank that is connected. A metric of that name is replaced. GD_ENOMEM. */
int gd_over_ranks_define(struct gd_ranks *ranks, const struct gd_metric_spec *spec,
                         struct gd_err *err);
/* NULL: all. */
void gd_over_ranks_delete(struct gd_ranks *ranks, const char *name);
/* Counts from here, as the ranks do. */
void gd_over_ranks_clear(struct gd_ranks *ranks);
bool gd_over_ranks_any(const struct gd_ranks *ranks);
/* Whether that metric of the session is one of them: its name, with "eval_" or the number of a
 * class. */
bool gd_over_ranks_has(const struct gd_session *session, const char *number);
/* The same, and its value is not known: it is not decided yet, or a rank is missing. */
bool gd_over_ranks_unknown(const struct gd_session *session, const char *number);
/* The session that stands for the job: that of the lowest rank that lives. */
bool gd_over_ranks_speaks(const struct gd_session *session);

struct gd_over_result {
    const struct gd_metric *metric; /* borrowed until the next message of a rank */
    int64_t step;                   /* 0: none yet */
    int ranks, world;               /* that counted samples, of how many */
    const char *why;                /* why it has no number; "" it has */
};
bool gd_over_ranks_result(const struct gd_ranks *ranks, const char *name, bool evaluation,
                          struct gd_over_result *ret);

/* From the target: what a rank counted in a step. Bad counts make the metric unknown. */
struct gd_metric_part {
    const char *definition;
    bool evaluation;
    int64_t step;
    bool late; /* the step had ended */
    uint64_t epoch;
    const char *counts, *missing;
};
void gd_session_on_metric_part(struct gd_session *session, const struct gd_metric_part *part);

/* ---- for the engine ---- */

/* The rank has ended. */
void over_ranks_on_end(struct gd_session *session);
/* A watchpoint on a metric over ranks has fired: the job stops at the end of the step. */
void over_ranks_on_hit(struct gd_session *session);
/* The session's process waits until its counts are part of a number; happenings_decide is called
 * then. false: they are. */
bool over_ranks_await(struct gd_session *session);
/* It is not to wait any longer. */
void over_ranks_release(struct gd_session *session);
void over_ranks_tick(struct gd_ranks *ranks);
void over_ranks_free(struct gd_ranks *ranks);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* The numbers of a session by name, as expressions use them: metrics, functions of their past, and
 * "elapsed", "step_time", "epoch", "batch". */
#ifndef GD_ENGINE_NUMBERS_H
#define GD_ENGINE_NUMBERS_H

#include "engine/watch/expression.h"

struct gd_session;

struct gd_numbers {
    const struct gd_session *session;
    int64_t step;
    int64_t epoch, batch; /* of the event that is judged; 0: as reported last */
};

/* "epoch" or "batch" of the event at which the training is stopped: the training reports its
 * metrics of them at the end of a step. */
bool gd_numbers_of_event(const struct gd_session *session, const char *name, double *ret);

/* Whether a name that no metric has is a node's with a statistic: "fc1.weight.max". *length: of the
 * node's name; statistic may be NULL. Before the first step, "x.y.max" is one as well. */
bool gd_numbers_is_figure(const struct gd_session *session, const char *name, size_t *length,
                          enum gd_statistic *statistic);

/* GD_ENOTFOUND: a metric in it is unknown, and its name is a slip of a known one's. GD_EINVAL: it
 * is a statistic of a node. Names in double quotes are neither. session NULL: nothing was reported
 * yet; expr NULL: fine. */
int gd_numbers_check(const struct gd_session *session, const struct gd_expr *expr,
                     struct gd_err *err);

/* For gd_observation.scalar, ctx a struct gd_numbers. */
bool gd_numbers_get(void *ctx, const char *name, double *ret);
/* An expression without statistics, judged by them. */
enum gd_truth gd_numbers_judge(const struct gd_numbers *numbers, const struct gd_expr *expr,
                               unsigned *error);

/* Its value, the same way. false: it is unknown. */
bool gd_numbers_value(const struct gd_numbers *numbers, const struct gd_expr *expr, double *ret,
                      unsigned *error);

/* A gd_bound_fn; ctx: the session. */
bool gd_numbers_bound(void *ctx, const struct gd_expr_function *function, enum gd_comparison op,
                      double value, struct gd_test_of *ret);
/* Seconds in which the training ran, up to now. */
double gd_numbers_elapsed(const struct gd_session *session);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Series over steps: what the session recorded of a metric, or of a statistic of a tensor. A metric
 * is kept from the moment at which the process connected, its newest GD_MAX_PAST reports, and as
 * long as the history has it. One thread; a series is a copy.
 */
#ifndef GD_REPL_SERIES_H
#define GD_REPL_SERIES_H

#include "engine/history/history.h"
#include "engine/statistic.h"
#include "repl/chart/chart.h"

struct command_call;

struct series {
    char *name; /* as it is to be shown */
    enum chart_unit unit;
    struct chart_point *point; /* by step; NaN and Inf included */
    size_t count, cap;
    bool is_metric;
    struct chart_bins *bins; /* of each point, which is the median; NULL: not histograms */
};
void series_release(struct series *series);
/* The curve of a chart; valid as long as the series. */
struct chart_curve series_curve(const struct series *series);

/* GD_ENOTFOUND: the session has no metric of that name. GD_ENOMEM. */
int series_of_metric(const struct gd_session *session, const char *name, struct series *ret,
                     struct gd_err *err);
/* A statistic of tensor number `index` of the history, under `name`. GD_ENOMEM. */
int series_of_tensor(const struct gd_history *history, uint32_t index, enum gd_statistic statistic,
                     const char *name, struct series *ret, struct gd_err *err);
/* The metrics of a session: calls fn with each name, once. */
void series_each_metric(const struct gd_session *session, void (*fn)(void *ctx, const char *name),
                        void *ctx);
/* The value at the step. False: none. */
bool series_at(const struct series *series, int64_t step, double *ret);

/* What a series is of, to read it again later. */
struct series_key {
    char *node; /* a node's name, or a metric's */
    bool is_metric;
    bool is_bins; /* the histograms of a tensor */
    uint32_t slot;
    enum gd_statistic statistic;
    char *label; /* "fc1.weight.norm" */
};
void series_key_release(struct series_key *key);
/* Also GD_OK, with no points, when a tensor is not in the history any more. */
int series_of(const struct gd_session *session, const struct series_key *key, struct series *ret,
              struct gd_err *err);

/* All that is recorded: the metrics, then for each tensor its usual statistics, labelled
 * "NODE:0/max", and its histograms. Ends when fn returns false. The key is lent. */
typedef bool (*series_fn)(void *ctx, const struct series_key *key);
void series_each(const struct gd_session *session, series_fn fn, void *ctx);

/* ---- by what is typed ---- */

/* A metric, or NODE[:SLOT] and a statistic: "loss", "fc1.weight.norm", "fc1/weight:0.max",
 * "fc1/weight" (its abs_mean), "fc1.weight.histogram". Of a dump, reads the tensor's values. Errors
 * say what can be plotted. */
int series_find(struct command_call *call, const char *text, struct series_key *ret,
                struct gd_err *err);
/* The histograms of NODE[:SLOT]. */
int series_find_bins(struct command_call *call, const char *text, struct series_key *ret,
                     struct gd_err *err);
/* A tensor of the history, as print takes it, or a metric of the history. A dump's tensor is read
 * first, so *history may change. */
int series_find_tensor(struct command_call *call, const struct gd_history **history,
                       const char *text, uint32_t *ret, struct gd_err *err);

#endif

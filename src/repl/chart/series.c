// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/chart/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/dump_target.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

_Static_assert(CHART_BINS == GD_WATCH_BINS, "a chart draws what the history has");

void series_release(struct series *series)
{
    free(series->name);
    free(series->point);
    free(series->bins);
    *series = (struct series){.name = NULL};
}

struct chart_curve series_curve(const struct series *series)
{
    return (struct chart_curve){.name = series->name,
                                .unit = series->unit,
                                .point = series->point,
                                .bins = series->bins,
                                .count = series->count};
}

bool series_at(const struct series *series, int64_t step, double *ret)
{
    size_t low = 0, high = series->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (series->point[middle].step < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == series->count || series->point[low].step != step) {
        return false;
    }
    *ret = series->point[low].value;
    return true;
}

/* ---- points ---- */

/* A later value of a step replaces it; steps that begin again are another run, which counts. */
static bool add_point(struct series *series, int64_t step, double value)
{
    while (series->count > 0 && series->point[series->count - 1].step > step) {
        series->count--;
    }
    if (series->count > 0 && series->point[series->count - 1].step == step) {
        series->point[series->count - 1].value = value;
        return true;
    }
    if (!gd_grow_list(&series->point, series->count, &series->cap, sizeof(*series->point))) {
        return false;
    }
    series->point[series->count++] = (struct chart_point){.step = step, .value = value};
    return true;
}

static bool begins_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static enum chart_unit unit_of(const char *name)
{
    return begins_with(name, "memory_")                                     ? CHART_BYTES
           : strcmp(name, "step_time") == 0 || strcmp(name, "elapsed") == 0 ? CHART_SECONDS
           : strstr(name, "percentage")                                     ? CHART_PERCENT
                                                                            : CHART_NUMBER;
}

static int begin_series(struct series *ret, const char *name, bool is_metric, struct gd_err *err)
{
    *ret = (struct series){.name = strdup(name), .unit = unit_of(name), .is_metric = is_metric};
    return ret->name ? GD_OK : gd_fail_nomem(err);
}

/* GD_OK, or releases the series. */
static int end_series(struct series *series, bool added, struct gd_err *err)
{
    if (!added) {
        series_release(series);
        return gd_fail_nomem(err);
    }
    return GD_OK;
}

/* ---- statistics of the history ---- */

/* False: the record has no such value. */
static bool value_of(const struct gd_history_tensor *tensor, const struct gd_history_record *record,
                     enum gd_statistic statistic, double *ret)
{
    struct gd_observation seen = {.stats = record->has_stats ? &record->stats : NULL,
                                  .error = record->error,
                                  .dtype = tensor->dtype,
                                  .range = -1,
                                  .step = record->step,
                                  .value_step = record->step};
    unsigned error = 0;

    if (gd_statistic_value(statistic, &seen, ret, &error)) {
        return true;
    }
    *ret = error & GD_HIT_NAN                                                ? NAN
           : tensor->is_scalar && record->has_stats && record->stats.neg_inf ? -INFINITY
                                                                             : INFINITY;
    return (error & (GD_HIT_NAN | GD_HIT_INF)) != 0;
}

static bool add_records(const struct gd_history *history, uint32_t index,
                        enum gd_statistic statistic, struct series *ret)
{
    struct gd_history_tensor tensor;
    struct gd_history_head head;

    gd_history_head(history, &head);
    if (!gd_history_tensor(history, index, &tensor)) {
        return false;
    }
    size_t room = tensor.seen < head.records ? (size_t)tensor.seen : head.records;
    GD_CLEANUP(gd_cleanup_free)
    struct gd_history_record *record = calloc(room + 1, sizeof(*record));
    if (!record) {
        return false;
    }
    size_t count = gd_history_read(history, index, record, room);
    bool added = true;
    for (size_t i = 0; i < count && added; i++) {
        double value;
        if (value_of(&tensor, &record[i], statistic, &value)) {
            added = add_point(ret, record[i].step, value);
        }
    }
    return added;
}

int series_of_tensor(const struct gd_history *history, uint32_t index, enum gd_statistic statistic,
                     const char *name, struct series *ret, struct gd_err *err)
{
    int rc = begin_series(ret, name, false, err);

    return rc != GD_OK ? rc : end_series(ret, add_records(history, index, statistic, ret), err);
}

/* ---- histograms of the history ---- */

static bool add_bins(struct series *series, const struct gd_history_bins *from)
{
    size_t count = series->count;
    struct chart_bins *bins = &series->bins[count];

    if (count > 0 && series->point[count - 1].step >= from->step) {
        return true; /* a damaged file */
    }
    *bins = (struct chart_bins){.low = from->lo, .high = from->hi};
    memcpy(bins->bin, from->bin, sizeof(bins->bin));
    return add_point(series, from->step, chart_bins_quantile(bins, 0.5));
}

/* The elements that are in no bin, from the statistics of the same steps. */
static bool count_nonfinite(const struct gd_history *history, uint32_t index, size_t room,
                            struct series *series)
{
    GD_CLEANUP(gd_cleanup_free)
    struct gd_history_record *record = calloc(room + 1, sizeof(*record));

    if (!record) {
        return false;
    }
    size_t count = gd_history_read(history, index, record, room);
    for (size_t i = 0, at = 0; i < count && at < series->count; i++) {
        while (at < series->count && series->point[at].step < record[i].step) {
            at++;
        }
        if (at < series->count && series->point[at].step == record[i].step) {
            series->bins[at].nan = record[i].stats.nan;
            series->bins[at].inf = record[i].stats.pos_inf + record[i].stats.neg_inf;
        }
    }
    return true;
}

static bool add_histograms(const struct gd_history *history, const char *name, uint32_t slot,
                           struct series *ret)
{
    struct gd_history_head head;
    struct gd_history_tensor tensor;
    uint32_t index, stats;

    gd_history_head(history, &head);
    if (!gd_history_find_bins(history, name, slot, &index) ||
        !gd_history_tensor(history, index, &tensor)) {
        return true;
    }
    size_t room = tensor.seen < head.records ? (size_t)tensor.seen : head.records;
    GD_CLEANUP(gd_cleanup_free)
    struct gd_history_bins *records = calloc(room + 1, sizeof(*records));
    ret->bins = calloc(room + 1, sizeof(*ret->bins));
    bool added = records && ret->bins;
    size_t count = added ? gd_history_read_bins(history, index, records, room) : 0;
    for (size_t i = 0; i < count && added; i++) {
        added = add_bins(ret, &records[i]);
    }
    if (added && gd_history_find(history, name, slot, &stats)) {
        added = count_nonfinite(history, stats, head.records, ret);
    }
    return added;
}

static int series_of_bins(const struct gd_session *session, const struct series_key *key,
                          struct series *ret, struct gd_err *err)
{
    int rc = begin_series(ret, key->label, false, err);
    bool added = true;

    if (rc == GD_OK && session->history) {
        added = add_histograms(session->history, key->node, key->slot, ret);
    }
    return rc != GD_OK ? rc : end_series(ret, added, err);
}

/* ---- metrics ---- */

static bool find_recorded(const struct gd_session *session, const char *name, uint32_t *ret)
{
    struct gd_history_tensor about;

    return session->history && gd_history_find(session->history, name, 0, ret) &&
           gd_history_tensor(session->history, *ret, &about) && about.is_scalar;
}

static bool add_catalog(const struct gd_session *session, const char *name, struct series *ret)
{
    const struct gd_catalog *catalog = gd_catalog_of(session);
    size_t count = 0;
    const struct gd_catalog_scalar *scalars = catalog ? gd_catalog_scalars(catalog, &count) : NULL;
    bool added = true;

    for (size_t i = 0; i < count && added; i++) {
        if (strcmp(scalars[i].name, name) == 0) {
            added = add_point(ret, scalars[i].step, scalars[i].value);
        }
    }
    return added;
}

static bool add_past(const struct gd_scalar *scalar, struct series *ret)
{
    bool added = true;

    for (size_t back = scalar->values.count; back > 0 && added; back--) {
        struct gd_past_report report = gd_past_report(&scalar->values, back - 1);
        added = add_point(ret, report.step, report.value);
    }
    return added;
}

int series_of_metric(const struct gd_session *session, const char *name, struct series *ret,
                     struct gd_err *err)
{
    const struct gd_scalar *scalar = gd_session_scalar(session, name);
    uint32_t index = 0;
    bool recorded = find_recorded(session, name, &index);
    int rc = begin_series(ret, name, true, err);

    if (rc != GD_OK) {
        return rc;
    }
    bool added = add_catalog(session, name, ret);
    if (ret->count == 0 && recorded) {
        added = added && add_records(session->history, index, GD_STAT_MEAN, ret);
    }
    if (!gd_catalog_of(session) && scalar) {
        added = added && add_past(scalar, ret);
    }
    rc = end_series(ret, added, err);
    if (rc == GD_OK && ret->count == 0) {
        series_release(ret);
        rc = gd_fail(err, GD_ENOTFOUND, "the training has not reported a metric \"%.80s\"", name);
    }
    return rc;
}

void series_each_metric(const struct gd_session *session, void (*fn)(void *ctx, const char *name),
                        void *ctx)
{
    const struct gd_catalog *catalog = gd_catalog_of(session);
    struct gd_history_head head = {.tensors = 0};
    struct gd_history_tensor about;
    size_t count = 0;
    const struct gd_catalog_scalar *scalars = catalog ? gd_catalog_scalars(catalog, &count) : NULL;

    for (int i = 0; i < session->scalar_count; i++) {
        fn(ctx, session->scalar[i].name);
    }
    for (size_t i = 0; i < count; i++) {
        bool seen = gd_session_scalar(session, scalars[i].name) != NULL;
        for (size_t k = 0; k < i && !seen; k++) {
            seen = strcmp(scalars[k].name, scalars[i].name) == 0;
        }
        if (!seen) {
            fn(ctx, scalars[i].name);
        }
    }
    if (session->history) {
        gd_history_head(session->history, &head);
    }
    for (uint32_t i = 0; i < head.tensors; i++) {
        if (gd_history_tensor(session->history, i, &about) && about.is_scalar && about.seen > 0 &&
            !gd_session_scalar(session, about.name)) {
            fn(ctx, about.name);
        }
    }
}

void series_key_release(struct series_key *key)
{
    free(key->node);
    free(key->label);
    *key = (struct series_key){.node = NULL};
}

int series_of(const struct gd_session *session, const struct series_key *key, struct series *ret,
              struct gd_err *err)
{
    uint32_t index;

    if (key->is_metric) {
        return series_of_metric(session, key->node, ret, err);
    }
    if (key->is_bins) {
        return series_of_bins(session, key, ret, err);
    }
    if (!session->history || !gd_history_find(session->history, key->node, key->slot, &index)) {
        return begin_series(ret, key->label, false, err);
    }
    int rc = series_of_tensor(session->history, index, key->statistic, key->label, ret, err);
    if (rc == GD_OK && strstr(gd_statistic_name(key->statistic), "percentage")) {
        ret->unit = CHART_PERCENT;
    }
    return rc;
}

/* ---- all ---- */

static const enum gd_statistic exported[] = {
    GD_STAT_ABS_MEAN, GD_STAT_MEAN, GD_STAT_STD,       GD_STAT_NORM,
    GD_STAT_MIN,      GD_STAT_MAX,  GD_STAT_NONFINITE, GD_STAT_ZERO_PERCENTAGE};

struct each {
    series_fn fn;
    void *ctx;
    bool goes_on;
};

static void each_metric(void *ctx, const char *name)
{
    struct each *each = ctx;
    struct series_key key = {.node = strdup(name), .label = strdup(name), .is_metric = true};

    if (each->goes_on && key.node && key.label) {
        each->goes_on = each->fn(each->ctx, &key);
    }
    series_key_release(&key);
}

static void each_statistic(struct each *each, const struct gd_history_tensor *tensor)
{
    char label[640];

    for (size_t i = 0; i < sizeof(exported) / sizeof(exported[0]) && each->goes_on; i++) {
        const char *statistic = gd_statistic_name(exported[i]);
        snprintf(label, sizeof(label), "%.560s:%u/%s", tensor->name, tensor->slot, statistic);
        struct series_key key = {.node = strdup(tensor->name),
                                 .label = strdup(label),
                                 .slot = tensor->slot,
                                 .statistic = exported[i]};
        if (key.node && key.label) {
            each->goes_on = each->fn(each->ctx, &key);
        }
        series_key_release(&key);
    }
}

static void each_histogram(struct each *each, const struct gd_history_tensor *tensor)
{
    char label[640];

    snprintf(label, sizeof(label), "%.560s:%u/histogram", tensor->name, tensor->slot);
    struct series_key key = {.node = strdup(tensor->name),
                             .label = strdup(label),
                             .slot = tensor->slot,
                             .is_bins = true};
    if (key.node && key.label) {
        each->goes_on = each->fn(each->ctx, &key);
    }
    series_key_release(&key);
}

void series_each(const struct gd_session *session, series_fn fn, void *ctx)
{
    struct each each = {fn, ctx, true};
    struct gd_history_head head = {.tensors = 0};
    struct gd_history_tensor tensor;

    series_each_metric(session, each_metric, &each);
    if (session->history) {
        gd_history_head(session->history, &head);
    }
    for (uint32_t i = 0; i < head.tensors && each.goes_on; i++) {
        if (gd_history_tensor(session->history, i, &tensor) && !tensor.is_scalar &&
            tensor.seen > 0) {
            (tensor.is_bins ? each_histogram : each_statistic)(&each, &tensor);
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Series by what is typed. */
#include <stdlib.h>
#include <string.h>

#include "repl/chart/series.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

/* Reads a tensor's past from a dump, on demand. */
static int read_past(struct command_call *call, const struct gd_tensor_ref *ref, struct gd_err *err)
{
    struct repl_work work;
    int rc;

    if (!gd_session_can_recall(call->session)) {
        return GD_OK;
    }
    repl_work_begin_count(&work, call, "statistics of all steps", "steps", 0);
    rc = gd_session_recall(call->session, ref, repl_work_at, &work, err);
    return repl_work_end(&work, rc, err);
}

int series_find_tensor(struct command_call *call, const struct gd_history **history,
                       const char *text, uint32_t *ret, struct gd_err *err)
{
    struct gd_history_tensor about;
    struct tensor_arg arg;
    const char *name;
    int rc;

    if (*history && gd_history_find(*history, text, 0, ret) &&
        gd_history_tensor(*history, *ret, &about) && about.is_scalar) {
        return GD_OK;
    }
    rc = arg_tensor(call, text, &arg, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (arg.value || arg.slice.count > 0) {
        return gd_fail(err, GD_EINVAL,
                       "the history is of whole tensors: slices and $N are not supported");
    }
    rc = read_past(call, &arg.ref, err);
    if (rc != GD_OK) {
        return rc;
    }
    *history = call->session->history;
    name = gd_graph_name(call->session->graph, arg.ref.node);
    if (!*history || !gd_history_find(*history, name, arg.ref.slot, ret) ||
        !gd_history_tensor(*history, *ret, &about) || about.is_scalar) {
        return gd_fail(err, GD_ENODATA,
                       "%.300s:%u is not in the history, which records watched tensors (start with "
                       "`trace` on this node)",
                       name, arg.ref.slot);
    }
    return GD_OK;
}

/* "NODE.norm", "NODE.abs_mean(cur-prev)": where the statistic begins, and which it is. */
static const char *split_statistic(const char *text, enum gd_statistic *ret)
{
    char name[64], of[32] = "";
    const char *bracket = strchr(text, '(');
    const char *end = bracket ? bracket : text + strlen(text);
    const char *dot = end;

    while (dot > text && *dot != '.') {
        dot--;
    }
    size_t len = (size_t)(end - dot);
    if (dot == text || len < 2 || len > sizeof(name) ||
        (bracket && (strlen(bracket) < 3 || strlen(bracket) > sizeof(of)))) {
        return NULL;
    }
    snprintf(name, sizeof(name), "%.*s", (int)len - 1, dot + 1);
    if (bracket) {
        snprintf(of, sizeof(of), "%.*s", (int)strcspn(bracket + 1, ")"), bracket + 1);
    }
    *ret = gd_statistic_find(name, of);
    return *ret != GD_STAT_NONE ? dot : NULL;
}

struct names {
    char text[160];
    size_t count;
};

static void add_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    size_t len = strlen(names->text);

    names->count++;
    snprintf(names->text + len, sizeof(names->text) - len, "%s%.40s", len ? ", " : "", name);
}

static int fail_unknown(struct command_call *call, const char *text, struct gd_err *err)
{
    struct names names = {.count = 0};

    series_each_metric(call->session, add_name, &names);
    if (names.count == 0) {
        return gd_fail(err, GD_ENOTFOUND,
                       "\"%.80s\" is not a metric or a node, and the training has reported no "
                       "metrics yet",
                       text);
    }
    return gd_fail(err, GD_ENOTFOUND,
                   "\"%.80s\" is not a metric (%s) or a node with a statistic, such as "
                   "NODE.abs_mean",
                   text, names.text);
}

static int fill_key(const char *node, const char *label, bool is_metric, struct series_key *ret,
                    struct gd_err *err)
{
    *ret =
        (struct series_key){.node = strdup(node), .label = strdup(label), .is_metric = is_metric};
    if (!ret->node || !ret->label) {
        series_key_release(ret);
        return gd_fail_nomem(err);
    }
    return GD_OK;
}

static int find_metric(struct command_call *call, const char *text, struct series_key *ret,
                       struct gd_err *err)
{
    struct series series;
    int rc = series_of_metric(call->session, text, &series, err);

    if (rc == GD_OK) {
        series_release(&series);
        rc = fill_key(text, text, true, ret, err);
    }
    return rc;
}

int series_find_bins(struct command_call *call, const char *text, struct series_key *ret,
                     struct gd_err *err)
{
    const struct gd_history *history = call->session->history;
    struct series metric;
    struct tensor_arg arg;
    uint32_t index;

    if (series_of_metric(call->session, text, &metric, NULL) == GD_OK) {
        series_release(&metric);
        return gd_fail(err, GD_EINVAL, "\"%.80s\" is a metric, one number for each step", text);
    }
    int rc = arg_tensor(call, text, &arg, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (arg.value || arg.slice.count > 0) {
        return gd_fail(err, GD_EINVAL,
                       "histograms are of whole tensors: slices and $N are not supported");
    }
    const char *name = gd_graph_name(call->session->graph, arg.ref.node);
    if (!history || !gd_history_find_bins(history, name, arg.ref.slot, &index)) {
        return gd_fail(err, GD_ENODATA,
                       "no histograms of %.300s:%u are recorded: start with `trace histogram on "
                       "%.300s`, and let the training run",
                       name, arg.ref.slot, name);
    }
    rc = fill_key(name, inspect_printf(call, "%s:%u", name, arg.ref.slot), false, ret, err);
    ret->slot = arg.ref.slot;
    ret->is_bins = true;
    return rc;
}

static const char *const histogram = ".histogram";

int series_find(struct command_call *call, const char *text, struct series_key *ret,
                struct gd_err *err)
{
    const struct gd_history *history = call->session->history;
    enum gd_statistic statistic = GD_STAT_NONE;
    struct gd_history_tensor about;
    uint32_t index = 0;
    int rc = find_metric(call, text, ret, err);

    if (rc != GD_ENOTFOUND) {
        return rc;
    }
    size_t len = strlen(text), end = strlen(histogram);
    if (len > end && strcmp(text + len - end, histogram) == 0) {
        return series_find_bins(call, inspect_printf(call, "%.*s", (int)(len - end), text), ret,
                                err);
    }
    rc = series_find_tensor(call, &history, text, &index, err);
    const char *dot = rc == GD_ENOTFOUND ? split_statistic(text, &statistic) : NULL;
    if (dot) {
        const char *node = inspect_printf(call, "%.*s", (int)(dot - text), text);
        rc = series_find_tensor(call, &history, node, &index, err);
    }
    if (rc != GD_OK) {
        return rc == GD_ENOTFOUND && !dot && !strchr(text, '/') ? fail_unknown(call, text, err)
                                                                : rc;
    }
    if (statistic == GD_STAT_NONE) {
        statistic = GD_STAT_ABS_MEAN;
        text = inspect_printf(call, "%s.abs_mean", text);
    } else if (gd_statistic_needs(statistic) & (GD_NEED_RANGE | GD_NEED_SERIES | GD_NEED_UNITS)) {
        return gd_fail(err, GD_EINVAL, "\"%s\" is not recorded in the history (info statistics)",
                       gd_statistic_name(statistic));
    }
    if (!gd_history_tensor(history, index, &about)) {
        return gd_fail(err, GD_ENODATA, "the history has no values of it");
    }
    rc = fill_key(about.name, text, false, ret, err);
    ret->slot = about.slot;
    ret->statistic = statistic;
    return rc;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* `info history`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "engine/history/history.h"
#include "engine/statistic.h"
#include "repl/chart/series.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/spark.h"

#define MAX_FIGURES 8
#define MAX_RECORDS 4096 /* per tensor: as many as a line of bars shows */
#define LIST_ROWS   20   /* tensors, unless -a */
#define STEP_ROWS   20   /* unless -n */
#define LIST_SPARK  16   /* columns */

struct chosen_figures {
    enum gd_statistic of[MAX_FIGURES];
    int count;
};

/* The records of one tensor; `kept` more steps exist than are shown. */
struct track {
    struct gd_history_tensor tensor;
    struct gd_history_record *records;
    size_t count;
};

static const char *figure_name(enum gd_statistic figure, bool is_scalar)
{
    return is_scalar && figure == GD_STAT_MEAN ? "value" : gd_statistic_name(figure);
}

/* The statistic of a step; false: there is none, `error` says why. */
static bool figure_at(const struct track *track, size_t i, enum gd_statistic figure, double *ret,
                      unsigned *error)
{
    const struct gd_history_record *record = &track->records[i];
    struct gd_observation seen = {.stats = record->has_stats ? &record->stats : NULL,
                                  .error = record->error,
                                  .dtype = track->tensor.dtype,
                                  .range = -1,
                                  .step = record->step,
                                  .value_step = record->step};

    *error = 0;
    return gd_statistic_value(figure, &seen, ret, error);
}

static bool is_bad(const struct gd_history_record *record)
{
    const struct gd_stats *stats = &record->stats;

    return record->has_stats && (stats->nan || stats->pos_inf || stats->neg_inf);
}

static struct out_field figure_field(struct command_call *call, const char *key,
                                     const struct track *track, size_t i, enum gd_statistic figure)
{
    double value;
    unsigned error;

    if (figure_at(track, i, figure, &value, &error)) {
        return OUT_REAL(key, value);
    }
    return OUT_TEXT(key, error & GD_HIT_NAN       ? "nan"
                         : error & GD_HIT_INF     ? "inf"
                         : out_is_json(call->out) ? NULL
                                                  : "-");
}

static const char *spark_text(struct command_call *call, const struct track *track,
                              enum gd_statistic figure, size_t width)
{
    struct spark_point *points = malloc((track->count + 1) * sizeof(*points));
    struct gd_buf buf = GD_BUF_INIT(1 << 16);
    const char *text = "";
    unsigned error;

    for (size_t i = 0; points && i < track->count; i++) {
        points[i].mark = SPARK_VALUE;
        if (!figure_at(track, i, figure, &points[i].value, &error)) {
            points[i].mark = error & (GD_HIT_NAN | GD_HIT_INF) ? SPARK_BAD : SPARK_MISSING;
        } else if (!isfinite(points[i].value)) {
            points[i].mark = SPARK_BAD;
        }
    }
    if (points) {
        spark_draw(points, track->count, width, !out_utf8(call->out), &buf);
        text = inspect_printf(call, "%s", gd_buf_text(&buf));
    }
    gd_buf_deinit(&buf);
    free(points);
    return text;
}

/* ---- finding --------------------------------------------------------------------------------- */

static int need_history(struct command_call *call, const struct gd_history **ret,
                        struct gd_err *err)
{
    int rc = repl_need_session(call, err);

    if (rc != GD_OK) {
        return rc;
    }
    *ret = call->session->history;
    if (*ret || (gd_session_can_recall(call->session) && call->argc > 0)) {
        return GD_OK;
    }
    if (gd_session_can_recall(call->session)) {
        return gd_fail(err, GD_ENODATA,
                       "for a dump, specify one tensor or metric: info history NODE:0");
    }
    if (call->argc > 0 && gd_session_scalar(call->session, call->argv[0])) {
        return gd_fail(
            err, GD_ENODATA,
            "the history is empty: it records metrics once something is watched or traced; "
            "\"plot %.60s\" draws this one",
            call->argv[0]);
    }
    return gd_fail(err, GD_ENODATA,
                   call->debugger->settings.history_bytes == 0
                       ? "no history is recorded: set a size with `set history-bytes`"
                       : "the history is empty: it records what a watchpoint or `trace` covers");
}

static int read_track(const struct gd_history *history, uint32_t index, struct track *ret,
                      struct gd_err *err)
{
    ret->records = malloc(MAX_RECORDS * sizeof(*ret->records));
    if (!ret->records || !gd_history_tensor(history, index, &ret->tensor)) {
        free(ret->records);
        ret->records = NULL;
        return gd_fail(err, GD_ENOMEM, "out of memory for the records of a tensor");
    }
    ret->count = gd_history_read(history, index, ret->records, MAX_RECORDS);
    return GD_OK;
}

/* The newest reports of a dump's metric, which the history does not have. 0: there is none. */
static size_t read_metric(struct command_call *call, const char *name, struct track *ret)
{
    const struct gd_catalog *catalog = gd_catalog_of(call->session);
    size_t count = 0;
    const struct gd_catalog_scalar *scalars = catalog ? gd_catalog_scalars(catalog, &count) : NULL;
    size_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        seen += strcmp(scalars[i].name, name) == 0;
    }
    size_t older = seen > MAX_RECORDS ? seen - MAX_RECORDS : 0;
    ret->records = seen > 0 ? calloc(seen - older, sizeof(*ret->records)) : NULL;
    ret->tensor = (struct gd_history_tensor){
        .name = name, .is_scalar = true, .dtype = GD_FLOAT64, .seen = seen};
    for (size_t i = 0; ret->records && i < count; i++) {
        if (strcmp(scalars[i].name, name) != 0) {
            continue;
        }
        if (older > 0) {
            older--;
            continue;
        }
        struct gd_history_record *record = &ret->records[ret->count++];
        *record = (struct gd_history_record){.step = scalars[i].step, .has_stats = true};
        gd_number_stats(scalars[i].value, &record->stats);
    }
    return ret->count;
}

/* Parses "abs_mean", "abs_mean(cur-prev)". */
static int parse_figure(const char *text, struct chosen_figures *figures, struct gd_err *err)
{
    char name[64], of[32] = "";
    const char *open = strchr(text, '(');
    size_t len = open ? (size_t)(open - text) : strlen(text);
    enum gd_statistic figure = GD_STAT_NONE;

    if (len < sizeof(name) && (!open || strlen(open) < sizeof(of))) {
        snprintf(name, sizeof(name), "%.*s", (int)len, text);
        if (open) {
            snprintf(of, sizeof(of), "%.*s", (int)strcspn(open + 1, ")"), open + 1);
        }
        figure = gd_statistic_find(name, of);
    }
    if (figure == GD_STAT_NONE ||
        (gd_statistic_needs(figure) & (GD_NEED_RANGE | GD_NEED_SERIES | GD_NEED_UNITS))) {
        return gd_fail(err, GD_EINVAL,
                       "\"%.80s\" is not a statistic of the history: count, nan, inf, zero, min, "
                       "max, mean, abs_mean, std, norm, abs_mean(cur-prev), ... (info statistics)",
                       text);
    }
    if (figures->count == MAX_FIGURES) {
        return gd_fail(err, GD_EUSAGE, "at most %d statistics can be shown", MAX_FIGURES);
    }
    figures->of[figures->count++] = figure;
    return GD_OK;
}

static void default_figures(bool is_scalar, struct chosen_figures *ret)
{
    static const struct chosen_figures tensor = {.of = {GD_STAT_ABS_MEAN, GD_STAT_MAX, GD_STAT_MIN,
                                                        GD_STAT_NONFINITE, GD_STAT_ZERO_PERCENTAGE},
                                                 .count = 5};
    static const struct chosen_figures scalar = {.of = {GD_STAT_MEAN}, .count = 1};

    if (ret->count == 0) {
        *ret = is_scalar ? scalar : tensor;
    }
}

/* ---- one tensor ------------------------------------------------------------------------------ */

/* "0", "in0"; the slot's number if the graph no longer contains the node. */
static const char *slot_text(struct command_call *call, const struct gd_history_tensor *tensor)
{
    gd_node_id node = gd_graph_lookup(call->session->graph, tensor->name, strlen(tensor->name));

    return inspect_slot(call, node, tensor->slot);
}

static const char *track_label(struct command_call *call, const struct track *track)
{
    const char *name = track->tensor.name;

    return inspect_name(call,
                        track->tensor.is_scalar
                            ? name
                            : inspect_printf(call, "%s:%s", name, slot_text(call, &track->tensor)));
}

static void print_steps(struct command_call *call, const struct track *track,
                        const struct chosen_figures *figures, size_t rows)
{
    struct out_column columns[MAX_FIGURES + 1] = {{"step", "Step", true}};
    struct out_table *table;

    for (int i = 0; i < figures->count; i++) {
        const char *name = figure_name(figures->of[i], track->tensor.is_scalar);

        columns[i + 1] = (struct out_column){name, name, true, ":g6"};
    }
    table = out_table_begin(call->out, "history", columns, figures->count + 1);
    for (size_t i = track->count > rows ? track->count - rows : 0; i < track->count; i++) {
        cJSON *row = out_row(table);
        out_set(row, OUT_INT("step", track->records[i].step));
        for (int k = 0; k < figures->count; k++) {
            out_set(row, figure_field(call, columns[k + 1].name, track, i, figures->of[k]));
        }
    }
    out_table_end(table);
}

/* Lowest and highest finite value: the ends of the bars. */
static const char *range_text(struct command_call *call, const struct track *track,
                              enum gd_statistic figure)
{
    double low = INFINITY, high = -INFINITY, value;
    unsigned error;

    for (size_t i = 0; i < track->count; i++) {
        if (figure_at(track, i, figure, &value, &error) && isfinite(value)) {
            low = fmin(low, value);
            high = fmax(high, value);
        }
    }
    if (low > high) {
        return "";
    }
    if (low == high) {
        return inspect_double(call, low);
    }
    return inspect_printf(call, "%s to %s", inspect_double(call, low), inspect_double(call, high));
}

static void print_sparks(struct command_call *call, const struct track *track,
                         const struct chosen_figures *figures)
{
    int widest = 0, room;

    for (int i = 0; i < figures->count; i++) {
        int len = (int)strlen(figure_name(figures->of[i], track->tensor.is_scalar));

        widest = len > widest ? len : widest;
    }
    room = out_width(call->out) - widest - 34; /* columns for the two ends after the bars */
    room = room < 10 ? 10 : room > 60 ? 60 : room;
    for (int i = 0; i < figures->count; i++) {
        out_printf(call->out, "%-*s  %s  %s\n", widest,
                   figure_name(figures->of[i], track->tensor.is_scalar),
                   spark_text(call, track, figures->of[i], (size_t)room),
                   range_text(call, track, figures->of[i]));
    }
}

/* Index of the first kept step with NaN or Inf; count: none. */
static size_t first_bad(const struct track *track)
{
    size_t i = 0;

    while (i < track->count && !is_bad(&track->records[i])) {
        i++;
    }
    return i;
}

static void print_first_bad(struct command_call *call, const struct track *track)
{
    size_t first = first_bad(track), bad = 0;

    for (size_t i = first; i < track->count; i++) {
        bad += is_bad(&track->records[i]) ? 1 : 0;
    }
    if (bad == 0) {
        return;
    }
    out_printf(call->out, "Not finite %s step %lld (%s of %zu).\n",
               first == 0 && track->tensor.seen > track->count ? "already at"
               : bad == track->count - first                   ? "since"
                                                               : "first at",
               (long long)track->records[first].step, inspect_plural(call, bad, "step"),
               track->count);
}

static void show_head_of(struct command_call *call, const struct track *track, size_t rows)
{
    cJSON *record = out_record(call->out, "history");
    size_t first = first_bad(track);

    out_set(record, OUT_TEXT("name", track_label(call, track)),
            OUT_BOOL("scalar", track->tensor.is_scalar),
            OUT_TEXT("dtype", gd_dtype_name(track->tensor.dtype)),
            OUT_JSON("shape", inspect_shape_json(&track->tensor.shape)),
            OUT_INT("kept", track->count), OUT_INT("seen", track->tensor.seen),
            first < track->count ? OUT_INT("first_nonfinite_step", track->records[first].step)
                                 : OUT_TEXT("first_nonfinite_step", NULL));
    out_say(call->out, record, "{name}: {kept|step} recorded[, the last {rows}]\n",
            OUT_INT("rows", track->count > rows ? rows : 0));
}

static void show_track(struct command_call *call, const struct track *track,
                       struct chosen_figures *figures, size_t rows)
{
    default_figures(track->tensor.is_scalar, figures);
    show_head_of(call, track, rows);
    print_steps(call, track, figures, rows);
    if (out_is_text(call->out)) {
        print_sparks(call, track, figures);
        print_first_bad(call, track);
    }
}

/* What the first word names, with the statistics that the others name. */
static int show_one(struct command_call *call, const struct gd_history *history, size_t rows,
                    struct gd_err *err)
{
    struct chosen_figures figures = {.count = 0};
    struct track track = {.count = 0};
    uint32_t index = 0;
    int rc = GD_OK;

    for (int i = 1; rc == GD_OK && i < call->argc; i++) {
        rc = parse_figure(call->argv[i], &figures, err);
    }
    if (rc == GD_OK && read_metric(call, call->argv[0], &track) == 0) {
        free(track.records);
        track = (struct track){.count = 0};
        rc = series_find_tensor(call, &history, call->argv[0], &index, err);
        rc = rc != GD_OK ? rc : read_track(history, index, &track, err);
    }
    if (rc == GD_OK) {
        show_track(call, &track, &figures, rows);
    }
    free(track.records);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void show_head(struct command_call *call, const struct gd_history *history,
                      const struct gd_history_head *head)
{
    cJSON *record = out_record(call->out, "history");

    out_set(record, OUT_TEXT("file", gd_history_path(history)), OUT_REAL("started", head->started),
            OUT_INT("bytes", head->bytes), OUT_INT("tensors", head->tensors - head->histograms),
            OUT_INT("histograms", head->histograms), OUT_INT("capacity", head->capacity),
            OUT_INT("left_out", head->left_out), OUT_INT("records", head->records),
            OUT_INT("steps", head->steps), OUT_INT("first_step", head->first_step),
            OUT_INT("last_step", head->last_step), OUT_INT("generation", head->generation),
            OUT_INT("damaged", head->damaged));
    out_say(call->out, record,
            "{file}, {bytes:bytes}, since {started:date}\n{tensors|tensor}[ and "
            "{histograms|histogram}] of {capacity:n}");
    if (head->last_step >= 0) {
        out_say(call->out, record, ", steps {first_step} to {last_step}");
    }
    out_say(call->out, record,
            "; room for {steps:n} steps each\n"
            "[{left_out|tensor} did not fit: `set history-bytes` before the first watchpoint\n]"
            "[The steps restarted {restarts}; earlier records are not shown.\n]",
            OUT_TEXT("restarts", head->generation == 0 ? ""
                                 : head->generation == 1
                                     ? "once"
                                     : inspect_printf(call, "%u times", head->generation)));
    out_say(call->out, record,
            head->damaged == 1 ? "1 part of the file is damaged and skipped.\n"
                               : "[{damaged:n} parts of the file are damaged and skipped.\n]");
}

static void list_row(struct command_call *call, struct out_table *table, const struct track *track)
{
    enum gd_statistic figure = track->tensor.is_scalar ? GD_STAT_MEAN : GD_STAT_ABS_MEAN;
    size_t last = track->count - 1, bad = first_bad(track);

    out_put(table, OUT_INT("kept", track->count),
            track->count ? OUT_INT("last_step", track->records[last].step)
                         : OUT_TEXT("last_step", NULL),
            track->count ? figure_field(call, "abs_mean", track, last, figure)
                         : OUT_TEXT("abs_mean", NULL),
            OUT_TEXT("spark", spark_text(call, track, figure, LIST_SPARK)),
            bad < track->count ? OUT_INT("first_nonfinite_step", track->records[bad].step)
                               : OUT_TEXT("first_nonfinite_step", NULL),
            OUT_TEXT("name", track_label(call, track)));
}

static int list_tensors(struct command_call *call, const struct gd_history *history,
                        const struct gd_history_head *head, bool all, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"kept", "Kept", true, ":n"},
        {"last_step", "Last", true},
        {"abs_mean", "Mean |x|", true, ":g6"},
        {"spark", "", false},
        {"first_nonfinite_step", "NaN/Inf since", true},
        {"name", "Tensor", false},
    };
    uint32_t count = head->tensors - head->histograms;
    uint32_t shown = all || count <= LIST_ROWS ? count : LIST_ROWS, left = shown;
    struct out_table *table;
    int rc = GD_OK;

    if (shown == 0 && !out_is_json(call->out)) {
        return GD_OK;
    }
    table = out_table_begin(call->out, "history", columns, 6);
    for (int scalars = 1; scalars >= 0; scalars--) { /* metrics first, there are few */
        for (uint32_t i = 0; rc == GD_OK && i < head->tensors && left > 0; i++) {
            struct track track = {.count = 0};

            if (!gd_history_tensor(history, i, &track.tensor) || track.tensor.is_bins ||
                track.tensor.is_scalar != (scalars == 1)) {
                continue;
            }
            rc = read_track(history, i, &track, err);
            if (rc == GD_OK) {
                list_row(call, table, &track);
                free(track.records);
                left--;
            }
        }
    }
    out_table_end(table);
    if (shown < count) {
        out_printf(call->out, "(%s more: info history -a)\n", inspect_number(call, count - shown));
    }
    return rc;
}

int info_history(struct command_call *call, struct gd_err *err)
{
    const struct gd_history *history = NULL;
    struct gd_history_head head;
    bool all = inspect_take_flag(call, "-a");
    int64_t rows = STEP_ROWS;
    int rc = inspect_take_count(call, "-n", 1, MAX_RECORDS, &rows, err);

    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    rc = rc != GD_OK ? rc : need_history(call, &history, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc > 0) {
        return show_one(call, history, all ? MAX_RECORDS : (size_t)rows, err);
    }
    gd_history_head(history, &head);
    show_head(call, history, &head);
    return list_tensors(call, history, &head, all, err);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: plot */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "repl/chart/chart_print.h"
#include "repl/chart/series.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

#define LEAST_ROWS 5
#define MOST_ROWS  20
#define MOST_MARKS 4096

struct plot_request {
    struct series_key key[CHART_MAX_CURVES];
    struct series series[CHART_MAX_CURVES];
    size_t count;
    struct chart_options options;
    bool sliced; /* a name had "[FROM:TO]" */
    bool bins;   /* --histogram */
    int64_t marked[MOST_MARKS];
};

/* ---- arguments ---- */

static bool parse_end(const char *text, size_t len, int64_t *ret)
{
    char number[24], *end;

    if (len == 0 || len >= sizeof(number)) {
        return len == 0;
    }
    snprintf(number, sizeof(number), "%.*s", (int)len, text);
    *ret = strtoll(number, &end, 10);
    return *end == '\0' && number[0] != ' ' && number[0] != '+';
}

/* Takes "[100:300]" off the name: a slice of steps, without the last; negative ends count from the
 * last step, which is not known yet. */
static int take_slice(struct command_call *call, const char **text, int64_t *from, int64_t *to,
                      bool *sliced, struct gd_err *err)
{
    const char *open = strrchr(*text, '['), *colon = open ? strchr(open, ':') : NULL;
    size_t len = strlen(*text);

    *sliced = open && open > *text && len > 0 && (*text)[len - 1] == ']';
    *from = 0;
    *to = INT64_MAX;
    if (!*sliced) {
        return GD_OK;
    }
    const char *close = *text + len - 1;
    if (!colon || strchr(colon + 1, ':') ||
        !parse_end(open + 1, (size_t)(colon - open - 1), from) ||
        !parse_end(colon + 1, (size_t)(close - colon - 1), to)) {
        return gd_fail(err, GD_EINVAL,
                       "\"%.40s\" is not a range of steps: write NAME[100:300], NAME[100:] or "
                       "NAME[-100:]",
                       open);
    }
    *text = inspect_printf(call, "%.*s", (int)(open - *text), *text);
    return GD_OK;
}

/* Steps of the slice for a series that ends at `last`. */
static int resolve_slice(int64_t last, int64_t *from, int64_t *to, struct gd_err *err)
{
    *from = *from < 0 ? last + 1 + *from : *from;
    *to = *to < 0 ? last + 1 + *to : *to;
    *to = *to == INT64_MAX ? last : *to - 1;
    if (*from > *to) {
        return gd_fail(err, GD_EINVAL, "the range of steps is empty: the last step is %lld",
                       (long long)last);
    }
    return GD_OK;
}

static int add_series(struct command_call *call, struct plot_request *request, const char *text,
                      struct gd_err *err)
{
    struct series *series = &request->series[request->count];
    int64_t from, to;
    bool sliced;

    if (request->count == CHART_MAX_CURVES) {
        return gd_fail(err, GD_EUSAGE, "at most %d curves can be plotted", CHART_MAX_CURVES);
    }
    int rc = take_slice(call, &text, &from, &to, &sliced, err);
    rc = rc != GD_OK ? rc
                     : (request->bins ? series_find_bins : series_find)(
                           call, text, &request->key[request->count], err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = series_of(call->session, &request->key[request->count++], series, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!sliced || series->count == 0) {
        return GD_OK;
    }
    rc = resolve_slice(series->point[series->count - 1].step, &from, &to, err);
    if (rc == GD_OK && request->sliced &&
        (from != request->options.from || to != request->options.to)) {
        rc = gd_fail(err, GD_EUSAGE, "all curves of a chart have the same range of steps");
    }
    request->sliced = true;
    request->options.from = from;
    request->options.to = to;
    return rc;
}

static int parse_smooth(const char *text, double *ret, struct gd_err *err)
{
    char *end;

    *ret = strtod(text, &end);
    if (end == text || *end != '\0' || !(*ret >= 0 && *ret < 1)) {
        return gd_fail(err, GD_EINVAL, "--smooth takes a weight from 0 to below 1, such as 0.9");
    }
    return GD_OK;
}

static int take_options(struct command_call *call, struct plot_request *request, struct gd_err *err)
{
    struct chart_options *options = &request->options;
    const char *smooth = NULL, *steps = NULL;
    int64_t from = INT64_MIN, to = INT64_MAX, at = INT64_MIN, rows = 0;
    int rc = inspect_take_option(call, "--smooth", &smooth, err);

    options->log = inspect_take_flag(call, "--log");
    options->shared = inspect_take_flag(call, "--shared");
    request->bins = inspect_take_flag(call, "--histogram");
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--steps", &steps, err);
    rc = rc != GD_OK ? rc : inspect_take_count(call, "--from", 0, INT64_MAX, &from, err);
    rc = rc != GD_OK ? rc : inspect_take_count(call, "--to", 0, INT64_MAX, &to, err);
    rc = rc != GD_OK ? rc : inspect_take_count(call, "--at", 0, INT64_MAX, &at, err);
    rc = rc != GD_OK
             ? rc
             : inspect_take_count(call, "--rows", CHART_MIN_ROWS, CHART_MAX_ROWS, &rows, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    rc = rc == GD_OK && smooth ? parse_smooth(smooth, &options->smooth, err) : rc;
    options->from = 1;
    if (rc == GD_OK && (from != INT64_MIN || to != INT64_MAX)) {
        options->from = from < 0 ? 0 : from;
        options->to = to;
        rc = options->from > to ? gd_fail(err, GD_EINVAL, "--from is after --to") : rc;
    }
    rc = rc == GD_OK && steps ? chart_parse_steps(steps, &options->from, &options->to, err) : rc;
    options->has_cursor = at != INT64_MIN;
    options->cursor = at;
    options->rows = (int)rows;
    return rc;
}

/* ---- what is shown ---- */

static void take_marks(struct command_call *call, struct plot_request *request)
{
    const struct gd_session *session = call->session;

    for (size_t i = 0; i < session->hit_count && request->options.marked_count < MOST_MARKS; i++) {
        if (session->hits[i].error == 0) {
            request->marked[request->options.marked_count++] = session->hits[i].step;
        }
    }
    request->options.marked = request->marked;
}

static bool is_wanted(const struct chart_options *options, int64_t step)
{
    return options->from > options->to || (step >= options->from && step <= options->to);
}

static struct out_field finite_field(const char *name, double value)
{
    return isfinite(value) ? OUT_REAL(name, value) : OUT_TEXT(name, NULL);
}

static void record_histograms(const struct series *series, const struct chart_options *options,
                              cJSON *list)
{
    for (size_t i = 0; i < series->count; i++) {
        const struct chart_bins *bins = &series->bins[i];
        if (!is_wanted(options, series->point[i].step)) {
            continue;
        }
        cJSON *object = out_push(list), *counts;
        out_set(object, OUT_INT("step", series->point[i].step), finite_field("low", bins->low),
                finite_field("high", bins->high), finite_field("median", series->point[i].value),
                OUT_INT("nan", bins->nan), OUT_INT("inf", bins->inf));
        counts = out_list(object, "counts");
        for (int k = 0; k < CHART_BINS && bins->low <= bins->high; k++) {
            out_push_int(counts, (int64_t)bins->bin[k]);
        }
    }
}

static void record_series(struct command_call *call, const struct plot_request *request)
{
    const struct chart_options *options = &request->options;
    cJSON *record = out_record(call->out, "plot");

    out_set(record, OUT_REAL("smooth", options->smooth), OUT_BOOL("log", options->log));
    cJSON *list = out_list(record, "series");
    for (size_t i = 0; i < request->count; i++) {
        static const char *const units[CHART_UNITS] = {"", "bytes", "s", "%"};
        const struct series *series = &request->series[i];
        struct chart_point *smooth = malloc((series->count + 1) * sizeof(*smooth));
        cJSON *object = out_push(list), *points;

        out_set(object, OUT_TEXT("name", series->name), OUT_TEXT("unit", units[series->unit]));
        points = out_list(object, series->bins ? "histograms" : "points");
        if (series->bins) {
            record_histograms(series, options, points);
            free(smooth);
            continue;
        }
        if (smooth && series->count > 0) {
            memcpy(smooth, series->point, series->count * sizeof(*smooth));
            chart_smooth(smooth, series->count, options->smooth);
        }
        for (size_t k = 0; smooth && k < series->count; k++) {
            const struct chart_point *point = &series->point[k];
            if (is_wanted(options, point->step)) {
                out_set(out_push(points), OUT_INT("step", point->step),
                        OUT_REAL("value", point->value),
                        OUT_IF(options->smooth > 0, OUT_REAL("smoothed", smooth[k].value)));
            }
        }
        free(smooth);
    }
}

static int draw_request(struct command_call *call, struct plot_request *request, struct gd_err *err)
{
    struct chart_curve curves[CHART_MAX_CURVES];
    struct chart_picture picture;
    struct chart_options *options = &request->options;
    int room = chart_screen_rows(call) - 3;

    for (size_t i = 0; i < request->count; i++) {
        curves[i] = series_curve(&request->series[i]);
    }
    if (options->rows == 0) {
        options->rows = room > MOST_ROWS ? MOST_ROWS : room < LEAST_ROWS ? LEAST_ROWS : room;
    }
    options->cols = out_width(call->out);
    options->utf8 = out_utf8(call->out);
    take_marks(call, request);
    if (!chart_draw(curves, request->count, options, &picture)) {
        return gd_fail_nomem(err);
    }
    chart_print(call, &picture);
    chart_release(&picture);
    return GD_OK;
}

/* A row for each step that a series has. */
static void write_table(struct command_call *call, const struct plot_request *request)
{
    struct out_column columns[CHART_MAX_CURVES + 1] = {{"step", "step", true}};
    const struct chart_options *options = &request->options;
    size_t at[CHART_MAX_CURVES] = {0};
    char names[CHART_MAX_CURVES][24];

    for (size_t i = 0; i < request->count; i++) {
        snprintf(names[i], sizeof(names[i]), "v%zu", i);
        columns[i + 1] = (struct out_column){names[i], request->series[i].name, true};
    }
    struct out_table *table =
        out_table_begin(call->out, "points", columns, (int)request->count + 1);
    while (true) {
        int64_t step = INT64_MAX;
        for (size_t i = 0; i < request->count; i++) {
            const struct series *series = &request->series[i];
            if (at[i] < series->count && series->point[at[i]].step < step) {
                step = series->point[at[i]].step;
            }
        }
        if (step == INT64_MAX) {
            break;
        }
        cJSON *row = is_wanted(options, step) ? out_row(table) : NULL;
        out_set(row, OUT_INT("step", step));
        for (size_t i = 0; i < request->count; i++) {
            const struct series *series = &request->series[i];
            if (at[i] < series->count && series->point[at[i]].step == step) {
                out_set(row, OUT_REAL(names[i], series->point[at[i]++].value));
            }
        }
    }
    out_table_end(table);
}

/* A row for each bin of each step. */
static void write_bins(struct command_call *call, const struct plot_request *request)
{
    static const struct out_column columns[] = {{"name", "tensor", false},
                                                {"step", "step", true},
                                                {"low", "low", true},
                                                {"high", "high", true},
                                                {"count", "count", true}};
    struct out_table *table = out_table_begin(call->out, "bins", columns, 5);

    for (size_t i = 0; i < request->count; i++) {
        const struct series *series = &request->series[i];
        for (size_t k = 0; k < series->count * CHART_BINS; k++) {
            const struct chart_bins *bins = &series->bins[k / CHART_BINS];
            int64_t step = series->point[k / CHART_BINS].step;
            size_t bin = k % CHART_BINS;
            if (bins->low <= bins->high && is_wanted(&request->options, step)) {
                out_put(table, OUT_TEXT("name", series->name), OUT_INT("step", step),
                        OUT_REAL("low", chart_bins_edge(bins, (double)bin)),
                        OUT_REAL("high", chart_bins_edge(bins, (double)bin + 1)),
                        OUT_INT("count", bins->bin[bin]));
            }
        }
    }
    out_table_end(table);
}

static int write_csv(struct command_call *call, const struct plot_request *request,
                     struct gd_err *err)
{
    size_t bins = 0;

    for (size_t i = 0; i < request->count; i++) {
        bins += request->key[i].is_bins;
    }
    if (bins > 0 && bins < request->count) {
        return gd_fail(err, GD_EUSAGE,
                       "histograms and other series have different columns: write them to separate "
                       "files");
    }
    (bins > 0 ? write_bins : write_table)(call, request);
    return GD_OK;
}

/* The history pane shows it, and follows the training. */
static bool in_panes(struct command_call *call)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;

    return screen && screen->plot && call->repl->front.screen_ctx && !call->out->sink.file;
}

static void take_first(void *ctx, const char *name)
{
    const char **first = ctx;

    if (!*first || strcmp(name, "loss") == 0) {
        *first = name;
    }
}

static int run_plot(struct command_call *call, struct gd_err *err)
{
    struct plot_request *request = calloc(1, sizeof(*request));
    const char *first = NULL;
    int rc = request ? take_options(call, request, err) : gd_fail_nomem(err);

    if (rc == GD_OK && call->argc == 0 && request->bins) {
        rc = gd_fail(err, GD_EUSAGE, "--histogram: name a tensor, such as fc1.weight");
    } else if (rc == GD_OK && call->argc == 0) {
        series_each_metric(call->session, take_first, &first);
        rc = add_series(call, request, first ? inspect_printf(call, "%s", first) : "loss", err);
    }
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        rc = add_series(call, request, call->argv[i], err);
    }
    if (rc == GD_OK && out_is_csv(call->out)) {
        rc = write_csv(call, request, err);
    } else if (rc == GD_OK && out_is_json(call->out)) {
        record_series(call, request);
    } else if (rc == GD_OK && in_panes(call)) {
        const struct repl_screen_ops *screen = call->repl->front.screen;
        rc = screen->plot(call->repl->front.screen_ctx, request->key, request->count,
                          &request->options, err);
    } else if (rc == GD_OK) {
        rc = draw_request(call, request, err);
    }
    for (size_t i = 0; request && i < request->count; i++) {
        series_release(&request->series[i]);
        series_key_release(&request->key[i]);
    }
    free(request);
    return rc;
}

const struct command cmd_plot = {
    .name = "plot",
    .group = "data",
    .usage = "plot [NAME|NODE[:SLOT].STATISTIC]... [--steps FROM-TO|--from N|--to N] [--smooth W] "
             "[--log] [--shared] [--histogram] [--at STEP] [--rows N]",
    .summary = "Draw metrics and statistics of tensors over the steps",
    .help =
        "Metrics (info scalars) are known from the first one that the training reported on;\n"
        "statistics of a tensor (info statistics) while a watchpoint or `trace` covers it.\n"
        "Without a name the loss is drawn. NAME[100:300] and --steps 100-299 show a part;\n"
        "NAME[-100:] the last 100 steps. Where many steps share a column, all of their values\n"
        "are in it. NaN and Inf are marked on the axis, and so are steps with hits.\n"
        "Curves of similar range share a scale (--shared: all do). --smooth W draws a moving\n"
        "average: W of its last value, 1 - W of the new one, corrected at the start as in\n"
        "TensorBoard. --log draws on a logarithmic scale. --at says the values at a step.\n"
        "--histogram draws how the elements of a tensor are distributed, as a heat map: shades\n"
        "say which share of them is in a row, --log on a logarithmic scale. `trace histogram on\n"
        "NODE` records that; NODE.histogram is this map among curves.\n"
        "In the panes the chart is in the history pane and follows the training.",
    .examples = "plot loss lr\n"
                "plot loss[100:300] --smooth 0.9\n"
                "plot model/head/weight.norm model/head/weight.max --log\n"
                "plot --histogram model/head/weight",
    .args = {ARG_TENSOR},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS | CMD_METRICS | CMD_SHOWS,
    .run = run_plot,
};

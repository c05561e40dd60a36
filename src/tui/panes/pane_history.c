// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What was recorded of the current node's outputs and the loss, of all metrics, or of what `plot`
 * named: one line of bars per series, between its first and its last value, and above them a chart.
 */
#include "tui/panes/pane_history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "dump/dump_target.h"
#include "repl/values/spark.h"
#include "tui/panes/detail.h"
#include "tui/text.h"
#include "tui/tui_impl.h"

#define MAX_ROWS   2000
#define NAME_COLS  10
#define VALUE_COLS 10
#define IN_NO_STEP "No step of the dump contains values of it."

static const enum gd_statistic figures[] = {GD_STAT_ABS_MEAN, GD_STAT_MAX, GD_STAT_MIN,
                                            GD_STAT_NONFINITE, GD_STAT_ZERO_PERCENTAGE};
#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static struct history_pane *history_state(struct tui *tui)
{
    return tui_state(tui, TUI_HISTORY);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void clear_rows(struct history_pane *pane)
{
    for (size_t i = 0; i < pane->row_count; i++) {
        free(pane->row[i].text);
        series_key_release(&pane->row[i].key);
        series_release(&pane->row[i].series);
    }
    free(pane->row);
    pane->row = NULL;
    pane->row_count = pane->row_capacity = 0;
}

static struct history_row *add_row(struct history_pane *pane)
{
    struct history_row *more =
        pane->row_count < MAX_ROWS
            ? gd_grow(pane->row, pane->row_count, &pane->row_capacity, sizeof(*more))
            : NULL;
    if (!more) {
        return NULL;
    }
    pane->row = more;
    more += pane->row_count++;
    *more = (struct history_row){.text = NULL};
    return more;
}

static bool is_kept(const struct history_pane *pane, const char *label)
{
    for (size_t i = 0; i < pane->kept_count; i++) {
        if (strcmp(pane->kept[i], label) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes the key over. */
static void add_series(struct history_pane *pane, const struct gd_session *session,
                       struct series_key key, const char *name)
{
    struct series series;
    struct history_row *row = NULL;

    if (key.node && key.label && series_of(session, &key, &series, NULL) == GD_OK) {
        row = add_row(pane);
        if (!row) {
            series_release(&series);
        }
    }
    if (!row) {
        series_key_release(&key);
        return;
    }
    row->series = series;
    row->key = key;
    row->kept = is_kept(pane, row->key.label);
    snprintf(row->name, sizeof(row->name), "%s", name);
}

/* The headline of the rows after it. */
static void write_headline(struct history_pane *pane, const struct gd_graph *graph,
                           const struct gd_history_tensor *tensor, size_t at)
{
    char shape[128], slot[16];
    struct gd_buf text = GD_BUF_INIT(4096);
    gd_node_id node = gd_graph_lookup(graph, tensor->name, strlen(tensor->name));

    gd_graph_slot_name(graph, node, tensor->slot, slot);
    gd_buf_printf(&text, "%s:%s %s", tensor->name, slot,
                  gd_shape_text(&tensor->shape, shape, sizeof(shape)));
    int64_t first = INT64_MAX, last = INT64_MIN; /* of all rows: a statistic may lack steps */
    for (size_t i = at + 1; i < pane->row_count; i++) {
        const struct series *series = &pane->row[i].series;
        if (series->count > 0) {
            int64_t end = series->point[series->count - 1].step;
            first = series->point[0].step < first ? series->point[0].step : first;
            last = end > last ? end : last;
        }
    }
    if (first <= last) {
        gd_buf_printf(&text, ", steps %lld to %lld", (long long)first, (long long)last);
    }
    pane->row[at].text = strdup(gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void add_tensor(struct history_pane *pane, const struct gd_session *session, uint32_t index)
{
    struct gd_history_tensor tensor;
    char label[600];
    size_t at = pane->row_count;

    if (!gd_history_tensor(session->history, index, &tensor) || !add_row(pane)) {
        return;
    }
    for (size_t i = 0; i < FIGURES; i++) {
        const char *name = gd_statistic_name(figures[i]);
        snprintf(label, sizeof(label), "%.500s:%u.%s", tensor.name, tensor.slot, name);
        add_series(pane, session,
                   (struct series_key){.node = strdup(tensor.name),
                                       .slot = tensor.slot,
                                       .statistic = figures[i],
                                       .label = strdup(label)},
                   figures[i] == GD_STAT_ZERO_PERCENTAGE ? "zero %" : name);
    }
    uint32_t bins;
    if (gd_history_find_bins(session->history, tensor.name, tensor.slot, &bins)) {
        snprintf(label, sizeof(label), "%.500s:%u", tensor.name, tensor.slot);
        add_series(pane, session,
                   (struct series_key){.node = strdup(tensor.name),
                                       .slot = tensor.slot,
                                       .is_bins = true,
                                       .label = strdup(label)},
                   "histogram");
    }
    write_headline(pane, session->graph, &tensor, at);
}

struct adding {
    struct history_pane *pane;
    const struct gd_session *session;
    bool all; /* otherwise only the loss */
};

static void add_metric(void *ctx, const char *name)
{
    const struct adding *adding = ctx;

    if (adding->all || strcmp(name, "loss") == 0) {
        add_series(
            adding->pane, adding->session,
            (struct series_key){.node = strdup(name), .label = strdup(name), .is_metric = true},
            name);
    }
}

/* All metrics, or only the loss. */
static void add_metrics(struct history_pane *pane, const struct gd_session *session, bool all)
{
    struct adding adding = {pane, session, all};

    series_each_metric(session, add_metric, &adding);
}

static void add_plot(struct history_pane *pane, const struct gd_session *session)
{
    for (size_t i = 0; i < pane->plot_count; i++) {
        struct series_key key = pane->plot[i];
        key.node = strdup(key.node);
        key.label = strdup(key.label);
        add_series(pane, session, key, key.label ? key.label : "");
    }
}

static void add_hint(struct history_pane *pane, const char *text)
{
    struct history_row *row = add_row(pane);

    if (row) {
        row->text = strdup(text);
        row->hint = true;
    }
}

/* Suggests how to record the node: tracing NaN and Inf is cheap and does not stop the training. */
static void add_way(struct history_pane *pane, const struct gd_session *session, const char *name)
{
    struct gd_buf text = GD_BUF_INIT(4096);

    if (gd_catalog_of(session)) {
        add_hint(pane, IN_NO_STEP);
        return;
    }
    add_hint(pane, "Nothing is recorded for this node.");
    gd_buf_puts(&text, "to record it:  trace TO on ");
    tui_add_name(&text, name);
    add_hint(pane, gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void add_node(struct history_pane *pane, const struct gd_session *session, gd_node_id node)
{
    struct gd_node_info info;
    uint32_t index;
    bool any = false;

    if (node == GD_NO_NODE || !gd_graph_node(session->graph, node, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.output_count && session->history; i++) {
        if (gd_history_find(session->history, info.name, i, &index)) {
            add_tensor(pane, session, index);
            any = true;
        }
    }
    if (!any) {
        add_way(pane, session, info.name);
    }
}

static void make_rows(struct history_pane *pane, const struct gd_session *session, gd_node_id node)
{
    clear_rows(pane);
    switch (pane->subject) {
    case HISTORY_SCALARS: add_metrics(pane, session, true); break;
    case HISTORY_PLOT: add_plot(pane, session); break;
    default: add_node(pane, session, node); add_metrics(pane, session, false);
    }
}

/* Changes with every new record. */
static uint64_t seen_of(const struct gd_session *session)
{
    struct gd_history_head head = {.tensors = 0};
    struct gd_history_tensor tensor;
    uint64_t seen = 0;

    if (session->history) {
        gd_history_head(session->history, &head);
    }
    for (uint32_t i = 0; i < head.tensors; i++) {
        seen += gd_history_tensor(session->history, i, &tensor) ? tensor.seen : 0;
    }
    for (int i = 0; i < session->scalar_count; i++) {
        seen += (uint64_t)session->scalar[i].values.reports;
    }
    return seen + ((uint64_t)head.generation << 48);
}

#define RECALL_SECONDS 0.1 /* drawing waits this long for a dump; `info history` waits longer */

static bool in_time(void *ctx, uint64_t steps)
{
    const double *end = ctx;
    struct timespec now;

    (void)steps;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 < *end;
}

/* Loads a dump's values of the node when it is first shown. */
static void recall_node(struct history_pane *pane, struct gd_session *session, gd_node_id node)
{
    struct gd_node_info info;
    struct timespec now;

    if (!session || !gd_session_can_recall(session) ||
        (pane->recalled == node && pane->recalled_of == session->number) ||
        !gd_graph_node(session->graph, node, &info)) {
        return;
    }
    pane->recalled = node;
    pane->recalled_of = session->number;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double end = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + RECALL_SECONDS;
    for (uint32_t i = 0; i < info.output_count; i++) {
        struct gd_tensor_ref ref = {.node = node, .slot = i};
        gd_session_recall(session, &ref, in_time, &end, NULL);
    }
}

static void update_history(struct tui *tui)
{
    struct history_pane *pane = history_state(tui);
    struct gd_session *session;
    gd_node_id node = tui_node(tui, &session);

    recall_node(pane, session, node);
    const struct gd_session *current = tui->debugger->current;

    if (!current) {
        clear_rows(pane);
    } else {
        uint64_t seen = seen_of(current);
        if (current != pane->session || current->history != pane->history || node != pane->node ||
            seen != pane->seen || pane->subject != pane->of) {
            make_rows(pane, current, node);
            pane->history = current->history;
            pane->node = node;
            pane->seen = seen;
            pane->of = pane->subject;
        }
    }
    pane->session = current;
    pane->list.count = pane->row_count;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static const char *value_text(double value, char *room, size_t size)
{
    snprintf(room, size, isfinite(value) ? "%.4g" : "nan/inf", value);
    return room;
}

static void draw_bars(const struct series *series, size_t room, bool ascii, struct gd_buf *out)
{
    struct spark_point *points = malloc((series->count + 1) * sizeof(*points));

    for (size_t i = 0; points && i < series->count; i++) {
        double value = series->point[i].value;
        points[i] =
            (struct spark_point){.mark = isfinite(value) ? SPARK_VALUE : SPARK_BAD, .value = value};
    }
    if (points) {
        spark_draw(points, series->count, room, ascii, out);
    }
    free(points);
}

static void draw_figure(struct tui *tui, const struct history_row *of, int row, int col, int cols,
                        enum draw_style style)
{
    struct gd_buf bars = GD_BUF_INIT(1 << 16);
    char line[64], first[32], last[32];
    int room = cols - NAME_COLS - 2 * VALUE_COLS - 4;
    const struct series *series = &of->series;

    room = room < 1 ? 1 : room;
    if (series->count == 0) {
        snprintf(line, sizeof(line), "%c%-*s no records", of->kept ? '*' : ' ', NAME_COLS,
                 of->name);
        draw_text(tui->draw, row, col, cols, style, line);
        return;
    }
    snprintf(line, sizeof(line), "%c%-*s%*s ", of->kept ? '*' : ' ', NAME_COLS, of->name,
             VALUE_COLS, value_text(series->point[0].value, first, sizeof(first)));
    int used = draw_text(tui->draw, row, col, cols, style, line);
    draw_bars(series, (size_t)room, !tui->utf8, &bars);
    used += draw_text(tui->draw, row, col + used, cols - used, style, gd_buf_text(&bars));
    snprintf(line, sizeof(line), " %s",
             value_text(series->point[series->count - 1].value, last, sizeof(last)));
    draw_text(tui->draw, row, col + used, cols - used, style, line);
    gd_buf_deinit(&bars);
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    const struct history_row *of = &history_state(tui)->row[index];
    char name[512];

    if (!of->text) {
        draw_figure(tui, of, row, col, cols, selected ? DRAW_REVERSE : DRAW_PLAIN);
    } else if (of->hint && of->text) {
        draw_text(tui->draw, row, col, cols, selected ? DRAW_REVERSE : DRAW_DIM, of->text);
    } else if (of->text) {
        draw_text(tui->draw, row, col, cols, selected ? DRAW_REVERSE : DRAW_SCOPE,
                  tui_text_fit_name(of->text, cols, tui->utf8, name, sizeof(name)));
    }
}

static void row_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    const struct history_row *of = &history_state(tui)->row[index];
    gd_buf_puts(out, of->text ? of->text : of->name);
}

static const struct tui_list_ops rows = {draw_row, row_text};

static void draw_nothing(struct tui *tui, const struct draw_rect *rect)
{
    struct gd_session *session;
    gd_node_id node = tui_node(tui, &session);
    struct gd_buf text = GD_BUF_INIT(4096);
    int at = 0;

    if (!session) {
        tui_draw_folded(tui, rect, at, DRAW_DIM, "No training process is connected.");
    } else if (gd_catalog_of(session)) {
        tui_draw_folded(tui, rect, at, DRAW_DIM,
                        node == GD_NO_NODE ? "No node is selected." : IN_NO_STEP);
    } else if (history_state(tui)->subject == HISTORY_SCALARS) {
        tui_draw_folded(tui, rect, at, DRAW_DIM, "The training has reported no metrics yet.");
    } else {
        at = tui_draw_folded(tui, rect, at, DRAW_DIM, "Nothing is recorded for this node.");
        gd_buf_puts(&text, "to record it:  trace TO on ");
        tui_add_name(&text, node != GD_NO_NODE ? gd_graph_name(session->graph, node) : "NODE");
        tui_draw_folded(tui, rect, at, DRAW_DIM, gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
}

static void draw_history(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct history_pane *pane = history_state(tui);
    struct draw_rect above = *rect, list = *rect;

    update_history(tui);
    if (pane->row_count == 0) {
        draw_nothing(tui, rect);
    }
    above.rows = history_chart_rows(pane, rect);
    if (above.rows > 0 && history_draw_chart(tui, pane, &above)) {
        list.row += above.rows;
        list.rows -= above.rows;
    }
    pane->list.above = list.row - rect->row;
    if (list.rows > 0) {
        tui_list_draw(tui, &pane->list, &rows, &list, focused);
    }
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    static const char *const titles[] = {"history", "history of all metrics", "history: plot"};

    snprintf(out, size, "%s", titles[history_state(tui)->subject]);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void clear_kept(struct history_pane *pane)
{
    for (size_t i = 0; i < pane->kept_count; i++) {
        free(pane->kept[i]);
    }
    pane->kept_count = 0;
}

/* Keeps the row under the cursor in the chart, or no longer. */
static void keep_row(struct history_pane *pane)
{
    struct history_row *row =
        pane->list.cursor < pane->row_count ? &pane->row[pane->list.cursor] : NULL;

    if (!row || row->text) {
        return;
    }
    for (size_t i = 0; i < pane->kept_count; i++) {
        if (strcmp(pane->kept[i], row->key.label) == 0) {
            free(pane->kept[i]);
            pane->kept[i] = pane->kept[--pane->kept_count];
            row->kept = false;
            return;
        }
    }
    char *label = pane->kept_count < CHART_MAX_CURVES ? strdup(row->key.label) : NULL;
    if (label) {
        pane->kept[pane->kept_count++] = label;
        row->kept = true;
    }
}

static void show_subject(struct history_pane *pane, enum history_subject subject)
{
    pane->subject = subject;
    pane->list.cursor = pane->list.top = 0;
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct history_pane *pane = history_state(tui);

    update_history(tui);
    if (history_chart_request(pane, request)) {
        return;
    }
    if (request == TUI_MARK) {
        keep_row(pane);
    } else if (request == TUI_MODE) {
        show_subject(pane, pane->subject == HISTORY_NODE ? HISTORY_SCALARS : HISTORY_NODE);
    } else if (request == TUI_BACK && pane->subject != HISTORY_NODE) {
        show_subject(pane, HISTORY_NODE);
    } else {
        tui_list_request(tui, &pane->list, &rows, request);
    }
}

static void clear_plot(struct history_pane *pane)
{
    for (size_t i = 0; i < pane->plot_count; i++) {
        series_key_release(&pane->plot[i]);
    }
    pane->plot_count = 0;
}

int tui_history_plot(struct tui *tui, const struct series_key *keys, size_t count,
                     const struct chart_options *options, struct gd_err *err)
{
    struct history_pane *pane = history_state(tui);

    clear_plot(pane);
    for (size_t i = 0; i < count; i++) {
        struct series_key key = keys[i];
        key.node = strdup(keys[i].node);
        key.label = strdup(keys[i].label);
        if (!key.node || !key.label) {
            series_key_release(&key);
            return gd_fail_nomem(err);
        }
        pane->plot[pane->plot_count++] = key;
    }
    pane->view = (struct history_view){.log = options->log,
                                       .weight = options->smooth,
                                       .from = options->from,
                                       .to = options->to,
                                       .has_cursor = options->has_cursor,
                                       .cursor = options->cursor,
                                       .alone = true};
    pane->of = HISTORY_NODE; /* the rows are made again */
    show_subject(pane, HISTORY_PLOT);
    tui_show(tui, TUI_HISTORY);
    return GD_OK;
}

static void init_state(struct tui *tui, void *of)
{
    struct history_pane *pane = of;

    (void)tui;
    pane->view.from = 1; /* all steps */
}

static void release_state(struct tui *tui, void *of)
{
    struct history_pane *pane = of;

    (void)tui;
    clear_rows(pane);
    clear_plot(pane);
    clear_kept(pane);
}

const struct tui_pane_ops tui_history_pane = {
    .state_size = sizeof(struct history_pane),
    .init = init_state,
    .release = release_state,
    .update = update_history,
    .draw = draw_history,
    .title = make_title,
    .rows = &rows,
    .request = handle_request,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The flight recorder's data of the current node's outputs and the loss, or of all scalars: one
 * line of bars per statistic, between its first and its last value.
 */
#include "tui/tui_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "dump/dump_target.h"
#include "engine/history/history.h"
#include "engine/statistic.h"
#include "repl/values/spark.h"
#include "tui/panes/detail.h"
#include "tui/text.h"

#define MAX_RECORDS 2000 /* per tensor, the newest */
#define MAX_ROWS    2000
#define NAME_COLS   10
#define VALUE_COLS  10
#define IN_NO_STEP  "No step of the dump contains values of it."

static const enum gd_statistic figures[] = {GD_STAT_ABS_MEAN, GD_STAT_MAX, GD_STAT_MIN,
                                            GD_STAT_NONFINITE, GD_STAT_ZERO_PERCENTAGE};
#define FIGURES (sizeof(figures) / sizeof(figures[0]))

struct row {
    char *text; /* a headline; NULL: a statistic */
    bool hint;  /* the headline is a hint instead of a tensor's name */
    char name[24];
    struct spark_point *points;
    size_t count;
};

struct history_pane {
    struct tui_list list;
    bool scalars; /* shows all scalars instead of the current node */
    struct row *row;
    size_t row_count, row_capacity;
    /* the source of the rows */
    const struct gd_history *history;
    gd_node_id node;
    bool of_scalars;
    uint64_t seen;
    gd_node_id recalled; /* node and session whose past was last requested from a dump */
    int recalled_of;     /* 0: none */
};

static struct history_pane *history_state(struct tui *tui)
{
    return tui_state(tui, TUI_HISTORY);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void clear_rows(struct history_pane *pane)
{
    for (size_t i = 0; i < pane->row_count; i++) {
        free(pane->row[i].text);
        free(pane->row[i].points);
    }
    free(pane->row);
    pane->row = NULL;
    pane->row_count = pane->row_capacity = 0;
}

static struct row *add_row(struct history_pane *pane)
{
    struct row *more = pane->row_count < MAX_ROWS
                           ? gd_grow(pane->row, pane->row_count, &pane->row_capacity, sizeof(*more))
                           : NULL;
    if (!more) {
        return NULL;
    }
    pane->row = more;
    more += pane->row_count++;
    *more = (struct row){.text = NULL};
    return more;
}

static void add_headline(struct history_pane *pane, const struct gd_graph *graph,
                         const struct gd_history_tensor *tensor,
                         const struct gd_history_record *record, size_t count)
{
    char shape[128], slot[16];
    struct gd_buf text = GD_BUF_INIT(4096);
    struct row *row = add_row(pane);

    gd_buf_puts(&text, tensor->name);
    if (!tensor->is_scalar) {
        gd_node_id node = gd_graph_lookup(graph, tensor->name, strlen(tensor->name));

        gd_graph_slot_name(graph, node, tensor->slot, slot);
        gd_buf_printf(&text, ":%s %s", slot, gd_shape_text(&tensor->shape, shape, sizeof(shape)));
    }
    if (count > 0) {
        gd_buf_printf(&text, ", steps %lld to %lld", (long long)record[0].step,
                      (long long)record[count - 1].step);
    }
    if (row) {
        row->text = strdup(gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
}

static struct spark_point point_of(const struct gd_history_tensor *tensor,
                                   const struct gd_history_record *record, enum gd_statistic figure)
{
    struct gd_observation seen = {.stats = record->has_stats ? &record->stats : NULL,
                                  .error = record->error,
                                  .dtype = tensor->dtype,
                                  .range = -1,
                                  .step = record->step,
                                  .value_step = record->step};
    struct spark_point point = {.mark = SPARK_VALUE};
    unsigned error = 0;

    if (!gd_statistic_value(figure, &seen, &point.value, &error)) {
        point.mark = (error & (GD_HIT_NAN | GD_HIT_INF)) != 0 ? SPARK_BAD : SPARK_MISSING;
    } else if (!isfinite(point.value)) {
        point.mark = SPARK_BAD;
    }
    return point;
}

static void add_figure(struct history_pane *pane, const struct gd_history_tensor *tensor,
                       const struct gd_history_record *record, size_t count,
                       enum gd_statistic figure)
{
    struct spark_point *points = malloc((count + 1) * sizeof(*points));
    struct row *row = points ? add_row(pane) : NULL;
    const char *name = tensor->is_scalar                   ? "value"
                       : figure == GD_STAT_ZERO_PERCENTAGE ? "zero %"
                                                           : gd_statistic_name(figure);

    if (!row) {
        free(points);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        points[i] = point_of(tensor, &record[i], figure);
    }
    snprintf(row->name, sizeof(row->name), "%s", name);
    row->points = points;
    row->count = count;
}

static void add_tensor(struct history_pane *pane, const struct gd_session *session, uint32_t index)
{
    struct gd_history_tensor tensor;
    struct gd_history_record *record = malloc(MAX_RECORDS * sizeof(*record));
    const struct gd_history *history = session->history;

    if (record && gd_history_tensor(history, index, &tensor)) {
        size_t count = gd_history_read(history, index, record, MAX_RECORDS);
        add_headline(pane, session->graph, &tensor, record, count);
        if (tensor.is_scalar) {
            add_figure(pane, &tensor, record, count, GD_STAT_MEAN);
        }
        for (size_t i = 0; i < FIGURES && !tensor.is_scalar; i++) {
            add_figure(pane, &tensor, record, count, figures[i]);
        }
    }
    free(record);
}

/* All scalars, or only the loss. */
static void add_scalars(struct history_pane *pane, const struct gd_session *session, bool all)
{
    const struct gd_history *history = session->history;
    struct gd_history_head head;
    struct gd_history_tensor tensor;

    gd_history_head(history, &head);
    for (uint32_t i = 0; i < head.tensors; i++) {
        if (gd_history_tensor(history, i, &tensor) && tensor.is_scalar && tensor.seen > 0 &&
            (all || strcmp(tensor.name, "loss") == 0)) {
            add_tensor(pane, session, i);
        }
    }
}

static void add_hint(struct history_pane *pane, const char *text)
{
    struct row *row = add_row(pane);

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

static void make_rows(struct history_pane *pane, const struct gd_session *session, gd_node_id node)
{
    struct gd_node_info info;
    uint32_t index;
    bool any = false;

    clear_rows(pane);
    if (pane->scalars) {
        add_scalars(pane, session, true);
        return;
    }
    if (node != GD_NO_NODE && gd_graph_node(session->graph, node, &info)) {
        for (uint32_t i = 0; i < info.output_count; i++) {
            if (gd_history_find(session->history, info.name, i, &index)) {
                add_tensor(pane, session, index);
                any = true;
            }
        }
        if (!any) {
            add_way(pane, session, info.name);
        }
    }
    add_scalars(pane, session, false);
}

/* Changes with every new record. */
static uint64_t seen_of(const struct gd_history *history)
{
    struct gd_history_head head;
    struct gd_history_tensor tensor;
    uint64_t seen = 0;

    gd_history_head(history, &head);
    for (uint32_t i = 0; i < head.tensors; i++) {
        seen += gd_history_tensor(history, i, &tensor) ? tensor.seen : 0;
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
    const struct gd_history *history = current ? current->history : NULL;

    if (!history) {
        clear_rows(pane);
        pane->history = NULL;
    } else {
        uint64_t seen = seen_of(history);
        if (history != pane->history || node != pane->node || seen != pane->seen ||
            pane->scalars != pane->of_scalars) {
            make_rows(pane, session, node);
            pane->history = history;
            pane->node = node;
            pane->seen = seen;
            pane->of_scalars = pane->scalars;
        }
    }
    pane->list.count = pane->row_count;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static const char *value_text(const struct spark_point *point, char *room, size_t size)
{
    if (point->mark == SPARK_VALUE) {
        snprintf(room, size, "%.4g", point->value);
    } else {
        snprintf(room, size, "%s", point->mark == SPARK_BAD ? "nan/inf" : "-");
    }
    return room;
}

static void draw_figure(struct tui *tui, const struct row *of, int row, int col, int cols,
                        enum draw_style style)
{
    struct gd_buf bars = GD_BUF_INIT(1 << 16);
    char line[64], first[32], last[32];
    int room = cols - NAME_COLS - 2 * VALUE_COLS - 4;

    room = room < 1 ? 1 : room;
    if (of->count == 0) {
        snprintf(line, sizeof(line), " %-*s no records", NAME_COLS, of->name);
        draw_text(tui->draw, row, col, cols, style, line);
        return;
    }
    snprintf(line, sizeof(line), " %-*s%*s ", NAME_COLS, of->name, VALUE_COLS,
             value_text(&of->points[0], first, sizeof(first)));
    int used = draw_text(tui->draw, row, col, cols, style, line);
    spark_draw(of->points, of->count, (size_t)room, !tui->utf8, &bars);
    used += draw_text(tui->draw, row, col + used, cols - used, style, gd_buf_text(&bars));
    snprintf(line, sizeof(line), " %s", value_text(&of->points[of->count - 1], last, sizeof(last)));
    draw_text(tui->draw, row, col + used, cols - used, style, line);
    gd_buf_deinit(&bars);
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    const struct row *of = &history_state(tui)->row[index];
    char name[512];

    if (!of->text && of->points) {
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
    const struct row *of = &history_state(tui)->row[index];
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
    } else if (history_state(tui)->scalars) {
        at = tui_draw_folded(tui, rect, at, DRAW_DIM, "No scalars are recorded.");
        tui_draw_folded(tui, rect, at, DRAW_DIM, "to record one:  watch 'loss > 100'");
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

    update_history(tui);
    if (pane->row_count == 0) {
        draw_nothing(tui, rect);
    }
    tui_list_draw(tui, &pane->list, &rows, rect, focused);
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    snprintf(out, size, history_state(tui)->scalars ? "history of all scalars" : "history");
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct history_pane *pane = history_state(tui);

    update_history(tui);
    if (request == TUI_MODE || (request == TUI_BACK && pane->scalars)) {
        pane->scalars = !pane->scalars;
        pane->list.cursor = pane->list.top = 0;
    } else {
        tui_list_request(tui, &pane->list, &rows, request);
    }
}

static void release_state(struct tui *tui, void *of)
{
    (void)tui;
    clear_rows(of);
}

const struct tui_pane_ops tui_history_pane = {
    .state_size = sizeof(struct history_pane),
    .release = release_state,
    .update = update_history,
    .draw = draw_history,
    .title = make_title,
    .rows = &rows,
    .request = handle_request,
};

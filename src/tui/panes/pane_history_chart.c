// SPDX-License-Identifier: GPL-3.0-or-later
/* The history pane's chart: what is in it, its keys, and its cells on the screen. */
#include <string.h>

#include "tui/panes/pane_history.h"
#include "tui/tui_impl.h"

#define LEAST_ROWS  10 /* of the pane that has a chart and the list */
#define LEAST_CHART 6
#define LIST_ROWS   7
#define MOST_MARKS  1024

static const double weights[] = {0, 0.6, 0.9, 0.99};
#define WEIGHTS (sizeof(weights) / sizeof(weights[0]))

int history_chart_rows(const struct history_pane *pane, const struct draw_rect *rect)
{
    int list = pane->row_count < LIST_ROWS ? (int)pane->row_count : LIST_ROWS;

    if (pane->view.alone) {
        return rect->rows;
    }
    list = list < rect->rows / 3 ? list : rect->rows / 3;
    return rect->rows >= LEAST_ROWS && rect->rows - list >= LEAST_CHART ? rect->rows - list : 0;
}

/* ---- what is in it ---- */

static void add_row(const struct history_row *row, const struct history_row **rows, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (rows[i] == row) {
            return;
        }
    }
    if (*count < CHART_MAX_CURVES && !row->text) {
        rows[(*count)++] = row;
    }
}

/* The row under the cursor; at a headline, the first below it. */
static const struct history_row *chosen_row(const struct history_pane *pane)
{
    size_t at = pane->list.cursor < pane->row_count ? pane->list.cursor : 0;

    while (at < pane->row_count && pane->row[at].text) {
        at++;
    }
    return at < pane->row_count ? &pane->row[at] : NULL;
}

static size_t list_rows(const struct history_pane *pane, const struct history_row **rows)
{
    const struct history_row *chosen = chosen_row(pane);
    size_t count = 0;

    for (size_t i = 0; i < pane->row_count; i++) {
        if (pane->row[i].kept || pane->subject == HISTORY_PLOT) {
            add_row(&pane->row[i], rows, &count);
        }
    }
    if (chosen) {
        add_row(chosen, rows, &count);
    }
    return count;
}

/* ---- drawing ---- */

static enum draw_style style_of(enum chart_ink ink)
{
    switch (ink) {
    case CHART_DIM:
    case CHART_CURSOR: return DRAW_DIM;
    case CHART_BAD: return DRAW_ERROR;
    case CHART_MARKED: return DRAW_HIT;
    default:
        if (ink >= CHART_HEAT0) {
            return (enum draw_style)(DRAW_HEAT0 + (int)(ink - CHART_HEAT0) % DRAW_HEATS);
        }
        return ink >= CHART_CURVE0
                   ? (enum draw_style)(DRAW_CURVE0 + (int)(ink - CHART_CURVE0) % DRAW_CURVES)
                   : DRAW_PLAIN;
    }
}

static void draw_picture(struct tui *tui, const struct chart_picture *picture,
                         const struct draw_rect *rect)
{
    struct gd_buf text = GD_BUF_INIT(1 << 14);

    for (int row = 0; row < picture->rows && row < rect->rows; row++) {
        for (int col = 0; col < picture->cols;) {
            enum chart_ink ink;
            int next = chart_run(picture, row, col, &text, &ink);
            draw_text(tui->draw, rect->row + row, rect->col + col, rect->cols - col, style_of(ink),
                      gd_buf_text(&text));
            col = next;
        }
    }
    gd_buf_deinit(&text);
}

/* Steps with hits. */
static size_t list_marks(const struct gd_session *session, int64_t *marked)
{
    size_t count = 0;

    for (size_t i = session->hit_count; i > 0 && count < MOST_MARKS; i--) {
        if (session->hits[i - 1].error == 0) {
            marked[count++] = session->hits[i - 1].step;
        }
    }
    return count;
}

bool history_draw_chart(struct tui *tui, struct history_pane *pane, const struct draw_rect *rect)
{
    struct history_view *view = &pane->view;
    const struct history_row *rows[CHART_MAX_CURVES];
    struct chart_curve curves[CHART_MAX_CURVES];
    int64_t marked[MOST_MARKS];
    struct chart_picture picture;
    size_t count = list_rows(pane, rows);
    struct chart_options options = {
        .rows = rect->rows,
        .cols = rect->cols,
        .utf8 = tui->utf8,
        .log = view->log,
        .smooth = view->weight > 0 ? view->weight : weights[view->smooth],
        .from = view->from,
        .to = view->to,
        .has_cursor = view->has_cursor,
        .cursor = view->cursor,
        .marked = marked,
    };

    for (size_t i = 0; i < count; i++) {
        curves[i] = series_curve(&rows[i]->series);
    }
    if (count == 0 || rect->rows < CHART_MIN_ROWS || rect->cols < CHART_MIN_COLS) {
        return false;
    }
    options.marked_count = pane->session ? list_marks(pane->session, marked) : 0;
    if (!chart_draw(curves, count, &options, &picture)) {
        return false;
    }
    draw_picture(tui, &picture, rect);
    view->first = picture.from;
    view->last = picture.to;
    view->plot_cols = picture.plot_cols;
    chart_release(&picture);
    return true;
}

/* ---- keys ---- */

/* By one column of the picture, at least one step. */
static void move_cursor(struct history_view *view, int by)
{
    int64_t span = view->last - view->first;
    int64_t step = view->plot_cols > 0 ? span / view->plot_cols : 1;

    step = step < 1 ? 1 : step;
    view->cursor = view->has_cursor ? view->cursor + by * step : view->last;
    view->cursor = view->cursor < view->first ? view->first : view->cursor;
    view->cursor = view->cursor > view->last ? view->last : view->cursor;
    view->has_cursor = true;
}

/* Around the cursor; without one, the last steps stay. */
static void zoom_in(struct history_view *view)
{
    int64_t half = (view->last - view->first) / 2;
    int64_t around = view->has_cursor ? view->cursor : view->last;

    if (half < 2) {
        return;
    }
    view->from = around - half / 2;
    view->from = view->from < view->first ? view->first : view->from;
    view->to = view->from + half;
    if (view->to > view->last) {
        view->to = view->last;
        view->from = view->to - half;
    }
}

/* Twice the steps; all of them when that spans more than there are. */
static void zoom_out(struct history_pane *pane)
{
    struct history_view *view = &pane->view;
    int64_t half = (view->to - view->from) / 2 + 1;
    int64_t first = INT64_MAX, last = INT64_MIN;

    for (size_t i = 0; i < pane->row_count; i++) {
        const struct series *series = &pane->row[i].series;
        if (series->count > 0) {
            first = series->point[0].step < first ? series->point[0].step : first;
            last = series->point[series->count - 1].step > last
                       ? series->point[series->count - 1].step
                       : last;
        }
    }
    if (view->from > view->to) {
        return;
    }
    if (first > last || view->to - view->from >= (last - first) / 2) {
        view->from = 1;
        view->to = 0;
        return;
    }
    view->from = view->from - half < first ? first : view->from - half;
    view->to = view->to + half > last ? last : view->to + half;
}

bool history_chart_request(struct history_pane *pane, enum tui_request request)
{
    struct history_view *view = &pane->view;

    switch (request) {
    case TUI_LEFT: move_cursor(view, -1); return true;
    case TUI_RIGHT: move_cursor(view, 1); return true;
    case TUI_ZOOM_IN: zoom_in(view); return true;
    case TUI_ZOOM_OUT: zoom_out(pane); return true;
    case TUI_LOG_SCALE: view->log = !view->log; return true;
    case TUI_OPEN: view->alone = !view->alone; return true;
    case TUI_SMOOTH:
        view->smooth = view->weight > 0 ? 0 : (int)((size_t)(view->smooth + 1) % WEIGHTS);
        view->weight = 0;
        return true;
    case TUI_BACK:
        if (view->has_cursor || view->from <= view->to || view->alone) {
            view->alone = view->alone && (view->has_cursor || view->from <= view->to);
            view->has_cursor = false;
            view->from = 1;
            view->to = 0;
            return true;
        }
        return false;
    default: return false;
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Draws the tensor pane: head lines, numbers, heat maps. */
#include "tui/panes/pane_tensor_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format.h"
#include "repl/values/value.h"
#include "tui/panes/detail.h"
#include "tui/text.h"

#define MIN_CELL   4
#define HEAT_CELL  2
#define MAX_SAMPLE 4096 /* elements sampled for the ranks of a heat map */

/* ---- the grid: rows and columns of elements ---- */

static int64_t grid_cols(const struct tensor_pane *pane)
{
    return pane->axis_y < 0 ? pane->per_row : pane->shape.dim[pane->axis_x];
}

int64_t tensor_grid_rows(const struct tensor_pane *pane)
{
    if (pane->axis_y >= 0) {
        return pane->shape.dim[pane->axis_y];
    }
    return (tensor_count(pane) + pane->per_row - 1) / pane->per_row;
}

/* The element at a position of the grid; false: none. */
static bool grid_index(const struct tensor_pane *pane, int64_t row, int64_t col, int64_t *index)
{
    if (row < 0 || col < 0 || row >= tensor_grid_rows(pane) || col >= grid_cols(pane)) {
        return false;
    }
    memcpy(index, pane->at, sizeof(pane->at));
    if (pane->axis_y >= 0) {
        index[pane->axis_y] = row;
        index[pane->axis_x] = col;
        return true;
    }
    index[0] = row * pane->per_row + col;
    return index[0] < tensor_count(pane);
}

static void grid_cursor(const struct tensor_pane *pane, int64_t *row, int64_t *col)
{
    bool wrapped = pane->axis_y < 0;

    *row = wrapped ? pane->at[0] / pane->per_row : pane->at[pane->axis_y];
    *col = wrapped ? pane->at[0] % pane->per_row : pane->at[pane->axis_x];
}

static int digits_of(int64_t number)
{
    return snprintf(NULL, 0, "%lld", (long long)(number > 0 ? number : 0));
}

static int label_cols(const struct tensor_pane *pane)
{
    int64_t last = pane->axis_y >= 0 ? pane->shape.dim[pane->axis_y] : tensor_count(pane);
    return digits_of(last - 1) + 1;
}

/* The columns from one element to the next. */
static int cell_width(const struct tensor_pane *pane)
{
    return pane->look == TENSOR_NUMBERS ? pane->cell + 1 : HEAT_CELL;
}

/* The first of `shown` places such that `at` is among them, and none is after the last of `count`.
 */
static int64_t scroll_to(int64_t first, int64_t at, int shown, int64_t count)
{
    first = first > at ? at : first <= at - shown ? at - shown + 1 : first;
    first = first > count - shown ? count - shown : first;
    return first > 0 ? first : 0;
}

/* How many rows and columns of elements fit; scrolls so that the cursor is visible. */
static void fit_grid(struct tensor_pane *pane, const struct draw_rect *room)
{
    int64_t row, col;
    int cols = (room->cols - label_cols(pane)) / cell_width(pane);

    pane->cols = cols > 0 ? cols : 1;
    pane->rows = room->rows > 1 ? room->rows - 1 : 1;
    pane->per_row = pane->cols;
    if (pane->axis_y < 0 && pane->per_row >= 10) { /* round numbers make indices easy to read */
        pane->per_row -= pane->per_row % 10;
    } else if (pane->axis_y < 0 && pane->per_row > 5) {
        pane->per_row = 5;
    }
    grid_cursor(pane, &row, &col);
    pane->top = scroll_to(pane->top, row, pane->rows, tensor_grid_rows(pane));
    pane->left = scroll_to(pane->left, col, pane->cols, grid_cols(pane));
}

/* Requests the pages of the visible window, then those of one window further in each direction. */
static void want_pages(struct tensor_pane *pane)
{
    int64_t index[GD_MAX_RANK];

    for (int ring = 0; ring < 2; ring++) {
        for (int down = -ring; down <= 1 + ring; down++) {
            for (int right = -ring; right <= 1 + ring; right++) {
                int64_t row = pane->top + (down > 0 ? down * pane->rows - 1 : down * pane->rows);
                int64_t col =
                    pane->left + (right > 0 ? right * pane->cols - 1 : right * pane->cols);
                int64_t rows = tensor_grid_rows(pane), cols = grid_cols(pane);
                row = row >= rows ? rows - 1 : row < 0 ? 0 : row;
                col = col >= cols ? cols - 1 : col < 0 ? 0 : col;
                if (grid_index(pane, row, col, index)) {
                    tensor_want(pane, index);
                }
            }
        }
    }
    /* The window may be wider than a page. */
    for (int64_t row = pane->top; row < pane->top + pane->rows; row += TENSOR_PAGE_ROWS) {
        for (int64_t col = pane->left; col < pane->left + pane->cols; col += TENSOR_PAGE_COLS) {
            if (grid_index(pane, row, col, index)) {
                tensor_want(pane, index);
            }
        }
    }
}

/* The width of the widest visible number; never shrinks, so that scrolling does not jump. */
static bool widen_cells(struct tensor_pane *pane)
{
    int64_t index[GD_MAX_RANK];
    int before = pane->cell;
    int head =
        pane->axis_y >= 0 ? digits_of(grid_cols(pane) - 1) : digits_of(pane->per_row - 1) + 1;
    char text[96];

    pane->cell = pane->cell < MIN_CELL ? MIN_CELL : pane->cell;
    pane->cell = pane->cell < head ? head : pane->cell;
    for (int row = 0; row < pane->rows; row++) {
        for (int col = 0; col < pane->cols; col++) {
            if (!grid_index(pane, pane->top + row, pane->left + col, index)) {
                continue;
            }
            struct tensor_cell cell = tensor_cell_at(pane, index);
            if (cell.state == TENSOR_HERE) {
                tensor_cell_text(&cell, false, text, sizeof(text));
                int len = (int)strlen(text);
                pane->cell = pane->cell < len ? len : pane->cell;
            }
        }
    }
    return pane->cell != before;
}

/* ---- heat ---- */

/* The meaning of a heat map's colours: the range of the values, or ranks within a sample. */
struct heat {
    double lo, hi;
    double *sample; /* sorted; NULL: colours show the range */
    size_t count;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

static bool cell_number(struct tensor_pane *pane, int64_t row, int64_t col, double *ret)
{
    int64_t index[GD_MAX_RANK];

    if (!grid_index(pane, row, col, index)) {
        return false;
    }
    struct tensor_cell cell = tensor_cell_at(pane, index);
    if (cell.state != TENSOR_HERE || tensor_cell_is_bad(&cell)) {
        return false;
    }
    *ret = tensor_cell_value(&cell);
    return true;
}

/* Uses the range of the whole value if known, otherwise of the visible part. */
static void heat_start(struct tensor_pane *pane, struct heat *heat)
{
    const struct tensor_figures *figures = tensor_shown(pane);
    bool known = pane->which != TENSOR_DIFFERENCE && figures->has_stats &&
                 figures->stats.max >= figures->stats.min;
    double lo = INFINITY, hi = -INFINITY;

    heat->sample = pane->look == TENSOR_HEAT_RANK ? malloc(MAX_SAMPLE * sizeof(double)) : NULL;
    heat->count = 0;
    for (int row = 0; row < pane->rows; row++) {
        for (int col = 0; col < pane->cols; col++) {
            double value;
            if (!cell_number(pane, pane->top + row, pane->left + col, &value)) {
                continue;
            }
            lo = value < lo ? value : lo;
            hi = value > hi ? value : hi;
            if (heat->sample && heat->count < MAX_SAMPLE) {
                heat->sample[heat->count++] = value;
            }
        }
    }
    if (heat->sample) {
        qsort(heat->sample, heat->count, sizeof(double), by_value);
    }
    heat->lo = known ? figures->stats.min : lo;
    heat->hi = known ? figures->stats.max : hi;
}

/* From 0 to 1. */
static double heat_of(const struct heat *heat, double value)
{
    if (heat->sample && heat->count > 1) {
        size_t below = 0, end = heat->count;
        while (below < end) {
            size_t middle = below + (end - below) / 2;
            if (heat->sample[middle] < value) {
                below = middle + 1;
            } else {
                end = middle;
            }
        }
        return (double)below / (double)(heat->count - 1);
    }
    /* Halved, because high - low may overflow a double. */
    double share =
        heat->hi > heat->lo ? (value / 2 - heat->lo / 2) / (heat->hi / 2 - heat->lo / 2) : 0.5;
    return share > 1 ? 1 : share > 0 ? share : 0;
}

/* A colour, and a glyph with the same meaning. */
static void draw_heat_cell(struct tensor_pane *pane, const struct heat *heat, int row, int col,
                           const struct tensor_cell *cell, bool cursor)
{
    static const char ascii[] = ".:-=+*#%@";
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    struct tui *tui = pane->tui;
    char text[16];

    if (tensor_cell_is_bad(cell)) {
        bool nan = isnan(tensor_cell_value(cell));
        draw_text(tui->draw, row, col, HEAT_CELL, cursor ? DRAW_REVERSE : DRAW_ERROR,
                  nan                           ? "N!"
                  : tensor_cell_value(cell) < 0 ? "-I"
                                                : "+I");
        return;
    }
    double share = heat_of(heat, tensor_cell_value(cell));
    int level = (int)(share * (DRAW_HEATS - 1) + 0.5);
    if (tui->utf8) {
        const char *block = blocks[(int)(share * 7 + 0.5)];
        snprintf(text, sizeof(text), "%s%s", block, block);
    } else {
        char c = ascii[(int)(share * 8 + 0.5)];
        snprintf(text, sizeof(text), "%c%c", c, c);
    }
    draw_text(tui->draw, row, col, HEAT_CELL,
              cursor ? DRAW_REVERSE : (enum draw_style)(DRAW_HEAT0 + level), text);
}

/* ---- drawing the grid ---- */

static enum draw_style number_style(const struct tensor_pane *pane, const struct tensor_cell *cell)
{
    if (tensor_cell_is_bad(cell)) {
        return DRAW_ERROR;
    }
    if (pane->condition.text[0] != '\0' && tensor_matches(&pane->condition, cell)) {
        return DRAW_MATCH;
    }
    return DRAW_PLAIN;
}

/* Marks a truncated number, which would otherwise look like another number. */
static void fit_number(const char *value, int cols, char *out, size_t size)
{
    snprintf(out, size, "%*s", cols, value);
    if (cols > 0 && (size_t)cols < size && out[cols] != '\0') {
        out[cols - 1] = '>';
        out[cols] = '\0';
    }
}

static void draw_cell(struct tensor_pane *pane, const struct heat *heat, int row, int col, int room,
                      const int64_t *index, bool cursor)
{
    struct tensor_cell cell = tensor_cell_at(pane, index);
    bool numbers = pane->look == TENSOR_NUMBERS;
    int cols = numbers ? pane->cell : HEAT_CELL;
    char value[96], text[128];

    cols = cols < room ? cols : room;
    if (cell.state != TENSOR_HERE) {
        snprintf(text, sizeof(text), "%*s", cols, cell.state == TENSOR_FAILED ? "?" : "..");
        draw_text(pane->tui->draw, row, col, cols, cursor ? DRAW_REVERSE : DRAW_DIM, text);
        return;
    }
    if (!numbers) {
        draw_heat_cell(pane, heat, row, col, &cell, cursor);
        return;
    }
    tensor_cell_text(&cell, false, value, sizeof(value));
    fit_number(value, cols, text, sizeof(text));
    enum draw_style style = number_style(pane, &cell);
    draw_text(pane->tui->draw, row, col, cols, cursor ? DRAW_REVERSE : style, text);
}

/* The index above each column; in a heat map above every fifth. */
static void draw_column_heads(struct tensor_pane *pane, const struct draw_rect *room, int label)
{
    bool numbers = pane->look == TENSOR_NUMBERS;
    int width = cell_width(pane);
    int shown = pane->axis_y < 0 && pane->per_row < pane->cols ? (int)pane->per_row : pane->cols;
    char text[64];

    for (int col = 0; col < shown && pane->left + col < grid_cols(pane); col++) {
        int64_t number = pane->left + col;
        int at = label + col * width;
        if (!numbers && number % 5 != 0) {
            continue;
        }
        if (numbers) {
            snprintf(text, sizeof(text), pane->axis_y < 0 ? "%*s+%lld" : "%*s%lld",
                     pane->cell - digits_of(number) - (pane->axis_y < 0 ? 1 : 0), "",
                     (long long)number);
        } else {
            snprintf(text, sizeof(text), "%lld", (long long)number);
        }
        draw_text(pane->tui->draw, room->row, room->col + at, room->cols - at, DRAW_DIM, text);
    }
}

static void draw_grid(struct tensor_pane *pane, const struct draw_rect *room, bool focused)
{
    int label = label_cols(pane);
    int width = cell_width(pane);
    struct heat heat = {.sample = NULL};
    int64_t index[GD_MAX_RANK];
    int64_t cursor_row, cursor_col;
    char text[64];

    grid_cursor(pane, &cursor_row, &cursor_col);
    if (pane->look != TENSOR_NUMBERS) {
        heat_start(pane, &heat);
    }
    draw_column_heads(pane, room, label);
    for (int row = 0; row < pane->rows && pane->top + row < tensor_grid_rows(pane); row++) {
        int64_t first = pane->axis_y < 0 ? (pane->top + row) * pane->per_row : pane->top + row;
        int screen_row = room->row + 1 + row;
        if (screen_row >= room->row + room->rows) {
            break;
        }
        snprintf(text, sizeof(text), "%*lld", label - 1, (long long)first);
        draw_text(pane->tui->draw, screen_row, room->col, room->cols, DRAW_DIM, text);
        for (int col = 0; col < pane->cols; col++) {
            int at = label + col * width;
            if (grid_index(pane, pane->top + row, pane->left + col, index) &&
                (col == 0 ? at < room->cols : at + width - 1 <= room->cols)) {
                bool here = pane->top + row == cursor_row && pane->left + col == cursor_col;
                draw_cell(pane, &heat, screen_row, room->col + at, room->cols - at, index,
                          here && focused);
            }
        }
    }
    free(heat.sample);
}

bool tensor_place(const struct tensor_pane *pane, int row, int col, int64_t *index)
{
    int width = cell_width(pane);
    int label = label_cols(pane);

    row -= pane->above;
    if (row < 0 || row >= pane->rows || col < label || width < 1) {
        return false;
    }
    col = (col - label) / width;
    return col < pane->cols && grid_index(pane, pane->top + row, pane->left + col, index);
}

/* Draws a text over at most `most` rows; returns the number used. */
static int draw_folded(struct tui *tui, const struct draw_rect *room, int row, int most,
                       enum draw_style style, const char *text)
{
    int used = 0;

    while (*text != '\0' && used < most && row + used < room->rows) {
        size_t cut;
        size_t next = tui_text_next(text, room->cols, tui->utf8, &cut);
        if (used + 1 == most) { /* as much as fits */
            cut = tui_text_fit(text, room->cols, tui->utf8);
        }
        draw_text_len(tui->draw, room->row + row + used, room->col, room->cols, style, text, cut);
        text += next;
        used++;
    }
    return used;
}

/* ---- head lines ---- */

/* "[0, 3, y, x]": the axes of rows and columns, and the indices of the others. */
static void add_plane(const struct tensor_pane *pane, struct gd_buf *out)
{
    gd_buf_putc(out, '[');
    for (int i = 0; i < pane->shape.rank; i++) {
        gd_buf_puts(out, i > 0 ? ", " : "");
        if (i == pane->axis_y || i == pane->axis_x) {
            gd_buf_putc(out, i == pane->axis_y ? 'y' : 'x');
        } else {
            gd_buf_printf(out, "%lld", (long long)pane->at[i]);
        }
    }
    gd_buf_putc(out, ']');
}

static const char *mode_text(const struct tensor_pane *pane)
{
    static const char *const texts[TENSOR_WHICH_COUNT][TENSOR_LOOK_COUNT] = {
        [TENSOR_CURRENT] = {"current", "heat min..max", "heat by rank"},
        [TENSOR_PREVIOUS] = {"previous", "previous, heat min..max", "previous, heat by rank"},
        [TENSOR_DIFFERENCE] = {"difference", "difference, heat min..max",
                               "difference, heat by rank"},
    };
    return texts[pane->which][pane->look];
}

/* The full value under the cursor, and its position. */
static void add_position(struct tensor_pane *pane, struct gd_buf *out)
{
    char value[96];

    if (tensor_count(pane) == 0) {
        return;
    }
    struct tensor_cell cell = tensor_cell_at(pane, pane->at);
    gd_buf_puts(out, "  [");
    for (int i = 0; i < pane->shape.rank; i++) {
        gd_buf_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)pane->at[i]);
    }
    gd_buf_puts(out, "]");
    if (cell.state == TENSOR_HERE) {
        tensor_cell_text(&cell, true, value, sizeof(value));
        gd_buf_printf(out, " = %s", value);
    } else if (cell.state == TENSOR_FAILED) {
        gd_buf_printf(out, " %s", cell.why);
    }
}

static bool is_of_plane(const struct tensor_pane *pane, const struct tensor_page *page)
{
    for (int i = 0; i < pane->shape.rank; i++) {
        if (i != pane->axis_y && i != pane->axis_x && page->at[i] != pane->at[i]) {
            return false;
        }
    }
    return true;
}

/* From the fetched pages around the window. */
static bool take_histogram(struct tensor_pane *pane, const struct gd_stats *stats, uint64_t *bins)
{
    bool any = false;
    uint64_t part[TENSOR_BINS];

    memset(bins, 0, TENSOR_BINS * sizeof(*bins));
    for (int i = 0; i < TENSOR_PAGES; i++) {
        const struct tensor_page *page = &pane->page[i];
        if (page->state != TENSOR_HERE || page->iter != tensor_iter(pane) ||
            !is_of_plane(pane, page) ||
            gd_stats_histogram(page->tensor, stats->min, stats->max, TENSOR_BINS, part, NULL) !=
                GD_OK) {
            continue;
        }
        any = true;
        for (int bin = 0; bin < TENSOR_BINS; bin++) {
            bins[bin] += part[bin];
        }
    }
    return any;
}

/* Of the whole value if the training process sent it, otherwise of the visible elements. */
static void add_change(struct tensor_pane *pane, const struct gd_stats *stats, struct gd_buf *out)
{
    double most = 0, sum = 0, value;
    int count = 0;

    if (stats->has_prev) {
        gd_buf_printf(out, "  max |d|=%.4g mean |d|=%.4g", stats->max_abs_delta,
                      stats->mean_abs_delta);
        return;
    }
    for (int row = 0; row < pane->rows && pane->cols > 0; row++) {
        for (int col = 0; col < pane->cols; col++) {
            if (cell_number(pane, pane->top + row, pane->left + col, &value)) {
                most = fabs(value) > most ? fabs(value) : most;
                sum += fabs(value);
                count++;
            }
        }
    }
    if (count > 0) {
        gd_buf_printf(out, "  visible part: max |d|=%.4g mean |d|=%.4g", most, sum / count);
    }
}

static void add_summary(struct tensor_pane *pane, struct gd_buf *out)
{
    const struct tensor_figures *figures = tensor_shown(pane);
    const struct gd_session *session = pane->session;
    char shape[256];

    if (figures->has_stats) {
        const struct gd_stats *stats = &figures->stats;
        gd_format_summary(figures->dtype, &figures->shape, stats, NULL, 0, pane->tui->utf8, out);
        if (pane->which == TENSOR_DIFFERENCE) {
            add_change(pane, stats, out);
        }
    } else {
        gd_buf_printf(out, "%s %s", gd_dtype_name(figures->dtype),
                      gd_shape_text(&figures->shape, shape, sizeof(shape)));
    }
    if (session->state == GD_RUNNING) {
        gd_buf_puts(out, "  (running: values of the last stop)");
    }
}

/* The visible part and the value's step; the histogram only if it needs no extra row. */
static void add_view(struct tensor_pane *pane, int cols, const char *step, struct gd_buf *out)
{
    const struct tensor_figures *figures = tensor_shown(pane);
    const struct gd_stats *stats = &figures->stats;
    struct gd_buf position = GD_BUF_INIT(4096);
    uint64_t bins[TENSOR_BINS];

    add_plane(pane, out);
    gd_buf_printf(out, " %s%s", mode_text(pane), step);
    add_position(pane, &position);
    int used = tui_text_width(gd_buf_text(out), out->len, pane->tui->utf8) +
               tui_text_width(gd_buf_text(&position), position.len, pane->tui->utf8);
    if (figures->has_stats && used + TENSOR_BINS + 3 <= cols && stats->max > stats->min &&
        !gd_dtype_is_complex(figures->dtype) && take_histogram(pane, stats, bins)) {
        gd_format_histogram(bins, TENSOR_BINS, pane->tui->utf8, out);
    }
    gd_buf_puts(out, gd_buf_text(&position));
    gd_buf_deinit(&position);
}

/* The step of the value; more detail if the session is at another step. */
static void step_text(const struct tensor_pane *pane, char *out, size_t size)
{
    int64_t step = tensor_shown(pane)->step;
    char age[VALUE_AGE] = "";

    if (pane->which == TENSOR_CURRENT && pane->session->state != GD_RUNNING) {
        value_age(pane->session, step, age);
    }
    if (age[0] != '\0') {
        snprintf(out, size, "  %s", age);
    } else if (step >= 0) {
        snprintf(out, size, "  step %lld", (long long)step);
    }
}

static int draw_head(struct tensor_pane *pane, const struct draw_rect *rect)
{
    struct gd_buf text = GD_BUF_INIT(4096), summary = GD_BUF_INIT(4096);
    char step[VALUE_AGE + 8] = "";

    step_text(pane, step, sizeof(step));
    add_view(pane, rect->cols, step, &text);
    bool fits = tui_text_width(gd_buf_text(&text), text.len, pane->tui->utf8) <= rect->cols;
    add_summary(pane, &summary);
    if (!fits) { /* moves the step to the row above */
        gd_buf_puts(&summary, step);
        gd_buf_clear(&text);
        add_view(pane, rect->cols, "", &text);
        fits = tui_text_width(gd_buf_text(&text), text.len, pane->tui->utf8) <= rect->cols;
    }
    int rows =
        draw_folded(pane->tui, rect, 0, rect->rows >= 9 ? 2 : 1, DRAW_PLAIN, gd_buf_text(&summary));
    gd_buf_deinit(&summary);
    if (!fits && rect->rows < 8) { /* no room for two rows: the value matters most */
        gd_buf_clear(&text);
        add_position(pane, &text);
    }
    rows += draw_folded(pane->tui, rect, rows, rect->rows < 8 ? 1 : 2, DRAW_BOLD,
                        gd_buf_text(&text) + strspn(gd_buf_text(&text), " "));
    gd_buf_deinit(&text);
    return rows;
}

/* The line below the grid: the text being typed, or its result. Returns the rows used. */
static int draw_foot(struct tensor_pane *pane, const struct draw_rect *rect)
{
    if (rect->rows < 4 || (!pane->typing && pane->message[0] == '\0')) {
        return 0;
    }
    if (!pane->typing) {
        int cols = tui_text_width(pane->message, strlen(pane->message), pane->tui->utf8);
        int rows = cols > rect->cols && rect->rows >= 7 ? 2 : 1;
        draw_folded(pane->tui, rect, rect->rows - rows, rows, DRAW_MARK, pane->message);
        return rows;
    }
    tui_draw_typed(pane->tui, rect, pane->typed);
    return 1;
}

/* ---- what there is to say instead of a grid ---- */

static const char *why_nothing(struct tensor_pane *pane, char *text, size_t size)
{
    const struct gd_session *session = pane->session;
    struct gd_node_info info;

    if (!session) {
        return "no training process is connected";
    }
    if (pane->node == GD_NO_NODE) {
        snprintf(text, size, "%.200s %s", pane->name ? pane->name : "no node is selected:",
                 pane->name ? "is not in this graph"
                            : "select one in the graph, or type tensor NODE");
        return text;
    }
    if (gd_graph_node(session->graph, pane->node, &info) && info.output_count <= pane->slot) {
        snprintf(text, size, "%.200s has no output %u", info.name, pane->slot);
        return text;
    }
    for (enum gd_iter iter = GD_CURRENT; iter <= GD_PREVIOUS; iter++) {
        const struct tensor_figures *figures = &pane->figures[iter];
        if (tensor_needs(pane, iter) && figures->state == TENSOR_FAILED) {
            snprintf(text, size,
                     iter == GD_PREVIOUS
                         ? "no previous value: %.200s (\"tensor NODE prev\" keeps them)"
                         : "no value: %.200s",
                     figures->why);
            return text;
        }
    }
    if (pane->why[0] != '\0') {
        return pane->why;
    }
    if (!pane->has_view && session->state == GD_RUNNING) {
        return "running: values appear at the next stop";
    }
    return pane->has_view ? NULL : "waiting for the value ...";
}

void tensor_draw_pane(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct tensor_pane *pane = tui_state(tui, TUI_TENSOR);
    char text[400];
    const char *why = why_nothing(pane, text, sizeof(text));

    pane->rows = rect->rows;
    pane->above = rect->rows; /* no grid yet */
    if (why) {
        draw_folded(tui, rect, 0, 4, DRAW_PLAIN, why);
        draw_foot(pane, rect);
        return;
    }
    struct draw_rect room = *rect;
    room.rows -= draw_foot(pane, rect);
    pane->per_row = pane->per_row > 0 ? pane->per_row : 1;
    int head = draw_head(pane, &room);
    room.row += head;
    room.rows -= head;
    if (tensor_count(pane) == 0) {
        draw_folded(tui, &room, 0, 1, DRAW_DIM, "no elements");
        return;
    }
    if (room.rows < 2) {
        return;
    }
    pane->cell = pane->cell > 0 ? pane->cell : MIN_CELL;
    fit_grid(pane, &room);
    want_pages(pane);
    for (int i = 0; i < 3 && pane->look == TENSOR_NUMBERS && widen_cells(pane); i++) {
        fit_grid(pane, &room);
    }
    draw_grid(pane, &room, focused);
    pane->above = head + 1; /* plus the column heads */
}

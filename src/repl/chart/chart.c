// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/chart/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/chart/chart_impl.h"
#include "repl/out/out_impl.h"

#define TALL_ENOUGH 12   /* rows of a panel: above it, nothing goes beside it */
#define WIDE_ENOUGH 56   /* columns of a panel that has others beside it */
#define LEAST_PLOT  3    /* rows of a plot with a scale of its own */
#define ALIKE       0.25 /* of a common scale that each curve on it uses */

/* ---- cells ---- */

void chart_put(struct chart_picture *picture, int row, int col, const char *glyph, uint8_t ink)
{
    if (row < 0 || row >= picture->rows || col < 0 || col >= picture->cols) {
        return;
    }
    struct chart_cell *cell = &picture->cell[row * picture->cols + col];
    size_t len = strnlen(glyph, sizeof(cell->glyph) - 1);
    memcpy(cell->glyph, glyph, len);
    cell->glyph[len] = '\0';
    cell->ink = ink;
}

/* Bytes of the character at `text`, which is valid UTF-8. */
static size_t character_len(const char *text)
{
    size_t len = 1;

    while (((unsigned char)text[len] & 0xc0) == 0x80) {
        len++;
    }
    return len;
}

int chart_put_text(struct chart_picture *picture, int row, int col, int end, const char *text,
                   uint8_t ink, bool utf8)
{
    struct gd_buf safe = GD_BUF_INIT(4096);
    char glyph[8];

    out_add_safe(&safe, text, utf8);
    for (const char *p = gd_buf_text(&safe); *p != '\0';) {
        size_t len = character_len(p);
        snprintf(glyph, sizeof(glyph), "%.*s", (int)(len < 5 ? len : 1), p);
        int width = repl_display_width(glyph);
        p += len;
        if (width < 1) {
            continue;
        }
        if (col + width > end) {
            break;
        }
        chart_put(picture, row, col, glyph, ink);
        if (width > 1) {
            chart_put(picture, row, col + 1, "", CHART_COVERED);
        }
        col += width;
    }
    gd_buf_deinit(&safe);
    return col;
}

static bool is_blank(const struct chart_cell *cell)
{
    return cell->glyph[0] == '\0' && cell->ink != CHART_COVERED;
}

int chart_run(const struct chart_picture *picture, int row, int col, struct gd_buf *text,
              enum chart_ink *ink)
{
    const struct chart_cell *cell = &picture->cell[row * picture->cols];
    int last = picture->cols;

    while (last > 0 && (is_blank(&cell[last - 1]) || strcmp(cell[last - 1].glyph, " ") == 0)) {
        last--;
    }
    gd_buf_clear(text);
    *ink = col < last ? (enum chart_ink)cell[col].ink : CHART_PLAIN;
    while (col < last && (cell[col].ink == *ink || cell[col].ink == CHART_COVERED)) {
        if (cell[col].ink != CHART_COVERED) {
            gd_buf_puts(text, is_blank(&cell[col]) ? " " : cell[col].glyph);
        }
        col++;
    }
    return col < last ? col : picture->cols;
}

/* ---- curves ---- */

void chart_smooth(struct chart_point *point, size_t count, double weight)
{
    double last = 0, left = 1;

    for (size_t i = 0; i < count; i++) {
        if (isfinite(point[i].value)) {
            last = last * weight + (1 - weight) * point[i].value;
            left *= weight;
            point[i].value = last / (1 - left);
        }
    }
}

static void measure_trace(struct chart_trace *trace, bool log)
{
    trace->low = INFINITY;
    trace->high = -INFINITY;
    for (size_t i = 0; i < trace->count; i++) {
        double value = trace->point[i].value;

        if (trace->bins) {
            trace->low = fmin(trace->low, trace->bins[i].low);
            trace->high = fmax(trace->high, trace->bins[i].high);
        } else if (!isfinite(value)) {
            trace->first_bad = trace->bad++ == 0 ? trace->point[i].step : trace->first_bad;
        } else if (log && value <= 0) {
            trace->not_positive++;
        } else {
            trace->low = fmin(trace->low, value);
            trace->high = fmax(trace->high, value);
        }
    }
}

/* The points in the range. Smoothing begins with the first point of all, so that zooming does not
 * change the curve. */
static bool make_trace(const struct chart_curve *curve, const struct chart_options *options,
                       struct chart_trace *ret)
{
    size_t first = 0, end = curve->count;
    struct chart_point *point = malloc((curve->count + 1) * sizeof(*point));

    *ret = (struct chart_trace){.curve = curve, .point = point};
    if (!point) {
        return false;
    }
    if (curve->count > 0) {
        memcpy(point, curve->point, curve->count * sizeof(*point));
    }
    if (options->smooth > 0 && !curve->bins) {
        chart_smooth(point, curve->count, options->smooth);
    }
    if (options->from <= options->to) {
        while (first < end && point[first].step < options->from) {
            first++;
        }
        while (end > first && point[end - 1].step > options->to) {
            end--;
        }
    }
    ret->count = end - first;
    ret->raw = curve->point ? curve->point + first : NULL;
    ret->bins = curve->bins ? curve->bins + first : NULL;
    memmove(point, point + first, ret->count * sizeof(*point));
    measure_trace(ret, options->log);
    return true;
}

/* ---- layout ---- */

struct layout {
    struct chart_trace trace[CHART_MAX_CURVES];
    int trace_count;
    struct chart_panel panel[CHART_MAX_CURVES];
    int panel_count;
};

/* Whether each of them uses enough of the scale that they would share. */
static bool is_alike(const struct chart_trace *a, const struct chart_trace *b, bool log)
{
    double low = fmin(a->low, b->low), high = fmax(a->high, b->high);
    double least = fmin(a->high / 2 - a->low / 2, b->high / 2 - b->low / 2);
    double all = high / 2 - low / 2;

    if (a->curve->unit != b->curve->unit || a->bins || b->bins) {
        return false;
    }
    if (a->low > a->high || b->low > b->high) {
        return true; /* one of them has nothing to draw */
    }
    if (log) {
        least = fmin(log10(a->high) - log10(a->low), log10(b->high) - log10(b->low));
        all = log10(high) - log10(low);
    }
    return least >= ALIKE * all;
}

static void add_to_panel(struct chart_panel *panel, struct chart_trace *trace)
{
    panel->trace[panel->count++] = trace;
}

static void choose_panels(struct layout *layout, const struct chart_options *options)
{
    for (int i = 0; i < layout->trace_count; i++) {
        struct chart_trace *trace = &layout->trace[i];
        int at = 0;

        trace->ink = (uint8_t)(CHART_CURVE0 + i % CHART_INKS);
        while (at < layout->panel_count &&
               (!options->shared || trace->bins || layout->panel[at].trace[0]->bins)) {
            bool alike = true;
            for (int k = 0; k < layout->panel[at].count; k++) {
                alike = alike && is_alike(layout->panel[at].trace[k], trace, options->log);
            }
            if (alike) {
                break;
            }
            at++;
        }
        layout->panel_count = at < layout->panel_count ? layout->panel_count : at + 1;
        add_to_panel(&layout->panel[at], trace);
    }
}

static int lines_of(const struct layout *layout)
{
    return layout->trace_count + layout->panel_count; /* titles and axes */
}

/* Panels above each other; beside each other on a wide screen that is low. */
static int choose_columns(const struct layout *layout, int rows, int cols)
{
    int across = 1;

    while (across < layout->panel_count && cols / (across + 1) >= WIDE_ENOUGH) {
        int down = (layout->panel_count + across - 1) / across;
        if (rows / down >= TALL_ENOUGH) {
            break;
        }
        across++;
    }
    return across;
}

/* All lines in one panel; heat maps keep theirs. */
static void overlay_panels(struct layout *layout)
{
    struct chart_panel lines = {.count = 0};
    int kept = 0, before = layout->panel_count;

    for (int i = 0; i < layout->trace_count; i++) {
        if (!layout->trace[i].bins) {
            add_to_panel(&lines, &layout->trace[i]);
        }
    }
    for (int i = 0; i < before; i++) {
        if (layout->panel[i].trace[0]->bins) {
            layout->panel[kept++] = layout->panel[i];
        }
    }
    if (lines.count > 0) {
        lines.own_scales = before - kept > 1;
        layout->panel[kept++] = lines;
    }
    layout->panel_count = kept;
}

static void place_panels(struct layout *layout, int rows, int cols)
{
    int across = choose_columns(layout, rows, cols);

    if (across == 1 && layout->panel_count > 1 &&
        rows - 1 - lines_of(layout) < LEAST_PLOT * layout->panel_count) {
        overlay_panels(layout);
    }
    int down = (layout->panel_count + across - 1) / across;
    for (int i = 0; i < layout->panel_count; i++) {
        struct chart_panel *panel = &layout->panel[i];
        int line = i / across, at = i % across, left = rows - 1;

        panel->x_labels = i + across >= layout->panel_count;
        panel->row = left * line / down;
        panel->rows = left * (line + 1) / down - panel->row + (panel->x_labels ? 1 : 0);
        panel->col = cols * at / across + (at > 0 ? 2 : 0);
        panel->cols = cols * (at + 1) / across - panel->col;
    }
}

static void give_letters(struct layout *layout)
{
    for (int i = 0; i < layout->panel_count; i++) {
        for (int k = 0; k < layout->panel[i].count && layout->panel[i].count > 1; k++) {
            layout->panel[i].trace[k]->letter =
                (char)('a' + (layout->panel[i].trace[k] - layout->trace));
        }
    }
}

static void draw_panels(struct layout *layout, const struct chart_options *options,
                        struct chart_picture *picture)
{
    int gutter = 4, margin = 0;

    for (int i = 0; i < layout->panel_count; i++) {
        int wide = chart_panel_prepare(&layout->panel[i], options);
        gutter = wide > gutter ? wide : gutter;
        margin = layout->panel[i].count > 1 ? 2 : margin;
    }
    for (int i = 0; i < layout->panel_count; i++) {
        chart_panel_draw(&layout->panel[i], options, gutter, margin, picture);
    }
}

/* ---- all of it ---- */

static void choose_steps(const struct layout *layout, const struct chart_options *options,
                         struct chart_picture *picture)
{
    bool any = false;

    picture->from = options->from;
    picture->to = options->to;
    for (int i = 0; i < layout->trace_count; i++) {
        const struct chart_trace *trace = &layout->trace[i];
        if (trace->count == 0) {
            continue;
        }
        int64_t first = trace->raw[0].step, last = trace->raw[trace->count - 1].step;
        picture->from = !any || first < picture->from ? first : picture->from;
        picture->to = !any || last > picture->to ? last : picture->to;
        any = true;
    }
    if (!any && options->from > options->to) {
        picture->from = 0;
        picture->to = 1;
    } else if (!any && options->to == INT64_MAX) { /* it has no end to write on the axis */
        picture->to = picture->from;
    }
}

static int bring_into(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

bool chart_draw(const struct chart_curve *curves, size_t count, const struct chart_options *options,
                struct chart_picture *ret)
{
    struct layout layout = {.trace_count = 0};
    struct chart_picture picture = {
        .rows = bring_into(options->rows, CHART_MIN_ROWS, CHART_MAX_ROWS),
        .cols = bring_into(options->cols, CHART_MIN_COLS, CHART_MAX_COLS)};
    bool made = true;

    picture.cell = calloc((size_t)(picture.rows * picture.cols), sizeof(*picture.cell));
    for (size_t i = 0; i < count && i < CHART_MAX_CURVES && made; i++) {
        made = make_trace(&curves[i], options, &layout.trace[layout.trace_count++]);
    }
    made = made && picture.cell;
    if (made && layout.trace_count > 0) {
        choose_steps(&layout, options, &picture);
        choose_panels(&layout, options);
        place_panels(&layout, picture.rows, picture.cols);
        give_letters(&layout);
        draw_panels(&layout, options, &picture);
    }
    for (int i = 0; i < layout.trace_count; i++) {
        free(layout.trace[i].point);
    }
    if (!made) {
        free(picture.cell);
        return false;
    }
    *ret = picture;
    return true;
}

void chart_release(struct chart_picture *picture)
{
    free(picture->cell);
    *picture = (struct chart_picture){.rows = 0};
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* One panel: the titles of its curves, a plot with dots, and its axes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/chart/chart_impl.h"

#define LETTER_EVERY 24 /* columns: curves that share a panel are marked with their letters */

#define HEAT_COLS 64 /* that a heat map's title takes; on a narrower screen it has two lines */

/* Of a heat map: the name, and below it the numbers. */
static bool has_two_lines(const struct chart_panel *panel)
{
    return panel->trace[0]->bins && panel->cols < HEAT_COLS && panel->rows >= 8;
}

int chart_panel_titles(const struct chart_panel *panel)
{
    int room = panel->rows - 5;

    if (has_two_lines(panel)) {
        return 2;
    }

    return panel->count <= room ? panel->count : room < 1 ? 1 : room;
}

int chart_plot_rows(const struct chart_panel *panel)
{
    return panel->rows - chart_panel_titles(panel) - 1 - (panel->x_labels ? 1 : 0);
}

static struct chart_scale scale_for(const struct chart_panel *panel, int first, int last,
                                    const struct chart_options *options)
{
    double low = INFINITY, high = -INFINITY;
    bool log = options->log && !panel->trace[first]->bins;

    for (int i = first; i <= last; i++) {
        low = fmin(low, panel->trace[i]->low);
        high = fmax(high, panel->trace[i]->high);
    }
    if (low > high) {
        low = log ? 1 : 0;
        high = log ? 10 : 1;
    }
    return chart_scale_of(low, high, log, panel->trace[first]->curve->unit);
}

int chart_panel_prepare(struct chart_panel *panel, const struct chart_options *options)
{
    int rows = chart_plot_rows(panel), widest = 0;
    bool any = false;

    panel->scale = scale_for(panel, 0, panel->count - 1, options);
    for (int i = 0; i < panel->count; i++) {
        any = any || panel->trace[i]->low <= panel->trace[i]->high;
    }
    panel->ticks = panel->own_scales || !any
                       ? 0
                       : chart_ticks(&panel->scale, rows < 4 ? 1 : rows / 3 + 1, panel->tick);
    for (int i = 0; i < panel->ticks; i++) {
        int len = (int)strlen(panel->tick[i].label);
        widest = len > widest ? len : widest;
    }
    return widest;
}

/* ---- titles ---- */

/* The point at the step, or the last one before it. */
static const struct chart_point *point_at(const struct chart_point *point, size_t count,
                                          int64_t step)
{
    const struct chart_point *found = NULL;

    for (size_t i = 0; i < count && point[i].step <= step; i++) {
        found = &point[i];
    }
    return found;
}

static void add_value(const struct chart_trace *trace, const struct chart_options *options,
                      bool with_step, struct gd_buf *text)
{
    char value[48];
    enum chart_unit unit = trace->curve->unit;
    int64_t last = trace->raw[trace->count - 1].step;
    int64_t step = options->has_cursor ? options->cursor : last;
    const struct chart_point *raw = point_at(trace->raw, trace->count, step);

    if (!raw) {
        gd_buf_puts(text, with_step ? " no value yet" : " -");
        return;
    }
    chart_value_text(raw->value, unit, value, sizeof(value));
    gd_buf_printf(text, " %s", value);
    if (options->smooth > 0) {
        chart_value_text(trace->point[raw - trace->raw].value, unit, value, sizeof(value));
        gd_buf_printf(text, " (smoothed %g: %s)", options->smooth, value);
    }
    if (with_step) {
        gd_buf_printf(text, " at step %lld", (long long)raw->step);
    }
}

static void write_title(const struct chart_trace *trace, const struct chart_options *options,
                        struct gd_buf *text)
{
    char low[48], high[48];

    if (trace->count == 0) {
        gd_buf_puts(text, trace->curve->count > 0 ? ": no value in these steps" : ": no value yet");
        return;
    }
    if (trace->bins) {
        chart_heat_title(trace, options, true, text);
        return;
    }
    add_value(trace, options, true, text);
    gd_buf_puts(text, options->log ? ", log scale" : "");
    if (trace->bad > 0) {
        gd_buf_printf(text, ", %zu NaN/Inf from step %lld", trace->bad,
                      (long long)trace->first_bad);
    }
    if (trace->not_positive > 0) {
        gd_buf_printf(text, ", %zu <= 0 not shown", trace->not_positive);
    }
    if (trace->low <= trace->high) {
        chart_end_text(trace->low, trace->curve->unit, low, sizeof(low));
        chart_end_text(trace->high, trace->curve->unit, high, sizeof(high));
        if (trace->low == trace->high) {
            gd_buf_printf(text, ", always %s", low);
        } else {
            gd_buf_printf(text, ", %s to %s", low, high);
        }
    }
}

/* The name; a long one without its leading scopes. */
static int draw_name(const struct chart_trace *trace, const struct chart_options *options, int row,
                     int col, int end, struct chart_picture *picture)
{
    char letter[3] = {trace->letter, ' ', '\0'};
    const char *name = trace->curve->name, *slash = name;

    if (trace->letter) {
        col = chart_put_text(picture, row, col, end, letter, trace->ink, true);
    }
    while ((int)strlen(name) > (end - col) / 2 && (slash = strchr(name, '/'))) {
        name = slash + 1;
    }
    if (name != trace->curve->name) {
        col = chart_put_text(picture, row, col, end, ".../", trace->ink, true);
    }
    return chart_put_text(picture, row, col, end, name, trace->ink, options->utf8);
}

/* Several curves in one line: only their values. */
static void draw_short_titles(const struct chart_panel *panel, int first,
                              const struct chart_options *options, int row,
                              struct chart_picture *picture)
{
    int col = panel->col, end = panel->col + panel->cols;

    for (int i = first; i < panel->count; i++) {
        struct gd_buf text = GD_BUF_INIT(1024);
        const struct chart_trace *trace = panel->trace[i];

        col = draw_name(trace, options, row, col, end, picture);
        if (trace->count > 0) {
            add_value(trace, options, false, &text);
        }
        gd_buf_puts(&text, i + 1 < panel->count ? "  " : "");
        col = chart_put_text(picture, row, col, end, gd_buf_text(&text), CHART_PLAIN, true);
        gd_buf_deinit(&text);
    }
}

static void draw_two_lines(const struct chart_panel *panel, const struct chart_options *options,
                           struct chart_picture *picture)
{
    const struct chart_trace *trace = panel->trace[0];
    int end = panel->col + panel->cols;
    int col = draw_name(trace, options, panel->row, panel->col, end - 12, picture);

    for (int line = 0; line < 2 && trace->count > 0; line++) {
        struct gd_buf text = GD_BUF_INIT(1024);
        if (line == 0) {
            chart_heat_step(trace, options, &text);
        } else {
            chart_heat_title(trace, options, false, &text);
        }
        chart_put_text(picture, panel->row + line, line == 0 ? col : panel->col, end,
                       gd_buf_text(&text) + (line == 1), CHART_PLAIN, true);
        gd_buf_deinit(&text);
    }
    if (trace->count == 0) {
        chart_put_text(picture, panel->row + 1, panel->col, end, "no value in these steps",
                       CHART_PLAIN, true);
    }
}

static void draw_titles(const struct chart_panel *panel, const struct chart_options *options,
                        struct chart_picture *picture)
{
    int lines = has_two_lines(panel) ? 0 : chart_panel_titles(panel);
    int end = panel->col + panel->cols;

    for (int i = 0; i < lines; i++) {
        const struct chart_trace *trace = panel->trace[i];
        struct gd_buf text = GD_BUF_INIT(1024);
        int row = panel->row + i;

        if (i + 1 == lines && lines < panel->count) {
            draw_short_titles(panel, i, options, row, picture);
        } else {
            int col = draw_name(trace, options, row, panel->col, end, picture);
            write_title(trace, options, &text);
            chart_put_text(picture, row, col, end, gd_buf_text(&text), CHART_PLAIN, true);
        }
        gd_buf_deinit(&text);
    }
}

/* ---- dots ---- */

static void set_dot(struct chart_plot *plot, int x, int y, uint8_t ink)
{
    /* Unicode's numbers of the dots, from the top. */
    static const uint8_t braille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int row = plot->rows - 1 - y / plot->down, col = x / plot->across;
    int below = y % plot->down;

    if (x < 0 || y < 0 || row < 0 || col >= plot->cols) {
        return;
    }
    int at = row * plot->cols + col;
    int dot = plot->options->utf8 ? braille[3 - below][x % 2] : 1 << below;
    plot->dots[at] = (uint8_t)(plot->dots[at] | dot);
    plot->picture->cell[(plot->row + row) * plot->picture->cols + plot->col + col].ink = ink;
}

static int x_of(const struct chart_plot *plot, int64_t step)
{
    int last = plot->cols * plot->across - 1;

    if (plot->to <= plot->from) {
        return last / 2;
    }
    return (int)lround((double)(step - plot->from) / (double)(plot->to - plot->from) * last);
}

static int y_of(const struct chart_plot *plot, const struct chart_scale *scale, double value)
{
    return (int)lround(chart_scale_at(scale, value) * (plot->rows * plot->down - 1));
}

static void draw_line(struct chart_plot *plot, int x0, int y0, int x1, int y1, uint8_t ink)
{
    int wide = abs(x1 - x0), high = abs(y1 - y0), count = wide > high ? wide : high;

    for (int i = 0; i <= count; i++) {
        int x = count ? x0 + (int)lround((double)(x1 - x0) * i / count) : x0;
        int y = count ? y0 + (int)lround((double)(y1 - y0) * i / count) : y0;
        set_dot(plot, x, y, ink);
    }
}

static bool is_drawn(const struct chart_plot *plot, double value)
{
    return isfinite(value) && (!plot->options->log || value > 0);
}

/* A line from point to point: a column that several share spans all of them. */
static void draw_curve(struct chart_plot *plot, const struct chart_trace *trace,
                       const struct chart_scale *scale)
{
    bool joined = false;
    int x0 = 0, y0 = 0;

    for (size_t i = 0; i < trace->count; i++) {
        if (!is_drawn(plot, trace->point[i].value)) {
            joined = false;
            continue;
        }
        int x = x_of(plot, trace->point[i].step), y = y_of(plot, scale, trace->point[i].value);
        draw_line(plot, joined ? x0 : x, joined ? y0 : y, x, y, trace->ink);
        x0 = x;
        y0 = y;
        joined = true;
    }
}

/* What the dots of a cell look like. letter: of its curve, in ASCII. */
static void write_dots(const struct chart_plot *plot, uint8_t dots, char letter, char *glyph)
{
    static const char ascii[8] = {' ', '.', '-', ':', '\'', ':', '"', '|'};

    if (plot->options->utf8) {
        glyph[0] = (char)0xe2;
        glyph[1] = (char)(0xa0 | dots >> 6);
        glyph[2] = (char)(0x80 | (dots & 0x3f));
        glyph[3] = '\0';
    } else {
        glyph[0] = letter ? letter : ascii[dots & 7];
        glyph[1] = '\0';
    }
}

static void draw_dots(const struct chart_plot *plot, const struct chart_panel *panel)
{
    for (int i = 0; i < plot->rows * plot->cols; i++) {
        struct chart_cell *cell =
            &plot->picture->cell[(plot->row + i / plot->cols) * plot->picture->cols + plot->col +
                                 i % plot->cols];
        char letter = 0;

        for (int k = 0; k < panel->count; k++) {
            letter = panel->trace[k]->ink == cell->ink ? panel->trace[k]->letter : letter;
        }
        if (plot->dots[i]) {
            write_dots(plot, plot->dots[i], letter, cell->glyph);
        }
    }
}

/* ---- letters ---- */

/* Letters on the curves, so that no colour is needed to tell them apart. */
static void draw_letters(struct chart_plot *plot, const struct chart_trace *trace,
                         const struct chart_scale *scale, int number, int of)
{
    char letter[2] = {trace->letter, '\0'};
    int next = LETTER_EVERY * (2 * number + 1) / (2 * of);

    for (size_t i = 0; i < trace->count; i++) {
        int col = x_of(plot, trace->point[i].step) / plot->across;
        if (col < next || !is_drawn(plot, trace->point[i].value)) {
            continue;
        }
        int row = plot->rows - 1 - y_of(plot, scale, trace->point[i].value) / plot->down;
        chart_put(plot->picture, plot->row + row, plot->col + col, letter, trace->ink);
        next = col + LETTER_EVERY;
    }
}

/* Each curve's letter at its last value, in the margin. */
static void draw_end_letter(struct chart_plot *plot, const struct chart_trace *trace,
                            const struct chart_scale *scale, int margin)
{
    char letter[2] = {trace->letter, '\0'};
    size_t i = trace->count;

    while (i > 0 && !is_drawn(plot, trace->point[i - 1].value)) {
        i--;
    }
    if (i == 0) {
        return;
    }
    int row =
        plot->row + plot->rows - 1 - y_of(plot, scale, trace->point[i - 1].value) / plot->down;
    for (int col = plot->col + plot->cols; col < plot->col + plot->cols + margin; col++) {
        if (plot->picture->cell[row * plot->picture->cols + col].glyph[0] == '\0') {
            chart_put(plot->picture, row, col, letter, trace->ink);
            return;
        }
    }
}

/* ---- axes ---- */

static void draw_y_axis(const struct chart_plot *plot, const struct chart_panel *panel)
{
    bool utf8 = plot->options->utf8;
    int axis = plot->col - 1;

    for (int i = 0; i < plot->rows; i++) {
        chart_put(plot->picture, plot->row + i, axis, utf8 ? "│" : "|", CHART_DIM);
    }
    for (int i = 0; i < panel->ticks; i++) {
        const struct chart_tick *tick = &panel->tick[i];
        int row = plot->row + plot->rows - 1 - y_of(plot, &panel->scale, tick->value) / plot->down;
        int col = axis - (int)strlen(tick->label);

        chart_put(plot->picture, row, axis, utf8 ? "┤" : "+", CHART_DIM);
        chart_put_text(plot->picture, row, col > panel->col ? col : panel->col, axis, tick->label,
                       CHART_PLAIN, true);
    }
    if (panel->scale.unit_name[0] && panel->ticks > 0 && plot->rows > 1) { /* where no label is */
        for (int i = plot->rows - 1; i >= 0; i--) {
            int row = plot->row + i, len = (int)strlen(panel->scale.unit_name);
            if (plot->picture->cell[row * plot->picture->cols + axis - 1].glyph[0] == '\0' &&
                axis - len >= panel->col) {
                chart_put_text(plot->picture, row, axis - len, axis, panel->scale.unit_name,
                               CHART_DIM, true);
                return;
            }
        }
    }
}

static void draw_step_label(const struct chart_plot *plot, int row, int64_t step, int *free_from)
{
    char label[24];
    int len = snprintf(label, sizeof(label), "%lld", (long long)step);
    int at = plot->col + x_of(plot, step) / plot->across - len / 2;
    int end = plot->col + plot->cols;

    at = at + len > end ? end - len : at;
    if (at < *free_from) {
        return;
    }
    chart_put_text(plot->picture, row, at, end, label, CHART_PLAIN, true);
    *free_from = at + len + 1;
}

static void draw_x_axis(const struct chart_plot *plot, const struct chart_panel *panel)
{
    bool utf8 = plot->options->utf8;
    int64_t tick[CHART_MAX_TICKS];
    int row = plot->row + plot->rows, free_from = panel->col + 5;
    int count =
        chart_step_ticks(plot->from, plot->to, plot->cols / 10 < 1 ? 1 : plot->cols / 10, tick);

    chart_put(plot->picture, row, plot->col - 1, utf8 ? "└" : "+", CHART_DIM);
    for (int i = 0; i < plot->cols; i++) {
        chart_put(plot->picture, row, plot->col + i, utf8 ? "─" : "-", CHART_DIM);
    }
    for (int i = 0; i < count; i++) {
        chart_put(plot->picture, row, plot->col + x_of(plot, tick[i]) / plot->across,
                  utf8 ? "┬" : "+", CHART_DIM);
        if (panel->x_labels) {
            draw_step_label(plot, row + 1, tick[i], &free_from);
        }
    }
    if (panel->x_labels) {
        chart_put_text(plot->picture, row + 1, panel->col, panel->col + 4, "step", CHART_DIM, true);
    }
}

/* Not over the shades of a heat map, which say more. */
static void put_cursor(const struct chart_plot *plot, int row, int col)
{
    const struct chart_cell *cell = &plot->picture->cell[row * plot->picture->cols + col];

    if (!cell->glyph[0]) {
        chart_put(plot->picture, row, col, plot->options->utf8 ? "┊" : ":", CHART_CURSOR);
    }
}

/* NaN, Inf and marked steps on the axis; the cursor through the plot. */
static void draw_marks(const struct chart_plot *plot, const struct chart_panel *panel)
{
    const struct chart_options *options = plot->options;
    int row = plot->row + plot->rows;

    for (size_t i = 0; i < options->marked_count; i++) {
        if (options->marked[i] >= plot->from && options->marked[i] <= plot->to) {
            int col = plot->col + x_of(plot, options->marked[i]) / plot->across;
            chart_put(plot->picture, row, col, options->utf8 ? "▲" : "^", CHART_MARKED);
        }
    }
    for (int k = 0; k < panel->count; k++) {
        const struct chart_trace *trace = panel->trace[k];
        for (size_t i = 0; i < trace->count; i++) {
            if (trace->bins ? trace->bins[i].nan || trace->bins[i].inf
                            : !isfinite(trace->raw[i].value)) {
                int col = plot->col + x_of(plot, trace->raw[i].step) / plot->across;
                chart_put(plot->picture, row, col, options->utf8 ? "×" : "!", CHART_BAD);
            }
        }
    }
    if (options->has_cursor && options->cursor >= plot->from && options->cursor <= plot->to) {
        int col = plot->col + x_of(plot, options->cursor) / plot->across;
        for (int i = 0; i < plot->rows; i++) {
            if (!plot->dots[i * plot->cols + col - plot->col]) {
                put_cursor(plot, plot->row + i, col);
            }
        }
    }
}

void chart_panel_draw(struct chart_panel *panel, const struct chart_options *options, int gutter,
                      int margin, struct chart_picture *picture)
{
    int titles = chart_panel_titles(panel);
    struct chart_plot plot = {.picture = picture,
                              .options = options,
                              .row = panel->row + titles,
                              .col = panel->col + gutter + 1,
                              .rows = chart_plot_rows(panel),
                              .cols = panel->cols - gutter - 1 - margin,
                              .across = options->utf8 ? 2 : 1,
                              .down = options->utf8 ? 4 : 3,
                              .from = picture->from,
                              .to = picture->to};

    draw_titles(panel, options, picture);
    if (has_two_lines(panel)) {
        draw_two_lines(panel, options, picture);
    }
    if (plot.rows < 1 || plot.cols < 1) {
        return;
    }
    plot.dots = calloc((size_t)plot.rows * (size_t)plot.cols, 1);
    if (!plot.dots) {
        return;
    }
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < panel->count; i++) {
            const struct chart_trace *trace = panel->trace[i];
            struct chart_scale scale =
                panel->own_scales ? scale_for(panel, i, i, options) : panel->scale;
            if (trace->bins) {
                if (pass == 0) {
                    chart_heat_draw(&plot, trace, &scale);
                }
            } else if (pass == 0) {
                draw_curve(&plot, trace, &scale);
            } else if (pass == 1 && i == 0) {
                draw_dots(&plot, panel);
            } else if (pass == 2 && trace->letter) {
                draw_letters(&plot, trace, &scale, i, panel->count);
                draw_end_letter(&plot, trace, &scale, margin);
            }
        }
    }
    draw_y_axis(&plot, panel);
    draw_x_axis(&plot, panel);
    draw_marks(&plot, panel);
    picture->plot_cols = plot.cols;
    free(plot.dots);
}

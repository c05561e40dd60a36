// SPDX-License-Identifier: GPL-3.0-or-later
/* Histograms over steps: the shades of a panel, and what its title says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/chart/chart_impl.h"

#define LOG_DECADES 4 /* of the shares that a logarithmic scale of shades tells apart */

uint64_t chart_bins_count(const struct chart_bins *bins)
{
    uint64_t count = 0;

    for (int i = 0; i < CHART_BINS; i++) {
        count += bins->bin[i];
    }
    return count;
}

double chart_bins_edge(const struct chart_bins *bins, double bin)
{
    double at = bin / CHART_BINS;

    return bins->low * (1 - at) + bins->high * at;
}

double chart_bins_quantile(const struct chart_bins *bins, double part)
{
    double wanted = part * (double)chart_bins_count(bins), below = 0;

    for (int i = 0; i < CHART_BINS; i++) {
        double here = (double)bins->bin[i];
        if (here > 0 && below + here >= wanted) {
            return chart_bins_edge(bins, i + (wanted - below) / here);
        }
        below += here;
    }
    return NAN;
}

/* ---- shades ---- */

struct shades { /* of each cell of a plot, by column */
    double *share;
    double *weight; /* of each column: the steps in it */
};

/* Adds one step to a column: the share of its elements in each row. Inside a bin they are taken to
 * be spread evenly. */
static void add_step(const struct chart_plot *plot, const struct chart_bins *bins,
                     const struct chart_scale *scale, double *share)
{
    double low = chart_scale_at(scale, bins->low) * plot->rows;
    double high = chart_scale_at(scale, bins->high) * plot->rows;
    double count = (double)chart_bins_count(bins), each = (high - low) / CHART_BINS;

    for (int i = 0; i < CHART_BINS; i++) {
        double from = low + each * i, to = low + each * (i + 1);
        int row = (int)from;
        if (bins->bin[i] == 0) {
            continue;
        }
        double part = (double)bins->bin[i] / count;
        row = row < plot->rows ? row : plot->rows - 1;
        if (!(each > 0)) {
            share[row] += part;
            continue;
        }
        for (; row < plot->rows && row < to; row++) {
            double inside = fmin(to, row + 1) - fmax(from, row);
            share[row] += inside > 0 ? part * inside / each : 0;
        }
    }
}

static int column_of(const struct chart_plot *plot, double step)
{
    double span = (double)(plot->to - plot->from);
    int last = plot->cols * plot->across - 1;

    return (int)lround(span > 0 ? (step - (double)plot->from) / span * last : last / 2) /
           plot->across;
}

/* The fewest steps between two histograms: where more are between two, some are missing, and the
 * gap shows. */
static int64_t spacing_of(const struct chart_trace *trace)
{
    int64_t least = INT64_MAX;

    for (size_t i = 1; i < trace->count; i++) {
        int64_t between = trace->raw[i].step - trace->raw[i - 1].step;
        least = between > 0 && between < least ? between : least;
    }
    return least == INT64_MAX ? 1 : least;
}

/* The columns of a histogram: half of the way to its neighbours, but none of theirs. */
static void columns_of(const struct chart_plot *plot, const struct chart_trace *trace, size_t i,
                       double half, int *first, int *last)
{
    double step = (double)trace->raw[i].step;
    int at = column_of(plot, step);

    *first = column_of(plot, step - half);
    *last = column_of(plot, step + half);
    if (i > 0 && *first <= column_of(plot, (double)trace->raw[i - 1].step)) {
        *first = column_of(plot, (double)trace->raw[i - 1].step) + 1;
    }
    if (i + 1 < trace->count && *last >= column_of(plot, (double)trace->raw[i + 1].step)) {
        *last = column_of(plot, (double)trace->raw[i + 1].step) - 1;
    }
    *first = *first > at ? at : *first < 0 ? 0 : *first;
    *last = *last < at ? at : *last >= plot->cols ? plot->cols - 1 : *last;
}

static void add_steps(const struct chart_plot *plot, const struct chart_trace *trace,
                      const struct chart_scale *scale, struct shades *shades)
{
    double half = (double)spacing_of(trace) / 2;

    for (size_t i = 0; i < trace->count; i++) {
        const struct chart_bins *bins = &trace->bins[i];
        int first, last;
        columns_of(plot, trace, i, half, &first, &last);
        for (int col = first; col <= last && bins->low <= bins->high; col++) {
            add_step(plot, bins, scale, &shades->share[col * plot->rows]);
            shades->weight[col]++;
        }
    }
}

static double peak_of(const struct chart_plot *plot, const struct shades *shades)
{
    double peak = 0;

    for (int col = 0; col < plot->cols; col++) {
        for (int row = 0; row < plot->rows && shades->weight[col] > 0; row++) {
            peak = fmax(peak, shades->share[col * plot->rows + row] / shades->weight[col]);
        }
    }
    return peak;
}

static void put_shade(const struct chart_plot *plot, int row, int col, double part)
{
    static const char *const blocks[] = {"░", "▒", "▓", "█"};
    static const char *const ascii[] = {".", ":", "-", "=", "+", "*", "#", "@"};
    bool log = plot->options->log;
    int level = (int)((log ? 1 + log10(part) / LOG_DECADES : part) * CHART_HEATS);

    level = level < 0 ? 0 : level >= CHART_HEATS ? CHART_HEATS - 1 : level;
    chart_put(plot->picture, plot->row + plot->rows - 1 - row, plot->col + col,
              plot->options->utf8 ? blocks[level * 4 / CHART_HEATS]
                                  : ascii[level * 8 / CHART_HEATS],
              (uint8_t)(CHART_HEAT0 + level));
}

static void put_shades(const struct chart_plot *plot, const struct shades *shades)
{
    double peak = peak_of(plot, shades);

    for (int col = 0; col < plot->cols; col++) {
        for (int row = 0; row < plot->rows && shades->weight[col] > 0; row++) {
            double share = shades->share[col * plot->rows + row] / shades->weight[col];
            if (share > 0) {
                put_shade(plot, row, col, share / peak);
            }
        }
    }
}

void chart_heat_draw(const struct chart_plot *plot, const struct chart_trace *trace,
                     const struct chart_scale *scale)
{
    size_t cells = (size_t)plot->rows * (size_t)plot->cols;
    struct shades shades = {.share = calloc(cells, sizeof(double)),
                            .weight = calloc((size_t)plot->cols, sizeof(double))};

    if (shades.share && shades.weight) {
        add_steps(plot, trace, scale, &shades);
        put_shades(plot, &shades);
    }
    free(shades.share);
    free(shades.weight);
}

/* ---- the title ---- */

static void add_nonfinite(const struct chart_bins *bins, struct gd_buf *text)
{
    if (bins->nan > 0) {
        gd_buf_printf(text, ", %llu NaN", (unsigned long long)bins->nan);
    }
    if (bins->inf > 0) {
        gd_buf_printf(text, ", %llu Inf", (unsigned long long)bins->inf);
    }
}

/* The last histogram up to the cursor, or of all; NULL: none. */
static const struct chart_bins *shown_bins(const struct chart_trace *trace,
                                           const struct chart_options *options, int64_t *step)
{
    const struct chart_bins *found = NULL;

    for (size_t i = 0; i < trace->count; i++) {
        if (!options->has_cursor || trace->raw[i].step <= options->cursor) {
            found = &trace->bins[i];
            *step = trace->raw[i].step;
        }
    }
    return found;
}

void chart_heat_step(const struct chart_trace *trace, const struct chart_options *options,
                     struct gd_buf *text)
{
    int64_t step;

    if (shown_bins(trace, options, &step)) {
        gd_buf_printf(text, " at step %lld", (long long)step);
    }
}

void chart_heat_title(const struct chart_trace *trace, const struct chart_options *options,
                      bool with_step, struct gd_buf *text)
{
    int64_t step;
    const struct chart_bins *bins = shown_bins(trace, options, &step);
    size_t bad = 0, first = 0;

    if (!bins) {
        gd_buf_puts(text, " no value yet");
        return;
    }
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->bins[i].nan || trace->bins[i].inf) {
            first = bad++ == 0 ? i : first;
        }
    }
    if (bins->low <= bins->high) {
        gd_buf_printf(text, " %.4g to %.4g, median ~%.3g", bins->low, bins->high,
                      chart_bins_quantile(bins, 0.5));
    } else {
        gd_buf_puts(text, " no finite element");
    }
    if (with_step) {
        chart_heat_step(trace, options, text);
    }
    add_nonfinite(bins, text);
    if (bad > 0) {
        gd_buf_puts(text, bins->nan || bins->inf ? " (" : ", NaN/Inf in ");
        gd_buf_printf(text, "%zu step%s from %lld%s", bad, bad == 1 ? "" : "s",
                      (long long)trace->raw[first].step, bins->nan || bins->inf ? ")" : "");
    }
    gd_buf_puts(text, options->log ? ", log shades" : "");
}

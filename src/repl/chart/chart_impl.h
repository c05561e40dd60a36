// SPDX-License-Identifier: GPL-3.0-or-later
/* The inside of a chart: prepared curves, scales and panels. */
#ifndef GD_REPL_CHART_IMPL_H
#define GD_REPL_CHART_IMPL_H

#include "repl/chart/chart.h"

#define CHART_MAX_TICKS 32
#define CHART_LABEL     24

struct chart_trace { /* a curve as it is drawn */
    const struct chart_curve *curve;
    struct chart_point *point; /* in the range, smoothed; owned */
    const struct chart_point *raw;
    const struct chart_bins *bins; /* of each point; NULL: a line */
    size_t count;
    double low, high; /* of what is drawn; low > high: nothing is */
    size_t bad, not_positive;
    int64_t first_bad;
    char letter; /* 'a', ...; 0: it is alone in its panel */
    uint8_t ink;
};

struct chart_scale {
    double low, high; /* of the values; of their logarithms when log */
    bool log;
    enum chart_unit unit;
    double per;            /* values are shown divided by this, */
    const char *unit_name; /* and in this unit; "": none */
};
struct chart_tick {
    double value;
    char label[CHART_LABEL];
};

/* Spans low to high, which are widened if they are equal. */
struct chart_scale chart_scale_of(double low, double high, bool log, enum chart_unit unit);
/* 0 at the lower end, 1 at the upper one. */
double chart_scale_at(const struct chart_scale *scale, double value);
/* At most `most` round values, or the two ends. Returns how many. */
int chart_ticks(const struct chart_scale *scale, int most, struct chart_tick *ret);
/* Round steps. */
int chart_step_ticks(int64_t from, int64_t to, int most, int64_t *ret);

/* ---- cells ---- */

void chart_put(struct chart_picture *picture, int row, int col, const char *glyph, uint8_t ink);
/* Returns the column after the text, which is cut at `end`. */
int chart_put_text(struct chart_picture *picture, int row, int col, int end, const char *text,
                   uint8_t ink, bool utf8);

/* ---- panels ---- */

struct chart_panel {
    struct chart_trace *trace[CHART_MAX_CURVES];
    int count;
    bool own_scales; /* of each curve: no ticks */
    bool x_labels;   /* below it */
    int row, col, rows, cols;
    struct chart_scale scale;
    struct chart_tick tick[CHART_MAX_TICKS];
    int ticks;
};
/* Chooses the scale and ticks; returns the columns that the labels take. */
int chart_panel_prepare(struct chart_panel *panel, const struct chart_options *options);
/* gutter: columns of the labels; margin: columns for letters on the right. */
void chart_panel_draw(struct chart_panel *panel, const struct chart_options *options, int gutter,
                      int margin, struct chart_picture *picture);
int chart_panel_titles(const struct chart_panel *panel); /* lines */
int chart_plot_rows(const struct chart_panel *panel);

struct chart_plot { /* where the dots go */
    struct chart_picture *picture;
    const struct chart_options *options;
    int row, col, rows, cols;
    int across, down; /* dots per cell */
    uint8_t *dots;    /* of each cell */
    int64_t from, to;
};

/* ---- heat maps ---- */

void chart_heat_draw(const struct chart_plot *plot, const struct chart_trace *trace,
                     const struct chart_scale *scale);
/* " -0.5 to 0.6, median ~0.01 at step 7, 3 NaN, 1 Inf"; " at step 7" alone, or left out. */
struct gd_buf;
void chart_heat_step(const struct chart_trace *trace, const struct chart_options *options,
                     struct gd_buf *text);
void chart_heat_title(const struct chart_trace *trace, const struct chart_options *options,
                      bool with_step, struct gd_buf *text);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Curves over steps as a picture of character cells, for the prompt and the panes.
 *
 * Curves of similar range share a panel and its scale; others have panels of their own above or
 * beside each other, or, where there is no room for that, one panel in which each has its own
 * scale. The title of each curve says its value, its range, and what the picture cannot show. Where
 * several points share a column, it spans from the lowest to the highest. A curve with histograms
 * is a heat map in a panel of its own: each row of a column is shaded by the share of the elements
 * in it. NaN and Inf are marked at their step on the axis. One thread; nothing is kept between
 * calls.
 */
#ifndef GD_REPL_CHART_H
#define GD_REPL_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHART_MAX_CURVES 8
#define CHART_MAX_ROWS   200
#define CHART_MAX_COLS   1000
#define CHART_MIN_ROWS   4
#define CHART_MIN_COLS   16

enum chart_unit {
    CHART_NUMBER,
    CHART_BYTES,
    CHART_SECONDS,
    CHART_PERCENT,
    CHART_UNITS,
};

struct chart_point {
    int64_t step;
    double value;
};
#define CHART_BINS 40
struct chart_bins {   /* the elements of a tensor at one step */
    double low, high; /* of the finite ones; low > high: there is none */
    uint64_t bin[CHART_BINS];
    uint64_t nan, inf;
};
struct chart_curve {
    const char *name;
    enum chart_unit unit;
    const struct chart_point *point; /* by step; with bins: the medians */
    const struct chart_bins *bins;   /* of each point; NULL: a line */
    size_t count;
};

struct chart_options {
    int rows, cols; /* brought into the limits above */
    bool utf8;      /* braille dots; otherwise ASCII */
    bool log;       /* logarithmic scale; values <= 0 are left out and counted. Of bins: shades */
    bool shared;    /* all curves in one panel of one scale */
    /* Exponential moving average, 0 <= smooth < 1, with the correction for its start; 0: none. */
    double smooth;
    int64_t from, to; /* steps, both included; from > to: all that there are */
    bool has_cursor;
    int64_t cursor;        /* step; titles show the values there */
    const int64_t *marked; /* steps to mark on the axis, such as those of hits */
    size_t marked_count;
};

enum chart_ink {
    CHART_PLAIN,
    CHART_DIM, /* axes */
    CHART_BAD, /* NaN and Inf */
    CHART_MARKED,
    CHART_CURSOR,
    CHART_COVERED,                  /* the second column of a wide character: nothing to print */
    CHART_CURVE0,                   /* ... CHART_CURVE0 + CHART_INKS - 1 */
    CHART_HEAT0 = CHART_CURVE0 + 6, /* ... CHART_HEAT0 + CHART_HEATS - 1: from few to many */
};
#define CHART_INKS  6
#define CHART_HEATS 16

struct chart_cell {
    char glyph[5]; /* "": a blank */
    uint8_t ink;
};
struct chart_picture {
    int rows, cols;
    struct chart_cell *cell; /* row by row */
    int64_t from, to;        /* the steps that it spans */
    int plot_cols;           /* columns of a panel's plot */
};

/* At most CHART_MAX_CURVES are drawn. False: out of memory. */
bool chart_draw(const struct chart_curve *curves, size_t count, const struct chart_options *options,
                struct chart_picture *ret);
void chart_release(struct chart_picture *picture);
/* The run of cells with one ink that begins at `col` of a row, as text; returns the column after
 * it. Blanks at the end of the row are left out: then, and at the end, the text is "". */
struct gd_buf;
int chart_run(const struct chart_picture *picture, int row, int col, struct gd_buf *text,
              enum chart_ink *ink);

/* How many finite elements there are. */
uint64_t chart_bins_count(const struct chart_bins *bins);
/* Where bin number `bin` begins, 0 to CHART_BINS; a fraction is inside the bin. */
double chart_bins_edge(const struct chart_bins *bins, double bin);
/* Where a part of the finite elements is below, 0 to 1, interpolated inside a bin; NaN: none is
 * finite. */
double chart_bins_quantile(const struct chart_bins *bins, double part);

/* The moving average that `smooth` shows: value[i] = (w * last + (1 - w) * x) / (1 - w^n). NaN and
 * Inf stay as they are and do not count. In place. */
void chart_smooth(struct chart_point *point, size_t count, double weight);
/* "0.3125", "1.25 GiB", "3.2 ms", "nan". */
void chart_value_text(double value, enum chart_unit unit, char *out, size_t size);
/* The same for an end of a range or an axis, where a number has four digits. */
void chart_end_text(double value, enum chart_unit unit, char *out, size_t size);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A row of figures as a line of small bars. Text comes out, ready to print; nothing is fetched.
 */
#ifndef GD_REPL_SPARK_H
#define GD_REPL_SPARK_H

#include "base/buf.h"

enum spark_mark {
    SPARK_VALUE,   /* value is finite */
    SPARK_MISSING, /* there is none: a blank */
    SPARK_BAD,     /* NaN or Inf: a cross, '!' in ASCII */
};
struct spark_point {
    enum spark_mark mark;
    double value;
};

#define SPARK_LEVELS 8

/* At most `width` columns, one for each point; with more points several share a column, which shows
 * the one furthest from the mean of all, or the cross when one of them is bad. The bars go from the
 * lowest to the highest value; equal values are bars of half height. */
void spark_draw(const struct spark_point *points, size_t count, size_t width, bool ascii,
                struct gd_buf *out);

#endif

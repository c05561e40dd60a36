// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A series of values as a line of small bars, ready to print.
 */
#ifndef GD_REPL_SPARK_H
#define GD_REPL_SPARK_H

#include "base/buf.h"

enum spark_mark {
    SPARK_VALUE,   /* value is finite */
    SPARK_MISSING, /* missing: a blank */
    SPARK_BAD,     /* NaN or Inf: a cross, '!' in ASCII */
};
struct spark_point {
    enum spark_mark mark;
    double value;
};

#define SPARK_LEVELS 8

/* At most `width` columns, one for each point. If several points share a column, it shows the one
 * furthest from the mean of all, or the cross if one of them is bad. The bars range from the lowest
 * to the highest value; equal values have half height. */
void spark_draw(const struct spark_point *points, size_t count, size_t width, bool ascii,
                struct gd_buf *out);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/spark.h"

#include <math.h>

struct scale {
    double low, high, mean;
};

static struct scale scale_of(const struct spark_point *points, size_t count)
{
    struct scale scale = {.low = INFINITY, .high = -INFINITY};
    size_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        if (points[i].mark != SPARK_VALUE) {
            continue;
        }
        scale.low = fmin(scale.low, points[i].value);
        scale.high = fmax(scale.high, points[i].value);
        scale.mean += (points[i].value - scale.mean) / (double)++seen;
    }
    return scale;
}

/* 0 ... SPARK_LEVELS - 1. Halves the values first: the span of two doubles may overflow. */
static size_t level_of(double value, const struct scale *scale)
{
    double span = scale->high / 2 - scale->low / 2;
    double part = (value / 2 - scale->low / 2) / span;

    if (!(span > 0) || !(part >= 0)) {
        return SPARK_LEVELS / 2 - 1;
    }
    return part >= 1 ? SPARK_LEVELS - 1 : (size_t)(part * SPARK_LEVELS);
}

static struct spark_point most_telling(const struct spark_point *points, size_t count,
                                       const struct scale *scale)
{
    struct spark_point best = {.mark = SPARK_MISSING};

    for (size_t i = 0; i < count; i++) {
        if (points[i].mark == SPARK_BAD) {
            return points[i];
        }
        if (points[i].mark == SPARK_VALUE &&
            (best.mark == SPARK_MISSING ||
             fabs(points[i].value - scale->mean) > fabs(best.value - scale->mean))) {
            best = points[i];
        }
    }
    return best;
}

static const char *glyph_of(const struct spark_point *point, const struct scale *scale, bool ascii)
{
    static const char *const bars[SPARK_LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ramp[SPARK_LEVELS] = {"_", ".", ":", "-", "=", "+", "*", "#"};

    if (point->mark == SPARK_MISSING) {
        return " ";
    }
    if (point->mark == SPARK_BAD) {
        return ascii ? "!" : "×";
    }
    return (ascii ? ramp : bars)[level_of(point->value, scale)];
}

void spark_draw(const struct spark_point *points, size_t count, size_t width, bool ascii,
                struct gd_buf *out)
{
    struct scale scale = scale_of(points, count);
    size_t columns = count < width ? count : width;

    for (size_t i = 0; i < columns; i++) {
        size_t from = count / columns * i + count % columns * i / columns;
        size_t to = count / columns * (i + 1) + count % columns * (i + 1) / columns;
        struct spark_point point = most_telling(points + from, to - from, &scale);

        gd_buf_puts(out, glyph_of(&point, &scale, ascii));
    }
}

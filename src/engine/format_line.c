// SPDX-License-Identifier: GPL-3.0-or-later
/* A tensor in one line, byte counts, and the header of .npy files. */
#include "engine/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

char *gd_format_bytes(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    /* 1023.95 would print as 1024.0. */
    while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    if (unit == 0 || value == floor(value)) {
        snprintf(out, size, "%.0f %s", value, units[unit]);
    } else {
        snprintf(out, size, "%.*f %s", value < 99.95 ? 1 : 0, value, units[unit]);
    }
    return out;
}

/* Integers in full as far as a double has them, other numbers with four digits. */
static void put_number(enum gd_dtype dtype, const char *name, double value, struct gd_buf *out)
{
    if (gd_dtype_is_int(dtype) && fabs(value) < 0x1p53 && value == floor(value)) {
        gd_buf_printf(out, " %s=%.0f", name, value);
    } else {
        gd_buf_printf(out, " %s=%.4g", name, value);
    }
}

/* Digits that distinguish neighbors of the type. */
static int digits_of(enum gd_dtype dtype)
{
    switch (dtype) {
    case GD_FLOAT16: return 5;
    case GD_BFLOAT16: return 4;
    case GD_FLOAT32:
    case GD_COMPLEX64: return 8;
    default: return 16;
    }
}

/* For statistics computed elsewhere: those that are known. */
static void put_known(bool is_complex, const struct gd_stats *stats, struct gd_buf *out)
{
    const struct {
        unsigned bit;
        const char *name;
        double value;
    } figures[] = {
        {GD_UNKNOWN_MIN, is_complex ? "|min|" : "min", stats->min},
        {GD_UNKNOWN_MAX, is_complex ? "|max|" : "max", stats->max},
        {GD_UNKNOWN_MEAN, is_complex ? "|mean|" : "mean", stats->mean},
        {GD_UNKNOWN_SUM_SQ, "norm", sqrt(stats->sum_sq)},
    };
    bool nothing = !(stats->unknown & (GD_UNKNOWN_MIN | GD_UNKNOWN_MAX)) && stats->max < stats->min;

    for (size_t i = 0; !nothing && i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (!(stats->unknown & figures[i].bit)) {
            gd_buf_printf(out, " %s=%.6g", figures[i].name, figures[i].value);
        }
    }
    if (!(stats->unknown & (GD_UNKNOWN_ZERO | GD_UNKNOWN_COUNT)) && stats->zero) {
        gd_buf_printf(out, " zeros=%" PRIu64, stats->zero);
    }
    gd_buf_puts(out, " (dumped)");
}

static void put_moments(enum gd_dtype dtype, const struct gd_stats *stats, struct gd_buf *out)
{
    bool is_complex = gd_dtype_is_complex(dtype);
    bool finite = stats->min <= stats->max;

    if (stats->unknown) {
        put_known(is_complex, stats, out);
        return;
    }
    if (!finite) {
        return;
    }
    if (stats->zero == stats->count) {
        gd_buf_puts(out, " all zero");
        return;
    }
    if (stats->count == 1) {
        gd_buf_printf(out, is_complex ? " |value|=%.*g" : " value=%.*g", digits_of(dtype),
                      stats->max);
        return;
    }
    /* The statistics of complex numbers are those of their magnitudes. */
    put_number(dtype, is_complex ? "|min|" : "min", stats->min, out);
    put_number(dtype, is_complex ? "|max|" : "max", stats->max, out);
    gd_buf_printf(out, is_complex ? " |mean|=%.4g std=%.4g" : " mean=%.4g std=%.4g", stats->mean,
                  stats->std);
    if (stats->zero) {
        double percent = 100.0 * (double)stats->zero / (double)stats->count;

        /* Nearly all is not all, and nearly none is not none. */
        gd_buf_printf(out, " zeros=%.*f%%", percent > 99.9 || percent < 0.1 ? 4 : 1, percent);
    }
}

void gd_format_histogram(const uint64_t *hist, size_t bins, bool utf8, struct gd_buf *out)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ramp[] = " .:-=+*%#";
    uint64_t most = 0;

    for (size_t i = 0; i < bins; i++) {
        most = hist[i] > most ? hist[i] : most;
    }
    if (most == 0) {
        return;
    }
    gd_buf_puts(out, " |");
    for (size_t i = 0; i < bins; i++) {
        /* A bin that is not empty shows something. */
        size_t level = (size_t)ceil((double)hist[i] / (double)most * 8);

        if (utf8) {
            gd_buf_puts(out, blocks[level]);
        } else {
            gd_buf_putc(out, ramp[level]);
        }
    }
    gd_buf_puts(out, "|");
}

bool gd_format_is_bound(const struct gd_stats *stats)
{
    return (stats->nan && (stats->unknown & GD_UNKNOWN_NAN)) ||
           ((stats->pos_inf || stats->neg_inf) && (stats->unknown & GD_UNKNOWN_INF));
}

static void put_count(const char *name, uint64_t count, bool bound, struct gd_buf *out)
{
    if (count) {
        gd_buf_printf(out, " %s!%s%" PRIu64, name, bound ? ">=" : "", count);
    }
}

int gd_format_summary(enum gd_dtype dtype, const struct gd_shape *shape,
                      const struct gd_stats *stats, const uint64_t *hist, size_t bins, bool utf8,
                      struct gd_buf *out)
{
    char text[32 * GD_MAX_RANK], bytes[32];
    size_t size = 0;

    gd_shape_bytes(shape, dtype, &size, NULL);
    gd_buf_printf(out, "%s %s", gd_dtype_name(dtype), gd_shape_text(shape, text, sizeof(text)));
    if (stats->count != 1 && !(stats->unknown & GD_UNKNOWN_COUNT)) {
        gd_buf_printf(out, " n=%" PRIu64, stats->count);
    }
    gd_buf_printf(out, " %s", gd_format_bytes(size, bytes, sizeof(bytes)));
    if (stats->count == 0 && !(stats->unknown & GD_UNKNOWN_COUNT)) {
        gd_buf_puts(out, " empty");
    } else if (dtype == GD_BOOL && !stats->unknown) {
        gd_buf_printf(out, " true=%" PRIu64 " false=%" PRIu64, stats->positive, stats->zero);
    } else {
        put_moments(dtype, stats, out);
    }
    put_count("NaN", stats->nan, (stats->unknown & GD_UNKNOWN_NAN) != 0, out);
    put_count("+Inf", stats->pos_inf, (stats->unknown & GD_UNKNOWN_INF) != 0, out);
    put_count("-Inf", stats->neg_inf, (stats->unknown & GD_UNKNOWN_INF) != 0, out);
    if (hist && dtype != GD_BOOL && stats->count > 1 && stats->min < stats->max) {
        gd_format_histogram(hist, bins, utf8, out);
    }
    return out->failed ? GD_ELIMIT : GD_OK;
}

int gd_npy_header(enum gd_dtype dtype, const struct gd_shape *shape, struct gd_buf *out,
                  struct gd_err *err)
{
    const char *descr = gd_dtype_descr(dtype);
    char text[32 * GD_MAX_RANK], dict[32 * GD_MAX_RANK + 128];
    size_t fixed = 10, len, total;

    if (!descr) {
        return gd_fail(err, GD_EUNSUPPORTED, "a .npy file cannot hold type %s",
                       gd_dtype_name(dtype));
    }
    if (gd_shape_count(shape) < 0) {
        return gd_fail(err, GD_EINVAL,
                       "a .npy file needs a shape with a countable number of elements");
    }
    int written =
        snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 descr, gd_shape_text(shape, text, sizeof(text)));
    len = (size_t)written;
    /* Magic, version, length, text, blanks and a newline: together a multiple of 64. */
    total = (fixed + len + 1 + 63) / 64 * 64;
    gd_buf_add(out, "\x93NUMPY\x01\x00", 8);
    gd_buf_putc(out, (char)((total - fixed) & 0xff));
    gd_buf_putc(out, (char)((total - fixed) >> 8));
    gd_buf_add(out, dict, len);
    gd_buf_fill(out, ' ', total - fixed - len - 1);
    gd_buf_putc(out, '\n');
    if (out->failed) {
        return gd_fail(err, GD_ELIMIT, "no room for the .npy header");
    }
    return GD_OK;
}

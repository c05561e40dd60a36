// SPDX-License-Identifier: GPL-3.0-or-later
/* Scales, their round values, and how numbers are written on them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "repl/chart/chart_impl.h"

struct unit_size {
    double size;
    const char *name;
};
/* From large to small. */
static const struct unit_size units[CHART_UNITS][6] = {
    [CHART_NUMBER] = {{1, ""}},
    [CHART_PERCENT] = {{1, "%"}},
    [CHART_BYTES] = {{1099511627776.0, "TiB"},
                     {1073741824.0, "GiB"},
                     {1048576.0, "MiB"},
                     {1024.0, "KiB"},
                     {1, "bytes"}},
    [CHART_SECONDS] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}},
};

static struct unit_size unit_for(double value, enum chart_unit unit)
{
    const struct unit_size *size = units[unit];

    while (size[1].name && fabs(value) < size->size) {
        size++;
    }
    return value != 0 ? *size : units[unit][0];
}

void chart_value_text(double value, enum chart_unit unit, char *out, size_t size)
{
    struct unit_size of = unit_for(value, unit);

    if (isnan(value)) {
        snprintf(out, size, "nan");
    } else if (isinf(value)) {
        snprintf(out, size, value > 0 ? "inf" : "-inf");
    } else {
        snprintf(out, size, "%.*g%s%s", of.name[0] ? 4 : 6, value / of.size, of.name[0] ? " " : "",
                 of.name);
    }
}

void chart_end_text(double value, enum chart_unit unit, char *out, size_t size)
{
    if (unit == CHART_NUMBER) {
        snprintf(out, size, "%.4g", value);
    } else {
        chart_value_text(value, unit, out, size);
    }
}

struct chart_scale chart_scale_of(double low, double high, bool log, enum chart_unit unit)
{
    struct unit_size size = unit_for(fmax(fabs(low), fabs(high)), unit);
    struct chart_scale scale = {.log = log, .unit = unit, .per = size.size, .unit_name = size.name};

    if (log) {
        low = log10(low);
        high = log10(high);
    }
    if (low == high) {
        double room = low != 0 ? fabs(low) / 10 : 1;
        low -= log ? 0.5 : room;
        high += log ? 0.5 : room;
    }
    scale.low = fmax(low, -DBL_MAX);
    scale.high = fmin(high, DBL_MAX);
    return scale;
}

/* Halves the values first: the span of two doubles may overflow. */
double chart_scale_at(const struct chart_scale *scale, double value)
{
    double at = scale->log ? log10(value) : value;
    double span = scale->high / 2 - scale->low / 2;
    double part = span > 0 ? (at / 2 - scale->low / 2) / span : 0.5;

    return part > 1 ? 1 : part > 0 ? part : 0;
}

/* The smallest of 1, 2, 5, 10, 20, ... that is not below. */
static double round_up(double value)
{
    double power = pow(10, floor(log10(value)));
    double part = value / power;

    return (part <= 1.0000001 ? 1 : part <= 2.0000001 ? 2 : part <= 5.0000001 ? 5 : 10) * power;
}

/* Digits that tell the multiples of `step` apart. */
static void write_label(double value, double step, char *out)
{
    int place = (int)floor(log10(step) + 1e-9);
    double size = fmax(fabs(value), step);

    if (value == 0) {
        snprintf(out, CHART_LABEL, "0");
    } else if (size < 1e6 && place >= -5) {
        snprintf(out, CHART_LABEL, "%.*f", place < 0 ? -place : 0, value);
    } else {
        int digits = (int)floor(log10(size) + 1e-9) - place + 1;
        snprintf(out, CHART_LABEL, "%.*g", digits < 1 ? 1 : digits > 8 ? 8 : digits, value);
    }
}

/* Multiples of the step between the ends. */
static int list_multiples(const struct chart_scale *scale, double low, double high, double step,
                          struct chart_tick *ret)
{
    int count = 0;
    double first = ceil(low / step - 1e-6), last = high / step + 1e-6;

    for (int i = 0; count < CHART_MAX_TICKS && first + i <= last; i++) {
        double value = (first + i) * step;
        if (!isfinite(value)) { /* just above the largest number */
            break;
        }
        value = fabs(value) < step * 1e-6 ? 0 : value;
        ret[count].value = value * scale->per;
        write_label(value, step, ret[count].label);
        count++;
    }
    return count;
}

static int list_linear(const struct chart_scale *scale, double low, double high, int most,
                       struct chart_tick *ret)
{
    double span = high / scale->per / 2 - low / scale->per / 2;

    for (int tries = most; tries <= most + 3 && span > 0 && isfinite(span); tries++) {
        double step = round_up(span / tries * 2);
        int count =
            step > 0 ? list_multiples(scale, low / scale->per, high / scale->per, step, ret) : 0;
        if (count >= 2 && count <= most + 1) {
            return count;
        }
    }
    return 0;
}

/* Powers of ten; between them also 2 and 5 times, if there is room. */
static int list_log(const struct chart_scale *scale, int most, struct chart_tick *ret)
{
    static const int between[] = {1, 2, 5};
    double span = scale->high - scale->low;
    int every = (int)ceil(span / (most > 0 ? most : 1)), parts = span * 3 <= most + 1 ? 3 : 1;
    int count = 0;

    every = every < 1 ? 1 : every;
    for (int power = (int)floor(scale->low); power <= scale->high + 1e-9; power++) {
        for (int i = 0; i < parts && power % every == 0 && count < CHART_MAX_TICKS; i++) {
            double value = between[i] * pow(10, power);
            double at = log10(value);
            if (at >= scale->low - 1e-9 && at <= scale->high + 1e-9) {
                ret[count].value = value;
                snprintf(ret[count++].label, CHART_LABEL, "%.3g", value / scale->per);
            }
        }
    }
    return count;
}

int chart_ticks(const struct chart_scale *scale, int most, struct chart_tick *ret)
{
    double low = scale->log ? pow(10, scale->low) : scale->low;
    double high = scale->log ? pow(10, scale->high) : scale->high;
    int count = 0;

    most = most < 1 ? 1 : most > CHART_MAX_TICKS / 2 ? CHART_MAX_TICKS / 2 : most;
    if (scale->log) {
        count = list_log(scale, most, ret);
    }
    if (count < 2) {
        count = list_linear(scale, low, high, most, ret);
    }
    if (count < 2) {
        ret[0].value = low;
        ret[1].value = high;
        snprintf(ret[0].label, CHART_LABEL, "%.3g", low / scale->per);
        snprintf(ret[1].label, CHART_LABEL, "%.3g", high / scale->per);
        count = 2;
    }
    return count;
}

int chart_step_ticks(int64_t from, int64_t to, int most, int64_t *ret)
{
    double step = to > from ? round_up((double)(to - from) / (most > 0 ? most : 1)) : 1;
    int64_t every = step < 1 ? 1 : step < 9e18 ? (int64_t)step : INT64_MAX;
    int64_t at = from - from % every; /* the multiple at `from` or next to it */
    int count = 0;

    while (at <= to && count < CHART_MAX_TICKS) {
        if (at >= from) {
            ret[count++] = at;
        }
        if (at > INT64_MAX - every) {
            break;
        }
        at += every;
    }
    if (count == 0) {
        ret[count++] = from;
    }
    return count;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The past of a metric, for expressions: its best values, how long ago they were, and the last
 * ones. One value per step; a step that is reported again replaces its value. Only finite values
 * can be the best; each report, also of NaN, counts. Out of memory, older values are forgotten.
 */
#ifndef GD_ENGINE_PAST_VALUES_H
#define GD_ENGINE_PAST_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GD_MAX_PAST 10000 /* values that are kept */

struct gd_past_best {
    double value;    /* NAN: none is finite */
    int64_t reports; /* since then */
};
struct gd_past_report {
    int64_t step;
    double value;
};
struct gd_past_values {
    int64_t reports, step; /* how many, and of which step the last one is */
    struct gd_past_best most, least;
    struct gd_past_best most_before, least_before; /* without the last one */
    struct gd_past_report *report;                 /* a ring when it is full */
    size_t count, cap, first;
};

void gd_past_values_add(struct gd_past_values *past, double value, int64_t step);
/* The mean of the last `count` ones. false: there are fewer. */
bool gd_past_values_mean(const struct gd_past_values *past, int64_t count, double *ret);
/* The value that is `back` before the last one; back < count. */
double gd_past_value(const struct gd_past_values *past, size_t back);
struct gd_past_report gd_past_report(const struct gd_past_values *past, size_t back);
void gd_past_values_free(struct gd_past_values *past);

#endif

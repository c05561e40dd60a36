// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watch/past_values.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"

static void note_best(struct gd_past_best *best, const struct gd_past_best *before, double value,
                      bool most)
{
    *best = *before;
    if (isfinite(value) &&
        (isnan(best->value) || (most ? value > best->value : value < best->value))) {
        *best = (struct gd_past_best){.value = value};
    } else {
        best->reports++;
    }
}

static void push_value(struct gd_past_values *past, double value, int64_t step)
{
    struct gd_past_report report = {.step = step, .value = value};

    if (past->count == GD_MAX_PAST) {
        past->report[past->first] = report;
        past->first = (past->first + 1) % GD_MAX_PAST;
    } else if (gd_grow_list(&past->report, past->count, &past->cap, sizeof(*past->report))) {
        past->report[past->count++] = report;
    } else {
        past->count = 0;
    }
}

/* The report that is `back` before the last one. */
static struct gd_past_report *report_at(const struct gd_past_values *past, size_t back)
{
    return &past->report[(past->first + past->count - 1 - back) % past->count];
}

double gd_past_value(const struct gd_past_values *past, size_t back)
{
    return report_at(past, back)->value;
}

struct gd_past_report gd_past_report(const struct gd_past_values *past, size_t back)
{
    return *report_at(past, back);
}

void gd_past_values_add(struct gd_past_values *past, double value, int64_t step)
{
    bool again = past->reports > 0 && step == past->step;

    if (past->reports == 0) {
        past->most = past->least = (struct gd_past_best){.value = NAN};
    }
    if (!again) {
        past->most_before = past->most;
        past->least_before = past->least;
        past->reports++;
        past->step = step;
        push_value(past, value, step);
    } else if (past->count > 0) {
        report_at(past, 0)->value = value;
    }
    note_best(&past->most, &past->most_before, value, true);
    note_best(&past->least, &past->least_before, value, false);
}

bool gd_past_values_mean(const struct gd_past_values *past, int64_t count, double *ret)
{
    double sum = 0;

    if (count < 1 || (size_t)count > past->count) {
        return false;
    }
    for (size_t i = 0; i < (size_t)count; i++) {
        sum += report_at(past, i)->value;
    }
    *ret = sum / (double)count;
    return true;
}

void gd_past_values_free(struct gd_past_values *past)
{
    free(past->report);
    *past = (struct gd_past_values){.reports = 0};
}

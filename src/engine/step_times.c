// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "engine/step_times.h"

const char *gd_time_name(enum gd_time part)
{
    static const char *const names[GD_TIMES] = {"data",      "forward", "backward",
                                                "optimizer", "rest",    "total"};
    return names[part];
}

void gd_past_times_add(struct gd_past_times *past, const struct gd_step_times *times)
{
    int64_t at = past->count++ % GD_RECENT_STEPS;
    for (int i = 0; i < GD_TIMES; i++) {
        double seconds = times->part[i];
        past->recent[i][at] = seconds;
        past->sum[i] = past->sum[i] < 0 || seconds < 0 ? -1 : past->sum[i] + seconds;
    }
}

double gd_past_times_mean(const struct gd_past_times *past, enum gd_time part)
{
    double sum = past->sum[part];
    return past->count == 0 || sum < 0 ? -1 : sum / (double)past->count;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double gd_past_times_median(const struct gd_past_times *past, enum gd_time part)
{
    double sorted[GD_RECENT_STEPS];
    size_t count = past->count < GD_RECENT_STEPS ? (size_t)past->count : GD_RECENT_STEPS;
    if (count == 0) {
        return -1;
    }
    memcpy(sorted, past->recent[part], count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), compare_seconds);
    return sorted[0] < 0 ? -1 : (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

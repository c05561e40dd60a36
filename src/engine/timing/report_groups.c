// SPDX-License-Identifier: GPL-3.0-or-later
/* Numbers of a report: over steps, and over operators that have something in common. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/timing/report.h"

/* ---- steps ----------------------------------------------------------------------------------- */

double gd_time_mean(const struct gd_time_report *report, enum gd_time part)
{
    return report->count == 0 || report->sum[part] < 0 ? -1
                                                       : report->sum[part] / (double)report->count;
}

int gd_time_recent(const struct gd_time_report *report, struct gd_time_step *ret, int most)
{
    int64_t kept = report->count < GD_TIME_STEPS ? report->count : GD_TIME_STEPS;
    int64_t count = kept < most ? kept : most;
    for (int64_t i = 0; i < count; i++) {
        ret[i] = report->recent[(report->count - count + i) % GD_TIME_STEPS];
    }
    return (int)count;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double find_quantile(const double *sorted, int count, double at)
{
    double place = at * (count - 1);
    int low = (int)place;
    int high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

static double value_of(const struct gd_time_step *step, enum gd_time_series series,
                       enum gd_time part)
{
    return series == GD_SERIES_TAIL   ? step->tail
           : series == GD_SERIES_COST ? step->cost
                                      : step->part[part];
}

struct gd_time_spread gd_time_spread_of(const struct gd_time_report *report,
                                        enum gd_time_series series, enum gd_time part)
{
    struct gd_time_spread spread = {.median = -1, .low = -1, .high = -1, .deviation = -1};
    double sorted[GD_TIME_STEPS];
    int64_t kept = report->count < GD_TIME_STEPS ? report->count : GD_TIME_STEPS;
    int64_t first = report->count > 1 && report->count <= GD_TIME_STEPS ? 1 : 0;
    bool plain = series == GD_SERIES_PART && report->count - first > report->timed_steps;
    for (int64_t i = first; i < kept; i++) {
        if (plain && report->recent[i].timed) {
            continue;
        }
        double value = value_of(&report->recent[i], series, part);
        if (value >= 0) {
            sorted[spread.count++] = value;
        } else if (series == GD_SERIES_PART) {
            spread.count = 0;
            return spread;
        }
    }
    if (spread.count == 0) {
        return spread;
    }
    qsort(sorted, (size_t)spread.count, sizeof(sorted[0]), compare_seconds);
    spread.median = find_quantile(sorted, spread.count, 0.5);
    spread.low = find_quantile(sorted, spread.count, 0.25);
    spread.high = find_quantile(sorted, spread.count, 0.75);
    for (int i = 0; i < spread.count; i++) {
        sorted[i] = fabs(sorted[i] - spread.median);
    }
    qsort(sorted, (size_t)spread.count, sizeof(sorted[0]), compare_seconds);
    spread.deviation = find_quantile(sorted, spread.count, 0.5);
    return spread;
}

void gd_time_measuring(const struct gd_time_report *report, double *each, double *share)
{
    double median = gd_time_spread_of(report, GD_SERIES_PART, GD_TIME_TOTAL).median;
    double all = report->sum[GD_TIME_TOTAL] - report->first.part[GD_TIME_TOTAL];
    *each = *share = -1;
    if (report->timed_steps > 0 && report->count - 1 > report->timed_steps && median > 0 &&
        all > 0) {
        double extra = report->timed_seconds / (double)report->timed_steps - median;
        *each = extra > 0 ? extra : 0;
        *share = *each * (double)report->timed_steps / all;
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

double gd_time_operator_seconds(const struct gd_time_report *report)
{
    double sum = 0;
    for (uint32_t i = 0; i < report->op_count; i++) {
        sum += report->op[i].seconds;
    }
    return sum;
}

static int compare_text(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a, b);
}

static int compare_tensors(const struct gd_time_operator *a, const struct gd_time_operator *b)
{
    int order = memcmp(a->in, b->in, sizeof(a->in));
    return order ? order : memcmp(&a->out, &b->out, sizeof(a->out));
}

static int compare_by(const struct gd_time_operator *a, const struct gd_time_operator *b,
                      enum gd_time_by by)
{
    int order;
    switch (by) {
    case GD_BY_MODULE: return compare_text(a->module, b->module);
    case GD_BY_TYPE: return compare_text(a->type, b->type);
    case GD_BY_SHAPE:
        order = compare_text(a->type, b->type);
        return order ? order : compare_tensors(a, b);
    default: return a < b ? -1 : a > b;
    }
}

struct sorting {
    const struct gd_time_operator *op;
    enum gd_time_by by;
};

static int compare_numbers(const void *a, const void *b, void *ctx)
{
    const struct sorting *sorting = ctx;
    const struct gd_time_operator *x = &sorting->op[*(const uint32_t *)a];
    const struct gd_time_operator *y = &sorting->op[*(const uint32_t *)b];
    int order = compare_by(x, y, sorting->by);
    return order                      ? order
           : x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1)
                                      : (x > y) - (x < y);
}

static int compare_groups(const void *a, const void *b)
{
    const struct gd_time_group *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1)
                                    : (x->first > y->first) - (x->first < y->first);
}

static void add_to_group(struct gd_time_group *group, const struct gd_time_operator *op)
{
    group->operators++;
    group->calls += op->calls;
    group->seconds += op->seconds;
    if (op->bytes > 0) {
        group->flops += (op->flops > 0 ? op->flops : 0) * (double)op->calls;
        group->bytes += op->bytes * (double)op->calls;
        group->known += op->seconds;
    }
}

static uint32_t fill_groups(const struct gd_time_report *report, enum gd_time_by by,
                            const uint32_t *number, struct gd_time_group *group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct gd_time_operator *op = &report->op[number[i]];
        if (i == 0 || compare_by(op, &report->op[number[i - 1]], by) != 0) {
            group[count++] =
                (struct gd_time_group){.key = by == GD_BY_MODULE                    ? op->module
                                              : by == GD_BY_OPERATOR && op->name[0] ? op->name
                                                                                    : op->type,
                                       .first = number[i]};
        }
        add_to_group(&group[count - 1], op);
    }
    return count;
}

int gd_time_group_by(const struct gd_time_report *report, enum gd_time_by by,
                     struct gd_time_group **ret, uint32_t *count, struct gd_err *err)
{
    uint32_t *number = calloc(report->op_count ? report->op_count : 1, sizeof(*number));
    struct gd_time_group *group = calloc(report->op_count ? report->op_count : 1, sizeof(*group));
    if (!number || !group) {
        free(number);
        free(group);
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; i < report->op_count; i++) {
        number[i] = i;
    }
    struct sorting sorting = {report->op, by};
    qsort_r(number, report->op_count, sizeof(*number), compare_numbers, &sorting);
    *count = fill_groups(report, by, number, group);
    qsort(group, *count, sizeof(*group), compare_groups);
    free(number);
    *ret = group;
    return GD_OK;
}

static size_t add_tensor_text(const struct gd_time_tensor *tensor, enum gd_dtype before, char *out,
                              size_t size)
{
    struct gd_shape shape = {.rank = tensor->rank};
    char dims[160];
    memcpy(shape.dim, tensor->dim, sizeof(tensor->dim));
    int written =
        snprintf(out, size, "%s%s%s", tensor->dtype == before ? "" : gd_dtype_name(tensor->dtype),
                 tensor->dtype == before ? "" : " ",
                 tensor->rank < 0 ? "?" : gd_shape_text(&shape, dims, sizeof(dims)));
    return written < 0 ? 0 : (size_t)written < size ? (size_t)written : size - 1;
}

char *gd_time_shape_text(const struct gd_time_operator *op, char *out, size_t size)
{
    size_t used = 0;
    enum gd_dtype before = GD_DT_COUNT;
    out[0] = '\0';
    for (int i = 0; i < op->in_count; i++) {
        if (op->in[i].rank < 0 || (op->in[i].rank == 0 && i > 0)) {
            continue;
        }
        if (used > 0 && used + 4 < size) {
            memcpy(out + used, " x ", 4);
            used += 3;
        }
        used += add_tensor_text(&op->in[i], before, out + used, size - used);
        before = op->in[i].dtype;
    }
    if (used == 0 && op->out.dtype != GD_DT_NONE && op->out.rank >= 0) {
        add_tensor_text(&op->out, before, out, size);
    }
    return out;
}

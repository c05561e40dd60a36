// SPDX-License-Identifier: MIT
/* Metrics of regressions: the elements of outputs and labels, and sums over each column. */
#include <math.h>
#include <stdlib.h>

#include "base/metric_impl.h"

#define MAX_COLUMNS (1 << 20)

/* Several columns: (samples, ..., columns). */
static int64_t columns_of(const struct gd_metric *m, const struct gd_tensor *labels)
{
    const struct gd_shape *shape = &labels->shape;
    return m->spec.kind != GD_METRIC_R2 || shape->rank < 2 ? 1 : shape->dim[shape->rank - 1];
}

static void add_element(struct metric_column *c, double output, double label)
{
    double difference = label - output;
    c->shift = c->count == 0 ? label : c->shift;
    double moved = label - c->shift;
    c->sum += moved;
    c->sum_sq += moved * moved;
    c->squares += difference * difference;
    c->absolutes += fabs(difference);
    c->count++;
}

int metric_check_values(const struct gd_metric *m, const struct gd_tensor *outputs,
                        const struct gd_tensor *labels, int64_t *ret, struct gd_err *err)
{
    int64_t columns = columns_of(m, labels);
    if (gd_tensor_count(outputs) != gd_tensor_count(labels)) {
        return metric_unequal(outputs, labels, err);
    }
    if (gd_dtype_is_complex(outputs->dtype) || gd_dtype_is_complex(labels->dtype)) {
        return gd_fail(err, GD_EINVAL, "%s is for real numbers, not for complex ones",
                       gd_metric_kind_name(m->spec.kind));
    }
    if (columns > MAX_COLUMNS || (m->columns && columns != m->column_count)) {
        return gd_fail(err, GD_EINVAL, "labels of %lld columns%s", (long long)columns,
                       columns > MAX_COLUMNS ? ": too many" : " after another number of columns");
    }
    *ret = columns;
    return GD_OK;
}

int metric_update_values(struct gd_metric *m, const struct gd_tensor *outputs,
                         const struct gd_tensor *labels, struct gd_err *err)
{
    int64_t count = gd_tensor_count(labels), columns;
    int rc = metric_check_values(m, outputs, labels, &columns, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!m->columns) {
        m->columns = calloc((size_t)(columns > 0 ? columns : 1), sizeof(*m->columns));
        m->column_count = columns;
    }
    if (!m->columns) {
        return gd_fail_nomem(err);
    }
    for (int64_t i = 0; i < count; i++) {
        double output = gd_tensor_get(outputs, i), label = gd_tensor_get(labels, i);
        m->counts.nan += isnan(output) || isnan(label) ? 1U : 0U;
        add_element(&m->columns[i % columns], output, label);
    }
    m->counts.samples += (uint64_t)count;
    m->rows += labels->shape.rank > 0 ? (uint64_t)labels->shape.dim[0] : 1;
    return GD_OK;
}

/* As r2_score: 1 for a perfect prediction of a constant, 0 for another one. */
static double r2_of(const struct metric_column *c)
{
    double n = (double)c->count, total = c->sum_sq - c->sum * c->sum / n;
    if (c->count < 2) {
        return NAN;
    }
    return isnan(c->squares) ? NAN : total > 0 ? 1 - c->squares / total : !(c->squares > 0);
}

double metric_values_result(const struct gd_metric *m)
{
    double sum = 0, count = 0;
    for (int64_t i = 0; i < m->column_count; i++) {
        const struct metric_column *c = &m->columns[i];
        sum += m->spec.kind == GD_METRIC_R2    ? r2_of(c)
               : m->spec.kind == GD_METRIC_MSE ? c->squares
                                               : c->absolutes;
        count += m->spec.kind == GD_METRIC_R2 ? 1 : (double)c->count;
    }
    return sum / (m->spec.per_sample && m->spec.kind != GD_METRIC_R2 ? (double)m->rows : count);
}

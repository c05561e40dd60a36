// SPDX-License-Identifier: MIT
/* The life of a metric, its batches and its numbers. What is computed is in metric_*.c. */
#include "base/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_impl.h"

int gd_metric_create(const struct gd_metric_spec *spec, struct gd_metric **ret, struct gd_err *err)
{
    struct gd_metric *m = calloc(1, sizeof(*m));
    int rc = m ? GD_OK : gd_fail_nomem(err);
    if (rc == GD_OK && spec->kind == GD_METRIC_CUSTOM) {
        rc = metric_program_create(spec, &m->program, err);
    }
    if (rc != GD_OK) {
        free(m);
        return rc;
    }
    m->spec = *spec;
    *ret = m;
    return GD_OK;
}

void gd_metric_clear(struct gd_metric *m)
{
    free(m->right);
    free(m->predicted);
    free(m->actual);
    free(m->matrix);
    free(m->columns);
    metric_auc_free(m);
    if (m->program) {
        metric_program_clear(m->program);
    }
    *m = (struct gd_metric){.spec = m->spec, .program = m->program};
}

void gd_metric_destroy(struct gd_metric *m)
{
    if (m) {
        gd_metric_clear(m);
        metric_program_destroy(m->program);
        free(m);
    }
}

const struct gd_metric_spec *gd_metric_spec(const struct gd_metric *m)
{
    return &m->spec;
}

const struct gd_metric_counts *gd_metric_counts(const struct gd_metric *m)
{
    return &m->counts;
}

int64_t gd_metric_classes(const struct gd_metric *m)
{
    return m->classes;
}

uint64_t gd_metric_cell(const struct gd_metric *m, int64_t row, int64_t column)
{
    bool inside = m->matrix && row >= 0 && row < m->classes && column >= 0 && column < m->classes;
    return inside ? m->matrix[row * m->class_room + column] : 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void add_elements(struct gd_metric *m, const struct gd_tensor *tensor)
{
    double sum = 0;
    int64_t count = gd_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++) {
        sum += gd_tensor_get(tensor, i);
    }
    if (count > 0) {
        gd_metric_add(m, sum / (double)count);
    }
}

void gd_metric_add(struct gd_metric *m, double value)
{
    m->sum += value;
    m->counts.nan += isnan(value) ? 1U : 0U;
    m->counts.samples++;
    m->counts.batches++;
}

static int update_custom(struct gd_metric *m, const struct gd_tensor *outputs,
                         const struct gd_tensor *labels, struct gd_err *err)
{
    int rc = metric_program_update(m->program, outputs, labels, err);
    if (rc == GD_OK) {
        const struct gd_shape *shape = &labels->shape;
        m->counts.samples += (uint64_t)(shape->rank > 0 ? shape->dim[0] : 1);
    }
    return rc;
}

int gd_metric_update(struct gd_metric *m, const struct gd_metric_pair *pair,
                     const struct gd_tensor *outputs, const struct gd_tensor *labels,
                     struct gd_err *err)
{
    struct metric_batch batch;
    int rc;
    switch (m->spec.kind) {
    case GD_METRIC_LOSS: add_elements(m, outputs); return GD_OK;
    case GD_METRIC_MSE:
    case GD_METRIC_MAE:
    case GD_METRIC_R2: rc = metric_update_values(m, outputs, labels, err); break;
    case GD_METRIC_CUSTOM: rc = update_custom(m, outputs, labels, err); break;
    case GD_METRIC_FILE:
        return gd_fail(err, GD_EUNSUPPORTED, "only Python can run %.200s", m->spec.file);
    default:
        rc = metric_batch_of(&m->spec, pair, outputs, labels, &batch, err);
        rc = rc != GD_OK                     ? rc
             : m->spec.kind == GD_METRIC_AUC ? metric_update_auc(m, &batch, err)
                                             : metric_update_classes(m, &batch, err);
        break;
    }
    m->counts.batches += rc == GD_OK ? 1U : 0U;
    return rc;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double main_number(const struct gd_metric *m)
{
    double samples = (double)m->counts.samples;
    switch (m->spec.kind) {
    case GD_METRIC_ACCURACY:
    case GD_METRIC_TOPK: return (double)m->correct / samples;
    case GD_METRIC_LOSS: return m->sum / samples;
    case GD_METRIC_PERPLEXITY: return exp(-m->sum / samples);
    case GD_METRIC_MSE:
    case GD_METRIC_MAE:
    case GD_METRIC_R2: return metric_values_result(m);
    case GD_METRIC_CUSTOM: return metric_program_result(m->program);
    case GD_METRIC_AUC: return metric_auc_result(m);
    default: return metric_average_value(m);
    }
}

static double number_of_class(const struct gd_metric *m, int64_t index)
{
    return m->spec.kind == GD_METRIC_AUC ? metric_auc_class(m, index)
                                         : metric_class_value(m, index);
}

static bool has_classes(enum gd_metric_kind kind)
{
    return kind == GD_METRIC_PRECISION || kind == GD_METRIC_RECALL || kind == GD_METRIC_F1 ||
           kind == GD_METRIC_AUC;
}

static void put_number(struct gd_metric_number *ret, size_t most, size_t at, double value,
                       const char *name, int64_t index)
{
    if (at < most) {
        char end[24] = "";
        if (index >= 0) {
            snprintf(end, sizeof(end), "_%" PRId64, index);
        }
        snprintf(ret[at].name, sizeof(ret[at].name), "%s%s", name, end);
        ret[at].value = value;
    }
}

size_t gd_metric_numbers(const struct gd_metric *m, struct gd_metric_number *ret, size_t most)
{
    const struct gd_metric_spec *spec = &m->spec;
    size_t count = 0;
    if (m->counts.samples == 0 || spec->kind == GD_METRIC_CONFUSION) {
        return 0;
    }
    if (has_classes(spec->kind) && spec->of_class >= 0) {
        put_number(ret, most, count++, number_of_class(m, spec->of_class), spec->name, -1);
    } else if (has_classes(spec->kind) && spec->average == GD_AVERAGE_NONE) {
        int64_t classes = spec->kind == GD_METRIC_AUC ? m->score_classes : m->classes;
        for (int64_t i = 0; i < classes; i++) {
            put_number(ret, most, count++, number_of_class(m, i), spec->name, i);
        }
    } else {
        put_number(ret, most, count++, main_number(m), spec->name, -1);
    }
    return count;
}

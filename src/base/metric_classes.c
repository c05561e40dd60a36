// SPDX-License-Identifier: MIT
/* Metrics of classes: their counts, and what is computed from them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_impl.h"

/* What mindspore.train.Perplexity takes for a probability of 0. */
#define LEAST_PROBABILITY 1e-10

/* ---- room ------------------------------------------------------------------------------------ */

bool metric_needs_classes(const struct gd_metric *m)
{
    return m->spec.kind == GD_METRIC_PRECISION || m->spec.kind == GD_METRIC_RECALL ||
           m->spec.kind == GD_METRIC_F1;
}

static uint64_t *make_wider(const uint64_t *old, int64_t old_side, int64_t side, bool matrix)
{
    uint64_t *made = calloc((size_t)(matrix ? side * side : side), sizeof(*made));
    for (int64_t row = 0; made && row < (matrix ? old_side : 1) && old; row++) {
        memcpy(made + row * side, old + row * old_side, (size_t)old_side * sizeof(*made));
    }
    return made;
}

int metric_need_classes(struct gd_metric *m, int64_t classes, struct gd_err *err)
{
    bool matrix = m->spec.kind == GD_METRIC_CONFUSION;
    if (matrix && classes > GD_METRIC_MAX_MATRIX) {
        return gd_fail(err, GD_ELIMIT, "a confusion matrix of %lld classes: at most %d are counted",
                       (long long)classes, GD_METRIC_MAX_MATRIX);
    }
    if (classes > m->class_room && (matrix || metric_needs_classes(m))) {
        uint64_t **lists[] = {&m->right, &m->predicted, &m->actual, &m->matrix};
        uint64_t *made[4] = {NULL, NULL, NULL, NULL};
        bool ok = true;
        for (int i = 0; i < 4; i++) {
            if ((i == 3) == matrix) {
                made[i] = make_wider(*lists[i], m->class_room, classes, matrix);
                ok = ok && made[i];
            }
        }
        for (int i = 0; i < 4; i++) {
            free(ok ? *lists[i] : made[i]);
            *lists[i] = ok ? made[i] : *lists[i];
        }
        if (!ok) {
            return gd_fail_nomem(err);
        }
        m->class_room = classes;
    }
    m->classes = classes > m->classes ? classes : m->classes;
    return GD_OK;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Whether the label is among the k greatest scores: of equal ones the first counts, and NaN is the
 * least, as in mindspore.train. */
static bool is_among(const double *scores, int64_t classes, int64_t label, int64_t k)
{
    int64_t above = 0;
    for (int64_t i = 0; i < classes && above < k; i++) {
        bool equal = !(scores[i] < scores[label]) && !(scores[i] > scores[label]) &&
                     !isnan(scores[i]) && !isnan(scores[label]);
        bool nans = isnan(scores[label]) && isnan(scores[i]);
        above += scores[i] > scores[label] || (isnan(scores[label]) && !isnan(scores[i])) ||
                 ((equal || nans) && i < label);
    }
    return above < k;
}

/* The logarithm of the label's probability. */
static double likelihood_of(const struct metric_batch *b, const struct gd_metric_spec *spec,
                            int64_t label, double threshold)
{
    double greatest = b->scores[0], sum = 0;
    if (b->axis < 0) { /* one output per label */
        double p = threshold > 0 || spec->probabilities ? b->scores[0] : NAN;
        double logit = label ? b->scores[0] : -b->scores[0];
        return isnan(p) ? -(fmax(-logit, 0) + log1p(exp(-fabs(logit))))
                        : log(fmax(label ? p : 1 - p, LEAST_PROBABILITY));
    }
    if (spec->probabilities) {
        return log(fmax(b->scores[label], LEAST_PROBABILITY));
    }
    for (int64_t i = 1; i < b->classes; i++) {
        greatest = b->scores[i] > greatest ? b->scores[i] : greatest;
    }
    for (int64_t i = 0; i < b->classes; i++) {
        sum += exp(b->scores[i] - greatest);
    }
    return b->scores[label] - greatest - log(sum);
}

static void count_pair(struct gd_metric *m, int64_t label, int64_t predicted)
{
    m->correct += label == predicted;
    if (m->matrix) {
        m->matrix[label * m->class_room + predicted]++;
    } else if (m->right) {
        m->right[label] += label == predicted;
        m->actual[label]++;
        m->predicted[predicted]++;
    }
}

/* Whether a label counts; notes why not. */
static bool take_label(struct gd_metric *m, enum metric_label kind)
{
    m->counts.ignored += kind == LABEL_IGNORED;
    m->counts.out_of_range += kind == LABEL_OUTSIDE;
    m->counts.samples += kind == LABEL_OK;
    return kind == LABEL_OK;
}

/* From the scores of each class: topk and perplexity. */
static int count_scores(struct gd_metric *m, struct metric_batch *b, struct gd_err *err)
{
    b->scores = malloc((size_t)b->classes * sizeof(*b->scores));
    if (!b->scores) {
        return gd_fail_nomem(err);
    }
    for (int64_t i = 0; i < b->samples; i++) {
        int64_t label = 0;
        if (!take_label(m, metric_label_of(b, i, &label))) {
            continue;
        }
        m->counts.nan += metric_scores_of(b, i);
        if (m->spec.kind == GD_METRIC_TOPK) {
            m->correct += is_among(b->scores, b->classes, label, m->spec.k);
        } else {
            m->sum += likelihood_of(b, &m->spec, label, b->threshold);
        }
    }
    free(b->scores);
    return GD_OK;
}

static int count_classes(struct gd_metric *m, const struct metric_batch *b, struct gd_err *err)
{
    struct metric_sample *own;
    const struct metric_sample *list = metric_samples_of(b, &own);
    for (int64_t i = 0; list && i < b->samples; i++) {
        const struct metric_sample *s = &list[i];
        if (take_label(m, s->label < 0 ? (enum metric_label) - s->label : LABEL_OK)) {
            m->counts.nan += s->predicted < 0;
            count_pair(m, s->label, s->predicted < 0 ? ~s->predicted : s->predicted);
        }
    }
    free(own);
    return list ? GD_OK : gd_fail_nomem(err);
}

static bool needs_scores(const struct gd_metric *m)
{
    return m->spec.kind == GD_METRIC_TOPK || m->spec.kind == GD_METRIC_PERPLEXITY;
}

int metric_check_classes(const struct gd_metric *m, const struct metric_batch *b,
                         struct gd_err *err)
{
    if (needs_scores(m) && (b->ready || (b->axis < 0 && m->spec.kind == GD_METRIC_TOPK))) {
        return gd_fail(err, GD_EINVAL, "%s needs a score for each class",
                       gd_metric_kind_name(m->spec.kind));
    }
    if (b->axis >= 0 && m->classes > 0 && b->classes != m->classes) {
        return gd_fail(err, GD_EINVAL, "outputs of %lld classes after outputs of %lld classes",
                       (long long)b->classes, (long long)m->classes);
    }
    return GD_OK;
}

int metric_update_classes(struct gd_metric *m, const struct metric_batch *batch, struct gd_err *err)
{
    struct metric_batch b = *batch;
    int rc = metric_check_classes(m, &b, err);
    rc = rc != GD_OK ? rc : metric_need_classes(m, b.classes, err);
    if (rc != GD_OK) {
        return rc;
    }
    m->binary = b.axis < 0 && !b.ready;
    return needs_scores(m) ? count_scores(m, &b, err) : count_classes(m, &b, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static double share_of(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double value_of(enum gd_metric_kind kind, double right, double predicted, double actual)
{
    switch (kind) {
    case GD_METRIC_PRECISION: return share_of(right, predicted);
    case GD_METRIC_RECALL: return share_of(right, actual);
    default: return share_of(2 * right, predicted + actual);
    }
}

double metric_class_value(const struct gd_metric *m, int64_t index)
{
    if (index < 0 || index >= m->classes || !m->right) {
        return NAN;
    }
    return value_of(m->spec.kind, (double)m->right[index], (double)m->predicted[index],
                    (double)m->actual[index]);
}

/* 0/0 is NaN. */
double metric_average_value(const struct gd_metric *m)
{
    double sum = 0, weights = 0, right = 0, predicted = 0, actual = 0;
    enum gd_metric_average average = m->spec.average;
    if (average == GD_AVERAGE_DEFAULT && m->binary) {
        return metric_class_value(m, 1);
    }
    for (int64_t i = 0; i < m->classes; i++) {
        bool occurs = m->actual[i] > 0 || m->predicted[i] > 0;
        double weight = average == GD_AVERAGE_WEIGHTED ? (double)m->actual[i]
                                                       : occurs || average == GD_AVERAGE_ALL;
        sum += weight * metric_class_value(m, i);
        weights += weight;
        right += (double)m->right[i];
        predicted += (double)m->predicted[i];
        actual += (double)m->actual[i];
    }
    return average == GD_AVERAGE_MICRO ? value_of(m->spec.kind, right, predicted, actual)
                                       : sum / weights;
}

// SPDX-License-Identifier: MIT
/* The area under the ROC curve, exactly: the share of pairs of a positive and a negative sample in
 * which the positive one has the greater score; ties count half. Scores are kept sorted, so that a
 * batch costs a search for each of its samples. Several classes: each against all others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/metric_impl.h"

void metric_auc_free(struct gd_metric *m)
{
    for (int64_t i = 0; i < m->score_classes; i++) {
        free(m->scores[i].of[0]);
        free(m->scores[i].of[1]);
    }
    free(m->scores);
    m->scores = NULL;
    m->score_classes = 0;
}

static int compare_scores(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* How many of the sorted scores are below x, or not above it. */
static size_t count_below(const double *sorted, size_t count, double x, bool equal)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < x || (equal && !(sorted[middle] > x))) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Twice the number of pairs that a new positive (or negative) score makes with the others. */
static uint64_t twice_pairs(const struct metric_scores *s, double x, bool positive)
{
    const double *others = s->of[!positive];
    size_t count = s->count[!positive];
    size_t below = count_below(others, count, x, false);
    size_t not_above = count_below(others, count, x, true);
    uint64_t ties = not_above - below;
    return positive ? 2 * (uint64_t)below + ties : 2 * (uint64_t)(count - not_above) + ties;
}

/* Merges `more` sorted scores into the list, which has room for them. */
static void merge_scores(double *list, size_t count, const double *scores, size_t more)
{
    size_t at = count + more;
    while (more > 0) {
        bool old = count > 0 && list[count - 1] > scores[more - 1];
        list[--at] = old ? list[--count] : scores[--more];
    }
}

static bool add_scores(struct metric_scores *s, double *scores, size_t count, bool positive)
{
    if (!count) {
        return true;
    }
    double *list =
        gd_grow_to(s->of[positive], s->count[positive] + count, &s->cap[positive], sizeof(*list));
    if (!list) {
        return false;
    }
    s->of[positive] = list;
    qsort(scores, count, sizeof(*scores), compare_scores);
    for (size_t i = 0; i < count; i++) {
        s->twice_above += twice_pairs(s, scores[i], positive);
    }
    merge_scores(list, s->count[positive], scores, count);
    s->count[positive] += count;
    return true;
}

/* The scores of a sample as probabilities, which are compared between samples. */
static void make_probabilities(const struct metric_batch *b, bool are)
{
    double greatest = b->scores[0], sum = 0;
    for (int64_t i = 1; i < b->classes; i++) {
        greatest = b->scores[i] > greatest ? b->scores[i] : greatest;
    }
    for (int64_t i = 0; !are && i < b->classes; i++) {
        b->scores[i] = exp(b->scores[i] - greatest);
        sum += b->scores[i];
    }
    for (int64_t i = 0; !are && i < b->classes; i++) {
        b->scores[i] /= sum;
    }
}

/* Sorts the samples' scores by class and sign into `room`, [class][2][samples], whose lengths are
 * `lengths`. */
static void collect_scores(struct gd_metric *m, const struct metric_batch *b, double *room,
                           size_t *lengths)
{
    for (int64_t i = 0; i < b->samples; i++) {
        int64_t label = 0;
        enum metric_label kind = metric_label_of(b, i, &label);
        m->counts.ignored += kind == LABEL_IGNORED;
        m->counts.out_of_range += kind == LABEL_OUTSIDE;
        if (kind != LABEL_OK) {
            continue;
        }
        if (metric_scores_of(b, i)) { /* has no place in an order */
            m->counts.nan++;
            continue;
        }
        if (b->axis >= 0 && b->classes > 1) {
            make_probabilities(b, m->spec.probabilities);
        }
        for (int64_t c = 0; c < m->score_classes; c++) {
            bool positive = b->axis < 0 || m->score_classes == 1 ? label == 1 : label == c;
            size_t list = (size_t)(2 * c + positive);
            double score = m->score_classes == 1 && b->axis >= 0 ? b->scores[1] : b->scores[c];
            room[list * (size_t)b->samples + lengths[list]++] = score;
        }
        m->counts.samples++;
    }
}

static bool is_full(const struct gd_metric *m, size_t samples, size_t classes)
{
    size_t kept = m->scores ? m->scores[0].count[0] + m->scores[0].count[1] : 0;
    return (kept + samples) * classes > GD_METRIC_MAX_SCORES / sizeof(double);
}

static int need_scores(struct gd_metric *m, const struct metric_batch *b, struct gd_err *err)
{
    int64_t classes = b->axis < 0 || b->classes <= 2 ? 1 : b->classes;
    if (m->scores && m->score_classes != classes) {
        return gd_fail(err, GD_EINVAL, "outputs of another number of classes than before");
    }
    if (b->ready || b->classes < 2) {
        return gd_fail(err, GD_EINVAL, "auc needs a score for each class, or one for each sample");
    }
    if (!m->scores) {
        m->scores = calloc((size_t)classes, sizeof(*m->scores));
        m->score_classes = m->scores ? classes : 0;
    }
    m->classes = b->classes;
    m->binary = classes == 1;
    return m->scores ? GD_OK : gd_fail_nomem(err);
}

int metric_update_auc(struct gd_metric *m, const struct metric_batch *batch, struct gd_err *err)
{
    struct metric_batch b = *batch;
    int rc = need_scores(m, &b, err);
    if (rc != GD_OK) {
        return rc;
    }
    size_t lists = (size_t)m->score_classes * 2, samples = (size_t)b.samples;
    if (is_full(m, samples, (size_t)m->score_classes)) {
        m->counts.not_kept += samples;
        return GD_OK;
    }
    double *room = calloc(lists * samples + 1, sizeof(*room));
    size_t *lengths = calloc(lists, sizeof(*lengths));
    b.scores = malloc((size_t)b.classes * sizeof(*b.scores));
    bool ok = room && lengths && b.scores;
    if (ok) {
        collect_scores(m, &b, room, lengths);
    }
    for (size_t i = 0; ok && i < lists; i++) {
        ok = add_scores(&m->scores[i / 2], room + i * samples, lengths[i], i % 2 == 1);
    }
    free(b.scores);
    free(lengths);
    free(room);
    return ok ? GD_OK : gd_fail_nomem(err);
}

/* ---- the scores as text ---------------------------------------------------------------------- */

/* "CLASSES", then for each of them "NEGATIVES POSITIVES SCORE...". */
void metric_auc_save(const struct gd_metric *m, struct gd_buf *out)
{
    if (m->spec.kind != GD_METRIC_AUC) {
        return;
    }
    gd_buf_printf(out, " %lld", (long long)m->score_classes);
    for (int64_t i = 0; i < m->score_classes; i++) {
        const struct metric_scores *s = &m->scores[i];
        gd_buf_printf(out, " %zu %zu", s->count[0], s->count[1]);
        for (size_t k = 0; k < s->count[0] + s->count[1]; k++) {
            gd_buf_printf(out, " %a", k < s->count[0] ? s->of[0][k] : s->of[1][k - s->count[0]]);
        }
    }
}

static bool read_size(const char **at, size_t most, size_t *ret)
{
    char *end;
    unsigned long long value = strtoull(*at, &end, 10);
    bool ok = end != *at && value <= most;
    *ret = (size_t)value;
    *at = end;
    return ok;
}

/* One list. ret NULL: only checks it. */
static bool read_scores(const char **at, size_t count, double *ret)
{
    for (size_t i = 0; i < count; i++) {
        char *end;
        double score = strtod(*at, &end);
        if (end == *at || isnan(score)) {
            return false;
        }
        if (ret) {
            ret[i] = score;
        }
        *at = end;
    }
    return true;
}

/* Makes room, so that nothing is added when there is none. */
static bool need_room(struct gd_metric *m, size_t classes, size_t most)
{
    if (!m->scores) {
        m->scores = calloc(classes, sizeof(*m->scores));
        m->score_classes = m->scores ? (int64_t)classes : 0;
    }
    bool ok = m->scores != NULL;
    for (size_t i = 0; ok && i < 2 * classes; i++) {
        struct metric_scores *s = &m->scores[i / 2];
        double *list =
            gd_grow_to(s->of[i % 2], s->count[i % 2] + most, &s->cap[i % 2], sizeof(*list));
        s->of[i % 2] = list ? list : s->of[i % 2];
        ok = list != NULL;
    }
    return ok;
}

/* Reads the lists of all classes; room NULL: only checks them. *samples: of each class. */
static bool take_scores(struct gd_metric *m, const char **at, size_t classes, double *room,
                        size_t *samples)
{
    size_t most = strlen(*at) / 2;
    for (size_t i = 0; i < classes; i++) {
        size_t count[2];
        if (!read_size(at, most, &count[0]) || !read_size(at, most, &count[1]) ||
            (i > 0 && count[0] + count[1] != *samples)) {
            return false;
        }
        *samples = count[0] + count[1];
        for (int positive = 0; positive < 2; positive++) {
            if (!read_scores(at, count[positive], room) ||
                (room && !add_scores(&m->scores[i], room, count[positive], positive == 1))) {
                return false;
            }
        }
    }
    return true;
}

bool metric_auc_merge(struct gd_metric *m, const char **at, bool add)
{
    size_t classes, samples = 0;
    if (!read_size(at, strlen(*at), &classes) ||
        (classes > 0 && m->scores && (int64_t)classes != m->score_classes)) {
        return false;
    }
    const char *lists = *at;
    bool ok = take_scores(m, at, classes, NULL, &samples);
    if (!ok || !add || classes == 0) {
        return ok;
    }
    if (is_full(m, samples, classes)) { /* they are among its samples already */
        m->counts.samples -= samples < m->counts.samples ? samples : m->counts.samples;
        m->counts.not_kept += samples;
        return true;
    }
    double *room = malloc((samples + 1) * sizeof(*room));
    ok = room && need_room(m, classes, samples) && take_scores(m, &lists, classes, room, &samples);
    free(room);
    return ok;
}

double metric_auc_class(const struct gd_metric *m, int64_t index)
{
    if (index < 0 || index >= m->score_classes) {
        return NAN;
    }
    const struct metric_scores *s = &m->scores[index];
    double pairs = (double)s->count[0] * (double)s->count[1];
    return pairs > 0 ? (double)s->twice_above / 2 / pairs : NAN;
}

/* NaN if a class has no positive or no negative sample, where scikit-learn has no result either. */
double metric_auc_result(const struct gd_metric *m)
{
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < m->score_classes; i++) {
        double weight = m->spec.average == GD_AVERAGE_WEIGHTED ? (double)m->scores[i].count[1] : 1;
        sum += weight * metric_auc_class(m, i);
        weights += weight;
    }
    return sum / weights;
}

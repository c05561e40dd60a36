// SPDX-License-Identifier: MIT
/* The counts and sums of a metric as text, and adding those of another process. Every metric but
 * one from a file consists of numbers that add up: counts, sums, the columns of a regression; auc
 * of its scores. A number of zeros in a row, as most classes of a batch have, is "0*NUMBER". */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_impl.h"

#define FIXED 7 /* counts that every metric has */

/* How many counts there are with that many classes. */
static uint64_t counts_of(const struct gd_metric *m, uint64_t classes)
{
    return FIXED + (m->spec.kind == GD_METRIC_CONFUSION ? classes * classes : 3 * classes);
}

static uint64_t *count_at(struct gd_metric *m, uint64_t classes, uint64_t index)
{
    uint64_t *lists[] = {m->right, m->predicted, m->actual};
    if (index < FIXED) {
        return index == FIXED - 1 ? &m->correct : &m->counts.samples + index;
    }
    index -= FIXED;
    return m->matrix ? &m->matrix[index / classes * (uint64_t)m->class_room + index % classes]
                     : &lists[index / classes][index % classes];
}

/* The first is the metric's own, the others are those of its program. */
static size_t sums_of(struct gd_metric *m, double **ret)
{
    *ret = NULL;
    return 1 + (m->program ? metric_program_sums(m->program, ret) : 0);
}

static int need_counts(const struct gd_metric *m, struct gd_err *err)
{
    return m->spec.kind != GD_METRIC_FILE
               ? GD_OK
               : gd_fail(err, GD_EUNSUPPORTED, "%s has no counts that ranks can add up",
                         gd_metric_kind_name(m->spec.kind));
}

static void save_counts(struct gd_metric *m, uint64_t room, struct gd_buf *out)
{
    uint64_t total = counts_of(m, room), zeros;
    for (uint64_t i = 0; i < total; i += zeros ? zeros : 1) {
        for (zeros = 0; i + zeros < total && *count_at(m, room, i + zeros) == 0;) {
            zeros++;
        }
        gd_buf_printf(out, " %" PRIu64, zeros ? 0 : *count_at(m, room, i));
        if (zeros > 1) {
            gd_buf_printf(out, "*%" PRIu64, zeros);
        }
    }
}

int gd_metric_save(const struct gd_metric *m, struct gd_buf *out, struct gd_err *err)
{
    struct gd_metric copy = *m;
    uint64_t room = (uint64_t)m->class_room;
    double *more;
    size_t sums = sums_of(&copy, &more);
    int rc = need_counts(m, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_buf_printf(out, "%" PRId64 " %" PRId64 " %d %" PRIu64 " %" PRId64, m->classes, m->class_room,
                  m->binary, m->rows, m->column_count);
    save_counts(&copy, room, out);
    for (size_t i = 0; i < sums; i++) {
        gd_buf_printf(out, " %a", i == 0 ? m->sum : more[i - 1]);
    }
    for (int64_t i = 0; i < m->column_count; i++) {
        const struct metric_column *c = &m->columns[i];
        gd_buf_printf(out, " %a %a %a %a %a %" PRIu64, c->shift, c->sum, c->sum_sq, c->squares,
                      c->absolutes, c->count);
    }
    metric_auc_save(m, out);
    return out->failed ? gd_fail_nomem(err) : GD_OK;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* The sums of the other's labels around our shift. */
static void merge_column(struct metric_column *to, const struct metric_column *from)
{
    double n = (double)from->count, move = from->shift - to->shift;
    if (from->count == 0) {
        return;
    }
    if (to->count == 0) {
        *to = *from;
        return;
    }
    to->sum_sq += from->sum_sq + 2 * move * from->sum + n * move * move;
    to->sum += from->sum + n * move;
    to->squares += from->squares;
    to->absolutes += from->absolutes;
    to->count += from->count;
}

static bool read_count(const char **at, uint64_t *ret)
{
    char *end;
    *ret = strtoull(*at, &end, 10);
    bool ok = end != *at;
    *at = end;
    return ok;
}

static bool read_sum(const char **at, double *ret)
{
    char *end;
    *ret = strtod(*at, &end);
    bool ok = end != *at;
    *at = end;
    return ok;
}

static bool read_column(const char **at, struct metric_column *ret)
{
    return read_sum(at, &ret->shift) && read_sum(at, &ret->sum) && read_sum(at, &ret->sum_sq) &&
           read_sum(at, &ret->squares) && read_sum(at, &ret->absolutes) &&
           read_count(at, &ret->count);
}

/* Adds them if `add`; else the metric has no room for them yet. */
static bool read_counts(struct gd_metric *m, uint64_t room, const char **at, bool add)
{
    uint64_t total = counts_of(m, room), count, zeros;
    for (uint64_t i = 0; i < total; i += zeros) {
        zeros = 1;
        if (!read_count(at, &count)) {
            return false;
        }
        if (count == 0 && **at == '*') {
            (*at)++;
            if (!read_count(at, &zeros) || zeros == 0 || zeros > total - i) {
                return false;
            }
        } else if (add) {
            *count_at(m, room, i) += count;
        }
    }
    return true;
}

struct saved {
    uint64_t classes, room, binary, rows, columns;
    const char *numbers; /* what follows */
};

static bool read_head(const struct gd_metric *m, const char *text, struct saved *ret)
{
    enum gd_metric_kind kind = m->spec.kind;
    bool lists = kind == GD_METRIC_CONFUSION || metric_needs_classes(m);
    bool columns = kind == GD_METRIC_MSE || kind == GD_METRIC_MAE || kind == GD_METRIC_R2;
    const char *at = text;
    bool ok = read_count(&at, &ret->classes) && read_count(&at, &ret->room) &&
              read_count(&at, &ret->binary) && read_count(&at, &ret->rows) &&
              read_count(&at, &ret->columns);
    ret->numbers = at;
    return ok && ret->binary <= 1 && ret->classes <= GD_METRIC_MAX_CLASSES &&
           ret->room == (lists ? ret->classes : 0) &&
           ret->columns <= (columns ? strlen(at) / 8 : 0) &&
           (ret->columns == 0 || !m->columns || (int64_t)ret->columns == m->column_count);
}

/* Reads all numbers, and adds them if `add`. */
static bool read_numbers(struct gd_metric *m, const struct saved *saved, bool add)
{
    const char *at = saved->numbers;
    double *more;
    size_t sums = sums_of(m, &more);
    bool ok = read_counts(m, saved->room, &at, add);
    for (size_t i = 0; ok && i < sums; i++) {
        double sum;
        ok = read_sum(&at, &sum);
        if (ok && add) {
            *(i == 0 ? &m->sum : &more[i - 1]) += sum;
        }
    }
    for (uint64_t i = 0; ok && i < saved->columns; i++) {
        struct metric_column column;
        ok = read_column(&at, &column);
        if (ok && add) {
            merge_column(&m->columns[i], &column);
        }
    }
    return ok && (m->spec.kind != GD_METRIC_AUC || metric_auc_merge(m, &at, add)) &&
           at[strspn(at, " ")] == '\0';
}

int gd_metric_merge(struct gd_metric *m, const char *text, struct gd_err *err)
{
    struct saved saved;
    int rc = need_counts(m, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!read_head(m, text, &saved) || !read_numbers(m, &saved, false)) {
        return gd_fail(err, GD_EPROTO, "the counts of the ranks do not belong together");
    }
    rc = metric_need_classes(m, (int64_t)saved.classes, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (saved.columns > 0 && !m->columns) {
        m->columns = calloc((size_t)saved.columns, sizeof(*m->columns));
        if (!m->columns) {
            return gd_fail_nomem(err);
        }
        m->column_count = (int64_t)saved.columns;
    }
    if (!read_numbers(m, &saved, true)) {
        return gd_fail_nomem(err);
    }
    m->binary = m->binary || saved.binary != 0;
    m->rows += saved.rows;
    return GD_OK;
}

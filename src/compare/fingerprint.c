// SPDX-License-Identifier: GPL-3.0-or-later
/* Fingerprints of tensors: properties that do not depend on the order of axes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/match_impl.h"

#define BLOCK 65536 /* elements read at a time; tensors up to this size are sorted */

static int by_dim(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct sample {
    enum gd_dtype dtype;
    double scale; /* the largest |x|: dividing by it keeps cubes from overflowing */
    unsigned char *raw;
    double *value; /* the finite values of the last block */
    size_t count;
};

static double add_block(struct sample *s, int64_t elements)
{
    size_t item = gd_dtype_size(s->dtype);
    double sum = 0;

    s->count = 0;
    for (int64_t i = 0; i < elements; i++) {
        double x = gd_dtype_load(s->dtype, s->raw + (size_t)i * item);

        if (isfinite(x)) {
            double part = fabs(x) / s->scale;

            sum += part * part * part;
            s->value[s->count++] = x;
        }
    }
    return sum;
}

/* Quantiles of a sample would depend on the order of axes, so big tensors have none. */
static void take_quantiles(struct sample *s, struct gd_fingerprint *ret)
{
    qsort(s->value, s->count, sizeof(*s->value), by_size);
    ret->has_quantiles = s->count > 0;
    for (size_t i = 0; s->count > 0 && i < GD_FINGERPRINT_QUANTILES; i++) {
        ret->quantile[i] = s->value[(i + 1) * (s->count - 1) / (GD_FINGERPRINT_QUANTILES + 1)];
    }
}

static int sample_all(struct gd_source *source, int64_t count, struct sample *s,
                      const struct gd_match_options *options, struct gd_fingerprint *ret,
                      struct gd_err *err)
{
    int rc = GD_OK;

    for (int64_t at = 0; rc == GD_OK && at < count; at += BLOCK) {
        int64_t elements = count - at < BLOCK ? count - at : BLOCK;

        rc = gd_source_read_run(source, at, elements, s->raw, err);
        if (rc == GD_OK) {
            ret->cubes += add_block(s, elements);
        }
        if (rc == GD_OK && options && options->go_on &&
            !options->go_on(options->go_on_ctx, (uint64_t)(at + elements))) {
            rc = gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    if (rc == GD_OK && count <= BLOCK) {
        take_quantiles(s, ret);
    }
    return rc;
}

static int take_sample(struct gd_item *item, const struct gd_match_options *options,
                       struct gd_fingerprint *ret, struct gd_err *err)
{
    int64_t count = gd_shape_count(&item->shape);
    size_t room = (size_t)(count < BLOCK ? count : BLOCK);
    struct sample s = {.dtype = item->dtype,
                       .scale = fmax(fabs(ret->stats.min), fabs(ret->stats.max)),
                       .raw = malloc(room * gd_dtype_size(item->dtype)),
                       .value = malloc(room * sizeof(double))};
    int rc = s.raw && s.value ? sample_all(item->source, count, &s, options, ret, err)
                              : gd_fail_nomem(err);

    free(s.raw);
    free(s.value);
    return rc;
}

int gd_fingerprint_item(struct gd_table *table, struct gd_item *item,
                        const struct gd_match_options *options, struct gd_fingerprint *ret,
                        struct gd_err *err)
{
    struct gd_stats_options how = {.range_count = 0};
    struct gd_err why = {.text = ""};
    int rc;

    *ret = (struct gd_fingerprint){.good = false};
    if (!item->source) {
        return GD_OK;
    }
    rc = gd_table_look(table, item, err);
    if (rc != GD_OK || item->problem || !item->has_shape || gd_shape_count(&item->shape) < 2) {
        return rc;
    }
    for (int i = 0; i < item->shape.rank; i++) {
        if (item->shape.dim[i] != 1) {
            ret->dim[ret->rank++] = item->shape.dim[i];
        }
    }
    qsort(ret->dim, (size_t)ret->rank, sizeof(ret->dim[0]), by_dim);
    if (options) {
        how.go_on = options->go_on;
        how.go_on_ctx = options->go_on_ctx;
    }
    rc = gd_source_stats(item->source, NULL, &how, &ret->stats, &why);
    ret->good = rc == GD_OK && ret->stats.min < ret->stats.max;
    ret->coarse = item->dtype == GD_BFLOAT16 || item->dtype == GD_FLOAT16;
    if (ret->good && !gd_dtype_is_complex(item->dtype)) {
        rc = take_sample(item, options, ret, &why);
        ret->good = rc == GD_OK;
    }
    return rc == GD_ENOMEM || rc == GD_EINTR ? gd_fail(err, rc, "%s", why.text) : GD_OK;
}

static bool is_near(double x, double y, double scale, double tolerance)
{
    return x == y || fabs(x - y) <= tolerance * fabs(scale);
}

static bool same_quantiles(const struct gd_fingerprint *x, const struct gd_fingerprint *y,
                           double scale, double tolerance)
{
    for (int i = 0; x->has_quantiles && y->has_quantiles && i < GD_FINGERPRINT_QUANTILES; i++) {
        if (!is_near(x->quantile[i], y->quantile[i], scale, tolerance)) {
            return false;
        }
    }
    return true;
}

bool gd_fingerprint_same(const struct gd_fingerprint *x, const struct gd_fingerprint *y)
{
    double tolerance = x->coarse || y->coarse ? 1e-2 : 1e-3;
    double scale = fmax(fabs(y->stats.min), fabs(y->stats.max));

    return x->good && y->good && x->rank == y->rank && x->stats.count == y->stats.count &&
           memcmp(x->dim, y->dim, (size_t)x->rank * sizeof(x->dim[0])) == 0 &&
           x->stats.nan == y->stats.nan && is_near(x->stats.min, y->stats.min, scale, tolerance) &&
           is_near(x->stats.max, y->stats.max, scale, tolerance) &&
           is_near(x->stats.mean, y->stats.mean, scale, tolerance) &&
           is_near(x->stats.abs_mean, y->stats.abs_mean, y->stats.abs_mean, tolerance) &&
           is_near(sqrt(x->stats.sum_sq), sqrt(y->stats.sum_sq), sqrt(y->stats.sum_sq),
                   tolerance) &&
           is_near(cbrt(x->cubes), cbrt(y->cubes), cbrt(y->cubes), 2 * tolerance) &&
           same_quantiles(x, y, scale, tolerance);
}

int gd_match_is_turned(struct gd_table *a, struct gd_item *item_a, struct gd_table *b,
                       struct gd_item *item_b, const struct gd_match_options *options, bool *ret,
                       struct gd_err *err)
{
    struct gd_fingerprint x, y;
    int rc = gd_fingerprint_item(a, item_a, options, &x, err);

    *ret = false;
    if (rc == GD_OK && x.good) {
        rc = gd_fingerprint_item(b, item_b, options, &y, err);
        *ret = rc == GD_OK && gd_fingerprint_same(&x, &y);
    }
    return rc;
}

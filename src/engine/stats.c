// SPDX-License-Identifier: MIT
/*
 * The memory is read once, BLOCK elements at a time: they are widened to double into a block that
 * stays in the first level cache, and the many short loops of one block are of a kind that
 * compilers turn into vector code (no branches, sums in LANES).
 *
 * Order of accumulation: LANES partial sums within a block, then the blocks by two-sum, so the
 * error does not grow with the number of elements. The squared deviations of a block are taken
 * about the block's own mean and merged by Chan's rule, which keeps std right where the mean is
 * large.
 */
#include "engine/stats.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/dtype_impl.h"

#define BLOCK 512
#define LANES 8

/* A sum that remembers what rounding took away. */
struct sum {
    double value;
    double lost;
};

static void sum_add(struct sum *sum, double x)
{
    double total = sum->value + x;
    double part = total - sum->value;

    sum->lost += (sum->value - (total - part)) + (x - part);
    sum->value = total;
}

static double sum_get(const struct sum *sum)
{
    /* Once it has overflowed, what was lost is NaN. */
    return isfinite(sum->value) ? sum->value + sum->lost : sum->value;
}

/* Elements from memory to doubles, `stride` bytes apart. The contiguous loop is written out so that
 * the compiler sees its stride. */
#define LOADER(name, type, widen)                                                                  \
    static void name(const unsigned char *p, int64_t stride, size_t n, double *out)                \
    {                                                                                              \
        type v;                                                                                    \
                                                                                                   \
        if (stride == (int64_t)sizeof(v)) {                                                        \
            for (size_t i = 0; i < n; i++) {                                                       \
                memcpy(&v, p + i * sizeof(v), sizeof(v));                                          \
                out[i] = (double)(widen);                                                          \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < n; i++, p += stride) {                                              \
            memcpy(&v, p, sizeof(v));                                                              \
            out[i] = (double)(widen);                                                              \
        }                                                                                          \
    }

LOADER(load_bool, uint8_t, v != 0)
LOADER(load_int8, int8_t, v)
LOADER(load_int16, int16_t, v)
LOADER(load_int32, int32_t, v)
LOADER(load_int64, int64_t, v)
LOADER(load_uint8, uint8_t, v)
LOADER(load_uint16, uint16_t, v)
LOADER(load_uint32, uint32_t, v)
LOADER(load_uint64, uint64_t, v)
LOADER(load_float16, uint16_t, gd_half_widen(v))
LOADER(load_float32, float, v)
LOADER(load_float64, double, v)
LOADER(load_bfloat16, uint16_t, gd_bfloat16_widen(v))

typedef void (*load_fn)(const unsigned char *p, int64_t stride, size_t n, double *out);

/* How a dtype is read, and its smallest normal number (0: it has no denormals). */
static const struct kind {
    load_fn load; /* of one part, for complex */
    double tiny;
    size_t part; /* bytes from the real to the imaginary part, 0 for real types */
} kinds[GD_DT_COUNT] = {
    [GD_BOOL] = {load_bool, 0, 0},
    [GD_INT8] = {load_int8, 0, 0},
    [GD_INT16] = {load_int16, 0, 0},
    [GD_INT32] = {load_int32, 0, 0},
    [GD_INT64] = {load_int64, 0, 0},
    [GD_UINT8] = {load_uint8, 0, 0},
    [GD_UINT16] = {load_uint16, 0, 0},
    [GD_UINT32] = {load_uint32, 0, 0},
    [GD_UINT64] = {load_uint64, 0, 0},
    [GD_FLOAT16] = {load_float16, 0x1p-14, 0},
    [GD_FLOAT32] = {load_float32, FLT_MIN, 0},
    [GD_FLOAT64] = {load_float64, DBL_MIN, 0},
    [GD_BFLOAT16] = {load_bfloat16, FLT_MIN, 0},
    [GD_COMPLEX64] = {load_float32, FLT_MIN, 4},
    [GD_COMPLEX128] = {load_float64, DBL_MIN, 8},
};

static const struct kind *kind_of(enum gd_dtype dtype)
{
    return (unsigned)dtype < GD_DT_COUNT && kinds[dtype].load ? &kinds[dtype] : NULL;
}

/* A tensor read in C order, in pieces of any size. */
struct source {
    const struct kind *kind;
    const unsigned char *data;
    struct gd_walk walk;
    int64_t at; /* elements of the current run already taken */
    bool more;
};

static void source_init(struct source *source, const struct gd_tensor *tensor)
{
    source->kind = kind_of(tensor->dtype);
    source->data = tensor->data;
    source->at = 0;
    source->more =
        gd_walk_init(&source->walk, &tensor->shape, tensor->stride, gd_dtype_size(tensor->dtype));
}

/* Up to BLOCK elements; `im` is filled for complex types only. Returns how many, 0 at the end. */
static size_t source_read(struct source *source, double *re, double *im)
{
    struct gd_walk *walk = &source->walk;
    size_t n = 0;

    while (source->more && n < BLOCK) {
        const unsigned char *p = source->data + walk->offset + source->at * walk->run_stride;
        size_t left = (size_t)(walk->run - source->at);
        size_t take = left < BLOCK - n ? left : BLOCK - n;

        source->kind->load(p, walk->run_stride, take, re + n);
        if (source->kind->part)
            source->kind->load(p + source->kind->part, walk->run_stride, take, im + n);
        n += take;
        source->at += (int64_t)take;
        if (take == left) {
            source->at = 0;
            source->more = gd_walk_next(walk);
        }
    }
    return n;
}

/* The magnitude of a complex number; NaN, not infinity, when either part is NaN. */
static double magnitude(double re, double im)
{
    return isnan(re) || isnan(im) ? NAN : hypot(re, im);
}

struct block {
    size_t n;
    double x[BLOCK];    /* the elements; magnitudes of complex ones */
    double y[BLOCK];    /* x where finite, else 0 */
    double use[BLOCK];  /* 1 where finite, else 0 */
    double prev[BLOCK]; /* against a previous tensor: its elements, */
    double diff[BLOCK]; /* |cur - prev|, */
    double prod[BLOCK]; /* cur * prev */
    double cur_im[BLOCK], prev_im[BLOCK];
};

struct running {
    struct sum sum, abs, sq;
    struct sum delta, abs_delta, sq_delta, abs_prev, sq_prev, dot;
    struct sum m2; /* of (x - mean)^2 */
    double mean;   /* of the blocks so far, for m2 */
    uint64_t finite;
    uint64_t pairs; /* positions where both tensors are finite */
};

static double lanes_total(const double lane[LANES])
{
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void count_block(const struct block *b, const struct kind *kind,
                        const struct gd_stats_options *options, struct gd_stats *s)
{
    const double tiny = kind->tiny;
    uint64_t nan = 0, pos_inf = 0, neg_inf = 0, zero = 0, neg_zero = 0, positive = 0, negative = 0,
             denormal = 0;

    for (size_t i = 0; i < b->n; i++) {
        double x = b->x[i];

        nan += x != x;
        pos_inf += x > DBL_MAX;
        neg_inf += x < -DBL_MAX;
        zero += x == 0;
    }
    for (size_t i = 0; i < b->n; i++) {
        double x = b->x[i];
        uint64_t bits;

        memcpy(&bits, &x, sizeof(bits));
        neg_zero += bits == UINT64_C(1) << 63;
        positive += (x > 0) & (x <= DBL_MAX);
        negative += (x < 0) & (x >= -DBL_MAX);
        denormal += (x != 0) & (fabs(x) < tiny);
    }
    for (int r = 0; options && r < options->range_count; r++) {
        uint64_t in_range = 0;

        for (size_t i = 0; i < b->n; i++)
            in_range += (b->x[i] >= options->range[r].lo) & (b->x[i] <= options->range[r].hi);
        s->in_range[r] += in_range;
    }
    s->count += b->n;
    s->nan += nan;
    s->pos_inf += pos_inf;
    s->neg_inf += neg_inf;
    s->zero += zero;
    s->neg_zero += neg_zero;
    s->positive += positive;
    s->negative += negative;
    s->denormal += denormal;
}

/* Fills y and use, up to a whole number of lanes; returns the number of finite elements. */
static size_t mask_block(struct block *b)
{
    size_t padded = (b->n + LANES - 1) / LANES * LANES;
    double used = 0;

    for (size_t i = b->n; i < padded; i++)
        b->x[i] = NAN;
    for (size_t i = 0; i < padded; i++) {
        bool finite = fabs(b->x[i]) <= DBL_MAX;

        b->y[i] = finite ? b->x[i] : 0.0;
        b->use[i] = finite ? 1.0 : 0.0;
        used += b->use[i];
    }
    return (size_t)used;
}

static void extremes_block(const struct block *b, struct gd_stats *s)
{
    double low[LANES], high[LANES];

    for (size_t l = 0; l < LANES; l++) {
        low[l] = s->min;
        high[l] = s->max;
    }
    for (size_t i = 0; i < b->n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            double y = b->use[i + l] != 0 ? b->y[i + l] : low[l];
            double z = b->use[i + l] != 0 ? b->y[i + l] : high[l];

            low[l] = y < low[l] ? y : low[l];
            high[l] = z > high[l] ? z : high[l];
        }
    }
    for (size_t l = 0; l < LANES; l++) {
        s->min = low[l] < s->min ? low[l] : s->min;
        s->max = high[l] > s->max ? high[l] : s->max;
    }
}

static void sums_block(const struct block *b, size_t finite, struct running *r)
{
    double sum[LANES] = {0}, abs[LANES] = {0}, sq[LANES] = {0}, m2[LANES] = {0};
    double mean, delta, total, n = (double)finite;

    if (finite == 0)
        return;
    for (size_t i = 0; i < b->n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            double y = b->y[i + l];

            sum[l] += y;
            abs[l] += fabs(y);
            sq[l] += y * y;
        }
    }
    mean = lanes_total(sum) / n;
    for (size_t i = 0; i < b->n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            double from_mean = (b->y[i + l] - mean) * b->use[i + l];

            m2[l] += from_mean * from_mean;
        }
    }
    sum_add(&r->sum, lanes_total(sum));
    sum_add(&r->abs, lanes_total(abs));
    sum_add(&r->sq, lanes_total(sq));
    total = (double)r->finite + n;
    if (!isfinite(mean)) {
        /* The sum overflowed; so has the deviation. */
        r->m2.value = INFINITY;
    } else {
        delta = mean - r->mean;
        sum_add(&r->m2, lanes_total(m2) + delta * (delta * ((double)r->finite * n / total)));
        r->mean += delta * (n / total);
    }
    r->finite += finite;
}

/* diff, prod and the magnitudes, from the parts of both tensors. */
static void pair_block(struct block *b, bool is_complex)
{
    if (!is_complex) {
        for (size_t i = 0; i < b->n; i++) {
            b->diff[i] = fabs(b->x[i] - b->prev[i]);
            b->prod[i] = b->x[i] * b->prev[i];
        }
        return;
    }
    for (size_t i = 0; i < b->n; i++) {
        double re = b->x[i], im = b->cur_im[i], pre = b->prev[i], pim = b->prev_im[i];
        double apart = magnitude(re - pre, im - pim);

        /* inf - inf: equal infinities are no distance apart, others an infinite one. */
        if (isnan(apart))
            apart = re == pre && im == pim ? 0 : INFINITY;
        b->diff[i] = apart;
        b->prod[i] = re * pre + im * pim;
        b->prev[i] = magnitude(pre, pim);
    }
}

static void against_block(const struct block *b, const struct gd_stats_options *options,
                          struct running *r, struct gd_stats *s)
{
    double delta = 0, abs_delta = 0, sq_delta = 0, abs_prev = 0, sq_prev = 0, dot = 0,
           high = s->max_abs_delta;
    bool equal_nan = options && options->equal_nan;
    double rtol = options ? options->rtol : 0, atol = options ? options->atol : 0;
    uint64_t mismatch = 0, pairs = 0;

    for (size_t i = 0; i < b->n; i++) {
        double x = b->x[i], p = b->prev[i], d = b->diff[i];
        bool both = (fabs(x) <= DBL_MAX) & (fabs(p) <= DBL_MAX);
        bool near = both ? d <= atol + rtol * fabs(p) : (x == p) & !(d > 0);

        near |= equal_nan & (x != x) & (p != p);
        mismatch += !near;
        pairs += both;
        delta += both ? x - p : 0;
        abs_delta += both ? d : 0;
        sq_delta += both ? d * d : 0;
        abs_prev += both ? fabs(p) : 0;
        sq_prev += both ? p * p : 0;
        dot += both ? b->prod[i] : 0;
        high = both && d > high ? d : high;
    }
    s->max_abs_delta = high;
    s->mismatch += mismatch;
    r->pairs += pairs;
    sum_add(&r->delta, delta);
    sum_add(&r->abs_delta, abs_delta);
    sum_add(&r->sq_delta, sq_delta);
    sum_add(&r->abs_prev, abs_prev);
    sum_add(&r->sq_prev, sq_prev);
    sum_add(&r->dot, dot);
}

static void finish(const struct running *r, struct gd_stats *s)
{
    double n = (double)r->finite, pairs = (double)r->pairs;

    s->sum_sq = sum_get(&r->sq);
    if (r->finite) {
        s->mean = sum_get(&r->sum) / n;
        s->abs_mean = sum_get(&r->abs) / n;
        s->std = sqrt(sum_get(&r->m2) / n);
    }
    if (s->has_prev) {
        s->dot = sum_get(&r->dot);
        s->sum_sq_prev = sum_get(&r->sq_prev);
        s->sum_sq_delta = sum_get(&r->sq_delta);
        s->mean_delta = r->pairs ? sum_get(&r->delta) / pairs : 0;
        s->mean_abs_delta = r->pairs ? sum_get(&r->abs_delta) / pairs : 0;
        s->mean_abs_prev = r->pairs ? sum_get(&r->abs_prev) / pairs : 0;
    }
}

static void to_magnitudes(double *re, const double *im, size_t n)
{
    for (size_t i = 0; i < n; i++)
        re[i] = magnitude(re[i], im[i]);
}

static int check(const struct gd_tensor *cur, const struct gd_tensor *prev, struct gd_err *err)
{
    char a[64], b[64];

    if (!kind_of(cur->dtype))
        return gd_fail(err, GD_EUNSUPPORTED, "a %s tensor has no numbers to compute with",
                       gd_dtype_name(cur->dtype));
    if (prev && (prev->dtype != cur->dtype || !gd_shape_equal(&prev->shape, &cur->shape)))
        return gd_fail(err, GD_EINVAL, "cannot compare %s %s with %s %s: type and shape must agree",
                       gd_dtype_name(cur->dtype), gd_shape_text(&cur->shape, a, sizeof(a)),
                       gd_dtype_name(prev->dtype), gd_shape_text(&prev->shape, b, sizeof(b)));
    return GD_OK;
}

/* Not inlined: the arithmetic must stay between the changes of the environment around it. */
static __attribute__((noinline)) void compute(const struct gd_tensor *cur,
                                              const struct gd_tensor *prev,
                                              const struct gd_stats_options *options,
                                              struct gd_stats *s)
{
    struct running r = {.finite = 0};
    struct source from_cur, from_prev;
    struct block b;
    bool is_complex = gd_dtype_is_complex(cur->dtype);

    source_init(&from_cur, cur);
    if (prev)
        source_init(&from_prev, prev);
    while ((b.n = source_read(&from_cur, b.x, b.cur_im)) > 0) {
        if (prev) {
            source_read(&from_prev, b.prev, b.prev_im);
            pair_block(&b, is_complex);
        }
        if (is_complex)
            to_magnitudes(b.x, b.cur_im, b.n);
        count_block(&b, from_cur.kind, options, s);
        if (prev)
            against_block(&b, options, &r, s);
        sums_block(&b, mask_block(&b), &r);
        extremes_block(&b, s);
    }
    finish(&r, s);
}

int gd_stats_compute(const struct gd_tensor *cur, const struct gd_tensor *prev,
                     const struct gd_stats_options *options, struct gd_stats *ret,
                     struct gd_err *err)
{
    struct gd_stats s = {.min = INFINITY,
                         .max = -INFINITY,
                         .has_prev = prev != NULL,
                         .range_count = options ? options->range_count : 0};
    fenv_t environment;
    int rc = check(cur, prev, err);

    if (rc)
        return rc;
    /* In a trainer, invalid operations may raise signals and denormals may read as 0. */
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    compute(cur, prev, options, &s);
    fesetenv(&environment);
    *ret = s;
    return GD_OK;
}

/* Bin edges and the corrections for rounding are those of numpy.histogram. */
static void bin_block(const struct block *b, double lo, double hi, size_t bins, uint64_t *count)
{
    double scale = (double)bins / (hi - lo), step = (hi - lo) / (double)bins;

    for (size_t i = 0; i < b->n; i++) {
        double x = b->x[i];
        size_t bin;

        if (!(x >= lo && x <= hi))
            continue;
        bin = lo < hi ? (size_t)((x - lo) * scale) : bins - 1;
        if (bin >= bins)
            bin = bins - 1;
        if (bin > 0 && lo < hi && x < lo + step * (double)bin)
            bin--;
        else if (bin + 1 < bins && x >= lo + step * (double)(bin + 1))
            bin++;
        count[bin]++;
    }
}

static __attribute__((noinline)) void fill_bins(const struct gd_tensor *tensor, double lo,
                                                double hi, size_t bins, uint64_t *count)
{
    /* The width of the whole range of doubles is not a double; that of half of it is. */
    double shrink = isfinite(hi - lo) ? 1 : 0.5;
    struct source from;
    struct block b;

    source_init(&from, tensor);
    while ((b.n = source_read(&from, b.x, b.cur_im)) > 0) {
        if (from.kind->part)
            to_magnitudes(b.x, b.cur_im, b.n);
        for (size_t i = 0; i < b.n && shrink < 1; i++)
            b.x[i] *= shrink;
        bin_block(&b, lo * shrink, hi * shrink, bins, count);
    }
}

int gd_stats_histogram(const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                       uint64_t *ret, struct gd_err *err)
{
    fenv_t environment;
    int rc = check(tensor, NULL, err);

    if (rc)
        return rc;
    if (bins == 0 || !isfinite(lo) || !isfinite(hi) || lo > hi)
        return gd_fail(err, GD_EINVAL, "a histogram needs bins and finite ends in order");
    memset(ret, 0, bins * sizeof(*ret));
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    fill_bins(tensor, lo, hi, bins, ret);
    fesetenv(&environment);
    return GD_OK;
}

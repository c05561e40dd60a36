// SPDX-License-Identifier: MIT
/*
 * Statistics of a piece of a tensor, block by block. A block stays in the L1 cache while several
 * kernels read it: a first one that nearly always suffices, others for what it cannot decide
 * (zeros, non-finite elements, a mean far from zero), and one per range.
 *
 * Dtypes without kernels, and the last few elements of a tensor, are first widened to doubles.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/stats_impl.h"

#define WIDE 512 /* elements widened at a time */

/* Contiguous elements, of a tensor or widened to doubles. */
struct block {
    enum gd_dtype dtype;
    const struct gd_stats_kernel *kernel;
    const unsigned char *x, *p; /* p: of the previous tensor, or NULL */
    size_t n;
};

static const struct gd_stats_kernel *get_kernel(const struct gd_stats_level *level,
                                                enum gd_dtype dtype)
{
    const struct gd_stats_kernel *kernel = NULL;

    switch (dtype) {
    case GD_FLOAT16: kernel = &level->float16; break;
    case GD_BFLOAT16: kernel = &level->bfloat16; break;
    case GD_FLOAT32: kernel = &level->float32; break;
    case GD_FLOAT64: kernel = &level->float64; break;
    default: break;
    }
    return kernel && kernel->step ? kernel : NULL;
}

/* The sum of finite doubles overflowed: sums again, scaled down. */
static void sum_huge(const struct block *b, struct gd_block_sums *sums)
{
    const double scale = 0x1p-64;
    double sum = 0, abs = 0, x;

    for (size_t i = 0; i < b->n; i++) {
        memcpy(&x, b->x + i * sizeof(x), sizeof(x));
        if (isfinite(x)) {
            sum += x * scale;
            abs += fabs(x * scale);
        }
    }
    sums->sum = sum / scale;
    sums->abs = abs / scale;
}

static void count_not_finite(const struct block *b, uint64_t others, struct gd_stats_part *part)
{
    const struct gd_range up = {INFINITY, INFINITY}, down = {-INFINITY, -INFINITY};
    uint64_t neg_inf = others ? b->kernel->within(b->x, b->n, down) : 0;
    uint64_t pos_inf = others > neg_inf ? b->kernel->within(b->x, b->n, up) : 0;

    part->neg_inf += neg_inf;
    part->pos_inf += pos_inf;
    part->nan += others - neg_inf - pos_inf;
}

static void count_signs(const struct block *b, const struct gd_block_sums *sums, double tiny,
                        struct gd_stats_part *part)
{
    struct gd_block_small small = {0, 0, 0};

    if (sums->least < tiny || sums->least == 0) {
        b->kernel->small(b->x, b->n, tiny, &small);
    }
    part->zero += small.zero;
    part->neg_zero += small.neg_zero;
    part->negative += sums->signs - small.neg_zero;
    part->denormal += tiny > 0 ? small.below - small.zero : 0;
}

/* Sum of squared deviations from the block's mean. The difference of the sums is exact enough
 * unless the mean is large compared with the deviations. */
static double compute_spread(const struct block *b, const struct gd_block_sums *sums)
{
    double mean = sums->sum / (double)sums->finite;
    double m2 = sums->sq - sums->sum * mean;

    if (sums->sq <= DBL_MAX && m2 >= sums->sq / 64) {
        return m2;
    }
    return isfinite(mean) ? b->kernel->spread(b->x, b->n, mean, sums->finite == b->n) : INFINITY;
}

static size_t take_sums(const struct gd_stats_job *job, const struct block *b,
                        struct gd_stats_part *part)
{
    struct gd_block_sums sums;

    if (!part->odd) {
        b->kernel->sums(b->x, b->n, &sums);
    }
    if (part->odd || !(sums.abs <= DBL_MAX)) {
        b->kernel->sums_finite(b->x, b->n, &sums);
        count_not_finite(b, b->n - sums.finite, part);
        part->odd = sums.finite < b->n;
        if (!(sums.abs <= DBL_MAX)) {
            sum_huge(b, &sums);
        }
    }
    part->count += b->n;
    count_signs(b, &sums, gd_stats_kind(job->dtype)->tiny, part);
    for (int i = 0; i < job->options->range_count; i++) {
        part->in_range[i] += b->kernel->within(b->x, b->n, job->options->range[i]);
    }
    if (sums.finite) {
        gd_stats_part_sums(part, &sums, compute_spread(b, &sums));
    }
    return sums.finite;
}

/* Adds one position of two tensors: elements or magnitudes, their distance, their product. */
static void add_pair(const struct gd_stats_options *options, double x, double p, double distance,
                     double product, struct gd_block_pair *pair, uint64_t *pairs)
{
    bool both = isfinite(x) && isfinite(p);

    if (!both) {
        pair->near += (x == p && !(distance > 0)) || (options->equal_nan && isnan(x) && isnan(p));
        return;
    }
    (*pairs)++;
    pair->near += distance <= options->atol + options->rtol * fabs(p);
    pair->delta += x - p;
    pair->abs_delta += distance;
    pair->sq_delta += distance * distance;
    pair->max_delta = distance > pair->max_delta ? distance : pair->max_delta;
    pair->abs_prev += fabs(p);
    pair->sq_prev += p * p;
    pair->dot += product;
}

/* For real elements that are not all finite in both tensors. */
static void add_pairs_one_by_one(const struct gd_stats_job *job, const struct block *b,
                                 struct gd_stats_part *part)
{
    size_t item = gd_dtype_size(b->dtype);
    double x[WIDE], p[WIDE];

    for (size_t at = 0; at < b->n; at += WIDE) {
        size_t n = b->n - at < WIDE ? b->n - at : WIDE;
        struct gd_block_pair pair = {.near = 0};
        uint64_t pairs = 0;

        gd_stats_widen(b->dtype, b->x + at * item, n, x, NULL);
        gd_stats_widen(b->dtype, b->p + at * item, n, p, NULL);
        for (size_t i = 0; i < n; i++) {
            add_pair(job->options, x[i], p[i], fabs(x[i] - p[i]), x[i] * p[i], &pair, &pairs);
        }
        gd_stats_part_pair(part, &pair, pairs, n - pairs);
    }
}

/* inf - inf: equal infinities have distance 0, others an infinite one. */
static double distance_of_complex(const double x[2], const double p[2])
{
    double apart = gd_stats_magnitude(x[0] - p[0], x[1] - p[1]);

    if (isnan(apart)) {
        return x[0] == p[0] && x[1] == p[1] ? 0 : INFINITY;
    }
    return apart;
}

static void add_complex_pairs(const struct gd_stats_job *job, const struct block *b,
                              struct gd_stats_part *part)
{
    const struct gd_stats_kind *kind = gd_stats_kind(b->dtype);
    size_t item = gd_dtype_size(b->dtype);
    struct gd_block_pair pair = {.near = 0};
    uint64_t pairs = 0;

    for (size_t i = 0; i < b->n; i++) {
        double x[2], p[2];

        kind->widen(b->x + i * item, kind->part, 2, x);
        kind->widen(b->p + i * item, kind->part, 2, p);
        add_pair(job->options, gd_stats_magnitude(x[0], x[1]), gd_stats_magnitude(p[0], p[1]),
                 distance_of_complex(x, p), x[0] * p[0] + x[1] * p[1], &pair, &pairs);
    }
    gd_stats_part_pair(part, &pair, pairs, b->n - pairs);
}

static void take_elements(const struct gd_stats_job *job, const struct block *b,
                          struct gd_stats_part *part)
{
    size_t finite = take_sums(job, b, part);
    struct gd_block_pair pair;

    if (!b->p) {
        return;
    }
    if (finite == b->n) {
        b->kernel->pair(b->x, b->p, b->n, job->options->rtol, job->options->atol, &pair);
        if (pair.abs_prev <= DBL_MAX) {
            gd_stats_part_pair(part, &pair, b->n, 0);
            return;
        }
    }
    add_pairs_one_by_one(job, b, part);
}

/* The remainder that does not fill a kernel's step goes to the portable kernel, which accepts any
 * count. */
static void take_doubles(const struct gd_stats_job *job, const double *x, const double *p, size_t n,
                         struct gd_stats_part *part)
{
    const struct gd_stats_kernel *kernel = &job->level->float64;
    size_t whole = n - n % kernel->step;
    struct block b = {.dtype = GD_FLOAT64,
                      .kernel = kernel,
                      .x = (const unsigned char *)x,
                      .p = (const unsigned char *)p,
                      .n = whole};

    if (whole) {
        take_elements(job, &b, part);
    }
    if (whole == n) {
        return;
    }
    b.kernel = &gd_stats_portable.float64;
    b.x += whole * sizeof(*x);
    if (p) {
        b.p += whole * sizeof(*p);
    }
    b.n = n - whole;
    take_elements(job, &b, part);
}

static void take_widened(const struct gd_stats_job *job, const struct block *b,
                         struct gd_stats_part *part)
{
    bool is_complex = gd_dtype_is_complex(b->dtype);
    size_t item = gd_dtype_size(b->dtype);
    double x[WIDE], p[WIDE];

    for (size_t at = 0; at < b->n; at += WIDE) {
        size_t n = b->n - at < WIDE ? b->n - at : WIDE;

        gd_stats_widen(b->dtype, b->x + at * item, n, x, p);
        if (b->p && !is_complex) {
            gd_stats_widen(b->dtype, b->p + at * item, n, p, NULL);
        }
        take_doubles(job, x, b->p && !is_complex ? p : NULL, n, part);
    }
    if (b->p && is_complex) {
        add_complex_pairs(job, b, part);
    }
}

static void take_block(const struct gd_stats_job *job, struct block *b, struct gd_stats_part *part)
{
    size_t n = b->n, item = gd_dtype_size(b->dtype);
    size_t whole = b->kernel ? n - n % b->kernel->step : 0;

    if (whole) {
        b->n = whole;
        take_elements(job, b, part);
    }
    if (whole == n) {
        return;
    }
    b->n = n - whole;
    b->x += whole * item;
    if (b->p) {
        b->p += whole * item;
    }
    take_widened(job, b, part);
}

static void take_blocks(const struct gd_stats_job *job, int64_t count, struct gd_stats_source *cur,
                        struct gd_stats_source *prev, struct gd_stats_part *part)
{
    int64_t most = (int64_t)(GD_BLOCK_BYTES / gd_dtype_size(job->dtype));

    for (int64_t at = 0; at < count && cur->rc == GD_OK; at += most) {
        size_t n = (size_t)(count - at < most ? count - at : most);
        struct block b = {
            .dtype = job->dtype, .kernel = get_kernel(job->level, job->dtype), .n = n};

        b.x = gd_stats_source_take(cur, n);
        b.p = prev ? gd_stats_source_take(prev, n) : NULL;
        if (prev && prev->rc != GD_OK) {
            break;
        }
        take_block(job, &b, part);
    }
}

void gd_stats_piece(const struct gd_stats_job *job, int64_t first, int64_t count,
                    struct gd_stats_part *ret)
{
    unsigned char scratch[GD_BLOCK_BYTES], prev_scratch[GD_BLOCK_BYTES];
    struct gd_stats_source cur, prev;
    struct gd_stats_job typed = *job;

    gd_stats_part_init(ret);
    if (count == 0) {
        return;
    }
    typed.dtype = job->cur->dtype;
    gd_stats_source_init(&cur, job->cur, first, scratch);
    if (job->prev) {
        gd_stats_source_init(&prev, job->prev, first, prev_scratch);
    }
    take_blocks(&typed, count, &cur, job->prev ? &prev : NULL, ret);
}

int gd_stats_piece_read(const struct gd_stats_job *job, int64_t first, int64_t count,
                        struct gd_stats_part *ret, struct gd_err *err)
{
    unsigned char room[GD_READ_BYTES], prev_room[GD_READ_BYTES];
    struct gd_stats_source cur, prev = {.rc = GD_OK};

    gd_stats_part_init(ret);
    gd_stats_source_init_read(&cur, job->reader, job->dtype, first, first + count, room, err);
    if (job->prev_reader) {
        gd_stats_source_init_read(&prev, job->prev_reader, job->dtype, first, first + count,
                                  prev_room, err);
    }
    take_blocks(job, count, &cur, job->prev_reader ? &prev : NULL, ret);
    return cur.rc != GD_OK ? cur.rc : prev.rc;
}

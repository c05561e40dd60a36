// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One block of two tensors. Blocks of finite floats of normal size, nearly all, use the kernels.
 * Integers, complex numbers, and blocks with non-finite elements or squares beyond the range of
 * double are processed element by element.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/metrics_impl.h"

#define HUGE_SIZE 1e150 /* squares of larger numbers may overflow */
#define TINY_SIZE 1e-130

/* ---- sums ------------------------------------------------------------------------------------ */

static void scaled_add(struct gd_scaled *sum, double x, int exp)
{
    double whole, part;

    if (x == 0) {
        return;
    }
    if (sum->value == 0 && sum->lost == 0) {
        sum->exp = exp;
    } else if (exp > sum->exp) {
        sum->value = ldexp(sum->value, sum->exp - exp);
        sum->lost = ldexp(sum->lost, sum->exp - exp);
        sum->exp = exp;
    } else if (exp < sum->exp) {
        x = ldexp(x, exp - sum->exp);
    }
    whole = sum->value + x;
    part = whole - sum->value;
    sum->lost += (sum->value - (whole - part)) + (x - part);
    sum->value = whole;
}

static void scaled_join(struct gd_scaled *sum, const struct gd_scaled *next)
{
    scaled_add(sum, next->value, next->exp);
    scaled_add(sum, next->lost, next->exp);
}

double gd_scaled_get(const struct gd_scaled *sum)
{
    return ldexp(sum->value + sum->lost, sum->exp);
}

double gd_scaled_root_ratio(const struct gd_scaled *x, const struct gd_scaled *y)
{
    int exp_x, exp_y, exp;
    double mx = frexp(x->value + x->lost, &exp_x), my = frexp(y->value + y->lost, &exp_y);

    if (mx <= 0) {
        return 0;
    }
    if (my <= 0) {
        return INFINITY;
    }
    exp = exp_x + x->exp - exp_y - y->exp;
    if (exp & 1) {
        mx *= 2;
        exp--;
    }
    return ldexp(sqrt(mx / my), exp / 2);
}

double gd_scaled_cosine(const struct gd_scaled *ab, const struct gd_scaled *aa,
                        const struct gd_scaled *bb)
{
    int exp, exp_a, exp_b, half;
    double m = frexp(ab->value + ab->lost, &exp);
    double ma = frexp(aa->value + aa->lost, &exp_a), mb = frexp(bb->value + bb->lost, &exp_b);
    double cosine;

    if (ma <= 0 && mb <= 0) {
        return 1;
    }
    if (ma <= 0 || mb <= 0) {
        return NAN;
    }
    half = exp_a + aa->exp + exp_b + bb->exp;
    ma *= mb;
    if (half & 1) {
        ma *= 2;
        half--;
    }
    cosine = ldexp(m / sqrt(ma), exp + ab->exp - half / 2);
    return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

/* ---- parts ----------------------------------------------------------------------------------- */

void gd_pair_part_init(struct gd_pair_part *part)
{
    *part = (struct gd_pair_part){.max_abs = 0, .max_abs_block = -1};
    gd_stats_part_init(&part->a);
    gd_stats_part_init(&part->b);
}

static void add_spot(struct gd_pair_part *part, struct gd_pair_spot spot)
{
    int at = part->spot_count;

    if (!(spot.score > 0) || (at == GD_WORST && part->spot[at - 1].score >= spot.score)) {
        return;
    }
    if (at < GD_WORST) {
        part->spot_count++;
    } else {
        at--;
    }
    for (; at > 0 && part->spot[at - 1].score < spot.score; at--) {
        part->spot[at] = part->spot[at - 1];
    }
    part->spot[at] = spot;
}

static void add_max_abs(struct gd_pair_part *part, double max_abs, int64_t block)
{
    if (block >= 0 && (part->max_abs_block < 0 || max_abs > part->max_abs)) {
        part->max_abs = max_abs;
        part->max_abs_block = block;
    }
}

void gd_pair_part_merge(struct gd_pair_part *part, const struct gd_pair_part *next)
{
    gd_stats_part_merge(&part->a, &next->a);
    gd_stats_part_merge(&part->b, &next->b);
    part->count += next->count;
    part->finite += next->finite;
    part->same_nonfinite += next->same_nonfinite;
    part->mismatch += next->mismatch;
    part->equal += next->equal;
    part->close += next->close;
    part->r1k += next->r1k;
    part->r5k += next->r5k;
    scaled_join(&part->abs, &next->abs);
    scaled_join(&part->sq, &next->sq);
    scaled_join(&part->aa, &next->aa);
    scaled_join(&part->bb, &next->bb);
    scaled_join(&part->ab, &next->ab);
    part->max_rel = next->max_rel > part->max_rel ? next->max_rel : part->max_rel;
    add_max_abs(part, next->max_abs, next->max_abs_block);
    for (size_t i = 0; i < GD_ULP_BUCKETS; i++) {
        part->ulp[i] += next->ulp[i];
    }
    for (int i = 0; i < next->spot_count; i++) {
        add_spot(part, next->spot[i]);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

int gd_pair_room_init(const struct gd_pair_job *job, struct gd_pair_room *room, struct gd_err *err)
{
    size_t a = gd_dtype_size(job->info_a.dtype), b = gd_dtype_size(job->info_b.dtype);
    size_t n = job->count < GD_PAIR_BLOCK ? ((size_t)job->count + 63) & ~(size_t)63 : GD_PAIR_BLOCK;
    size_t each = a + b + 16 + 8;
    unsigned char *all = calloc(n, each);

    if (!all) {
        return gd_fail_nomem(err);
    }
    room->all = all;
    room->wide_a = all; /* strictest alignment first */
    room->wide_b = all + n * 8;
    room->key_a = (uint32_t *)(void *)(all + n * 16);
    room->key_b = room->key_a + n;
    room->raw_a = all + n * 24;
    room->raw_b = room->raw_a + n * a;
    return GD_OK;
}

void gd_pair_room_deinit(struct gd_pair_room *room)
{
    free(room->all);
    room->all = NULL;
}

int gd_pair_read(const struct gd_pair_job *job, int64_t block, struct gd_pair_room *room,
                 size_t *count, struct gd_err *err)
{
    int64_t first = block * GD_PAIR_BLOCK, n = job->count - first;
    int rc;

    n = n < GD_PAIR_BLOCK ? n : GD_PAIR_BLOCK;
    rc = gd_source_read_run(job->a, first, n, room->raw_a, err);
    rc = rc != GD_OK ? rc : gd_source_read_run(job->b, first, n, room->raw_b, err);
    *count = (size_t)n;
    return rc;
}

static int64_t load_int(enum gd_dtype dtype, const unsigned char *p)
{
    uint64_t wide = 0;

    memcpy(&wide, p, gd_dtype_size(dtype));
    switch (dtype) {
    case GD_BOOL: return wide != 0;
    case GD_INT8: return (int8_t)wide;
    case GD_INT16: return (int16_t)wide;
    case GD_INT32: return (int32_t)wide;
    default: return (int64_t)wide;
    }
}

/* Exact, unless one is negative and the other beyond 2^63: then rounded. */
static double int_distance(int64_t a, bool unsigned_a, int64_t b, bool unsigned_b)
{
    bool below_a = !unsigned_a && a < 0, below_b = !unsigned_b && b < 0;
    uint64_t x = (uint64_t)a, y = (uint64_t)b;

    if (below_a == below_b) { /* the bits sort like the numbers */
        return (double)(x > y ? x - y : y - x);
    }
    return below_a ? (double)(0 - x) + (double)y : (double)(0 - y) + (double)x;
}

static void load_complex(enum gd_dtype dtype, const unsigned char *p, double ret[2])
{
    ret[1] = 0;
    if (dtype == GD_COMPLEX64 || dtype == GD_COMPLEX128) {
        enum gd_dtype half = dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;

        ret[0] = gd_dtype_load(half, p);
        ret[1] = gd_dtype_load(half, p + gd_dtype_size(half));
    } else {
        ret[0] = gd_dtype_load(dtype, p);
    }
}

static bool same_value(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

static struct gd_pair_element complex_at(const struct gd_pair_job *job, const unsigned char *p,
                                         const unsigned char *q)
{
    double x[2], y[2];

    load_complex(job->info_a.dtype, p, x);
    load_complex(job->info_b.dtype, q, y);
    return (struct gd_pair_element){
        .a = gd_stats_magnitude(x[0], x[1]),
        .b = gd_stats_magnitude(y[0], y[1]),
        .distance = hypot(x[0] - y[0], x[1] - y[1]),
        .finite = isfinite(x[0]) && isfinite(x[1]) && isfinite(y[0]) && isfinite(y[1]),
        .same = same_value(x[0], y[0]) && same_value(x[1], y[1]),
    };
}

struct gd_pair_element gd_pair_at(const struct gd_pair_job *job, const struct gd_pair_room *room,
                                  size_t i)
{
    enum gd_dtype type_a = job->info_a.dtype, type_b = job->info_b.dtype;
    const unsigned char *p = room->raw_a + i * gd_dtype_size(type_a);
    const unsigned char *q = room->raw_b + i * gd_dtype_size(type_b);
    struct gd_pair_element e;

    if (job->mode == GD_PAIR_COMPLEX) {
        return complex_at(job, p, q);
    }
    e.a = gd_dtype_load(type_a, p);
    e.b = gd_dtype_load(type_b, q);
    e.finite = isfinite(e.a) && isfinite(e.b);
    e.same = same_value(e.a, e.b);
    e.distance = job->mode == GD_PAIR_INT
                     ? int_distance(load_int(type_a, p), gd_dtype_is_unsigned(type_a),
                                    load_int(type_b, q), gd_dtype_is_unsigned(type_b))
                     : fabs(e.a - e.b);
    return e;
}

/* ---- distances in units of the last place ---------------------------------------------------- */

static uint32_t sort_key16(uint16_t bits)
{
    return (uint32_t)(bits & 0x8000) << 16 | (bits & 0x7fff);
}

static uint32_t key_of(const struct gd_pair_job *job, enum gd_dtype dtype, const unsigned char *p)
{
    uint32_t bits;
    uint16_t half;
    float x;

    if (dtype == job->ulp && gd_dtype_size(dtype) == 2) {
        memcpy(&half, p, sizeof(half));
        return sort_key16(half);
    }
    x = (float)gd_dtype_load(dtype, p);
    switch (job->ulp) {
    case GD_FLOAT16: return sort_key16(gd_float_to_half(x));
    case GD_BFLOAT16: return sort_key16(gd_float_to_bfloat16(x));
    default: memcpy(&bits, &x, sizeof(bits)); return bits;
    }
}

static uint64_t sort_key64(const unsigned char *p)
{
    uint64_t bits, size, middle = (uint64_t)1 << 63;

    memcpy(&bits, p, sizeof(bits));
    size = bits & (middle - 1);
    return bits >> 63 ? middle - size : middle + size;
}

/* Of all pairs, or only the finite ones. */
static void count_ulp(const struct gd_pair_job *job, const struct gd_pair_room *room, size_t n,
                      bool check, struct gd_pair_part *part)
{
    size_t a = gd_dtype_size(job->info_a.dtype), b = gd_dtype_size(job->info_b.dtype), kept = 0;
    const unsigned char *p = room->raw_a, *q = room->raw_b;

    if (job->ulp == GD_DT_NONE) {
        return;
    }
    if (!check && a == 4 && b == 4) {
        job->level->ulp32((const uint32_t *)(const void *)p, (const uint32_t *)(const void *)q, n,
                          part->ulp);
        return;
    }
    for (size_t i = 0; i < n; i++, p += a, q += b) {
        if (check && !gd_pair_at(job, room, i).finite) {
            continue;
        }
        if (job->ulp == GD_FLOAT64) {
            uint64_t x = sort_key64(p), y = sort_key64(q), apart = x > y ? x - y : y - x;

            part->ulp[apart ? 64 - __builtin_clzll(apart) : 0]++;
        } else {
            room->key_a[kept] = key_of(job, job->info_a.dtype, p);
            room->key_b[kept++] = key_of(job, job->info_b.dtype, q);
        }
    }
    job->level->ulp32(room->key_a, room->key_b, kept, part->ulp);
}

/* ---- element by element ---------------------------------------------------------------------- */

struct careful {
    int exp_a, exp_b, exp; /* the sums are divided by these powers of 2 */
    double abs, sq, aa, bb, ab;
    struct gd_pair_spot worst;
    double max_abs;
    bool any;
};

static int exponent_of(double largest)
{
    int exp = largest > 0 ? ilogb(largest) : 0;

    return exp < -900 ? -900 : exp;
}

static void careful_sums(const struct gd_pair_job *job, const struct gd_pair_room *room, size_t i,
                         const struct gd_pair_element *e, struct careful *c)
{
    double x = ldexp(e->a, -c->exp_a), y = ldexp(e->b, -c->exp_b);
    double d = ldexp(e->distance, -c->exp);

    if (isinf(e->distance)) { /* of two finite doubles */
        d = fabs(ldexp(e->a, -c->exp) - ldexp(e->b, -c->exp));
    }
    c->abs += d;
    c->sq += d * d;
    c->aa += x * x;
    c->bb += y * y;
    if (job->mode == GD_PAIR_COMPLEX) {
        size_t a = gd_dtype_size(job->info_a.dtype), b = gd_dtype_size(job->info_b.dtype);
        double u[2], v[2];

        load_complex(job->info_a.dtype, room->raw_a + i * a, u);
        load_complex(job->info_b.dtype, room->raw_b + i * b, v);
        c->ab += ldexp(u[0], -c->exp_a) * ldexp(v[0], -c->exp_b) +
                 ldexp(u[1], -c->exp_a) * ldexp(v[1], -c->exp_b);
    } else {
        c->ab += x * y;
    }
}

static void careful_counts(const struct gd_pair_job *job, const struct gd_pair_element *e,
                           struct careful *c, struct gd_pair_part *part)
{
    double size_b = fabs(e->b), score = gd_pair_score(&job->rule, e->distance, size_b);
    bool equal = e->distance == 0;

    part->finite++;
    part->equal += equal;
    part->close += e->distance <= job->rule.atol + job->rule.rtol * size_b;
    part->r1k += equal || e->distance < 0.001 * size_b;
    part->r5k += equal || e->distance < 0.005 * size_b;
    if (size_b > job->rule.small && e->distance / size_b > part->max_rel) {
        part->max_rel = e->distance / size_b;
    }
    c->any = true;
    c->max_abs = e->distance > c->max_abs ? e->distance : c->max_abs;
    c->worst.score = score > c->worst.score ? score : c->worst.score;
}

static void add_carefully(const struct gd_pair_job *job, const struct gd_pair_room *room,
                          int64_t block, size_t n, struct gd_pair_part *part)
{
    struct careful c = {.worst = {.block = block}};
    double max_a = 0, max_b = 0;

    for (size_t i = 0; i < n; i++) {
        struct gd_pair_element e = gd_pair_at(job, room, i);

        max_a = e.finite && fabs(e.a) > max_a ? fabs(e.a) : max_a;
        max_b = e.finite && fabs(e.b) > max_b ? fabs(e.b) : max_b;
    }
    c.exp_a = exponent_of(max_a);
    c.exp_b = exponent_of(max_b);
    c.exp = (c.exp_a > c.exp_b ? c.exp_a : c.exp_b) + 2;
    for (size_t i = 0; i < n; i++) {
        struct gd_pair_element e = gd_pair_at(job, room, i);

        if (e.finite) {
            careful_counts(job, &e, &c, part);
            careful_sums(job, room, i, &e, &c);
        } else if (e.same) {
            part->same_nonfinite++;
        } else {
            part->mismatch++;
            c.worst.score = INFINITY;
        }
    }
    scaled_add(&part->abs, c.abs, c.exp);
    scaled_add(&part->sq, c.sq, 2 * c.exp);
    scaled_add(&part->aa, c.aa, 2 * c.exp_a);
    scaled_add(&part->bb, c.bb, 2 * c.exp_b);
    scaled_add(&part->ab, c.ab, c.exp_a + c.exp_b);
    add_max_abs(part, c.max_abs, c.any ? block : -1);
    add_spot(part, c.worst);
    count_ulp(job, room, n, true, part);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void widen_halves(enum gd_dtype dtype, const unsigned char *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits, size;
        uint16_t half;
        float x;

        memcpy(&half, in + 2 * i, sizeof(half));
        if (dtype == GD_BFLOAT16) {
            bits = (uint32_t)half << 16;
        } else { /* the float's exponent is 112 too small, or all ones */
            size = (uint32_t)(half & 0x7fff) << 13;
            memcpy(&x, &size, sizeof(x));
            x *= 0x1p112F;
            memcpy(&bits, &x, sizeof(bits));
            bits |= (half & 0x7c00) == 0x7c00 ? UINT32_C(0x7f800000) : 0;
            bits |= (uint32_t)(half & 0x8000) << 16;
        }
        memcpy(out + i, &bits, sizeof(bits));
    }
}

/* The elements as float or double, converted to `wide` if necessary and padded with zeros. */
static const void *widen_block(const struct gd_pair_job *job, enum gd_dtype dtype,
                               unsigned char *raw, void *wide, size_t n, size_t padded)
{
    size_t item = job->mode == GD_PAIR_FLOAT32 ? 4 : 8;
    bool as_is = dtype == (item == 4 ? GD_FLOAT32 : GD_FLOAT64);
    unsigned char *to = as_is ? raw : wide;

    if (!as_is && item == 4) {
        widen_halves(dtype, raw, n, wide);
    } else if (!as_is) {
        for (size_t i = 0; i < n; i++) {
            ((double *)wide)[i] = gd_dtype_load(dtype, raw + i * gd_dtype_size(dtype));
        }
    }
    memset(to + n * item, 0, (padded - n) * item);
    return to;
}

static bool is_usual(const struct gd_pair_sums *sums)
{
    double sizes[] = {sums->max_a, sums->max_b};

    for (int i = 0; i < 2; i++) {
        if (!(sizes[i] <= HUGE_SIZE) || (sizes[i] > 0 && sizes[i] < TINY_SIZE)) {
            return false;
        }
    }
    return sums->abs <= DBL_MAX;
}

/* False: use the slow path. */
static bool add_fast(const struct gd_pair_job *job, const struct gd_pair_room *room, int64_t block,
                     size_t n, struct gd_pair_part *part)
{
    size_t step = job->level->step, padded = (n + step - 1) / step * step, more = padded - n;
    struct gd_pair_sums s;
    const void *a, *b;

    if (job->mode != GD_PAIR_FLOAT32 && job->mode != GD_PAIR_FLOAT64) {
        return false;
    }
    a = widen_block(job, job->info_a.dtype, room->raw_a, room->wide_a, n, padded);
    b = widen_block(job, job->info_b.dtype, room->raw_b, room->wide_b, n, padded);
    if (job->mode == GD_PAIR_FLOAT32) {
        job->level->float32(a, b, padded, &job->rule, &s);
    } else {
        job->level->float64(a, b, padded, &job->rule, &s);
    }
    if (!is_usual(&s)) {
        return false;
    }
    part->finite += n;
    part->equal += s.equal - more;
    part->close += s.close - more;
    part->r1k += s.r1k - more;
    part->r5k += s.r5k - more;
    scaled_add(&part->abs, s.abs, 0);
    scaled_add(&part->sq, s.sq, 0);
    scaled_add(&part->aa, s.aa, 0);
    scaled_add(&part->bb, s.bb, 0);
    scaled_add(&part->ab, s.ab, 0);
    part->max_rel = s.max_rel > part->max_rel ? s.max_rel : part->max_rel;
    add_max_abs(part, s.max_abs, block);
    add_spot(part, (struct gd_pair_spot){block, s.max_score});
    count_ulp(job, room, n, false, part);
    return true;
}

static void add_stats(enum gd_dtype dtype, const unsigned char *raw, size_t n,
                      struct gd_stats_part *ret)
{
    static const struct gd_stats_options none;
    struct gd_tensor tensor = {
        .dtype = dtype, .shape = {.rank = 1, .dim = {(int64_t)n}}, .data = raw};
    struct gd_stats_job job = {.cur = &tensor, .options = &none, .level = gd_stats_level()};

    tensor.stride[0] = (int64_t)gd_dtype_size(dtype);
    gd_stats_part_init(ret);
    gd_stats_piece(&job, 0, (int64_t)n, ret);
}

/* If both are equal, the statistics of one are sufficient. False: they are not. */
static bool add_same(const struct gd_pair_job *job, const struct gd_pair_room *room, int64_t block,
                     size_t n, const struct gd_stats_part *stats, struct gd_pair_part *part)
{
    double sq = stats->sq.value + stats->sq.lost;

    if (!job->same_type ||
        memcmp(room->raw_a, room->raw_b, n * gd_dtype_size(job->info_a.dtype)) != 0 ||
        !(sq <= DBL_MAX) || (sq > 0 && sq < TINY_SIZE * TINY_SIZE)) {
        return false;
    }
    part->finite += stats->finite;
    part->equal += stats->finite;
    part->close += stats->finite;
    part->r1k += stats->finite;
    part->r5k += stats->finite;
    part->same_nonfinite += n - stats->finite;
    scaled_add(&part->aa, sq, 0);
    scaled_add(&part->bb, sq, 0);
    scaled_add(&part->ab, sq, 0);
    part->ulp[0] += stats->finite;
    add_max_abs(part, 0, stats->finite ? block : -1);
    return true;
}

int gd_pair_block(const struct gd_pair_job *job, int64_t block, struct gd_pair_room *room,
                  struct gd_pair_part *part, struct gd_err *err)
{
    struct gd_stats_part stats;
    size_t n;
    int rc = gd_pair_read(job, block, room, &n, err);

    if (rc != GD_OK) {
        return rc;
    }
    part->count += n;
    add_stats(job->info_a.dtype, room->raw_a, n, &stats);
    gd_stats_part_merge(&part->a, &stats);
    if (add_same(job, room, block, n, &stats, part)) {
        gd_stats_part_merge(&part->b, &stats);
        return GD_OK;
    }
    add_stats(job->info_b.dtype, room->raw_b, n, &stats);
    gd_stats_part_merge(&part->b, &stats);
    if (!add_fast(job, room, block, n, part)) {
        add_carefully(job, room, block, n, part);
    }
    return GD_OK;
}

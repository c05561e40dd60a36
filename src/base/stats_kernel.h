// SPDX-License-Identifier: MIT
/*
 * The kernels of one level, written once with the compiler's vector types. The file of a level
 * (stats_avx512.c, ...) includes this after it has defined
 *
 *     VECTOR                 bytes of a vector
 *     f64v f32v i64v i32v i16v    vectors of that size
 *     min64 max64 fma64 min32 max32    lane by lane; min and max of a NaN and b are b
 *     max16 umax16 umin16    of signed and unsigned lanes of 16 bits
 *     smax32 umax32 umin32   of 32 bits
 *     float_to64 half_to32   an f64v from float32 in memory, an f32v from float16
 *     LOW64 HIGH64           the halves of an f32v widened, where that costs no more than a load
 *
 * and, where there is an instruction for it,
 *
 *     plus64                 a + b by another unit than the additions around it
 *     most_abs64             the larger of two magnitudes; that of b where a is NaN, and of a where
 *                            b is
 *     negatives32 negatives16    how many lanes of two f32v, or of an i16v, have a sign bit that is
 *                            set: counted outside the vector registers
 *     signs16                without those: an i16v whose lanes have the signs of those of two
 *                            f32v, in any order
 *
 * Sums are in double throughout: float32 is widened while loading, which is cheaper than waiting
 * for memory. Each kernel has few accumulators, so that they stay in registers.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/dtype_impl.h"
#include "base/stats_impl.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  (VECTOR / sizeof(double))

typedef uint64_t u64v __attribute__((vector_size(VECTOR)));
typedef uint32_t u32v __attribute__((vector_size(VECTOR)));
typedef uint16_t u16v __attribute__((vector_size(VECTOR)));

INLINE f64v load64(const unsigned char *p)
{
    f64v v;

    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE f32v load32(const unsigned char *p)
{
    f32v v;

    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE f64v all64(double x)
{
    return x - (f64v){0};
}

INLINE f32v all32(float x)
{
    return x - (f32v){0};
}

INLINE f64v abs64(f64v x)
{
    return (f64v)((u64v)x & UINT64_C(0x7fffffffffffffff));
}

INLINE f32v abs32(f32v x)
{
    return (f32v)((u32v)x & UINT32_C(0x7fffffff));
}

#ifndef plus64
#define plus64(a, b) ((a) + (b))
#endif

/* a where the mask is set, else b. */
INLINE f64v select64(i64v mask, f64v a, f64v b)
{
    return (f64v)((mask & (i64v)a) | (~mask & (i64v)b));
}

INLINE f32v select32(i32v mask, f32v a, f32v b)
{
    return (f32v)((mask & (i32v)a) | (~mask & (i32v)b));
}

INLINE double total64(f64v v)
{
    double total = 0;

    for (size_t i = 0; i < LANES; i++) {
        total += v[i];
    }
    return total;
}

INLINE uint64_t count64(i64v v)
{
    uint64_t total = 0;

    for (size_t i = 0; i < LANES; i++) {
        total += (uint64_t)v[i];
    }
    return total;
}

INLINE uint64_t count32(i32v v)
{
    uint64_t total = 0;

    for (size_t i = 0; i < 2 * LANES; i++) {
        total += (uint32_t)v[i];
    }
    return total;
}

INLINE uint64_t count16(i16v v)
{
    return count32(((i32v)v & 0xffff) + (i32v)((u32v)v >> 16));
}

INLINE double least64(f64v v)
{
    double least = v[0];

    for (size_t i = 1; i < LANES; i++) {
        least = v[i] < least ? v[i] : least;
    }
    return least;
}

INLINE double least32(f32v v)
{
    float least = v[0];

    for (size_t i = 1; i < 2 * LANES; i++) {
        least = v[i] < least ? v[i] : least;
    }
    return (double)least;
}

/* Input of one step: two vectors of floats in any order, or four of doubles. */
struct two {
    f32v a, b;
};

struct four {
    struct two narrow;
    f64v x[4];
};

typedef struct two (*two_fn)(const unsigned char *p);
typedef struct four (*four_fn)(const unsigned char *p);

INLINE struct two two_float32(const unsigned char *p)
{
    return (struct two){load32(p), load32(p + VECTOR)};
}

INLINE struct two two_float16(const unsigned char *p)
{
    return (struct two){half_to32(p), half_to32(p + VECTOR / 2)};
}

/* Every other element is the upper half of a float already. */
INLINE struct two two_bfloat16(const unsigned char *p)
{
    u32v v;

    memcpy(&v, p, sizeof(v));
    return (struct two){(f32v)(v << 16), (f32v)(v & UINT32_C(0xffff0000))};
}

/* Where splitting a vector costs more than a load, the floats are loaded a second time, or stored
 * and loaded: that does not compete with the arithmetic. A barrier keeps the compiler from undoing
 * it. */
INLINE struct four four_float32(const unsigned char *p)
{
    const unsigned char *q = p;

    __asm__("" : "+r"(q));
    return (struct four){two_float32(p),
                         {float_to64(q), float_to64(q + VECTOR / 2), float_to64(q + VECTOR),
                          float_to64(q + VECTOR / 2 * 3)}};
}

INLINE struct four widen(struct two narrow)
{
#ifdef LOW64
    return (struct four){narrow,
                         {LOW64(narrow.a), HIGH64(narrow.a), LOW64(narrow.b), HIGH64(narrow.b)}};
#else
    struct two room = narrow;
    const unsigned char *p = (const unsigned char *)&room;

    __asm__("" : "+m"(room));
    return (struct four){narrow,
                         {float_to64(p), float_to64(p + VECTOR / 2), float_to64(p + VECTOR),
                          float_to64(p + VECTOR / 2 * 3)}};
#endif
}

INLINE struct four four_float16(const unsigned char *p)
{
    return widen(two_float16(p));
}

INLINE struct four four_bfloat16(const unsigned char *p)
{
    return widen(two_bfloat16(p));
}

struct sums64 {
    f64v sum, abs, sq;
};

INLINE void add64(struct sums64 *s, f64v x)
{
    s->sum += x;
    s->abs = plus64(abs64(x), s->abs);
    s->sq = fma64(x, x, s->sq);
}

#ifdef most_abs64
/* Two at a time: |x| + |y| is the larger of |x + y| and |x - y|. The result is not finite where x
 * or y is not. */
INLINE void add_both64(struct sums64 *s, f64v x, f64v y)
{
    f64v both = x + y;

    s->sum += both;
    s->abs = plus64(most_abs64(both, x - y), s->abs);
    s->sq = fma64(x, x, s->sq);
    s->sq = fma64(y, y, s->sq);
}
#endif

/* Adds what a step of a loop has read. With few registers, only the squares have two accumulators:
 * the other additions do not wait for each other. */
INLINE void add_four64(struct sums64 *s, struct sums64 *t, const f64v x[4])
{
#ifdef most_abs64
    add_both64(s, x[0], x[2]);
    add_both64(t, x[1], x[3]);
#else
    s->sum += (x[0] + x[1]) + (x[2] + x[3]);
    s->abs += (abs64(x[0]) + abs64(x[1])) + (abs64(x[2]) + abs64(x[3]));
    s->sq = fma64(x[0], x[0], s->sq);
    t->sq = fma64(x[1], x[1], t->sq);
    s->sq = fma64(x[2], x[2], s->sq);
    t->sq = fma64(x[3], x[3], t->sq);
#endif
}

INLINE void put_sums(const struct sums64 *a, const struct sums64 *b, struct gd_block_sums *ret)
{
    ret->sum = total64(a->sum + b->sum);
    ret->abs = total64(a->abs + b->abs);
    ret->sq = total64(a->sq + b->sq);
}

/* Counts of sign bits. A block is too small to overflow those in 16-bit lanes. */
#if defined(negatives32)
typedef uint64_t sign_count32;
typedef uint64_t sign_count16;
#define add_signs32(count, v)    ((count) + negatives32((v).a, (v).b))
#define add_signs16(count, bits) ((count) + negatives16(bits))
#define total_signs32(count)     (count)
#define total_signs16(count)     (count)
#else
typedef i32v sign_count32;
typedef i16v sign_count16;
#define add_signs16(count, bits) ((count) + (i16v)((bits) >> 15))
#define total_signs16(count)     count16(count)
#ifdef signs16
#define add_signs32(count, v) (i32v)((i16v)(count) + (i16v)((u16v)signs16((v).a, (v).b) >> 15))
#define total_signs32(count)  count16((i16v)(count))
#else
#define add_signs32(count, v) ((count) + (i32v)((u32v)(v).a >> 31) + (i32v)((u32v)(v).b >> 31))
#define total_signs32(count)  count32(count)
#endif
#endif

/* Extremes by integer comparison, which any unit of a processor can do: the signed maximum is the
 * largest element if not negative; the unsigned maximum is the smallest element if negative. */
struct ends32 {
    i32v high, low, least;
    sign_count32 signs;
};

INLINE void ends_add32(struct ends32 *e, struct two v)
{
    i32v a = (i32v)v.a, b = (i32v)v.b;

    e->high = smax32(smax32(a, b), e->high);
    e->low = umax32(umax32(a, b), e->low);
    e->least = umin32(umin32((i32v)abs32(v.a), (i32v)abs32(v.b)), e->least);
    e->signs = add_signs32(e->signs, v);
}

INLINE double float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return (double)x;
}

INLINE void put_ends32(const struct ends32 *e, struct gd_block_sums *ret)
{
    int32_t high = INT32_MIN;
    uint32_t low = 0, least = UINT32_MAX;

    for (size_t i = 0; i < 2 * LANES; i++) {
        high = e->high[i] > high ? e->high[i] : high;
        low = (uint32_t)e->low[i] > low ? (uint32_t)e->low[i] : low;
        least = (uint32_t)e->least[i] < least ? (uint32_t)e->least[i] : least;
    }
    ret->least = float_of(least);
    ret->max = high >= 0 ? float_of((uint32_t)high) : -ret->least;
    ret->min = low > INT32_MAX ? float_of(low) : ret->least;
    ret->signs = total_signs32(e->signs);
}

/* Prefetches: the processor alone does not fetch far enough ahead. Harmless beyond the end. */
INLINE void ahead(const unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch(p + 4096 + i);
    }
}

INLINE void sums32(const unsigned char *p, size_t n, four_fn load, size_t bytes,
                   struct gd_block_sums *ret)
{
    const i32v none = {0};
    struct ends32 e = {.high = none + INT32_MIN, .least = none - 1};
    struct sums64 s = {{0}, {0}, {0}}, t = s;

    for (size_t i = 0; i < n; i += 4 * LANES, p += bytes) {
        struct four v = load(p);

        ahead(p, bytes);
        ends_add32(&e, v.narrow);
        add_four64(&s, &t, v.x);
    }
    /* its lanes are read from memory, so that `e` stays in registers */
    const struct ends32 seen = e;

    put_sums(&s, &t, ret);
    put_ends32(&seen, ret);
    ret->finite = n;
}

/* As ends32. */
struct ends16 {
    i16v high, low, least;
    sign_count16 signs;
};

INLINE void ends_add16(struct ends16 *e, const unsigned char *p)
{
    u16v bits;

    memcpy(&bits, p, sizeof(bits));
    e->high = max16((i16v)bits, e->high);
    e->low = umax16((i16v)bits, e->low);
    e->least = umin16((i16v)(bits & (uint16_t)0x7fff), e->least);
    e->signs = add_signs16(e->signs, bits);
}

INLINE void put_ends16(const struct ends16 *e, float (*value)(uint16_t bits),
                       struct gd_block_sums *ret)
{
    int16_t high = INT16_MIN;
    uint16_t low = 0, least = UINT16_MAX;

    ret->signs = total_signs16(e->signs);
    for (size_t i = 0; i < 4 * LANES; i++) {
        high = e->high[i] > high ? e->high[i] : high;
        low = (uint16_t)e->low[i] > low ? (uint16_t)e->low[i] : low;
        least = (uint16_t)e->least[i] < least ? (uint16_t)e->least[i] : least;
    }
    ret->least = (double)value(least);
    ret->max = high >= 0 ? (double)value((uint16_t)high) : -ret->least;
    ret->min = low >= 0x8000 ? (double)value(low) : ret->least;
}

INLINE void sums16(const unsigned char *p, size_t n, four_fn load, float (*value)(uint16_t bits),
                   struct gd_block_sums *ret)
{
    const i16v none = {0};
    struct ends16 e = {.high = none + INT16_MIN, .least = none - 1};
    struct sums64 s = {{0}, {0}, {0}}, t = s;

    for (size_t i = 0; i < n; i += 4 * LANES, p += VECTOR) {
        struct four v = load(p);

        ahead(p, VECTOR);
        ends_add16(&e, p);
        add_four64(&s, &t, v.x);
    }
    /* its lanes are read from memory, so that `e` stays in registers */
    const struct ends16 seen = e;

    put_sums(&s, &t, ret);
    put_ends16(&seen, value, ret);
    ret->finite = n;
}

INLINE f64v if_finite64(f64v x)
{
    return (f64v)((i64v)x & (abs64(x) <= DBL_MAX));
}

struct finite_ends32 {
    f32v min, max, least;
    i32v signs;
};

INLINE void put_finite_ends32(const struct finite_ends32 *e, struct gd_block_sums *ret)
{
    ret->min = least32(e->min);
    ret->max = -least32(-e->max);
    ret->least = least32(e->least);
    ret->signs = count32(e->signs);
}

INLINE void sums_finite32(const unsigned char *p, size_t n, four_fn load, size_t bytes,
                          struct gd_block_sums *ret)
{
    struct finite_ends32 e = {all32(INFINITY), all32(-INFINITY), all32(INFINITY), {0}};
    struct sums64 s = {{0}, {0}, {0}}, t = s;
    i32v finite = {0};

    for (size_t i = 0; i < n; i += 4 * LANES, p += bytes) {
        struct four v = load(p);
        i32v a = abs32(v.narrow.a) <= FLT_MAX, b = abs32(v.narrow.b) <= FLT_MAX;

        ahead(p, bytes);
        finite -= a + b;
        e.min = min32(min32(select32(a, v.narrow.a, all32(INFINITY)),
                            select32(b, v.narrow.b, all32(INFINITY))),
                      e.min);
        e.max = max32(max32(select32(a, v.narrow.a, all32(-INFINITY)),
                            select32(b, v.narrow.b, all32(-INFINITY))),
                      e.max);
        e.least = min32(abs32(v.narrow.a), min32(abs32(v.narrow.b), e.least));
        e.signs +=
            (i32v)((u32v)((i32v)v.narrow.a & a) >> 31) + (i32v)((u32v)((i32v)v.narrow.b & b) >> 31);
        add64(&s, if_finite64(v.x[0]));
        add64(&t, if_finite64(v.x[1]));
        add64(&s, if_finite64(v.x[2]));
        add64(&t, if_finite64(v.x[3]));
    }
    put_sums(&s, &t, ret);
    put_finite_ends32(&e, ret);
    ret->finite = count32(finite);
}

/* all: all elements are known to be finite. */
INLINE f64v square_from(f64v x, f64v mean, bool all, f64v sum)
{
    f64v d = x - mean;

    if (!all) {
        d = (f64v)((i64v)d & (abs64(x) <= DBL_MAX));
    }
    return fma64(d, d, sum);
}

INLINE double spread32(const unsigned char *p, size_t n, four_fn load, size_t bytes, double mean,
                       bool all)
{
    f64v s = {0}, t = s, m = all64(mean);

    for (size_t i = 0; i < n; i += 4 * LANES, p += bytes) {
        struct four v = load(p);

        s = square_from(v.x[0], m, all, s);
        t = square_from(v.x[1], m, all, t);
        s = square_from(v.x[2], m, all, s);
        t = square_from(v.x[3], m, all, t);
    }
    return total64(s + t);
}

INLINE void small32(const unsigned char *p, size_t n, two_fn load, size_t bytes, double tiny,
                    struct gd_block_small *ret)
{
    const f32v limit = all32((float)tiny);
    const i32v sign = (i32v)all32(-0.0f);
    i32v zero = {0}, neg_zero = {0}, below = {0};

    for (size_t i = 0; i < n; i += 4 * LANES, p += bytes) {
        struct two v = load(p);

        zero -= (i32v)((u32v)v.a << 1 == 0) + (i32v)((u32v)v.b << 1 == 0);
        neg_zero -= ((i32v)v.a == sign) + ((i32v)v.b == sign);
        below -= (abs32(v.a) < limit) + (abs32(v.b) < limit);
    }
    ret->zero = count32(zero);
    ret->neg_zero = count32(neg_zero);
    ret->below = count32(below);
}

/* The ends of the range are moved inwards to floats: the same floats are inside. */
INLINE float float_above(double x)
{
    float f = (float)x;

    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

INLINE uint64_t within32(const unsigned char *p, size_t n, two_fn load, size_t bytes,
                         struct gd_range range)
{
    const f32v lo = all32(float_above(range.lo)), hi = all32(-float_above(-range.hi));
    i32v count = {0};

    for (size_t i = 0; i < n; i += 4 * LANES, p += bytes) {
        struct two v = load(p);

        count -= ((v.a >= lo) & (v.a <= hi)) + ((v.b >= lo) & (v.b <= hi));
    }
    return count32(count);
}

struct pair64 {
    f64v delta, abs_delta, sq_delta, max_delta, abs_prev, sq_prev, dot;
    i64v near;
};

/* The tolerance is rounded twice, not fused, so that mismatches are the same on every processor. */
INLINE void pair_add(struct pair64 *s, f64v x, f64v p, f64v rtol, f64v atol)
{
    f64v d = x - p, distance = abs64(d), size = abs64(p);
    f64v scaled = rtol * size;

    s->delta += d;
    s->abs_delta = plus64(distance, s->abs_delta);
    s->sq_delta = fma64(d, d, s->sq_delta);
    s->max_delta = max64(distance, s->max_delta);
    s->abs_prev = plus64(size, s->abs_prev);
    s->sq_prev = fma64(p, p, s->sq_prev);
    s->dot = fma64(x, p, s->dot);
    s->near -= distance <= atol + scaled;
}

INLINE void put_pair(const struct pair64 *s, struct gd_block_pair *ret)
{
    ret->delta = total64(s->delta);
    ret->abs_delta = total64(s->abs_delta);
    ret->sq_delta = total64(s->sq_delta);
    ret->max_delta = -least64(-s->max_delta);
    ret->abs_prev = total64(s->abs_prev);
    ret->sq_prev = total64(s->sq_prev);
    ret->dot = total64(s->dot);
    ret->near = count64(s->near);
}

/* The address of a step's elements as floats: p itself, or `room`, where they are widened to. */
INLINE const unsigned char *place_floats(const unsigned char *p, two_fn load, size_t bytes,
                                         struct two *room)
{
    if (bytes == sizeof(*room)) {
        return p;
    }
    *room = load(p);
    __asm__("" : "+m"(*room)); /* see widen() */
    return (const unsigned char *)room;
}

INLINE void pair32(const unsigned char *x, const unsigned char *p, size_t n, two_fn load,
                   size_t bytes, double rtol, double atol, struct gd_block_pair *ret)
{
    const f64v r = all64(rtol), a = all64(atol);
    struct pair64 s = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};
    struct two room_x, room_p;

    for (size_t i = 0; i < n; i += 4 * LANES, x += bytes, p += bytes) {
        const unsigned char *u = place_floats(x, load, bytes, &room_x);
        const unsigned char *v = place_floats(p, load, bytes, &room_p);
        const unsigned char *end = u + 2 * VECTOR;

        ahead(p, bytes);
        /* keeps the compiler from unrolling the loop: the registers suffice for one vector */
        __asm__("" : "+r"(end));
        for (; u < end; u += VECTOR / 2, v += VECTOR / 2) {
            pair_add(&s, float_to64(u), float_to64(v), r, a);
        }
    }
    put_pair(&s, ret);
}

/* The kernels of a dtype: the loops above with its load function. */
#define KERNELS(name, bytes)                                                                       \
    static void name##_sums_finite(const unsigned char *x, size_t n, struct gd_block_sums *ret)    \
    {                                                                                              \
        sums_finite32(x, n, four_##name, bytes, ret);                                              \
    }                                                                                              \
    static double name##_spread(const unsigned char *x, size_t n, double mean, bool all)           \
    {                                                                                              \
        return all ? spread32(x, n, four_##name, bytes, mean, true)                                \
                   : spread32(x, n, four_##name, bytes, mean, false);                              \
    }                                                                                              \
    static void name##_small(const unsigned char *x, size_t n, double tiny,                        \
                             struct gd_block_small *ret)                                           \
    {                                                                                              \
        small32(x, n, two_##name, bytes, tiny, ret);                                               \
    }                                                                                              \
    static uint64_t name##_within(const unsigned char *x, size_t n, struct gd_range range)         \
    {                                                                                              \
        return within32(x, n, two_##name, bytes, range);                                           \
    }                                                                                              \
    static void name##_pair(const unsigned char *x, const unsigned char *p, size_t n, double rtol, \
                            double atol, struct gd_block_pair *ret)                                \
    {                                                                                              \
        pair32(x, p, n, two_##name, bytes, rtol, atol, ret);                                       \
    }

static void float16_sums(const unsigned char *x, size_t n, struct gd_block_sums *ret)
{
    sums16(x, n, four_float16, gd_half_widen, ret);
}

static void bfloat16_sums(const unsigned char *x, size_t n, struct gd_block_sums *ret)
{
    sums16(x, n, four_bfloat16, gd_bfloat16_widen, ret);
}

static void float32_sums(const unsigned char *x, size_t n, struct gd_block_sums *ret)
{
    sums32(x, n, four_float32, 2 * VECTOR, ret);
}

KERNELS(float16, VECTOR)
KERNELS(bfloat16, VECTOR)
KERNELS(float32, 2 * VECTOR)

struct ends64 {
    f64v min, max, least;
    i64v signs;
};

INLINE void put_ends64(const struct ends64 *e, struct gd_block_sums *ret)
{
    ret->min = least64(e->min);
    ret->max = -least64(-e->max);
    ret->least = least64(e->least);
    ret->signs = count64(e->signs);
}

INLINE void ends_add64(struct ends64 *e, f64v x)
{
    e->min = min64(x, e->min);
    e->max = max64(x, e->max);
    e->least = min64(abs64(x), e->least);
    e->signs += (i64v)((u64v)x >> 63);
}

static void float64_sums(const unsigned char *p, size_t n, struct gd_block_sums *ret)
{
    struct ends64 e = {all64(INFINITY), all64(-INFINITY), all64(INFINITY), {0}};
    struct sums64 s = {{0}, {0}, {0}}, t = s;

    for (size_t i = 0; i < n; i += 2 * LANES, p += 2 * VECTOR) {
        f64v a = load64(p), b = load64(p + VECTOR);

        ahead(p, 2 * VECTOR);
        ends_add64(&e, a);
        ends_add64(&e, b);
        add64(&s, a);
        add64(&t, b);
    }
    put_sums(&s, &t, ret);
    put_ends64(&e, ret);
    ret->finite = n;
}

static void float64_sums_finite(const unsigned char *p, size_t n, struct gd_block_sums *ret)
{
    struct ends64 e = {all64(INFINITY), all64(-INFINITY), all64(INFINITY), {0}};
    struct sums64 s = {{0}, {0}, {0}}, t = s;
    i64v count = {0};

    for (size_t i = 0; i < n; i += 2 * LANES, p += 2 * VECTOR) {
        f64v a = load64(p), b = load64(p + VECTOR);
        i64v fa = abs64(a) <= DBL_MAX, fb = abs64(b) <= DBL_MAX;

        ahead(p, 2 * VECTOR);
        count -= fa + fb;
        e.min =
            min64(min64(select64(fa, a, all64(INFINITY)), select64(fb, b, all64(INFINITY))), e.min);
        e.max = max64(max64(select64(fa, a, all64(-INFINITY)), select64(fb, b, all64(-INFINITY))),
                      e.max);
        e.least = min64(abs64(a), min64(abs64(b), e.least));
        e.signs += (i64v)((u64v)((i64v)a & fa) >> 63) + (i64v)((u64v)((i64v)b & fb) >> 63);
        add64(&s, (f64v)((i64v)a & fa));
        add64(&t, (f64v)((i64v)b & fb));
    }
    put_sums(&s, &t, ret);
    put_ends64(&e, ret);
    ret->finite = count64(count);
}

INLINE double spread64(const unsigned char *p, size_t n, double mean, bool all)
{
    f64v s = {0}, t = s, m = all64(mean);

    for (size_t i = 0; i < n; i += 2 * LANES, p += 2 * VECTOR) {
        s = square_from(load64(p), m, all, s);
        t = square_from(load64(p + VECTOR), m, all, t);
    }
    return total64(s + t);
}

static double float64_spread(const unsigned char *x, size_t n, double mean, bool all)
{
    return all ? spread64(x, n, mean, true) : spread64(x, n, mean, false);
}

static void float64_small(const unsigned char *p, size_t n, double tiny, struct gd_block_small *ret)
{
    const f64v limit = all64(tiny);
    const i64v sign = (i64v)all64(-0.0);
    i64v zero = {0}, neg_zero = {0}, below = {0};

    for (size_t i = 0; i < n; i += LANES, p += VECTOR) {
        f64v x = load64(p);

        zero -= (i64v)(x == 0);
        neg_zero -= (i64v)x == sign;
        below -= abs64(x) < limit;
    }
    ret->zero = count64(zero);
    ret->neg_zero = count64(neg_zero);
    ret->below = count64(below);
}

static uint64_t float64_within(const unsigned char *p, size_t n, struct gd_range range)
{
    const f64v lo = all64(range.lo), hi = all64(range.hi);
    i64v count = {0};

    for (size_t i = 0; i < n; i += LANES, p += VECTOR) {
        f64v x = load64(p);

        count -= (x >= lo) & (x <= hi);
    }
    return count64(count);
}

static void float64_pair(const unsigned char *x, const unsigned char *p, size_t n, double rtol,
                         double atol, struct gd_block_pair *ret)
{
    const f64v r = all64(rtol), a = all64(atol);
    struct pair64 s = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};

    for (size_t i = 0; i < n; i += 2 * LANES, x += 2 * VECTOR, p += 2 * VECTOR) {
        ahead(p, 2 * VECTOR);
        pair_add(&s, load64(x), load64(p), r, a);
        pair_add(&s, load64(x + VECTOR), load64(p + VECTOR), r, a);
    }
    put_pair(&s, ret);
}

static uint64_t or_elements(const unsigned char *p, size_t bytes, uint64_t mask, uint64_t add)
{
    u64v a = {0}, b = {0};
    uint64_t all = 0;

    for (size_t i = 0; i < bytes; i += 2 * VECTOR, p += 2 * VECTOR) {
        ahead(p, 2 * VECTOR);
        a |= ((u64v)load64(p) & mask) + add;
        b |= ((u64v)load64(p + VECTOR) & mask) + add;
    }
    a |= b;
    for (size_t i = 0; i < LANES; i++) {
        all |= a[i];
    }
    return all;
}

#define KERNEL(name, elements)                                                                     \
    {                                                                                              \
        .step = (elements), .sums = name##_sums, .sums_finite = name##_sums_finite,                \
        .spread = name##_spread, .small = name##_small, .within = name##_within,                   \
        .pair = name##_pair,                                                                       \
    }

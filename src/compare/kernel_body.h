// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The kernels of one level, written once with the compiler's vectors. A level's file defines VECTOR
 * (bytes in a vector of doubles) and includes this.
 */
#include <math.h>
#include <string.h>

#include "compare/kernel.h"

#define LANES  (VECTOR / sizeof(double))
#define INLINE static inline __attribute__((always_inline))

typedef double f64v __attribute__((vector_size(VECTOR)));
typedef int64_t i64v __attribute__((vector_size(VECTOR)));
typedef float f32v __attribute__((vector_size(VECTOR / 2)));

struct wide {
    f64v abs, sq, aa, bb, ab, max_abs, max_rel, max_score, max_a, max_b;
    i64v equal, close, r1k, r5k; /* count downwards */
};

INLINE f64v all(double x)
{
    return x - (f64v){0};
}

INLINE f64v size_of(f64v x)
{
    return (f64v)((i64v)x & INT64_C(0x7fffffffffffffff));
}

/* x where the mask is set, otherwise 0. */
INLINE f64v only(i64v mask, f64v x)
{
    return (f64v)(mask & (i64v)x);
}

INLINE f64v larger(f64v x, f64v y)
{
    i64v mask = x > y;

    return (f64v)((mask & (i64v)x) | (~mask & (i64v)y));
}

INLINE void add(struct wide *w, f64v a, f64v b, f64v rtol, f64v atol, f64v small)
{
    f64v d = a - b, ad = size_of(d), sa = size_of(a), sb = size_of(b);
    f64v allowed = atol + rtol * sb;
    i64v none = allowed == 0, same = ad == 0;
    f64v one = only(none, all(1));

    w->abs += ad;
    w->sq += d * d;
    w->aa += a * a;
    w->bb += b * b;
    w->ab += a * b;
    w->max_abs = larger(ad, w->max_abs);
    w->max_a = larger(sa, w->max_a);
    w->max_b = larger(sb, w->max_b);
    w->max_rel = larger(only(sb > small, ad / sb), w->max_rel);
    w->max_score = larger(ad / (allowed + one), w->max_score);
    w->equal += same;
    w->close += ad <= allowed;
    w->r1k += same | (ad < sb * 0.001);
    w->r5k += same | (ad < sb * 0.005);
}

INLINE double total(f64v v)
{
    double sum = 0;

    for (size_t i = 0; i < LANES; i++) {
        sum += v[i];
    }
    return sum;
}

INLINE double largest(f64v v)
{
    double max = v[0];

    for (size_t i = 1; i < LANES; i++) {
        max = v[i] > max ? v[i] : max;
    }
    return max;
}

INLINE uint64_t counted(i64v v)
{
    int64_t sum = 0;

    for (size_t i = 0; i < LANES; i++) {
        sum -= v[i];
    }
    return (uint64_t)sum;
}

INLINE void finish(const struct wide *w, struct gd_pair_sums *ret)
{
    *ret = (struct gd_pair_sums){
        .abs = total(w->abs),
        .sq = total(w->sq),
        .aa = total(w->aa),
        .bb = total(w->bb),
        .ab = total(w->ab),
        .max_abs = largest(w->max_abs),
        .max_rel = largest(w->max_rel),
        .max_score = largest(w->max_score),
        .max_a = largest(w->max_a),
        .max_b = largest(w->max_b),
        .equal = counted(w->equal),
        .close = counted(w->close),
        .r1k = counted(w->r1k),
        .r5k = counted(w->r5k),
    };
}

static void pair_float32(const float *a, const float *b, size_t n, const struct gd_pair_rule *rule,
                         struct gd_pair_sums *ret)
{
    f64v rtol = all(rule->rtol), atol = all(rule->atol), small = all(rule->small);
    struct wide w;

    memset(&w, 0, sizeof(w));
    for (size_t i = 0; i < n; i += LANES) {
        f32v x, y;

        memcpy(&x, a + i, sizeof(x));
        memcpy(&y, b + i, sizeof(y));
        add(&w, __builtin_convertvector(x, f64v), __builtin_convertvector(y, f64v), rtol, atol,
            small);
    }
    finish(&w, ret);
}

static void pair_float64(const double *a, const double *b, size_t n,
                         const struct gd_pair_rule *rule, struct gd_pair_sums *ret)
{
    f64v rtol = all(rule->rtol), atol = all(rule->atol), small = all(rule->small);
    struct wide w;

    memset(&w, 0, sizeof(w));
    for (size_t i = 0; i < n; i += LANES) {
        f64v x, y;

        memcpy(&x, a + i, sizeof(x));
        memcpy(&y, b + i, sizeof(y));
        add(&w, x, y, rtol, atol, small);
    }
    finish(&w, ret);
}

INLINE uint32_t ordered(uint32_t x)
{
    uint32_t size = x & UINT32_C(0x7fffffff);

    return x >> 31 ? UINT32_C(0x80000000) - size : UINT32_C(0x80000000) + size;
}

/* Computes distances first, in vectors, then their bit lengths, alternating between buckets so that
 * increments do not wait for each other. */
static void pair_ulp32(const uint32_t *a, const uint32_t *b, size_t n, uint64_t *buckets)
{
    uint32_t turn[4][33], distance[256];

    memset(turn, 0, sizeof(turn));
    for (size_t at = 0; at < n; at += 256) {
        size_t some = n - at < 256 ? n - at : 256;

        for (size_t i = 0; i < some; i++) {
            uint32_t x = ordered(a[at + i]), y = ordered(b[at + i]);

            distance[i] = x > y ? x - y : y - x;
        }
        for (size_t i = 0; i < some; i++) {
            turn[i & 3][distance[i] ? 32 - __builtin_clz(distance[i]) : 0]++;
        }
    }
    for (size_t i = 0; i < 33; i++) {
        buckets[i] += (uint64_t)turn[0][i] + turn[1][i] + turn[2][i] + turn[3][i];
    }
}

#define PAIR_KERNELS                                                                               \
    .step = LANES, .float32 = pair_float32, .float64 = pair_float64, .ulp32 = pair_ulp32

// SPDX-License-Identifier: MIT
/* Statistics with AVX-512 (F, BW, DQ, VL): see stats_kernel.h. */
#include "base/stats_impl.h"

#ifdef __x86_64__
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c"))),   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c")
#endif

#define VECTOR 64
typedef __m512d f64v;
typedef __m512 f32v;
typedef int64_t i64v __attribute__((vector_size(VECTOR)));
typedef int32_t i32v __attribute__((vector_size(VECTOR)));
typedef int16_t i16v __attribute__((vector_size(VECTOR)));

#define min64(a, b)      _mm512_min_pd(a, b)
#define max64(a, b)      _mm512_max_pd(a, b)
#define min32(a, b)      _mm512_min_ps(a, b)
#define max32(a, b)      _mm512_max_ps(a, b)
#define smax32(a, b)     (i32v) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define umax32(a, b)     (i32v) _mm512_max_epu32((__m512i)(a), (__m512i)(b))
#define umin32(a, b)     (i32v) _mm512_min_epu32((__m512i)(a), (__m512i)(b))
#define most_abs64(a, b) _mm512_range_pd(a, b, 0x0b)
#define plus64(a, b)     _mm512_fmadd_pd(a, _mm512_set1_pd(1), b)
#define signs16(a, b)    _mm512_packs_epi32((__m512i)(a), (__m512i)(b))
#define fma64(a, b, c)   _mm512_fmadd_pd(a, b, c)
#define max16(a, b)      (i16v) _mm512_max_epi16((__m512i)(a), (__m512i)(b))
#define umax16(a, b)     (i16v) _mm512_max_epu16((__m512i)(a), (__m512i)(b))
#define umin16(a, b)     (i16v) _mm512_min_epu16((__m512i)(a), (__m512i)(b))
#define float_to64(p)    _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)(p)))
#define half_to32(p)     _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))

#include "base/stats_kernel.h"

static bool is_supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const struct gd_stats_level gd_stats_avx512 = {
    .name = "avx512",
    .runs_here = is_supported,
    .united = or_elements,
    .float16 = KERNEL(float16, VECTOR / 2),
    .bfloat16 = KERNEL(bfloat16, VECTOR / 2),
    .float32 = KERNEL(float32, VECTOR / 2),
    .float64 = KERNEL(float64, VECTOR / 4),
};

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

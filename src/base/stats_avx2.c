// SPDX-License-Identifier: MIT
/* Statistics with AVX2, FMA, F16C and POPCNT: see stats_kernel.h. */
#include "base/stats_impl.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,popcnt")
#endif

#define VECTOR 32
typedef __m256d f64v;
typedef __m256 f32v;
typedef int64_t i64v __attribute__((vector_size(VECTOR)));
typedef int32_t i32v __attribute__((vector_size(VECTOR)));
typedef int16_t i16v __attribute__((vector_size(VECTOR)));

#define min64(a, b)    _mm256_min_pd(a, b)
#define max64(a, b)    _mm256_max_pd(a, b)
#define min32(a, b)    _mm256_min_ps(a, b)
#define max32(a, b)    _mm256_max_ps(a, b)
#define smax32(a, b)   (i32v) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define umax32(a, b)   (i32v) _mm256_max_epu32((__m256i)(a), (__m256i)(b))
#define umin32(a, b)   (i32v) _mm256_min_epu32((__m256i)(a), (__m256i)(b))
#define plus64(a, b)   _mm256_fmadd_pd(a, _mm256_set1_pd(1), b)
#define fma64(a, b, c) _mm256_fmadd_pd(a, b, c)
#define max16(a, b)    (i16v) _mm256_max_epi16((__m256i)(a), (__m256i)(b))
#define umax16(a, b)   (i16v) _mm256_max_epu16((__m256i)(a), (__m256i)(b))
#define umin16(a, b)   (i16v) _mm256_min_epu16((__m256i)(a), (__m256i)(b))
#define negatives32(a, b)                                                                          \
    (uint64_t)                                                                                     \
        __builtin_popcount((unsigned)_mm256_movemask_ps(a) | (unsigned)_mm256_movemask_ps(b) << 8)
#define negatives16(v)                                                                             \
    (uint64_t) __builtin_popcount((unsigned)_mm256_movemask_epi8((__m256i)(v)) & 0xaaaaaaaaU)
#define float_to64(p) _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(p)))
#define half_to32(p)  _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))

#include "base/stats_kernel.h"

static bool is_supported(void)
{
    unsigned a, b, c = 0, d;

    /* Not all compilers know F16C by name here. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const struct gd_stats_level gd_stats_avx2 = {
    .name = "avx2",
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

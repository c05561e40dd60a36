// SPDX-License-Identifier: MIT
/* Statistics with the vectors of every 64-bit ARM: see stats_kernel.h. */
#include "base/stats_impl.h"

#ifdef __aarch64__
#include <arm_neon.h>

#define VECTOR 16
typedef double f64v __attribute__((vector_size(VECTOR)));
typedef float f32v __attribute__((vector_size(VECTOR)));
typedef int64_t i64v __attribute__((vector_size(VECTOR)));
typedef int32_t i32v __attribute__((vector_size(VECTOR)));
typedef int16_t i16v __attribute__((vector_size(VECTOR)));

/* "nm": the minimum of NaN and b is b. */
#define min64(a, b)    (f64v) vminnmq_f64((float64x2_t)(a), (float64x2_t)(b))
#define max64(a, b)    (f64v) vmaxnmq_f64((float64x2_t)(a), (float64x2_t)(b))
#define min32(a, b)    (f32v) vminnmq_f32((float32x4_t)(a), (float32x4_t)(b))
#define max32(a, b)    (f32v) vmaxnmq_f32((float32x4_t)(a), (float32x4_t)(b))
#define fma64(a, b, c) (f64v) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#define max16(a, b)    (i16v) vmaxq_s16((int16x8_t)(a), (int16x8_t)(b))
#define umax16(a, b)   (i16v) vmaxq_u16((uint16x8_t)(a), (uint16x8_t)(b))
#define umin16(a, b)   (i16v) vminq_u16((uint16x8_t)(a), (uint16x8_t)(b))
#define smax32(a, b)   (i32v) vmaxq_s32((int32x4_t)(a), (int32x4_t)(b))
#define umax32(a, b)   (i32v) vmaxq_u32((uint32x4_t)(a), (uint32x4_t)(b))
#define umin32(a, b)   (i32v) vminq_u32((uint32x4_t)(a), (uint32x4_t)(b))
#define LOW64(x)       (f64v) vcvt_f64_f32(vget_low_f32((float32x4_t)(x)))
#define HIGH64(x)      (f64v) vcvt_high_f64_f32((float32x4_t)(x))
#define float_to64(p)  (f64v) vcvt_f64_f32(vreinterpret_f32_u8(vld1_u8(p)))
#define half_to32(p)   four_halves(p)

static inline __attribute__((always_inline)) f32v four_halves(const unsigned char *p)
{
    return (f32v)vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

#include "base/stats_kernel.h"

static bool is_supported(void)
{
    return true;
}

const struct gd_stats_level gd_stats_neon = {
    .name = "neon",
    .runs_here = is_supported,
    .united = or_elements,
    .float16 = KERNEL(float16, VECTOR / 2),
    .bfloat16 = KERNEL(bfloat16, VECTOR / 2),
    .float32 = KERNEL(float32, VECTOR / 2),
    .float64 = KERNEL(float64, VECTOR / 4),
};
#endif

// SPDX-License-Identifier: MIT
/*
 * Widens half and bfloat16, inline for loops over whole tensors. Without branches, and without
 * float operations on denormals: the training process may flush them to zero.
 */
#ifndef GD_BASE_DTYPE_IMPL_H
#define GD_BASE_DTYPE_IMPL_H

#include <stdint.h>
#include <string.h>

static inline float gd_bits_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t gd_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float gd_half_widen(uint16_t half)
{
    const uint32_t smallest = UINT32_C(113) << 23; /* 2^-14, the smallest normal half */
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half & 0x7c00;
    uint32_t shifted = (uint32_t)(half & 0x7fff) << 13;
    uint32_t normal = shifted + (UINT32_C(112) << 23);
    uint32_t special = shifted | UINT32_C(0x7f800000);
    uint32_t denormal = gd_float_bits(gd_bits_float(smallest + shifted) - gd_bits_float(smallest));
    uint32_t bits = exponent == 0x7c00 ? special : normal;

    return gd_bits_float(sign | (exponent ? bits : denormal));
}

static inline float gd_bfloat16_widen(uint16_t bits)
{
    return gd_bits_float((uint32_t)bits << 16);
}

/* An unsigned number of 1, 2, 4 or 8 bytes; p need not be aligned. */
static inline uint64_t gd_load_bits(const void *p, size_t size)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (size) {
    case 1: memcpy(&one, p, sizeof(one)); return one;
    case 2: memcpy(&two, p, sizeof(two)); return two;
    case 4: memcpy(&four, p, sizeof(four)); return four;
    default: memcpy(&eight, p, sizeof(eight)); return eight;
    }
}

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Binary floating point numbers to decimal digits, exactly: the shortest digits that no neighbor of
 * the same type shares, cut off or continued as the caller wants. Not printf: it has no shortest
 * form, and knows neither float16 nor bfloat16. Steele and White's method with big integers; where
 * digits are cut off, the exact value is rounded, ties to even.
 */
#ifndef GD_ENGINE_DECIMAL_H
#define GD_ENGINE_DECIMAL_H

#include <limits.h>

#include "base/dtype.h"

/* A finite number taken apart: (-1)^negative * mantissa * 2^exponent. */
struct gd_float_parts {
    bool negative;
    bool narrow_below; /* the lower neighbour is half as far as the upper: a power of two */
    uint64_t mantissa;
    int exponent;
};

enum gd_float_class { GD_FLOAT_FINITE, GD_FLOAT_NAN, GD_FLOAT_INF };

/* One float16, bfloat16, float32 or float64 at `p` (any alignment); of complex types the real part.
 * For infinities only `negative` is set. */
enum gd_float_class gd_float_take_apart(enum gd_dtype dtype, const void *p,
                                        struct gd_float_parts *ret);

#define GD_DECIMAL_DIGITS 40

/* 0.d1 d2 d3 ... * 10^(exponent + 1): digit[0] is at 10^exponent. Zero is the one digit 0 at 0.
 */
struct gd_decimal {
    int count;
    int exponent;
    unsigned char digit[GD_DECIMAL_DIGITS]; /* 0 to 9 */
};

/* Shortest digits of |value|, but not beyond the position 10^last, and at least to the position
 * 10^at_least: INT_MIN and INT_MAX for no limits. Below 10^last a number rounds to 0 or 1 there. */
void gd_decimal_at(const struct gd_float_parts *value, int last, int at_least,
                   struct gd_decimal *ret);

/* The same with both limits as a number of digits from the first one on; max 0: no limit. */
void gd_decimal_digits(const struct gd_float_parts *value, int max, int min,
                       struct gd_decimal *ret);

#endif

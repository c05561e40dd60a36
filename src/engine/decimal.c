// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/decimal.h"

#include <math.h>
#include <string.h>

#include "base/dtype_impl.h"
#include "base/order.h"

/* 2^1024 times the margins' factor 4, and 10^325 * 2^1076, both fit with room for a digit. */
#define WORDS 80

struct big {
    int len; /* words in use; the highest one is not 0 */
    uint32_t word[WORDS];
};

static void big_set(struct big *a, uint64_t value)
{
    a->word[0] = (uint32_t)value;
    a->word[1] = (uint32_t)(value >> 32);
    a->len = a->word[1] ? 2 : a->word[0] ? 1 : 0;
}

static void big_multiply(struct big *a, uint32_t by)
{
    uint64_t carry = 0;

    for (int i = 0; i < a->len; i++) {
        carry += (uint64_t)a->word[i] * by;
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && a->len < WORDS) {
        a->word[a->len++] = (uint32_t)carry;
    }
}

static void big_multiply_pow10(struct big *a, int power)
{
    for (; power >= 9; power -= 9) {
        big_multiply(a, 1000000000);
    }
    for (; power > 0; power--) {
        big_multiply(a, 10);
    }
}

static void big_shift(struct big *a, int bits)
{
    int words = bits / 32;

    if (a->len == 0) {
        return;
    }
    big_multiply(a, UINT32_C(1) << bits % 32);
    if (words == 0 || a->len + words > WORDS) {
        return;
    }
    memmove(a->word + words, a->word, (size_t)a->len * sizeof(a->word[0]));
    memset(a->word, 0, (size_t)words * sizeof(a->word[0]));
    a->len += words;
}

static int big_compare(const struct big *a, const struct big *b)
{
    int order = GD_ORDER(a->len, b->len);

    for (int i = a->len - 1; order == 0 && i >= 0; i--) {
        order = GD_ORDER(a->word[i], b->word[i]);
    }
    return order;
}

static void big_add(const struct big *a, const struct big *b, struct big *sum)
{
    int len = a->len > b->len ? a->len : b->len;
    uint64_t carry = 0;

    for (int i = 0; i < len; i++) {
        carry += (i < a->len ? a->word[i] : 0);
        carry += (i < b->len ? b->word[i] : 0);
        sum->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && len < WORDS) {
        sum->word[len++] = (uint32_t)carry;
    }
    sum->len = len;
}

/* a -= b, where a >= b. */
static void big_subtract(struct big *a, const struct big *b)
{
    uint64_t borrow = 0;

    for (int i = 0; i < a->len; i++) {
        uint64_t less = borrow + (i < b->len ? b->word[i] : 0);

        borrow = a->word[i] < less;
        a->word[i] = (uint32_t)(a->word[i] - less);
    }
    while (a->len && a->word[a->len - 1] == 0) {
        a->len--;
    }
}

static const struct layout {
    int bytes, fraction_bits, exponent_bits;
} layouts[GD_DT_COUNT] = {
    [GD_FLOAT16] = {2, 10, 5},  [GD_BFLOAT16] = {2, 7, 8},   [GD_FLOAT32] = {4, 23, 8},
    [GD_FLOAT64] = {8, 52, 11}, [GD_COMPLEX64] = {4, 23, 8}, [GD_COMPLEX128] = {8, 52, 11},
};

enum gd_float_class gd_float_take_apart(enum gd_dtype dtype, const void *p,
                                        struct gd_float_parts *ret)
{
    const struct layout *layout = &layouts[(unsigned)dtype < GD_DT_COUNT ? dtype : GD_DT_NONE];
    uint64_t bits, fraction, exponent, exponent_max;

    memset(ret, 0, sizeof(*ret));
    if (layout->bytes == 0) {
        return GD_FLOAT_NAN;
    }
    bits = gd_load_bits(p, (size_t)layout->bytes);
    exponent_max = (UINT64_C(1) << layout->exponent_bits) - 1;
    fraction = bits & ((UINT64_C(1) << layout->fraction_bits) - 1);
    exponent = (bits >> layout->fraction_bits) & exponent_max;
    int bias = (int)(exponent_max >> 1) + layout->fraction_bits;
    ret->negative = (bits >> (layout->fraction_bits + layout->exponent_bits)) & 1;
    if (exponent == exponent_max) {
        return fraction ? GD_FLOAT_NAN : GD_FLOAT_INF;
    }
    ret->mantissa = exponent ? fraction | UINT64_C(1) << layout->fraction_bits : fraction;
    ret->exponent = (exponent ? (int)exponent : 1) - bias;
    ret->narrow_below = exponent > 1 && fraction == 0;
    return GD_FLOAT_FINITE;
}

/* value = rest / scale; below and above are half the distances to the neighbors, in the same
 * scale. */
struct state {
    struct big rest, scale, below, above;
    bool even; /* the ends of the interval round back to the value */
};

static void state_init(struct state *s, const struct gd_float_parts *value)
{
    int extra = value->narrow_below ? 2 : 1;

    big_set(&s->rest, value->mantissa);
    big_set(&s->scale, 1);
    big_set(&s->below, 1);
    big_shift(&s->rest, extra);
    big_shift(&s->scale, extra);
    if (value->exponent >= 0) {
        big_shift(&s->rest, value->exponent);
        big_shift(&s->below, value->exponent);
    } else {
        big_shift(&s->scale, -value->exponent);
    }
    s->above = s->below;
    if (value->narrow_below) {
        big_shift(&s->above, 1);
    }
    s->even = (value->mantissa & 1) == 0;
}

static void state_times_pow10(struct state *s, int power)
{
    big_multiply_pow10(&s->rest, power);
    big_multiply_pow10(&s->below, power);
    big_multiply_pow10(&s->above, power);
}

/* Produces the digit at 10^position as the next one; returns the position of the first digit. */
static int state_scale(struct state *s, const struct gd_float_parts *value)
{
    int first = (int)floor(log10((double)value->mantissa) + value->exponent * 0.30102999566398120);

    if (first >= 0) {
        big_multiply_pow10(&s->scale, first);
    } else {
        state_times_pow10(s, -first);
    }
    /* The estimate is off by one at most. */
    if (big_compare(&s->rest, &s->scale) < 0) {
        state_times_pow10(s, 1);
        return first - 1;
    }
    big_multiply(&s->scale, 10);
    if (big_compare(&s->rest, &s->scale) >= 0) {
        return first + 1;
    }
    /* Undone by bringing the rest up instead: the scale stays ten times as large. */
    state_times_pow10(s, 1);
    return first;
}

static unsigned char next_digit(struct state *s)
{
    unsigned char digit = 0;

    while (digit < 9 && big_compare(&s->rest, &s->scale) >= 0) {
        big_subtract(&s->rest, &s->scale);
        digit++;
    }
    return digit;
}

/* Adds one in the last place; all nines become a one, one place higher. */
static void round_up(struct gd_decimal *out)
{
    while (out->count && out->digit[out->count - 1] == 9) {
        out->count--;
    }
    if (out->count) {
        out->digit[out->count - 1]++;
        return;
    }
    out->digit[0] = 1;
    out->count = 1;
    out->exponent++;
}

static void generate_digits(struct state *s, int first, int last, int at_least,
                            struct gd_decimal *out)
{
    int position = first;
    bool low, high, down;
    unsigned char digit;
    struct big sum;

    out->exponent = first;
    out->count = 0;
    for (;; position--) {
        digit = next_digit(s);
        int compared = big_compare(&s->rest, &s->below);
        low = s->even ? compared <= 0 : compared < 0;
        big_add(&s->rest, &s->above, &sum);
        compared = big_compare(&sum, &s->scale);
        high = s->even ? compared >= 0 : compared > 0;
        out->digit[out->count++] = digit;
        if (((low || high) && position <= at_least) || position <= last ||
            out->count == GD_DECIMAL_DIGITS) {
            break;
        }
        state_times_pow10(s, 1);
    }
    down = low;
    if (low == high) {
        big_shift(&s->rest, 1);
        int half = big_compare(&s->rest, &s->scale);
        down = half < 0 || (half == 0 && digit % 2 == 0);
    }
    if (!down) {
        round_up(out);
    }
}

static void decimal_zero(struct gd_decimal *ret)
{
    ret->count = 1;
    ret->exponent = 0;
    ret->digit[0] = 0;
}

void gd_decimal_at(const struct gd_float_parts *value, int last, int at_least,
                   struct gd_decimal *ret)
{
    struct state s;

    if (value->mantissa == 0) {
        decimal_zero(ret);
        return;
    }
    state_init(&s, value);
    int first = state_scale(&s, value);
    if (first < last) {
        /* All its digits are beyond the last place: a 0 there, to be rounded. */
        if (last - first > 1) {
            decimal_zero(ret);
            return;
        }
        big_multiply(&s.scale, 10);
        first = last;
    }
    generate_digits(&s, first, last, at_least, ret);
    if (ret->count == 1 && ret->digit[0] == 0) {
        decimal_zero(ret);
    }
}

void gd_decimal_digits(const struct gd_float_parts *value, int max, int min, struct gd_decimal *ret)
{
    struct state s;

    if (value->mantissa == 0) {
        decimal_zero(ret);
        return;
    }
    state_init(&s, value);
    int first = state_scale(&s, value);
    generate_digits(&s, first, max > 0 ? first - max + 1 : INT_MIN,
                    min > 0 ? first - min + 1 : INT_MAX, ret);
}

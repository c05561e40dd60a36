// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/stored_type.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/dtype_impl.h"

static const struct {
    const char *name;
    enum gd_dtype dtype;
    unsigned bits;
} types[GD_STORED_COUNT] = {
    [GD_STORED_NONE] = {"unknown", GD_DT_NONE, 0},
    [GD_STORED_BOOL] = {"bool", GD_BOOL, 8},
    [GD_STORED_INT8] = {"int8", GD_INT8, 8},
    [GD_STORED_INT16] = {"int16", GD_INT16, 16},
    [GD_STORED_INT32] = {"int32", GD_INT32, 32},
    [GD_STORED_INT64] = {"int64", GD_INT64, 64},
    [GD_STORED_UINT8] = {"uint8", GD_UINT8, 8},
    [GD_STORED_UINT16] = {"uint16", GD_UINT16, 16},
    [GD_STORED_UINT32] = {"uint32", GD_UINT32, 32},
    [GD_STORED_UINT64] = {"uint64", GD_UINT64, 64},
    [GD_STORED_FLOAT16] = {"float16", GD_FLOAT16, 16},
    [GD_STORED_BFLOAT16] = {"bfloat16", GD_BFLOAT16, 16},
    [GD_STORED_FLOAT32] = {"float32", GD_FLOAT32, 32},
    [GD_STORED_FLOAT64] = {"float64", GD_FLOAT64, 64},
    [GD_STORED_COMPLEX32] = {"complex32", GD_COMPLEX64, 32},
    [GD_STORED_COMPLEX64] = {"complex64", GD_COMPLEX64, 64},
    [GD_STORED_COMPLEX128] = {"complex128", GD_COMPLEX128, 128},
    [GD_STORED_FLOAT8_E4M3FN] = {"float8_e4m3fn", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E5M2] = {"float8_e5m2", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E4M3FNUZ] = {"float8_e4m3fnuz", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E5M2FNUZ] = {"float8_e5m2fnuz", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E4M3] = {"float8_e4m3", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E3M4] = {"float8_e3m4", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E4M3B11FNUZ] = {"float8_e4m3b11fnuz", GD_FLOAT32, 8},
    [GD_STORED_FLOAT8_E8M0FNU] = {"float8_e8m0fnu", GD_FLOAT32, 8},
    [GD_STORED_HIFLOAT8] = {"hifloat8", GD_FLOAT32, 8},
    [GD_STORED_FLOAT6_E2M3] = {"float6_e2m3fn", GD_FLOAT32, 8},
    [GD_STORED_FLOAT6_E3M2] = {"float6_e3m2fn", GD_FLOAT32, 8},
    [GD_STORED_FLOAT4_E2M1] = {"float4_e2m1", GD_FLOAT32, 4},
    [GD_STORED_FLOAT4_E1M2] = {"float4_e1m2", GD_FLOAT32, 4},
    [GD_STORED_INT4] = {"int4", GD_INT8, 4},
    [GD_STORED_UINT4] = {"uint4", GD_UINT8, 4},
    [GD_STORED_INT2] = {"int2", GD_INT8, 2},
    [GD_STORED_UINT2] = {"uint2", GD_UINT8, 2},
    [GD_STORED_UINT1] = {"uint1", GD_UINT8, 1},
    [GD_STORED_OPAQUE] = {"opaque", GD_UINT8, 8},
};

static const struct {
    const char *name;
    enum gd_stored stored;
} aliases[] = {
    {"bool_", GD_STORED_BOOL},
    {"b1", GD_STORED_BOOL},
    {"i1", GD_STORED_INT8},
    {"i2", GD_STORED_INT16},
    {"i4", GD_STORED_INT32},
    {"i8", GD_STORED_INT64},
    {"u1", GD_STORED_UINT8},
    {"u2", GD_STORED_UINT16},
    {"u4", GD_STORED_UINT32},
    {"u8", GD_STORED_UINT64},
    {"f2", GD_STORED_FLOAT16},
    {"f4", GD_STORED_FLOAT32},
    {"f8", GD_STORED_FLOAT64},
    {"c8", GD_STORED_COMPLEX64},
    {"c16", GD_STORED_COMPLEX128},
    {"i16", GD_STORED_INT16},
    {"i32", GD_STORED_INT32},
    {"i64", GD_STORED_INT64},
    {"u16", GD_STORED_UINT16},
    {"u32", GD_STORED_UINT32},
    {"u64", GD_STORED_UINT64},
    {"f16", GD_STORED_FLOAT16},
    {"f32", GD_STORED_FLOAT32},
    {"f64", GD_STORED_FLOAT64},
    {"c64", GD_STORED_COMPLEX64},
    {"bf16", GD_STORED_BFLOAT16},
    {"half", GD_STORED_FLOAT16},
    {"float", GD_STORED_FLOAT32},
    {"double", GD_STORED_FLOAT64},
    {"chalf", GD_STORED_COMPLEX32},
    {"cfloat", GD_STORED_COMPLEX64},
    {"cdouble", GD_STORED_COMPLEX128},
    {"char", GD_STORED_INT8},
    {"byte", GD_STORED_UINT8},
    {"short", GD_STORED_INT16},
    {"int", GD_STORED_INT32},
    {"long", GD_STORED_INT64},
    {"qint8", GD_STORED_INT8},
    {"quint8", GD_STORED_UINT8},
    {"qint16", GD_STORED_INT16},
    {"quint16", GD_STORED_UINT16},
    {"qint32", GD_STORED_INT32},
    {"f8_e4m3", GD_STORED_FLOAT8_E4M3FN}, /* safetensors */
    {"f8_e5m2", GD_STORED_FLOAT8_E5M2},
    {"f8_e4m3fnuz", GD_STORED_FLOAT8_E4M3FNUZ},
    {"f8_e5m2fnuz", GD_STORED_FLOAT8_E5M2FNUZ},
    {"f8_e8m0", GD_STORED_FLOAT8_E8M0FNU},
    {"float8_e8m0", GD_STORED_FLOAT8_E8M0FNU},
    {"float4_e2m1fn_x2", GD_STORED_FLOAT4_E2M1},
    {"float4_e2m1fn", GD_STORED_FLOAT4_E2M1},
    {"float4_e1m2fn_x2", GD_STORED_FLOAT4_E1M2},
    {"float4_e1m2fn", GD_STORED_FLOAT4_E1M2},
    {"hif8", GD_STORED_HIFLOAT8},
};

static bool is_known(enum gd_stored stored)
{
    return (unsigned)stored < GD_STORED_COUNT;
}

unsigned gd_stored_bits(enum gd_stored stored)
{
    return is_known(stored) ? types[stored].bits : 0;
}

const char *gd_stored_name(enum gd_stored stored)
{
    return is_known(stored) ? types[stored].name : types[GD_STORED_NONE].name;
}

enum gd_dtype gd_stored_dtype(enum gd_stored stored)
{
    return is_known(stored) ? types[stored].dtype : GD_DT_NONE;
}

enum gd_stored gd_stored_of_dtype(enum gd_dtype dtype)
{
    for (int i = 1; i < GD_STORED_COUNT; i++) {
        if (types[i].dtype == dtype && types[i].bits == 8 * gd_dtype_size(dtype)) {
            return (enum gd_stored)i;
        }
    }
    return GD_STORED_NONE;
}

static const char *without_prefix(const char *name)
{
    static const char *const prefixes[] = {"torch.", "mindspore.", "ms.", "numpy.", "np.", "DT_"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t len = strlen(prefixes[i]);

        if (strncasecmp(name, prefixes[i], len) == 0) {
            return name + len;
        }
    }
    return name;
}

enum gd_stored gd_stored_from_name(const char *name)
{
    name = without_prefix(name);
    for (int i = 1; i < GD_STORED_COUNT; i++) {
        if (i != GD_STORED_OPAQUE && strcasecmp(name, types[i].name) == 0) {
            return (enum gd_stored)i;
        }
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcasecmp(name, aliases[i].name) == 0) {
            return aliases[i].stored;
        }
    }
    return GD_STORED_NONE;
}

/* ---- small floats ---------------------------------------------------------------------------- */

struct small_float {
    unsigned mantissa; /* bits */
    int bias;
    enum {
        IEEE,
        FINITE,
        UNSIGNED_ZERO
        /* FINITE: no infinity, NaN is all ones but the sign; UNSIGNED_ZERO: NaN has the pattern of
         * -0 */
    } kind;
};

static const struct small_float small_floats[GD_STORED_COUNT] = {
    [GD_STORED_FLOAT8_E4M3FN] = {3, 7, FINITE},
    [GD_STORED_FLOAT8_E5M2] = {2, 15, IEEE},
    [GD_STORED_FLOAT8_E4M3FNUZ] = {3, 8, UNSIGNED_ZERO},
    [GD_STORED_FLOAT8_E5M2FNUZ] = {2, 16, UNSIGNED_ZERO},
    [GD_STORED_FLOAT8_E4M3] = {3, 7, IEEE},
    [GD_STORED_FLOAT8_E3M4] = {4, 3, IEEE},
    [GD_STORED_FLOAT8_E4M3B11FNUZ] = {3, 11, UNSIGNED_ZERO},
};

static float small_value(const struct small_float *type, unsigned byte)
{
    unsigned fraction = byte & ((1U << type->mantissa) - 1);
    unsigned exponent = (byte & 0x7f) >> type->mantissa;
    unsigned most = 0x7fU >> type->mantissa;
    double value;

    if (type->kind == UNSIGNED_ZERO && byte == 0x80) {
        return NAN;
    }
    if (type->kind == FINITE && (byte & 0x7f) == 0x7f) {
        return NAN;
    }
    if (type->kind == IEEE && exponent == most) {
        return fraction ? NAN : byte & 0x80 ? -INFINITY : INFINITY;
    }
    if (exponent == 0) {
        value = ldexp(fraction, 1 - type->bias - (int)type->mantissa);
    } else {
        value = ldexp((double)(fraction + (1U << type->mantissa)),
                      (int)exponent - type->bias - (int)type->mantissa);
    }
    return (float)(byte & 0x80 ? -value : value);
}

/* HiFloat8: sign, a prefix code for the number of exponent bits, exponent with its own sign and an
 * implied first bit, mantissa. */
static float hifloat8_value(unsigned byte)
{
    unsigned v = byte & 0x7f, dots, digits, mantissa, exponent;
    int power = 0;
    double value;

    if (v < 8) {
        value = v ? ldexp(1, (int)v - 23) : byte ? NAN : 0;
        return (float)(v && byte & 0x80 ? -value : value);
    }
    if (v == 0x6f) {
        return byte & 0x80 ? -INFINITY : INFINITY;
    }
    digits = v >= 0x60 ? 4 : v >= 0x40 ? 3 : v >= 0x20 ? 2 : v >= 0x10 ? 1 : 0;
    dots = digits >= 2 ? 2 : 4 - digits;
    mantissa = 7 - dots - digits;
    if (digits) {
        exponent = v >> mantissa & ((1U << digits) - 1);
        power = (int)((1U << (digits - 1)) | (exponent & ((1U << (digits - 1)) - 1)));
        power = exponent >> (digits - 1) ? -power : power;
    }
    value = ldexp(1 + ldexp(v & ((1U << mantissa) - 1), -(int)mantissa), power);
    return (float)(byte & 0x80 ? -value : value);
}

/* Sign, exponent, mantissa in the low bits; every pattern is a number. */
static float tiny_value(unsigned bits, unsigned exponent_bits, unsigned mantissa_bits, int bias)
{
    unsigned fraction = bits & ((1U << mantissa_bits) - 1);
    unsigned exponent = bits >> mantissa_bits & ((1U << exponent_bits) - 1);
    double value = exponent ? ldexp((double)(fraction + (1U << mantissa_bits)),
                                    (int)exponent - bias - (int)mantissa_bits)
                            : ldexp(fraction, 1 - bias - (int)mantissa_bits);

    return (float)(bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value);
}

static float tables[GD_STORED_COUNT][256];

static void fill_tables(void)
{
    for (int type = 0; type < GD_STORED_COUNT; type++) {
        for (unsigned i = 0; i < 256 && small_floats[type].mantissa; i++) {
            tables[type][i] = small_value(&small_floats[type], i);
        }
    }
    for (unsigned i = 0; i < 256; i++) {
        tables[GD_STORED_HIFLOAT8][i] = hifloat8_value(i);
        tables[GD_STORED_FLOAT8_E8M0FNU][i] = i == 255 ? NAN : (float)ldexp(1, (int)i - 127);
    }
    for (unsigned i = 0; i < 256; i++) {
        tables[GD_STORED_FLOAT6_E2M3][i] = tiny_value(i, 2, 3, 1);
        tables[GD_STORED_FLOAT6_E3M2][i] = tiny_value(i, 3, 2, 3);
        tables[GD_STORED_FLOAT4_E2M1][i] = tiny_value(i, 2, 1, 1);
        tables[GD_STORED_FLOAT4_E1M2][i] = tiny_value(i, 1, 2, 1);
    }
}

static const float *table_of(enum gd_stored stored)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_tables);
    return tables[stored];
}

/* ---- widening -------------------------------------------------------------------------------- */

/* Element `i` of a type smaller than a byte. */
static unsigned bits_at(enum gd_stored stored, const unsigned char *in, int64_t i)
{
    switch (types[stored].bits) {
    case 4: return in[i / 2] >> (i % 2 * 4) & 15;
    case 2: return in[i / 4] >> (i % 4 * 2) & 3;
    default: return in[i / 8] >> (7 - i % 8) & 1;
    }
}

static void widen_bits(enum gd_stored stored, const unsigned char *in, int64_t first, int64_t count,
                       void *out)
{
    unsigned sign = stored == GD_STORED_INT4 ? 8 : stored == GD_STORED_INT2 ? 2 : 0;
    const float *table = types[stored].dtype == GD_FLOAT32 ? table_of(stored) : NULL;

    for (int64_t i = 0; i < count; i++) {
        unsigned bits = bits_at(stored, in, first + i);

        if (table) {
            memcpy((char *)out + i * 4, &table[bits], 4);
        } else {
            ((unsigned char *)out)[i] = (unsigned char)((bits ^ sign) - sign);
        }
    }
}

static void widen_bytes(enum gd_stored stored, const unsigned char *in, int64_t count, void *out)
{
    const float *table = table_of(stored);

    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)out + i * 4, &table[in[i]], 4);
    }
}

static void widen_halves(const unsigned char *in, int64_t count, bool swap, void *out)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        float value;

        memcpy(&bits, in + i * 2, 2);
        value = gd_half_widen(swap ? __builtin_bswap16(bits) : bits);
        memcpy((char *)out + i * 4, &value, 4);
    }
}

#define SWAP(bits)                                                                                 \
    static void swap##bits(const unsigned char *in, int64_t count, unsigned char *out)             \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            uint##bits##_t v;                                                                      \
                                                                                                   \
            memcpy(&v, in + i * (bits / 8), sizeof(v));                                            \
            v = __builtin_bswap##bits(v);                                                          \
            memcpy(out + i * (bits / 8), &v, sizeof(v));                                           \
        }                                                                                          \
    }

SWAP(16)
SWAP(32)
SWAP(64)

/* The two halves of a complex element are byte-swapped separately. */
static void copy_plain(enum gd_stored stored, const unsigned char *in, int64_t count, bool swap,
                       unsigned char *out)
{
    int parts = gd_dtype_is_complex(types[stored].dtype) ? 2 : 1;
    size_t part = types[stored].bits / 8 / (unsigned)parts;

    switch (swap ? part : 1) {
    case 2: swap16(in, count * parts, out); break;
    case 4: swap32(in, count * parts, out); break;
    case 8: swap64(in, count * parts, out); break;
    default: memcpy(out, in, (size_t)(count * parts) * part); break;
    }
}

void gd_stored_widen(enum gd_stored stored, bool swap, const unsigned char *in, int64_t first,
                     int64_t count, void *out)
{
    if (types[stored].bits < 8) {
        widen_bits(stored, in, first, count, out);
        return;
    }
    in += first * (int64_t)(types[stored].bits / 8);
    if (types[stored].bits == 8 * gd_dtype_size(types[stored].dtype)) {
        copy_plain(stored, in, count, swap, out);
    } else if (stored == GD_STORED_COMPLEX32) {
        widen_halves(in, count * 2, swap, out);
    } else {
        widen_bytes(stored, in, count, out);
    }
}

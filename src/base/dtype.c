// SPDX-License-Identifier: MIT
#include "base/dtype.h"

#include <math.h>
#include <string.h>

#include "base/dtype_impl.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER "<"
#else
#define ORDER ">"
#endif

enum family { NOTHING, BOOLEAN, SIGNED, UNSIGNED, FLOATING, COMPLEX };

static const struct {
    const char *name;
    const char *descr;
    unsigned char size;
    unsigned char family;
} table[GD_DT_COUNT] = {
    [GD_BOOL] = {"bool", "|b1", 1, BOOLEAN},
    [GD_INT8] = {"int8", "|i1", 1, SIGNED},
    [GD_INT16] = {"int16", ORDER "i2", 2, SIGNED},
    [GD_INT32] = {"int32", ORDER "i4", 4, SIGNED},
    [GD_INT64] = {"int64", ORDER "i8", 8, SIGNED},
    [GD_UINT8] = {"uint8", "|u1", 1, UNSIGNED},
    [GD_UINT16] = {"uint16", ORDER "u2", 2, UNSIGNED},
    [GD_UINT32] = {"uint32", ORDER "u4", 4, UNSIGNED},
    [GD_UINT64] = {"uint64", ORDER "u8", 8, UNSIGNED},
    [GD_FLOAT16] = {"float16", ORDER "f2", 2, FLOATING},
    [GD_FLOAT32] = {"float32", ORDER "f4", 4, FLOATING},
    [GD_FLOAT64] = {"float64", ORDER "f8", 8, FLOATING},
    [GD_STRING] = {"string", NULL, 0, NOTHING},
    [GD_BFLOAT16] = {"bfloat16", ORDER "u2", 2, FLOATING},
    [GD_COMPLEX64] = {"complex64", ORDER "c8", 8, COMPLEX},
    [GD_COMPLEX128] = {"complex128", ORDER "c16", 16, COMPLEX},
};

static const struct {
    const char *name;
    enum gd_dtype dtype;
} aliases[] = {
    {"?", GD_BOOL},
    {"bool_", GD_BOOL},
    {"half", GD_FLOAT16},
    {"fp16", GD_FLOAT16},
    {"float", GD_FLOAT32},
    {"single", GD_FLOAT32},
    {"fp32", GD_FLOAT32},
    {"double", GD_FLOAT64},
    {"fp64", GD_FLOAT64},
    {"bf16", GD_BFLOAT16},
    {"byte", GD_UINT8},
    {"short", GD_INT16},
    {"int", GD_INT32},
    {"long", GD_INT64},
    {"cfloat", GD_COMPLEX64},
    {"complex", GD_COMPLEX128},
    {"cdouble", GD_COMPLEX128},
};

static bool is_known(enum gd_dtype dtype)
{
    return (unsigned)dtype < GD_DT_COUNT && table[dtype].name;
}

size_t gd_dtype_size(enum gd_dtype dtype)
{
    return is_known(dtype) ? table[dtype].size : 0;
}

const char *gd_dtype_name(enum gd_dtype dtype)
{
    return is_known(dtype) ? table[dtype].name : "unknown";
}

const char *gd_dtype_descr(enum gd_dtype dtype)
{
    return is_known(dtype) ? table[dtype].descr : NULL;
}

/* A descriptor, with its byte order mark or, as numpy allows, without. */
static bool is_descr(const char *name, const char *descr)
{
    return strcmp(name, descr) == 0 || strcmp(name, descr + 1) == 0;
}

enum gd_dtype gd_dtype_from_name(const char *name)
{
    if (!name) {
        return GD_DT_NONE;
    }
    for (int i = 1; i < GD_DT_COUNT; i++) {
        if (!table[i].name) {
            continue;
        }
        if (strcmp(name, table[i].name) == 0) {
            return (enum gd_dtype)i;
        }
        /* bfloat16 only borrows uint16's descriptor. */
        if (table[i].descr && i != GD_BFLOAT16 && is_descr(name, table[i].descr)) {
            return (enum gd_dtype)i;
        }
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcmp(name, aliases[i].name) == 0) {
            return aliases[i].dtype;
        }
    }
    return GD_DT_NONE;
}

bool gd_dtype_is_float(enum gd_dtype dtype)
{
    return is_known(dtype) && table[dtype].family == FLOATING;
}

bool gd_dtype_is_int(enum gd_dtype dtype)
{
    return is_known(dtype) && (table[dtype].family == SIGNED || table[dtype].family == UNSIGNED);
}

bool gd_dtype_is_unsigned(enum gd_dtype dtype)
{
    return is_known(dtype) && table[dtype].family == UNSIGNED;
}

bool gd_dtype_is_complex(enum gd_dtype dtype)
{
    return is_known(dtype) && table[dtype].family == COMPLEX;
}

/* memcpy, because p need not be aligned. */
#define LOAD(type)                                                                                 \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, p, sizeof(value));                                                          \
        return (double)value;                                                                      \
    }

double gd_dtype_load(enum gd_dtype dtype, const void *p)
{
    switch (dtype) {
    case GD_BOOL: return *(const unsigned char *)p != 0;
    case GD_INT8: LOAD(int8_t)
    case GD_INT16: LOAD(int16_t)
    case GD_INT32: LOAD(int32_t)
    case GD_INT64: LOAD(int64_t)
    case GD_UINT8: LOAD(uint8_t)
    case GD_UINT16: LOAD(uint16_t)
    case GD_UINT32: LOAD(uint32_t)
    case GD_UINT64: LOAD(uint64_t)
    case GD_FLOAT32:
    case GD_COMPLEX64: LOAD(float)
    case GD_FLOAT64:
    case GD_COMPLEX128: LOAD(double)
    case GD_FLOAT16:
    case GD_BFLOAT16: {
        uint16_t bits;

        memcpy(&bits, p, sizeof(bits));
        return (double)(dtype == GD_FLOAT16 ? gd_half_widen(bits) : gd_bfloat16_widen(bits));
    }
    default: return NAN;
    }
}

float gd_half_to_float(uint16_t bits)
{
    return gd_half_widen(bits);
}

float gd_bfloat16_to_float(uint16_t bits)
{
    return gd_bfloat16_widen(bits);
}

uint16_t gd_float_to_half(float value)
{
    uint32_t bits = gd_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t mag = bits & UINT32_C(0x7fffffff);

    if (mag > UINT32_C(0x7f800000)) { /* NaN: make it quiet, keep the top of the payload */
        return (uint16_t)(sign | 0x7e00 | ((mag >> 13) & 0x3ff));
    }
    if (mag >= UINT32_C(0x477ff000)) { /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    }
    if (mag < UINT32_C(0x38800000)) {
        /* Below 2^-14: the last place of 0.5 is 2^-24, the step of half denormals, so this addition
         * rounds to nearest even. */
        uint32_t sum = gd_float_bits(gd_bits_float(mag) + 0.5f);

        return (uint16_t)(sign | (sum - gd_float_bits(0.5f)));
    }
    mag += 0xfff + ((mag >> 13) & 1);
    return (uint16_t)(sign | ((mag - (UINT32_C(112) << 23)) >> 13));
}

uint16_t gd_float_to_bfloat16(float value)
{
    uint32_t bits = gd_float_bits(value);

    if ((bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000)) {
        return (uint16_t)((bits >> 16) | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <float.h>
#include <math.h>

#include "../unit.h"
#include "base/dtype.h"

static const struct {
    enum gd_dtype dtype;
    size_t size;
    const char *name, *descr;
} table[] = {
    {GD_BOOL, 1, "bool", "|b1"},           {GD_INT8, 1, "int8", "|i1"},
    {GD_INT16, 2, "int16", "<i2"},         {GD_INT32, 4, "int32", "<i4"},
    {GD_INT64, 8, "int64", "<i8"},         {GD_UINT8, 1, "uint8", "|u1"},
    {GD_UINT16, 2, "uint16", "<u2"},       {GD_UINT32, 4, "uint32", "<u4"},
    {GD_UINT64, 8, "uint64", "<u8"},       {GD_FLOAT16, 2, "float16", "<f2"},
    {GD_FLOAT32, 4, "float32", "<f4"},     {GD_FLOAT64, 8, "float64", "<f8"},
    {GD_STRING, 0, "string", NULL},        {GD_BFLOAT16, 2, "bfloat16", "<u2"},
    {GD_COMPLEX64, 8, "complex64", "<c8"}, {GD_COMPLEX128, 16, "complex128", "<c16"},
};

static void names_and_sizes(void **state)
{
    assert_int_equal(sizeof(table) / sizeof(table[0]), GD_DT_COUNT - 1);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_int_equal(gd_dtype_size(table[i].dtype), table[i].size);
        assert_string_equal(gd_dtype_name(table[i].dtype), table[i].name);
        assert_int_equal(gd_dtype_from_name(table[i].name), table[i].dtype);
        if (!table[i].descr) {
            assert_null(gd_dtype_descr(table[i].dtype));
            continue;
        }
        assert_string_equal(gd_dtype_descr(table[i].dtype), table[i].descr);
        if (table[i].dtype != GD_BFLOAT16) {
            assert_int_equal(gd_dtype_from_name(table[i].descr), table[i].dtype);
            assert_int_equal(gd_dtype_from_name(table[i].descr + 1), table[i].dtype);
        }
    }
}

static void numbers_out_of_range_are_unknown(void **state)
{
    const int bad[] = {GD_DT_NONE, GD_DT_COUNT, -1, INT32_MIN, INT32_MAX};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        enum gd_dtype dtype = (enum gd_dtype)bad[i];

        assert_int_equal(gd_dtype_size(dtype), 0);
        assert_string_equal(gd_dtype_name(dtype), "unknown");
        assert_null(gd_dtype_descr(dtype));
        assert_false(gd_dtype_is_float(dtype) || gd_dtype_is_int(dtype));
        assert_false(gd_dtype_is_complex(dtype) || gd_dtype_is_unsigned(dtype));
        assert_true(isnan(gd_dtype_load(dtype, "")));
    }
    assert_int_equal(gd_dtype_from_name("float"), GD_FLOAT32);
    assert_int_equal(gd_dtype_from_name("bf16"), GD_BFLOAT16);
    assert_int_equal(gd_dtype_from_name("half"), GD_FLOAT16);
    assert_int_equal(gd_dtype_from_name("float3"), GD_DT_NONE);
    assert_int_equal(gd_dtype_from_name(""), GD_DT_NONE);
    assert_int_equal(gd_dtype_from_name(NULL), GD_DT_NONE);
}

static void dtype_families(void **state)
{
    assert_true(gd_dtype_is_float(GD_BFLOAT16) && gd_dtype_is_float(GD_FLOAT64));
    assert_false(gd_dtype_is_float(GD_COMPLEX64) || gd_dtype_is_float(GD_BOOL));
    assert_true(gd_dtype_is_int(GD_UINT64) && gd_dtype_is_int(GD_INT8));
    assert_false(gd_dtype_is_int(GD_BOOL) || gd_dtype_is_int(GD_FLOAT16));
    assert_true(gd_dtype_is_unsigned(GD_UINT8) && !gd_dtype_is_unsigned(GD_INT8));
    assert_true(gd_dtype_is_complex(GD_COMPLEX64) && !gd_dtype_is_complex(GD_FLOAT64));
}

/* Loads from an odd address: the sanitizer detects aligned accesses. */
static void check_load(enum gd_dtype dtype, const void *value, size_t size, double expected)
{
    unsigned char room[24];

    memcpy(room + 1, value, size);
    assert_true(gd_dtype_load(dtype, room + 1) == expected);
}

static void elements_load(void **state)
{
    const int8_t i8 = -100;
    const int16_t i16 = -30000;
    const int32_t i32 = INT32_MIN;
    const int64_t i64 = -(INT64_C(1) << 53);
    const uint8_t u8 = 200;
    const uint16_t u16 = 65535, half = 0xc000, bf = 0x3f80;
    const uint32_t u32 = UINT32_MAX;
    const uint64_t u64 = UINT64_C(1) << 63;
    const float f32[2] = {0.1f, 7};
    const double f64[2] = {-DBL_MIN, 7};

    check_load(GD_BOOL, &u8, 1, 1);
    check_load(GD_INT8, &i8, 1, -100);
    check_load(GD_INT16, &i16, 2, -30000);
    check_load(GD_INT32, &i32, 4, -2147483648.0);
    check_load(GD_INT64, &i64, 8, -9007199254740992.0);
    check_load(GD_UINT8, &u8, 1, 200);
    check_load(GD_UINT16, &u16, 2, 65535);
    check_load(GD_UINT32, &u32, 4, 4294967295.0);
    check_load(GD_UINT64, &u64, 8, 9223372036854775808.0);
    check_load(GD_FLOAT16, &half, 2, -2);
    check_load(GD_BFLOAT16, &bf, 2, 1);
    check_load(GD_FLOAT32, f32, 4, (double)0.1f);
    check_load(GD_FLOAT64, f64, 8, -DBL_MIN);
    check_load(GD_COMPLEX64, f32, 8, (double)0.1f);
    check_load(GD_COMPLEX128, f64, 16, -DBL_MIN);
}

/* From the definition of the format, in double. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 31  ? fraction ? NAN : INFINITY
                       : exponent == 0 ? ldexp(fraction, -24)
                                       : ldexp(1024 + fraction, exponent - 25);

    return bits & 0x8000 ? -magnitude : magnitude;
}

static void every_half_widens_and_comes_back(void **state)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = gd_half_to_float((uint16_t)bits);
        double expected = half_value((uint16_t)bits);

        if (isnan(expected)) {
            assert_true(isnan(value));
            assert_true(isnan(gd_half_to_float(gd_float_to_half(value))));
            continue;
        }
        assert_true((double)value == expected && !signbit(value) == !signbit(expected));
        assert_int_equal(gd_float_to_half(value), bits);
    }
}

static void floats_round_to_the_nearest_half(void **state)
{
    for (unsigned bits = 0; bits < 0x7bff; bits++) {
        double low = half_value((uint16_t)bits), high = half_value((uint16_t)(bits + 1));
        float middle = (float)((low + high) / 2);
        unsigned even = bits % 2 ? bits + 1 : bits;

        assert_int_equal(gd_float_to_half(middle), even);
        assert_int_equal(gd_float_to_half(nextafterf(middle, 0)), bits);
        assert_int_equal(gd_float_to_half(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(gd_float_to_half(-middle), even | 0x8000);
    }
    assert_int_equal(gd_float_to_half(65519.996f), 0x7bff);
    assert_int_equal(gd_float_to_half(65520.0f), 0x7c00);
    assert_int_equal(gd_float_to_half(-FLT_MAX), 0xfc00);
    assert_int_equal(gd_float_to_half(FLT_MIN), 0);
    assert_int_equal(gd_float_to_half(-0.0f), 0x8000);
}

static void bfloat16_rounds_to_even(void **state)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = gd_bfloat16_to_float((uint16_t)bits), middle;

        if (isnan(value)) {
            assert_true(isnan(gd_bfloat16_to_float(gd_float_to_bfloat16(value))));
            continue;
        }
        assert_int_equal(gd_float_to_bfloat16(value), bits);
        if ((bits & 0x7fff) >= 0x7f7f) {
            continue;
        }
        middle = value + (gd_bfloat16_to_float((uint16_t)(bits + 1)) - value) / 2;
        assert_int_equal(gd_float_to_bfloat16(middle), bits % 2 ? bits + 1 : bits);
    }
    assert_int_equal(gd_float_to_bfloat16(FLT_MAX), 0x7f80);
    assert_true(isnan(gd_bfloat16_to_float(gd_float_to_bfloat16(nanf("1")))));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_and_sizes),
    cmocka_unit_test(numbers_out_of_range_are_unknown),
    cmocka_unit_test(dtype_families),
    cmocka_unit_test(elements_load),
    cmocka_unit_test(every_half_widens_and_comes_back),
    cmocka_unit_test(floats_round_to_the_nearest_half),
    cmocka_unit_test(bfloat16_rounds_to_even),
};

RUN_TESTS()

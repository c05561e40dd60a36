// SPDX-License-Identifier: GPL-3.0-or-later
/* Limits, scalars and byte counts; the layout itself is compared with numpy elsewhere. */
#include "../unit.h"
#include "engine/decimal.h"
#include "engine/format.h"

static void test_scalars(void **state)
{
    const float f = 0.1f;
    const double d = 1e300;
    const uint16_t half = 0x2e66, bf = 0x3dcd;
    const uint64_t u = UINT64_MAX;
    const bool yes = true;
    const struct {
        enum gd_dtype dtype;
        const void *element;
        const char *text;
    } cases[] = {
        {GD_FLOAT32, &f, "0.1"},
        {GD_FLOAT64, &d, "1e+300"},
        {GD_FLOAT16, &half, "0.1"},
        {GD_BFLOAT16, &bf, "0.1"},
        {GD_UINT64, &u, "18446744073709551615"},
        {GD_BOOL, &yes, "True"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_buf out = GD_BUF_INIT(100);

        assert_ok(gd_format_scalar(cases[i].dtype, cases[i].element, &out));
        assert_string_equal(gd_buf_text(&out), cases[i].text);
        gd_buf_deinit(&out);
    }
    assert_int_equal(gd_format_scalar(GD_STRING, "", NULL), GD_EUNSUPPORTED);
}

static void byte_counts(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {32768, "32 KiB"},
        {UINT64_C(3) << 29, "1.5 GiB"},
        {123456789, "118 MiB"},
        {UINT64_MAX, "16 EiB"},
    };
    char text[32];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(gd_format_bytes(cases[i].bytes, text, sizeof(text)), cases[i].text);
    }
}

/* A view of stride 0: more elements than any machine has memory for. */
static void the_buffer_limits_what_is_printed(void **state)
{
    static const unsigned char zero = 0;
    const struct gd_shape one = {.rank = 1, .dim = {1}};
    const struct gd_shape huge = {.rank = 2, .dim = {INT64_C(1) << 30, INT64_C(1) << 30}};
    const struct gd_shape middle = {.rank = 1, .dim = {75}};
    const int64_t stride[GD_MAX_RANK] = {0, 0};
    struct gd_format format = GD_FORMAT_DEFAULT;
    struct gd_buf out = GD_BUF_INIT(150);
    struct gd_tensor *tensor, *view;
    struct gd_err err;

    assert_ok(gd_tensor_wrap(GD_UINT8, &one, &zero, 1, NULL, NULL, &tensor, NULL));
    assert_ok(gd_tensor_view(tensor, &huge, stride, 0, &view, NULL));
    assert_ok(gd_format_values(view, &format, &out, &err));
    assert_string_equal(gd_buf_text(&out), "[[0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n"
                                           " [0 0 0 ... 0 0 0]\n ...\n [0 0 0 ... 0 0 0]\n"
                                           " [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]]");
    gd_buf_clear(&out);
    format.all = true;
    assert_int_equal(gd_format_values(view, &format, &out, &err), GD_ELIMIT);
    assert_int_equal(out.len, 0);
    gd_tensor_unref(view);
    assert_ok(gd_tensor_view(tensor, &middle, stride, 0, &view, NULL));
    assert_int_equal(gd_format_values(view, &format, &out, &err), GD_ELIMIT);
    gd_tensor_unref(view);
    gd_tensor_unref(tensor);
    gd_buf_deinit(&out);
}

static void odd_settings_do_no_harm(void **state)
{
    const double values[] = {1.25, -1e-300, 1e300};
    const struct gd_shape shape = {.rank = 1, .dim = {3}};
    const struct gd_format formats[] = {
        {.precision = -5, .threshold = -1, .edge_items = -3, .line_width = -7},
        {.precision = INT32_MAX,
         .threshold = INT64_MAX,
         .edge_items = INT32_MAX,
         .line_width = INT32_MAX},
        {.precision = INT32_MAX, .letter = 'f', .all = true},
        {.precision = INT32_MAX, .letter = 'e', .all = true},
        {.precision = -1, .letter = 'f', .all = true},
    };
    struct gd_tensor *tensor;

    assert_ok(
        gd_tensor_wrap(GD_FLOAT64, &shape, values, sizeof(values), NULL, NULL, &tensor, NULL));
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        struct gd_buf out = GD_BUF_INIT(1 << 16);

        assert_ok(gd_format_values(tensor, &formats[i], &out, NULL));
        assert_int_equal(out.data[0], '[');
        assert_int_equal(out.data[out.len - 1], ']');
        gd_buf_deinit(&out);
    }
    gd_tensor_unref(tensor);
}

static void digits_of_hard_numbers(void **state)
{
    static const struct {
        double value;
        const char *digits;
        int exponent;
    } cases[] = {
        {5e-324, "5", -324},
        {2.2250738585072014e-308, "22250738585072014", -308},
        {1.7976931348623157e308, "17976931348623157", 308},
        {5.684341886080802e-14, "5684341886080802", -14}, /* 2^-44: the neighbours differ */
        {9007199254740993.0, "9007199254740992", 15},
        {1e23, "1", 23},
        {9.5367431640625e-07, "95367431640625", -7},
        {0.3, "3", -1},
        {1.0 / 3, "3333333333333333", -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_float_parts parts;
        struct gd_decimal d;

        assert_int_equal(gd_float_take_apart(GD_FLOAT64, &cases[i].value, &parts), GD_FLOAT_FINITE);
        gd_decimal_digits(&parts, 0, 0, &d);
        assert_int_equal(d.count, strlen(cases[i].digits));
        assert_int_equal(d.exponent, cases[i].exponent);
        for (int k = 0; k < d.count; k++) {
            assert_int_equal(d.digit[k] + '0', cases[i].digits[k]);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scalars),
    cmocka_unit_test(byte_counts),
    cmocka_unit_test(the_buffer_limits_what_is_printed),
    cmocka_unit_test(odd_settings_do_no_harm),
    cmocka_unit_test(digits_of_hard_numbers),
};

RUN_TESTS()

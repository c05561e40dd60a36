// SPDX-License-Identifier: GPL-3.0-or-later
/* Compares dead units with a count by gd_tensor_get of every element. */
#include <math.h>

#include "../unit.h"
#include "base/units.h"

static struct gd_tensor *make_zeros(enum gd_dtype dtype, int64_t rows, int64_t columns)
{
    const struct gd_shape shape = {.rank = 2, .dim = {rows, columns}};
    struct gd_tensor *tensor;

    assert_ok(gd_tensor_create(dtype, &shape, 0, &tensor, NULL));
    if (gd_tensor_bytes_mut(tensor)) {
        memset(gd_tensor_bytes_mut(tensor), 0, gd_tensor_bytes(tensor));
    }
    return tensor;
}

static uint64_t dead_after(struct gd_units *units, uint32_t steps)
{
    uint64_t total, dead;

    gd_units_count(units, steps, &total, &dead);
    assert_true(dead <= total);
    return dead;
}

static uint64_t total_of(const struct gd_units *units)
{
    uint64_t total, dead;

    gd_units_count(units, 1, &total, &dead);
    return total;
}

/* A nonzero value with only its last bit set, and a negative zero. */
static void every_dtype(void **state)
{
    struct gd_units *units;

    for (int dtype = 0; dtype <= GD_DT_COUNT; dtype++) {
        size_t item = gd_dtype_size((enum gd_dtype)dtype);
        bool is_complex = gd_dtype_is_complex((enum gd_dtype)dtype);
        bool has_sign = is_complex || gd_dtype_is_float((enum gd_dtype)dtype);

        if (item == 0) {
            continue;
        }
        for (int64_t columns = 1; columns < 70; columns += columns < 20 ? 1 : 7) {
            struct gd_tensor *tensor = make_zeros((enum gd_dtype)dtype, 3, columns);
            unsigned char *data = gd_tensor_bytes_mut(tensor);
            uint64_t dead = (uint64_t)columns;

            assert_ok(gd_units_create(&units, NULL));
            for (int64_t c = 0; c < columns; c += 2) {
                size_t row = (size_t)(c / 2 % 3);

                /* the last byte of a little-endian element has its sign */
                data[(row * (size_t)columns + (size_t)c) * item] = 1;
                dead--;
                if (c + 1 < columns) {
                    data[((size_t)c + 2) * item - 1] = has_sign ? 0x80 : 0;
                }
            }
            assert_ok(gd_units_look(units, tensor, NULL));
            assert_int_equal(total_of(units), columns);
            assert_int_equal(dead_after(units, 1), dead);
            assert_int_equal(dead_after(units, 2), 0);
            if (is_complex) { /* -0 as the real part, nonzero imaginary part */
                memset(data, 0, gd_tensor_bytes(tensor));
                data[item / 2 - 1] = 0x80;
                data[item / 2] = 1;
                assert_ok(gd_units_look(units, tensor, NULL));
                assert_int_equal(dead_after(units, 1), columns - 1);
            }
            gd_units_destroy(units);
            gd_tensor_unref(tensor);
        }
    }
}

static void nan_is_not_zero(void **state)
{
    struct gd_tensor *tensor = make_zeros(GD_FLOAT32, 4, 5);
    const float nan = NAN;
    struct gd_units *units;

    memcpy(gd_tensor_bytes_mut(tensor) + 7 * sizeof(nan), &nan, sizeof(nan));
    assert_ok(gd_units_create(&units, NULL));
    assert_ok(gd_units_look(units, tensor, NULL));
    assert_int_equal(dead_after(units, 1), 4);
    gd_units_destroy(units);
    gd_tensor_unref(tensor);
}

static void in_a_row(void **state)
{
    struct gd_tensor *tensor = make_zeros(GD_FLOAT32, 2, 3);
    float values[6] = {0};
    struct gd_units *units;

    assert_ok(gd_units_create(&units, NULL));
    assert_int_equal(total_of(units), 0);
    for (uint32_t look = 0; look < 4; look++) {
        values[0] = look == 1 ? 5.0f : 0;
        values[4] = 1;
        memcpy(gd_tensor_bytes_mut(tensor), values, sizeof(values));
        assert_ok(gd_units_look(units, tensor, NULL));
    }
    assert_int_equal(total_of(units), 3);
    assert_int_equal(dead_after(units, 0), 2); /* same as 1 */
    assert_int_equal(dead_after(units, 2), 2);
    assert_int_equal(dead_after(units, 3), 1);
    assert_int_equal(dead_after(units, 4), 1);
    assert_int_equal(dead_after(units, 5), 0);
    gd_units_destroy(units);
    gd_tensor_unref(tensor);
}

static void another_shape_starts_anew(void **state)
{
    struct gd_tensor *three = make_zeros(GD_FLOAT32, 2, 3), *four = make_zeros(GD_FLOAT32, 2, 4),
                     *more = make_zeros(GD_FLOAT32, 9, 4), *half = make_zeros(GD_FLOAT16, 2, 4);
    struct gd_units *units;

    assert_ok(gd_units_create(&units, NULL));
    assert_ok(gd_units_look(units, three, NULL));
    assert_ok(gd_units_look(units, three, NULL));
    assert_int_equal(dead_after(units, 2), 3);
    assert_ok(gd_units_look(units, four, NULL));
    assert_int_equal(dead_after(units, 1), 4);
    assert_int_equal(dead_after(units, 2), 0);
    assert_ok(gd_units_look(units, more, NULL)); /* another batch, the same units */
    assert_int_equal(dead_after(units, 2), 4);
    assert_ok(gd_units_look(units, half, NULL));
    assert_int_equal(dead_after(units, 2), 0);
    gd_units_destroy(units);
    gd_tensor_unref(three);
    gd_tensor_unref(four);
    gd_tensor_unref(more);
    gd_tensor_unref(half);
}

static void compare_with_get(const struct gd_tensor *tensor)
{
    int64_t columns = tensor->shape.dim[tensor->shape.rank - 1], count = gd_tensor_count(tensor);
    uint64_t dead = 0;
    struct gd_units *units;

    assert_ok(gd_units_create(&units, NULL));
    assert_ok(gd_units_look(units, tensor, NULL));
    for (int64_t c = 0; c < columns; c++) {
        bool zero = true;

        for (int64_t flat = c; flat < count; flat += columns) {
            zero &= gd_tensor_get(tensor, flat) == 0;
        }
        dead += zero;
    }
    assert_int_equal(total_of(units), columns);
    assert_int_equal(dead_after(units, 1), dead);
    gd_units_destroy(units);
}

static void strided_rows(void **state)
{
    static const struct {
        struct gd_shape shape;
        int64_t stride[GD_MAX_RANK]; /* elements */
        int64_t offset;
    } views[] = {
        {{3, {4, 6, 10}}, {60, 10, 1}, 0},
        {{3, {10, 6, 4}}, {1, 10, 60}, 0},
        {{3, {4, 6, 5}}, {60, 10, 2}, 1},
        {{3, {4, 6, 10}}, {60, 10, -1}, 9},
        {{2, {6, 4}}, {10, 60}, 3},
        {{1, {240}}, {1}, 0},
        {{1, {24}}, {10}, 5},
        {{3, {4, 3, 7}}, {60, 20, 1}, 2},
        {{4, {1, 240, 1, 1}}, {7, 1, 3, 9}, 0},
        {{3, {4, 5, 10}}, {0, 10, 1}, 0},
    };
    static const enum gd_dtype dtypes[] = {GD_INT8, GD_INT16, GD_FLOAT32, GD_FLOAT64};
    unsigned seed = 1;

    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        struct gd_tensor *base = make_zeros(dtypes[d], 24, 10), *view;
        int64_t item = (int64_t)gd_dtype_size(dtypes[d]);
        unsigned char *data = gd_tensor_bytes_mut(base);

        for (int64_t i = 0; i < 240; i++) {
            seed = seed * 1103515245u + 12345u;
            data[i * item] = seed >> 16 & 15 ? 0 : 1;
        }
        for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++) {
            int64_t stride[GD_MAX_RANK];

            for (int i = 0; i < GD_MAX_RANK; i++) {
                stride[i] = views[v].stride[i] * item;
            }
            assert_ok(
                gd_tensor_view(base, &views[v].shape, stride, views[v].offset * item, &view, NULL));
            compare_with_get(view);
            gd_tensor_unref(view);
        }
        gd_tensor_unref(base);
    }
}

static void nothing_to_look_at(void **state)
{
    const struct gd_shape scalar = {.rank = 0};
    struct gd_tensor *no_rows = make_zeros(GD_FLOAT32, 0, 3),
                     *no_units = make_zeros(GD_FLOAT32, 3, 0), *one;
    struct gd_tensor text = {.dtype = GD_STRING, .shape = {.rank = 1, .dim = {1}}};
    struct gd_units *units;
    struct gd_err err;

    assert_ok(gd_units_create(&units, NULL));
    assert_ok(gd_units_look(units, no_rows, NULL));
    assert_int_equal(total_of(units), 0);
    assert_ok(gd_units_look(units, no_units, NULL));
    assert_int_equal(total_of(units), 0);
    assert_ok(gd_tensor_create(GD_FLOAT64, &scalar, 0, &one, NULL));
    memset(gd_tensor_bytes_mut(one), 0, sizeof(double));
    assert_ok(gd_units_look(units, one, NULL));
    assert_int_equal(total_of(units), 1);
    assert_int_equal(dead_after(units, 1), 1);
    assert_int_equal(gd_units_look(units, &text, &err), GD_EUNSUPPORTED);
    assert_string_equal(err.text, "cannot compute statistics of a string tensor");
    assert_int_equal(total_of(units), 1);
    gd_units_destroy(units);
    gd_units_destroy(NULL);
    gd_tensor_unref(one);
    gd_tensor_unref(no_rows);
    gd_tensor_unref(no_units);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_dtype),  cmocka_unit_test(nan_is_not_zero),
    cmocka_unit_test(in_a_row),     cmocka_unit_test(another_shape_starts_anew),
    cmocka_unit_test(strided_rows), cmocka_unit_test(nothing_to_look_at),
};

RUN_TESTS()

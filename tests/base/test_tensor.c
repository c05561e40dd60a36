// SPDX-License-Identifier: GPL-3.0-or-later
#include <pthread.h>

#include "../unit.h"
#include "base/tensor.h"

static const struct gd_shape shape_2_3 = {.rank = 2, .dim = {2, 3}};

static void counts_and_bytes(void **state)
{
    static const struct {
        struct gd_shape shape;
        int64_t count;
        int rc; /* expected from gd_shape_bytes for float32 */
    } cases[] = {
        {{.rank = 0}, 1, GD_OK},
        {{.rank = 1, .dim = {7}}, 7, GD_OK},
        {{.rank = 3, .dim = {2, 0, 5}}, 0, GD_OK},
        {{.rank = 2, .dim = {3, -1}}, -1, GD_EINVAL},
        {{.rank = 2, .dim = {0, -1}}, -1, GD_EINVAL},
        {{.rank = -1}, -1, GD_EINVAL},
        {{.rank = GD_MAX_RANK + 1}, -1, GD_EINVAL},
        {{.rank = 1, .dim = {INT64_MAX}}, INT64_MAX, GD_ELIMIT},
        {{.rank = 1, .dim = {INT64_MAX / 4}}, INT64_MAX / 4, GD_OK},
        {{.rank = 2, .dim = {INT64_C(1) << 32, INT64_C(1) << 32}}, -1, GD_ELIMIT},
        {{.rank = 3, .dim = {INT64_C(1) << 32, INT64_C(1) << 32, 0}}, -1, GD_ELIMIT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_err err;
        size_t bytes = 99;

        assert_int_equal(gd_shape_count(&cases[i].shape), cases[i].count);
        assert_int_equal(gd_shape_bytes(&cases[i].shape, GD_FLOAT32, &bytes, &err), cases[i].rc);
        assert_int_equal(bytes, cases[i].rc != GD_OK ? 99 : (uint64_t)cases[i].count * 4);
    }
    assert_int_equal(gd_shape_bytes(&shape_2_3, GD_STRING, &(size_t){0}, NULL), GD_EINVAL);
    assert_int_equal(gd_shape_bytes(&shape_2_3, (enum gd_dtype)77, &(size_t){0}, NULL), GD_EINVAL);
}

static void shapes_as_text(void **state)
{
    static const struct gd_shape one = {.rank = 1, .dim = {4}}, none = {.rank = 0};
    char text[64], small[6];

    assert_string_equal(gd_shape_text(&shape_2_3, text, sizeof(text)), "(2, 3)");
    assert_string_equal(gd_shape_text(&one, text, sizeof(text)), "(4,)");
    assert_string_equal(gd_shape_text(&none, text, sizeof(text)), "()");
    assert_string_equal(gd_shape_text(&shape_2_3, small, sizeof(small)), "(2, 3");
    assert_string_equal(gd_shape_text(&shape_2_3, small, 1), "");
    assert_false(gd_shape_equal(&shape_2_3, &one));
    assert_true(gd_shape_equal(&one, &one));
}

static void made_tensors_can_be_filled(void **state)
{
    struct gd_tensor *tensor;
    float *values;

    assert_ok(gd_tensor_create(GD_FLOAT32, &shape_2_3, 24, &tensor, NULL));
    values = (float *)(void *)gd_tensor_bytes_mut(tensor);
    for (int i = 0; i < 6; i++) {
        values[i] = (float)i;
    }
    assert_int_equal(tensor->stride[0], 12);
    assert_int_equal(tensor->stride[1], 4);
    assert_int_equal(gd_tensor_count(tensor), 6);
    assert_int_equal(gd_tensor_bytes(tensor), 24);
    assert_true(gd_tensor_is_contiguous(tensor));
    for (int i = 0; i < 6; i++) {
        assert_true(gd_tensor_get(tensor, i) == i);
    }
    gd_tensor_unref(tensor);
}

static void limits_hold(void **state)
{
    const struct gd_shape huge = {.rank = 1, .dim = {INT64_MAX / 8}};
    struct gd_tensor *tensor = NULL;
    struct gd_err err;

    assert_int_equal(gd_tensor_create(GD_FLOAT32, &shape_2_3, 23, &tensor, &err), GD_ELIMIT);
    assert_string_equal(err.text, "a tensor of 24 bytes exceeds the limit of 23");
    assert_int_equal(gd_tensor_create(GD_FLOAT64, &huge, 0, &tensor, &err), GD_ENOMEM);
    assert_int_equal(gd_tensor_create(GD_STRING, &shape_2_3, 0, &tensor, &err), GD_EINVAL);
    assert_null(tensor);
}

static void big_tensors_are_mapped(void **state)
{
    const size_t sizes[] = {(2 << 20) - 1, 2 << 20, (2 << 20) + 1, (6 << 20) + 12345};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct gd_shape shape = {.rank = 1, .dim = {(int64_t)sizes[i]}};
        struct gd_tensor *tensor;

        assert_ok(gd_tensor_create(GD_UINT8, &shape, 0, &tensor, NULL));
        memset(gd_tensor_bytes_mut(tensor), 7, sizes[i]);
        assert_true(gd_tensor_get(tensor, shape.dim[0] - 1) == 7);
        if (sizes[i] >= 2 << 20) {
            assert_int_equal((uintptr_t)tensor->data % (2 << 20), 0);
        }
        gd_tensor_unref(tensor);
    }
}

static void no_elements_no_memory(void **state)
{
    const struct gd_shape shape = {.rank = 2, .dim = {0, 4}};
    struct gd_tensor *tensor, *view, *flat;

    assert_ok(gd_tensor_create(GD_INT8, &shape, 0, &tensor, NULL));
    assert_null(tensor->data);
    assert_null(gd_tensor_bytes_mut(tensor));
    assert_int_equal(gd_tensor_bytes(tensor), 0);
    assert_ok(gd_tensor_view(tensor, &shape, tensor->stride, 0, &view, NULL));
    assert_ok(gd_tensor_contiguous(view, &flat, NULL));
    gd_tensor_unref(flat);
    gd_tensor_unref(view);
    gd_tensor_unref(tensor);
    gd_tensor_unref(NULL);
    assert_null(gd_tensor_ref(NULL));
}

static int freed;

static void count_free(void *data, size_t bytes, void *ctx)
{
    assert_int_equal(bytes, 24);
    assert_ptr_equal(ctx, &freed);
    assert_non_null(data);
    freed++;
}

static void wrapped_memory_ends_once(void **state)
{
    float values[6] = {0, 1, 2, 3, 4, 5};
    const struct gd_shape column = {.rank = 1, .dim = {2}};
    const int64_t stride[GD_MAX_RANK] = {12};
    struct gd_tensor *tensor, *view;
    struct gd_err err;

    freed = 0;
    assert_int_equal(
        gd_tensor_wrap(GD_FLOAT32, &shape_2_3, values, 20, count_free, &freed, &tensor, &err),
        GD_EPROTO);
    assert_string_equal(err.text,
                        "20 bytes of data for a float32 tensor of shape (2, 3), which needs 24");
    assert_int_equal(freed, 0);
    assert_ok(
        gd_tensor_wrap(GD_FLOAT32, &shape_2_3, values, 24, count_free, &freed, &tensor, &err));
    assert_null(gd_tensor_bytes_mut(tensor));
    assert_ok(gd_tensor_view(tensor, &column, stride, 4, &view, &err));
    assert_null(gd_tensor_bytes_mut(view));
    gd_tensor_unref(tensor);
    assert_int_equal(freed, 0);
    assert_true(gd_tensor_get(view, 0) == 1 && gd_tensor_get(view, 1) == 4);
    gd_tensor_unref(view);
    assert_int_equal(freed, 1);
}

static void views_stay_inside(void **state)
{
    static const struct {
        int64_t dim, stride, offset;
        int rc;
    } cases[] = {
        {6, 4, 0, GD_OK},
        {6, -4, 20, GD_OK},
        {1, INT64_MAX, 20, GD_OK},
        {7, 4, 0, GD_EINVAL},
        {6, 4, 4, GD_EINVAL},
        {6, -4, 16, GD_EINVAL},
        {1, 4, 21, GD_EINVAL},
        {1, 4, -1, GD_EINVAL},
        {1, 4, INT64_MAX, GD_EINVAL},
        {3, INT64_MAX / 2, 0, GD_EINVAL},
        {3, INT64_MIN, 0, GD_EINVAL},
        {1000, 0, 0, GD_OK},
        {0, 4, 999, GD_OK},
        {-1, 4, 0, GD_EINVAL},
    };
    struct gd_tensor *tensor;

    assert_ok(gd_tensor_create(GD_FLOAT32, &shape_2_3, 0, &tensor, NULL));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct gd_shape shape = {.rank = 1, .dim = {cases[i].dim}};
        const int64_t stride[GD_MAX_RANK] = {cases[i].stride};
        struct gd_tensor *view = NULL;

        assert_int_equal(gd_tensor_view(tensor, &shape, stride, cases[i].offset, &view, NULL),
                         cases[i].rc);
        gd_tensor_unref(view);
    }
    gd_tensor_unref(tensor);
}

/* Compares elements by the definition of strides, for every item size and some layouts. */
static void strided_copies(void **state)
{
    static const size_t items[] = {1, 2, 4, 8, 16, 3};
    static const struct {
        struct gd_shape shape;
        int64_t stride[3]; /* in items */
        int64_t first;
    } layouts[] = {
        {{.rank = 3, .dim = {2, 3, 4}}, {12, 4, 1}, 0},
        {{.rank = 3, .dim = {4, 3, 2}}, {1, 4, 12}, 0},
        {{.rank = 3, .dim = {2, 3, 4}}, {-12, 4, 1}, 12},
        {{.rank = 3, .dim = {2, 1, 4}}, {12, 99, -1}, 3},
        {{.rank = 2, .dim = {3, 4}}, {0, 1}, 5},
        {{.rank = 1, .dim = {8}}, {-3}, 21},
        {{.rank = 0}, {0}, 7},
        {{.rank = 2, .dim = {0, 4}}, {4, 1}, 0},
    };
    unsigned char data[24 * 16], out[24 * 16 + 1];

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char)(i * 7 + i / 256);
    }
    for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]) * 6; k++) {
        const struct gd_shape *shape = &layouts[k / 6].shape;
        size_t item = items[k % 6];
        int64_t stride[GD_MAX_RANK], count = gd_shape_count(shape);
        const unsigned char *from = data + layouts[k / 6].first * (int64_t)item;

        for (int i = 0; i < shape->rank; i++) {
            stride[i] = layouts[k / 6].stride[i] * (int64_t)item;
        }
        memset(out, 0xee, sizeof(out));
        gd_strided_copy(out, from, shape, stride, item);
        for (int64_t flat = 0; flat < count; flat++) {
            int64_t rest = flat, offset = 0;

            for (int i = shape->rank - 1; i >= 0; i--) {
                offset += rest % shape->dim[i] * stride[i];
                rest /= shape->dim[i];
            }
            assert_memory_equal(out + (size_t)flat * item, from + offset, item);
        }
        assert_int_equal(out[(size_t)count * item], 0xee);
    }
}

static void contiguous_is_decided_by_layout(void **state)
{
    const struct gd_shape row = {.rank = 2, .dim = {1, 3}}, column = {.rank = 2, .dim = {3, 2}};
    const int64_t row_stride[GD_MAX_RANK] = {777, 4}, column_stride[GD_MAX_RANK] = {4, 12};
    struct gd_tensor *tensor, *view, *flat;
    float *values;

    assert_ok(gd_tensor_create(GD_FLOAT32, &shape_2_3, 0, &tensor, NULL));
    values = (float *)(void *)gd_tensor_bytes_mut(tensor);
    for (int i = 0; i < 6; i++) {
        values[i] = (float)i;
    }
    assert_ok(gd_tensor_view(tensor, &row, row_stride, 12, &view, NULL));
    assert_true(gd_tensor_is_contiguous(view));
    assert_ok(gd_tensor_contiguous(view, &flat, NULL));
    assert_ptr_equal(flat, view);
    gd_tensor_unref(flat);
    gd_tensor_unref(view);
    assert_ok(gd_tensor_view(tensor, &column, column_stride, 0, &view, NULL));
    gd_tensor_unref(tensor);
    assert_false(gd_tensor_is_contiguous(view));
    assert_ok(gd_tensor_contiguous(view, &flat, NULL));
    assert_ptr_not_equal(flat, view);
    for (int i = 0; i < 6; i++) {
        assert_true(gd_tensor_get(flat, i) == i / 2 + 3 * (i % 2) &&
                    gd_tensor_get(view, i) == gd_tensor_get(flat, i));
    }
    gd_tensor_unref(flat);
    gd_tensor_unref(view);
}

static void *ref_and_unref(void *arg)
{
    struct gd_tensor *tensor = arg;

    for (int i = 0; i < 20000; i++) {
        struct gd_tensor *view;

        gd_tensor_ref(tensor);
        if (gd_tensor_view(tensor, &tensor->shape, tensor->stride, 0, &view, NULL) == GD_OK) {
            gd_tensor_unref(view);
        }
        gd_tensor_unref(tensor);
    }
    return NULL;
}

static void references_from_many_threads(void **state)
{
    float values[6] = {0};
    struct gd_tensor *tensor;
    pthread_t thread[4];

    freed = 0;
    assert_ok(
        gd_tensor_wrap(GD_FLOAT32, &shape_2_3, values, 24, count_free, &freed, &tensor, NULL));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, ref_and_unref, tensor), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
    }
    assert_int_equal(freed, 0);
    assert_int_equal(tensor->refs, 1);
    gd_tensor_unref(tensor);
    assert_int_equal(freed, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_and_bytes),
    cmocka_unit_test(shapes_as_text),
    cmocka_unit_test(made_tensors_can_be_filled),
    cmocka_unit_test(limits_hold),
    cmocka_unit_test(big_tensors_are_mapped),
    cmocka_unit_test(no_elements_no_memory),
    cmocka_unit_test(wrapped_memory_ends_once),
    cmocka_unit_test(views_stay_inside),
    cmocka_unit_test(strided_copies),
    cmocka_unit_test(contiguous_is_decided_by_layout),
    cmocka_unit_test(references_from_many_threads),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
/* Parsing, text and errors. test_slice_numpy.py compares application with numpy. */
#include "../unit.h"
#include "base/slice.h"

static const struct gd_shape shape_4_5 = {.rank = 2, .dim = {4, 5}};
static const int64_t stride_4_5[GD_MAX_RANK] = {20, 4};

static void texts_come_back(void **state)
{
    static const struct {
        const char *typed, *text;
    } cases[] = {
        {"[0]", "[0]"},
        {"[ 0 , -1 ]", "[0, -1]"},
        {"[:]", "[:]"},
        {"[::]", "[:]"},
        {"[1:3,::2,:-1:]", "[1:3, ::2, :-1]"},
        {"[...,None]", "[..., None]"},
        {"[Ellipsis, newaxis, np.newaxis]", "[..., None, None]"},
        {"[None:None:-1]", "[::-1]"},
        {"[1,]", "[1]"},
        {"[+3, --3, -+3]", "[3, 3, -3]"},
        {"[- 1 : + 2]", "[-1:2]"},
        {"[99999999999999999999:-99999999999999999999]",
         "[9223372036854775807:-9223372036854775807]"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_buf out = GD_BUF_INIT(200);
        struct gd_slice slice;
        size_t used;

        assert_ok(gd_slice_parse(cases[i].typed, strlen(cases[i].typed), &used, &slice, NULL));
        assert_int_equal(used, strlen(cases[i].typed));
        assert_ok(gd_slice_text(&slice, &out));
        assert_string_equal(gd_buf_text(&out), cases[i].text);
        gd_buf_deinit(&out);
    }
}

static void what_follows_is_left(void **state)
{
    static const char text[] = "[1:2] + 3]";
    struct gd_slice slice;
    size_t used;

    assert_ok(gd_slice_parse(text, strlen(text), &used, &slice, NULL));
    assert_int_equal(used, 5);
    assert_int_equal(slice.count, 1);
}

static void faults_say_where(void **state)
{
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = {
        {"", 0},       {"0]", 0},        {"[", 1},         {"[]", 1},      {"[1", 2},
        {"[1 2]", 3},  {"[a]", 1},       {"[1:2:0]", 5},   {"[1::-0]", 4}, {"[,]", 1},
        {"[1,,2]", 3}, {"[-]", 2},       {"[1:2:3:4]", 6}, {"[..]", 1},    {"[Nonesuch]", 1},
        {"[1.5]", 2},  {"[1:None2]", 3}, {"[$1]", 1},      {"[0x10]", 2},  {"[1;2]", 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_slice slice = {.count = 77};
        struct gd_err err;
        size_t used = 99;

        assert_int_equal(gd_slice_parse(cases[i].text, strlen(cases[i].text), &used, &slice, &err),
                         GD_EINVAL);
        assert_int_equal(err.offset, cases[i].offset);
        assert_int_equal(used, 99);
        assert_int_equal(slice.count, 77);
    }
}

static void too_many_parts(void **state)
{
    char text[2 + 2 * (GD_MAX_SLICE_ITEMS + 1) + 1] = "[";
    struct gd_slice slice;
    struct gd_err err;

    for (int i = 0; i <= GD_MAX_SLICE_ITEMS; i++) {
        memcpy(text + 1 + 2 * i, "0,", 3);
    }
    memcpy(text + 2 + 2 * GD_MAX_SLICE_ITEMS, "]", 2);
    assert_int_equal(gd_slice_parse(text, strlen(text), NULL, &slice, &err), GD_EINVAL);
    memcpy(text + 2 * GD_MAX_SLICE_ITEMS, "]", 2);
    assert_ok(gd_slice_parse(text, strlen(text), NULL, &slice, &err));
    assert_int_equal(slice.count, GD_MAX_SLICE_ITEMS);
}

static void apply_text(const char *text, struct gd_slice_view *view, int expected,
                       struct gd_err *err)
{
    struct gd_slice slice;

    assert_ok(gd_slice_parse(text, strlen(text), NULL, &slice, err));
    assert_int_equal(gd_slice_apply(&slice, &shape_4_5, stride_4_5, view, err), expected);
}

static void refusals_say_which_axis(void **state)
{
    static const struct {
        const char *slice, *message;
    } cases[] = {
        {"[4]", "index 4 is out of bounds for axis 0 with size 4"},
        {"[-5]", "index -5 is out of bounds for axis 0 with size 4"},
        {"[..., 5]", "index 5 is out of bounds for axis 1 with size 5"},
        {"[None, 0, 7]", "index 7 is out of bounds for axis 1 with size 5"},
        {"[0, 0, :]", "too many indices: the tensor is 2-dimensional, but 3 were indexed"},
        {"[..., 0, ...]", "a slice can only have a single ellipsis (...)"},
    };
    struct gd_slice_view view = {.offset = 5};
    struct gd_err err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        apply_text(cases[i].slice, &view, GD_EINVAL, &err);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(view.offset, 5);
    }
}

static void views_by_hand(void **state)
{
    struct gd_slice_view view;
    struct gd_err err;

    apply_text("[1, ::-2]", &view, GD_OK, &err);
    assert_int_equal(view.shape.rank, 1);
    assert_int_equal(view.shape.dim[0], 3);
    assert_int_equal(view.stride[0], -8);
    assert_int_equal(view.offset, 20 + 16);
    apply_text("[None, ..., 2:]", &view, GD_OK, &err);
    assert_int_equal(view.shape.rank, 3);
    assert_int_equal(view.shape.dim[0], 1);
    assert_int_equal(view.shape.dim[1], 4);
    assert_int_equal(view.shape.dim[2], 3);
    assert_int_equal(view.offset, 8);
}

/* Items that the parser never produces, but a peer might. */
static void absurd_items_are_refused(void **state)
{
    struct gd_slice slice = {.count = 1};
    struct gd_slice_view view;
    const struct gd_shape bad = {.rank = 1, .dim = {-3}};

    slice.item[0].kind = GD_SLICE_RANGE;
    assert_int_equal(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL), GD_EINVAL);
    slice.item[0].step = INT64_MIN;
    slice.item[0].has_step = true;
    assert_ok(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL));
    assert_int_equal(view.shape.dim[0], 1);
    slice.item[0].has_start = slice.item[0].has_stop = true;
    slice.item[0].start = INT64_MIN;
    slice.item[0].stop = INT64_MAX;
    slice.item[0].step = INT64_MAX;
    assert_ok(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL));
    slice.item[0].kind = (enum gd_slice_kind)9;
    assert_int_equal(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL), GD_EINVAL);
    slice.item[0].kind = GD_SLICE_INDEX;
    slice.item[0].start = INT64_MIN;
    assert_int_equal(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL), GD_EINVAL);
    slice.count = GD_MAX_SLICE_ITEMS + 1;
    assert_int_equal(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL), GD_EINVAL);
    slice.count = -1;
    assert_int_equal(gd_slice_apply(&slice, &shape_4_5, stride_4_5, &view, NULL), GD_EINVAL);
    slice.count = 0;
    assert_int_equal(gd_slice_apply(&slice, &bad, stride_4_5, &view, NULL), GD_EINVAL);
}

static void slices_of_tensors_share_memory(void **state)
{
    struct gd_tensor *tensor, *cut;
    struct gd_slice slice;
    int32_t *values;

    assert_ok(gd_tensor_create(GD_INT32, &shape_4_5, 0, &tensor, NULL));
    values = (int32_t *)(void *)gd_tensor_bytes_mut(tensor);
    for (int i = 0; i < 20; i++) {
        values[i] = i;
    }
    assert_ok(gd_slice_parse("[1:, -1]", 8, NULL, &slice, NULL));
    assert_ok(gd_tensor_slice(tensor, &slice, &cut, NULL));
    assert_ptr_equal(cut->data, tensor->data + 36);
    gd_tensor_unref(tensor);
    assert_int_equal(gd_tensor_count(cut), 3);
    assert_true(gd_tensor_get(cut, 0) == 9 && gd_tensor_get(cut, 2) == 19);
    /* A slice of a slice. */
    assert_ok(gd_slice_parse("[::-2]", 6, NULL, &slice, NULL));
    assert_ok(gd_tensor_slice(cut, &slice, &tensor, NULL));
    gd_tensor_unref(cut);
    assert_true(gd_tensor_get(tensor, 0) == 19 && gd_tensor_get(tensor, 1) == 9);
    gd_tensor_unref(tensor);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_come_back),          cmocka_unit_test(what_follows_is_left),
    cmocka_unit_test(faults_say_where),         cmocka_unit_test(too_many_parts),
    cmocka_unit_test(refusals_say_which_axis),  cmocka_unit_test(views_by_hand),
    cmocka_unit_test(absurd_items_are_refused), cmocka_unit_test(slices_of_tensors_share_memory),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The slice parser and gd_slice_apply. The first bytes are a shape, the rest is the text. What is
 * accepted must print to a text that parses to the same slice, and every element of the view must
 * lie inside the tensor.
 */
#include "fuzz.h"

#include "base/slice.h"

static void check_text(const struct gd_slice *slice)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    struct gd_slice again;
    size_t used;

    FUZZ_CHECK(gd_slice_text(slice, &text) == GD_OK);
    FUZZ_CHECK(gd_slice_parse(gd_buf_text(&text), text.len, &used, &again, NULL) == GD_OK);
    FUZZ_CHECK(used == text.len && again.count == slice->count);
    for (int i = 0; i < slice->count; i++) {
        FUZZ_CHECK(memcmp(&again.item[i], &slice->item[i], sizeof(again.item[i])) == 0);
    }
    gd_buf_deinit(&text);
}

static void check_view(const struct gd_slice_view *view, const struct gd_shape *shape)
{
    int64_t low = view->offset, high = view->offset, count = gd_shape_count(&view->shape);

    FUZZ_CHECK(count >= 0);
    if (count == 0) {
        return;
    }
    for (int i = 0; i < view->shape.rank; i++) {
        int64_t reach = view->stride[i] * (view->shape.dim[i] - 1);

        *(reach < 0 ? &low : &high) += reach;
    }
    FUZZ_CHECK(low >= 0 && high <= (gd_shape_count(shape) - 1) * 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_shape shape = {.rank = 0};
    struct gd_slice_view view;
    struct gd_slice slice;
    struct gd_err err;
    int64_t stride[GD_MAX_RANK];
    size_t used;

    if (size == 0) {
        return 0;
    }
    shape.rank = data[0] % 6;
    data++, size--;
    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = size ? data[0] % 9 : 1;
        if (size) {
            data++, size--;
        }
    }
    gd_shape_strides(&shape, 4, stride);
    if (gd_slice_parse((const char *)data, size, &used, &slice, &err) != GD_OK) {
        FUZZ_CHECK(err.offset <= size && err.text[0] != '\0');
        return 0;
    }
    FUZZ_CHECK(used <= size && slice.count >= 1 && slice.count <= GD_MAX_SLICE_ITEMS);
    check_text(&slice);
    if (gd_slice_apply(&slice, &shape, stride, &view, &err) == GD_OK) {
        check_view(&view, &shape);
    }
    return 0;
}

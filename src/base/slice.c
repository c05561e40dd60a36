// SPDX-License-Identifier: MIT
#include "base/slice.h"

#include <string.h>

#include "base/cursor.h"

struct reader {
    struct gd_cursor in;
    struct gd_err *err;
};

static int fail_at(struct reader *reader, size_t at, const char *what)
{
    gd_fail(reader->err, GD_EINVAL, "%s at character %zu of the slice", what, at + 1);
    if (reader->err) {
        reader->err->offset = at;
    }
    return GD_EINVAL;
}

/* An integer of any length with any number of signs, as in Python; clamped to int64_t, which
 * selects the same elements: no axis is that long. */
static int read_integer(struct reader *reader, int64_t *ret)
{
    bool negative = false;
    int64_t value;

    for (char c = gd_cursor_peek(&reader->in); c == '-' || c == '+';
         c = gd_cursor_peek(&reader->in)) {
        negative = negative != (c == '-');
        reader->in.at++;
    }
    if (!gd_cursor_take_integer(&reader->in, &value, NULL)) {
        return fail_at(reader, reader->in.at, "expected an integer");
    }
    *ret = negative ? -value : value;
    return GD_OK;
}

/* One optional part of start:stop:step; None stands for an omitted part. */
static int read_part(struct reader *reader, bool *has, int64_t *ret)
{
    *has = false;
    if (gd_cursor_take_identifier(&reader->in, "None")) {
        return GD_OK;
    }
    char c = gd_cursor_peek(&reader->in);
    if (!gd_is_digit(c) && c != '-' && c != '+') {
        return GD_OK;
    }
    *has = true;
    return read_integer(reader, ret);
}

/* The rest of a range, after its first colon. */
static int read_range(struct reader *reader, struct gd_slice_item *item)
{
    item->kind = GD_SLICE_RANGE;
    int rc = read_part(reader, &item->has_stop, &item->stop);
    if (rc != GD_OK || !gd_cursor_take(&reader->in, ":")) {
        return rc;
    }
    gd_cursor_skip_blanks(&reader->in);
    size_t step_at = reader->in.at;
    rc = read_part(reader, &item->has_step, &item->step);
    if (rc == GD_OK && item->step == 0) {
        return fail_at(reader, step_at, "the step of a range cannot be zero");
    }
    return rc;
}

static int read_item(struct reader *reader, struct gd_slice_item *item)
{
    struct gd_cursor *in = &reader->in;

    memset(item, 0, sizeof(*item));
    item->step = 1;
    if (gd_cursor_take(in, "...") || gd_cursor_take_identifier(in, "Ellipsis")) {
        item->kind = GD_SLICE_ELLIPSIS;
        return GD_OK;
    }
    if (gd_cursor_take_identifier(in, "newaxis") || gd_cursor_take_identifier(in, "np.newaxis")) {
        item->kind = GD_SLICE_NEWAXIS;
        return GD_OK;
    }
    size_t start_at = in->at;
    int rc = read_part(reader, &item->has_start, &item->start);
    if (rc != GD_OK) {
        return rc;
    }
    bool none = !item->has_start && in->at != start_at;
    if (gd_cursor_take(in, ":")) {
        return read_range(reader, item);
    }
    if (!item->has_start && !none) {
        return fail_at(reader, start_at, "expected an integer, a range, ... or None");
    }
    item->kind = none ? GD_SLICE_NEWAXIS : GD_SLICE_INDEX;
    item->has_start = false;
    return GD_OK;
}

int gd_slice_parse(const char *text, size_t len, size_t *used, struct gd_slice *ret,
                   struct gd_err *err)
{
    struct reader reader = {.in = {.text = text, .len = len}, .err = err};
    struct gd_cursor *in = &reader.in;
    struct gd_slice slice;
    int rc;

    gd_slice_clear(&slice);
    if (!gd_cursor_take(in, "[")) {
        return fail_at(&reader, in->at, "expected [");
    }
    do {
        if (slice.count && gd_cursor_peek(in) == ']') {
            break; /* [1,] is [1] */
        }
        if (slice.count == GD_MAX_SLICE_ITEMS) {
            return fail_at(&reader, in->at, "more items than a tensor can have axes");
        }
        rc = read_item(&reader, &slice.item[slice.count]);
        if (rc != GD_OK) {
            return rc;
        }
        slice.count++;
    } while (gd_cursor_take(in, ","));
    if (!gd_cursor_take(in, "]")) {
        return fail_at(&reader, in->at, "expected , or ]");
    }
    if (used) {
        *used = in->at;
    }
    gd_slice_clear(ret);
    ret->count = slice.count;
    memcpy(ret->item, slice.item, (size_t)slice.count * sizeof(slice.item[0]));
    return GD_OK;
}

/* Python's rules for start, stop and step on an axis of `dim` elements. Returns the length, and the
 * first index. */
static int64_t adjust_range(const struct gd_slice_item *item, int64_t dim, int64_t *first)
{
    int64_t step = item->step;
    int64_t low = step < 0 ? -1 : 0;
    int64_t high = step < 0 ? dim - 1 : dim;
    int64_t start = item->has_start ? item->start : step < 0 ? high : low;
    int64_t stop = item->has_stop ? item->stop : step < 0 ? low : high;

    if (item->has_start) {
        start += start < 0 ? dim : 0;
        start = start < low ? low : start > high ? high : start;
    }
    if (item->has_stop) {
        stop += stop < 0 ? dim : 0;
        stop = stop < low ? low : stop > high ? high : stop;
    }
    *first = start;
    if (step < 0) {
        return stop < start ? (start - stop - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1 : 0;
    }
    return start < stop ? (stop - start - 1) / step + 1 : 0;
}

struct cutter {
    const struct gd_shape *shape;
    const int64_t *stride;
    struct gd_slice_view *view;
    struct gd_err *err;
    int axis;
};

static int add_axis(struct cutter *cut, int64_t dim, int64_t stride)
{
    struct gd_slice_view *view = cut->view;

    if (view->shape.rank == GD_MAX_RANK) {
        return gd_fail(cut->err, GD_EINVAL, "the slice would have more than %d axes", GD_MAX_RANK);
    }
    view->shape.dim[view->shape.rank] = dim;
    view->stride[view->shape.rank] = stride;
    view->shape.rank++;
    return GD_OK;
}

static int move_offset(struct cutter *cut, int64_t index, int64_t stride)
{
    int64_t bytes;

    if (__builtin_mul_overflow(index, stride, &bytes) ||
        __builtin_add_overflow(cut->view->offset, bytes, &cut->view->offset)) {
        return gd_fail(cut->err, GD_EINVAL, "the slice exceeds 64-bit offsets");
    }
    return GD_OK;
}

static int cut_index(struct cutter *cut, int64_t index)
{
    int64_t dim = cut->shape->dim[cut->axis];

    if (index < -dim || index >= dim) {
        return gd_fail(cut->err, GD_EINVAL,
                       "index %lld is out of bounds for axis %d with size %lld", (long long)index,
                       cut->axis, (long long)dim);
    }
    return move_offset(cut, index < 0 ? index + dim : index, cut->stride[cut->axis]);
}

static int cut_range(struct cutter *cut, const struct gd_slice_item *item)
{
    int64_t stride = cut->stride[cut->axis];
    int64_t first;
    int64_t count = adjust_range(item, cut->shape->dim[cut->axis], &first);
    int rc = count ? move_offset(cut, first, stride) : GD_OK;

    if (rc != GD_OK) {
        return rc;
    }
    /* With fewer than two elements the step is unused, and may overflow. */
    if (count > 1 && __builtin_mul_overflow(stride, item->step, &stride)) {
        return gd_fail(cut->err, GD_EINVAL, "the slice exceeds 64-bit offsets");
    }
    return add_axis(cut, count, stride);
}

static int cut_whole(struct cutter *cut, int axes)
{
    for (int i = 0; i < axes; i++, cut->axis++) {
        int rc = add_axis(cut, cut->shape->dim[cut->axis], cut->stride[cut->axis]);

        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

static int cut_item(struct cutter *cut, const struct gd_slice_item *item, int spare)
{
    int rc;

    switch (item->kind) {
    case GD_SLICE_INDEX:
        rc = cut_index(cut, item->start);
        cut->axis++;
        return rc;
    case GD_SLICE_RANGE:
        rc = cut_range(cut, item);
        cut->axis++;
        return rc;
    case GD_SLICE_ELLIPSIS: return cut_whole(cut, spare);
    case GD_SLICE_NEWAXIS: return add_axis(cut, 1, 0);
    }
    return gd_fail(cut->err, GD_EINVAL, "unknown kind of slice item");
}

int gd_slice_apply(const struct gd_slice *slice, const struct gd_shape *shape,
                   const int64_t stride[GD_MAX_RANK], struct gd_slice_view *ret, struct gd_err *err)
{
    struct gd_slice_view view = {.offset = 0};
    struct cutter cut = {.shape = shape, .stride = stride, .view = &view, .err = err};
    int named = 0, ellipses = 0, rc = GD_OK;

    if (gd_shape_count(shape) < 0 || slice->count < 0 || slice->count > GD_MAX_SLICE_ITEMS) {
        return gd_fail(err, GD_EINVAL, "invalid shape or slice");
    }
    for (int i = 0; i < slice->count; i++) {
        const struct gd_slice_item *item = &slice->item[i];

        named += item->kind == GD_SLICE_INDEX || item->kind == GD_SLICE_RANGE;
        ellipses += item->kind == GD_SLICE_ELLIPSIS;
        if (item->kind == GD_SLICE_RANGE && item->step == 0) {
            return gd_fail(err, GD_EINVAL, "the step of a range cannot be zero");
        }
    }
    if (ellipses > 1) {
        return gd_fail(err, GD_EINVAL, "a slice can only have a single ellipsis (...)");
    }
    if (named > shape->rank) {
        return gd_fail(err, GD_EINVAL,
                       "too many indices: the tensor is %d-dimensional, but %d were indexed",
                       shape->rank, named);
    }
    for (int i = 0; i < slice->count && rc == GD_OK; i++) {
        rc = cut_item(&cut, &slice->item[i], shape->rank - named);
    }
    if (rc == GD_OK) {
        rc = cut_whole(&cut, shape->rank - cut.axis);
    }
    if (rc != GD_OK) {
        return rc;
    }
    *ret = view;
    return GD_OK;
}

int gd_tensor_slice(const struct gd_tensor *tensor, const struct gd_slice *slice,
                    struct gd_tensor **ret, struct gd_err *err)
{
    struct gd_slice_view view;
    int rc = gd_slice_apply(slice, &tensor->shape, tensor->stride, &view, err);

    if (rc != GD_OK) {
        return rc;
    }
    return gd_tensor_view(tensor, &view.shape, view.stride, view.offset, ret, err);
}

static void add_item_text(const struct gd_slice_item *item, struct gd_buf *out)
{
    switch (item->kind) {
    case GD_SLICE_INDEX: gd_buf_printf(out, "%lld", (long long)item->start); break;
    case GD_SLICE_RANGE:
        if (item->has_start) {
            gd_buf_printf(out, "%lld", (long long)item->start);
        }
        gd_buf_putc(out, ':');
        if (item->has_stop) {
            gd_buf_printf(out, "%lld", (long long)item->stop);
        }
        if (item->has_step) {
            gd_buf_printf(out, ":%lld", (long long)item->step);
        }
        break;
    case GD_SLICE_ELLIPSIS: gd_buf_puts(out, "..."); break;
    case GD_SLICE_NEWAXIS: gd_buf_puts(out, "None"); break;
    }
}

int gd_slice_text(const struct gd_slice *slice, struct gd_buf *out)
{
    if (slice->count == 0) {
        return GD_OK;
    }
    gd_buf_putc(out, '[');
    for (int i = 0; i < slice->count; i++) {
        if (i) {
            gd_buf_puts(out, ", ");
        }
        add_item_text(&slice->item[i], out);
    }
    gd_buf_putc(out, ']');
    return out->failed ? GD_ELIMIT : GD_OK;
}

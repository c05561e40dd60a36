// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Statistics of a tensor on disk. They do not depend on element order, so the elements are read in
 * file order.
 */
#include "dump/io/source_impl.h"

/* A source with its axes permuted. */
struct view {
    const struct gd_stored_elements *elements;
    struct gd_layout layout;
    bool is_contiguous;
};

static void flip_axis(struct gd_layout *layout, int axis)
{
    layout->offset += layout->stride[axis] * (layout->shape.dim[axis] - 1);
    layout->stride[axis] = -layout->stride[axis];
}

static void swap_axes(struct gd_layout *layout, int a, int b)
{
    int64_t dim = layout->shape.dim[a], stride = layout->stride[a];

    layout->shape.dim[a] = layout->shape.dim[b];
    layout->stride[a] = layout->stride[b];
    layout->shape.dim[b] = dim;
    layout->stride[b] = stride;
}

/* The outer of two axes has the larger step, or step 0 (a row repeated). */
static bool is_outer(const struct gd_layout *layout, int a, int b)
{
    int64_t x = layout->stride[a], y = layout->stride[b];

    return y != 0 && (x == 0 || x > y);
}

static void arrange_axes(struct gd_layout *cur, struct gd_layout *prev)
{
    for (int i = 0; i < cur->shape.rank; i++) {
        if (cur->stride[i] < 0) {
            flip_axis(cur, i);
            if (prev) {
                flip_axis(prev, i);
            }
        }
    }
    for (int i = 1; i < cur->shape.rank; i++) {
        for (int j = i; j > 0 && is_outer(cur, j, j - 1); j--) {
            swap_axes(cur, j, j - 1);
            if (prev) {
                swap_axes(prev, j, j - 1);
            }
        }
    }
}

static int read_view(void *ctx, int64_t first, int64_t count, void *out, struct gd_err *err)
{
    const struct view *view = ctx;
    struct gd_layout run = {.shape = {.rank = 1, .dim = {count}}, .stride = {1}};

    if (!view->is_contiguous) {
        return gd_strided_read_run(view->elements, &view->layout, first, count, out, err);
    }
    run.offset = view->layout.offset + first;
    return gd_strided_read(view->elements, &run, out, err);
}

static int check_pair(const struct gd_source *cur, const struct gd_source *prev, struct gd_err *err)
{
    char a[64], b[64];

    if (prev->info.dtype == cur->info.dtype &&
        gd_shape_equal(&prev->info.shape, &cur->info.shape)) {
        return GD_OK;
    }
    return gd_fail(err, GD_EINVAL, "cannot compare %s %s with %s %s: type and shape must match",
                   gd_dtype_name(cur->info.dtype), gd_shape_text(&cur->info.shape, a, sizeof(a)),
                   gd_dtype_name(prev->info.dtype), gd_shape_text(&prev->info.shape, b, sizeof(b)));
}

static int stats_of(struct gd_source *source, struct gd_source *prev,
                    const struct gd_stats_options *options, struct gd_stats *ret,
                    struct gd_err *err)
{
    struct gd_stats_options in_order = options ? *options : (struct gd_stats_options){.rtol = 0};
    struct view cur, before;
    struct gd_stats_reader reader = {read_view, &cur}, prev_reader = {read_view, &before};
    int64_t count;

    cur = (struct view){.elements = &source->elements, .layout = *source->layout};
    if (prev) {
        before = (struct view){.elements = &prev->elements, .layout = *prev->layout};
    }
    count = gd_shape_count(&source->info.shape);
    if (count > 0) {
        arrange_axes(&cur.layout, prev ? &before.layout : NULL);
    }
    cur.is_contiguous = gd_layout_is_contiguous(&cur.layout);
    if (gd_bytes_want_order(source->elements.bytes)) {
        in_order.threads = 1;
        options = &in_order;
    }
    before.is_contiguous = prev && gd_layout_is_contiguous(&before.layout);
    return gd_stats_compute_read(source->info.dtype, count, &reader, prev ? &prev_reader : NULL,
                                 options, ret, err);
}

int gd_source_stats(struct gd_source *source, struct gd_source *prev,
                    const struct gd_stats_options *options, struct gd_stats *ret,
                    struct gd_err *err)
{
    struct gd_source *before = NULL;
    int rc = gd_source_resolve(source, &source, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (prev) {
        rc = gd_source_resolve(prev, &before, err);
        rc = rc != GD_OK ? rc : check_pair(source, before, err);
    }
    rc = rc != GD_OK ? rc : stats_of(source, before, options, ret, err);
    gd_source_unref(before);
    gd_source_unref(source);
    return rc;
}

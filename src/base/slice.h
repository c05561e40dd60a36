// SPDX-License-Identifier: MIT
/*
 * numpy's basic indexing: [0, -1, 1:3, ::2, ..., None].
 *
 * Parsing and application are apart, so that a slice can travel to the trainer and be cut there.
 * Application follows numpy exactly: an index out of range is an error, a range is clipped, a
 * negative step walks backwards, `...` fills with `:`, None and newaxis add an axis of 1.
 */
#ifndef GD_BASE_SLICE_H
#define GD_BASE_SLICE_H

#include "base/buf.h"
#include "base/tensor.h"

enum gd_slice_kind { GD_SLICE_INDEX, GD_SLICE_RANGE, GD_SLICE_ELLIPSIS, GD_SLICE_NEWAXIS };

struct gd_slice_item {
    enum gd_slice_kind kind;
    bool has_start, has_stop, has_step; /* RANGE: what was written */
    int64_t start;                      /* INDEX: the index */
    int64_t stop;
    int64_t step; /* 1 unless has_step; never 0 */
};

#define GD_MAX_SLICE_ITEMS (2 * GD_MAX_RANK)

struct gd_slice {
    int count; /* 0 is the whole tensor */
    struct gd_slice_item item[GD_MAX_SLICE_ITEMS];
};

struct gd_slice_view {
    struct gd_shape shape;
    int64_t stride[GD_MAX_RANK]; /* bytes */
    int64_t offset;              /* bytes from element [0, ..., 0] of the base */
};

/* Parses "[...]" at the start of text[0..len). *used gets the bytes consumed, brackets included.
 * GD_EINVAL with err->offset at the fault. Spaces are allowed between tokens. */
int gd_slice_parse(const char *text, size_t len, size_t *used, struct gd_slice *ret,
                   struct gd_err *err);

/* What the slice selects from a tensor of that shape and those byte strides.
 * GD_EINVAL: too many indices, two ellipses, index out of range (numpy's wording of the facts:
 * which axis, its size), rank over GD_MAX_RANK. */
int gd_slice_apply(const struct gd_slice *slice, const struct gd_shape *shape,
                   const int64_t stride[GD_MAX_RANK], struct gd_slice_view *ret,
                   struct gd_err *err);

/* gd_slice_apply + gd_tensor_view. */
int gd_tensor_slice(const struct gd_tensor *tensor, const struct gd_slice *slice,
                    struct gd_tensor **ret, struct gd_err *err);

/* The slice as it would be typed: "[0, :, 1:3]"; nothing when count is 0. */
int gd_slice_text(const struct gd_slice *slice, struct gd_buf *out);

#endif

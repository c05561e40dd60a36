// SPDX-License-Identifier: MIT
/*
 * numpy's basic indexing: [0, -1, 1:3, ::2, ..., None].
 *
 * Parsing and application are separate, so that a slice can be sent to the training process and
 * applied there. Application follows numpy exactly: an index out of range is an error, a range is
 * clipped, a negative step walks backwards, `...` fills up with `:`, None and newaxis add an axis
 * of 1.
 */
#ifndef GD_BASE_SLICE_H
#define GD_BASE_SLICE_H

#include "base/buf.h"
#include "base/tensor.h"

enum gd_slice_kind { GD_SLICE_INDEX, GD_SLICE_RANGE, GD_SLICE_ELLIPSIS, GD_SLICE_NEWAXIS };

struct gd_slice_item {
    enum gd_slice_kind kind;
    bool has_start, has_stop, has_step; /* RANGE: which parts were given */
    int64_t start;                      /* INDEX: the index */
    int64_t stop;
    int64_t step; /* 1 unless has_step; never 0 */
};

#define GD_MAX_SLICE_ITEMS (2 * GD_MAX_RANK)

struct gd_slice {
    int count;    /* 0: the whole tensor; the items from count on are uninitialised */
    bool abridge; /* in a request: then what a print leaves out need not be there */
    struct gd_slice_item item[GD_MAX_SLICE_ITEMS];
};

struct gd_slice_view {
    struct gd_shape shape;
    int64_t stride[GD_MAX_RANK]; /* bytes */
    int64_t offset;              /* bytes from element [0, ..., 0] of the base */
};

/* Makes it select the whole tensor, unabridged. Its items stay uninitialised, as they are large. */
static inline void gd_slice_clear(struct gd_slice *slice)
{
    slice->count = 0;
    slice->abridge = false;
}

/* Parses "[...]" at the start of text[0..len); *used is the number of bytes read, brackets
 * included. Blanks are allowed between tokens. Returns GD_EINVAL with err->offset at the error. */
int gd_slice_parse(const char *text, size_t len, size_t *used, struct gd_slice *ret,
                   struct gd_err *err);

/* The layout that the slice selects from a tensor of that shape and byte strides. Returns GD_EINVAL
 * for too many indices, two ellipses, an index out of range, or a rank over GD_MAX_RANK; messages
 * name the facts as numpy does. */
int gd_slice_apply(const struct gd_slice *slice, const struct gd_shape *shape,
                   const int64_t stride[GD_MAX_RANK], struct gd_slice_view *ret,
                   struct gd_err *err);

/* gd_slice_apply followed by gd_tensor_view. */
int gd_tensor_slice(const struct gd_tensor *tensor, const struct gd_slice *slice,
                    struct gd_tensor **ret, struct gd_err *err);

/* Appends the slice as typed: "[0, :, 1:3]"; nothing when count is 0. */
int gd_slice_text(const struct gd_slice *slice, struct gd_buf *out);

#endif

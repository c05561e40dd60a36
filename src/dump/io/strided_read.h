// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads stored elements of a strided layout into C order and the engine's types. Private to
 * source.c and source_stats.c.
 */
#ifndef GD_DUMP_STRIDED_READ_H
#define GD_DUMP_STRIDED_READ_H

#include "dump/io/source.h"

/* Elements and their encoding; bytes may be decompressed on demand. */
struct gd_stored_elements {
    struct gd_bytes *bytes;
    enum gd_stored stored;
    bool swap, conjugate, negate;
};

/* A view of stored elements; strides and offset are in elements. */
struct gd_layout {
    struct gd_shape shape;
    int64_t stride[GD_MAX_RANK];
    int64_t offset;
};

/* Whether the file has the elements in C order without gaps. */
bool gd_layout_is_contiguous(const struct gd_layout *layout);
/* Reads all elements of the layout to out in C order. The file is read front to back. */
int gd_strided_read(const struct gd_stored_elements *elements, const struct gd_layout *layout,
                    void *out, struct gd_err *err);
/* Reads `count` of its elements, starting at number `first` in C order. */
int gd_strided_read_run(const struct gd_stored_elements *elements, const struct gd_layout *layout,
                        int64_t first, int64_t count, void *out, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Stored elements of a strided layout, brought into C order and into the engine's types. Private to
 * source.c and source_stats.c.
 */
#ifndef GD_DUMP_STRIDED_READ_H
#define GD_DUMP_STRIDED_READ_H

#include "dump/io/source.h"

/* Elements, and how they are written; bytes may be unpacked ones. */
struct gd_stored_elements {
    struct gd_bytes *bytes;
    enum gd_stored stored;
    bool swap, conjugate, negate;
};

/* A view of them: strides and offset count elements. */
struct gd_layout {
    struct gd_shape shape;
    int64_t stride[GD_MAX_RANK];
    int64_t offset;
};

/* Whether C order is the order of the file, without gaps. */
bool gd_layout_is_contiguous(const struct gd_layout *layout);
/* All elements of the layout in C order to out. They are read in the order of the file. */
int gd_strided_read(const struct gd_stored_elements *elements, const struct gd_layout *layout,
                    void *out, struct gd_err *err);
/* `count` elements of it, beginning at number `first` in C order. */
int gd_strided_read_run(const struct gd_stored_elements *elements, const struct gd_layout *layout,
                        int64_t first, int64_t count, void *out, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Undoes the device's tensor layouts: from NC1HWC0, FRACTAL_Z, FRACTAL_NZ and similar ones to the
 * framework's shape. In every such layout, each dimension of the framework's tensor maps its index
 * to an offset in the stored elements; the offsets add up.
 *
 * A dump does not say what the dimensions of the framework's shape mean (NCHW, NHWC, HWCN): it is
 * inferred from the sizes, with a hint if there is one.
 */
#ifndef GD_DUMP_CANN_LAYOUT_H
#define GD_DUMP_CANN_LAYOUT_H

#include "dump/cann/cann_container.h"
#include "dump/io/stored_type.h"

#define GD_CANN_AXES 8

struct gd_cann_axis {
    int64_t size;
    int64_t block; /* index i is at (i / block) * outer + (i % block) * inner; 0: at i * inner */
    int64_t outer, inner;
};

/* Maps elements of the stored tensor to the framework's order. */
struct gd_cann_plan {
    bool converts;         /* false: shown as stored; `note` says why, or is "" */
    struct gd_shape shape; /* of the result */
    int64_t stored;        /* number of stored elements */
    int axes;              /* axes for the dimensions of shape; those of size 1 may be omitted */
    struct gd_cann_axis axis[GD_CANN_AXES];
    struct { /* FRACTAL_Z of a grouped convolution: rows and channels of a group are elsewhere */
        int64_t count, rows, channels;
        int64_t together; /* groups that share a block */
        int64_t block;    /* elements per block */
        int64_t c0;
        int n_axis, c_axis;
    } group;
    char note[160];
};

/* hint: the framework's format, -1 unknown. to: the wanted format, -1 the framework's. False: the
 * stored bytes do not form this tensor, and plan->note says why; show them raw. */
bool gd_cann_plan(const struct gd_cann_tensor *tensor, int32_t hint, int32_t to,
                  struct gd_cann_plan *plan);

/* `in` has plan->stored elements of `item` bytes; `out` has room for plan->shape. */
int gd_cann_convert(const struct gd_cann_plan *plan, size_t item, const void *in, void *out,
                    struct gd_err *err);

#endif

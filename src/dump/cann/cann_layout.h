// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How the device lays a tensor out, undone: from NC1HWC0, FRACTAL_Z, FRACTAL_NZ and their kin to
 * the shape that the framework has. Every such layout is, for each dimension of the framework's
 * tensor, a function from the index to an offset in the stored elements; the offsets add up.
 *
 * What the dimensions of the framework's shape stand for (NCHW, NHWC, HWCN) a dump does not say;
 * it is found from the sizes, with a hint where there is one.
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

/* Elements of the stored tensor, in the order of the framework's. */
struct gd_cann_plan {
    bool converts;         /* false: it is shown as it is stored; `note` says why, or is "" */
    struct gd_shape shape; /* what comes out */
    int64_t stored;        /* elements that are stored */
    int axes;              /* that stand for the dimensions of shape; units may be left out */
    struct gd_cann_axis axis[GD_CANN_AXES];
    struct { /* FRACTAL_Z of a grouped convolution: rows and channels of a group lie elsewhere */
        int64_t count, rows, channels;
        int64_t together; /* groups that share a block */
        int64_t block;    /* elements of it */
        int64_t c0;
        int n_axis, c_axis;
    } group;
    char note[160];
};

/* hint: the format that the framework has it in, -1 not known. to: the format that is wanted,
 * -1 the framework's own. False: the stored bytes are not such a tensor at all, and plan->note says
 * why; the caller shows them raw. */
bool gd_cann_plan(const struct gd_cann_tensor *tensor, int32_t hint, int32_t to,
                  struct gd_cann_plan *plan);

/* `in` has plan->stored elements of `item` bytes, `out` room for all of plan->shape. */
int gd_cann_convert(const struct gd_cann_plan *plan, size_t item, const void *in, void *out,
                    struct gd_err *err);

#endif

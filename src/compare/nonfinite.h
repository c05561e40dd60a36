// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where NaN or infinity comes from: in order of execution (of the times at which the values were
 * dumped, where all are known), the first operator whose output is not
 * finite while all its inputs that are known are. What is not an operator comes after them: a
 * parameter is the origin when that operator read it, or when no operator is bad. One that was
 * dumped after the step holds what the update left there, and never explains an operator of that
 * step. Values that were never written (empty, receive buffers) and masks of -inf that are made on
 * purpose are passed over.
 */
#ifndef GD_COMPARE_NONFINITE_H
#define GD_COMPARE_NONFINITE_H

#include "compare/tensor_table.h"

enum gd_throw {
    GD_THROW_NONE,
    GD_THROW_POINT,   /* inputs finite, output not */
    GD_THROW_SOURCE,  /* an input is not finite, and nothing made it that is in the dump */
    GD_THROW_UNKNOWN, /* no input is known */
};

struct gd_nonfinite {
    enum gd_throw kind;
    uint32_t unit, item; /* the node, and its output */
    struct gd_stats stats;
    uint32_t bad_input;            /* item; UINT32_MAX: none */
    uint32_t late_input;           /* item: not finite after the step; before it, unknown */
    bool left;                     /* what was found was dumped after the operators of the step */
    bool has_range;                /* of the finite elements of the inputs: */
    double least, most, smallest;  /* min, max, min |x| (0: there are zeros) */
    uint64_t checked, not_checked; /* outputs that were looked at before it; that could not be */
    uint64_t passed_over;          /* of those that were: never written, masks */
    char why[160];                 /* the first that could not be: the reason; "" */
    uint32_t masks[8];             /* units: -inf on purpose, passed over */
    size_t mask_count;
    uint32_t close_calls[8]; /* units: within a tenth of the largest number of their type */
    size_t close_count;
    char hint[160]; /* what usually makes it there; "" */
};

int gd_nonfinite_find(struct gd_table *table,
                      int (*fetch)(void *ctx, const struct gd_unit *unit, struct gd_item *item,
                                   struct gd_err *err),
                      bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_nonfinite *ret,
                      struct gd_err *err);

#endif

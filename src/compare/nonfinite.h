// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds where NaN or infinity comes from: in execution order (by dump times if all are known), the
 * first operator with a non-finite output whose known inputs are all finite. Other nodes come
 * second: a parameter is the origin if that operator read it, or if no operator is bad. A parameter
 * dumped after the step holds the updated value and never explains an operator of that step. Values
 * that were never written (empty, receive buffers) and intentional masks of -inf are ignored.
 */
#ifndef GD_COMPARE_NONFINITE_H
#define GD_COMPARE_NONFINITE_H

#include "compare/tensor_table.h"

enum gd_throw {
    GD_THROW_NONE,
    GD_THROW_POINT,   /* inputs finite, output not */
    GD_THROW_SOURCE,  /* an input is not finite, and its producer is not in the dump */
    GD_THROW_UNKNOWN, /* no input is known */
};

struct gd_nonfinite {
    enum gd_throw kind;
    uint32_t unit, item; /* the node and its output */
    struct gd_stats stats;
    uint32_t bad_input;            /* item; UINT32_MAX: none */
    uint32_t late_input;           /* item: not finite after the step, unknown before */
    bool left;                     /* the result was dumped after the operators of the step */
    bool has_range;                /* range of the inputs' finite elements: */
    double least, most, smallest;  /* min, max, min |x| (0: there are zeros) */
    uint64_t checked, not_checked; /* outputs before it that were checked, and that could not be */
    uint64_t passed_over;          /* checked but ignored: never written, masks */
    char why[160];                 /* why the first could not be checked; "" */
    uint32_t masks[8];             /* units: intentional -inf, ignored */
    size_t mask_count;
    uint32_t close_calls[8]; /* units: within a factor of ten of their type's largest number */
    size_t close_count;
    char hint[160]; /* the usual cause; "" */
};

int gd_nonfinite_find(struct gd_table *table,
                      int (*fetch)(void *ctx, const struct gd_unit *unit, struct gd_item *item,
                                   struct gd_err *err),
                      bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_nonfinite *ret,
                      struct gd_err *err);

#endif

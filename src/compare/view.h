// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The figures of other tools, as those tools compute and write them, quirks included: who knows
 * their tables finds the same numbers here. numpy.allclose; TroubleShooter's compare_npy_dir;
 * msprobe's comparison of real data. They compute in the elements' own precision, so that a dot
 * product of float16 may overflow; our own figures (compare.h) do not.
 */
#ifndef GD_COMPARE_VIEW_H
#define GD_COMPARE_VIEW_H

#include "compare/compare.h"

enum gd_view { GD_VIEW_OWN, GD_VIEW_ALLCLOSE, GD_VIEW_TROUBLESHOOTER, GD_VIEW_MSPROBE };

/* "allclose", ...; -1: none. */
int gd_view_from_name(const char *name);

struct gd_view_options {
    double rtol, atol;
    bool equal_nan;
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};
struct gd_view_options gd_view_defaults(enum gd_view view);

#define GD_VIEW_CELLS 6
#define GD_VIEW_CELL  96 /* two float32 of any size, written out */
struct gd_view_row {
    char cell[GD_VIEW_CELLS][GD_VIEW_CELL]; /* of gd_view_columns */
    char message[160];                      /* msprobe's Err_message */
    bool passed;
};
/* Titles of the cells, in order; *count of them. */
const char *const *gd_view_columns(enum gd_view view, int *count);

/* Of two tensors; NULL: the partner is missing. What cannot be read or compared is in the row.
 * Errors: GD_EINTR, GD_ENOMEM. */
int gd_view_compare(enum gd_view view, struct gd_source *a, struct gd_source *b,
                    const struct gd_view_options *options, struct gd_view_row *ret,
                    struct gd_err *err);

/* The shortest decimal that reads as the same double, as Python writes it: "0.1", "1e-05", "1.0",
 * "nan", "inf". */
const char *gd_view_number(double value, char *out, size_t size);

#endif

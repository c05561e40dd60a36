// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The metrics of other tools, computed and written as those tools do, quirks included, so that
 * their users find the same numbers: numpy.allclose; TroubleShooter's compare_npy_dir; msprobe's
 * comparison of real data. They compute in the elements' own precision, so a dot product of float16
 * may overflow; our own metrics (compare.h) do not.
 */
#ifndef GD_COMPARE_TOOL_METRICS_H
#define GD_COMPARE_TOOL_METRICS_H

#include "compare/compare.h"

enum gd_tool { GD_TOOL_OWN, GD_TOOL_ALLCLOSE, GD_TOOL_TROUBLESHOOTER, GD_TOOL_MSPROBE };

/* "allclose", ...; -1: unknown. */
int gd_tool_from_name(const char *name);

struct gd_tool_options {
    double rtol, atol;
    bool equal_nan;
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};
struct gd_tool_options gd_tool_defaults(enum gd_tool view);

#define GD_TOOL_CELLS 6
#define GD_TOOL_CELL  96 /* two float32 of any size, in full */
struct gd_tool_row {
    char cell[GD_TOOL_CELLS][GD_TOOL_CELL]; /* as in gd_tool_columns */
    char message[160];                      /* msprobe's Err_message */
    bool passed;
};
/* The titles of the *count cells, in order. */
const char *const *gd_tool_columns(enum gd_tool view, int *count);

/* Compares two tensors; NULL: the partner is missing. Unreadable or incomparable data is reported
 * in the row. Errors: GD_EINTR, GD_ENOMEM. */
int gd_tool_compare(enum gd_tool view, struct gd_source *a, struct gd_source *b,
                    const struct gd_tool_options *options, struct gd_tool_row *ret,
                    struct gd_err *err);

/* The shortest decimal that reads back as the same double, in Python's format: "0.1", "1e-05",
 * "1.0", "nan", "inf". */
const char *gd_tool_number(double value, char *out, size_t size);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Compares many pairs: small ones in parallel, in waves of limited bytes; big ones one at a time,
 * with all threads sharing the elements. Results come in the order of the pairs.
 */
#ifndef GD_COMPARE_PAIRS_H
#define GD_COMPARE_PAIRS_H

#include "compare/tool_metrics.h"

struct gd_run_pair {
    struct gd_source *a, *b; /* borrowed until done; NULL: missing, see `missing` */
    bool has_tolerance;
    struct gd_tolerance tolerance;
    /* the result */
    struct gd_difference difference;
    struct gd_tool_row row; /* if metrics is not GD_TOOL_OWN */
};

struct gd_run_options {
    enum gd_profile profile;
    enum gd_tool view;
    struct gd_tool_options view_options;
    int threads; /* 0: one per processor */
    bool (*go_on)(void *ctx, uint64_t bytes);
    void *go_on_ctx;
};

/* get: returns pair number i, on the calling thread; an error ends the run. done: receives its
 * result. */
struct gd_run_ops {
    int (*get)(void *ctx, size_t i, struct gd_run_pair *ret, struct gd_err *err);
    int (*done)(void *ctx, size_t i, const struct gd_run_pair *pair, struct gd_err *err);
};
int gd_compare_run(size_t count, const struct gd_run_ops *ops, void *ctx,
                   const struct gd_run_options *options, struct gd_err *err);

/* Processors available to this process, at most 16. */
int gd_run_threads(void);

#endif

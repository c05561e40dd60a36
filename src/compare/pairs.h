// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Many pairs: small ones side by side, in waves of so many bytes; the elements of a big one shared
 * among threads. Results come in the order of the pairs.
 */
#ifndef GD_COMPARE_PAIRS_H
#define GD_COMPARE_PAIRS_H

#include "compare/tool_metrics.h"

struct gd_run_pair {
    struct gd_source *a, *b; /* borrowed until it is done; NULL: missing, `missing` says more */
    bool has_tolerance;
    struct gd_tolerance tolerance;
    /* the result */
    struct gd_difference difference;
    struct gd_tool_row row; /* with a view other than GD_TOOL_OWN */
};

struct gd_run_options {
    enum gd_profile profile;
    enum gd_tool view;
    struct gd_tool_options view_options;
    int threads; /* 0: as many as there are processors */
    bool (*go_on)(void *ctx, uint64_t bytes);
    void *go_on_ctx;
};

/* get: pair number i, on the calling thread; an error ends the run. done: its result. */
struct gd_run_ops {
    int (*get)(void *ctx, size_t i, struct gd_run_pair *ret, struct gd_err *err);
    int (*done)(void *ctx, size_t i, const struct gd_run_pair *pair, struct gd_err *err);
};
int gd_compare_run(size_t count, const struct gd_run_ops *ops, void *ctx,
                   const struct gd_run_options *options, struct gd_err *err);

/* Processors that this process may use, at most 16. */
int gd_run_threads(void);

#endif

// SPDX-License-Identifier: MIT
/*
 * A tensor is cut into pieces of a fixed size, whoever works on them; their parts are joined in the
 * order of the elements. So the results do not depend on the number of threads.
 */
#include "engine/stats.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "engine/stats_impl.h"
#include "engine/workers.h"

#define PIECE_BYTES (4 << 20)
#define WINDOW      64 /* pieces whose parts are kept at a time */

struct compute {
    struct gd_stats_job job;
    int64_t count, per_piece;
    int64_t from; /* the first element of the pieces at work */
    struct gd_stats_part *parts;
    struct gd_stats_part one; /* where there is no need, or no memory, for more */
};

static int check(const struct gd_tensor *cur, const struct gd_tensor *prev,
                 const struct gd_stats_options *options, struct gd_err *err)
{
    char a[64], b[64];

    if (!gd_stats_kind(cur->dtype))
        return gd_fail(err, GD_EUNSUPPORTED, "a %s tensor has no numbers to compute with",
                       gd_dtype_name(cur->dtype));
    if (prev && (prev->dtype != cur->dtype || !gd_shape_equal(&prev->shape, &cur->shape)))
        return gd_fail(err, GD_EINVAL, "cannot compare %s %s with %s %s: type and shape must agree",
                       gd_dtype_name(cur->dtype), gd_shape_text(&cur->shape, a, sizeof(a)),
                       gd_dtype_name(prev->dtype), gd_shape_text(&prev->shape, b, sizeof(b)));
    if (options && (options->range_count < 0 || options->range_count > GD_MAX_RANGES))
        return gd_fail(err, GD_EINVAL, "%d ranges: there can be 0 to %d", options->range_count,
                       GD_MAX_RANGES);
    return GD_OK;
}

/* Not inlined: the arithmetic must stay between the changes of the environment around it. In a
 * trainer, invalid operations may raise signals and denormals may read as 0. */
static __attribute__((noinline)) void do_piece(void *ctx, size_t i)
{
    struct compute *c = ctx;
    int64_t first = c->from + (int64_t)i * c->per_piece, left = c->count - first;
    fenv_t environment;

    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    gd_stats_piece(&c->job, first, left < c->per_piece ? left : c->per_piece, &c->parts[i]);
    fesetenv(&environment);
}

static __attribute__((noinline)) void join(const struct compute *c, size_t pieces,
                                           struct gd_stats_part *total)
{
    for (size_t i = 0; i < pieces; i++)
        gd_stats_part_merge(total, &c->parts[i]);
}

static void do_pieces(struct compute *c, int threads, struct gd_stats_part *total)
{
    int64_t pieces = (c->count + c->per_piece - 1) / c->per_piece;
    size_t window = threads > 1 && pieces > 1 ? WINDOW : 1;

    c->parts = window > 1 ? malloc(WINDOW * sizeof(*c->parts)) : NULL;
    if (!c->parts) {
        window = 1;
        c->parts = &c->one;
    }
    while (pieces > 0) {
        size_t now = pieces < (int64_t)window ? (size_t)pieces : window;

        gd_workers_run(threads, now, do_piece, c);
        join(c, now, total);
        c->from += (int64_t)now * c->per_piece;
        pieces -= (int64_t)now;
    }
    if (c->parts != &c->one)
        free(c->parts);
}

int gd_stats_compute(const struct gd_tensor *cur, const struct gd_tensor *prev,
                     const struct gd_stats_options *options, struct gd_stats *ret,
                     struct gd_err *err)
{
    static const struct gd_stats_options none;
    struct compute c = {.job = {cur, prev, options ? options : &none, gd_stats_level()}};
    struct gd_stats_part total;
    fenv_t environment;
    int rc = check(cur, prev, options, err);

    if (rc)
        return rc;
    c.count = gd_tensor_count(cur);
    c.per_piece = PIECE_BYTES / (int64_t)gd_dtype_size(cur->dtype);
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    gd_stats_part_init(&total);
    do_pieces(&c, c.job.options->threads, &total);
    *ret = (struct gd_stats){.has_prev = prev != NULL, .range_count = c.job.options->range_count};
    gd_stats_part_finish(&total, ret);
    fesetenv(&environment);
    return GD_OK;
}

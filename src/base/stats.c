// SPDX-License-Identifier: MIT
/*
 * A tensor is cut into pieces of a fixed size, which are joined in the order of the elements:
 * results do not depend on the number of threads.
 *
 * No statistic depends on the order of the axes, so they are visited in memory order.
 */
#include "base/stats.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/stats_impl.h"
#include "base/workers.h"

#define PIECE_MIN (128 << 10) /* bytes */
#define PIECE_MAX (4 << 20)
#define WINDOW    64  /* pieces whose results are kept at a time */
#define SHORT_RUN 512 /* bytes; shorter runs are gathered into blocks */

struct compute {
    struct gd_stats_job job;
    int64_t count, per_piece;
    int64_t from; /* first element of the current window */
    struct gd_stats_part *parts;
    pthread_mutex_t mutex; /* guards the failure of a reader: */
    int64_t failed_at;     /* piece number */
    int rc;
    struct gd_err err;
};

static int check_options(enum gd_dtype dtype, const struct gd_stats_options *options,
                         struct gd_err *err)
{
    if (!gd_stats_kind(dtype)) {
        return gd_fail(err, GD_EUNSUPPORTED, "cannot compute statistics of a %s tensor",
                       gd_dtype_name(dtype));
    }
    if (options && (options->range_count < 0 || options->range_count > GD_MAX_RANGES)) {
        return gd_fail(err, GD_EINVAL, "%d ranges: expected 0 to %d", options->range_count,
                       GD_MAX_RANGES);
    }
    return GD_OK;
}

static int check_tensors(const struct gd_tensor *cur, const struct gd_tensor *prev,
                         const struct gd_stats_options *options, struct gd_err *err)
{
    char a[64], b[64];

    if (prev && !gd_tensor_is_alike(prev, cur)) {
        return gd_fail(err, GD_EINVAL, "cannot compare %s %s with %s %s: type and shape must match",
                       gd_dtype_name(cur->dtype), gd_shape_text(&cur->shape, a, sizeof(a)),
                       gd_dtype_name(prev->dtype), gd_shape_text(&prev->shape, b, sizeof(b)));
    }
    return check_options(cur->dtype, options, err);
}

/* Elements of a piece: there are about WINDOW pieces, unless they would be too small or too big. */
static int64_t piece_size(int64_t count, enum gd_dtype dtype)
{
    int64_t item = (int64_t)gd_dtype_size(dtype);
    int64_t least = PIECE_MIN / item, most = PIECE_MAX / item, size = count / WINDOW + 1;

    return size < least ? least : size > most ? most : size;
}

/* Reverses an axis. */
static void flip_axis(struct gd_tensor *tensor, int axis)
{
    tensor->data += tensor->stride[axis] * (tensor->shape.dim[axis] - 1);
    tensor->stride[axis] = -tensor->stride[axis];
}

static void swap_axes(struct gd_tensor *tensor, int a, int b)
{
    int64_t dim = tensor->shape.dim[a], stride = tensor->stride[a];

    tensor->shape.dim[a] = tensor->shape.dim[b];
    tensor->stride[a] = tensor->stride[b];
    tensor->shape.dim[b] = dim;
    tensor->stride[b] = stride;
}

/* The outer axis has the larger stride, or stride 0: one row many times. */
static bool is_outer(const struct gd_tensor *tensor, int a, int b)
{
    int64_t x = tensor->stride[a], y = tensor->stride[b];

    return y != 0 && (x == 0 || x > y);
}

/* Sorts the axes of cur by memory order, those of prev along with them. Not for empty tensors. */
static void sort_axes(struct gd_tensor *cur, struct gd_tensor *prev)
{
    for (int i = 0; i < cur->shape.rank; i++) {
        if (cur->stride[i] >= 0) {
            continue;
        }
        flip_axis(cur, i);
        if (prev) {
            flip_axis(prev, i);
        }
    }
    for (int i = 1; i < cur->shape.rank; i++) {
        for (int j = i; j > 0 && is_outer(cur, j, j - 1); j--) {
            swap_axes(cur, j, j - 1);
            if (prev) {
                swap_axes(prev, j, j - 1);
            }
        }
    }
}

/* Keeps the failure of the earliest elements, whichever thread reports it first. */
static void keep_failure(struct compute *c, int64_t first, const struct gd_err *err)
{
    pthread_mutex_lock(&c->mutex);
    if (c->rc == GD_OK || first < c->failed_at) {
        c->rc = err->code;
        c->err = *err;
        c->failed_at = first;
    }
    pthread_mutex_unlock(&c->mutex);
}

static void do_piece(struct compute *c, size_t i)
{
    int64_t first = c->from + (int64_t)i * c->per_piece, left = c->count - first;
    int64_t count = left < c->per_piece ? left : c->per_piece;
    struct gd_err err;

    if (!c->job.reader) {
        gd_stats_piece(&c->job, first, count, &c->parts[i]);
    } else if (gd_stats_piece_read(&c->job, first, count, &c->parts[i], &err) != GD_OK) {
        keep_failure(c, first, &err);
    }
}

/* A worker has the floating-point environment of the thread that created it. */
static void work_on_piece(void *ctx, size_t i)
{
    gd_float_env environment = gd_float_env_enter();
    do_piece(ctx, i);
    gd_float_env_leave(environment);
}

/* Called between pieces: whether the caller still wants the result. */
static bool is_wanted(const struct compute *c)
{
    const struct gd_stats_options *options = c->job.options;

    if (c->rc != GD_OK) {
        return false;
    }
    return !options->go_on || c->from >= c->count ||
           options->go_on(options->go_on_ctx, (uint64_t)c->from);
}

static bool do_in_turn(struct compute *c, struct gd_stats_part *total)
{
    struct gd_stats_part part;
    bool wanted = true;

    if (c->count <= c->per_piece) { /* a single piece: nothing to join */
        c->parts = total;
        do_piece(c, 0);
        c->from = c->count;
        c->parts = NULL;
        return is_wanted(c);
    }
    gd_stats_part_init(total);
    for (c->parts = &part; wanted && c->from < c->count;) {
        do_piece(c, 0);
        gd_stats_part_merge(total, &part);
        c->from += c->per_piece;
        wanted = is_wanted(c);
    }
    c->parts = NULL;
    return wanted;
}

static bool do_together(struct compute *c, int threads, struct gd_stats_part *total)
{
    bool wanted = true;

    gd_stats_part_init(total);
    while (wanted && c->from < c->count) {
        int64_t left = (c->count - c->from + c->per_piece - 1) / c->per_piece;
        size_t now = left < WINDOW ? (size_t)left : WINDOW;

        gd_workers_run(threads, now, work_on_piece, c);
        for (size_t i = 0; i < now; i++) {
            gd_stats_part_merge(total, &c->parts[i]);
        }
        c->from += (int64_t)now * c->per_piece;
        wanted = is_wanted(c);
    }
    return wanted;
}

/* noinline: keeps the arithmetic between the two switches of the floating-point environment. */
static __attribute__((noinline)) bool compute(struct compute *c, int threads, struct gd_stats *ret)
{
    struct gd_stats_part total;
    bool whole;

    if (threads > 1 && c->count > c->per_piece) {
        c->parts = malloc(WINDOW * sizeof(*c->parts));
    }
    if (c->parts) {
        whole = do_together(c, threads, &total);
    } else {
        whole = do_in_turn(c, &total);
    }
    free(c->parts);
    gd_stats_part_finish(&total, ret);
    return whole;
}

/* Common to gd_stats_compute and gd_stats_compute_read. */
static int compute_stats(struct compute *c, struct gd_stats *ret, struct gd_err *err)
{
    *ret = (struct gd_stats){.has_prev = c->job.prev || c->job.prev_reader,
                             .range_count = c->job.options->range_count};
    gd_float_env environment = gd_float_env_enter();
    bool whole = compute(c, c->job.options->threads, ret);
    gd_float_env_leave(environment);
    if (c->rc != GD_OK) {
        if (err) {
            *err = c->err;
        }
        return c->rc;
    }
    if (!whole) {
        return gd_fail(err, GD_EINTR, "interrupted while computing statistics");
    }
    return GD_OK;
}

static const struct gd_stats_options no_options;

int gd_stats_compute(const struct gd_tensor *cur, const struct gd_tensor *prev,
                     const struct gd_stats_options *options, struct gd_stats *ret,
                     struct gd_err *err)
{
    struct compute c;
    struct gd_tensor arranged, prev_arranged;
    int rc = check_tensors(cur, prev, options, err);

    if (rc != GD_OK) {
        return rc;
    }
    /* Not zeroed as a whole: most of it is room for an error message, which only a reader needs. */
    c.job = (struct gd_stats_job){.cur = cur,
                                  .prev = prev,
                                  .options = options ? options : &no_options,
                                  .level = gd_stats_level()};
    c.from = 0;
    c.parts = NULL;
    c.rc = GD_OK;
    c.count = gd_tensor_count(cur);
    c.per_piece = piece_size(c.count, cur->dtype);
    if (c.count > 0 && !gd_tensor_is_contiguous(cur)) {
        arranged = *cur;
        if (prev) {
            prev_arranged = *prev;
        }
        sort_axes(&arranged, prev ? &prev_arranged : NULL);
        c.job.cur = &arranged;
        c.job.prev = prev ? &prev_arranged : NULL;
    }
    return compute_stats(&c, ret, err);
}

int gd_stats_compute_read(enum gd_dtype dtype, int64_t count, const struct gd_stats_reader *cur,
                          const struct gd_stats_reader *prev,
                          const struct gd_stats_options *options, struct gd_stats *ret,
                          struct gd_err *err)
{
    struct compute c = {.job = {.options = options ? options : &no_options,
                                .level = gd_stats_level(),
                                .reader = cur,
                                .prev_reader = prev,
                                .dtype = dtype},
                        .count = count};
    int rc = check_options(dtype, options, err);

    if (rc != GD_OK) {
        return rc;
    }
    c.per_piece = piece_size(count, dtype);
    pthread_mutex_init(&c.mutex, NULL);
    rc = compute_stats(&c, ret, err);
    pthread_mutex_destroy(&c.mutex);
    return rc;
}

/* ---- all finite? --------------------------------------------------------------------- */

/* Test of all elements in a 64-bit word at once: with its sign masked and the lowest bit of its
 * exponent added, a finite element has a clear top bit. */
struct form {
    uint64_t mask, add;
};

static bool get_form(enum gd_dtype dtype, struct form *ret)
{
    switch (dtype) {
    case GD_FLOAT16:
        *ret = (struct form){UINT64_C(0x7fff7fff7fff7fff), UINT64_C(0x0400040004000400)};
        return true;
    case GD_BFLOAT16:
        *ret = (struct form){UINT64_C(0x7fff7fff7fff7fff), UINT64_C(0x0080008000800080)};
        return true;
    case GD_FLOAT32:
        *ret = (struct form){UINT64_C(0x7fffffff7fffffff), UINT64_C(0x0080000000800000)};
        return true;
    case GD_FLOAT64:
        *ret = (struct form){UINT64_C(0x7fffffffffffffff), UINT64_C(0x0010000000000000)};
        return true;
    default: return false;
    }
}

static bool is_run_finite(const struct form *form, const unsigned char *x, size_t bytes)
{
    const struct gd_stats_level *level = gd_stats_level();
    unsigned char last[GD_UNITED_STEP] = {0};
    size_t rest = bytes % sizeof(last);
    uint64_t bits = level->united(x, bytes - rest, form->mask, form->add);

    memcpy(last, x + (bytes - rest), rest);
    bits |= level->united(last, sizeof(last), form->mask, form->add);
    return !(bits & ~form->mask);
}

bool gd_stats_all_finite(const struct gd_tensor *tensor)
{
    const struct gd_stats_kind *kind = gd_stats_kind(tensor->dtype);
    size_t item = gd_dtype_size(tensor->dtype), bytes;
    struct gd_tensor arranged = *tensor;
    struct gd_walk walk;
    struct form form;

    if (!kind || kind->part) {
        return false;
    }
    if (!get_form(tensor->dtype, &form)) {
        return true; /* integers */
    }
    if (gd_tensor_count(tensor) > 0 && !gd_tensor_is_contiguous(tensor)) {
        sort_axes(&arranged, NULL);
    }
    if (!gd_walk_init(&walk, &arranged.shape, arranged.stride, item)) {
        return gd_tensor_count(tensor) == 0;
    }
    bytes = (size_t)walk.run * item;
    if (walk.run < gd_tensor_count(tensor) && bytes < SHORT_RUN) {
        return false;
    }
    if (walk.run > 1 && walk.run_stride != (int64_t)item) {
        return false;
    }
    do {
        if (!is_run_finite(&form, arranged.data + walk.offset, bytes)) {
            return false;
        }
    } while (gd_walk_next(&walk));
    return true;
}

static bool raise_to_one(uint64_t *count, struct gd_stats *stats, unsigned bit)
{
    if (*count > 0) {
        return (stats->unknown & bit) != 0;
    }
    *count = 1;
    stats->unknown |= bit;
    return true;
}

bool gd_stats_prove(double max, double min, double mean, double norm, struct gd_stats *ret)
{
    bool highest = isinf(max) && max > 0, lowest = isinf(min) && min < 0;
    bool any = false;

    if (highest) {
        any |= raise_to_one(&ret->pos_inf, ret, GD_UNKNOWN_INF);
    }
    if (lowest) {
        any |= raise_to_one(&ret->neg_inf, ret, GD_UNKNOWN_INF);
    }
    if (isnan(max) || isnan(min) || isnan(norm) || (isnan(mean) && !(highest && lowest))) {
        any |= raise_to_one(&ret->nan, ret, GD_UNKNOWN_NAN);
    }
    return any;
}

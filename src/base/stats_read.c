// SPDX-License-Identifier: MIT
/* Reading elements for statistics: dtypes as doubles, tensors as blocks. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/dtype_impl.h"
#include "base/stats_impl.h"

/* A separate contiguous loop lets the compiler see its constant step. */
#define WIDEN(widen_fn, type, value)                                                               \
    static void widen_fn(const unsigned char *x, size_t step, size_t n, double *out)               \
    {                                                                                              \
        type v;                                                                                    \
                                                                                                   \
        if (step == sizeof(v)) {                                                                   \
            for (size_t i = 0; i < n; i++) {                                                       \
                memcpy(&v, x + i * sizeof(v), sizeof(v));                                          \
                out[i] = (double)(value);                                                          \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            memcpy(&v, x + i * step, sizeof(v));                                                   \
            out[i] = (double)(value);                                                              \
        }                                                                                          \
    }

WIDEN(widen_bool, uint8_t, v != 0)
WIDEN(widen_int8, int8_t, v)
WIDEN(widen_int16, int16_t, v)
WIDEN(widen_int32, int32_t, v)
WIDEN(widen_int64, int64_t, v)
WIDEN(widen_uint8, uint8_t, v)
WIDEN(widen_uint16, uint16_t, v)
WIDEN(widen_uint32, uint32_t, v)
WIDEN(widen_uint64, uint64_t, v)
WIDEN(widen_float16, uint16_t, gd_half_widen(v))
WIDEN(widen_float32, float, v)
WIDEN(widen_float64, double, v)
WIDEN(widen_bfloat16, uint16_t, gd_bfloat16_widen(v))

static const struct gd_stats_kind kinds[GD_DT_COUNT] = {
    [GD_BOOL] = {widen_bool, 0, 0},
    [GD_INT8] = {widen_int8, 0, 0},
    [GD_INT16] = {widen_int16, 0, 0},
    [GD_INT32] = {widen_int32, 0, 0},
    [GD_INT64] = {widen_int64, 0, 0},
    [GD_UINT8] = {widen_uint8, 0, 0},
    [GD_UINT16] = {widen_uint16, 0, 0},
    [GD_UINT32] = {widen_uint32, 0, 0},
    [GD_UINT64] = {widen_uint64, 0, 0},
    [GD_FLOAT16] = {widen_float16, 0x1p-14, 0},
    [GD_FLOAT32] = {widen_float32, FLT_MIN, 0},
    [GD_FLOAT64] = {widen_float64, DBL_MIN, 0},
    [GD_BFLOAT16] = {widen_bfloat16, FLT_MIN, 0},
    [GD_COMPLEX64] = {widen_float32, FLT_MIN, 4},
    [GD_COMPLEX128] = {widen_float64, DBL_MIN, 8},
};

const struct gd_stats_kind *gd_stats_kind(enum gd_dtype dtype)
{
    return (unsigned)dtype < GD_DT_COUNT && kinds[dtype].widen ? &kinds[dtype] : NULL;
}

double gd_stats_magnitude(double re, double im)
{
    return isnan(re) || isnan(im) ? NAN : hypot(re, im);
}

void gd_stats_widen(enum gd_dtype dtype, const unsigned char *x, size_t n, double *re, double *im)
{
    const struct gd_stats_kind *kind = gd_stats_kind(dtype);
    size_t item = gd_dtype_size(dtype);

    kind->widen(x, item, n, re);
    if (kind->part == 0) {
        return;
    }
    kind->widen(x + kind->part, item, n, im);
    for (size_t i = 0; i < n; i++) {
        re[i] = gd_stats_magnitude(re[i], im[i]);
    }
}

void gd_stats_source_init(struct gd_stats_source *source, const struct gd_tensor *tensor,
                          int64_t first, unsigned char scratch[GD_BLOCK_BYTES])
{
    source->reader = NULL;
    source->rc = GD_OK;
    source->data = tensor->data;
    source->item = gd_dtype_size(tensor->dtype);
    source->scratch = scratch;
    gd_walk_init(&source->walk, &tensor->shape, tensor->stride, source->item);
    gd_walk_seek(&source->walk, first / source->walk.run);
    source->at = first % source->walk.run;
}

void gd_stats_source_init_read(struct gd_stats_source *source, const struct gd_stats_reader *reader,
                               enum gd_dtype dtype, int64_t first, int64_t end,
                               unsigned char scratch[GD_READ_BYTES], struct gd_err *err)
{
    source->item = gd_dtype_size(dtype);
    source->scratch = scratch;
    source->reader = reader;
    source->next = first;
    source->end = end;
    source->held = source->used = 0;
    source->rc = GD_OK;
    source->err = err;
}

/* Reads a multiple of the block size, so that blocks are cut as for a tensor. */
static const unsigned char *take_read(struct gd_stats_source *source, size_t n)
{
    if (source->used == source->held) {
        int64_t most = (int64_t)(GD_READ_BYTES / source->item), left = source->end - source->next;
        int64_t count = left < most ? left : most;

        if (source->rc == GD_OK) {
            source->rc = source->reader->read(source->reader->ctx, source->next, count,
                                              source->scratch, source->err);
        }
        if (source->rc != GD_OK) {
            memset(source->scratch, 0, GD_READ_BYTES);
        }
        source->next += count;
        source->held = (size_t)count;
        source->used = 0;
    }
    const unsigned char *x = source->scratch + source->used * source->item;
    source->used += n;
    return x;
}

const unsigned char *gd_stats_source_take(struct gd_stats_source *source, size_t n)
{
    struct gd_walk *walk = &source->walk;
    size_t taken = 0;

    if (source->reader) {
        return take_read(source, n);
    }
    for (;;) {
        const unsigned char *x = source->data + walk->offset + source->at * walk->run_stride;
        size_t left = (size_t)(walk->run - source->at);
        size_t take = left < n - taken ? left : n - taken;

        if (take < left) {
            source->at += (int64_t)take;
        } else {
            source->at = 0;
            gd_walk_next(walk);
        }
        if (take == n && walk->run_stride == (int64_t)source->item) {
            return x;
        }
        gd_copy_run(source->scratch + taken * source->item, x, (int64_t)take, walk->run_stride,
                    source->item);
        taken += take;
        if (taken == n) {
            return source->scratch;
        }
    }
}

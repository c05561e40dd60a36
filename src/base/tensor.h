// SPDX-License-Identifier: MIT
/*
 * Tensors: a dtype, a shape, byte strides, and memory that several views may share.
 *
 * A struct gd_tensor is reference counted, and read-only once it is shared. gd_tensor_ref/unref may
 * be called from any thread. Shapes and lengths from outside are checked here: the element count
 * and byte size of every accepted shape fit in int64_t and size_t.
 */
#ifndef GD_BASE_TENSOR_H
#define GD_BASE_TENSOR_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

#define GD_MAX_RANK 32

struct gd_shape {
    int rank; /* 0: a scalar */
    int64_t dim[GD_MAX_RANK];
};

struct gd_tensor {
    enum gd_dtype dtype;
    struct gd_shape shape;
    int64_t stride[GD_MAX_RANK];     /* bytes between neighbours on each axis; may be negative */
    const unsigned char *data;       /* element [0, ..., 0]; NULL when there are no elements */
    struct gd_tensor_memory *memory; /* private: the block that data points into */
    int refs;                        /* private */
    bool writable;                   /* private: from gd_tensor_create, not a view or wrapped */
    bool abridged;                   /* gd_shape_abridge(whole) gave its shape */
    struct gd_shape whole;
};

/* Frees the memory of a wrapped tensor. Called once, from the thread that drops the last
 * reference. */
typedef void (*gd_tensor_free_fn)(void *data, size_t bytes, void *ctx);

/* Element count; -1 when the rank or a dimension is out of range, or when the product of the
 * nonzero dimensions (strides are made from them) overflows. */
int64_t gd_shape_count(const struct gd_shape *shape);
/* Elements times element size. Returns GD_EINVAL (negative dimension, type without a size) or
 * GD_ELIMIT (overflow). */
int gd_shape_bytes(const struct gd_shape *shape, enum gd_dtype dtype, size_t *ret,
                   struct gd_err *err);
bool gd_shape_equal(const struct gd_shape *a, const struct gd_shape *b);
/* C-order strides in bytes. */
void gd_shape_strides(const struct gd_shape *shape, size_t item, int64_t stride[GD_MAX_RANK]);
/* "(2, 3)", "(4,)", "()" into out, always terminated; returns out. */
char *gd_shape_text(const struct gd_shape *shape, char *out, size_t size);

/* Creates a C-contiguous tensor with uninitialised elements; write them through
 * gd_tensor_bytes_mut() before it is shared. Large blocks use huge pages. Returns GD_EINVAL,
 * GD_ELIMIT (more than max_bytes; 0: no limit) or GD_ENOMEM. */
int gd_tensor_create(enum gd_dtype dtype, const struct gd_shape *shape, size_t max_bytes,
                     struct gd_tensor **ret, struct gd_err *err);

/* Wraps existing C-contiguous memory; GD_EPROTO unless `bytes` is count * size. On success the
 * tensor owns the memory and frees it with free_fn (may be NULL); on failure the caller keeps
 * it. */
int gd_tensor_wrap(enum gd_dtype dtype, const struct gd_shape *shape, const void *data,
                   size_t bytes, gd_tensor_free_fn free_fn, void *ctx, struct gd_tensor **ret,
                   struct gd_err *err);

/* A view on the same memory, with its own reference to it. GD_EINVAL when an element would be
 * outside that memory. */
int gd_tensor_view(const struct gd_tensor *base, const struct gd_shape *shape,
                   const int64_t stride[GD_MAX_RANK], int64_t offset, struct gd_tensor **ret,
                   struct gd_err *err);

struct gd_tensor *gd_tensor_ref(struct gd_tensor *tensor);
void gd_tensor_unref(struct gd_tensor *tensor); /* NULL is fine */

int64_t gd_tensor_count(const struct gd_tensor *tensor);
size_t
gd_tensor_bytes(const struct gd_tensor *tensor); /* count * size, excluding the gaps of a view */
/* NULL unless made by gd_tensor_create, or when there are no elements. */
unsigned char *gd_tensor_bytes_mut(struct gd_tensor *tensor);
bool gd_tensor_is_contiguous(const struct gd_tensor *tensor);

/* A C-contiguous tensor with the same elements; a new reference to `tensor` if it already is.
 * Returns GD_ENOMEM or GD_ELIMIT. */
int gd_tensor_contiguous(struct gd_tensor *tensor, struct gd_tensor **ret, struct gd_err *err);

/* Copies the elements of a strided layout in C order to out (count * item bytes). The agent also
 * uses it on the training script's own memory. */
void gd_strided_copy(void *out, const void *data, const struct gd_shape *shape,
                     const int64_t stride[GD_MAX_RANK], size_t item);

/* Copies `count` elements that are `stride` bytes apart to contiguous memory. */
void gd_copy_run(void *out, const void *in, int64_t count, int64_t stride, size_t item);

/*
 * A walk over a strided layout in C order, in runs as long as the layout allows:
 *
 *     if (gd_walk_init(&walk, shape, stride, item))
 *         do { ... run elements from data + offset, run_stride bytes apart ... }
 *         while (gd_walk_next(&walk));
 */
struct gd_walk {
    int64_t run;        /* elements in every run */
    int64_t run_stride; /* bytes between elements */
    int64_t offset;     /* bytes from element [0, ..., 0] to the run's first element */
    int axes;           /* private from here on */
    int64_t dim[GD_MAX_RANK];
    int64_t stride[GD_MAX_RANK];
    int64_t index[GD_MAX_RANK];
};

/* False for an invalid shape or one without elements: nothing to walk. */
bool gd_walk_init(struct gd_walk *walk, const struct gd_shape *shape,
                  const int64_t stride[GD_MAX_RANK], size_t item);
/* Moves to the next run; false after the last. */
bool gd_walk_next(struct gd_walk *walk);
/* Moves to run number `run`, from 0, which must exist. */
void gd_walk_seek(struct gd_walk *walk, int64_t run);

/* What a print leaves of a shape: GD_EDGE elements at each end of a long axis. False: all of it. */
#define GD_EDGE 3
bool gd_shape_abridge(const struct gd_shape *shape, struct gd_shape *ret);
/* Copies the elements that are left to out, in C order. */
void gd_abridged_copy(void *out, const struct gd_tensor *from, const struct gd_shape *abridged);

bool gd_tensor_is_alike(const struct gd_tensor *a, const struct gd_tensor *b); /* type and shape */
/* Byte offset of element number `flat` in C order. */
int64_t gd_tensor_offset(const struct gd_tensor *tensor, int64_t flat);
/* Element number `flat` in C order as a double. */
double gd_tensor_get(const struct gd_tensor *tensor, int64_t flat);

#endif

// SPDX-License-Identifier: MIT
/*
 * Tensors: a dtype, a shape, byte strides and memory that may be shared between several views.
 *
 * A struct gd_tensor is reference counted and read-only once published. gd_tensor_ref/unref may be
 * called from any thread. Shapes and lengths that come from outside are checked here: the element
 * count and byte size of every shape that these functions accept fit in int64_t and size_t.
 */
#ifndef GD_BASE_TENSOR_H
#define GD_BASE_TENSOR_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

#define GD_MAX_RANK 32

struct gd_shape {
    int rank; /* 0 is a scalar */
    int64_t dim[GD_MAX_RANK];
};

struct gd_tensor {
    enum gd_dtype dtype;
    struct gd_shape shape;
    int64_t stride[GD_MAX_RANK];     /* bytes between neighbours along each axis; may be negative */
    const unsigned char *data;       /* element [0, ..., 0]; NULL when there are no elements */
    struct gd_tensor_memory *memory; /* private: the block that data points into */
    int refs;                        /* private */
    bool writable;                   /* private: made by create, not a view or a wrap */
};

/* Frees what a wrapped tensor stands on. Called once, from whichever thread drops the last ref. */
typedef void (*gd_tensor_free_fn)(void *data, size_t bytes, void *ctx);

/* Element count; -1 when the rank or a dimension is out of range, or when the product (of the
 * dimensions that are not 0, since strides are made from them) does not fit. */
int64_t gd_shape_count(const struct gd_shape *shape);
/* Elements times size, checked. GD_EINVAL: negative dimension or no such element; GD_ELIMIT: the
 * product does not fit in size_t. */
int gd_shape_bytes(const struct gd_shape *shape, enum gd_dtype dtype, size_t *ret,
                   struct gd_err *err);
bool gd_shape_equal(const struct gd_shape *a, const struct gd_shape *b);
/* C-order strides in bytes. */
void gd_shape_strides(const struct gd_shape *shape, size_t item, int64_t stride[GD_MAX_RANK]);
/* "(2, 3)", "(4,)", "()" into out, always terminated; returns out. */
char *gd_shape_text(const struct gd_shape *shape, char *out, size_t size);

/* A new C-contiguous tensor with room for its elements. Its memory is gd_tensor_bytes_mut() until
 * it is shared. Large blocks come from mmap with huge pages asked for. GD_EINVAL, GD_ELIMIT (more
 * than max_bytes, 0 = none), GD_ENOMEM. */
int gd_tensor_create(enum gd_dtype dtype, const struct gd_shape *shape, size_t max_bytes,
                     struct gd_tensor **ret, struct gd_err *err);

/* Around memory that exists: C-contiguous, `bytes` must equal count * size (GD_EPROTO otherwise).
 * On success free_fn (may be NULL) owns the memory's end; on failure the caller keeps it. */
int gd_tensor_wrap(enum gd_dtype dtype, const struct gd_shape *shape, const void *data,
                   size_t bytes, gd_tensor_free_fn free_fn, void *ctx, struct gd_tensor **ret,
                   struct gd_err *err);

/* A view on the same memory (takes its own reference on it). GD_EINVAL when an element of it would
 * lie outside that memory. */
int gd_tensor_view(const struct gd_tensor *base, const struct gd_shape *shape,
                   const int64_t stride[GD_MAX_RANK], int64_t offset, struct gd_tensor **ret,
                   struct gd_err *err);

struct gd_tensor *gd_tensor_ref(struct gd_tensor *tensor);
void gd_tensor_unref(struct gd_tensor *tensor); /* NULL is fine */

int64_t gd_tensor_count(const struct gd_tensor *tensor);
size_t
gd_tensor_bytes(const struct gd_tensor *tensor); /* count * size, without the gaps of a view */
/* NULL unless made by create, and when there are no elements. */
unsigned char *gd_tensor_bytes_mut(struct gd_tensor *tensor);
bool gd_tensor_is_contiguous(const struct gd_tensor *tensor);

/* A C-contiguous tensor with the same elements: a new reference to the same one when it already
 * is. GD_ENOMEM, GD_ELIMIT. */
int gd_tensor_contiguous(struct gd_tensor *tensor, struct gd_tensor **ret, struct gd_err *err);

/* Copies the elements of a strided layout in C order to out (count * item bytes). Used by the agent
 * on the trainer's own memory, too. */
void gd_strided_copy(void *out, const void *data, const struct gd_shape *shape,
                     const int64_t stride[GD_MAX_RANK], size_t item);

/* Copies `count` elements, `stride` bytes apart, one after another to out. */
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
    int64_t run_stride; /* bytes between them */
    int64_t offset;     /* bytes from element [0, ..., 0] to the run's first element */
    int axes;           /* private, as the rest */
    int64_t dim[GD_MAX_RANK];
    int64_t stride[GD_MAX_RANK];
    int64_t index[GD_MAX_RANK];
};

/* False when the shape has no elements or is not a shape; then there is nothing to walk. */
bool gd_walk_init(struct gd_walk *walk, const struct gd_shape *shape,
                  const int64_t stride[GD_MAX_RANK], size_t item);
/* On to the next run; false after the last. */
bool gd_walk_next(struct gd_walk *walk);
/* To run number `run`, counted from 0; there must be so many. */
void gd_walk_seek(struct gd_walk *walk, int64_t run);

/* Byte offset of element number `flat` in C order. */
int64_t gd_tensor_offset(const struct gd_tensor *tensor, int64_t flat);
/* Element number `flat` in C order as a double. */
double gd_tensor_get(const struct gd_tensor *tensor, int64_t flat);

#endif

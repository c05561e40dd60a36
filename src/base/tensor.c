// SPDX-License-Identifier: MIT
#include "base/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks from this size on are mapped separately, with huge pages: with 4 KiB pages the page faults
 * of a fresh gigabyte cost as much as copying it. */
#define HUGE_PAGE ((size_t)2 << 20)

struct gd_tensor_memory {
    int refs;
    void *data;
    size_t bytes;
    gd_tensor_free_fn free_fn;
    void *ctx;
};

int64_t gd_shape_count(const struct gd_shape *shape)
{
    int64_t count = 1;
    bool empty = false;

    if (shape->rank < 0 || shape->rank > GD_MAX_RANK) {
        return -1;
    }
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dim[i];

        if (dim < 0) {
            return -1;
        }
        /* A dimension of 0 must not hide an overflow of the strides of the others. */
        if (dim == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(count, dim, &count)) {
            return -1;
        }
    }
    return empty ? 0 : count;
}

int gd_shape_bytes(const struct gd_shape *shape, enum gd_dtype dtype, size_t *ret,
                   struct gd_err *err)
{
    size_t item = gd_dtype_size(dtype);
    int64_t span = 1;
    bool empty = false;

    if (item == 0) {
        return gd_fail(err, GD_EINVAL, "%s tensors do not have elements of a fixed size",
                       gd_dtype_name(dtype));
    }
    if (shape->rank < 0 || shape->rank > GD_MAX_RANK) {
        return gd_fail(err, GD_EINVAL, "tensor of rank %d: the rank must be 0 to %d", shape->rank,
                       GD_MAX_RANK);
    }
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dim[i];

        if (dim < 0) {
            return gd_fail(err, GD_EINVAL, "dimension %d of the shape is negative: %lld", i,
                           (long long)dim);
        }
        empty = empty || dim == 0;
        if (dim > 0 && __builtin_mul_overflow(span, dim, &span)) {
            return gd_fail(err, GD_ELIMIT, "the number of elements exceeds 64 bits");
        }
    }
    if (span > (int64_t)(INT64_MAX / (int64_t)item) || (uint64_t)span > SIZE_MAX / item) {
        return gd_fail(err, GD_ELIMIT, "%lld elements of %zu bytes do not fit in memory",
                       (long long)span, item);
    }
    *ret = empty ? 0 : (size_t)span * item;
    return GD_OK;
}

bool gd_shape_equal(const struct gd_shape *a, const struct gd_shape *b)
{
    return a->rank == b->rank &&
           (a->rank <= 0 || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0])) == 0);
}

void gd_shape_strides(const struct gd_shape *shape, size_t item, int64_t stride[GD_MAX_RANK])
{
    int64_t step = (int64_t)item;

    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = step;
        /* Only a shape without elements can overflow here; its strides are never used. */
        if (shape->dim[i] > 0 && __builtin_mul_overflow(step, shape->dim[i], &step)) {
            step = 0;
        }
    }
}

char *gd_shape_text(const struct gd_shape *shape, char *out, size_t size)
{
    size_t used = 0;

    if (size == 0) {
        return out;
    }
    used += (size_t)snprintf(out, size, "(");
    for (int i = 0; i < shape->rank && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, i ? ", %lld" : "%lld",
                                 (long long)shape->dim[i]);
    }
    if (used < size) {
        snprintf(out + used, size - used, shape->rank == 1 ? ",)" : ")");
    }
    return out;
}

static void free_block(void *data, size_t bytes, void *ctx)
{
    (void)bytes;
    (void)ctx;
    free(data);
}

static size_t round_to_huge(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

static void unmap_block(void *data, size_t bytes, void *ctx)
{
    (void)ctx;
    munmap(data, round_to_huge(bytes));
}

/* Aligned to huge pages: maps one page more and trims both ends. */
static void *map_block(size_t bytes)
{
    size_t size = round_to_huge(bytes);
    unsigned char *start;

    start =
        mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    size_t lead = (HUGE_PAGE - ((uintptr_t)start & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (lead) {
        munmap(start, lead);
    }
    if (lead < HUGE_PAGE) {
        munmap(start + lead + size, HUGE_PAGE - lead);
    }
    /* Fails where huge pages are disabled, which is fine. */
    madvise(start + lead, size, MADV_HUGEPAGE);
    return start + lead;
}

static struct gd_tensor_memory *create_memory(void *data, size_t bytes, gd_tensor_free_fn free_fn,
                                              void *ctx)
{
    struct gd_tensor_memory *memory = calloc(1, sizeof(*memory));

    if (memory) {
        *memory = (struct gd_tensor_memory){1, data, bytes, free_fn, ctx};
    }
    return memory;
}

static void unref_memory(struct gd_tensor_memory *memory)
{
    if (!memory || __atomic_sub_fetch(&memory->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    if (memory->free_fn) {
        memory->free_fn(memory->data, memory->bytes, memory->ctx);
    }
    free(memory);
}

static struct gd_tensor *new_tensor(enum gd_dtype dtype, const struct gd_shape *shape)
{
    struct gd_tensor *tensor = calloc(1, sizeof(*tensor));

    if (!tensor) {
        return NULL;
    }
    tensor->refs = 1;
    tensor->dtype = dtype;
    tensor->shape.rank = shape->rank;
    memcpy(tensor->shape.dim, shape->dim, (size_t)shape->rank * sizeof(shape->dim[0]));
    gd_shape_strides(&tensor->shape, gd_dtype_size(dtype), tensor->stride);
    return tensor;
}

int gd_tensor_create(enum gd_dtype dtype, const struct gd_shape *shape, size_t max_bytes,
                     struct gd_tensor **ret, struct gd_err *err)
{
    struct gd_tensor *tensor;
    size_t bytes;
    void *block = NULL;
    int rc = gd_shape_bytes(shape, dtype, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (max_bytes && bytes > max_bytes) {
        return gd_fail(err, GD_ELIMIT, "a tensor of %zu bytes exceeds the limit of %zu", bytes,
                       max_bytes);
    }
    if (bytes > SIZE_MAX - 2 * HUGE_PAGE) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a tensor of %zu bytes", bytes);
    }
    tensor = new_tensor(dtype, shape);
    if (!tensor) {
        return gd_fail_nomem(err);
    }
    if (bytes == 0) {
        *ret = tensor;
        return GD_OK;
    }
    bool huge = bytes >= HUGE_PAGE;
    block = huge ? map_block(bytes) : malloc(bytes);
    if (block) {
        tensor->memory = create_memory(block, bytes, huge ? unmap_block : free_block, NULL);
    }
    if (!tensor->memory) {
        if (block) {
            (huge ? unmap_block : free_block)(block, bytes, NULL);
        }
        free(tensor);
        return gd_fail(err, GD_ENOMEM, "out of memory for a tensor of %zu bytes", bytes);
    }
    tensor->data = block;
    tensor->writable = true;
    *ret = tensor;
    return GD_OK;
}

int gd_tensor_wrap(enum gd_dtype dtype, const struct gd_shape *shape, const void *data,
                   size_t bytes, gd_tensor_free_fn free_fn, void *ctx, struct gd_tensor **ret,
                   struct gd_err *err)
{
    struct gd_tensor *tensor;
    size_t need;
    char text[128];
    int rc = gd_shape_bytes(shape, dtype, &need, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (bytes != need || (need && !data)) {
        return gd_fail(err, GD_EPROTO,
                       "%zu bytes of data for a %s tensor of shape %s, which needs %zu", bytes,
                       gd_dtype_name(dtype), gd_shape_text(shape, text, sizeof(text)), need);
    }
    tensor = new_tensor(dtype, shape);
    /* Casts const away for the free function only. */
    struct gd_tensor_memory *memory = create_memory((void *)(uintptr_t)data, bytes, free_fn, ctx);
    if (!tensor || !memory) {
        free(tensor);
        free(memory);
        return gd_fail_nomem(err);
    }
    tensor->memory = memory;
    tensor->data = bytes ? data : NULL;
    *ret = tensor;
    return GD_OK;
}

/* Whether every element of the layout lies inside the memory of `base`. */
static bool fits_view(const struct gd_tensor *base, const struct gd_shape *shape,
                      const int64_t stride[GD_MAX_RANK], int64_t offset)
{
    int64_t low, high, at;

    if (!base->memory || !base->data) {
        return false;
    }
    at = (int64_t)(base->data - (const unsigned char *)base->memory->data);
    if (__builtin_add_overflow(at, offset, &low)) {
        return false;
    }
    high = low;
    for (int i = 0; i < shape->rank; i++) {
        int64_t reach;

        if (__builtin_mul_overflow(stride[i], shape->dim[i] - 1, &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return false;
        }
    }
    return low >= 0 && high >= 0 && (uint64_t)high <= base->memory->bytes &&
           base->memory->bytes - (uint64_t)high >= gd_dtype_size(base->dtype);
}

int gd_tensor_view(const struct gd_tensor *base, const struct gd_shape *shape,
                   const int64_t stride[GD_MAX_RANK], int64_t offset, struct gd_tensor **ret,
                   struct gd_err *err)
{
    struct gd_tensor *tensor;
    size_t bytes;
    int rc = gd_shape_bytes(shape, base->dtype, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (bytes && !fits_view(base, shape, stride, offset)) {
        return gd_fail(err, GD_EINVAL, "the view exceeds its tensor's memory");
    }
    tensor = new_tensor(base->dtype, shape);
    if (!tensor) {
        return gd_fail_nomem(err);
    }
    memcpy(tensor->stride, stride, (size_t)shape->rank * sizeof(stride[0]));
    if (bytes) {
        __atomic_add_fetch(&base->memory->refs, 1, __ATOMIC_RELAXED);
        tensor->memory = base->memory;
        tensor->data = base->data + offset;
    }
    *ret = tensor;
    return GD_OK;
}

struct gd_tensor *gd_tensor_ref(struct gd_tensor *tensor)
{
    if (tensor) {
        __atomic_add_fetch(&tensor->refs, 1, __ATOMIC_RELAXED);
    }
    return tensor;
}

void gd_tensor_unref(struct gd_tensor *tensor)
{
    if (!tensor || __atomic_sub_fetch(&tensor->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    unref_memory(tensor->memory);
    free(tensor);
}

int64_t gd_tensor_count(const struct gd_tensor *tensor)
{
    return gd_shape_count(&tensor->shape);
}

size_t gd_tensor_bytes(const struct gd_tensor *tensor)
{
    return (size_t)gd_tensor_count(tensor) * gd_dtype_size(tensor->dtype);
}

unsigned char *gd_tensor_bytes_mut(struct gd_tensor *tensor)
{
    return tensor->writable ? tensor->memory->data : NULL;
}

bool gd_tensor_is_contiguous(const struct gd_tensor *tensor)
{
    int64_t step = (int64_t)gd_dtype_size(tensor->dtype);

    if (gd_tensor_count(tensor) == 0) {
        return true;
    }
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        if (tensor->shape.dim[i] != 1 && tensor->stride[i] != step) {
            return false;
        }
        step *= tensor->shape.dim[i];
    }
    return true;
}

int gd_tensor_contiguous(struct gd_tensor *tensor, struct gd_tensor **ret, struct gd_err *err)
{
    struct gd_tensor *copy = NULL;

    if (gd_tensor_is_contiguous(tensor)) {
        *ret = gd_tensor_ref(tensor);
        return GD_OK;
    }
    int rc = gd_tensor_create(tensor->dtype, &tensor->shape, 0, &copy, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_strided_copy(gd_tensor_bytes_mut(copy), tensor->data, &tensor->shape, tensor->stride,
                    gd_dtype_size(tensor->dtype));
    *ret = copy;
    return GD_OK;
}

static inline __attribute__((always_inline)) void
copy_items(unsigned char *out, const unsigned char *in, int64_t count, int64_t stride, size_t item)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(out + (size_t)i * item, in + i * stride, item);
    }
}

/* One run along the innermost axis. Spelled-out sizes become plain moves. */
static void copy_apart(unsigned char *out, const unsigned char *in, int64_t count, int64_t stride,
                       size_t item)
{
    switch (item) {
    case 1: copy_items(out, in, count, stride, 1); break;
    case 2: copy_items(out, in, count, stride, 2); break;
    case 4: copy_items(out, in, count, stride, 4); break;
    case 8: copy_items(out, in, count, stride, 8); break;
    default: copy_items(out, in, count, stride, item); break;
    }
}

void gd_copy_run(void *out, const void *in, int64_t count, int64_t stride, size_t item)
{
    if (stride == (int64_t)item) {
        memcpy(out, in, (size_t)count * item);
    } else {
        copy_apart(out, in, count, stride, item);
    }
}

void gd_strided_copy(void *out, const void *data, const struct gd_shape *shape,
                     const int64_t stride[GD_MAX_RANK], size_t item)
{
    struct gd_walk walk;
    unsigned char *to = out;

    if (!gd_walk_init(&walk, shape, stride, item)) {
        return;
    }
    do {
        gd_copy_run(to, (const unsigned char *)data + walk.offset, walk.run, walk.run_stride, item);
        to += (size_t)walk.run * item;
    } while (gd_walk_next(&walk));
}

bool gd_walk_init(struct gd_walk *walk, const struct gd_shape *shape,
                  const int64_t stride[GD_MAX_RANK], size_t item)
{
    int axes = 0;

    /* Not zeroed as a whole: most of it is room for unused axes. */
    walk->run = walk->run_stride = walk->offset = 0;
    walk->axes = 0;
    if (gd_shape_count(shape) <= 0) {
        return false;
    }
    /* Axes of 1 are dropped; an axis whose step is a whole row of the next one is merged with
     * it. */
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1) {
            continue;
        }
        if (axes && walk->stride[axes - 1] == stride[i] * shape->dim[i]) {
            walk->dim[axes - 1] *= shape->dim[i];
            walk->stride[axes - 1] = stride[i];
            continue;
        }
        walk->dim[axes] = shape->dim[i];
        walk->stride[axes] = stride[i];
        walk->index[axes] = 0;
        axes++;
    }
    walk->run = axes ? walk->dim[axes - 1] : 1;
    walk->run_stride = axes ? walk->stride[axes - 1] : (int64_t)item;
    walk->axes = axes ? axes - 1 : 0;
    return true;
}

bool gd_walk_next(struct gd_walk *walk)
{
    for (int i = walk->axes - 1; i >= 0; i--) {
        walk->offset += walk->stride[i];
        if (++walk->index[i] < walk->dim[i]) {
            return true;
        }
        walk->offset -= walk->stride[i] * walk->dim[i];
        walk->index[i] = 0;
    }
    return false;
}

void gd_walk_seek(struct gd_walk *walk, int64_t run)
{
    walk->offset = 0;
    for (int i = walk->axes - 1; i >= 0; i--) {
        walk->index[i] = run % walk->dim[i];
        walk->offset += walk->index[i] * walk->stride[i];
        run /= walk->dim[i];
    }
}

int64_t gd_tensor_offset(const struct gd_tensor *tensor, int64_t flat)
{
    int64_t offset = 0;

    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        int64_t dim = tensor->shape.dim[i];

        if (dim <= 1) {
            continue;
        }
        offset += flat % dim * tensor->stride[i];
        flat /= dim;
    }
    return offset;
}

bool gd_tensor_is_alike(const struct gd_tensor *a, const struct gd_tensor *b)
{
    return a->dtype == b->dtype && gd_shape_equal(&a->shape, &b->shape);
}

double gd_tensor_get(const struct gd_tensor *tensor, int64_t flat)
{
    return gd_dtype_load(tensor->dtype, tensor->data + gd_tensor_offset(tensor, flat));
}

#define FEW      6    /* a longer axis is abridged */
#define FEW_ONLY 1000 /* the same where it is the only one */

bool gd_shape_abridge(const struct gd_shape *shape, struct gd_shape *ret)
{
    bool less = false;

    *ret = *shape;
    for (int axis = 0; axis < shape->rank; axis++) {
        if (shape->dim[axis] > (shape->rank == 1 ? FEW_ONLY : FEW)) {
            ret->dim[axis] = 2 * GD_EDGE;
            less = true;
        }
    }
    return less;
}

void gd_abridged_copy(void *out, const struct gd_tensor *from, const struct gd_shape *abridged)
{
    size_t item = gd_dtype_size(from->dtype);
    unsigned char *to = out;
    int64_t count = gd_shape_count(abridged);

    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, offset = 0;
        for (int axis = abridged->rank - 1; axis >= 0; axis--) {
            int64_t index = rest % abridged->dim[axis];
            rest /= abridged->dim[axis];
            index += index < GD_EDGE ? 0 : from->shape.dim[axis] - abridged->dim[axis];
            offset += index * from->stride[axis];
        }
        memcpy(to + (size_t)i * item, from->data + offset, item);
    }
}

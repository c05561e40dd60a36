// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/source.h"

#include <stdlib.h>
#include <string.h>

#include "dump/io/source_impl.h"

#define MAX_NESTED 4     /* how deep lazy sources may nest */
#define MAX_OPENED 65536 /* lazy sources that may stay open after use */

static uint32_t opened; /* lazy sources open in the process */

/* ---- creating -------------------------------------------------------------------------------- */

static struct gd_source *source_new(void)
{
    struct gd_source *source = calloc(1, sizeof(*source));

    if (source) {
        source->refs = 1;
        source->info.note = "";
        pthread_mutex_init(&source->mutex, NULL);
    }
    return source;
}

/* Copies only the used dimensions: a shape is large, and there are many. */
static struct gd_shape copy_shape(const struct gd_shape *shape)
{
    struct gd_shape copy = {.rank = shape->rank};

    memcpy(copy.dim, shape->dim, sizeof(copy.dim[0]) * (size_t)shape->rank);
    return copy;
}

/* Checks that every element lies within the bytes. There is at least one element. */
static int check_reach(const struct gd_source_desc *desc, const struct gd_layout *layout,
                       struct gd_err *err)
{
    uint64_t bits = gd_bytes_size(desc->bytes);
    int64_t low = layout->offset, high = layout->offset, last;

    for (int i = 0; i < layout->shape.rank; i++) {
        int64_t reach;

        if (__builtin_mul_overflow(layout->stride[i], layout->shape.dim[i] - 1, &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return gd_fail(err, GD_EPROTO, "the strides exceed the range of 64 bits");
        }
    }
    if (low < 0 || __builtin_mul_overflow(bits, 8, &bits) ||
        __builtin_add_overflow(high, 1, &last) ||
        (uint64_t)last > bits / gd_stored_bits(desc->stored)) {
        return gd_fail(err, GD_EPROTO,
                       "elements %lld to %lld of type %s are needed, but there are only %llu bytes",
                       (long long)low, (long long)high, gd_stored_name(desc->stored),
                       (unsigned long long)gd_bytes_size(desc->bytes));
    }
    return GD_OK;
}

/* Zeroes strides that are never stepped along: a file may hold anything there. */
static void settle_steps(struct gd_layout *layout, bool is_empty)
{
    for (int i = 0; i < layout->shape.rank; i++) {
        if (is_empty || layout->shape.dim[i] == 1) {
            layout->stride[i] = 0;
        }
    }
    layout->offset = is_empty ? 0 : layout->offset;
}

static int make_layout(const struct gd_source_desc *desc, struct gd_layout *ret, struct gd_err *err)
{
    size_t bytes;
    int rc = gd_shape_bytes(&desc->shape, gd_stored_dtype(desc->stored), &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    *ret = (struct gd_layout){.shape = copy_shape(&desc->shape), .offset = desc->offset};
    if (desc->has_stride) {
        memcpy(ret->stride, desc->stride, sizeof(ret->stride[0]) * (size_t)desc->shape.rank);
    } else {
        gd_shape_strides(&ret->shape, 1, ret->stride);
    }
    settle_steps(ret, bytes == 0);
    return bytes == 0 ? GD_OK : check_reach(desc, ret, err);
}

int gd_source_create(const struct gd_source_desc *desc, struct gd_source **ret, struct gd_err *err)
{
    struct gd_source *source;
    struct gd_layout layout;
    int rc;

    if (gd_stored_bits(desc->stored) == 0) {
        return gd_fail(err, GD_EINVAL, "the element type is unknown");
    }
    rc = make_layout(desc, &layout, err);
    if (rc != GD_OK) {
        return rc;
    }
    source = source_new();
    if (!source || !(source->layout = malloc(sizeof(layout))) ||
        (desc->note && !(source->note = strdup(desc->note)))) {
        gd_source_unref(source);
        return gd_fail_nomem(err);
    }
    *source->layout = layout;
    source->is_contiguous = gd_layout_is_contiguous(&layout);
    source->elements = (struct gd_stored_elements){.bytes = gd_bytes_ref(desc->bytes),
                                                   .stored = desc->stored,
                                                   .swap = desc->swap,
                                                   .conjugate = desc->conjugate,
                                                   .negate = desc->negate};
    source->info = (struct gd_source_info){.dtype = gd_stored_dtype(desc->stored),
                                           .stored = desc->stored,
                                           .shape = copy_shape(&layout.shape),
                                           .bytes = gd_bytes_size(desc->bytes),
                                           .note = source->note ? source->note : ""};
    *ret = source;
    return GD_OK;
}

int gd_source_create_lazy(const struct gd_source_ops *ops, void *ctx, struct gd_source **ret,
                          struct gd_err *err)
{
    struct gd_source *source = source_new();

    if (!source) {
        if (ops->free_ctx) {
            ops->free_ctx(ctx);
        }
        return gd_fail_nomem(err);
    }
    source->ops = *ops;
    source->ctx = ctx;
    *ret = source;
    return GD_OK;
}

static void release_tensor(void *ctx)
{
    gd_tensor_unref(ctx);
}

int gd_source_of_tensor(struct gd_tensor *tensor, struct gd_source **ret, struct gd_err *err)
{
    struct gd_source_desc desc = {.stored = gd_stored_of_dtype(tensor->dtype)};
    struct gd_tensor *whole;
    int rc = gd_tensor_contiguous(tensor, &whole, err);

    if (rc != GD_OK) {
        return rc;
    }
    desc.shape = copy_shape(&tensor->shape);
    rc = gd_bytes_of_memory(whole->data, gd_tensor_bytes(whole), release_tensor, whole, &desc.bytes,
                            err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    return rc;
}

/* The bytes of one of several joined sources. */
static int bytes_of_part(const struct gd_source *first, const struct gd_source *part,
                         struct gd_bytes **ret, struct gd_err *err)
{
    const struct gd_stored_elements *a = &first->elements, *b = &part->elements;
    uint64_t item = gd_stored_bits(b->stored) / 8;

    if (!part->is_contiguous || item == 0 || a->stored != b->stored || a->swap != b->swap ||
        a->conjugate != b->conjugate || a->negate != b->negate) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "its pieces differ in element type or byte order, or are not in row order");
    }
    return gd_bytes_of_part(b->bytes, (uint64_t)part->layout->offset * item,
                            (uint64_t)gd_shape_count(&part->info.shape) * item, ret, err);
}

static int join_bytes(struct gd_source *const *part, size_t count, struct gd_source_desc *desc,
                      struct gd_err *err)
{
    struct gd_bytes **bytes = calloc(count, sizeof(struct gd_bytes *));
    struct gd_source *first = NULL, *one;
    size_t done = 0;
    int rc = bytes ? GD_OK : gd_fail_nomem(err);

    for (int64_t rows = 0; rc == GD_OK && done < count; desc->shape.dim[0] = rows) {
        one = NULL;
        rc = gd_source_resolve(part[done], &one, err);
        if (rc == GD_OK && !first) {
            first = one;
            desc->shape = copy_shape(&one->info.shape);
        }
        rc = rc != GD_OK ? rc : bytes_of_part(first, one, &bytes[done], err);
        rows += rc == GD_OK && one->info.shape.rank > 0 ? one->info.shape.dim[0] : 0;
        if (done > 0) {
            gd_source_unref(one);
        }
        done += rc == GD_OK;
    }
    if (rc == GD_OK) {
        desc->stored = first->elements.stored;
        desc->swap = first->elements.swap;
        desc->conjugate = first->elements.conjugate;
        desc->negate = first->elements.negate;
        rc = gd_bytes_of_row(bytes, count, &desc->bytes, err);
    }
    while (done > 0) {
        gd_bytes_unref(bytes[--done]);
    }
    gd_source_unref(first);
    free(bytes);
    return rc;
}

int gd_source_join(struct gd_source *const *part, size_t count, struct gd_source **ret,
                   struct gd_err *err)
{
    struct gd_source_desc desc = {.stored = GD_STORED_NONE};
    int rc = join_bytes(part, count, &desc, err);

    rc = rc != GD_OK ? rc : gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    return rc;
}

struct gd_source *gd_source_ref(struct gd_source *source)
{
    __atomic_add_fetch(&source->refs, 1, __ATOMIC_RELAXED);
    return source;
}

void gd_source_unref(struct gd_source *source)
{
    if (!source || __atomic_sub_fetch(&source->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    if (source->inner) {
        __atomic_sub_fetch(&opened, 1, __ATOMIC_RELAXED);
    }
    gd_source_unref(source->inner);
    if (source->ops.free_ctx) {
        source->ops.free_ctx(source->ctx);
    }
    gd_bytes_unref(source->elements.bytes);
    pthread_mutex_destroy(&source->mutex);
    free(source->note);
    free(source->layout);
    free(source);
}

/* ---- lazy sources ---------------------------------------------------------------------------- */

static int load_all(void *ctx, void *ret, size_t size, struct gd_err *err)
{
    struct gd_source *source = ctx;
    struct gd_tensor *tensor;
    int rc = source->ops.load(source->ctx, &tensor, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (tensor->dtype != source->info.dtype || gd_tensor_bytes(tensor) != size ||
        !gd_shape_equal(&tensor->shape, &source->info.shape)) {
        gd_tensor_unref(tensor);
        return gd_fail(err, GD_EPROTO, "the values do not have the announced type and shape");
    }
    gd_strided_copy(ret, tensor->data, &tensor->shape, tensor->stride,
                    gd_dtype_size(tensor->dtype));
    gd_tensor_unref(tensor);
    return GD_OK;
}

/* The inner source is owned by the outer one, its context: nothing to free. */
static void keep_outer(void *ctx)
{
    (void)ctx;
}

/* Wraps `load` in a source that calls it when values are needed. */
static int make_loading(struct gd_source *source, struct gd_source **ret, struct gd_err *err)
{
    struct gd_source_info info;
    struct gd_source_desc desc;
    size_t size;
    int rc = source->ops.info(source->ctx, &info, err);

    rc = rc != GD_OK ? rc : gd_shape_bytes(&info.shape, info.dtype, &size, err);
    if (rc != GD_OK) {
        return rc;
    }
    desc = (struct gd_source_desc){.stored = gd_stored_of_dtype(info.dtype),
                                   .shape = copy_shape(&info.shape)};
    rc = gd_bytes_of_load(load_all, keep_outer, source, size, &desc.bytes, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    if (rc == GD_OK && !source->is_known) {
        source->info = info;
        source->info.note = info.note ? info.note : "";
    }
    return rc;
}

/* The first info stays: other threads may look at it while the source is opened again. */
static int note_info(struct gd_source *source, struct gd_source *inner, struct gd_err *err)
{
    struct gd_source_info info;
    int rc = gd_source_info(inner, &info, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (source->is_known) {
        return info.dtype == source->info.dtype && gd_shape_equal(&info.shape, &source->info.shape)
                   ? GD_OK
                   : gd_fail(err, GD_EIO, "its type or shape changed since it was opened");
    }
    source->note = info.note[0] ? strdup(info.note) : NULL;
    if (info.note[0] && !source->note) {
        return gd_fail_nomem(err);
    }
    source->info = info;
    source->info.note = source->note ? source->note : "";
    return GD_OK;
}

static int open_inner(struct gd_source *source, struct gd_err *err)
{
    struct gd_source *inner = NULL;
    int rc;

    if (!source->ops.open) {
        rc = make_loading(source, &inner, err);
    } else {
        rc = source->ops.open(source->ctx, &inner, err);
        rc = rc != GD_OK ? rc : note_info(source, inner, err);
        if (rc != GD_OK) {
            gd_source_unref(inner);
        }
    }
    if (rc == GD_OK) {
        source->inner = inner;
        __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&source->is_known, true, __ATOMIC_RELEASE);
    }
    return rc;
}

int gd_source_resolve(struct gd_source *source, struct gd_source **ret, struct gd_err *err)
{
    gd_source_ref(source);
    for (int depth = 0; source->ops.open || source->ops.load; depth++) {
        struct gd_source *inner = NULL;
        int rc = GD_OK;

        if (depth == MAX_NESTED) {
            rc = gd_fail(err, GD_ELIMIT, "tensors refer to each other too deeply");
        } else {
            pthread_mutex_lock(&source->mutex);
            rc = source->inner ? GD_OK : open_inner(source, err);
            inner = rc != GD_OK ? NULL : gd_source_ref(source->inner);
            pthread_mutex_unlock(&source->mutex);
        }
        gd_source_unref(source);
        if (rc != GD_OK) {
            return rc;
        }
        source = inner;
    }
    *ret = source;
    return GD_OK;
}

void gd_source_close(struct gd_source *source)
{
    struct gd_source *inner = NULL;

    if (__atomic_load_n(&opened, __ATOMIC_RELAXED) <= MAX_OPENED) {
        return;
    }
    pthread_mutex_lock(&source->mutex);
    if (source->inner) {
        inner = source->inner;
        source->inner = NULL;
        __atomic_sub_fetch(&opened, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&source->mutex);
    gd_source_unref(inner);
}

/* ---- reading --------------------------------------------------------------------------------- */

int gd_source_info(struct gd_source *source, struct gd_source_info *ret, struct gd_err *err)
{
    struct gd_source *inner;
    int rc = GD_OK;

    if (source->ops.open && source->ops.info) {
        return source->ops.info(source->ctx, ret, err);
    }
    if ((source->ops.open || source->ops.load) &&
        !__atomic_load_n(&source->is_known, __ATOMIC_ACQUIRE)) {
        rc = gd_source_resolve(source, &inner, err);
        if (rc == GD_OK) {
            gd_source_unref(inner);
        }
    }
    if (rc == GD_OK) {
        *ret = source->info;
    }
    return rc;
}

/* Converts a slice to a layout, whose steps are in elements, not bytes. */
static int slice_layout(const struct gd_layout *whole, const struct gd_slice *slice,
                        struct gd_layout *ret, struct gd_err *err)
{
    struct gd_slice_view view;
    int rc;

    *ret = *whole;
    if (!slice || slice->count == 0) {
        return GD_OK;
    }
    rc = gd_slice_apply(slice, &whole->shape, whole->stride, &view, err);
    if (rc != GD_OK) {
        return rc;
    }
    ret->shape = view.shape;
    memcpy(ret->stride, view.stride, sizeof(ret->stride));
    ret->offset += view.offset;
    return GD_OK;
}

int gd_source_read(struct gd_source *source, const struct gd_slice *slice, size_t max_bytes,
                   struct gd_tensor **ret, struct gd_err *err)
{
    struct gd_tensor *tensor = NULL;
    struct gd_layout layout;
    int rc = gd_source_resolve(source, &source, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = slice_layout(source->layout, slice, &layout, err);
    if (rc == GD_OK) {
        rc = gd_tensor_create(source->info.dtype, &layout.shape, max_bytes, &tensor, err);
    }
    if (rc == GD_OK && gd_tensor_count(tensor) > 0) {
        rc = gd_strided_read(&source->elements, &layout, gd_tensor_bytes_mut(tensor), err);
    }
    gd_source_unref(source);
    if (rc != GD_OK) {
        gd_tensor_unref(tensor);
        return rc;
    }
    *ret = tensor;
    return GD_OK;
}

static int read_run(const struct gd_source *source, int64_t first, int64_t count, void *ret,
                    struct gd_err *err)
{
    int64_t all = gd_shape_count(&source->info.shape);

    if (first < 0 || count < 0 || first > all || count > all - first) {
        return gd_fail(err, GD_EINVAL, "%lld elements starting at %lld exceed the tensor's %lld",
                       (long long)count, (long long)first, (long long)all);
    }
    if (source->is_contiguous) {
        struct gd_layout run = {.shape = {.rank = 1, .dim = {count}},
                                .stride = {1},
                                .offset = source->layout->offset + first};

        return gd_strided_read(&source->elements, &run, ret, err);
    }
    return gd_strided_read_run(&source->elements, source->layout, first, count, ret, err);
}

int gd_source_read_run(struct gd_source *source, int64_t first, int64_t count, void *ret,
                       struct gd_err *err)
{
    int rc = gd_source_resolve(source, &source, err);

    if (rc == GD_OK) {
        rc = read_run(source, first, count, ret, err);
        gd_source_unref(source);
    }
    return rc;
}

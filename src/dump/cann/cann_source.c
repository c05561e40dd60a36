// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/cann/cann_types.h"

struct made { /* a tensor converted as a whole */
    struct gd_bytes *bytes;
    enum gd_stored stored;
    struct gd_cann_plan plan;
    char note[GD_CANN_NOTE];
};

static void made_free(void *ctx)
{
    struct made *made = ctx;

    gd_bytes_unref(made->bytes);
    free(made);
}

static int made_info(void *ctx, struct gd_source_info *ret, struct gd_err *err)
{
    struct made *made = ctx;

    (void)err;
    *ret = (struct gd_source_info){.dtype = gd_stored_dtype(made->stored),
                                   .stored = made->stored,
                                   .shape = made->plan.shape,
                                   .bytes = gd_bytes_size(made->bytes),
                                   .note = made->note};
    return GD_OK;
}

/* The stored elements, in the engine's type. */
static int read_elements(const struct made *made, void **ret, struct gd_err *err)
{
    uint64_t size = gd_bytes_size(made->bytes);
    size_t item = gd_dtype_size(gd_stored_dtype(made->stored)), room;
    GD_CLEANUP(gd_cleanup_free) unsigned char *raw = malloc(size ? (size_t)size : 1);
    int rc = raw ? gd_bytes_read(made->bytes, 0, raw, (size_t)size, err)
                 : gd_fail(err, GD_ENOMEM, "out of memory for %" PRIu64 " bytes", size);

    if (rc != GD_OK) {
        return rc;
    }
    if (gd_stored_bits(made->stored) == 8 * item) {
        *ret = raw;
        raw = NULL;
        return GD_OK;
    }
    *ret = __builtin_mul_overflow((size_t)made->plan.stored, item, &room) ? NULL : malloc(room);
    if (!*ret) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %" PRId64 " elements", made->plan.stored);
    }
    gd_stored_widen(made->stored, false, raw, 0, made->plan.stored, *ret);
    return GD_OK;
}

static int made_load(void *ctx, struct gd_tensor **ret, struct gd_err *err)
{
    struct made *made = ctx;
    enum gd_dtype dtype = gd_stored_dtype(made->stored);
    struct gd_tensor *tensor;
    GD_CLEANUP(gd_cleanup_free) void *elements = NULL;
    int rc = read_elements(made, &elements, err);

    rc = rc != GD_OK ? rc : gd_tensor_create(dtype, &made->plan.shape, 0, &tensor, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_cann_convert(&made->plan, gd_dtype_size(dtype), elements, gd_tensor_bytes_mut(tensor),
                         err);
    if (rc != GD_OK) {
        gd_tensor_unref(tensor);
        return rc;
    }
    *ret = tensor;
    return GD_OK;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void add_note(char *note, size_t size, const char *text)
{
    size_t len = strlen(note);

    if (text[0] != '\0' && len < size) {
        snprintf(note + len, size - len, "%s%s", len ? "; " : "", text);
    }
}

void gd_cann_note(const struct gd_cann_file *file, const struct gd_cann_tensor *tensor,
                  const struct gd_cann_plan *plan, char *note, size_t size)
{
    const char *type = gd_cann_type_name(tensor->data_type);
    char text[160], shape[96];

    note[0] = '\0';
    if (!type) {
        snprintf(text, sizeof(text), "unknown element type %d: shown as bytes",
                 (int)tensor->data_type);
        add_note(note, size, text);
    } else if (gd_cann_stored(tensor->data_type) == GD_STORED_OPAQUE) {
        snprintf(text, sizeof(text), "%s elements are shown as bytes", type);
        add_note(note, size, text);
    }
    if (plan->converts) {
        snprintf(text, sizeof(text), "stored as %s %s", gd_cann_format_name(tensor->format),
                 gd_shape_text(&tensor->shape, shape, sizeof(shape)));
        add_note(note, size, text);
    }
    add_note(note, size, plan->note);
    if (tensor->there < tensor->size) {
        add_note(note, size, "its file is too short: it was cut off, or the address was empty");
    } else if (file->missing > 0) {
        snprintf(text, sizeof(text),
                 "%" PRIu64 " bytes of its file are missing: if an earlier tensor was not written, "
                 "this is not its value",
                 file->missing);
        add_note(note, size, text);
    }
}

/* ---- creating -------------------------------------------------------------------------------- */

static int take_bytes(struct gd_disk *disk, const struct gd_cann_tensor *tensor,
                      struct gd_bytes **ret, struct gd_err *err)
{
    if (tensor->data) {
        void *copy = malloc((size_t)tensor->size);

        if (!copy) {
            return gd_fail(err, GD_ENOMEM, "out of memory for %" PRIu64 " bytes", tensor->size);
        }
        memcpy(copy, tensor->data, (size_t)tensor->size);
        return gd_bytes_of_memory(copy, (size_t)tensor->size, free, copy, ret, err);
    }
    if (tensor->size == 0) {
        return gd_fail(err, GD_ENODATA, "%.300s: %s %u has no bytes: the operator did not get it",
                       gd_disk_path(disk), gd_cann_io_name(tensor->io), tensor->index);
    }
    if (tensor->there < tensor->size) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s has %" PRIu64 " of the %" PRIu64
                       " bytes of %s %u: it was cut off, or the address was empty",
                       gd_disk_path(disk), tensor->there, tensor->size, gd_cann_io_name(tensor->io),
                       tensor->index);
    }
    return gd_bytes_of_disk(disk, tensor->at, tensor->size, ret, err);
}

static int make_converted(struct gd_bytes *bytes, const struct gd_cann_tensor *tensor,
                          const struct gd_cann_plan *plan, const char *note, struct gd_source **ret,
                          struct gd_err *err)
{
    static const struct gd_source_ops ops = {
        .info = made_info, .load = made_load, .free_ctx = made_free};
    struct made *made = calloc(1, sizeof(*made));

    if (!made) {
        return gd_fail_nomem(err);
    }
    made->bytes = gd_bytes_ref(bytes);
    made->stored = gd_cann_stored(tensor->data_type);
    made->plan = *plan;
    snprintf(made->note, sizeof(made->note), "%s", note);
    return gd_source_create_lazy(&ops, made, ret, err);
}

static int make_source(struct gd_disk *disk, const struct gd_cann_file *file,
                       const struct gd_cann_tensor *tensor, const struct gd_cann_plan *plan,
                       struct gd_source **ret, struct gd_err *err)
{
    struct gd_source_desc desc = {.stored = gd_cann_stored(tensor->data_type),
                                  .shape = plan->shape};
    char note[GD_CANN_NOTE];
    int rc = take_bytes(disk, tensor, &desc.bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_cann_note(file, tensor, plan, note, sizeof(note));
    desc.note = note;
    rc = plan->converts ? make_converted(desc.bytes, tensor, plan, note, ret, err)
                        : gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    return rc;
}

int gd_cann_source(struct gd_disk *disk, const struct gd_cann_file *file,
                   const struct gd_cann_tensor *tensor, int32_t hint, int32_t to,
                   struct gd_source **ret, struct gd_err *err)
{
    struct gd_cann_plan plan;

    gd_cann_plan(tensor, hint, to, &plan);
    return make_source(disk, file, tensor, &plan, ret, err);
}

int gd_cann_source_stored(struct gd_disk *disk, const struct gd_cann_file *file,
                          const struct gd_cann_tensor *tensor, struct gd_source **ret,
                          struct gd_err *err)
{
    struct gd_cann_tensor as_is = *tensor;
    struct gd_cann_plan plan;

    as_is.format = GD_CANN_ND;
    gd_cann_plan(&as_is, -1, -1, &plan);
    return make_source(disk, file, tensor, &plan, ret, err);
}

/* ---- lazy sources ---------------------------------------------------------------------------- */

struct later {
    struct gd_disk *disk;
    enum gd_cann_io io;
    uint32_t index;
    int32_t hint;
};

static void later_free(void *ctx)
{
    struct later *later = ctx;

    gd_disk_unref(later->disk);
    free(later);
}

static int later_open(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    struct later *later = ctx;
    const struct gd_cann_tensor *tensor;
    struct gd_cann_file *file;
    int rc = gd_cann_read(later->disk, &file, err);

    if (rc != GD_OK) {
        return rc;
    }
    tensor = gd_cann_find(file, later->io, later->index);
    rc = tensor ? gd_cann_source(later->disk, file, tensor, later->hint, -1, ret, err)
                : gd_fail(err, GD_EPROTO, "%.300s no longer has %s %u", gd_disk_path(later->disk),
                          gd_cann_io_name(later->io), later->index);
    gd_cann_free(file);
    return rc;
}

int gd_cann_source_lazy(struct gd_disk *disk, enum gd_cann_io io, uint32_t index, int32_t hint,
                        struct gd_source **ret, struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = later_open, .free_ctx = later_free};
    struct later *later = calloc(1, sizeof(*later));

    if (!later) {
        return gd_fail_nomem(err);
    }
    *later = (struct later){gd_disk_ref(disk), io, index, hint};
    return gd_source_create_lazy(&ops, later, ret, err);
}

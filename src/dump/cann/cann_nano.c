// SPDX-License-Identifier: GPL-3.0-or-later
/* The nano layout: its description consists of tags and lengths, and types are numbered as in the
 * runtime. */
#include <string.h>

#include "dump/cann/cann_container_impl.h"
#include "dump/cann/cann_types.h"

#define TAG_INPUTS  4
#define TAG_OUTPUTS 5
#define MIN_ENTRY   40 /* bytes of an input, without its list */

struct cursor {
    const unsigned char *at, *end;
    bool bad; /* the bytes ended early */
};

static uint64_t take_number(struct cursor *cursor, size_t bytes)
{
    uint64_t value = 0;

    if ((size_t)(cursor->end - cursor->at) < bytes) {
        cursor->bad = true;
        cursor->at = cursor->end;
        return 0;
    }
    memcpy(&value, cursor->at, bytes); /* little-endian hosts only, like tensors */
    cursor->at += bytes;
    return value;
}

static int32_t signed_number(struct cursor *cursor)
{
    return (int32_t)(uint32_t)take_number(cursor, 4);
}

/* Returns a part of `len` bytes and moves the cursor past it. */
static struct cursor take_part(struct cursor *cursor, uint64_t len)
{
    struct cursor inner = {cursor->at, cursor->at, false};

    if ((uint64_t)(cursor->end - cursor->at) < len) {
        cursor->bad = true;
        cursor->at = cursor->end;
    } else {
        cursor->at += len;
        inner.end = cursor->at;
    }
    return inner;
}

static bool take_dims(struct cursor *list, struct gd_shape *shape, bool *has)
{
    uint64_t dim[GD_MAX_RANK];
    size_t count = (size_t)(list->end - list->at) / 8;

    if (count > GD_MAX_RANK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        dim[i] = take_number(list, 8);
    }
    return cann_set_shape(shape, has, dim, count);
}

static void take_list(struct gd_cann_file *file, struct cursor *list, struct gd_cann_tensor *tensor)
{
    while (!list->bad && list->at < list->end) {
        uint32_t tag = (uint32_t)take_number(list, 4);
        uint32_t len = (uint32_t)take_number(list, 4);
        struct cursor inner = take_part(list, len);
        const char *name;

        if (tag == 0 && !take_dims(&inner, &tensor->shape, &tensor->has_shape)) {
            tensor->bad_shape = true;
        } else if (tag == 1 && !take_dims(&inner, &tensor->original, &tensor->has_original)) {
            tensor->bad_shape = true;
        } else if (tag == 2 && inner.end > inner.at) {
            name = gd_arena_strndup(&file->arena, (const char *)inner.at,
                                    (size_t)(inner.end - inner.at));
            tensor->original_op = name ? name : "";
        }
    }
}

static void take_entry(struct gd_cann_file *file, struct cursor *cursor, enum gd_cann_io io)
{
    struct gd_cann_tensor *tensor = &file->tensor[file->count];
    struct cursor list;
    int32_t format;

    *tensor = (struct gd_cann_tensor){
        .io = io, .index = file->count_of[io], .original_op = "", .original_format = -1};
    tensor->data_type = gd_cann_type_of_runtime(signed_number(cursor));
    format = signed_number(cursor);
    tensor->format = format & 0xff;
    tensor->group = ((uint32_t)format & 0xffff00u) >> 8;
    take_number(cursor, 4); /* type of the address */
    if (io == GD_CANN_OUTPUT) {
        tensor->original_output = (uint32_t)take_number(cursor, 4);
        take_number(cursor, 4); /* original type */
        tensor->original_format = signed_number(cursor) & 0xff;
    }
    take_number(cursor, 8); /* address */
    take_number(cursor, 8); /* offset; ignored, because the bytes are consecutive anyway */
    tensor->size = take_number(cursor, 8);
    list = take_part(cursor, take_number(cursor, 4));
    take_list(file, &list, tensor);
    cursor->bad = cursor->bad || list.bad;
    if (!cursor->bad) {
        file->count++;
        file->count_of[io]++;
    }
}

static int take_entries(struct gd_cann_file *file, struct cursor *cursor, enum gd_cann_io io,
                        struct gd_err *err)
{
    uint64_t count = take_number(cursor, 4);
    size_t room = (size_t)(cursor->end - cursor->at) / MIN_ENTRY;
    struct gd_cann_tensor *grown;

    if (cursor->bad || count > room) {
        return gd_fail(err, GD_EPROTO, "its nano description is too short for %llu %ss",
                       (unsigned long long)count, gd_cann_io_name(io));
    }
    grown = gd_arena_alloc(&file->arena, (file->count + (size_t)count + 1) * sizeof(*grown));
    if (!grown) {
        return gd_fail(err, GD_ELIMIT, "its description would take too much memory");
    }
    if (file->count > 0) {
        memcpy(grown, file->tensor, file->count * sizeof(*grown));
    }
    file->tensor = grown;
    for (uint64_t i = 0; i < count && !cursor->bad; i++) {
        take_entry(file, cursor, io);
    }
    return cursor->bad ? gd_fail(err, GD_EPROTO, "its nano description ends within an %s",
                                 gd_cann_io_name(io))
                       : GD_OK;
}

int cann_read_nano(struct gd_cann_file *file, const unsigned char *header, size_t len,
                   struct gd_err *err)
{
    struct cursor cursor = {header, header + len, false};
    int rc = GD_OK;

    take_number(&cursor, 4); /* the magic */
    take_number(&cursor, 4); /* version */
    file->layout = GD_CANN_NANO;
    for (int i = 0; i < 2 && rc == GD_OK && cursor.at < cursor.end; i++) {
        uint32_t tag = (uint32_t)take_number(&cursor, 4);
        uint32_t size = (uint32_t)take_number(&cursor, 4);
        struct cursor inner = take_part(&cursor, size);

        if (cursor.bad || (tag != TAG_INPUTS && tag != TAG_OUTPUTS) ||
            (tag == TAG_INPUTS && file->count > 0)) {
            return gd_fail(err, GD_EPROTO, "its nano description must have inputs, then outputs");
        }
        rc = take_entries(file, &inner, tag == TAG_INPUTS ? GD_CANN_INPUT : GD_CANN_OUTPUT, err);
    }
    return rc;
}

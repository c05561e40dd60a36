// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_ckpt_record.h"

#include <string.h>

#include "mindspore/pbread.h"

#define MAX_VARINT 10 /* bytes */

struct field {
    uint32_t number;
    enum gd_pb_wire wire;
    uint64_t value;    /* of a varint */
    uint64_t at, size; /* of bytes */
};

static int fail_broken(const struct ms_reader *reader, uint64_t at, const char *why,
                       struct gd_err *err)
{
    gd_fail(err, GD_EPROTO, "%.300s: byte %llu: %s", gd_disk_path(reader->disk),
            (unsigned long long)at, why);
    if (err) {
        err->offset = (size_t)at;
    }
    return GD_EPROTO;
}

void ms_reader_init(struct ms_reader *reader, struct gd_disk *disk)
{
    reader->disk = disk;
    reader->size = gd_disk_size(disk);
    reader->at = 0;
    reader->have = 0;
}

/* Makes at least `size` bytes (at most the window) at `at` readable; they are in the file. */
static int look_at(struct ms_reader *reader, uint64_t at, size_t size, const unsigned char **ret,
                   struct gd_err *err)
{
    if (at < reader->at || at - reader->at > reader->have ||
        size > reader->have - (size_t)(at - reader->at)) {
        uint64_t left = reader->size - at;
        size_t want = left < MS_WINDOW ? (size_t)left : MS_WINDOW;
        int rc;

        reader->have = 0;
        rc = gd_disk_read(reader->disk, at, reader->window, want, err);
        if (rc != GD_OK) {
            return rc;
        }
        reader->at = at;
        reader->have = want;
    }
    *ret = reader->window + (at - reader->at);
    return GD_OK;
}

/* *at: after the number, or the end if it is truncated. */
static int read_varint(struct ms_reader *reader, uint64_t *at, uint64_t end, uint64_t *ret,
                       struct gd_err *err)
{
    uint64_t begin = *at;
    size_t size = end - begin < MAX_VARINT ? (size_t)(end - begin) : MAX_VARINT;
    const unsigned char *bytes = NULL;
    int rc = look_at(reader, begin, size, &bytes, err);
    struct gd_pb pb = gd_pb_init(bytes, rc == GD_OK ? size : 0);

    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_pb_varint(&pb, ret) && size < MAX_VARINT) {
        *at = end;
        return fail_broken(reader, begin, "a truncated number", err);
    }
    *at += (size_t)(pb.at - bytes);
    if (pb.bad || (*at - begin == MAX_VARINT && bytes[MAX_VARINT - 1] > 1)) {
        return fail_broken(reader, begin, "a number of more than 64 bits", err);
    }
    return GD_OK;
}

/* Reads the next field of the message that ends at `end`; skips its content. */
static int next_field(struct ms_reader *reader, uint64_t *at, uint64_t end, struct field *ret,
                      struct gd_err *err)
{
    uint64_t key, begin = *at;
    int rc = read_varint(reader, at, end, &key, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_pb_is_number(key >> 3)) {
        return fail_broken(reader, begin, "an invalid field number", err);
    }
    *ret = (struct field){.number = (uint32_t)(key >> 3), .wire = (enum gd_pb_wire)(key & 7)};
    switch (ret->wire) {
    case GD_PB_VARINT: return read_varint(reader, at, end, &ret->value, err);
    case GD_PB_FIXED64: ret->size = 8; break;
    case GD_PB_FIXED32: ret->size = 4; break;
    case GD_PB_BYTES: rc = read_varint(reader, at, end, &ret->size, err); break;
    default: return fail_broken(reader, begin, "a field type that protobuf 3 does not have", err);
    }
    if (rc == GD_OK && ret->size > end - *at) {
        rc = fail_broken(reader, begin, "a field that exceeds its message", err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    ret->at = *at;
    *at += ret->size;
    return GD_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int add_dim(struct ms_reader *reader, uint64_t at, uint64_t dim, struct gd_shape *shape,
                   struct gd_err *err)
{
    if (shape->rank == GD_MAX_RANK) {
        return fail_broken(reader, at, "a tensor with more than 32 dimensions", err);
    }
    if (dim > INT64_MAX) {
        return fail_broken(reader, at, "a tensor with a negative dimension", err);
    }
    shape->dim[shape->rank++] = (int64_t)dim;
    return GD_OK;
}

static int read_dims(struct ms_reader *reader, const struct field *field, struct gd_shape *shape,
                     struct gd_err *err)
{
    uint64_t at = field->at, dim;
    int rc = GD_OK;

    if (field->wire == GD_PB_VARINT) {
        return add_dim(reader, field->at, field->value, shape, err);
    }
    while (rc == GD_OK && at < field->at + field->size) { /* packed */
        rc = read_varint(reader, &at, field->at + field->size, &dim, err);
        rc = rc != GD_OK ? rc : add_dim(reader, field->at, dim, shape, err);
    }
    return rc;
}

static int read_text(struct ms_reader *reader, const struct field *field, char *out, size_t most,
                     struct gd_err *err)
{
    size_t size = field->size < most ? (size_t)field->size : most;
    const unsigned char *bytes;
    int rc = GD_OK;

    out[size] = '\0';
    for (size_t done = 0; rc == GD_OK && done < size;) {
        size_t some = size - done < MS_WINDOW ? size - done : MS_WINDOW;

        rc = look_at(reader, field->at + done, some, &bytes, err);
        if (rc == GD_OK) {
            memcpy(out + done, bytes, some);
            done += some;
        }
    }
    return rc;
}

static int read_tensor_field(struct ms_reader *reader, const struct field *field,
                             struct ms_tensor *ret, struct gd_err *err)
{
    bool bytes = field->wire == GD_PB_BYTES;

    if (field->number == 1 && (bytes || field->wire == GD_PB_VARINT)) {
        return read_dims(reader, field, &ret->shape, err);
    }
    if (field->number == 2 && bytes) {
        ret->has_type = true;
        return read_text(reader, field, ret->type, MS_MAX_TYPE, err);
    }
    if (field->number == 3 && bytes) {
        ret->has_content = true;
        ret->at = field->at;
        ret->size = field->size;
        return GD_OK;
    }
    return field->number <= 3
               ? fail_broken(reader, field->at, "a tensor field of the wrong type", err)
               : GD_OK;
}

static int read_tensor(struct ms_reader *reader, const struct field *message, struct ms_tensor *ret,
                       struct gd_err *err)
{
    uint64_t at = message->at, end = message->at + message->size;
    int rc = GD_OK;

    memset(ret, 0, sizeof(*ret));
    while (rc == GD_OK && at < end) {
        struct field field;

        rc = next_field(reader, &at, end, &field, err);
        rc = rc != GD_OK ? rc : read_tensor_field(reader, &field, ret, err);
    }
    if (rc == GD_OK && (!ret->has_type || !ret->has_content)) {
        rc = fail_broken(reader, message->at,
                         ret->has_type ? "a tensor without content" : "a tensor without a type",
                         err);
    }
    return rc;
}

static int read_map(struct ms_reader *reader, const struct field *message, struct ms_record *ret,
                    struct gd_err *err)
{
    uint64_t at = message->at, end = message->at + message->size;
    int rc = GD_OK;

    while (rc == GD_OK && at < end) {
        struct field field;

        rc = next_field(reader, &at, end, &field, err);
        if (rc != GD_OK || field.number != 1) {
            continue;
        }
        if (field.wire != GD_PB_BYTES || ret->map_count == MS_MAP_TENSORS) {
            return fail_broken(reader, field.at, "a map with more than keys, values and status",
                               err);
        }
        rc = read_tensor(reader, &field, &ret->map[ret->map_count++], err);
    }
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

static int read_record_field(struct ms_reader *reader, const struct field *field,
                             struct ms_record *ret, struct gd_err *err)
{
    if (field->number > 3) {
        return GD_OK;
    }
    if (field->wire != GD_PB_BYTES) {
        return fail_broken(reader, field->at, "a record field of the wrong type", err);
    }
    if (field->number == 1) {
        ret->has_tag = true;
        ret->tag_len = field->size < UINT32_MAX ? (uint32_t)field->size : UINT32_MAX;
        return read_text(reader, field, ret->tag, MS_MAX_TAG, err);
    }
    if (ret->has_tensor || ret->has_map) {
        return fail_broken(reader, field->at, "a record with two values", err);
    }
    if (field->number == 2) {
        ret->has_tensor = true;
        return read_tensor(reader, field, &ret->tensor, err);
    }
    ret->has_map = true;
    return read_map(reader, field, ret, err);
}

/* Finds the record; the message around it has no other fields. */
static int find_record(struct ms_reader *reader, uint64_t *at, struct ms_record *ret, bool *cut,
                       struct gd_err *err)
{
    uint64_t begin = *at, key, size;
    int rc = read_varint(reader, at, reader->size, &key, err);

    *cut = false;
    if (rc == GD_OK && key != (1 << 3 | GD_PB_BYTES)) {
        return fail_broken(reader, begin, "a record of a checkpoint was expected", err);
    }
    rc = rc != GD_OK ? rc : read_varint(reader, at, reader->size, &size, err);
    *cut = rc != GD_OK && *at >= reader->size;
    if (rc != GD_OK) {
        return rc;
    }
    if (size > reader->size - *at) {
        *cut = true;
        return gd_fail(err, GD_EPROTO,
                       "%.300s: byte %llu: a record of %llu bytes begins here, but the file ends "
                       "after %llu: it was not written completely",
                       gd_disk_path(reader->disk), (unsigned long long)begin,
                       (unsigned long long)size, (unsigned long long)(reader->size - *at));
    }
    ret->begin = begin;
    ret->end = *at + size;
    return GD_OK;
}

int ms_read_record(struct ms_reader *reader, uint64_t at, struct ms_record *ret, bool *cut,
                   struct gd_err *err)
{
    int rc = find_record(reader, &at, ret, cut, err);

    ret->has_tag = ret->has_tensor = ret->has_map = false;
    ret->map_count = 0;
    ret->tag_len = 0;
    ret->tag[0] = '\0';
    while (rc == GD_OK && at < ret->end) {
        struct field field;

        rc = next_field(reader, &at, ret->end, &field, err);
        rc = rc != GD_OK ? rc : read_record_field(reader, &field, ret, err);
    }
    return rc;
}

// SPDX-License-Identifier: MIT
/*
 * Reads protobuf bytes field by field, without a schema and without allocating: for messages too
 * large, or nested too deeply by a hostile sender, to be unpacked into structs.
 *
 * A reader walks one message. Fields come in byte order; a field of wire type 2 gives a pointer
 * into the bytes. Skipping unknown fields is up to the caller and costs nothing.
 */
#ifndef GD_PROTO_PBREAD_H
#define GD_PROTO_PBREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum gd_pb_wire { GD_PB_VARINT = 0, GD_PB_FIXED64 = 1, GD_PB_BYTES = 2, GD_PB_FIXED32 = 5 };

struct gd_pb {
    const uint8_t *at;
    const uint8_t *end;
    bool bad; /* the bytes are broken; gd_pb_next has returned false */
};

struct gd_pb_field {
    uint32_t number;
    enum gd_pb_wire wire;
    uint64_t value;      /* VARINT; raw bits of FIXED32 and FIXED64 */
    const uint8_t *data; /* BYTES */
    size_t len;
};

static inline struct gd_pb gd_pb_init(const uint8_t *data, size_t len)
{
    struct gd_pb reader = {data, len ? data + len : data, false};
    return reader;
}

/* False if the bytes end inside it or it is longer than ten bytes. */
static inline bool gd_pb_varint(struct gd_pb *reader, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    reader->bad = true;
    return false;
}

static inline bool gd_pb_is_number(uint64_t number)
{
    return number > 0 && number <= 0x1fffffff;
}

static inline bool gd_pb_take(struct gd_pb *reader, uint64_t len, const uint8_t **ret)
{
    if ((uint64_t)(reader->end - reader->at) < len) {
        reader->bad = true;
        return false;
    }
    *ret = reader->at;
    reader->at += len;
    return true;
}

/* Reads the next field; false at the end and, with reader->bad, on an error. */
static inline bool gd_pb_next(struct gd_pb *reader, struct gd_pb_field *ret)
{
    uint64_t key;
    if (reader->bad || reader->at == reader->end || !gd_pb_varint(reader, &key)) {
        return false;
    }
    *ret = (struct gd_pb_field){.number = (uint32_t)(key >> 3), .wire = (enum gd_pb_wire)(key & 7)};
    if (!gd_pb_is_number(key >> 3)) {
        reader->bad = true;
        return false;
    }
    uint64_t len = 0;
    switch (key & 7) {
    case GD_PB_VARINT: return gd_pb_varint(reader, &ret->value);
    case GD_PB_BYTES:
        if (!gd_pb_varint(reader, &len) || !gd_pb_take(reader, len, &ret->data)) {
            return false;
        }
        ret->len = (size_t)len;
        return true;
    case GD_PB_FIXED32:
    case GD_PB_FIXED64:
        ret->len = (key & 7) == GD_PB_FIXED32 ? 4 : 8;
        if (!gd_pb_take(reader, ret->len, &ret->data)) {
            return false;
        }
        memcpy(&ret->value, ret->data, ret->len); /* little-endian hosts only, like tensors */
        return true;
    default: /* groups were never used */ reader->bad = true; return false;
    }
}

/* Reads on to the next field of that number and wire type. */
static inline bool gd_pb_find(struct gd_pb *reader, uint32_t number, enum gd_pb_wire wire,
                              struct gd_pb_field *ret)
{
    while (gd_pb_next(reader, ret)) {
        if (ret->number == number && ret->wire == wire) {
            return true;
        }
    }
    return false;
}

static inline double gd_pb_double(const struct gd_pb_field *field)
{
    double value;
    memcpy(&value, &field->value, sizeof(value));
    return value;
}

static inline float gd_pb_float(const struct gd_pb_field *field)
{
    float value;
    uint32_t bits = (uint32_t)field->value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Iterates over the integers of one occurrence of a repeated field, packed or not: start with *at =
 * 0 and continue while it returns true. Marks reader, which the field came from, as bad if packed
 * bytes are broken. */
static inline bool gd_pb_integers(struct gd_pb *reader, const struct gd_pb_field *field, size_t *at,
                                  int64_t *ret)
{
    if (field->wire == GD_PB_VARINT) {
        *ret = (int64_t)field->value;
        return (*at)++ == 0;
    }
    if (field->wire != GD_PB_BYTES || *at >= field->len) {
        return false;
    }
    struct gd_pb packed = gd_pb_init(field->data + *at, field->len - *at);
    uint64_t value;
    if (!gd_pb_varint(&packed, &value)) {
        reader->bad = true;
        return false;
    }
    *at = (size_t)(packed.at - field->data);
    *ret = (int64_t)value;
    return true;
}

#endif

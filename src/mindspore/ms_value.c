// SPDX-License-Identifier: GPL-3.0-or-later
#include "mindspore/ms_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH      8
#define MAX_TYPE_DEPTH 32

enum { /* DataType numbers used here */
       MS_BOOL = 1,
       MS_STRING = 13,
       MS_TUPLE = 31,
       MS_BFLOAT16 = 46,
};

enum gd_dtype gd_ms_dtype(int64_t wire)
{
    if (wire >= MS_BOOL && wire <= MS_STRING) {
        return (enum gd_dtype)wire; /* numbered as in the engine */
    }
    return wire == MS_BFLOAT16 ? GD_BFLOAT16 : GD_DT_NONE;
}

/* Writes the shortest decimal that reads back as the same double, or float if `single`. */
static void put_real(struct gd_buf *out, double value, bool single)
{
    char text[40];
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) {
            break;
        }
    }
    gd_buf_puts(out, isnan(value) ? "nan" : text);
}

/* A dimension, or -1 if unknown. Those after GD_MAX_RANK are only counted. */
static void add_dim(struct gd_shape *shape, int64_t dim)
{
    if (shape->rank < GD_MAX_RANK) {
        shape->dim[shape->rank] = dim < -1 ? -1 : dim;
    }
    shape->rank += shape->rank <= GD_MAX_RANK;
}

/* No framework has more dimensions: they are shown as one unknown dimension. */
static void end_shape(struct gd_shape *shape)
{
    if (shape->rank > GD_MAX_RANK) {
        shape->rank = 1;
        shape->dim[0] = -1;
    }
}

/* dims (4) and data_type (5) of a TensorProto. */
static bool read_tensor(const uint8_t *data, size_t len, struct gd_output *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        int64_t dim;
        if (field.number == 4) {
            for (size_t at = 0; gd_pb_integers(&reader, &field, &at, &dim);) {
                add_dim(&ret->shape, dim);
            }
        } else if (field.number == 5) {
            ret->dtype = gd_ms_dtype((int64_t)field.value);
        }
    }
    end_shape(&ret->shape);
    return !reader.bad;
}

static bool put_tensor(const uint8_t *data, size_t len, struct gd_buf *out)
{
    struct gd_output output;
    if (!read_tensor(data, len, &output)) {
        return false;
    }
    char shape[256];
    gd_buf_printf(out, "Tensor(%s, %s)", gd_dtype_name(output.dtype),
                  gd_shape_text(&output.shape, shape, sizeof(shape)));
    return true;
}

static bool put_type(const uint8_t *data, size_t len, struct gd_buf *out)
{
    struct gd_output output;
    uint32_t count;
    if (!gd_ms_type_outputs(data, len, &output, 1, &count)) {
        return false;
    }
    gd_buf_puts(out, gd_dtype_name(output.dtype));
    return true;
}

static bool put_value(const uint8_t *data, size_t len, struct gd_buf *out, int depth);

static bool put_pair(const uint8_t *data, size_t len, struct gd_buf *out, int depth)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1 && field.wire == GD_PB_BYTES) {
            gd_buf_add(out, field.data, field.len);
            gd_buf_puts(out, ": ");
        } else if (field.number == 2 && field.wire == GD_PB_BYTES) {
            if (!put_value(field.data, field.len, out, depth)) {
                return false;
            }
        }
    }
    return !reader.bad;
}

/* All numbers in one occurrence of a repeated field, packed or not. */
static void put_numbers(struct gd_pb *reader, const struct gd_pb_field *field, struct gd_buf *out)
{
    size_t at = 0;
    if (field->number == 13 || field->number == 14) {
        size_t item = field->number == 13 ? 4 : 8;
        for (; at + item <= field->len; at += item) {
            struct gd_pb_field one = {.value = 0};
            memcpy(&one.value, field->data + at, item);
            gd_buf_puts(out, at ? ", " : "");
            put_real(out, item == 4 ? (double)gd_pb_float(&one) : gd_pb_double(&one), item == 4);
        }
        return;
    }
    int64_t value;
    for (bool first = true; gd_pb_integers(reader, field, &at, &value); first = false) {
        gd_buf_puts(out, first ? "" : ", ");
        if (field->number == 10) {
            gd_buf_puts(out, value ? "True" : "False");
        } else if (field->number == 12) {
            gd_buf_printf(out, "%" PRIu64, (uint64_t)value);
        } else {
            gd_buf_printf(out, "%" PRId64, value);
        }
        if (out->failed) {
            return;
        }
    }
}

static bool put_single(struct gd_pb *reader, const struct gd_pb_field *field, struct gd_buf *out,
                       int depth)
{
    switch (field->number) {
    case 2: gd_buf_puts(out, field->value ? "True" : "False"); return true;
    case 3: gd_buf_printf(out, "%" PRId64, (int64_t)field->value); return true;
    case 4: gd_buf_printf(out, "%" PRIu64, field->value); return true;
    case 5: put_real(out, (double)gd_pb_float(field), true); return true;
    case 6: put_real(out, gd_pb_double(field), false); return true;
    case 7:
    case 15: gd_buf_add(out, field->data, field->len); return true;
    case 8:
    case 16: return put_tensor(field->data, field->len, out);
    case 9:
    case 17: gd_buf_puts(out, "<graph>"); return true;
    case 18: return put_value(field->data, field->len, out, depth);
    case 19: return put_pair(field->data, field->len, out, depth);
    case 20: return put_type(field->data, field->len, out);
    default: put_numbers(reader, field, out); return true;
    }
}

static bool wire_fits(const struct gd_pb_field *field)
{
    switch (field->number) {
    case 2:
    case 3:
    case 4: return field->wire == GD_PB_VARINT;
    case 5: return field->wire == GD_PB_FIXED32;
    case 6: return field->wire == GD_PB_FIXED64;
    case 10:
    case 11:
    case 12: return field->wire == GD_PB_VARINT || field->wire == GD_PB_BYTES;
    case 13: return field->wire == GD_PB_FIXED32 || field->wire == GD_PB_BYTES;
    case 14: return field->wire == GD_PB_FIXED64 || field->wire == GD_PB_BYTES;
    default: return field->number >= 7 && field->number <= 20 && field->wire == GD_PB_BYTES;
    }
}

static char bracket_char(int64_t dtype, bool pairs, bool open)
{
    return (pairs ? "{}" : dtype == MS_TUPLE ? "()" : "[]")[open ? 0 : 1];
}

static bool put_value(const uint8_t *data, size_t len, struct gd_buf *out, int depth)
{
    if (depth > MAX_DEPTH) {
        gd_buf_puts(out, "...");
        return true;
    }
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    int64_t dtype = 0;
    bool many = false, pairs = false;
    uint32_t count = 0;
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1) {
            dtype = (int64_t)field.value;
            continue;
        }
        if (!wire_fits(&field)) {
            continue;
        }
        bool repeated = field.number >= 10 && field.number <= 19;
        if (repeated && !many) {
            many = true;
            pairs = field.number == 19;
            gd_buf_putc(out, bracket_char(dtype, pairs, true));
        }
        if (count++) {
            gd_buf_puts(out, ", ");
        }
        if (!put_single(&reader, &field, out, depth + 1)) {
            return false;
        }
        if (out->failed) { /* too long to show: skip the rest */
            return true;
        }
    }
    if (many) {
        gd_buf_putc(out, bracket_char(dtype, pairs, false));
    } else if (!count && dtype >= 16 && dtype <= 32) {
        gd_buf_puts(out, dtype == MS_TUPLE ? "()" : "[]"); /* an empty list */
    }
    return !reader.bad;
}

bool gd_ms_value_text(const uint8_t *data, size_t len, struct gd_buf *out)
{
    return put_value(data, len, out, 0);
}

bool gd_ms_value_output(const uint8_t *data, size_t len, struct gd_output *ret, bool *is_int,
                        int64_t *integer)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    *is_int = false;
    bool tensor = false;
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1 && !tensor) {
            ret->dtype = gd_ms_dtype((int64_t)field.value);
        } else if ((field.number == 3 || field.number == 4) && field.wire == GD_PB_VARINT) {
            *is_int = true;
            *integer = (int64_t)field.value;
        } else if (field.number == 8 && field.wire == GD_PB_BYTES) {
            tensor = true;
            if (!read_tensor(field.data, field.len, ret)) {
                return false;
            }
        }
    }
    return !reader.bad;
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool read_shape(const uint8_t *data, size_t len, struct gd_shape *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    ret->rank = 0;
    while (gd_pb_find(&reader, 1, GD_PB_BYTES, &field)) {
        struct gd_pb dim = gd_pb_init(field.data, field.len);
        struct gd_pb_field part;
        int64_t size = 0;
        while (gd_pb_find(&dim, 1, GD_PB_VARINT, &part)) {
            size = (int64_t)part.value;
        }
        if (dim.bad) {
            return false;
        }
        add_dim(ret, size);
    }
    end_shape(ret);
    return !reader.bad;
}

static bool read_tensor_type(const uint8_t *data, size_t len, struct gd_output *ret)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1) {
            ret->dtype = gd_ms_dtype((int64_t)field.value);
        } else if (field.number == 2 && field.wire == GD_PB_BYTES &&
                   !read_shape(field.data, field.len, &ret->shape)) {
            return false;
        }
    }
    return !reader.bad;
}

struct slots {
    struct gd_output *outputs;
    uint32_t max, count;
};

static bool read_type(const uint8_t *data, size_t len, struct slots *slots, int depth);

static bool read_sequence(const uint8_t *data, size_t len, struct slots *slots, int depth)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_find(&reader, 1, GD_PB_BYTES, &field)) {
        if (depth < MAX_TYPE_DEPTH && !read_type(field.data, field.len, slots, depth + 1)) {
            return false;
        }
    }
    return !reader.bad;
}

static bool read_type(const uint8_t *data, size_t len, struct slots *slots, int depth)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    struct gd_output output;
    memset(&output, 0, sizeof(output));
    bool sequence = false;
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1) {
            output.dtype = gd_ms_dtype((int64_t)field.value);
            /* Some releases send an empty tuple without a sequence_type. */
            sequence = sequence || field.value == 31 || field.value == 32;
        } else if (field.number == 2 && field.wire == GD_PB_BYTES) {
            if (!read_tensor_type(field.data, field.len, &output)) {
                return false;
            }
        } else if (field.number == 3 && field.wire == GD_PB_BYTES) {
            sequence = true;
            if (!read_sequence(field.data, field.len, slots, depth)) {
                return false;
            }
        }
    }
    if (!sequence && slots->count < slots->max) {
        slots->outputs[slots->count++] = output;
    }
    return !reader.bad;
}

bool gd_ms_type_outputs(const uint8_t *data, size_t len, struct gd_output *outputs, uint32_t max,
                        uint32_t *ret)
{
    struct slots slots = {outputs, max, 0};
    if (max > 0) {
        memset(outputs, 0, sizeof(*outputs));
    }
    if (!read_type(data, len, &slots, 0)) {
        return false;
    }
    *ret = slots.count;
    return true;
}

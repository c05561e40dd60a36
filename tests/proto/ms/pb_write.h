// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Protobuf bytes by hand, so that tests can build messages right, wrong, and in any order.
 */
#ifndef TESTS_PROTO_PB_WRITE_H
#define TESTS_PROTO_PB_WRITE_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static inline void pb_varint(struct gd_buf *out, uint64_t value)
{
    while (value >= 0x80) {
        gd_buf_putc(out, (char)(value & 0x7f) | (char)0x80);
        value >>= 7;
    }
    gd_buf_putc(out, (char)value);
}

static inline void pb_int(struct gd_buf *out, unsigned field, uint64_t value)
{
    pb_varint(out, field << 3);
    pb_varint(out, value);
}

static inline void pb_bytes(struct gd_buf *out, unsigned field, const void *data, size_t len)
{
    pb_varint(out, field << 3 | 2);
    pb_varint(out, len);
    gd_buf_add(out, data, len);
}

static inline void pb_text(struct gd_buf *out, unsigned field, const char *text)
{
    pb_bytes(out, field, text, strlen(text));
}

/* Moves a message that was built apart into its parent. */
static inline void pb_message(struct gd_buf *out, unsigned field, struct gd_buf *message)
{
    pb_bytes(out, field, gd_buf_text(message), message->len);
    gd_buf_deinit(message);
}

static inline void pb_double(struct gd_buf *out, unsigned field, double value)
{
    pb_varint(out, field << 3 | 1);
    gd_buf_add(out, &value, sizeof(value));
}

static inline void pb_float(struct gd_buf *out, unsigned field, float value)
{
    pb_varint(out, field << 3 | 5);
    gd_buf_add(out, &value, sizeof(value));
}

static inline struct gd_buf pb_tensor_type(int elem, const int64_t *dims, int rank)
{
    struct gd_buf shape = GD_BUF_INIT(4096), tensor = GD_BUF_INIT(4096), type = GD_BUF_INIT(4096);
    for (int i = 0; i < rank; i++) {
        struct gd_buf dim = GD_BUF_INIT(64);
        pb_int(&dim, 1, (uint64_t)dims[i]);
        pb_message(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, (uint64_t)elem);
    pb_message(&tensor, 2, &shape);
    pb_int(&type, 1, 14);
    pb_message(&type, 2, &tensor);
    return type;
}

/* inputs: names, ended by NULL. */
static inline struct gd_buf pb_node(const char *name, const char *type, const char *scope,
                                    const char *full_name, const char *const *inputs)
{
    struct gd_buf node = GD_BUF_INIT(1u << 20);
    for (; inputs && *inputs; inputs++) {
        struct gd_buf input = GD_BUF_INIT(4096);
        pb_text(&input, 1, *inputs);
        pb_int(&input, 2, 0);
        pb_message(&node, 1, &input);
    }
    pb_text(&node, 2, name);
    pb_text(&node, 3, type);
    pb_text(&node, 4, scope);
    pb_text(&node, 8, full_name);
    return node;
}

static inline struct gd_buf pb_parameter(const char *name, int elem, const int64_t *dims, int rank)
{
    struct gd_buf parameter = GD_BUF_INIT(8192), type = pb_tensor_type(elem, dims, rank);
    pb_text(&parameter, 1, name);
    pb_message(&parameter, 2, &type);
    return parameter;
}

#endif

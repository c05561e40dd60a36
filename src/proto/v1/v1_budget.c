// SPDX-License-Identifier: GPL-3.0-or-later
/* What unpacking a message would cost, computed from its bytes and its descriptor. */
#include "proto/v1/v1_impl.h"

#define MAX_DEPTH   64
#define MEMBER_COST 64 /* bytes that protobuf-c uses per member while it unpacks a message */
#define FREE_COUNT  16 /* members whose bookkeeping is on its stack */

struct reader {
    const uint8_t *at, *end;
};

static bool read_varint(struct reader *r, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
        uint8_t byte = *r->at++;
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

static bool skip_field(struct reader *r, uint64_t len)
{
    if (len > (uint64_t)(r->end - r->at)) {
        return false;
    }
    r->at += len;
    return true;
}

/* False: the budget is exhausted. */
static bool spend_bytes(struct v1_budget *budget, size_t elements, size_t bytes)
{
    if (elements > budget->elements || bytes > budget->bytes) {
        return false;
    }
    budget->elements -= elements;
    budget->bytes -= bytes;
    return true;
}

static bool count_element(struct v1_budget *budget, const ProtobufCMessageDescriptor *type,
                          struct reader r, unsigned depth);

/* A string, bytes, a message, or packed numbers, each of which takes at most eight bytes. */
static bool count_block(struct v1_budget *budget, const ProtobufCFieldDescriptor *field,
                        struct reader block, unsigned depth)
{
    size_t len = (size_t)(block.end - block.at);
    if (!field) {
        return spend_bytes(budget, 1, sizeof(ProtobufCMessageUnknownField) + len);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessageDescriptor *type = field->descriptor;
        return spend_bytes(budget, 1, type->sizeof_message + sizeof(void *)) &&
               count_element(budget, type, block, depth + 1);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES) {
        return spend_bytes(budget, 1, len + 1 + sizeof(ProtobufCBinaryData));
    }
    return spend_bytes(budget, 1, 8 * len);
}

/* Malformed elements cost nothing: unpacking refuses them. */
static bool count_element(struct v1_budget *budget, const ProtobufCMessageDescriptor *type,
                          struct reader r, unsigned depth)
{
    static const uint64_t fixed[] = {[1] = 8, [5] = 4};
    size_t members = 0;
    uint64_t tag, len;
    while (r.at < r.end && read_varint(&r, &tag)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
            type, tag >> 3 > UINT32_MAX ? 0 : (unsigned)(tag >> 3));
        unsigned kind = tag & 7;
        if (++members > FREE_COUNT && !spend_bytes(budget, 0, MEMBER_COST)) {
            return false;
        }
        if (kind == 2) {
            if (!read_varint(&r, &len)) {
                return true;
            }
            struct reader block = {r.at, NULL};
            if (!skip_field(&r, len)) {
                return true;
            }
            block.end = r.at;
            if (depth >= MAX_DEPTH || !count_block(budget, field, block, depth)) {
                return false;
            }
        } else if (!spend_bytes(budget, 0, field ? 8 : sizeof(ProtobufCMessageUnknownField) + 10)) {
            return false;
        } else if (kind == 0 ? !read_varint(&r, &len)
                             : kind > 5 || fixed[kind] == 0 || !skip_field(&r, fixed[kind])) {
            return true;
        }
    }
    return true;
}

bool v1_budget_suffices(struct v1_budget budget, const ProtobufCMessageDescriptor *type,
                        const uint8_t *data, size_t len)
{
    return spend_bytes(&budget, 1, type->sizeof_message) &&
           count_element(&budget, type, (struct reader){data, data + len}, 0);
}

// SPDX-License-Identifier: MIT
/*
 * gradb.v1 sends every message inside an envelope, a FromTrainer or a ToTrainer. No two members of
 * an envelope have the same type, so the message itself says which member it is.
 */
#ifndef GD_PROTO_ENVELOPE_H
#define GD_PROTO_ENVELOPE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Makes the message the content of an empty envelope, which refers to it. */
void gd_envelope_fill(ProtobufCMessage *envelope, const ProtobufCMessage *message);

/* The same, packed into *len bytes, which the caller frees. NULL: out of memory. */
unsigned char *gd_envelope_pack(ProtobufCMessage *envelope, const ProtobufCMessage *message,
                                size_t *len);

/* For a member that protobuf-c declares as char *, but only reads. */
static inline char *gd_envelope_text(const char *text)
{
    union {
        const char *in;
        char *out;
    } u = {.in = text};
    return u.out;
}

#endif

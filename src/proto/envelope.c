// SPDX-License-Identifier: MIT
#include "proto/envelope.h"

#include <stdlib.h>
#include <string.h>

void gd_envelope_fill(ProtobufCMessage *envelope, const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < envelope->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &envelope->descriptor->fields[i];
        if (field->descriptor == message->descriptor) {
            memcpy((char *)envelope + field->quantifier_offset, &field->id, sizeof(field->id));
            memcpy((char *)envelope + field->offset, &message, sizeof(message));
        }
    }
}

unsigned char *gd_envelope_pack(ProtobufCMessage *envelope, const ProtobufCMessage *message,
                                size_t *len)
{
    gd_envelope_fill(envelope, message);
    *len = protobuf_c_message_get_packed_size(envelope);
    unsigned char *data = malloc(*len ? *len : 1);
    if (data) {
        protobuf_c_message_pack(envelope, data);
    }
    return data;
}

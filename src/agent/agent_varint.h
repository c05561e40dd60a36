// SPDX-License-Identifier: MIT
/* Protobuf varints, for messages that are packed by hand. */
#ifndef AGENT_VARINT_H
#define AGENT_VARINT_H

#include <stdint.h>

#define AGENT_VARINT_MOST 10 /* maximum bytes of a number */

/* Writes a number; returns the end. */
static inline unsigned char *agent_put_varint(unsigned char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (unsigned char)value;
    return at;
}

#endif

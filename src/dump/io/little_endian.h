// SPDX-License-Identifier: GPL-3.0-or-later
/* Numbers in files. */
#ifndef GD_DUMP_LITTLE_ENDIAN_H
#define GD_DUMP_LITTLE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

/* An unsigned number of up to 8 bytes, least significant first. */
static inline uint64_t gd_little_endian(const unsigned char *bytes, size_t size)
{
    uint64_t value = 0;

    while (size-- > 0) {
        value = value << 8 | bytes[size];
    }
    return value;
}

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* The MD5 digest (RFC 1321), which other tools use for names and checksums.
 *
 * Eighty lines instead of a library: OpenSSL would be a large dependency for one legacy digest, and
 * libsodium has none. */
#ifndef GD_DUMP_MD5_H
#define GD_DUMP_MD5_H

#include <stddef.h>
#include <stdint.h>

struct gd_md5 {
    uint32_t state[4];
    uint64_t size; /* bytes so far */
    unsigned char block[64];
};

void gd_md5_begin(struct gd_md5 *md5);
void gd_md5_add(struct gd_md5 *md5, const void *data, size_t size);
void gd_md5_end(struct gd_md5 *md5, unsigned char ret[16]);

#endif

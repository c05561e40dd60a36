// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The checksum of a member too large to be read for it alone: computed from whatever is read, in
 * any pieces and order, and compared when all of it has been read once.
 *
 * Thread-safe.
 */
#ifndef GD_DUMP_FILES_ZIP_CHECK_H
#define GD_DUMP_FILES_ZIP_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip_check;

enum zip_verdict {
    ZIP_UNKNOWN = 0, /* not everything was read */
    ZIP_GOOD,
    ZIP_DAMAGED,
};

/* For content of `size` bytes with this CRC-32. NULL: out of memory. */
struct zip_check *zip_check_new(uint64_t size, uint32_t crc);
void zip_check_free(struct zip_check *check); /* NULL is fine */

/* Adds the bytes read at `at`. Parts already added are skipped. */
enum zip_verdict zip_check_piece(struct zip_check *check, uint64_t at, const void *data,
                                 size_t size);
/* The number of bytes at the beginning, if only those are missing; otherwise 0. */
uint64_t zip_check_missing_head(struct zip_check *check);

#endif

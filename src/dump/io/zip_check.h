// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The checksum of a member that is too large to be read for it alone: made up of what is read
 * anyway, in whatever pieces and order, and compared when all of it has been read once.
 *
 * Pieces are told from any thread.
 */
#ifndef GD_DUMP_FILES_ZIP_CHECK_H
#define GD_DUMP_FILES_ZIP_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip_check;

enum zip_verdict {
    ZIP_UNKNOWN = 0, /* not all of it was read */
    ZIP_GOOD,
    ZIP_DAMAGED,
};

/* Of a content of so many bytes with this CRC-32. NULL: out of memory. */
struct zip_check *zip_check_new(uint64_t size, uint32_t crc);
void zip_check_free(struct zip_check *check); /* NULL is fine */

/* These bytes lie at `at`. What overlaps with what was told before is left out. */
enum zip_verdict zip_check_piece(struct zip_check *check, uint64_t at, const void *data,
                                 size_t size);
/* So many bytes at the beginning are still to be told, and nothing else; 0: it is not so. */
uint64_t zip_check_missing_head(struct zip_check *check);
enum zip_verdict zip_check_verdict(struct zip_check *check);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads zip members as .npz and PyTorch need it: stored and deflated, zip64. Opening reads only the
 * central directory; a member's local header is read and checked against it on first use. Members
 * that overlap each other or the directory, encrypted members and multi-part files are refused.
 *
 * Not libzip or minizip: neither gives the file offset of a stored member, which is read in place
 * and in any order, and neither refuses overlapping members (zip bombs). Inflating and CRC are
 * zlib's.
 *
 * Reference counted. All functions are thread-safe.
 */
#ifndef GD_DUMP_ZIP_H
#define GD_DUMP_ZIP_H

#include "dump/io/bytes.h"
#include "dump/io/disk.h"

#define GD_ZIP_MAX_ENTRIES 1000000
#define GD_ZIP_MAX_NAME    4096
#define GD_ZIP_STORED      0
#define GD_ZIP_DEFLATED    8

struct gd_zip;

struct gd_zip_entry { /* from the central directory */
    const char *name; /* not empty, no NUL, unique; otherwise arbitrary bytes */
    uint64_t size;    /* uncompressed */
    uint64_t packed;  /* bytes in the file */
    uint64_t header;  /* offset of its local header */
    uint32_t crc;     /* of the uncompressed content; PyTorch may leave it 0 */
    uint16_t flags;
    uint16_t method; /* GD_ZIP_STORED, GD_ZIP_DEFLATED */
};

/* Whether a file that starts like this is a zip file. */
bool gd_zip_is(const unsigned char *start, size_t size);

/* GD_EPROTO: broken, with the byte; GD_EUNSUPPORTED: encrypted, or another compression method;
 * GD_ELIMIT. */
int gd_zip_open(struct gd_disk *disk, struct gd_zip **ret, struct gd_err *err);
struct gd_zip *gd_zip_ref(struct gd_zip *zip);
void gd_zip_unref(struct gd_zip *zip);

struct gd_disk *gd_zip_disk(const struct gd_zip *zip);
size_t gd_zip_count(const struct gd_zip *zip);
/* in directory order */
const struct gd_zip_entry *gd_zip_entry(const struct gd_zip *zip, size_t index);
const struct gd_zip_entry *gd_zip_find(const struct gd_zip *zip, const char *name); /* NULL: none */

/* Finds the offset of a stored member's content. Reads and checks the local header. */
int gd_zip_locate(struct gd_zip *zip, const struct gd_zip_entry *entry, uint64_t *ret,
                  struct gd_err *err);

/* Reads the first `size` bytes of the content; *got is less if the member is shorter. */
int gd_zip_head(struct gd_zip *zip, const struct gd_zip_entry *entry, void *ret, size_t size,
                size_t *got, struct gd_err *err);

/* The content; nothing is read yet. A deflated member is inflated as a whole on first use, to
 * exactly `size` bytes, and its CRC checked. The CRC of a stored member is checked if `check` is
 * set (PyTorch may write a wrong one): up to GD_ZIP_CHECKED bytes before the first read returns; of
 * a larger one when every byte has been read, in any pieces and order. The read that completes it
 * fails then, and every later one. */
#define GD_ZIP_CHECKED ((uint64_t)1 << 20)
int gd_zip_bytes(struct gd_zip *zip, const struct gd_zip_entry *entry, bool check,
                 struct gd_bytes **ret, struct gd_err *err);

#endif

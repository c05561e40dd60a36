// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The members of a zip file, as far as .npz and PyTorch need it: stored and deflated ones, zip64.
 * Only the central directory is read when it is opened; the local header of a member is read, and
 * checked against it, when its bytes are first wanted. Ranges of members do not overlap each other
 * or the directory. Encrypted members and files in several parts are refused.
 *
 * Reference counted. All functions may be called from any thread.
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

struct gd_zip_entry { /* as the central directory has it */
    const char *name; /* may be anything but empty; no NUL inside, no two are the same */
    uint64_t size;    /* of the content */
    uint64_t packed;  /* that it takes in the file */
    uint64_t header;  /* where its local header is */
    uint32_t crc;     /* of the content; PyTorch may leave it 0 */
    uint16_t flags;
    uint16_t method; /* GD_ZIP_STORED, GD_ZIP_DEFLATED */
};

/* Whether the file begins as a zip file does. */
bool gd_zip_is(const unsigned char *start, size_t size);

/* GD_EPROTO: broken, with the byte; GD_EUNSUPPORTED: encrypted, another method; GD_ELIMIT. */
int gd_zip_open(struct gd_disk *disk, struct gd_zip **ret, struct gd_err *err);
struct gd_zip *gd_zip_ref(struct gd_zip *zip);
void gd_zip_unref(struct gd_zip *zip);

struct gd_disk *gd_zip_disk(const struct gd_zip *zip);
size_t gd_zip_count(const struct gd_zip *zip);
const struct gd_zip_entry *gd_zip_entry(const struct gd_zip *zip, size_t index); /* in the order of
                                                                                the directory */
const struct gd_zip_entry *gd_zip_find(const struct gd_zip *zip, const char *name); /* NULL: none */

/* Where a stored member's content begins. Reads and checks the local header. */
int gd_zip_locate(struct gd_zip *zip, const struct gd_zip_entry *entry, uint64_t *ret,
                  struct gd_err *err);

/* The first bytes of the content, without the rest: so many of `size` as there are. */
int gd_zip_head(struct gd_zip *zip, const struct gd_zip_entry *entry, void *ret, size_t size,
                size_t *got, struct gd_err *err);

/* The content. Nothing is read yet. A deflated member is inflated as a whole when it is first
 * wanted, to exactly `size` bytes; that its CRC is right is checked then. Of a stored one it is
 * checked, if `check` (PyTorch's may be wrong), before anything of it is given when it is no more
 * than GD_ZIP_CHECKED bytes, else when all of it has been read, once and by whatever pieces: the
 * read that completes it fails then, and every one after that. */
#define GD_ZIP_CHECKED ((uint64_t)1 << 20)
int gd_zip_bytes(struct gd_zip *zip, const struct gd_zip_entry *entry, bool check,
                 struct gd_bytes **ret, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The entries below a directory, read once, limited in depth and number, without following links.
 * Format detection works on this listing, not on the disk.
 */
#ifndef GD_DUMP_LISTING_H
#define GD_DUMP_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gd_disk; /* disk.h */

#define GD_LISTING_DEPTH 12
#define GD_NO_ENTRY      UINT32_MAX

struct gd_listing_entry {
    const char *name; /* without the directory; entry 0 is the root, named as it was opened */
    uint64_t size;    /* of a file */
    double modified;
    bool is_directory;
    uint8_t depth;        /* 0: the root */
    uint32_t parent;      /* GD_NO_ENTRY for the root */
    uint32_t first_child; /* children are consecutive, sorted by name, numbers by value */
    uint32_t children;    /* their number */
    uint32_t next;        /* sibling */
};

struct gd_listing {
    const struct gd_listing_entry *entry; /* a directory precedes its contents */
    uint32_t count;
    /* not listed: symbolic links, devices and the like, ... */
    uint32_t links, others, too_deep, unreadable;
    struct gd_listing_impl *impl;
};

/* `path` may be a regular file, which is then the only entry. go_on is called now and then with the
 * number of entries; false: GD_EINTR. GD_ENOTFOUND, GD_EIO, GD_ELIMIT: more than max_entries. */
int gd_listing_read(const char *path, uint32_t max_entries,
                    bool (*go_on)(void *ctx, uint64_t entries), void *ctx, struct gd_listing **ret,
                    struct gd_err *err);
void gd_listing_free(struct gd_listing *listing);

/* Writes the path of an entry, starting with the root's, to out; GD_ELIMIT: longer than size. */
int gd_listing_path(const struct gd_listing *listing, uint32_t entry, char *out, size_t size,
                    struct gd_err *err);
uint32_t gd_listing_child(const struct gd_listing *listing, uint32_t entry, const char *name);
/* The directory that many levels above the entry, or the root. */
uint32_t gd_listing_up(const struct gd_listing *listing, uint32_t entry, uint32_t levels);
/* The next entry below `root`, a directory's contents right after it; GD_NO_ENTRY: end. */
uint32_t gd_listing_next(const struct gd_listing *listing, uint32_t entry, uint32_t root);
/* Opens a file. Symbolic links are followed only where the user named the file itself. */
int gd_listing_open(const struct gd_listing *listing, uint32_t entry, struct gd_disk **ret,
                    struct gd_err *err);
/* Reads the first bytes of a file, NUL-terminated; 0: it cannot be read. */
size_t gd_listing_peek(const struct gd_listing *listing, uint32_t entry, char *out, size_t size);

#endif

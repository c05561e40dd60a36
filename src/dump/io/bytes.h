// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The stored bytes of a tensor: a part of a file, bytes that something decompresses, or memory.
 * Reference counted. All functions are thread-safe.
 */
#ifndef GD_DUMP_BYTES_H
#define GD_DUMP_BYTES_H

#include "dump/io/disk.h"

struct gd_bytes;

/* GD_EPROTO: not within the file. */
int gd_bytes_of_disk(struct gd_disk *disk, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err);
/* A part of a file whose position `locate` finds on first use; called again only after a failure.
 * Takes over ctx, also on failure. */
typedef int (*gd_bytes_locate_fn)(void *ctx, uint64_t *ret, struct gd_err *err);
int gd_bytes_of_place(struct gd_disk *disk, gd_bytes_locate_fn locate, void (*free_ctx)(void *ctx),
                      void *ctx, uint64_t size, struct gd_bytes **ret, struct gd_err *err);
/* Called with whatever is read of that part, on the reading thread; an error fails the read. */
typedef int (*gd_bytes_seen_fn)(void *ctx, uint64_t at, const void *data, size_t size,
                                struct gd_err *err);
void gd_bytes_tell(struct gd_bytes *bytes, gd_bytes_seen_fn seen);
/* Bytes that can only be produced as a whole (an inflated member): `load` fills all `size` of them
 * on first use. The last used ones are cached, with one limit for all. Takes over ctx, also on
 * failure. */
typedef int (*gd_bytes_load_fn)(void *ctx, void *ret, size_t size, struct gd_err *err);
int gd_bytes_of_load(gd_bytes_load_fn load, void (*free_ctx)(void *ctx), void *ctx, uint64_t size,
                     struct gd_bytes **ret, struct gd_err *err);
/* Reads of such bytes go to `stream` instead, one at a time, until it returns GD_ENODATA; from then
 * on they are loaded. */
typedef int (*gd_bytes_stream_fn)(void *ctx, uint64_t at, void *ret, size_t size,
                                  struct gd_err *err);
void gd_bytes_stream(struct gd_bytes *bytes, gd_bytes_stream_fn stream);
/* Whether they should be read front to back, by one thread. */
bool gd_bytes_want_order(const struct gd_bytes *bytes);
/* Bytes in memory that live until free_ctx (may be NULL). Takes over ctx, also on failure. */
int gd_bytes_of_memory(const void *data, size_t size, void (*free_ctx)(void *ctx), void *ctx,
                       struct gd_bytes **ret, struct gd_err *err);
/* The part of `whole` that starts at `at`. */
int gd_bytes_of_part(struct gd_bytes *whole, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err);

/* Concatenates the parts; takes a reference on each. */
int gd_bytes_of_row(struct gd_bytes *const *part, size_t count, struct gd_bytes **ret,
                    struct gd_err *err);

struct gd_bytes *gd_bytes_ref(struct gd_bytes *bytes);
void gd_bytes_unref(struct gd_bytes *bytes);                    /* NULL is fine */
static inline void gd_cleanup_bytes(struct gd_bytes *const *at) /* for GD_CLEANUP */
{
    gd_bytes_unref(*at);
}

uint64_t gd_bytes_size(const struct gd_bytes *bytes);
/* Reads all `size` bytes at `at`. GD_EPROTO: out of range. */
int gd_bytes_read(struct gd_bytes *bytes, uint64_t at, void *ret, size_t size, struct gd_err *err);

#endif

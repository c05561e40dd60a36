// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where the stored bytes of a tensor are: a piece of a file as it is, bytes that something unpacks,
 * or memory. Reference counted. All functions may be called from any thread.
 */
#ifndef GD_DUMP_BYTES_H
#define GD_DUMP_BYTES_H

#include "dump/io/disk.h"

struct gd_bytes;

/* GD_EPROTO: not within the file. */
int gd_bytes_of_disk(struct gd_disk *disk, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err);
/* A piece of a file that `locate` finds when it is first wanted. It is called once, or again when
 * it failed. Owns ctx, also on failure. */
typedef int (*gd_bytes_locate_fn)(void *ctx, uint64_t *ret, struct gd_err *err);
int gd_bytes_of_place(struct gd_disk *disk, gd_bytes_locate_fn locate, void (*free_ctx)(void *ctx),
                      void *ctx, uint64_t size, struct gd_bytes **ret, struct gd_err *err);
/* Told what was read of such a piece, by whichever thread reads; an error ends the read. */
typedef int (*gd_bytes_seen_fn)(void *ctx, uint64_t at, const void *data, size_t size,
                                struct gd_err *err);
void gd_bytes_tell(struct gd_bytes *bytes, gd_bytes_seen_fn seen);
/* Bytes that are only to be had in one piece (an inflated member): `load` fills all `size` of them
 * when they are first wanted. Those used last are kept, up to a limit for all together. Owns ctx,
 * also on failure. */
typedef int (*gd_bytes_load_fn)(void *ctx, void *ret, size_t size, struct gd_err *err);
int gd_bytes_of_load(gd_bytes_load_fn load, void (*free_ctx)(void *ctx), void *ctx, uint64_t size,
                     struct gd_bytes **ret, struct gd_err *err);
/* Reads of such bytes go to `stream` instead, one at a time, until it says GD_ENODATA: then they
 * are loaded after all. */
typedef int (*gd_bytes_stream_fn)(void *ctx, uint64_t at, void *ret, size_t size,
                                  struct gd_err *err);
void gd_bytes_stream(struct gd_bytes *bytes, gd_bytes_stream_fn stream);
/* They are cheap to read forwards only: by one thread. */
bool gd_bytes_want_order(const struct gd_bytes *bytes);
/* Bytes in memory that live until free_ctx (may be NULL). Owns ctx, also on failure. */
int gd_bytes_of_memory(const void *data, size_t size, void (*free_ctx)(void *ctx), void *ctx,
                       struct gd_bytes **ret, struct gd_err *err);
/* What lies from `at` on in others. */
int gd_bytes_of_part(struct gd_bytes *whole, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err);

/* One after another; takes a reference on each. */
int gd_bytes_of_row(struct gd_bytes *const *part, size_t count, struct gd_bytes **ret,
                    struct gd_err *err);

struct gd_bytes *gd_bytes_ref(struct gd_bytes *bytes);
void gd_bytes_unref(struct gd_bytes *bytes); /* NULL is fine */

uint64_t gd_bytes_size(const struct gd_bytes *bytes);
/* All `size` bytes at `at`. GD_EPROTO: there are not so many. */
int gd_bytes_read(struct gd_bytes *bytes, uint64_t at, void *ret, size_t size, struct gd_err *err);

#endif

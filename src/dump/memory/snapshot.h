// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Snapshots of a device's memory as torch.cuda.memory._dump_snapshot writes them: a pickle of the
 * allocator's segments, and of the last allocations and frees. Read in one pass: what is complete
 * is added up and forgotten, so the memory needed depends on the number of different stacks and
 * live blocks, plus 8 bytes per object that the pickle numbers. Nothing is executed: a pickle that
 * names a class or function is refused.
 *
 * Supports what PyTorch 1.13 to 2.13 write, also torch.cuda.memory_snapshot()'s list, pickled with
 * protocol 2 or later, or saved by torch.save.
 */
#ifndef GD_DUMP_SNAPSHOT_H
#define GD_DUMP_SNAPSHOT_H

#include "dump/io/disk.h"
#include "dump/io/listing.h"
#include "engine/memory/memory.h"

struct gd_snapshot;

/* Whether a file begins as a snapshot does; start: its first bytes, 4096 are enough. */
bool gd_snapshot_is(const unsigned char *start, size_t size);

/* Where the base64 of a snapshot begins in a page of torch.cuda._memory_viz; 0: it is none. */
uint64_t gd_snapshot_in_page(const unsigned char *start, size_t size);
/* The snapshot of that page, as a file of its own. GD_EPROTO, GD_EIO, GD_EINTR, GD_ENOMEM. */
int gd_snapshot_unpack_page(struct gd_disk *page, uint64_t at,
                            bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                            struct gd_disk **ret, struct gd_err *err);

/* Whether a file of a listing is a snapshot or a page with one, whose name must be one that a
 * snapshot may have. */
bool gd_snapshot_is_entry(const struct gd_listing *listing, uint32_t index);

/* go_on (may be NULL) is called now and then with the bytes read. GD_EPROTO: broken or refused:
 * names the byte and the reason; GD_ELIMIT, GD_EIO, GD_EINTR, GD_ENOMEM. */
int gd_snapshot_read(struct gd_disk *disk, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                     struct gd_snapshot **ret, struct gd_err *err);
void gd_snapshot_free(struct gd_snapshot *snapshot); /* NULL is fine */

/* Fills an initialised report. GD_ENOMEM. */
int gd_snapshot_report(const struct gd_snapshot *snapshot, struct gd_memory *report);

/* One line: "PyTorch's allocator: 2 devices, 14 segments, 120 blocks, 4000 events". */
void gd_snapshot_say(const struct gd_snapshot *snapshot, char *ret, size_t size);

#endif

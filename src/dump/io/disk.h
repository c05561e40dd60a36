// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A file that somebody left on the disk, read at places. Regular files only; nothing of it is
 * trusted. It is read with pread, not mapped: a file that is cut short while it is looked at gives
 * an error here and not a SIGBUS.
 *
 * Reference counted. All functions may be called from any thread.
 */
#ifndef GD_DUMP_DISK_H
#define GD_DUMP_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gd_disk;

/* Opens `path`, relative to the directory dir_fd (AT_FDCWD: the working directory). A last
 * component that is a link is followed only when `follow`. GD_ENOTFOUND, GD_EIO (also: not a
 * regular file, says what it is). */
int gd_disk_open(int dir_fd, const char *path, bool follow, struct gd_disk **ret,
                 struct gd_err *err);
/* So many bytes of another from `at` on, as if they were a file. GD_EPROTO: not within it. */
int gd_disk_part(struct gd_disk *whole, uint64_t at, uint64_t size, struct gd_disk **ret,
                 struct gd_err *err);
struct gd_disk *gd_disk_ref(struct gd_disk *disk);
void gd_disk_unref(struct gd_disk *disk); /* NULL is fine */

const char *gd_disk_path(const struct gd_disk *disk); /* as it was opened */
uint64_t gd_disk_size(const struct gd_disk *disk);    /* when it was opened */
double gd_disk_modified(const struct gd_disk *disk);  /* seconds since the epoch */

/* All `size` bytes at `at`. GD_EPROTO: the file ends before that, says where; GD_EIO. */
int gd_disk_read(struct gd_disk *disk, uint64_t at, void *ret, size_t size, struct gd_err *err);

/* Size or time of change are not what they were when it was opened. */
bool gd_disk_is_changed(const struct gd_disk *disk);

#endif

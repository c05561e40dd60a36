// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A file on disk, read at given offsets. Regular files only; its contents are untrusted. Read with
 * pread, not mapped: truncating the file meanwhile is an error, not a SIGBUS.
 *
 * Reference counted. All functions are thread-safe.
 */
#ifndef GD_DUMP_DISK_H
#define GD_DUMP_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gd_disk;

/* Opens `path` relative to the directory dir_fd (AT_FDCWD: the working directory). A symbolic link
 * as last component is followed only with `follow`. GD_ENOTFOUND, GD_EIO (also: not a regular
 * file). */
int gd_disk_open(int dir_fd, const char *path, bool follow, struct gd_disk **ret,
                 struct gd_err *err);
/* A range of another file, as a file of its own. GD_EPROTO: out of range. */
int gd_disk_part(struct gd_disk *whole, uint64_t at, uint64_t size, struct gd_disk **ret,
                 struct gd_err *err);
struct gd_disk *gd_disk_ref(struct gd_disk *disk);
void gd_disk_unref(struct gd_disk *disk);                     /* NULL is fine */
static inline void gd_cleanup_disk(struct gd_disk *const *at) /* for GD_CLEANUP */
{
    gd_disk_unref(*at);
}

const char *gd_disk_path(const struct gd_disk *disk); /* as it was opened, for messages */
/* What messages call it from now on. GD_ENOMEM. */
int gd_disk_set_path(struct gd_disk *disk, const char *path, struct gd_err *err);
uint64_t gd_disk_size(const struct gd_disk *disk); /* when opened */

/* Reads all `size` bytes at `at`. GD_EPROTO: the file ends before that; GD_EIO. */
int gd_disk_read(struct gd_disk *disk, uint64_t at, void *ret, size_t size, struct gd_err *err);

/* A whole file: malloc'd and NUL-terminated, `size` without the NUL. */
struct gd_file_text {
    char *data;
    size_t size;
};
/* GD_ELIMIT: the file is larger than max bytes. */
int gd_disk_read_text(struct gd_disk *disk, uint64_t max, struct gd_file_text *ret,
                      struct gd_err *err);
/* The same for the file at a path, which must not be a symbolic link. */
int gd_file_text_read(const char *path, uint64_t max, struct gd_file_text *ret, struct gd_err *err);

/* Size or modification time differ from when it was opened. */
bool gd_disk_is_changed(const struct gd_disk *disk);

#endif

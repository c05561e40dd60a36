// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A directory that files are written to, and nothing outside it: names are single components, links
 * below it are not followed, and each file is either complete or unchanged.
 */
#ifndef GD_DUMP_FOLDER_H
#define GD_DUMP_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct gd_folder;
struct gd_folder_file;

/* Opens or creates the directory; its parent must exist. GD_EIO, GD_EINVAL: not a directory. */
int gd_folder_open(const char *path, struct gd_folder **ret, struct gd_err *err);
/* Opens or creates a subdirectory. GD_EIO: a link or file has that name; GD_EINVAL: not a valid
 * name. */
int gd_folder_child(struct gd_folder *folder, const char *name, struct gd_folder **ret,
                    struct gd_err *err);
void gd_folder_close(struct gd_folder *folder); /* NULL is fine */
bool gd_folder_is_empty(struct gd_folder *folder);

/* Whether this is a single component that stays inside: not empty, no slash, not "." or "..", at
 * most 255 bytes. */
bool gd_folder_name_is_fine(const char *name);

/* Begins a new file, which gets its name only at the end. */
int gd_folder_begin(struct gd_folder *folder, const char *name, struct gd_folder_file **ret,
                    struct gd_err *err);
int gd_folder_write(struct gd_folder_file *file, const void *data, size_t size, struct gd_err *err);
/* Ends and frees the file. Without `keep`, an existing file stays unchanged. */
int gd_folder_end(struct gd_folder_file *file, bool keep, struct gd_err *err);
/* Writes a whole file. */
int gd_folder_put(struct gd_folder *folder, const char *name, const void *data, size_t size,
                  struct gd_err *err);
/* Appends to a file in one write; creates it if needed. */
int gd_folder_append(struct gd_folder *folder, const char *name, const void *data, size_t size,
                     struct gd_err *err);
/* Reads a file of at most max bytes; *ret is empty if there is none. */
int gd_folder_get(struct gd_folder *folder, const char *name, size_t max, struct gd_buf *ret,
                  struct gd_err *err);

#endif

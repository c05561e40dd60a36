// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A directory that files are written into, and nothing outside of it: names are single components,
 * no link is followed below it, and a file is there whole or as it was before.
 */
#ifndef GD_DUMP_FOLDER_H
#define GD_DUMP_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct gd_folder;
struct gd_folder_file;

/* Made when it is new, its parent must be there. GD_EIO, GD_EINVAL: it is no directory. */
int gd_folder_open(const char *path, struct gd_folder **ret, struct gd_err *err);
/* One below; a link or a file of that name is GD_EIO, a name that is none GD_EINVAL. */
int gd_folder_child(struct gd_folder *folder, const char *name, struct gd_folder **ret,
                    struct gd_err *err);
void gd_folder_close(struct gd_folder *folder); /* NULL is fine */
bool gd_folder_is_empty(struct gd_folder *folder);

/* A single name that stays inside: not empty, no slash, neither "." nor "..", at most 255 bytes. */
bool gd_folder_name_is_fine(const char *name);

/* A new file that takes its name at the end. */
int gd_folder_begin(struct gd_folder *folder, const char *name, struct gd_folder_file **ret,
                    struct gd_err *err);
int gd_folder_write(struct gd_folder_file *file, const void *data, size_t size, struct gd_err *err);
/* Frees it. Without `keep` the file is as it was. */
int gd_folder_end(struct gd_folder_file *file, bool keep, struct gd_err *err);
/* All of it at once. */
int gd_folder_put(struct gd_folder *folder, const char *name, const void *data, size_t size,
                  struct gd_err *err);
/* At the end of a file, in one write; made when it is new. */
int gd_folder_append(struct gd_folder *folder, const char *name, const void *data, size_t size,
                     struct gd_err *err);
/* What is in a file, at most max bytes; *ret is empty where there is none. */
int gd_folder_get(struct gd_folder *folder, const char *name, size_t max, struct gd_buf *ret,
                  struct gd_err *err);

#endif

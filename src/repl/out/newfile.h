// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A file that a command writes completely or not at all: a new file next to the target, under an
 * unused name, that is renamed at the end. A full disk or Ctrl-C leaves the target unchanged.
 * Targets that a new file cannot replace are written in place: a device, a pipe, a link, a file
 * with several names or another owner, a folder that takes no new file.
 */
#ifndef GD_REPL_NEWFILE_H
#define GD_REPL_NEWFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

struct newfile {
    FILE *file;          /* to write to */
    const char *path;    /* borrowed */
    char part[PATH_MAX]; /* "": written in place */
    off_t size;          /* in place: of the file before; -1: it cannot be truncated */
};

int newfile_open(struct newfile *ret, const char *path, bool append, struct gd_err *err);
/* Closes it and renames it to the target. GD_EIO: something could not be written; then, and without
 * `keep`, the target is unchanged, or in place without what was written. */
int newfile_close(struct newfile *file, bool keep, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A file that a command writes whole or not at all: a new one beside the target, under a name that
 * nobody has, which takes the target's name at the end. A full disk or Ctrl-C leaves what was there
 * before. What a new file could not stand for (a device, a pipe, a link, a file with other names or
 * another owner, one in a folder that takes no new file) is written in place.
 */
#ifndef GD_REPL_NEWFILE_H
#define GD_REPL_NEWFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct newfile {
    FILE *file;          /* to write to */
    const char *path;    /* borrowed */
    char part[PATH_MAX]; /* "": it is written in place */
};

int newfile_open(struct newfile *ret, const char *path, struct gd_err *err);
/* Closes it and gives it its name. GD_EIO: something could not be written; then, and without
 * `keep`, there is no new file. */
int newfile_close(struct newfile *file, bool keep, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Lines of source files that stacks name: from this host, else from the training process. Reading
 * is bounded: regular files only, a maximum of lines and of bytes for each.
 */
#ifndef GD_REPL_SRCFILE_H
#define GD_REPL_SRCFILE_H

#include "repl/core/command.h"

#define SRCFILE_MAX_LINES 100000 /* of one part */

struct srcfile_part {
    const char *path;        /* where the file was found */
    uint32_t first;          /* number of line[0], from 1 */
    uint32_t count;          /* 0: the file ends before `first` */
    const char *const *line; /* safe to print, tabs expanded, without line ends */
    bool at_end;             /* the file ends with these lines */
    bool newer;              /* it was written after the selected training began */
};

/* Lines first ... first + count - 1. The file is searched for under its name, then below the
 * current directory by ever shorter ends of its path, then requested from the training process
 * (srctext.h). Everything is in call->arena. GD_EIO: it cannot be read, with the reason. */
int srcfile_read(struct command_call *call, const char *file, uint32_t first, uint32_t count,
                 struct srcfile_part *ret, struct gd_err *err);

/* Splits "model.py:42" into file (in the arena) and line. False: not of that form. */
bool srcfile_parse_place(struct command_call *call, const char *text, const char **file,
                         uint32_t *line);

/* The path ends in `file`, at the start of a component. */
bool srcfile_path_matches(const char *path, const char *file);
/* Lines that `list` shows at once. */
uint32_t srcfile_lines_wanted(const struct command_call *call);

#endif

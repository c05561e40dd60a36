// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Lines of source files, as stacks name them: of this machine, else as the training process tells.
 * Reading is bounded: regular files only, so many lines, so many bytes of each.
 */
#ifndef GD_REPL_SRCFILE_H
#define GD_REPL_SRCFILE_H

#include "repl/core/command.h"

#define SRCFILE_MAX_LINES 100000 /* of one part */

struct srcfile_part {
    const char *path;        /* where the file was found */
    uint32_t first;          /* number of line[0], from 1 */
    uint32_t count;          /* 0: the file ends before `first` */
    const char *const *line; /* safe to print, tabs expanded, no line ends */
    bool at_end;             /* the file ends with these lines */
    bool newer;              /* it was written after the selected training began */
};

/* Lines first ... first + count - 1. The file is looked for as it is named, then below the current
 * directory by ever shorter ends of its path, then asked of the training process (srctext.h).
 * Everything lies in call->arena. GD_EIO: it cannot be read, with the reason. */
int srcfile_read(struct command_call *call, const char *file, uint32_t first, uint32_t count,
                 struct srcfile_part *ret, struct gd_err *err);

/* "model.py:42" into file (in the arena) and line. False when it does not look like that. */
bool srcfile_parse_place(struct command_call *call, const char *text, const char **file,
                         uint32_t *line);

/* The path ends in `file`, at the start of a component. */
bool srcfile_path_matches(const char *path, const char *file);
/* Lines that `list` shows at once. */
uint32_t srcfile_lines_wanted(const struct command_call *call);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `set logging`: a copy of the output in a file.
 */
#ifndef GD_REPL_LOGGING_H
#define GD_REPL_LOGGING_H

#include "repl/core/command.h"

/* Does what `set logging enabled` says now: opens or closes the file, and says so. GD_EIO: it
 * cannot be opened; GD_EUNSUPPORTED: files cannot be used here. */
int logging_apply(struct command_call *call, struct gd_err *err);

/* Copies output, without escape sequences; output that `pipe` catches is not copied. Whether it
 * goes to the file only. A file that cannot be written is closed, with a warning. */
bool logging_take(struct repl *repl, const char *text, size_t len, bool is_error);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a read-only session may do (repl_set_read_only): commands that only show. In a session
 * over files it may also be moved and watched, which changes nothing outside gradb. A command that
 * is not listed here is refused.
 */
#ifndef GD_REPL_PERMIT_H
#define GD_REPL_PERMIT_H

#include <stdbool.h>

#include "base/error.h"

struct repl;
struct command;

/* GD_EUNSUPPORTED: it is refused. Always GD_OK unless the session is read-only. */
int permit_command(const struct repl *repl, const struct command *command, struct gd_err *err);
/* The same for writing a file. */
int permit_write(const struct repl *repl, struct gd_err *err);
/* Whether a read-only session may run it now. */
bool permit_may(const struct repl *repl, const struct command *command);
/* The command of that name only shows. */
bool permit_shows(const char *name);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* The names that users give to commands and aliases. */
#ifndef GD_REPL_USER_NAMES_H
#define GD_REPL_USER_NAMES_H

#include "repl/core/command.h"

/* GD_EINVAL: `name` cannot be a name; `what` is the command that takes it. */
int user_name_check(const char *what, const char *name, struct gd_err *err);
/* Not a built-in command's name, or the user agreed to redefine that command. */
bool user_name_is_free(struct command_call *call, const char *name);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands of the training program's own that concern all processes of the training. */
#ifndef GD_REPL_EVERYONE_H
#define GD_REPL_EVERYONE_H

#include "repl/core/command.h"

/* As repl_command, asked of every live process. *reply is the selected one's, whose refusal is the
 * command's error; of another one a refusal is a warning that names it. All are asked, whoever
 * refuses, unless Ctrl-C ends the wait. */
int everyone_command(struct command_call *call, const char *name, const char *args,
                     const char **reply, struct gd_err *err);

#endif

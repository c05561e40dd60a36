// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands of the training script that concern all of its processes. */
#ifndef GD_REPL_EVERYONE_H
#define GD_REPL_EVERYONE_H

#include "repl/core/command.h"

/* repl_command, sent to every live process. *reply is the selected process's reply; its refusal is
 * the command's error. A refusal by another one is a warning that names its rank. All are asked,
 * unless Ctrl-C ends the wait. */
int everyone_command(struct command_call *call, const char *name, const char *args,
                     const char **reply, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The table of each group of commands; each is defined in repl/cmd_*.c and listed in commands.c.
 */
#ifndef GD_REPL_COMMANDS_H
#define GD_REPL_COMMANDS_H

#include "repl/command.h"

extern const struct command cmd_break_table[];
extern const struct command cmd_settings_table[];
extern const struct command cmd_support_table[];

#endif

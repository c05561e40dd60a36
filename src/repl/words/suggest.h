// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What was probably meant by a word that is not a command.
 */
#ifndef GD_REPL_SUGGEST_H
#define GD_REPL_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "repl/core/command.h"

#define SUGGEST_MAX 160 /* bytes of a suggestion */

/* The name of the command whose subcommands they are; "": there is none. */
const char *suggest_parent(const struct command *table);

/* The nearest name: of `table` (NULL: of all commands), else of the commands, the subjects of info
 * ("info memory") and the settings ("set timing"). False: nothing is near. */
bool suggest_name(const struct command *table, const char *word, size_t len, char ret[SUGGEST_MAX]);

/* For a word that none of them has: a metric, node or module of the session ("print loss"),
 * or a program ("shell nvidia-smi"). */
bool suggest_thing(const struct repl *repl, const char *word, char ret[SUGGEST_MAX]);

#endif

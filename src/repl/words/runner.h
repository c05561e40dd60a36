// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a line runs.
 */
#ifndef GD_REPL_RUNNER_H
#define GD_REPL_RUNNER_H

#include "repl/core/command.h"
#include "repl/core/parse.h"
#include "repl/core/script.h"

/* The command or the user's command that the line runs: exactly one is set on success. The line may
 * become another one: for an alias, words of other tools, an expression (`loss.item()`), or a pipe.
 * What it becomes is in the arena. GD_ENOTFOUND, GD_EAMBIGUOUS; GD_EUNSUPPORTED: a word of another
 * tool for which there is nothing. */
int runner_find(struct repl *repl, const char *typed, struct parsed_line *line,
                struct gd_arena *arena, const struct command **command, struct user_command **user,
                struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A line whose output goes to a shell command: `info nodes | head`.
 */
#ifndef GD_REPL_PIPED_H
#define GD_REPL_PIPED_H

#include <stdbool.h>
#include <stddef.h>

/* The offset of the `|` after which the shell command begins; 0: there is none. A bar counts with a
 * blank before it, outside of quotes, brackets and /regexes/, if a program follows: in `print a |
 * b` and `info nodes weights|gradients` it is part of the argument. */
size_t piped_at(const char *line);

/* Whether the word is the path of an executable file, or the name of one on PATH. */
bool piped_is_program(const char *word, size_t len);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What is made from the tables of commands and settings at build time: shell completions, the
 * manual page, the list of commands as JSON.
 */
#ifndef GD_GENERATE_H
#define GD_GENERATE_H

/* "bash", "zsh", "fish", "man" or "json-commands", to stdout. Returns the exit status. */
int generate_run(const char *what);

#endif

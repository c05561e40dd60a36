// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Generates shell completions, the manual page and the list of commands (as JSON) from the tables
 * of modes, options, commands and settings, at build time.
 */
#ifndef GD_GENERATE_H
#define GD_GENERATE_H

/* what: "bash", "zsh", "fish", "man" or "json-commands". Prints to stdout. Returns the exit
 * status. */
int generate_run(const char *what);

#endif

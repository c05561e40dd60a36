// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Generates shell completions, the manual page, a reference in Markdown and the list of commands
 * (as JSON) from the tables of modes, options, commands and settings, at build time.
 */
#ifndef GD_GENERATE_H
#define GD_GENERATE_H

/* what: "bash", "zsh", "fish", "man", "markdown" or "json-commands". Prints to stdout. Returns the
 * exit status. */
int generate_run(const char *what);

/* The reference: command line, commands by group, settings. */
void generate_markdown(void);

#endif

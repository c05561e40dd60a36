// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The program's options as a table, from which --help, the completions and the manual page come.
 */
#ifndef GD_OPTIONS_H
#define GD_OPTIONS_H

#include <stdbool.h>

struct program_option {
    const char *name;     /* "-ex", "--color" */
    const char *argument; /* "COMMAND"; NULL when it takes none */
    bool joined;          /* "--color=WHEN" */
    const char *text;     /* no full stop */
};

extern const struct program_option program_options[]; /* ends with a NULL name */

#endif

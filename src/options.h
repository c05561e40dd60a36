// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The command line as tables: modes ("run", "listen", ...) and options. The parser, --help, the
 * shell completions and the manual page are all made from them.
 */
#ifndef GD_OPTIONS_H
#define GD_OPTIONS_H

#include <stdbool.h>

#include "app.h"

/* What follows a mode or an option, for the completions. */
enum program_words {
    WORDS_NONE,
    WORDS_PROGRAM,
    WORDS_FILES,
    WORDS_SESSIONS,
    WORDS_COMMANDS,
    WORDS_ADDRESS,
    WORDS_WHEN, /* auto, always, never */
};

struct program_mode {
    const char *name;
    enum app_mode mode;
    enum program_words words;
    const char *usage; /* "run -- PROGRAM..."; parameters in capitals */
    const char *text;  /* imperative, no full stop */
};

struct program_option {
    const char *name;     /* "-ex", "--color" */
    const char *argument; /* "COMMAND"; NULL when it takes none */
    bool joined;          /* "--color=WHEN" */
    bool repeats;         /* may be given several times */
    enum program_words words;
    const char *text; /* imperative, no full stop */
};

extern const struct program_mode program_modes[];     /* ends with a NULL name */
extern const struct program_option program_options[]; /* ends with a NULL name */

/* "run"; "prompt" when no mode was given. */
const char *program_mode_name(enum app_mode mode);
/* NULL: not a mode. */
const struct program_mode *find_program_mode(const char *name);

#endif

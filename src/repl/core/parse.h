// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A line of the command language, taken apart: name, format letters, arguments, where the output
 * goes. Knows no command. Everything it returns lives in the arena that was given.
 */
#ifndef GD_REPL_PARSE_H
#define GD_REPL_PARSE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

#define PARSE_MAX_LINE (64 * 1024)

struct parsed_line {
    const char *name;   /* "" for an empty line or a comment */
    const char *format; /* the letters after "name/"; "" when none */
    const char *rest;   /* what follows, trimmed; unchanged otherwise */
    size_t rest_at;     /* where it begins in the line */
};

/* `!cmd` and `| cmd` have the names "!" and "|"; `/text` has the name "/" and its rest starts at
 * the slash. GD_ELIMIT: longer than PARSE_MAX_LINE; GD_EINVAL: no name at the start; GD_ENOMEM. */
int parse_line(const char *line, struct gd_arena *arena, struct parsed_line *ret,
               struct gd_err *err);

struct parsed_args {
    const char *line; /* rest without `&` and redirection, trimmed */
    int argc;
    char **argv;             /* NULL-terminated */
    const char *after_first; /* line behind its first word, trimmed */
    bool background;
    const char *file; /* after `>` or `>>`; NULL when none */
    bool append;
};

/* Words are split at blanks. '...' and "..." group (\" and \\ inside the latter); a bracket with a
 * partner keeps what it encloses together. `&` at the end and a word that starts with `>` are taken
 * out. GD_EINVAL: unclosed quote, `>` without a file; GD_ENOMEM. */
int parse_args(const char *rest, struct gd_arena *arena, struct parsed_args *ret,
               struct gd_err *err);

/* Words only: quotes group, nothing else is special. For program arguments. */
int parse_words(const char *text, struct gd_arena *arena, int *argc, char ***argv,
                struct gd_err *err);

/* The answer to a question: "y", "yes", "n", "no", or (not `whole`) what begins so. */
bool parse_answer(const char *text, bool whole, bool *yes);

#endif

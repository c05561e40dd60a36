// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Splits a line of the command language: name, format letters, arguments, redirection. Knows no
 * commands. Everything it returns is in the given arena.
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
    const char *rest;   /* what follows, trimmed, otherwise unchanged */
    size_t rest_at;     /* its offset in the line */
};

/* `!cmd` and `| cmd` have the names "!" and "|"; `/text` has the name "/", and its rest starts at
 * the slash. GD_ELIMIT: longer than PARSE_MAX_LINE; GD_EINVAL: the line does not start with a name;
 * GD_ENOMEM. */
int parse_line(const char *line, struct gd_arena *arena, struct parsed_line *ret,
               struct gd_err *err);

struct parsed_args {
    const char *line; /* `rest` without `&` and redirection, trimmed */
    int argc;
    char **argv;             /* NULL-terminated */
    const char *after_first; /* the line after its first word, trimmed */
    bool background;
    const char *file; /* after `>` or `>>`; NULL when none */
    bool append;
};

/* Splits at blanks. '...' and "..." group (with \" and \\ inside the latter); a bracket with a
 * partner groups what it encloses. `&` at the end and a word that starts with `>` are removed.
 * GD_EINVAL: an unclosed quote, or `>` without a file; GD_ENOMEM. */
int parse_args(const char *rest, struct gd_arena *arena, struct parsed_args *ret,
               struct gd_err *err);

/* Words only: quotes group, nothing else is special. For program arguments. */
int parse_words(const char *text, struct gd_arena *arena, int *argc, char ***argv,
                struct gd_err *err);

/* The answer to a question: "y", "yes", "n" or "no"; unless `whole`, anything that starts like
 * one. */
bool parse_answer(const char *text, bool whole, bool *yes);

#endif

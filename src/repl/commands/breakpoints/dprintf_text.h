// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a dprintf prints: WHERE[,"FORMAT"][,ARG]... as gdb splits it, and the format filled in.
 * Commas inside quotes, brackets and parentheses do not separate. All texts are in the arena.
 */
#ifndef GD_REPL_DPRINTF_TEXT_H
#define GD_REPL_DPRINTF_TEXT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct dprintf_piece {
    const char *text; /* literal; or flags, width and precision of a conversion: "%-8.3" */
    char conversion;  /* 'd', 'u', 'x', 'o', 'c', 'g', 's', ... ; 0: literal text */
};

struct dprintf_arg {
    const char *text; /* as typed; a string without its quotes, escapes resolved */
    bool is_string;
};

struct dprintf_text {
    bool is_format; /* the first argument has conversions, which take the others */
    struct dprintf_piece *piece;
    int piece_count;
    struct dprintf_arg *arg; /* without a format, all that is printed, one after another */
    int arg_count;
};

/* "WHERE[,...][ if EXPR]": *print is what follows the first comma, *guard what follows `if`; "" if
 * there is none. GD_EINVAL: a quote or bracket is not closed. */
int dprintf_split(struct gd_arena *arena, const char *line, const char **where, const char **print,
                  const char **guard, struct gd_err *err);

/* Parses what follows WHERE. GD_EINVAL: a conversion that does not exist, a wrong number of
 * arguments, a string where a number is expected. */
int dprintf_parse(struct gd_arena *arena, const char *print, struct dprintf_text *ret,
                  struct gd_err *err);

/* One value for one conversion: a number, or a text (for %s: of a tensor or a string). */
void dprintf_number(struct gd_buf *out, const struct dprintf_piece *piece, double number);
/* A whole number by its digits: a double may have fewer. */
void dprintf_whole(struct gd_buf *out, const struct dprintf_piece *piece, const char *digits);
void dprintf_string(struct gd_buf *out, const struct dprintf_piece *piece, const char *text);

#endif

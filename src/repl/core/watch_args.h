// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Parses the arguments of `watch` and related commands:
 *
 *   [-exact | -step] [-for N] CONDITION [PARAM=VALUE]... [on SELECTOR] [if EXPR]
 *   [-exact | -step] [-for N] EXPR [on SELECTOR] [if EXPR]
 *
 * An expression may be quoted; a selector may contain blanks. `on` and `if` are separate words
 * outside quotes and brackets. Returned texts are in the arena.
 */
#ifndef GD_REPL_WATCH_ARGS_H
#define GD_REPL_WATCH_ARGS_H

#include "base/arena.h"
#include "engine/watch/watchpoint.h"

struct watch_args {
    enum gd_watch_when when;
    uint32_t steps;                       /* -for N: steps in a row; 0: not given */
    bool has_head;                        /* a condition or an expression was given */
    const struct gd_condition *condition; /* NULL: an expression */
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS];
    size_t value_count;
    unsigned off;           /* edit: bit i is set when values[i] was "PARAM=off" */
    const char *expression; /* NULL: a condition */
    const char *where;      /* NULL: not given */
    const char *guard;      /* NULL: not given */
};

/* Arguments of `watch`. Expressions and selectors are checked, parameters are not. `column` is
 * where `text` starts in the typed line: messages give the column of the fault, err->offset its
 * offset in `text`. GD_EUSAGE, GD_EINVAL, GD_ENOTFOUND (no such condition), GD_ENOMEM. */
int watch_args_parse(struct gd_arena *arena, const char *text, size_t column,
                     struct watch_args *ret, struct gd_err *err);
/* Arguments of `edit N` for a watchpoint with that condition (NULL: an expression): parameters or
 * another expression; every part is optional. */
int watch_args_parse_edit(struct gd_arena *arena, const char *text, size_t column,
                          const struct gd_condition *condition, struct watch_args *ret,
                          struct gd_err *err);

/* Text without one pair of quotes around it. NULL: out of memory. */
const char *watch_args_unquote(struct gd_arena *arena, const char *text);

#endif

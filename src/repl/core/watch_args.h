// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What `watch` and its relatives are given, taken apart:
 *
 *   [-exact | -step] [-for N] CONDITION [PARAM=VALUE]... [on SELECTOR] [if EXPR]
 *   [-exact | -step] [-for N] EXPR [on SELECTOR] [if EXPR]
 *
 * An expression may stand in quotes; a selector may hold blanks. `on` and `if` are words of their
 * own, outside quotes and brackets. Texts that are returned lie in the arena.
 */
#ifndef GD_REPL_WATCH_ARGS_H
#define GD_REPL_WATCH_ARGS_H

#include "base/arena.h"
#include "engine/watch/watchpoint.h"

struct watch_args {
    enum gd_watch_when when;
    uint32_t steps;                       /* -for N: in so many steps in a row; 0: not given */
    bool has_head;                        /* a condition or an expression was given */
    const struct gd_condition *condition; /* NULL: the expression */
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS];
    size_t value_count;
    unsigned off;           /* edit: bit i is set when values[i] was "PARAM=off" */
    const char *expression; /* NULL: the condition */
    const char *where;      /* NULL: not given */
    const char *guard;      /* NULL: not given */
};

/* What `watch` takes. Parameters are not checked against the condition; expressions and selectors
 * are. `column` is where `text` begins in the line that was typed: messages say at which column of
 * the line the fault is, and err->offset is its offset in `text`. GD_EUSAGE, GD_EINVAL,
 * GD_ENOTFOUND (no such condition), GD_ENOMEM. */
int watch_args_parse(struct gd_arena *arena, const char *text, size_t column,
                     struct watch_args *ret, struct gd_err *err);
/* What `edit N` takes for a watchpoint with that condition (NULL: an expression): parameters, or
 * another expression, each part may be left out. */
int watch_args_parse_edit(struct gd_arena *arena, const char *text, size_t column,
                          const struct gd_condition *condition, struct watch_args *ret,
                          struct gd_err *err);

/* Text in one pair of quotes, without them; any other text as it is. NULL: no memory. */
const char *watch_args_unquote(struct gd_arena *arena, const char *text);

#endif

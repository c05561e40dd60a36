// SPDX-License-Identifier: GPL-3.0-or-later
/* Statistics of named tensors in expressions: "fc1.weight.max > 1". An expression of a watchpoint
 * is about one tensor, whose statistics it names alone: "max > 1". */
#ifndef GD_REPL_FIGURES_H
#define GD_REPL_FIGURES_H

#include "repl/core/command.h"

/* Takes the tensor out of an expression: "fc1.weight.max > 1" becomes "max > 1" in *ret, and
 * "fc1.weight" in *where. *where NULL: it names no tensor. Both are in the arena. GD_EINVAL: it
 * names several. */
int figures_take(struct command_call *call, const char *expression, const char **ret,
                 const char **where, struct gd_err *err);
/* Whether both texts name the same node. */
bool figures_same_node(struct command_call *call, const char *a, const char *b);

/* The value of an expression with such names; any other name in it is a metric. False: there is no
 * such name. *why, in the arena: why it has no value; NULL: it has one. */
bool figures_number(struct command_call *call, const char *text, double *ret, const char **why);

#endif

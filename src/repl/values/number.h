// SPDX-License-Identifier: GPL-3.0-or-later
/* Expressions over metrics as `print` and `display` take them: "best(loss) - loss", "elapsed". */
#ifndef GD_REPL_NUMBER_H
#define GD_REPL_NUMBER_H

#include "repl/core/command.h"

/* Whether the text is an expression of which the session knows all metrics, one with a function of
 * a metric, or one of numbers only: "a/b" names a node. A session is needed for metrics only.
 * *value, and in *known whether it has one now; else *why, in the arena, says what is unknown. */
bool number_find(struct command_call *call, const char *text, double *value, bool *known,
                 const char **why);
/* Whether it is an expression of numbers only, such as "2 * 3". */
bool number_is_constant(const char *text);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* Expressions over metrics as `print` and `display` take them: "best(loss) - loss", "elapsed". */
#ifndef GD_REPL_NUMBER_H
#define GD_REPL_NUMBER_H

#include "repl/core/command.h"

/* Whether the text is an expression of which the session knows all metrics, or one with a function
 * of a metric: "a/b" names a node. *value, and in *known whether it has one now; else *why, in the
 * arena, says what is unknown. */
bool number_find(struct command_call *call, const char *text, double *value, bool *known,
                 const char **why);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/* What conditions mean and where to look. */
#ifndef GD_REPL_ADVICE_H
#define GD_REPL_ADVICE_H

#include "repl/core/command.h"

struct gd_condition;

/* Where to look after it fired, and what it usually means. */
void watch_advice(struct command_call *call, const struct gd_condition *condition);
/* Prints the text in lines that fit the output's width, indented by `indent` columns. */
void watch_fold(struct command_call *call, const char *text, int indent);
/* The same in lines of at most `width` columns after the indent. */
void watch_fold_to(struct command_call *call, const char *text, int indent, int width);

#endif

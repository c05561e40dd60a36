// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Numbers that commands take: expressions over the metrics of a session
 * (engine/watch/expression.h), and texts that contain them, "best-{accuracy:.4f}.pt".
 */
#ifndef GD_REPL_NUMBERS_H
#define GD_REPL_NUMBERS_H

#include "repl/core/command.h"

/* One name that means something else than the metric of that name. */
struct number_name {
    const char *name;
    double value;
};

/* Evaluates an expression over the metrics of call->session as they are now. own may be NULL.
 * GD_EINVAL: it is not an expression, or uses a statistic of a tensor; GD_ENODATA: a metric in it
 * is unknown, or NaN; the message names it. */
int numbers_evaluate(struct command_call *call, const char *text, const struct number_name *own,
                     double *ret, struct gd_err *err);

/* Replaces each {EXPR} and {EXPR:FORMAT} by its value. FORMAT: [0][WIDTH][.DIGITS][d|e|f|g], as in
 * Python; without it whole numbers are written in full, others with six digits. {{ and }} stand for
 * braces. Values that are NaN or infinite are written so. *ret is in call->arena. Errors as above;
 * GD_EINVAL: a brace or a format is wrong. */
int numbers_fill(struct command_call *call, const char *text, const char **ret, struct gd_err *err);

#endif

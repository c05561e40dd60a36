// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An entry of `kernels` in a data_dump.json, which selects operators: a full name
 * ("Default/network/Conv2D-op3"), an operator type ("conv", without scope or number, in any case),
 * or name-regex(EXPRESSION), which must match the whole full name.
 *
 * Expressions are ECMAScript's as in std::regex, without look-ahead, back references, \x, \u and
 * \c: . [] () (?:) | * + ? {n,m} ^ $ \d \w \s \b and lazy repeats, which select the same names.
 * Their size is limited (engine/regex_size.h), and so is the time of a match.
 */
#ifndef GD_DUMP_KERNEL_CHOICE_H
#define GD_DUMP_KERNEL_CHOICE_H

#include <stdbool.h>

#include "base/error.h"

struct gd_kernel_choice;

/* GD_EINVAL: the expression is invalid, too large, or uses what is not supported. */
int gd_kernel_choice_parse(const char *text, struct gd_kernel_choice **ret, struct gd_err *err);
void gd_kernel_choice_free(struct gd_kernel_choice *choice); /* NULL is fine */
const char *gd_kernel_choice_text(const struct gd_kernel_choice *choice);
bool gd_kernel_choice_has(const struct gd_kernel_choice *choice, const char *name,
                          const char *type);

#endif

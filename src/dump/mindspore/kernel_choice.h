// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An entry of `kernels` in a data_dump.json, which chooses operators: a full name
 * ("Default/network/Conv2D-op3"), a word of types ("conv", without a scope or a number, in letters
 * of any case), or name-regex(EXPRESSION), which has to match the whole full name.
 *
 * Expressions are ECMAScript's, as std::regex takes them, without look-ahead, references to what a
 * group matched, and \x, \u, \c: . [] () (?:) | * + ? {n,m} ^ $ \d \w \s \b and lazy repeats, which
 * choose the same names. Their size is bounded (engine/regex_size.h), and so is the time of a
 * match.
 */
#ifndef GD_DUMP_KERNEL_CHOICE_H
#define GD_DUMP_KERNEL_CHOICE_H

#include <stdbool.h>

#include "base/error.h"

struct gd_kernel_choice;

/* GD_EINVAL: an expression that is wrong, too large, or has what is left out above. */
int gd_kernel_choice_parse(const char *text, struct gd_kernel_choice **ret, struct gd_err *err);
void gd_kernel_choice_free(struct gd_kernel_choice *choice); /* NULL is fine */
const char *gd_kernel_choice_text(const struct gd_kernel_choice *choice);
bool gd_kernel_choice_has(const struct gd_kernel_choice *choice, const char *name,
                          const char *type);

#endif

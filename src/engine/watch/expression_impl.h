// SPDX-License-Identifier: GPL-3.0-or-later
/* What the parser of expressions leaves behind and evaluation runs through. */
#ifndef GD_ENGINE_EXPRESSION_IMPL_H
#define GD_ENGINE_EXPRESSION_IMPL_H

#include "engine/watch/expression.h"
#include "engine/watch/past_values.h"

#define DEPTH_MAX 256 /* nested levels, and operands that wait for their operator */

enum code {
    OP_NUMBER,
    OP_FIGURE,
    OP_NAMED,
    OP_STEP,
    OP_NEGATE,
    OP_NOT,
    OP_ABS,
    OP_SQRT,
    OP_LOG,
    OP_LOG10,
    OP_EXP,
    /* two operands from here on */
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MIN,
    OP_MAX,
    OP_COMPARE,
    OP_AND,
    OP_OR,
};

struct op {
    enum code code;
    union {
        double number;
        enum gd_statistic figure;
        enum gd_comparison compare;
        const char *name; /* owned by the expression */
    };
};

/* ---- functions of metrics (expression_function.c) ---- */

#define EXPR_FUNCTION_TEXT (GD_EXPR_NUMBER + 48)
/* GD_FN_KINDS: none of them. */
enum gd_expr_function_kind expr_function_find(const char *word);
const char *expr_function_usage(const char *word);
/* Whether it takes "min" or "max". */
bool expr_function_has_direction(enum gd_expr_function_kind kind);
void expr_function_text(const struct gd_expr_function *function, char ret[EXPR_FUNCTION_TEXT]);

struct gd_expr {
    char *text;
    struct op *op;
    size_t count;
    size_t cap;
};

#endif

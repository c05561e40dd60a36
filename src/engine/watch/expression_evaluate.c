// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <string.h>

#include "engine/session.h"
#include "engine/watch/expression_impl.h"

static double calculate_op(enum code code, double a, double b)
{
    switch (code) {
    case OP_NEGATE: return -a;
    case OP_ABS: return fabs(a);
    case OP_SQRT: return sqrt(a);
    case OP_LOG: return log(a);
    case OP_LOG10: return log10(a);
    case OP_EXP: return exp(a);
    case OP_ADD: return a + b;
    case OP_SUBTRACT: return a - b;
    case OP_MULTIPLY: return a * b;
    case OP_DIVIDE: return a / b;
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    default: return NAN;
    }
}

struct value {
    double number;  /* if error is 0 */
    unsigned error; /* why it is unknown */
    bool at_least;  /* with an error: it is this number or more */
};

bool gd_compare(double a, enum gd_comparison compare, double b)
{
    switch (compare) {
    case GD_CMP_GT: return a > b;
    case GD_CMP_GE: return a >= b;
    case GD_CMP_LT: return a < b;
    case GD_CMP_LE: return a <= b;
    case GD_CMP_EQ: return a == b;
    case GD_CMP_NE: return a != b;
    }
    return false;
}

bool gd_compare_at_least(double least, enum gd_comparison compare, double b, bool *ret)
{
    *ret = compare == GD_CMP_GT || compare == GD_CMP_GE || compare == GD_CMP_NE;
    return compare == GD_CMP_GE || compare == GD_CMP_LT ? least >= b : least > b;
}

static struct value known_value(double number)
{
    return (struct value){number, isnan(number) ? GD_HIT_NO_FIGURE : 0U, false};
}

static struct value operand_value(const struct op *op, const struct gd_observation *seen)
{
    struct value value = {0, 0, false};

    if (op->code == OP_FIGURE) {
        value.at_least = !gd_statistic_value(op->figure, seen, &value.number, &value.error) &&
                         gd_statistic_at_least(op->figure, seen, &value.number);
    } else if (op->code == OP_STEP) {
        value.number = (double)seen->step;
    } else if (op->code == OP_NUMBER) {
        value.number = op->number;
    } else if (!seen->scalar || !seen->scalar(seen->scalar_ctx, op->name, &value.number)) {
        struct gd_expr_function function;
        value.error =
            gd_expr_function(op->name, &function) ? GD_HIT_NO_PREVIOUS : (unsigned)GD_HIT_NO_VALUE;
    } else if (isnan(value.number)) {
        value.error = GD_HIT_NAN; /* a loss that is NaN */
    }
    return value.error ? value : known_value(value.number);
}

/* At least that many, and not 0: that is true. */
static struct value truth_of(struct value value)
{
    return value.error && value.at_least ? known_value(1) : value;
}

/* One operand that decides is enough: false for "and", true for "or". */
static struct value apply_logic(struct value a, struct value b, bool decides)
{
    if ((!a.error && (a.number != 0) == decides) || (!b.error && (b.number != 0) == decides)) {
        return known_value(decides);
    }
    return a.error | b.error ? (struct value){0, a.error | b.error, false} : known_value(!decides);
}

/* A count with a known lower bound may be enough. */
static bool compare_bounds(enum gd_comparison compare, struct value a, struct value b, bool *ret)
{
    static const enum gd_comparison turned[] = {
        [GD_CMP_GT] = GD_CMP_LT, [GD_CMP_GE] = GD_CMP_LE, [GD_CMP_LT] = GD_CMP_GT,
        [GD_CMP_LE] = GD_CMP_GE, [GD_CMP_EQ] = GD_CMP_EQ, [GD_CMP_NE] = GD_CMP_NE};

    if (a.at_least && !b.error) {
        return gd_compare_at_least(a.number, compare, b.number, ret);
    }
    return b.at_least && !a.error && gd_compare_at_least(b.number, turned[compare], a.number, ret);
}

static struct value apply_op(const struct op *op, struct value a, struct value b)
{
    bool truth;

    if (op->code == OP_AND || op->code == OP_OR) {
        return apply_logic(truth_of(a), truth_of(b), op->code == OP_OR);
    }
    if (op->code == OP_COMPARE && compare_bounds(op->compare, a, b, &truth)) {
        return known_value(truth);
    }
    if (op->code == OP_NOT) {
        a = truth_of(a);
    }
    if (a.error | b.error) {
        return (struct value){0, a.error | b.error, false};
    }
    if (op->code == OP_NOT) {
        return known_value(a.number == 0);
    }
    if (op->code == OP_COMPARE) {
        return known_value(gd_compare(a.number, op->compare, b.number));
    }
    return known_value(calculate_op(op->code, a.number, b.number));
}

static struct value run_ops(const struct gd_expr *expr, const struct gd_observation *seen)
{
    struct value stack[DEPTH_MAX];
    size_t depth = 0;

    for (size_t i = 0; i < expr->count; i++) {
        const struct op *op = &expr->op[i];
        if (op->code < OP_NEGATE) {
            stack[depth++] = operand_value(op, seen);
        } else if (op->code < OP_ADD) {
            stack[depth - 1] = apply_op(op, stack[depth - 1], (struct value){0, 0, false});
        } else {
            depth--;
            stack[depth - 1] = apply_op(op, stack[depth - 1], stack[depth]);
        }
    }
    return stack[0];
}

enum gd_truth gd_expr_evaluate(const struct gd_expr *expr, const struct gd_observation *seen,
                               unsigned *error)
{
    struct value value = truth_of(run_ops(expr, seen));

    *error = value.error;
    if (value.error) {
        return GD_UNKNOWN;
    }
    return value.number != 0 ? GD_TRUE : GD_FALSE;
}

bool gd_expr_number(const struct gd_expr *expr, const struct gd_observation *seen, double *ret,
                    unsigned *error)
{
    struct value value = run_ops(expr, seen);

    *error = value.error;
    *ret = value.number;
    return !value.error;
}

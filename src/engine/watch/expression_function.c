// SPDX-License-Identifier: GPL-3.0-or-later
/* Functions of metrics, which an expression keeps as names: "stall(loss,10,min)". And which tests
 * of metrics a true expression needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/watch/expression_impl.h"

static const struct {
    const char *word, *usage;
} functions[GD_FN_KINDS] = {
    [GD_FN_PREVIOUS] = {"prev", "prev(lr)"},
    [GD_FN_BEST] = {"best", "best(accuracy) or best(cost, min)"},
    [GD_FN_MEAN] = {"mean", "mean(loss, 20)"},
    [GD_FN_STALL] = {"stall", "stall(loss, 10) or stall(score, 10, max)"},
    [GD_FN_IMPROVED] = {"improved", "improved(accuracy) or improved(cost, min)"},
    [GD_FN_ISNAN] = {"isnan", "isnan(loss)"},
};

enum gd_expr_function_kind expr_function_find(const char *word)
{
    int kind = 0;

    while (kind < GD_FN_KINDS && strcmp(functions[kind].word, word) != 0) {
        kind++;
    }
    return (enum gd_expr_function_kind)kind;
}

bool expr_function_has_direction(enum gd_expr_function_kind kind)
{
    return kind == GD_FN_BEST || kind == GD_FN_STALL || kind == GD_FN_IMPROVED;
}

const char *expr_function_usage(const char *word)
{
    return functions[expr_function_find(word)].usage;
}

void expr_function_text(const struct gd_expr_function *function, char ret[EXPR_FUNCTION_TEXT])
{
    const char *word = functions[function->kind].word, *number = function->number;
    const char *better = function->least ? "min" : "max";

    switch (function->kind) {
    case GD_FN_MEAN:
        snprintf(ret, EXPR_FUNCTION_TEXT, "%s(%s,%lld)", word, number, (long long)function->count);
        break;
    case GD_FN_STALL:
        snprintf(ret, EXPR_FUNCTION_TEXT, "%s(%s,%lld,%s)", word, number,
                 (long long)function->count, better);
        break;
    case GD_FN_BEST:
    case GD_FN_IMPROVED:
        snprintf(ret, EXPR_FUNCTION_TEXT, "%s(%s,%s)", word, number, better);
        break;
    default: snprintf(ret, EXPR_FUNCTION_TEXT, "%s(%s)", word, number); break;
    }
}

/* Cuts the last argument off and returns it; "": there is none. */
static const char *cut_last(char *text)
{
    char *comma = strrchr(text, ',');

    if (!comma) {
        return "";
    }
    *comma = '\0';
    return comma + 1;
}

bool gd_expr_function(const char *name, struct gd_expr_function *ret)
{
    const char *open = strchr(name, '(');
    size_t len = strlen(name);
    char word[16], inner[EXPR_FUNCTION_TEXT];

    if (!open || name[len - 1] != ')' || (size_t)(open - name) >= sizeof(word)) {
        return false;
    }
    snprintf(word, sizeof(word), "%.*s", (int)(open - name), name);
    snprintf(inner, sizeof(inner), "%.*s", (int)(name + len - 1 - open - 1), open + 1);
    *ret = (struct gd_expr_function){.kind = expr_function_find(word)};
    if (expr_function_has_direction(ret->kind)) {
        ret->least = strcmp(cut_last(inner), "min") == 0;
    }
    if (ret->kind == GD_FN_STALL || ret->kind == GD_FN_MEAN) {
        ret->count = strtoll(cut_last(inner), NULL, 10);
    }
    snprintf(ret->number, sizeof(ret->number), "%.*s", GD_EXPR_NUMBER - 1, inner);
    return ret->kind != GD_FN_KINDS;
}

const char *gd_expr_number_in(const char *name, struct gd_expr_function *room)
{
    return gd_expr_function(name, room) ? room->number : name;
}

bool gd_expr_has_number(const struct gd_expr *expr, const char *number)
{
    struct gd_expr_function function;
    bool found = false;

    for (size_t i = 0; i < expr->count && !found; i++) {
        const struct op *op = &expr->op[i];
        found = op->code == OP_NAMED && strcmp(gd_expr_number_in(op->name, &function), number) == 0;
    }
    return found;
}

bool gd_expr_is_call(const char *text)
{
    for (int kind = 0; kind < GD_FN_KINDS; kind++) {
        size_t len = strlen(functions[kind].word);
        if (strncmp(text, functions[kind].word, len) == 0 && text[len] == '(') {
            return true;
        }
    }
    return false;
}

bool gd_expr_prefers_least(const char *name)
{
    static const char *const worse[] = {"loss", "error", "perplexity", "ppl", "cost", "mse", "mae"};

    for (size_t i = 0; i < sizeof(worse) / sizeof(*worse); i++) {
        if (strcasestr(name, worse[i])) {
            return true;
        }
    }
    return false;
}

/* ---- what must hold ------------------------------------------------------------------------ */

struct needs {
    const struct gd_expr *expr;
    gd_bound_fn bound;
    void *ctx;
    struct gd_test_of *test;
    size_t count, max;
};

/* The index of the first operation of the operand that ends before `end`. */
static size_t start_of(const struct gd_expr *expr, size_t end)
{
    int wanted = 1;

    while (wanted > 0) {
        const struct op *op = &expr->op[--end];
        wanted += op->code >= OP_ADD ? 1 : op->code >= OP_NEGATE ? 0 : -1;
    }
    return end;
}

/* Adds the test that "OPERAND compare value" is, or needs. */
static bool add_test(struct needs *needs, const struct op *operand, enum gd_comparison compare,
                     double value)
{
    struct gd_expr_function function;
    struct gd_test_of test = {.op = compare, .value = value};
    bool called = operand->code == OP_NAMED && gd_expr_function(operand->name, &function);

    if (needs->count == needs->max || (operand->code != OP_STEP && operand->code != OP_NAMED) ||
        (called && !needs->bound(needs->ctx, &function, compare, value, &test))) {
        return false;
    }
    if (!called) {
        test.number = operand->code == OP_STEP ? "step" : operand->name;
    }
    needs->test[needs->count++] = test;
    return true;
}

static bool take_function(const struct gd_expr_function *function, struct gd_term *ret)
{
    static const enum gd_term_code codes[GD_FN_KINDS] = {
        [GD_FN_PREVIOUS] = GD_TERM_PREVIOUS, [GD_FN_MEAN] = GD_TERM_MEAN};

    ret->code = function->kind != GD_FN_BEST ? (int)codes[function->kind]
                : function->least            ? GD_TERM_LEAST
                                             : GD_TERM_MOST;
    ret->count = function->count;
    snprintf(ret->name, sizeof(ret->name), "%s", function->number);
    return ret->code && function->count >= 0 && function->count <= GD_MAX_PAST;
}

static bool take_term(const struct op *op, struct gd_term *ret)
{
    struct gd_expr_function function;

    *ret = (struct gd_term){.code = GD_TERM_NUMBER};
    switch (op->code) {
    case OP_NUMBER: ret->number = op->number; return true;
    case OP_STEP: ret->code = GD_TERM_STEP; return true;
    case OP_NAMED:
        if (gd_expr_function(op->name, &function)) {
            return take_function(&function, ret);
        }
        ret->code = GD_TERM_METRIC;
        snprintf(ret->name, sizeof(ret->name), "%s", op->name);
        return strlen(op->name) < sizeof(ret->name);
    case OP_COMPARE: ret->code = GD_TERM_COMPARE + (int)op->compare; return true;
    case OP_ABS:
    case OP_SQRT:
    case OP_LOG:
    case OP_LOG10:
    case OP_EXP: ret->code = GD_TERM_NEGATE + 1 + (int)(op->code - OP_ABS); return true;
    case OP_NEGATE: ret->code = GD_TERM_NEGATE; return true;
    default:
        ret->code = GD_TERM_MAX - (int)(OP_MAX - op->code);
        return op->code >= OP_ADD && op->code <= OP_MAX;
    }
}

/* Adds the comparison that ends before `end` as a calculation. */
static bool add_calculation(struct needs *needs, size_t end)
{
    size_t start = start_of(needs->expr, end);
    struct gd_test_of *test = &needs->test[needs->count];

    if (needs->count == needs->max || end - start > GD_MAX_TERMS) {
        return false;
    }
    *test = (struct gd_test_of){.number = "", .moves = true, .term_count = end - start};
    for (size_t i = start; i < end; i++) {
        bool inner = needs->expr->op[i].code == OP_COMPARE && i + 1 < end;
        if (inner || !take_term(&needs->expr->op[i], &test->term[i - start])) {
            return false;
        }
    }
    needs->count++;
    return true;
}

/* A comparison of a metric, or a function of one, with a number. */
static bool add_comparison(struct needs *needs, const struct op *op)
{
    static const enum gd_comparison turned[] = {
        [GD_CMP_GT] = GD_CMP_LT, [GD_CMP_GE] = GD_CMP_LE, [GD_CMP_LT] = GD_CMP_GT,
        [GD_CMP_LE] = GD_CMP_GE, [GD_CMP_EQ] = GD_CMP_EQ, [GD_CMP_NE] = GD_CMP_NE};

    return op[-1].code == OP_NUMBER   ? add_test(needs, op - 2, op->compare, op[-1].number)
           : op[-2].code == OP_NUMBER ? add_test(needs, op - 1, turned[op->compare], op[-2].number)
                                      : false;
}

/* Adds the tests, one of which holds when the part that ends before `end` is true. */
static bool add_needs(struct needs *needs, size_t end)
{
    const struct op *op = &needs->expr->op[end - 1];
    size_t before = needs->count;

    if (op->code == OP_NAMED) {
        return add_test(needs, op, GD_CMP_NE, 0);
    }
    if (op->code == OP_COMPARE && end >= 3) {
        return add_comparison(needs, op) || add_calculation(needs, end);
    }
    if (op->code != OP_AND && op->code != OP_OR) {
        return false;
    }
    size_t middle = start_of(needs->expr, end - 1);
    bool first = add_needs(needs, middle);
    if (op->code == OP_AND && first) {
        return true;
    }
    needs->count = first ? needs->count : before;
    bool second = (first || op->code == OP_AND) && add_needs(needs, end - 1);
    return second;
}

size_t gd_expr_needs_one(const struct gd_expr *expr, gd_bound_fn bound, void *ctx,
                         struct gd_test_of *ret, size_t max)
{
    struct needs needs = {.expr = expr, .bound = bound, .ctx = ctx, .test = ret, .max = max};

    return add_needs(&needs, expr->count) ? needs.count : 0;
}

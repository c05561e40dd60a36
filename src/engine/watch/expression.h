// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Expressions over statistics, "max > 1e4 || nan > 0", "abs_mean(cur-prev) < 1e-9":
 *
 *   or      = and { "||" and }          also "or"
 *   and     = not { "&&" not }          also "and"
 *   not     = ["!"] compare             also "not"
 *   compare = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/") unary }
 *   unary   = ["-"] atom
 *   atom    = NUMBER | "infinity" | "step" | NAME | "(" or ")"
 *           | ("prev" | "best" | "least" | "isnan") "(" NAME ")"
 *           | "mean" "(" NAME "," COUNT ")"
 *           | "improved" "(" NAME ["," ("min" | "max")] ")"
 *           | "stall" "(" NAME "," COUNT ["," ("min" | "max")] ")"
 *           | ("grad_norm" | "update_ratio") "(" NODE ")"
 *           | STATISTIC ["(" ("cur" | "prev" | "cur-prev") ")"]
 *           | ("abs" | "sqrt" | "log" | "log10" | "exp") "(" or ")"
 *           | ("min" | "max") "(" or "," or ")"
 *
 * "grad_norm(NODE)" and "update_ratio(NODE)", up to the closing bracket and without blanks, are the
 * names of metrics, which processes compute when they are asked to (repl/values/norms.h).
 * STATISTIC is a name of gd_statistic_find that needs no range ("inf" is the number of infinite
 * elements); NAME is a metric, "loss", "lr", in double quotes if it contains more than letters,
 * digits, "_" and ".", or resembles a statistic's name. Functions of a metric's past: prev(NAME)
 * is its value in the previous step; best and least its largest and its smallest finite value so
 * far; mean that of the last COUNT reports. stall is 1 if it has not improved for COUNT reports,
 * improved is 1 if it was reported in this step and is better than ever before: lower ("min") or
 * higher ("max"), by default lower for a name like "loss" or "error" (gd_expr_prefers_least).
 * isnan is 1 if the metric is NaN.
 *
 * Logic has three values: what is not known is "unknown", unknown || true is true, unknown &&
 * false is false. A number that is not a comparison is true when it is not 0. Undefined arithmetic
 * (0/0, log(-1)) is unknown; 1/0 is infinite.
 */
#ifndef GD_ENGINE_EXPRESSION_H
#define GD_ENGINE_EXPRESSION_H

#include "engine/statistic.h"

struct gd_expr;

/* Parsing is bounded: at most 4096 characters, 256 nested levels. GD_EINVAL with err->offset at the
 * fault; the message says how to write it. */
int gd_expr_parse(const char *text, struct gd_expr **ret, struct gd_err *err);
void gd_expr_destroy(struct gd_expr *expr);
const char *gd_expr_text(const struct gd_expr *expr); /* as typed, trimmed */
/* bits of enum gd_stat_need, of all its statistics */
unsigned gd_expr_needs(const struct gd_expr *expr);
/* Whether it uses a statistic of the tensor (not only metrics). */
bool gd_expr_has_statistic(const struct gd_expr *expr);

enum gd_truth { GD_FALSE = 0, GD_TRUE = 1, GD_UNKNOWN = 2 };
/* *error: bits of enum gd_hit_error that say what made it unknown; 0 otherwise. */
enum gd_truth gd_expr_evaluate(const struct gd_expr *expr, const struct gd_observation *seen,
                               unsigned *error);

/* Its value as a number. False: unknown, *error as above. */
bool gd_expr_number(const struct gd_expr *expr, const struct gd_observation *seen, double *ret,
                    unsigned *error);

/* Each statistic in it, once, in order of occurrence, to show actual values. */
size_t gd_expr_figures(const struct gd_expr *expr, enum gd_statistic *ret, size_t max);

/* Each metric in it, once; a function of one, "prev(NAME)", is a separate one. They live as long as
 * expr. */
size_t gd_expr_names(const struct gd_expr *expr, const char **ret, size_t max);
/* Whether the name is a function of a metric, as gd_expr_names gives it: "prev(lr)",
 * "stall(loss,10,min)". */
#define GD_EXPR_NUMBER 64
enum gd_expr_function_kind {
    GD_FN_PREVIOUS,
    GD_FN_BEST,
    GD_FN_MEAN,
    GD_FN_STALL,
    GD_FN_IMPROVED,
    GD_FN_ISNAN,
    GD_FN_KINDS,
};
struct gd_expr_function {
    enum gd_expr_function_kind kind;
    char number[GD_EXPR_NUMBER]; /* the metric */
    int64_t count;
    bool least; /* the smaller the better */
};
bool gd_expr_function(const char *name, struct gd_expr_function *ret);
/* The metric that a name of gd_expr_names is, or that the function takes; `room` may hold it. */
const char *gd_expr_number_in(const char *name, struct gd_expr_function *room);
/* Whether that metric is in it, by itself or in a function. */
bool gd_expr_has_number(const struct gd_expr *expr, const char *number);
/* Whether the text begins with a call of one: "best(". */
bool gd_expr_is_call(const char *text);
/* Whether smaller values of a metric of that name are better. */
bool gd_expr_prefers_least(const char *name);

/* An expression is "simple" if it is one comparison of a statistic with a number, or several joined
 * by || (a statistic alone is compared with 0): then a process that knows no expressions can report
 * when it may be true. Fills in up to max comparisons and returns the count; 0: not simple. */
enum gd_comparison { GD_CMP_GT = 0, GD_CMP_GE, GD_CMP_LT, GD_CMP_LE, GD_CMP_EQ, GD_CMP_NE };
struct gd_comparison_of {
    enum gd_statistic statistic;
    enum gd_comparison op;
    double value;
};
/* A calculation with metrics, in reverse Polish notation. */
enum gd_term_code {
    GD_TERM_NUMBER,
    GD_TERM_STEP,
    GD_TERM_METRIC,
    GD_TERM_PREVIOUS,
    GD_TERM_MEAN,
    GD_TERM_LEAST,
    GD_TERM_MOST,
    GD_TERM_NEGATE, /* then abs, sqrt, log, log10, exp; +, -, *, /, min, max */
    GD_TERM_MAX = GD_TERM_NEGATE + 11,
    GD_TERM_COMPARE, /* and an enum gd_comparison */
};
struct gd_term {
    int code;
    double number;
    char name[GD_EXPR_NUMBER]; /* the metric */
    int64_t count;
};
#define GD_MAX_TERMS 16
struct gd_test_of {
    const char *number;
    enum gd_comparison op;
    double value;
    bool is_nan; /* instead: the number is NaN */
    bool moves;  /* later reports change what is needed */
    size_t term_count;
    struct gd_term term[GD_MAX_TERMS]; /* instead: the result is not 0 */
};
typedef bool (*gd_bound_fn)(void *ctx, const struct gd_expr_function *function,
                            enum gd_comparison op, double value, struct gd_test_of *ret);
/* Tests of metrics, one of which holds whenever the expression is true; "step" and "elapsed" count
 * as metrics. Fills in up to max and returns the count; 0: there are none, or too many. bound: what
 * "FUNCTION op value" needs, by the reports so far. */
size_t gd_expr_needs_one(const struct gd_expr *expr, gd_bound_fn bound, void *ctx,
                         struct gd_test_of *ret, size_t max);
bool gd_compare(double a, enum gd_comparison compare, double b);
/* The same when the statistic is only known to be at least `least`. false: that decides nothing. */
bool gd_compare_at_least(double least, enum gd_comparison compare, double b, bool *ret);
size_t gd_expr_simple(const struct gd_expr *expr, struct gd_comparison_of *ret, size_t max);

#endif

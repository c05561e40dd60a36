// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The watchpoint conditions: MindInsight's seventeen and gradb's own, in one table: names,
 * parameters and their ranges, which can be combined, the statistic that each test compares,
 * advice; how the seventeen are sent to a process that evaluates them itself; and how all are
 * judged here from statistics. Help, completion and checks come from the table. A new condition is
 * one entry, and a row in docs/conditions.md.
 */
#ifndef GD_ENGINE_CONDITION_H
#define GD_ENGINE_CONDITION_H

#include "engine/session.h"
#include "engine/watch/expression.h"

#define GD_MAX_CONDITION_PARAMS 8

enum gd_param_type { GD_PARAM_FLOAT, GD_PARAM_BOOL };
enum gd_param_range {
    GD_RANGE_ANY,
    GD_RANGE_NOT_NEGATIVE,
    GD_RANGE_POSITIVE,
    GD_RANGE_PERCENT,
    GD_RANGE_STEPS, /* a whole number, 1 to a million */
};
/* In words: "any number", "0 or more", "above 0", "0 to 100", "a whole number, 1 or more". */
const char *gd_param_range_text(enum gd_param_range range);

struct gd_condition_param {
    const char *name;            /* a test's ends in its comparison: _gt _lt _ge _le */
    enum gd_statistic statistic; /* of a test: what it compares; else GD_STAT_NONE */
    enum gd_comparison op;
    enum gd_param_range range;
    enum gd_param_type type;
    bool has_default;
    double value;     /* the default */
    bool hidden;      /* always sent with its default; cannot be set */
    bool support;     /* not a test: it belongs to one that needs it */
    bool two_sided;   /* a test: the magnitude is compared */
    bool needs_range; /* needs range_start_inclusive and range_end_inclusive */
};

enum gd_condition_class {
    GD_COND_WEIGHT,
    GD_COND_GRADIENT,
    GD_COND_TENSOR,
    GD_COND_ACTIVATION,
    GD_COND_SCALAR, /* a metric, or a tensor of one element: a loss */
};

/* those of MindSpore's numbers that are used */
enum gd_condition_wire {
    GD_WIRE_OWN = -1, /* gradb's own condition: only gradb evaluates it */
    GD_WIRE_OVERFLOW_FLAG = 2,
    GD_WIRE_NOT_FINITE = 13,
    GD_WIRE_INITIALIZATION = 14,
    GD_WIRE_TOO_LARGE = 15,
    GD_WIRE_TOO_SMALL = 16,
    GD_WIRE_ALL_ZERO = 17,
    GD_WIRE_CHANGE_TOO_LARGE = 18,
    GD_WIRE_CHANGE_TOO_SMALL = 19,
    GD_WIRE_NOT_CHANGED = 20,
    GD_WIRE_RANGE = 21,
};

struct gd_condition {
    const char *id;   /* "weight_too_large" */
    const char *abbr; /* "WL" */
    enum gd_condition_class target;
    int wire;
    bool ascend_only;
    bool initial_only;              /* only before the first step */
    bool aggregate;                 /* judged on all its tensors of a step together */
    bool any_tests;                 /* several tests can be given: one that holds is enough */
    bool at_step_end;               /* only judged at the end of a step */
    bool fires_without_value;       /* also where there was none at all */
    bool records_bins;              /* the history gets a histogram of each step */
    uint64_t least_count;           /* tensors with fewer elements never hit */
    struct gd_comparison_of always; /* a test in addition to the parameters; GD_STAT_NONE: none */
    const char *fires;              /* "a statistic of the weight is above the threshold" */
    const char *look;               /* where to look when it fired: a phrase */
    const char *advice;             /* what it usually means and what to try: sentences */
    const struct gd_condition_param *param; /* in wire order */
    int param_count;
};

const struct gd_condition *gd_condition_at(size_t index); /* NULL after the last */
/* By id, abbreviation, or an unambiguous prefix of an id; case ignored. GD_EAMBIGUOUS names the
 * candidates; GD_ENOTFOUND the most similar one and the list. */
int gd_condition_find(const char *name, const struct gd_condition **ret, struct gd_err *err);
const struct gd_condition_param *gd_condition_param(const struct gd_condition *condition,
                                                    const char *name);
/* "weights", "gradients", "activations", "all": the default selector; for a condition on metrics
 * the name of one: "loss". */
const char *gd_condition_selector(const struct gd_condition *condition);

struct gd_condition_value { /* a parameter that was given */
    const char *name;
    enum gd_param_type type; /* as written: a number or true/false */
    double value;
};

/* GD_EINVAL: unknown or hidden parameter, wrong type, out of range, two tests at once (where only
 * one is allowed), supporting parameters without a test that needs them, or missing for one that
 * does. No parameters at all are accepted. */
int gd_condition_check(const struct gd_condition *condition,
                       const struct gd_condition_value *values, size_t count, struct gd_err *err);
/* Fills ret with the values and, if no test is among them, with the default: the first test that
 * has one (any_tests: all that have one). Returns the count; names point into the condition.
 * GD_EINVAL (negative, err lists the candidates): there is no default. */
int gd_condition_complete(const struct gd_condition *condition,
                          const struct gd_condition_value *values, size_t count,
                          struct gd_condition_value ret[GD_MAX_CONDITION_PARAMS],
                          struct gd_err *err);
/* Whether a process with that device can evaluate it at that step. GD_EUNSUPPORTED, GD_ESTATE. */
int gd_condition_available(const struct gd_condition *condition, bool ascend,
                           bool before_first_step, struct gd_err *err);

/* All parameters in wire order, those not given as disabled. Returns the count. Check the values
 * first. */
size_t gd_condition_encode(const struct gd_condition *condition,
                           const struct gd_condition_value *values, size_t count,
                           struct gd_remote_param ret[GD_MAX_CONDITION_PARAMS]);

/* ---- judging ------------------------------------------------------------------------------- */

/* What must be computed to judge the condition: bits of enum gd_stat_need, range, tolerances, steps
 * of dead units. */
#define GD_DEAD_STEPS 5    /* unless set otherwise */
#define GD_RTOL       1e-5 /* the same */
#define GD_ATOL       1e-8
struct gd_condition_want {
    unsigned needs;
    struct gd_range range; /* with GD_NEED_RANGE */
    double rtol, atol;     /* with GD_NEED_TOLERANCE */
    bool equal_nan;
    uint32_t dead_steps; /* with GD_NEED_UNITS */
};
void gd_condition_want(const struct gd_condition *condition,
                       const struct gd_condition_value *values, size_t count,
                       struct gd_condition_want *ret);

/* The same for an expression, with default tolerances and dead units. */
void gd_condition_want_expr(const struct gd_expr *expr, struct gd_condition_want *ret);

/* When a value is worth examining: if any of the comparisons holds. They include those that find
 * what cannot be checked (not finite, empty). Returns the count; 0: examine every value, because
 * the statistic needs more than one value's statistics or the verdict is not "any of these". max >=
 * 8. */
size_t gd_condition_triggers(const struct gd_condition *condition,
                             const struct gd_condition_value *values, size_t count,
                             struct gd_comparison_of *ret, size_t max);

size_t gd_condition_triggers_expr(const struct gd_expr *expr, struct gd_comparison_of *ret,
                                  size_t max);

enum gd_outcome { GD_NO_HIT, GD_IS_HIT, GD_NOT_CHECKED };
struct gd_verdict {
    enum gd_outcome outcome;
    unsigned error; /* GD_NOT_CHECKED: why, bits of enum gd_hit_error; else 0 */
    struct gd_hit_param param[GD_MAX_HIT_PARAMS];
    int param_count;
};
/*
 * The only evaluator. Check the values first. If no test is among them, gd_condition_complete
 * supplies the default; a condition that then has no test only says GD_NO_HIT or GD_NOT_CHECKED.
 * Rules:
 * - MindInsight's seventeen, except those that look for NaN and Inf: a tensor with NaN, with Inf or
 *   without elements cannot be checked, nor can one without a previous value (of the same type and
 *   shape) if the condition compares with it. So an empty tensor is not "not changed".
 * - NaN and Inf themselves are always seen; an empty tensor has none.
 * - operator_overflow cannot be checked here: only the device knows.
 * - gradb's own conditions fire if one test holds; otherwise they could not be checked if the
 *   statistic of one is unknown (enum gd_statistic says when); otherwise they did not fire.
 * - An undefined statistic (Inf - Inf, 0/0) could not be checked, GD_HIT_NO_FIGURE; of several
 *   tests together the others then decide.
 * ret->param lists all parameters of the condition in wire order, those not given as disabled;
 * actual_value is 0 for parameters without a test and where the statistic is unknown.
 */
void gd_condition_judge(const struct gd_condition *condition,
                        const struct gd_condition_value *values, size_t count,
                        const struct gd_observation *seen, struct gd_verdict *ret);
/* The same for an expression. For a hit, and where it could not be checked, the parameters are its
 * known statistics and metrics; set_value is what a simple expression compares the statistic with,
 * else NaN. */
void gd_condition_judge_expr(const struct gd_expr *expr, const struct gd_observation *seen,
                             struct gd_verdict *ret);
/* "NaN, no value of the previous step": the reasons in words. `ret` is always terminated. */
void gd_hit_error_text(unsigned error, char *ret, size_t size);

#endif

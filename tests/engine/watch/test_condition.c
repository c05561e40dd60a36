// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <strings.h>

#include "../../unit.h"
#include "engine/watch/condition.h"

static const struct gd_condition *find_condition(const char *name)
{
    const struct gd_condition *condition = NULL;
    assert_ok(gd_condition_find(name, &condition, NULL));
    return condition;
}

static void test_table(void **state)
{
    static const struct {
        const char *id, *abbr, *selector;
        int wire, params;
    } want[] = {
        {"weight_initialization", "WI", "weights", 14, 3},
        {"weight_overflow", "WO", "weights", 13, 0},
        {"weight_too_large", "WL", "weights", 15, 4},
        {"weight_too_small", "WS", "weights", 16, 4},
        {"weight_not_changed", "WNC", "weights", 20, 3},
        {"weight_change_too_large", "WCL", "weights", 18, 2},
        {"weight_change_too_small", "WCS", "weights", 19, 2},
        {"gradient_vanishing", "GV", "gradients", 16, 4},
        {"gradient_too_large", "GL", "gradients", 15, 4},
        {"gradient_exploding", "GE", "gradients", 13, 0},
        {"tensor_overflow", "TO", "all", 13, 0},
        {"operator_overflow", "OO", "all", 2, 0},
        {"tensor_too_large", "TL", "all", 15, 4},
        {"tensor_too_small", "TS", "all", 16, 4},
        {"tensor_all_zero", "TZ", "all", 17, 1},
        {"tensor_range", "TR", "all", 21, 6},
        {"activation_range", "AR", "activations", 21, 6},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        const struct gd_condition *condition = find_condition(want[i].id);
        assert_ptr_equal(condition, find_condition(want[i].abbr));
        assert_string_equal(gd_condition_selector(condition), want[i].selector);
        assert_int_equal(condition->wire, want[i].wire);
        assert_int_equal(condition->param_count, want[i].params);
        assert_true(condition->fires[0] && condition->look[0]);
    }
    for (size_t i = 17; gd_condition_at(i); i++) {
        assert_int_equal(gd_condition_at(i)->wire, GD_WIRE_OWN);
    }
    const struct gd_condition *condition;
    struct gd_err err;
    assert_ptr_equal(find_condition("tl"), find_condition("TL"));
    assert_int_equal(gd_condition_find("XX", &condition, &err), GD_ENOTFOUND);
    assert_contains(err.text, "WNC");
}

static int check_values(const char *condition, size_t count,
                        const struct gd_condition_value *values)
{
    struct gd_err err = {0};
    int rc = gd_condition_check(find_condition(condition), values, count, &err);
    assert_true(rc == GD_OK || (rc == GD_EINVAL && err.text[0]));
    return rc;
}

#define VALUES(...) ((const struct gd_condition_value[]){__VA_ARGS__})
#define F(name, value)                                                                             \
    {                                                                                              \
        name, GD_PARAM_FLOAT, value                                                                \
    }

static void test_validation(void **state)
{
    assert_ok(check_values("TO", 0, NULL));
    assert_ok(check_values("TL", 0, NULL));
    assert_int_equal(check_values("TO", 1, VALUES(F("max_gt", 1))), GD_EINVAL);
    assert_ok(check_values("TL", 1, VALUES(F("max_gt", -1))));
    assert_int_equal(check_values("TL", 1, VALUES(F("max_lt", 1))), GD_EINVAL);
    assert_ok(check_values("TL", 1, VALUES(F("abs_mean_gt", 0))));
    assert_int_equal(check_values("TL", 1, VALUES(F("abs_mean_gt", -1))), GD_EINVAL);
    assert_int_equal(check_values("TL", 1, VALUES(F("max_gt", NAN))), GD_EINVAL);
    assert_int_equal(check_values("TL", 1, VALUES(F("max_gt", INFINITY))), GD_EINVAL);
    assert_int_equal(check_values("TL", 1, VALUES({"max_gt", GD_PARAM_BOOL, 1})), GD_EINVAL);
    assert_int_equal(check_values("TL", 2, VALUES(F("max_gt", 1), F("min_gt", 1))), GD_EINVAL);
    assert_int_equal(check_values("TL", 2, VALUES(F("max_gt", 1), F("max_gt", 1))), GD_EINVAL);
    assert_ok(check_values("TZ", 1, VALUES(F("zero_percentage_ge", 100))));
    assert_int_equal(check_values("TZ", 1, VALUES(F("zero_percentage_ge", 100.5))), GD_EINVAL);
    assert_int_equal(check_values("TZ", 1, VALUES(F("zero_percentage_ge", -1))), GD_EINVAL);
    assert_ok(check_values("WNC", 1, VALUES(F("rtol", 0.1))));
    assert_int_equal(check_values("WNC", 1, VALUES(F("atol", 0.1))), GD_EINVAL); /* hidden */
    assert_int_equal(check_values("WCL", 1, VALUES(F("epsilon", 0.1))), GD_EINVAL);
    assert_int_equal(check_values("TR", 1, VALUES(F("max_min_lt", 0))), GD_EINVAL);
    assert_ok(check_values("TR", 1, VALUES(F("max_min_gt", 0))));
}

static void test_range_goes_together(void **state)
{
    struct gd_condition_value start = F("range_start_inclusive", -1),
                              end = F("range_end_inclusive", 1),
                              test = F("range_percentage_lt", 50), other = F("max_min_gt", 3);
    assert_ok(check_values("AR", 3, VALUES(start, end, test)));
    assert_ok(check_values("AR", 3, VALUES(test, end, start)));
    assert_int_equal(check_values("AR", 1, VALUES(test)), GD_EINVAL);
    assert_int_equal(check_values("AR", 2, VALUES(test, start)), GD_EINVAL);
    assert_int_equal(check_values("AR", 2, VALUES(start, end)), GD_EINVAL);
    assert_int_equal(check_values("AR", 3, VALUES(start, end, other)), GD_EINVAL);
    assert_ok(check_values("AR", 1, VALUES(other)));
    end.value = -2;
    assert_int_equal(check_values("AR", 3, VALUES(start, end, test)), GD_EINVAL);
}

static void test_availability(void **state)
{
    assert_ok(gd_condition_available(find_condition("OO"), true, false, NULL));
    assert_int_equal(gd_condition_available(find_condition("OO"), false, false, NULL),
                     GD_EUNSUPPORTED);
    assert_ok(gd_condition_available(find_condition("WI"), false, true, NULL));
    assert_int_equal(gd_condition_available(find_condition("WI"), false, false, NULL), GD_ESTATE);
    assert_ok(gd_condition_available(find_condition("TO"), false, false, NULL));
}

/* All of them, always, in wire order: clients index by position. */
static void test_encoding(void **state)
{
    struct gd_remote_param params[GD_MAX_CONDITION_PARAMS];
    const struct gd_condition *condition = find_condition("TL");
    assert_int_equal(gd_condition_encode(condition, VALUES(F("min_gt", 3)), 1, params), 4);
    assert_string_equal(params[0].name, "abs_mean_gt");
    assert_string_equal(params[3].name, "mean_gt");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(params[i].disabled, i != 2);
    }
    assert_true(params[2].value == 3 && params[0].value == 0);
    assert_int_equal(gd_condition_encode(find_condition("WNC"), VALUES(F("rtol", 0.5)), 1, params),
                     3);
    assert_true(!params[0].disabled && params[0].value == 0.5);
    assert_true(!params[1].disabled && params[1].value == 1e-8);
    assert_true(!params[2].disabled && params[2].value == 0);
    assert_int_equal(gd_condition_encode(find_condition("WCL"), NULL, 0, params), 2);
    assert_true(params[0].disabled && !params[1].disabled && params[1].value == 1e-9);
    assert_int_equal(gd_condition_encode(find_condition("TO"), NULL, 0, params), 0);
}

static unsigned evaluate_values(const char *condition, const struct gd_condition_value *values,
                                size_t count, const float *cur, const float *prev, int64_t elements,
                                bool *fired, struct gd_hit_param *hits)
{
    const struct gd_condition *found = find_condition(condition);
    struct gd_condition_want want;
    struct gd_verdict verdict;
    struct gd_stats stats;
    struct gd_tensor *a, *b = NULL;
    struct gd_shape shape = {.rank = 1, .dim = {elements}};
    size_t bytes = (size_t)elements * sizeof(*cur);
    assert_ok(gd_tensor_wrap(GD_FLOAT32, &shape, cur, bytes, NULL, NULL, &a, NULL));
    if (prev) {
        assert_ok(gd_tensor_wrap(GD_FLOAT32, &shape, prev, bytes, NULL, NULL, &b, NULL));
    }
    gd_condition_want(found, values, count, &want);
    const struct gd_stats_options options = {
        .rtol = want.rtol, .atol = want.atol, .range_count = 1, .range = {want.range}};
    assert_ok(gd_stats_compute(a, b, &options, &stats, NULL));
    gd_tensor_unref(a);
    gd_tensor_unref(b);
    const struct gd_observation seen = {.stats = &stats, .value_step = -1};
    gd_condition_judge(found, values, count, &seen, &verdict);
    memcpy(hits, verdict.param, sizeof(verdict.param));
    *fired = verdict.outcome == GD_IS_HIT;
    return verdict.error;
}

static void test_evaluation(void **state)
{
    struct gd_hit_param hits[GD_MAX_HIT_PARAMS];
    bool fired;
    const float good[] = {1, -2, 3, 0}, bad[] = {1, NAN, INFINITY, 0};
    assert_int_equal(evaluate_values("TO", NULL, 0, good, NULL, 4, &fired, hits), 0);
    assert_false(fired);
    assert_int_equal(evaluate_values("TO", NULL, 0, bad, NULL, 4, &fired, hits), 0);
    assert_true(fired);
    assert_int_equal(evaluate_values("TL", VALUES(F("max_gt", 2)), 1, good, NULL, 4, &fired, hits),
                     0);
    assert_true(fired && hits[1].hit && hits[1].actual_value == 3 && hits[0].disabled);
    assert_int_equal(evaluate_values("TL", VALUES(F("max_gt", 3)), 1, good, NULL, 4, &fired, hits),
                     0);
    assert_false(fired);
    assert_int_equal(
        evaluate_values("TS", VALUES(F("abs_mean_lt", 2)), 1, good, NULL, 4, &fired, hits), 0);
    assert_true(fired && hits[0].actual_value == 1.5);
    /* not finite: the parameters are not looked at */
    assert_int_equal(evaluate_values("TL", VALUES(F("max_gt", 0)), 1, bad, NULL, 4, &fired, hits),
                     GD_HIT_NAN | GD_HIT_INF);
    assert_false(fired || hits[1].hit);
    assert_int_equal(
        evaluate_values("TZ", VALUES(F("zero_percentage_ge", 25)), 1, good, NULL, 4, &fired, hits),
        0);
    assert_true(fired && hits[0].actual_value == 25);
    assert_int_equal(
        evaluate_values("TR",
                        VALUES(F("range_start_inclusive", -2), F("range_end_inclusive", 1),
                               F("range_percentage_gt", 74)),
                        3, good, NULL, 4, &fired, hits),
        0);
    assert_true(fired && hits[3].actual_value == 75);
    assert_true(hits[0].actual_value == 0 && !hits[0].hit);
    assert_int_equal(
        evaluate_values("TR", VALUES(F("max_min_gt", 4)), 1, good, NULL, 4, &fired, hits), 0);
    assert_true(fired && hits[5].actual_value == 5);
}

static void test_changes(void **state)
{
    struct gd_hit_param hits[GD_MAX_HIT_PARAMS];
    bool fired;
    const float now[] = {1.1f, -2.2f}, before[] = {1, -2};
    assert_int_equal(evaluate_values("WCL", VALUES(F("abs_mean_update_ratio_gt", 0.05)), 1, now,
                                     NULL, 2, &fired, hits),
                     GD_HIT_NO_PREVIOUS);
    assert_false(fired);
    assert_int_equal(evaluate_values("WCL", VALUES(F("abs_mean_update_ratio_gt", 0.05)), 1, now,
                                     before, 2, &fired, hits),
                     0);
    assert_true(fired && fabs(hits[0].actual_value - 0.1) < 1e-6);
    assert_int_equal(evaluate_values("WCS", VALUES(F("abs_mean_update_ratio_lt", 0.05)), 1, now,
                                     before, 2, &fired, hits),
                     0);
    assert_false(fired);
    assert_int_equal(
        evaluate_values("WNC", VALUES(F("rtol", 0.2)), 1, now, before, 2, &fired, hits), 0);
    assert_true(fired);
    assert_int_equal(
        evaluate_values("WNC", VALUES(F("rtol", 0.01)), 1, now, before, 2, &fired, hits), 0);
    assert_false(fired);
}

/* ---- gradb's own, and judging -------------------------------------------------------------- */

static int count_sentences(const char *text)
{
    int count = 0;
    for (const char *p = text; *p; p++) {
        count += (*p == '.' || *p == ':' || *p == ';') && (p[1] == ' ' || p[1] == '\0');
    }
    return count;
}

static void test_entries(void **state)
{
    const struct gd_condition *condition, *other;
    for (size_t i = 0; (condition = gd_condition_at(i)); i++) {
        assert_true(condition->id[0] && condition->abbr[0] && condition->fires[0]);
        assert_true(condition->look[0] && count_sentences(condition->advice) >= 2);
        assert_true(condition->param_count <= GD_MAX_CONDITION_PARAMS);
        assert_true(condition->param_count <= GD_MAX_HIT_PARAMS);
        for (size_t j = 0; (other = gd_condition_at(j)) && j < i; j++) {
            assert_true(strcasecmp(condition->id, other->id) != 0 &&
                        strcasecmp(condition->abbr, other->abbr) != 0);
        }
        for (int p = 0; p < condition->param_count; p++) {
            const struct gd_condition_param *param = &condition->param[p];
            static const char *const ends[] = {"_gt", "_ge", "_lt", "_le"};
            const char *end = strrchr(param->name, '_');
            assert_true(strlen(param->name) < sizeof((struct gd_hit_param *)0)->name);
            if (param->statistic) {
                assert_string_equal(end, ends[param->op]);
            }
            if (condition->wire == GD_WIRE_OWN) { /* nothing has to be given */
                assert_true(param->has_default && (param->statistic || param->support));
            }
            if (param->has_default && !param->hidden) {
                assert_ok(
                    gd_condition_check(condition, VALUES(F(param->name, param->value)), 1, NULL));
            }
        }
    }
}

static void test_finding(void **state)
{
    static const struct {
        const char *name;
        int rc;
        const char *says;
    } cases[] = {
        {"weight_init", GD_OK, "WI"},
        {"WEIGHT_INIT", GD_OK, "WI"},
        {"sudden", GD_OK, "SC"},
        {"weight_change_too_l", GD_OK, "WCL"},
        {"loss_not_finite", GD_OK, "LN"},
        {"o", GD_OK, "OO"},
        {"weight_change", GD_EAMBIGUOUS, "weight_change_too_large, weight_change_too_small"},
        {"tensor_", GD_EAMBIGUOUS, "tensor_overflow"},
        {"tensor_overlow", GD_ENOTFOUND, "did you mean tensor_overflow (TO)"},
        {"plateau", GD_ENOTFOUND, "did you mean loss_plateau (LP)"},
        {"WXY", GD_ENOTFOUND, "WCL"},
        {"", GD_ENOTFOUND, "WCL"},
        {"a name that is much longer than any condition's, to see that it is cut off in time, and "
         "so on and so on and so on and so on and so on and so on and so on and so on",
         GD_ENOTFOUND, "WCL"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct gd_condition *condition = NULL;
        struct gd_err err = {0};
        assert_int_equal(gd_condition_find(cases[i].name, &condition, &err), cases[i].rc);
        if (cases[i].rc != GD_OK) {
            assert_true(!condition && strstr(err.text, cases[i].says));
        } else {
            assert_string_equal(condition->abbr, cases[i].says);
        }
    }
}

static void test_own_validation(void **state)
{
    assert_ok(check_values(
        "UB", 2, VALUES(F("abs_mean_update_ratio_lt", 1e-6), F("abs_mean_update_ratio_gt", 1e-2))));
    assert_ok(check_values("DU", 2, VALUES(F("dead_percentage_ge", 10), F("steps", 3))));
    assert_ok(check_values("DU", 1, VALUES(F("steps", 3))));
    assert_int_equal(check_values("DU", 1, VALUES(F("steps", 0))), GD_EINVAL);
    assert_int_equal(check_values("DU", 1, VALUES(F("steps", 2.5))), GD_EINVAL);
    assert_ok(check_values("DU", 1, VALUES(F("steps", 1e6))));
    assert_int_equal(check_values("DU", 1, VALUES(F("steps", 1e6 + 1))), GD_EINVAL);
    assert_int_equal(check_values("SC", 1, VALUES(F("z_score_gt", 0))), GD_EINVAL);
    assert_ok(check_values("FC", 2, VALUES(F("clip_percentage_gt", 5), F("limit", 1))));
    assert_int_equal(check_values("LN", 1, VALUES(F("mean_ratio_gt", 1))), GD_EINVAL);
    struct gd_err err;
    assert_int_equal(
        gd_condition_check(find_condition("LS"), VALUES(F("mean_ratio_tg", 2)), 1, &err),
        GD_EINVAL);
    assert_contains(err.text, "did you mean mean_ratio_gt");
}

static void test_completion(void **state)
{
    struct gd_condition_value all[GD_MAX_CONDITION_PARAMS];
    struct gd_err err;
    assert_int_equal(gd_condition_complete(find_condition("TZ"), NULL, 0, all, NULL), 1);
    assert_string_equal(all[0].name, "zero_percentage_ge");
    assert_true(all[0].value == 100);
    assert_int_equal(gd_condition_complete(find_condition("WNC"), NULL, 0, all, NULL), 1);
    assert_string_equal(all[0].name, "rtol");
    assert_int_equal(gd_condition_complete(find_condition("UB"), NULL, 0, all, NULL), 2);
    assert_true(all[0].value == 1e-7 && all[1].value == 0.1);
    assert_int_equal(gd_condition_complete(find_condition("UB"),
                                           VALUES(F("abs_mean_update_ratio_gt", 3)), 1, all, NULL),
                     1);
    assert_true(all[0].value == 3);
    assert_int_equal(gd_condition_complete(find_condition("TO"), NULL, 0, all, NULL), 0);
    assert_int_equal(
        gd_condition_complete(find_condition("DU"), VALUES(F("steps", 9)), 1, all, NULL), 2);
    assert_int_equal(gd_condition_complete(find_condition("TL"), NULL, 0, all, &err), GD_EINVAL);
    assert_contains(err.text, "abs_mean_gt, max_gt, min_gt, mean_gt");
}

static void test_wants(void **state)
{
    struct gd_condition_want want;
    gd_condition_want(find_condition("TO"), NULL, 0, &want);
    assert_int_equal(want.needs, 0);
    gd_condition_want(find_condition("TL"), VALUES(F("max_gt", 1)), 1, &want);
    assert_int_equal(want.needs, GD_NEED_FINITE);
    gd_condition_want(find_condition("WNC"), VALUES(F("rtol", 0.5)), 1, &want);
    assert_int_equal(want.needs, GD_NEED_PREVIOUS | GD_NEED_TOLERANCE);
    assert_true(want.rtol == 0.5 && want.atol == 1e-8 && !want.equal_nan);
    gd_condition_want(find_condition("WNC"), NULL, 0, &want);
    assert_true(want.rtol == 1e-5);
    gd_condition_want(find_condition("AR"),
                      VALUES(F("range_start_inclusive", -1), F("range_end_inclusive", 2),
                             F("range_percentage_gt", 3)),
                      3, &want);
    assert_int_equal(want.needs, GD_NEED_FINITE | GD_NEED_RANGE);
    assert_true(want.range.lo == -1 && want.range.hi == 2);
    gd_condition_want(find_condition("AR"), VALUES(F("max_min_gt", 3)), 1, &want);
    assert_int_equal(want.needs, GD_NEED_FINITE);
    gd_condition_want(find_condition("FC"), NULL, 0, &want);
    assert_true(want.range.lo == -65504 && want.range.hi == 65504);
    gd_condition_want(find_condition("FC"), VALUES(F("limit", 8)), 1, &want);
    assert_true(want.range.lo == -8 && want.range.hi == 8);
    gd_condition_want(find_condition("DU"), NULL, 0, &want);
    assert_true((want.needs & GD_NEED_UNITS) && want.dead_steps == 5);
    gd_condition_want(find_condition("DU"), VALUES(F("steps", 7)), 1, &want);
    assert_int_equal(want.dead_steps, 7);
    gd_condition_want(find_condition("SC"), NULL, 0, &want);
    assert_int_equal(want.needs, GD_NEED_FINITE | GD_NEED_SERIES);
    gd_condition_want(find_condition("WCL"), NULL, 0, &want);
    assert_int_equal(want.needs, GD_NEED_FINITE | GD_NEED_PREVIOUS);
    gd_condition_want(find_condition("GM"), NULL, 0, &want);
    assert_int_equal(want.needs, 0);
}

static void triggers_are(const char *condition, const struct gd_condition_value *values,
                         size_t count, const struct gd_comparison_of *want, size_t wanted)
{
    struct gd_comparison_of got[8];
    size_t used = gd_condition_triggers(find_condition(condition), values, count, got, 8);
    assert_int_equal(used, wanted);
    for (size_t i = 0; i < used; i++) {
        assert_true(got[i].statistic == want[i].statistic && got[i].op == want[i].op &&
                    got[i].value == want[i].value);
    }
}

#define TESTS(...)                                                                                 \
    ((const struct gd_comparison_of[]){__VA_ARGS__}),                                              \
        sizeof((const struct gd_comparison_of[]){__VA_ARGS__}) / sizeof(struct gd_comparison_of)
#define BAD                                                                                        \
    {                                                                                              \
        GD_STAT_NONFINITE, GD_CMP_GT, 0                                                            \
    }
#define EMPTY                                                                                      \
    {                                                                                              \
        GD_STAT_COUNT, GD_CMP_LE, 0                                                                \
    }
#define UNPAIRED                                                                                   \
    {                                                                                              \
        GD_STAT_UNPAIRED, GD_CMP_GT, 0                                                             \
    }

static void test_triggers(void **state)
{
    triggers_are("TO", NULL, 0, TESTS(BAD));
    triggers_are("TL", VALUES(F("max_gt", 3)), 1, TESTS({GD_STAT_MAX, GD_CMP_GT, 3}, BAD, EMPTY));
    triggers_are("WNC", NULL, 0, TESTS({GD_STAT_MISMATCH, GD_CMP_LE, 0}, BAD, EMPTY));
    triggers_are("UB", NULL, 0,
                 TESTS({GD_STAT_UPDATE_RATIO, GD_CMP_LT, 1e-7},
                       {GD_STAT_UPDATE_RATIO, GD_CMP_GT, 0.1}, BAD, EMPTY, UNPAIRED));
    triggers_are("GM", NULL, 0, TESTS({GD_STAT_AGE, GD_CMP_GE, 1}));
    triggers_are("LN", NULL, 0, TESTS(BAD));
    triggers_are("SC", NULL, 0, NULL, 0);
    triggers_are("GS", NULL, 0, NULL, 0);
    triggers_are("OO", NULL, 0, NULL, 0);
    struct gd_comparison_of got[8];
    struct gd_expr *expr;
    assert_ok(gd_expr_parse("max > 3 || nan > 0", &expr, NULL));
    assert_int_equal(gd_condition_triggers_expr(expr, got, 8), 4);
    gd_expr_destroy(expr);
    assert_ok(gd_expr_parse("mean(cur-prev) > 3", &expr, NULL));
    assert_int_equal(gd_condition_triggers_expr(expr, got, 8), 4);
    gd_expr_destroy(expr);
    assert_ok(gd_expr_parse("nan > 0", &expr, NULL));
    assert_int_equal(gd_condition_triggers_expr(expr, got, 8), 1);
    gd_expr_destroy(expr);
    assert_ok(gd_expr_parse("z_score > 3", &expr, NULL));
    assert_int_equal(gd_condition_triggers_expr(expr, got, 8), 0);
    gd_expr_destroy(expr);
}

/* Whatever is judged a hit or unclear must also be sent: the triggers may not miss one. */
static void test_triggers_miss_nothing(void **state)
{
    const struct gd_stats records[] = {
        {.count = 4, .min = -1, .max = 3, .mean = 1, .abs_mean = 1.5, .sum_sq = 11, .zero = 1},
        {.count = 4, .zero = 4},
        {.count = 4, .nan = 1},
        {.count = 4, .pos_inf = 2, .max = 70000},
        {.count = 0, .min = INFINITY, .max = -INFINITY},
        {.count = 1, .min = 70000, .max = 70000, .mean = 70000, .abs_mean = 70000, .sum_sq = 5e9},
        {.count = 4,
         .min = 1,
         .max = 3,
         .mean = 2,
         .abs_mean = 2,
         .sum_sq = 20,
         .mean_abs_delta = 0.01,
         .mean_abs_prev = 2,
         .mismatch = 4,
         .unpaired = 1},
    };
    const struct gd_condition *condition;
    for (size_t c = 0; (condition = gd_condition_at(c)); c++) {
        for (size_t i = 0; i < 2 * sizeof(records) / sizeof(*records); i++) {
            struct gd_stats stats = records[i / 2];
            stats.has_prev = i % 2;
            stats.range_count = 1;
            const struct gd_observation seen = {.stats = &stats, .step = 3, .value_step = 2};
            struct gd_comparison_of test[8];
            size_t tests = gd_condition_triggers(condition, NULL, 0, test, 8);
            struct gd_condition_want want;
            struct gd_verdict verdict;
            bool sent = tests == 0;
            gd_condition_want(condition, NULL, 0, &want);
            /* a plan that asks for a difference always sends a value that has none */
            sent |= (want.needs & GD_NEED_PREVIOUS) && !stats.has_prev;
            for (size_t t = 0; t < tests; t++) {
                unsigned error;
                double actual;
                sent |= gd_statistic_value(test[t].statistic, &seen, &actual, &error) &&
                        gd_compare(actual, test[t].op, test[t].value);
            }
            gd_condition_judge(condition, NULL, 0, &seen, &verdict);
            /* of units that were not asked for nothing is known */
            if (verdict.outcome != GD_NO_HIT && !sent && !(want.needs & GD_NEED_UNITS)) {
                fail_msg("%s, record %zu: %d is not sent", condition->abbr, i / 2,
                         (int)verdict.outcome);
            }
        }
    }
}

static void test_expression_verdict(void **state)
{
    const struct gd_stats stats = {.count = 4, .max = 3, .min = -1, .mean = 1};
    const struct gd_observation seen = {.stats = &stats, .value_step = -1, .range = -1};
    struct gd_verdict verdict;
    struct gd_expr *expr;
    assert_ok(gd_expr_parse("max > 2 || nan > 0 || mean(cur-prev) > 1", &expr, NULL));
    gd_condition_judge_expr(expr, &seen, &verdict);
    assert_true(verdict.outcome == GD_IS_HIT && verdict.error == 0);
    assert_int_equal(verdict.param_count, 2); /* what is not known is not shown */
    assert_string_equal(verdict.param[0].name, "max");
    assert_true(verdict.param[0].actual_value == 3 && verdict.param[0].set_value == 2);
    assert_true(verdict.param[0].hit && verdict.param[1].actual_value == 0);
    gd_expr_destroy(expr);
    assert_ok(gd_expr_parse("max > mean * 2", &expr, NULL));
    gd_condition_judge_expr(expr, &seen, &verdict);
    assert_true(verdict.outcome == GD_IS_HIT && verdict.param_count == 2);
    assert_true(isnan(verdict.param[1].set_value) && verdict.param[1].actual_value == 1);
    gd_expr_destroy(expr);
    assert_ok(gd_expr_parse("cosine < 0", &expr, NULL));
    gd_condition_judge_expr(expr, &seen, &verdict);
    assert_true(verdict.outcome == GD_NOT_CHECKED && verdict.error == GD_HIT_NO_PREVIOUS);
    gd_expr_destroy(expr);
    assert_ok(gd_expr_parse("count+nan+inf+zero+min+max+mean+std+norm+spread > 0", &expr, NULL));
    gd_condition_judge_expr(expr, &seen, &verdict);
    assert_int_equal(verdict.param_count, GD_MAX_HIT_PARAMS);
    gd_expr_destroy(expr);
}

static void test_error_text(void **state)
{
    char text[256];
    gd_hit_error_text(0, text, sizeof(text));
    assert_string_equal(text, "");
    gd_hit_error_text(GD_HIT_NAN | GD_HIT_NO_PREVIOUS, text, sizeof(text));
    assert_string_equal(text, "NaN, no value of the previous step");
    gd_hit_error_text(~0U, text, sizeof(text));
    assert_contains(text, "the statistic is undefined here");
    for (size_t size = 1; size < 40; size++) {
        memset(text, 'x', sizeof(text));
        gd_hit_error_text(~0U, text, size);
        assert_int_equal(strlen(text), size - 1);
        assert_int_equal(text[size], 'x');
    }
    gd_hit_error_text(~0U, text, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_validation),
    cmocka_unit_test(test_range_goes_together),
    cmocka_unit_test(test_availability),
    cmocka_unit_test(test_encoding),
    cmocka_unit_test(test_evaluation),
    cmocka_unit_test(test_changes),
    cmocka_unit_test(test_entries),
    cmocka_unit_test(test_finding),
    cmocka_unit_test(test_own_validation),
    cmocka_unit_test(test_completion),
    cmocka_unit_test(test_wants),
    cmocka_unit_test(test_triggers),
    cmocka_unit_test(test_triggers_miss_nothing),
    cmocka_unit_test(test_expression_verdict),
    cmocka_unit_test(test_error_text),
};

RUN_TESTS()

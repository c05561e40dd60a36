// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/condition.h"

static const struct gd_condition *find(const char *name)
{
    const struct gd_condition *condition = NULL;
    assert_int_equal(gd_condition_find(name, &condition, NULL), GD_OK);
    return condition;
}

static void test_table(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct gd_condition *condition = find(want[i].id);
        assert_ptr_equal(condition, find(want[i].abbr));
        assert_string_equal(gd_condition_selector(condition), want[i].selector);
        assert_int_equal(condition->wire, want[i].wire);
        assert_int_equal(condition->param_count, want[i].params);
        assert_true(condition->fires[0] && condition->look[0]);
    }
    for (size_t i = 17; gd_condition_at(i); i++)
        assert_int_equal(gd_condition_at(i)->wire, GD_WIRE_OWN);
    const struct gd_condition *condition;
    struct gd_err err;
    assert_ptr_equal(find("tl"), find("TL"));
    assert_int_equal(gd_condition_find("XX", &condition, &err), GD_ENOTFOUND);
    assert_non_null(strstr(err.text, "WNC"));
}

static int check(const char *condition, size_t count, const struct gd_condition_value *values)
{
    struct gd_err err = {0};
    int rc = gd_condition_check(find(condition), values, count, &err);
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
    (void)state;
    assert_int_equal(check("TO", 0, NULL), GD_OK);
    assert_int_equal(check("TL", 0, NULL), GD_OK);
    assert_int_equal(check("TO", 1, VALUES(F("max_gt", 1))), GD_EINVAL);
    assert_int_equal(check("TL", 1, VALUES(F("max_gt", -1))), GD_OK);
    assert_int_equal(check("TL", 1, VALUES(F("max_lt", 1))), GD_EINVAL);
    assert_int_equal(check("TL", 1, VALUES(F("abs_mean_gt", 0))), GD_OK);
    assert_int_equal(check("TL", 1, VALUES(F("abs_mean_gt", -1))), GD_EINVAL);
    assert_int_equal(check("TL", 1, VALUES(F("max_gt", NAN))), GD_EINVAL);
    assert_int_equal(check("TL", 1, VALUES(F("max_gt", INFINITY))), GD_EINVAL);
    assert_int_equal(check("TL", 1, VALUES({"max_gt", GD_PARAM_BOOL, 1})), GD_EINVAL);
    assert_int_equal(check("TL", 2, VALUES(F("max_gt", 1), F("min_gt", 1))), GD_EINVAL);
    assert_int_equal(check("TL", 2, VALUES(F("max_gt", 1), F("max_gt", 1))), GD_EINVAL);
    assert_int_equal(check("TZ", 1, VALUES(F("zero_percentage_ge", 100))), GD_OK);
    assert_int_equal(check("TZ", 1, VALUES(F("zero_percentage_ge", 100.5))), GD_EINVAL);
    assert_int_equal(check("TZ", 1, VALUES(F("zero_percentage_ge", -1))), GD_EINVAL);
    assert_int_equal(check("WNC", 1, VALUES(F("rtol", 0.1))), GD_OK);
    assert_int_equal(check("WNC", 1, VALUES(F("atol", 0.1))), GD_EINVAL); /* hidden */
    assert_int_equal(check("WCL", 1, VALUES(F("epsilon", 0.1))), GD_EINVAL);
    assert_int_equal(check("TR", 1, VALUES(F("max_min_lt", 0))), GD_EINVAL);
    assert_int_equal(check("TR", 1, VALUES(F("max_min_gt", 0))), GD_OK);
}

static void test_range_goes_together(void **state)
{
    (void)state;
    struct gd_condition_value start = F("range_start_inclusive", -1),
                              end = F("range_end_inclusive", 1),
                              test = F("range_percentage_lt", 50), other = F("max_min_gt", 3);
    assert_int_equal(check("AR", 3, VALUES(start, end, test)), GD_OK);
    assert_int_equal(check("AR", 3, VALUES(test, end, start)), GD_OK);
    assert_int_equal(check("AR", 1, VALUES(test)), GD_EINVAL);
    assert_int_equal(check("AR", 2, VALUES(test, start)), GD_EINVAL);
    assert_int_equal(check("AR", 2, VALUES(start, end)), GD_EINVAL);
    assert_int_equal(check("AR", 3, VALUES(start, end, other)), GD_EINVAL);
    assert_int_equal(check("AR", 1, VALUES(other)), GD_OK);
    end.value = -2;
    assert_int_equal(check("AR", 3, VALUES(start, end, test)), GD_EINVAL);
}

static void test_availability(void **state)
{
    (void)state;
    assert_int_equal(gd_condition_available(find("OO"), true, false, NULL), GD_OK);
    assert_int_equal(gd_condition_available(find("OO"), false, false, NULL), GD_EUNSUPPORTED);
    assert_int_equal(gd_condition_available(find("WI"), false, true, NULL), GD_OK);
    assert_int_equal(gd_condition_available(find("WI"), false, false, NULL), GD_ESTATE);
    assert_int_equal(gd_condition_available(find("TO"), false, false, NULL), GD_OK);
}

/* All of them, always, in wire order: clients index by position. */
static void test_encoding(void **state)
{
    (void)state;
    struct gd_remote_param params[GD_MAX_CONDITION_PARAMS];
    const struct gd_condition *condition = find("TL");
    assert_int_equal(gd_condition_encode(condition, VALUES(F("min_gt", 3)), 1, params), 4);
    assert_string_equal(params[0].name, "abs_mean_gt");
    assert_string_equal(params[3].name, "mean_gt");
    for (int i = 0; i < 4; i++)
        assert_int_equal(params[i].disabled, i != 2);
    assert_true(params[2].value == 3 && params[0].value == 0);
    assert_int_equal(gd_condition_encode(find("WNC"), VALUES(F("rtol", 0.5)), 1, params), 3);
    assert_true(!params[0].disabled && params[0].value == 0.5);
    assert_true(!params[1].disabled && params[1].value == 1e-8);
    assert_true(!params[2].disabled && params[2].value == 0);
    assert_int_equal(gd_condition_encode(find("WCL"), NULL, 0, params), 2);
    assert_true(params[0].disabled && !params[1].disabled && params[1].value == 1e-9);
    assert_int_equal(gd_condition_encode(find("TO"), NULL, 0, params), 0);
}

static unsigned evaluate(const char *condition, const struct gd_condition_value *values,
                         size_t count, const float *cur, const float *prev, int64_t elements,
                         bool *fired, struct gd_hit_param *hits)
{
    struct gd_remote_param params[GD_MAX_CONDITION_PARAMS];
    struct gd_stats_options options;
    struct gd_stats stats;
    struct gd_tensor *a, *b = NULL;
    struct gd_shape shape = {.rank = 1, .dim = {elements}};
    const struct gd_condition *found = find(condition);
    size_t n = gd_condition_encode(found, values, count, params);
    size_t bytes = (size_t)elements * sizeof *cur;
    assert_int_equal(gd_tensor_wrap(GD_FLOAT32, &shape, cur, bytes, NULL, NULL, &a, NULL), GD_OK);
    if (prev)
        assert_int_equal(gd_tensor_wrap(GD_FLOAT32, &shape, prev, bytes, NULL, NULL, &b, NULL),
                         GD_OK);
    gd_condition_options(found->wire, params, n, &options);
    assert_int_equal(gd_stats_compute(a, b, &options, &stats, NULL), GD_OK);
    gd_tensor_unref(a);
    gd_tensor_unref(b);
    return gd_condition_evaluate(found->wire, params, n, &stats, hits, fired);
}

static void test_evaluation(void **state)
{
    (void)state;
    struct gd_hit_param hits[GD_MAX_HIT_PARAMS];
    bool fired;
    const float good[] = {1, -2, 3, 0}, bad[] = {1, NAN, INFINITY, 0};
    assert_int_equal(evaluate("TO", NULL, 0, good, NULL, 4, &fired, hits), 0);
    assert_false(fired);
    assert_int_equal(evaluate("TO", NULL, 0, bad, NULL, 4, &fired, hits), 0);
    assert_true(fired);
    assert_int_equal(evaluate("TL", VALUES(F("max_gt", 2)), 1, good, NULL, 4, &fired, hits), 0);
    assert_true(fired && hits[1].hit && hits[1].actual_value == 3 && hits[0].disabled);
    assert_int_equal(evaluate("TL", VALUES(F("max_gt", 3)), 1, good, NULL, 4, &fired, hits), 0);
    assert_false(fired);
    assert_int_equal(evaluate("TS", VALUES(F("abs_mean_lt", 2)), 1, good, NULL, 4, &fired, hits),
                     0);
    assert_true(fired && hits[0].actual_value == 1.5);
    /* not finite: the parameters are not looked at */
    assert_int_equal(evaluate("TL", VALUES(F("max_gt", 0)), 1, bad, NULL, 4, &fired, hits),
                     GD_HIT_NAN | GD_HIT_INF);
    assert_false(fired || hits[1].hit);
    assert_int_equal(
        evaluate("TZ", VALUES(F("zero_percentage_ge", 25)), 1, good, NULL, 4, &fired, hits), 0);
    assert_true(fired && hits[0].actual_value == 25);
    assert_int_equal(evaluate("TR",
                              VALUES(F("range_start_inclusive", -2), F("range_end_inclusive", 1),
                                     F("range_percentage_gt", 74)),
                              3, good, NULL, 4, &fired, hits),
                     0);
    assert_true(fired && hits[3].actual_value == 75);
    assert_true(hits[0].actual_value == 0 && !hits[0].hit);
    assert_int_equal(evaluate("TR", VALUES(F("max_min_gt", 4)), 1, good, NULL, 4, &fired, hits), 0);
    assert_true(fired && hits[5].actual_value == 5);
}

static void test_changes(void **state)
{
    (void)state;
    struct gd_hit_param hits[GD_MAX_HIT_PARAMS];
    bool fired;
    const float now[] = {1.1f, -2.2f}, before[] = {1, -2};
    assert_int_equal(
        evaluate("WCL", VALUES(F("abs_mean_update_ratio_gt", 0.05)), 1, now, NULL, 2, &fired, hits),
        GD_HIT_NO_PREVIOUS);
    assert_false(fired);
    assert_int_equal(evaluate("WCL", VALUES(F("abs_mean_update_ratio_gt", 0.05)), 1, now, before, 2,
                              &fired, hits),
                     0);
    assert_true(fired && fabs(hits[0].actual_value - 0.1) < 1e-6);
    assert_int_equal(evaluate("WCS", VALUES(F("abs_mean_update_ratio_lt", 0.05)), 1, now, before, 2,
                              &fired, hits),
                     0);
    assert_false(fired);
    assert_int_equal(evaluate("WNC", VALUES(F("rtol", 0.2)), 1, now, before, 2, &fired, hits), 0);
    assert_true(fired);
    assert_int_equal(evaluate("WNC", VALUES(F("rtol", 0.01)), 1, now, before, 2, &fired, hits), 0);
    assert_false(fired);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_validation),
        cmocka_unit_test(test_range_goes_together),
        cmocka_unit_test(test_availability),
        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

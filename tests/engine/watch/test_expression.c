// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>

#include "../../unit.h"
#include "engine/session.h"
#include "engine/watch/expression.h"
#include "engine/watch/past_values.h"

static struct gd_expr *parse_text(const char *text)
{
    struct gd_expr *expr = NULL;
    struct gd_err err = {0};
    if (gd_expr_parse(text, &expr, &err) != GD_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return expr;
}

static bool find_loss(void *ctx, const char *name, double *ret)
{
    *ret = *(const double *)ctx;
    return strcmp(name, "loss") == 0 || strcmp(name, "train/loss") == 0;
}

static enum gd_truth evaluate_text(const char *text, const struct gd_observation *seen,
                                   unsigned *error)
{
    struct gd_expr *expr = parse_text(text);
    enum gd_truth truth = gd_expr_evaluate(expr, seen, error);
    gd_expr_destroy(expr);
    return truth;
}

/* T, F and U: true, false and unknown. */
static void test_logic(void **state)
{
    static const struct {
        const char *text;
        enum gd_truth want;
    } cases[] = {
        {"1 && 1", GD_TRUE},
        {"1 && 0", GD_FALSE},
        {"1 && lr", GD_UNKNOWN},
        {"0 && 1", GD_FALSE},
        {"0 && 0", GD_FALSE},
        {"0 && lr", GD_FALSE},
        {"lr && 1", GD_UNKNOWN},
        {"lr && 0", GD_FALSE},
        {"lr && lr", GD_UNKNOWN},
        {"1 || 1", GD_TRUE},
        {"1 || 0", GD_TRUE},
        {"1 || lr", GD_TRUE},
        {"0 || 1", GD_TRUE},
        {"0 || 0", GD_FALSE},
        {"0 || lr", GD_UNKNOWN},
        {"lr || 1", GD_TRUE},
        {"lr || 0", GD_UNKNOWN},
        {"lr || lr", GD_UNKNOWN},
        {"!1", GD_FALSE},
        {"!0", GD_TRUE},
        {"!lr", GD_UNKNOWN},
        {"!!5", GD_TRUE},
        {"not 0", GD_TRUE},
        {"not not 0", GD_FALSE},
        {"1 and 0 or 1", GD_TRUE},
        {"1 or 0 and 0", GD_TRUE},
        {"!0 && 0", GD_FALSE},
        {"!(1 && 0)", GD_TRUE},
        {"lr == lr", GD_UNKNOWN},
        {"lr > 1 || 1", GD_TRUE},
        {"1 - 1 - 1", GD_TRUE},
        {"1 - (1 - 1)", GD_TRUE},
        {"8 / 4 / 2 == 1", GD_TRUE},
        {"2 + 3 * 4 == 14", GD_TRUE},
        {"-2 * -3 == 6", GD_TRUE},
        {"- - 2 == 2", GD_TRUE},
        {"!1 == 0", GD_TRUE},
        {"1 / 0 > 1e300", GD_TRUE},
        {"-1 / 0 < -1e300", GD_TRUE},
        {"0 / 0", GD_UNKNOWN},
        {"sqrt(-1) > 0", GD_UNKNOWN},
        {"log(0) < 0", GD_TRUE},
        {"infinity - infinity == 0", GD_UNKNOWN},
        {"1e308 * 10 == infinity", GD_TRUE},
        {"min(2, 1) == 1 && max(2, 1) == 2", GD_TRUE},
        {"abs(-3) == 3", GD_TRUE},
        {"log10(1000) == 3 && exp(0) == 1", GD_TRUE},
        {"step == 42", GD_TRUE},
        {"loss == 2.5", GD_TRUE},
        {"\"train/loss\" == 2.5", GD_TRUE},
        {".5 == 0.5", GD_TRUE},
        {"5. == 5", GD_TRUE},
        {"1e-3 == 0.001", GD_TRUE},
        {"1E+3==1000", GD_TRUE},
    };
    double number = 2.5;
    const struct gd_observation seen = {
        .step = 42, .value_step = -1, .range = -1, .scalar = find_loss, .scalar_ctx = &number};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        unsigned error = 77;
        enum gd_truth truth = evaluate_text(cases[i].text, &seen, &error);
        if (truth != cases[i].want) {
            fail_msg("%s is %d, not %d", cases[i].text, (int)truth, (int)cases[i].want);
        }
        assert_int_equal(truth == GD_UNKNOWN, error != 0);
    }
}

static bool with_previous(void *ctx, const char *name, double *ret)
{
    struct gd_expr_function function;
    if (gd_expr_function(name, &function)) {
        *ret = 5;
        return function.kind == GD_FN_PREVIOUS && strcmp(function.number, "train/loss") == 0;
    }
    return find_loss(ctx, name, ret);
}

static void test_previous(void **state)
{
    double now = 2.5;
    const struct gd_observation seen = {
        .value_step = -1, .range = -1, .scalar = with_previous, .scalar_ctx = &now};
    const char *names[4];
    unsigned error;
    assert_int_equal(evaluate_text("loss < prev(\"train/loss\")", &seen, &error), GD_TRUE);
    assert_int_equal(evaluate_text("2 * loss != prev( \"train/loss\" )", &seen, &error), GD_FALSE);
    assert_int_equal(evaluate_text("loss != prev(loss)", &seen, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NO_PREVIOUS);
    struct gd_expr *expr = parse_text("prev(loss) > loss && prev(loss) > 1");
    assert_int_equal(gd_expr_names(expr, names, 4), 2);
    assert_string_equal(names[0], "prev(loss)");
    assert_string_equal(names[1], "loss");
    struct gd_expr_function function;
    assert_false(gd_expr_function("loss", &function));
    gd_expr_destroy(expr);
    for (size_t i = 0; i < 4; i++) {
        static const char *const wrong[] = {"prev() > 1", "prev(3) > 1", "prev(loss > 1",
                                            "prev(a b)"};
        assert_int_equal(gd_expr_parse(wrong[i], &expr, NULL), GD_EINVAL);
    }
}

/* Of somebody else's statistics: 2 NaN at least, of infinities nothing. */
static void test_lower_bounds(void **state)
{
    static const struct {
        const char *text;
        enum gd_truth want;
    } cases[] = {
        {"nan > 0", GD_TRUE},       {"nan > 1", GD_TRUE},      {"nan > 2", GD_UNKNOWN},
        {"nan >= 2", GD_TRUE},      {"nan >= 3", GD_UNKNOWN},  {"nan < 2", GD_FALSE},
        {"nan < 3", GD_UNKNOWN},    {"nan <= 1", GD_FALSE},    {"nan <= 2", GD_UNKNOWN},
        {"nan == 0", GD_FALSE},     {"nan == 2", GD_UNKNOWN},  {"nan != 1", GD_TRUE},
        {"nan != 2", GD_UNKNOWN},   {"0 < nan", GD_TRUE},      {"5 < nan", GD_UNKNOWN},
        {"nonfinite > 0", GD_TRUE}, {"inf > 0", GD_UNKNOWN},   {"nan + 1 > 0", GD_UNKNOWN},
        {"nan", GD_TRUE},           {"!nan", GD_FALSE},        {"nan && 1", GD_TRUE},
        {"inf", GD_UNKNOWN},        {"nan > 0 || 0", GD_TRUE},
    };
    const struct gd_stats stats = {.count = 8, .nan = 2, .unknown = GD_UNKNOWN_ALL};
    const struct gd_observation seen = {.stats = &stats, .dtype = GD_FLOAT32, .range = -1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        unsigned error;
        if (evaluate_text(cases[i].text, &seen, &error) != cases[i].want) {
            fail_msg("%s is not as wanted", cases[i].text);
        }
    }
}

static void test_why_unknown(void **state)
{
    const double no_number = NAN;
    const struct gd_observation lost = {
        .value_step = -1, .range = -1, .scalar = find_loss, .scalar_ctx = (void *)&no_number};
    const struct gd_stats nan = {.count = 2, .nan = 1, .pos_inf = 1};
    struct gd_observation seen = {.stats = &nan, .value_step = -1, .range = -1};
    unsigned error;
    assert_int_equal(evaluate_text("loss < 100", &lost, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NAN);
    assert_int_equal(evaluate_text("max > 1", &seen, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NAN | GD_HIT_INF);
    assert_int_equal(evaluate_text("max > 1 || nan > 0", &seen, &error), GD_TRUE);
    assert_int_equal(error, 0);
    assert_int_equal(evaluate_text("abs_mean(cur-prev) < 1", &seen, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NAN | GD_HIT_INF | GD_HIT_NO_PREVIOUS);
    assert_int_equal(evaluate_text("z_score > 1 || epoch > 3", &seen, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NAN | GD_HIT_INF | GD_HIT_NO_HISTORY | GD_HIT_NO_VALUE);
    seen.stats = NULL;
    seen.error = GD_HIT_NOT_CAPTURED;
    assert_int_equal(evaluate_text("nan > 0", &seen, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NOT_CAPTURED);
    assert_int_equal(evaluate_text("nan > 0 && step > 3", &seen, &error), GD_FALSE);
    seen.error = 0;
    seen.dtype = GD_STRING;
    assert_int_equal(evaluate_text("zero > 0", &seen, &error), GD_UNKNOWN);
    assert_int_equal(error, GD_HIT_NOT_NUMBERS);
}

static void test_faults(void **state)
{
    static const struct {
        const char *text;
        size_t offset;
        const char *says;
    } cases[] = {
        {"", 0, "missing at the end"},
        {"  ", 0, "missing at the end"},
        {"max >", 5, "missing at the end"},
        {"> 3", 0, "missing before '>'"},
        {"(max > 1", 0, "not closed"},
        {"max > 1)", 7, "has no"},
        {"max = 1", 4, "=="},
        {"max & 1", 4, "&&"},
        {"max | 1", 4, "||"},
        {"1 < max < 3", 8, "chain"},
        {"max 3", 4, "operator is missing"},
        {"mesn > 1", 0, "did you mean \"mean\""},
        {"abs_meen > 1", 0, "abs_mean"},
        {"std(prev) > 1", 0, "abs_mean(prev)"},
        {"mean(foo) > 1", 8, "a number of reports"},
        {"foo(1)", 3, "no function foo"},
        {"min(1) > 0", 5, "min(a, b)"},
        {"max(1, 2", 3, "not closed"},
        {"cur > 1", 0, "after a statistic"},
        {"1 + and", 4, "missing before \"and\""},
        {"1e > 3", 0, "exponent"},
        {"1x > 3", 0, "not a number"},
        {"1.2.3", 0, "not a number"},
        {". > 3", 0, "not a number"},
        {"1e999 > 3", 0, "infinity"},
        {"\"loss > 3", 0, "not closed"},
        {"\"\" > 3", 0, "characters"},
        {"range_percentage > 3", 0, "needs a range"},
        {"nan > 0 || clip_percentage > 3", 11, "needs a range"},
        {"max > 1 # x", 8, "operator is missing"},
        {"max > \xc3\xa9", 6, "missing before"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gd_expr *expr = NULL;
        struct gd_err err = {0};
        assert_int_equal(gd_expr_parse(cases[i].text, &expr, &err), GD_EINVAL);
        assert_null(expr);
        if (err.offset != cases[i].offset || !strstr(err.text, cases[i].says)) {
            fail_msg("%s: %zu %s", cases[i].text, err.offset, err.text);
        }
        assert_int_equal(gd_expr_parse(cases[i].text, &expr, NULL), GD_EINVAL);
    }
}

static char *repeat_text(const char *before, size_t times, const char *middle, const char *behind)
{
    size_t a = strlen(before), b = strlen(behind), m = strlen(middle);
    char *text = malloc(times * (a + b) + m + 1), *p = text;
    assert_non_null(text);
    for (size_t i = 0; i < times; i++, p += a) {
        memcpy(p, before, a);
    }
    memcpy(p, middle, m);
    p += m;
    for (size_t i = 0; i < times; i++, p += b) {
        memcpy(p, behind, b);
    }
    *p = '\0';
    return text;
}

static void limit_is(const char *before, const char *middle, const char *behind, size_t most)
{
    for (size_t times = most; times <= most + 1; times++) {
        char *text = repeat_text(before, times, middle, behind);
        struct gd_expr *expr = NULL;
        struct gd_err err;
        assert_int_equal(gd_expr_parse(text, &expr, &err), times == most ? GD_OK : GD_EINVAL);
        if (times > most) {
            assert_contains(err.text, "more than 256 levels");
        }
        gd_expr_destroy(expr);
        free(text);
    }
}

static void test_limits(void **state)
{
    limit_is("(", "1", ")", 256);
    limit_is("!", "1", "", 256);
    limit_is("-", "nan", "", 256);
    limit_is("abs(", "nan", ")", 256);
    limit_is("1+(", "1", ")", 255); /* each waits for its right side */
    char *text = repeat_text("1+", 2047, "1", "");
    struct gd_expr *expr = parse_text(text);
    const struct gd_observation seen = {.value_step = -1, .range = -1};
    unsigned error;
    assert_int_equal(gd_expr_evaluate(expr, &seen, &error), GD_TRUE);
    gd_expr_destroy(expr);
    free(text);
    for (size_t len = 4096; len <= 4097; len++) { /* blanks around it do not count */
        text = repeat_text(" ", len + 2, "", "");
        memcpy(text + 1, "1+", 2);
        text[len] = '2';
        struct gd_err err;
        expr = NULL;
        assert_int_equal(gd_expr_parse(text, &expr, &err), len == 4096 ? GD_OK : GD_EINVAL);
        gd_expr_destroy(expr);
        free(text);
    }
    char name[80] = "";
    memset(name, 'q', 64);
    assert_int_equal(gd_expr_parse(name, &expr, NULL), GD_EINVAL);
    name[63] = '\0';
    gd_expr_destroy(parse_text(name));
}

static void test_contents(void **state)
{
    enum gd_statistic figures[8];
    const char *names[8];
    struct gd_expr *expr =
        parse_text("  max > loss || abs_mean( cur - prev ) < max * lr && z_score > loss \t");
    assert_string_equal(gd_expr_text(expr),
                        "max > loss || abs_mean( cur - prev ) < max * lr && z_score > loss");
    assert_int_equal(gd_expr_figures(expr, figures, 8), 3);
    assert_true(figures[0] == GD_STAT_MAX && figures[1] == GD_STAT_DELTA_ABS_MEAN &&
                figures[2] == GD_STAT_Z_SCORE);
    assert_int_equal(gd_expr_figures(expr, figures, 1), 3);
    assert_int_equal(gd_expr_needs(expr), GD_NEED_FINITE | GD_NEED_PREVIOUS | GD_NEED_SERIES);
    assert_int_equal(gd_expr_names(expr, names, 8), 2);
    assert_string_equal(names[0], "loss");
    assert_string_equal(names[1], "lr");
    assert_true(gd_expr_has_statistic(expr));
    gd_expr_destroy(expr);
    expr = parse_text("loss > 3 && step > 10");
    assert_false(gd_expr_has_statistic(expr));
    assert_int_equal(gd_expr_needs(expr), 0);
    gd_expr_destroy(expr);
    gd_expr_destroy(NULL);
}

static void test_simple(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        struct gd_comparison_of of[3];
    } cases[] = {
        {"max > 1e4", 1, {{GD_STAT_MAX, GD_CMP_GT, 1e4}}},
        {"max >= -1", 1, {{GD_STAT_MAX, GD_CMP_GE, -1}}},
        {"3 < mean", 1, {{GD_STAT_MEAN, GD_CMP_GT, 3}}},
        {"-3 >= mean", 1, {{GD_STAT_MEAN, GD_CMP_LE, -3}}},
        {"3 > mean", 1, {{GD_STAT_MEAN, GD_CMP_LT, 3}}},
        {"3 <= mean", 1, {{GD_STAT_MEAN, GD_CMP_GE, 3}}},
        {"nan != 0", 1, {{GD_STAT_NAN, GD_CMP_NE, 0}}},
        {"0 == zero", 1, {{GD_STAT_ZERO, GD_CMP_EQ, 0}}},
        {"nan", 1, {{GD_STAT_NAN, GD_CMP_NE, 0}}},
        {"(max > 1) || nan or (inf > 2)",
         3,
         {{GD_STAT_MAX, GD_CMP_GT, 1}, {GD_STAT_NAN, GD_CMP_NE, 0}, {GD_STAT_INF, GD_CMP_GT, 2}}},
        {"nan || (inf || 1 < max)",
         3,
         {{GD_STAT_NAN, GD_CMP_NE, 0}, {GD_STAT_INF, GD_CMP_NE, 0}, {GD_STAT_MAX, GD_CMP_GT, 1}}},
        {"abs_mean(cur-prev) < 1e-9", 1, {{GD_STAT_DELTA_ABS_MEAN, GD_CMP_LT, 1e-9}}},
        {"max > 1 && nan > 0", 0, {{0}}},
        {"!nan", 0, {{0}}},
        {"max > mean", 0, {{0}}},
        {"max > loss", 0, {{0}}},
        {"max + 1 > 3", 0, {{0}}},
        {"max > 1 + 2", 0, {{0}}},
        {"-max > 3", 0, {{0}}},
        {"nan || loss > 3", 0, {{0}}},
        {"nan || 1", 0, {{0}}},
        {"1 > 0", 0, {{0}}},
        {"(max > 1) > 0", 0, {{0}}},
        {"nan * (max > 1)", 0, {{0}}},
        {"(nan || inf) > 1", 0, {{0}}},
        {"min(max, 3)", 0, {{0}}},
        {"step", 0, {{0}}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gd_comparison_of got[8];
        struct gd_expr *expr = parse_text(cases[i].text);
        size_t count = gd_expr_simple(expr, got, 8);
        if (count != cases[i].count) {
            fail_msg("%s: %zu comparisons", cases[i].text, count);
        }
        for (size_t j = 0; j < count; j++) {
            assert_true(got[j].statistic == cases[i].of[j].statistic &&
                        got[j].op == cases[i].of[j].op && got[j].value == cases[i].of[j].value);
        }
        if (count > 1) {
            assert_int_equal(gd_expr_simple(expr, got, count - 1),
                             0); /* half of it would be wrong */
        }
        gd_expr_destroy(expr);
    }
}

static void test_past_values(void **state)
{
    static const double values[] = {3, 2, NAN, 2.5, 2, 4};
    struct gd_past_values past = {.reports = 0};
    double mean = 0;

    assert_false(gd_past_values_mean(&past, 1, &mean));
    for (int64_t i = 0; i < 6; i++) {
        gd_past_values_add(&past, values[i], i + 1);
    }
    assert_int_equal(past.reports, 6);
    assert_true(past.most.value == 4 && past.most.reports == 0);
    assert_true(past.least.value == 2 && past.least.reports == 4); /* equal is not better */
    assert_true(gd_past_values_mean(&past, 2, &mean) && mean == 3);
    assert_true(gd_past_values_mean(&past, 4, &mean) && isnan(mean));
    assert_false(gd_past_values_mean(&past, 7, &mean));
    gd_past_values_add(&past, 1, 6); /* the same step again: 4 does not count */
    assert_int_equal(past.reports, 6);
    assert_true(past.most.value == 3 && past.most.reports == 5);
    assert_true(past.least.value == 1 && past.least.reports == 0);
    assert_true(gd_past_values_mean(&past, 2, &mean) && mean == 1.5);
    for (int64_t step = 7; step < GD_MAX_PAST + 20; step++) {
        gd_past_values_add(&past, (double)step, step);
    }
    assert_int_equal(past.count, GD_MAX_PAST);
    assert_true(gd_past_values_mean(&past, 2, &mean) && mean == GD_MAX_PAST + 18.5);
    assert_true(past.least.value == 1);
    gd_past_values_free(&past);
}

static void test_functions(void **state)
{
    static const struct {
        const char *text, *name;
        enum gd_expr_function_kind kind;
        int64_t count;
        bool least;
    } cases[] = {
        {"best(accuracy) > 1", "best(accuracy,max)", GD_FN_BEST, 0, false},
        {"best( loss ) > 1", "best(loss,min)", GD_FN_BEST, 0, true},
        {"best(loss, max) > 1", "best(loss,max)", GD_FN_BEST, 0, false},
        {"mean(\"a, b\", 20) > 1", "mean(a, b,20)", GD_FN_MEAN, 20, false},
        {"stall(train_loss, 10)", "stall(train_loss,10,min)", GD_FN_STALL, 10, true},
        {"stall(accuracy, 10)", "stall(accuracy,10,max)", GD_FN_STALL, 10, false},
        {"stall(loss, 3, max)", "stall(loss,3,max)", GD_FN_STALL, 3, false},
        {"improved(score, min)", "improved(score,min)", GD_FN_IMPROVED, 0, true},
        {"isnan(loss)", "isnan(loss)", GD_FN_ISNAN, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *names[2];
        struct gd_expr_function function;
        struct gd_expr *expr = parse_text(cases[i].text);
        assert_int_equal(gd_expr_names(expr, names, 2), 1);
        assert_string_equal(names[0], cases[i].name);
        assert_true(gd_expr_function(names[0], &function));
        assert_int_equal(function.kind, cases[i].kind);
        assert_int_equal(function.count, cases[i].count);
        assert_int_equal(function.least, cases[i].least);
        gd_expr_destroy(expr);
    }
}

static bool stub_bound(void *ctx, const struct gd_expr_function *function, enum gd_comparison op,
                       double value, struct gd_test_of *ret)
{
    (void)ctx;
    switch (function->kind) {
    case GD_FN_STALL:
        *ret = (struct gd_test_of){"step", GD_CMP_GE, (double)function->count};
        return function->count == 4;
    case GD_FN_ISNAN: *ret = (struct gd_test_of){"a", .is_nan = true}; return true;
    case GD_FN_IMPROVED: *ret = (struct gd_test_of){"a", op, value}; return true;
    default: return false;
    }
}

/* One of these tests holds whenever the expression is true. */
static void test_needs_one(void **state)
{
    static const struct {
        const char *text, *tests;
    } cases[] = {
        {"loss > 5", "loss 0 5;"},
        {"5 > loss && best(x) > 1", "loss 2 5;"},
        {"loss > 5 || step == 3", "loss 0 5;step 4 3;"},
        {"stall(loss, 3) && (a < 1 || b < 2) && c > 3", "a 2 1;b 2 2;"},
        {"loss > 5 || stall(loss, 3)", ""},
        {"!(loss > 5)", ""},
        {"loss > prev(loss)", "2loss,0 3loss,0 19,0 ;"},
        {"prev(loss) > 3", "3loss,0 0,0 19,0 ;"},
        {"mean(x, 20) < 0.5 || a > 1", "4x,20 0,0 21,0 ;a 0 1;"},
        {"abs(a - 2) <= best(a, min) / -b", "2a,0 0,0 14,0 8,0 5a,0 2b,0 7,0 16,0 22,0 ;"},
        {"max(a, step) != best(b, max)", "2a,0 1,0 18,0 6b,0 24,0 ;"},
        {"(a > b) + 1 > c", ""},
        {"a > stall(b, 3)", ""},
        {"a+a+a+a+a+a+a+a > b", ""}, /* more than 16 terms */
        {"loss", "loss 5 0;"},
        {"stall(loss, 4)", "step 1 4;"},
        {"loss > 5 || isnan(a)", "loss 0 5;a nan;"},
        {"0 < improved(a) && prev(a) > 2", "a 0 0;"},
        {"!isnan(a)", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gd_test_of tests[8];
        char text[200] = "";
        struct gd_expr *expr = parse_text(cases[i].text);
        size_t count = gd_expr_needs_one(expr, stub_bound, NULL, tests, 8);
        for (size_t k = 0; k < count; k++) {
            size_t used = strlen(text);
            for (size_t t = 0; t < tests[k].term_count; t++) {
                const struct gd_term *term = &tests[k].term[t];
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%d%s,%d ", term->code,
                                         term->name, (int)term->count);
            }
            if (tests[k].term_count > 0) {
                snprintf(text + used, sizeof(text) - used, ";");
            } else if (tests[k].is_nan) {
                snprintf(text + used, sizeof(text) - used, "%s nan;", tests[k].number);
            } else {
                snprintf(text + used, sizeof(text) - used, "%s %d %g;", tests[k].number,
                         (int)tests[k].op, tests[k].value);
            }
        }
        assert_string_equal(text, cases[i].tests);
        gd_expr_destroy(expr);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_logic),        cmocka_unit_test(test_previous),
    cmocka_unit_test(test_lower_bounds), cmocka_unit_test(test_why_unknown),
    cmocka_unit_test(test_faults),       cmocka_unit_test(test_limits),
    cmocka_unit_test(test_contents),     cmocka_unit_test(test_simple),
    cmocka_unit_test(test_past_values),  cmocka_unit_test(test_functions),
    cmocka_unit_test(test_needs_one),
};

RUN_TESTS()

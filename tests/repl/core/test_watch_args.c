// SPDX-License-Identifier: GPL-3.0-or-later
/* What watch, trace, twatch and edit are given, taken apart. */
#include "repl/core/watch_args.h"
#include "unit.h"

static struct gd_arena arena;

static int set_up(void **state)
{
    gd_arena_init(&arena, 1 << 24);
    return 0;
}

static int tear_down(void **state)
{
    gd_arena_deinit(&arena);
    return 0;
}

static void assert_text(const char *actual, const char *expected)
{
    if (!expected) {
        assert_null(actual);
    } else {
        assert_non_null(actual);
        assert_string_equal(actual, expected);
    }
}

static struct watch_args parse_good(const char *text)
{
    struct watch_args args;
    struct gd_err err = {.code = GD_OK};
    if (watch_args_parse(&arena, text, 0, &args, &err) != GD_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return args;
}

static void parts_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        const char *condition; /* abbreviation; NULL: the expression */
        const char *expression;
        size_t values;
        const char *where;
        const char *guard;
        enum gd_watch_when when;
    } rows[] = {
        {"TO", "TO", NULL, 0, NULL, NULL, GD_WHEN_AUTO},
        {"to", "TO", NULL, 0, NULL, NULL, GD_WHEN_AUTO},
        {"tensor_overflow on all", "TO", NULL, 0, "all", NULL, GD_WHEN_AUTO},
        {"-exact TO on all", "TO", NULL, 0, "all", NULL, GD_WHEN_EXACT},
        {"-step TO", "TO", NULL, 0, NULL, NULL, GD_WHEN_STEP_END},
        {"-exact -step TO", "TO", NULL, 0, NULL, NULL, GD_WHEN_STEP_END},
        {"TL abs_mean_gt=3", "TL", NULL, 1, NULL, NULL, GD_WHEN_AUTO},
        {"  TL   abs_mean_gt=3   on   weights except *.bias   if  step > 3 ", "TL", NULL, 1,
         "weights except *.bias", "step > 3 ", GD_WHEN_AUTO},
        {"TL abs_mean_gt=3 if step > 3", "TL", NULL, 1, NULL, "step > 3", GD_WHEN_AUTO},
        {"TO on weights, gradients | type:ReLU", "TO", NULL, 0, "weights, gradients | type:ReLU",
         NULL, GD_WHEN_AUTO},
        {"TO on \"a name if so\" if step > 1", "TO", NULL, 0, "\"a name if so\"", "step > 1",
         GD_WHEN_AUTO},
        {"TO on 'weights except *.bias'", "TO", NULL, 0, "weights except *.bias", NULL,
         GD_WHEN_AUTO},
        {"TO on all if 'max > 3'", "TO", NULL, 0, "all", "max > 3", GD_WHEN_AUTO},
        {"'max > 3' on all", NULL, "max > 3", 0, "all", NULL, GD_WHEN_AUTO},
        {"\"max > 3\" on all", NULL, "max > 3", 0, "all", NULL, GD_WHEN_AUTO},
        {"max > 1e4 || nan > 0 on gradients if step > 3", NULL, "max > 1e4 || nan > 0", 0,
         "gradients", "step > 3", GD_WHEN_AUTO},
        {"abs_mean(cur-prev) < 1e-9", NULL, "abs_mean(cur-prev) < 1e-9", 0, NULL, NULL,
         GD_WHEN_AUTO},
        {"-max < -3", NULL, "-max < -3", 0, NULL, NULL, GD_WHEN_AUTO},
        {"-exact -max < -3", NULL, "-max < -3", 0, NULL, NULL, GD_WHEN_EXACT},
        {"! (nan > 0)", NULL, "! (nan > 0)", 0, NULL, NULL, GD_WHEN_AUTO},
        {"nan", NULL, "nan", 0, NULL, NULL, GD_WHEN_AUTO},
        {"nan on all", NULL, "nan", 0, "all", NULL, GD_WHEN_AUTO},
        {"loss > 5", NULL, "loss > 5", 0, NULL, NULL, GD_WHEN_AUTO},
        {"\"train loss\" > 5", NULL, "\"train loss\" > 5", 0, NULL, NULL, GD_WHEN_AUTO},
        /* a condition's name in front of an operator is a number of the training */
        {"ts > 5", NULL, "ts > 5", 0, NULL, NULL, GD_WHEN_AUTO},
        {"ts == 5 if ts > 1", NULL, "ts == 5", 0, NULL, "ts > 1", GD_WHEN_AUTO},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct watch_args args = parse_good(rows[i].text);
        assert_text(args.condition ? args.condition->abbr : NULL, rows[i].condition);
        assert_text(args.expression, rows[i].expression);
        assert_int_equal(args.value_count, rows[i].values);
        assert_text(args.where, rows[i].where);
        assert_text(args.guard, rows[i].guard);
        assert_int_equal(args.when, rows[i].when);
        assert_true(args.has_head);
    }
}

static void values_keep_their_type(void **state)
{
    struct watch_args args = parse_good(
        "TR range_start_inclusive=-1e-3 range_end_inclusive=0x10 range_percentage_lt=50% a=true "
        "b=false");
    static const struct gd_condition_value expected[] = {
        {"range_start_inclusive", GD_PARAM_FLOAT, -1e-3},
        {"range_end_inclusive", GD_PARAM_FLOAT, 16},
        {"range_percentage_lt", GD_PARAM_FLOAT, 50},
        {"a", GD_PARAM_BOOL, 1},
        {"b", GD_PARAM_BOOL, 0},
    };
    assert_int_equal(args.value_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(args.values[i].name, expected[i].name);
        assert_int_equal(args.values[i].type, expected[i].type);
        assert_true(args.values[i].value == expected[i].value);
    }
}

static void errors_point_at_the_column(void **state)
{
    static const struct {
        const char *text;
        int code;
        size_t offset;
        const char *part; /* of the message; the line is "watch " and the text */
    } rows[] = {
        {"", GD_EUSAGE, 0, "column 7"},
        {"on all", GD_EUSAGE, 0, "name a condition"},
        {"-exact", GD_EUSAGE, 6, "column 13"},
        {"TOO on all", GD_ENOTFOUND, 0, "TOO"},
        {"weight-too-large on all", GD_ENOTFOUND, 0, "weight-too-large"},
        {"TO foo on all", GD_EUSAGE, 3, "\"foo\" is not PARAM=VALUE"},
        {"TO =3", GD_EUSAGE, 3, "column 10"},
        {"TL abs_mean_gt=x", GD_EINVAL, 3, "not a number (column 10)"},
        {"TL abs_mean_gt=", GD_EINVAL, 3, "not a number"},
        {"TL a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9", GD_EINVAL, 35, "too many"},
        {"TO on", GD_EUSAGE, 5, "selector is missing after \"on\" (column 12)"},
        {"TO on if step > 3", GD_EUSAGE, 6, "selector is missing"},
        {"TO on all if", GD_EUSAGE, 12, "expression is missing after \"if\""},
        {"TO on all if max >", GD_EINVAL, 18, "missing at the end"},
        {"TO on weights,", GD_EINVAL, 14, "missing"},
        {"max >> 3 on all", GD_EINVAL, 5, "missing before '>'"},
        {"'max > 3", GD_EINVAL, 0, "the quote is not closed (column 7)"},
        {"'max > 3' foo", GD_EUSAGE, 10, "expected \"on SELECTOR\" or \"if EXPR\" (column 17)"},
        {"'max >' on all", GD_EINVAL, 6, "missing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct watch_args args;
        struct gd_err err = {.code = GD_OK};
        int rc = watch_args_parse(&arena, rows[i].text, 6, &args, &err);
        if (rc != rows[i].code || err.code != rc || err.offset != rows[i].offset ||
            !strstr(err.text, rows[i].part)) {
            fail_msg("%s: %d, offset %zu: %s", rows[i].text, rc, err.offset, err.text);
        }
        assert_int_equal(watch_args_parse(&arena, rows[i].text, 6, &args, NULL), rc);
    }
}

static void edit_takes_parts(void **state)
{
    const struct gd_condition *tl = NULL;
    struct watch_args args;
    assert_ok(gd_condition_find("TL", &tl, NULL));
    assert_ok(
        watch_args_parse_edit(&arena, "max_gt=3 abs_mean_gt=off if step > 3", 0, tl, &args, NULL));
    assert_int_equal(args.value_count, 2);
    assert_int_equal(args.off, 2);
    assert_string_equal(args.guard, "step > 3");
    assert_null(args.where);
    assert_ok(watch_args_parse_edit(&arena, "on weights", 0, tl, &args, NULL));
    assert_false(args.has_head);
    assert_string_equal(args.where, "weights");
    assert_ok(watch_args_parse_edit(&arena, "max > 5 on all", 0, NULL, &args, NULL));
    assert_string_equal(args.expression, "max > 5");
    assert_int_equal(watch_args_parse_edit(&arena, "", 0, tl, &args, NULL), GD_EUSAGE);
    assert_int_equal(watch_args_parse_edit(&arena, "foo", 0, tl, &args, NULL), GD_EUSAGE);
    assert_int_equal(watch_args_parse_edit(&arena, "foo", 0, NULL, &args, NULL), GD_EUSAGE);
    assert_int_equal(watch_args_parse_edit(&arena, "max_gt=off", 0, NULL, &args, NULL), GD_EUSAGE);
}

static void unquote_takes_one_pair(void **state)
{
    assert_string_equal(watch_args_unquote(&arena, "'a b'"), "a b");
    assert_string_equal(watch_args_unquote(&arena, "\"a b\""), "a b");
    assert_string_equal(watch_args_unquote(&arena, "'a' || 'b'"), "'a' || 'b'");
    assert_string_equal(watch_args_unquote(&arena, "'"), "'");
    assert_string_equal(watch_args_unquote(&arena, ""), "");
    assert_string_equal(watch_args_unquote(&arena, "''"), "");
}

/* Long lines of openers are read in one pass, not one for each. */
static void many_brackets_are_no_trouble(void **state)
{
    static char text[60000];
    struct watch_args args;
    for (size_t i = 0; i + 2 < sizeof(text); i += 2) {
        memcpy(text + i, "( ", 2);
    }
    assert_int_not_equal(watch_args_parse(&arena, text, 0, &args, NULL), GD_OK);
    memset(text, '\'', sizeof(text) - 1);
    assert_int_not_equal(watch_args_parse(&arena, text, 0, &args, NULL), GD_OK);
}

static const struct CMUnitTest tests[] = {
    TEST(parts_are_told_apart), TEST(values_keep_their_type), TEST(errors_point_at_the_column),
    TEST(edit_takes_parts),     TEST(unquote_takes_one_pair), TEST(many_brackets_are_no_trouble),
};

RUN_TESTS()

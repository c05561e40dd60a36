// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/settings_table.h"
#include "unit.h"

static struct gd_settings settings;
static struct gd_err err;

static int set_up(void **state)
{
    gd_settings_init(&settings);
    err = (struct gd_err){.code = GD_OK};
    return 0;
}

/* As the command set: name and value in one text. */
static int set_text(const char *text)
{
    const struct setting *setting = NULL;
    const char *value = NULL;
    int rc = setting_find(text, &setting, &value, &err);
    return rc == GD_OK ? setting_parse(setting, value, &settings, &err) : rc;
}

static void printed_is(const char *name, const char *expected)
{
    const struct setting *setting = NULL;
    const char *rest = NULL;
    struct gd_buf text = GD_BUF_INIT(4096);

    assert_ok(setting_find(name, &setting, &rest, &err));
    setting_print(setting, &settings, &text);
    assert_string_equal(gd_buf_text(&text), expected);
    gd_buf_deinit(&text);
}

static void every_setting_reads_back_what_it_prints(void **state)
{
    for (const struct setting *s = settings_table; s->name; s++) {
        struct gd_buf text = GD_BUF_INIT(4096);
        struct gd_settings copy;
        memset(&copy, 0x5a, sizeof(copy));
        memcpy(&copy, &settings, sizeof(copy));
        setting_print(s, &settings, &text);
        assert_ok(setting_parse(s, gd_buf_text(&text), &copy, &err));
        assert_memory_equal(&copy, &settings, sizeof(copy));
        assert_true(strlen(s->text) > 10);
        assert_int_not_equal(s->text[strlen(s->text) - 1], '.');
        gd_buf_deinit(&text);
    }
}

static void names_are_in_order_and_differ(void **state)
{
    for (const struct setting *s = settings_table; s[1].name; s++) {
        assert_true(strcmp(s->name, s[1].name) < 0);
    }
}

static void names_may_be_typed_in_several_ways(void **state)
{
    assert_ok(set_text("print precision 3"));
    assert_int_equal(settings.print_precision, 3);
    assert_ok(set_text("print-precision 4"));
    assert_int_equal(settings.print_precision, 4);
    assert_ok(set_text("pr prec 5"));
    assert_int_equal(settings.print_precision, 5);
    assert_ok(set_text("print elements 7"));
    assert_int_equal((int)settings.print_threshold, 7);
    assert_ok(set_text("max-ten 1 GiB"));
    assert_int_equal((int)(settings.max_tensor >> 30), 1);
    assert_ok(set_text("max-graph 1 MiB")); /* a whole name wins over max-graph-memory */
    assert_int_equal((int)settings.max_graph, 1 << 20);
}

static void unknown_and_ambiguous_names_are_refused(void **state)
{
    assert_int_equal(set_text("nonsense 1"), GD_ENOTFOUND);
    assert_int_equal(set_text("max 1"), GD_EAMBIGUOUS);
    assert_contains(err.text, "max-hits");
    assert_int_equal(set_text(""), GD_ENOTFOUND);
}

static void sizes_take_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {{"max-message 4096", 4096},       {"max-message 64K", 65536},
                 {"max-message 64KB", 65536},      {"max-message 64 kib", 65536},
                 {"max-message 1.5m", 3 << 19},    {"max-message 5000 bytes", 5000},
                 {"max-message 1 GiB", 1ULL << 30}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_ok(set_text(cases[i].text));
        assert_true(settings.max_message == cases[i].bytes);
    }
    printed_is("max-message", "1 GiB");
    settings.max_message = 4097;
    printed_is("max-message", "4097 bytes");
}

static void values_out_of_range_say_what_would_be_right(void **state)
{
    static const char *const bad[] = {
        "max-message 1",      "max-message 8 GiB",   "max-message -5",
        "max-message 5 XB",   "max-message nan",     "max-message",
        "print precision 99", "print precision 1.5", "print precision 1x",
        "print precision",    "keepalive -1",        "keepalive inf",
        "color blue",         "confirm perhaps",     "on-loss",
        "start-timeout 1e99"};

    struct gd_settings before = settings;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(set_text(bad[i]), GD_EINVAL);
        assert_memory_equal(&before, &settings, sizeof(before));
    }
    assert_int_equal(set_text("print precision 99"), GD_EINVAL);
    assert_string_equal(err.text, "print precision takes 0 to 17 digits, not \"99\"");
    assert_int_equal(set_text("color blue"), GD_EINVAL);
    assert_string_equal(err.text, "color takes auto | always | never, not \"blue\"");
}

static void switches_and_choices(void **state)
{
    assert_ok(set_text("confirm off"));
    assert_false(settings.confirm);
    assert_ok(set_text("confirm")); /* as gdb: on */
    assert_true(settings.confirm);
    assert_ok(set_text("color nev"));
    assert_int_equal(settings.color, 2);
    assert_ok(set_text("ms-version-check strict"));
    assert_true(settings.ms_version_check_strict);
    assert_ok(set_text("on-loss hold"));
    assert_int_equal(settings.on_loss, GD_ON_LOSS_HOLD);
    printed_is("on-loss", "hold");
}

static void texts_have_a_longest_length(void **state)
{
    char text[400];

    assert_ok(set_text("token abc"));
    assert_string_equal(settings.token, "abc");
    memset(text, 'x', sizeof(text));
    memcpy(text, "token ", 6);
    text[6 + 128] = '\0';
    assert_int_equal(set_text(text), GD_ELIMIT);
    text[6 + 127] = '\0';
    assert_ok(set_text(text));
    assert_int_equal(strlen(settings.token), 127);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(every_setting_reads_back_what_it_prints, set_up),
    cmocka_unit_test_setup(names_are_in_order_and_differ, set_up),
    cmocka_unit_test_setup(names_may_be_typed_in_several_ways, set_up),
    cmocka_unit_test_setup(unknown_and_ambiguous_names_are_refused, set_up),
    cmocka_unit_test_setup(sizes_take_units, set_up),
    cmocka_unit_test_setup(values_out_of_range_say_what_would_be_right, set_up),
    cmocka_unit_test_setup(switches_and_choices, set_up),
    cmocka_unit_test_setup(texts_have_a_longest_length, set_up),
};

RUN_TESTS()

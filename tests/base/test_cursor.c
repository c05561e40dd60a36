// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/cursor.h"

#include "../unit.h"

/* A copy of exactly that length, so that a sanitizer detects reads beyond it. */
static struct gd_cursor cursor_of(const char *text)
{
    size_t len = strlen(text);
    char *copy = malloc(len + (len == 0));

    assert_non_null(copy);
    memcpy(copy, text, len);
    return (struct gd_cursor){.text = copy, .len = len};
}

static void free_cursor(struct gd_cursor *cursor)
{
    free((char *)cursor->text);
}

static void test_blanks_and_literals(void **state)
{
    struct gd_cursor cursor = cursor_of(" \t\n&&  &");

    assert_int_equal(gd_cursor_char(&cursor), ' ');
    assert_false(gd_cursor_take(&cursor, "||"));
    assert_int_equal(cursor.at, 3);
    assert_true(gd_cursor_take(&cursor, "&&"));
    assert_false(gd_cursor_take(&cursor, "&&"));
    assert_int_equal(gd_cursor_peek(&cursor), '&');
    assert_true(gd_cursor_take(&cursor, "&"));
    assert_int_equal(gd_cursor_peek(&cursor), '\0');
    assert_int_equal(cursor.at, cursor.len);
    assert_false(gd_cursor_take(&cursor, "&"));
    free_cursor(&cursor);
}

static void test_identifiers(void **state)
{
    struct gd_cursor cursor = cursor_of("Nonesuch _a.b9 9a None");

    assert_int_equal(gd_cursor_identifier(&cursor), 8);
    assert_false(gd_cursor_take_identifier(&cursor, "None"));
    assert_true(gd_cursor_take_identifier(&cursor, "Nonesuch"));
    assert_true(gd_cursor_take_identifier(&cursor, "_a.b9"));
    gd_cursor_skip_blanks(&cursor);
    assert_int_equal(gd_cursor_identifier(&cursor), 0);
    assert_true(gd_cursor_take(&cursor, "9a"));
    assert_true(gd_cursor_take_identifier(&cursor, "None"));
    free_cursor(&cursor);
}

static void test_integers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
        bool overflow;
    } cases[] = {
        {" 0", 0, false},
        {"007x", 7, false},
        {"9223372036854775807", INT64_MAX, false},
        {"9223372036854775808", INT64_MAX, true},
        {"99999999999999999999999999999999999999991", INT64_MAX, true},
    };
    int64_t value = -1;
    bool overflow;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_cursor cursor = cursor_of(cases[i].text);

        assert_true(gd_cursor_take_integer(&cursor, &value, &overflow));
        assert_int_equal(value, cases[i].value);
        assert_int_equal(overflow, cases[i].overflow);
        free_cursor(&cursor);
    }
    {
        struct gd_cursor cursor = cursor_of("-1");

        assert_false(gd_cursor_take_integer(&cursor, &value, NULL));
        assert_int_equal(cursor.at, 0);
        free_cursor(&cursor);
    }
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        double value;
        const char *fault; /* NULL: valid */
    } cases[] = {
        {"1", 1, NULL},
        {" 1.5e-3 ", 1.5e-3, NULL},
        {".5", .5, NULL},
        {"2.", 2, NULL},
        {"1E2)", 100, NULL},
        {".", 0, "not a number"},
        {"", 0, "not a number"},
        {"1x", 0, "not a number"},
        {"1.2.3", 0, "not a number"},
        {"1e", 0, "exponent"},
        {"1e+", 0, "exponent"},
        {"1e999", 0, "too large"},
        {"1000000000000000000000000000000000000000000000000000000000000000000000000", 0, "digits"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_cursor cursor = cursor_of(cases[i].text);
        double value = 0;
        const char *fault = gd_cursor_take_number(&cursor, &value);

        if (cases[i].fault) {
            assert_non_null(fault);
            assert_contains(fault, cases[i].fault);
            assert_int_equal(cursor.at, 0);
        } else {
            assert_null(fault);
            assert_true(value == cases[i].value);
        }
        free_cursor(&cursor);
    }
}

static void test_quotes(void **state)
{
    struct gd_cursor cursor = cursor_of(" \"it's\"'' \"open");
    const char *start;
    size_t len;

    assert_true(gd_cursor_take_quoted(&cursor, &start, &len));
    assert_int_equal(len, 4);
    assert_memory_equal(start, "it's", 4);
    assert_true(gd_cursor_take_quoted(&cursor, &start, &len));
    assert_int_equal(len, 0);
    assert_false(gd_cursor_take_quoted(&cursor, &start, &len));
    assert_int_equal(gd_cursor_char(&cursor), '"');
    assert_true(gd_cursor_take(&cursor, "\"open"));
    assert_false(gd_cursor_take_quoted(&cursor, &start, &len));
    free_cursor(&cursor);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_blanks_and_literals),
    cmocka_unit_test(test_identifiers),
    cmocka_unit_test(test_integers),
    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_quotes),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
/* Which bar of a line sends its output to a shell command. */
#include "repl/words/piped.h"

#include "unit.h"

static void a_bar_before_a_program_counts(void **state)
{
    assert_int_equal(piped_at("info nodes | head"), 11);
    assert_int_equal(piped_at("info nodes |head -3"), 11);
    assert_int_equal(piped_at("info nodes | /bin/sh -c cat"), 11);
    assert_int_equal(piped_at("info nodes | grep 'a | b' | wc"), 11); /* the first one */
    assert_int_equal(piped_at("p x's | head"), 6); /* a quote that does not end */
}

static void other_bars_belong_to_the_argument(void **state)
{
    static const char *const lines[] = {
        "",
        "| head",
        "info nodes",
        "info nodes weights|gradients",
        "info nodes weights|head",
        "info nodes weights | no_such_program_anywhere",
        "p a || head",
        "p (a | head)",
        "p x[a | head]",
        "p \"a | head\"",
        "p \"a \\\" | head\"",
        "p 'a | head'",
        "search /a | head/",
        "info nodes | ",
        "info nodes |",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(piped_at(lines[i]), 0);
    }
}

static void programs_are_found_on_the_path(void **state)
{
    assert_true(piped_is_program("sh", 2));
    assert_true(piped_is_program("shxyz", 2));
    assert_true(piped_is_program("/bin/sh", 7));
    assert_false(piped_is_program("", 0));
    assert_false(piped_is_program("/bin", 4)); /* a directory */
    assert_false(piped_is_program("no_such_program_anywhere", 24));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bar_before_a_program_counts),
        cmocka_unit_test(other_bars_belong_to_the_argument),
        cmocka_unit_test(programs_are_found_on_the_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

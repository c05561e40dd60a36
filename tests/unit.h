// SPDX-License-Identifier: GPL-3.0-or-later
/* What every suite includes: cmocka, after the headers that it needs, and the usual ones of C. */
#ifndef GRADB_TESTS_UNIT_H
#define GRADB_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every test gets a state and every fake a context; few need them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define assert_ok(call)             assert_int_equal(call, GD_OK)
#define assert_contains(text, part) assert_non_null(strstr(text, part))

/* A test between set_up and tear_down of its file. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* The main function of a file that lists its tests in `tests`; BETWEEN: with a set-up and a
 * tear-down of the file. */
#define RUN_TESTS() RUN_TESTS_BETWEEN(NULL, NULL)
#define RUN_TESTS_BETWEEN(begin, end)                                                              \
    int main(void)                                                                                 \
    {                                                                                              \
        return cmocka_run_group_tests(tests, begin, end);                                          \
    }

#endif

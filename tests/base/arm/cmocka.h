// SPDX-License-Identifier: GPL-3.0-or-later
/* What test_stats_levels.c uses of cmocka, for a processor for which the system has no cmocka: the
 * first failure ends the program. */
#ifndef GRADB_TESTS_ARM_CMOCKA_H
#define GRADB_TESTS_ARM_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function)                                                                 \
    {                                                                                              \
#function, function                                                                        \
    }

#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        exit(1);                                                                                   \
    } while (0)

#define assert_true(x)                                                                             \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fail_msg("%s\n", #x);                                                                  \
        }                                                                                          \
    } while (0)

#define assert_non_null(x)     assert_true(x)
#define assert_int_equal(a, b) assert_true((a) == (b))

#define cmocka_run_group_tests(tests, begin, end) run_all(tests, sizeof(tests) / sizeof((tests)[0]))

static inline int run_all(const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tests[i].run(NULL);
        printf("passed %s\n", tests[i].name);
    }
    return 0;
}

#endif

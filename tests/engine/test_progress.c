// SPDX-License-Identifier: GPL-3.0-or-later
#include "../unit.h"
#include "engine/debugger.h"
#include "engine/progress.h"

static double read_clock(void *ctx)
{
    return *(double *)ctx;
}

static struct gd_debugger *make_debugger(double *clock)
{
    struct gd_debugger *debugger = NULL;

    assert_ok(gd_debugger_create(&debugger, NULL));
    debugger->now = read_clock;
    debugger->now_ctx = clock;
    return debugger;
}

static void test_oldest_is_current(void **state)
{
    double clock = 100;
    struct gd_debugger *debugger = make_debugger(&clock);
    struct gd_progress_info info;

    assert_false(gd_progress_current(debugger, &info));
    struct gd_progress *first = gd_progress_begin(debugger, "first", "B", 1000);
    struct gd_progress *second = gd_progress_begin(debugger, "second", "nodes", 0);
    gd_progress_at(first, 500);
    gd_progress_at(second, 7);
    clock = 102;
    assert_true(gd_progress_current(debugger, &info));
    assert_string_equal(info.what, "first");
    assert_string_equal(info.unit, "B");
    assert_int_equal(info.done, 500);
    assert_int_equal(info.total, 1000);
    assert_float_equal(info.seconds, 2, 0);
    assert_float_equal(info.rate, 250, 0);
    gd_progress_end(first);
    assert_true(gd_progress_current(debugger, &info));
    assert_string_equal(info.what, "second");
    assert_int_equal(info.done, 7);
    clock = 50; /* set back */
    assert_true(gd_progress_current(debugger, &info));
    assert_float_equal(info.seconds, 0, 0);
    gd_progress_end(second);
    assert_false(gd_progress_current(debugger, &info));
    gd_debugger_destroy(debugger);
}

static void test_stop_reaches_those_that_run(void **state)
{
    double clock = 1;
    struct gd_debugger *debugger = make_debugger(&clock);

    gd_progress_stop_all(debugger);
    struct gd_progress *first = gd_progress_begin(debugger, "a", "B", 1);
    struct gd_progress *second = gd_progress_begin(debugger, "b", "B", 1);
    assert_false(gd_progress_is_stopped(first));
    gd_progress_stop_all(debugger);
    assert_true(gd_progress_is_stopped(first));
    assert_true(gd_progress_is_stopped(second));
    struct gd_progress *later = gd_progress_begin(debugger, "c", "B", 1);
    assert_false(gd_progress_is_stopped(later));
    gd_progress_end(second);
    gd_progress_end(later);
    gd_progress_end(first);
    gd_debugger_destroy(debugger);
}

static void test_none_is_taken(void **state)
{
    gd_progress_at(NULL, 1);
    assert_false(gd_progress_is_stopped(NULL));
    gd_progress_end(NULL);
}

static void expect_text(uint64_t done, uint64_t total, double rate, const char *unit, int cols,
                        bool utf8, const char *want)
{
    struct gd_progress_info info = {.done = done, .total = total, .rate = rate};
    char text[512];

    snprintf(info.what, sizeof(info.what), "fetching w:0");
    snprintf(info.unit, sizeof(info.unit), "%s", unit);
    gd_progress_text(&info, cols, utf8, text, sizeof(text));
    assert_string_equal(text, want);
}

static void test_text(void **state)
{
    uint64_t gib = UINT64_C(1) << 30;

    expect_text(gib, 4 * gib, 512.0 * 1024 * 1024, "B", 80, false,
                "fetching w:0  [######--------------------]  1.0 of 4.0 GiB  512.0 MiB/s");
    expect_text(gib, 4 * gib, 512.0 * 1024 * 1024, "B", 80, true,
                "fetching w:0  [██████░░░░░░░░░░░░░░░░░░░░]  1.0 of 4.0 GiB  512.0 MiB/s");
    expect_text(1200, 0, 300, "nodes", 80, false, "fetching w:0  1200 nodes  300 nodes/s");
    expect_text(5, 10, 0, "B", 80, false, "fetching w:0  [#############-------------]  5 of 10 B");
    expect_text(11, 10, 0, "B", 40, false, "fetching w:0  [############]  11 of 10 B");
    expect_text(gib, 4 * gib, 0, "B", 30, false, "fetching w:0  1.0 of 4.0 GiB");
    expect_text(gib, 4 * gib, 0, "B", 20, false, "1.0 of 4.0 GiB");
    expect_text(gib, 4 * gib, 0, "B", 3, false, "1.0");
    expect_text(gib, 4 * gib, 0, "B", 0, false, "");
    expect_text(gib, 4 * gib, 0, "B", -5, false, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_oldest_is_current),
    cmocka_unit_test(test_stop_reaches_those_that_run),
    cmocka_unit_test(test_none_is_taken),
    cmocka_unit_test(test_text),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../unit.h"
#include "repl/values/spark.h"

#define V(x)                                                                                       \
    {                                                                                              \
        SPARK_VALUE, x                                                                             \
    }
#define MISSING                                                                                    \
    {                                                                                              \
        SPARK_MISSING, 0                                                                           \
    }
#define BAD                                                                                        \
    {                                                                                              \
        SPARK_BAD, 0                                                                               \
    }

static void expect_drawing(const struct spark_point *points, size_t count, size_t width, bool ascii,
                           const char *want)
{
    struct gd_buf buf = GD_BUF_INIT(4096);

    spark_draw(points, count, width, ascii, &buf);
    assert_string_equal(gd_buf_text(&buf), want);
    gd_buf_deinit(&buf);
}

static void bars_go_from_lowest_to_highest(void **state)
{
    const struct spark_point rising[] = {V(0), V(1), V(2), V(3), V(4), V(5), V(6), V(7)};
    const struct spark_point odd[] = {V(-5), BAD, MISSING, V(5)};
    const struct spark_point same[] = {V(3), V(3)};
    const struct spark_point extreme[] = {V(-1e308), V(0), V(1e308)};
    const struct spark_point tiny[] = {V(0), V(5e-324)};
    const struct spark_point none[] = {BAD, MISSING, BAD};

    expect_drawing(rising, 8, 8, false, "▁▂▃▄▅▆▇█");
    expect_drawing(rising, 8, 100, true, "_.:-=+*#");
    expect_drawing(odd, 4, 10, false, "▁× █");
    expect_drawing(odd, 4, 10, true, "_! #");
    expect_drawing(same, 2, 10, false, "▄▄");
    expect_drawing(extreme, 3, 10, false, "▁▅█");
    expect_drawing(tiny, 2, 10, true, "--"); /* too near to tell apart */
    expect_drawing(none, 3, 10, true, "! !");
    expect_drawing(rising, 0, 10, false, "");
    expect_drawing(rising, 8, 0, false, "");
}

/* What is far from the rest is seen however narrow the line is. */
static void bars_share_columns(void **state)
{
    struct spark_point points[1000];

    for (size_t i = 0; i < 1000; i++) {
        points[i] = (struct spark_point)V(i == 777 ? 100 : 1);
    }
    expect_drawing(points, 1000, 10, true, "_______#__");
    points[3].mark = SPARK_BAD;
    expect_drawing(points, 1000, 10, true, "!______#__");
    expect_drawing(points, 1000, 1, true, "!");
    expect_drawing(points + 4, 996, 7, true, "_____#_");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_go_from_lowest_to_highest),
        cmocka_unit_test(bars_share_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* How gradients are split: against all ways to split a few of them. */
#include <float.h>
#include <math.h>

#include "../../unit.h"
#include "engine/timing/split.h"

static void one_bucket_waits_for_all(void **state)
{
    static const struct gd_time_gradient gradients[] = {{100, 1}, {100, 2}, {100, 3}};
    static const int whole[] = {3}, each[] = {1, 2, 3};
    (void)state;
    assert_true(gd_split_tail(gradients, 3, whole, 1, 0.5, 100) == 3.5);
    assert_true(gd_split_tail(gradients, 3, each, 3, 0, 100) == 1);
    assert_true(gd_split_tail(gradients, 3, each, 3, 0.5, 100) == 2.5);
}

static void a_limit_closes_buckets(void **state)
{
    static const struct gd_time_gradient gradients[] = {{60, 1}, {60, 2}, {60, 3}};
    int buckets;
    (void)state;
    assert_true(gd_split_tail_of_limit(gradients, 3, 100, 0, 60, &buckets) == 2);
    assert_int_equal(buckets, 2);
    assert_true(gd_split_tail_of_limit(gradients, 3, 1e9, 0, 60, &buckets) == 3);
    assert_int_equal(buckets, 1);
}

/* The least tail of all ways to split them. */
static double least_tail(const struct gd_time_gradient *gradients, int count, double latency,
                         double rate)
{
    double least = DBL_MAX;
    for (unsigned cut = 0; cut < 1u << (count - 1); cut++) {
        int end[16], buckets = 0;
        for (int i = 0; i < count; i++) {
            if (i == count - 1 || (cut >> i & 1)) {
                end[buckets++] = i + 1;
            }
        }
        if (buckets <= GD_SPLIT_MOST) {
            double tail = gd_split_tail(gradients, count, end, buckets, latency, rate);
            least = tail < least ? tail : least;
        }
    }
    return least;
}

static void no_split_is_better(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 200; round++) {
        struct gd_time_gradient gradients[10];
        int count = 1 + rand() % 10;
        double at = 0, latency = rand() % 3 * 0.2;
        for (int i = 0; i < count; i++) {
            at += rand() % 100 / 50.0;
            gradients[i] = (struct gd_time_gradient){(uint64_t)(1 + rand() % 1000), at};
        }
        struct gd_split split;
        assert_int_equal(gd_split_best(gradients, count, latency, 300, &split, NULL), GD_OK);
        double least = least_tail(gradients, count, latency, 300);
        assert_true(split.tail >= least - 1e-9 && split.tail <= least * 1.05 + 1e-9);
        assert_true(fabs(gd_split_tail(gradients, count, split.end, split.count, latency, 300) -
                         split.tail) < 1e-9);
        assert_int_equal(split.end[split.count - 1], count);
    }
}

static void latency_makes_fewer_buckets(void **state)
{
    struct gd_time_gradient gradients[100];
    struct gd_split free_calls, dear_calls;
    (void)state;
    for (int i = 0; i < 100; i++) {
        gradients[i] = (struct gd_time_gradient){100, i * 0.01};
    }
    assert_int_equal(gd_split_best(gradients, 100, 0, 12000, &free_calls, NULL), GD_OK);
    assert_int_equal(gd_split_best(gradients, 100, 0.2, 12000, &dear_calls, NULL), GD_OK);
    assert_true(dear_calls.count < free_calls.count);
    assert_true(free_calls.tail < 0.3);
    assert_int_equal(gd_split_best(gradients, 0, 0, 1, &free_calls, NULL), GD_EINVAL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_bucket_waits_for_all), cmocka_unit_test(a_limit_closes_buckets),
    cmocka_unit_test(no_split_is_better), cmocka_unit_test(latency_makes_fewer_buckets)};
RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
/* Initial weights against the usual schemes: each is found in its own samples, and no other shape.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "engine/init_scheme.h"

static uint64_t state;
static struct gd_init_hints hints;

static double next_uniform(void) /* in (-1, 1) */
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)((state >> 11) + 1) / (double)(1ULL << 52) - 1;
}

static double next_normal(void)
{
    double u = fabs(next_uniform()), v = next_uniform();
    return sqrt(-2 * log(u > 0 ? u : 1e-300)) * cos(3.14159265358979 * v);
}

static double next_truncated(void)
{
    double x;
    do {
        x = next_normal();
    } while (fabs(x) > 2);
    return x;
}

static struct gd_init_verdict judge_samples(int64_t rows, int64_t columns, double (*next)(void),
                                            double scale)
{
    struct gd_shape shape = {.rank = 2, .dim = {rows, columns}};
    struct gd_tensor *tensor = NULL;
    struct gd_init_verdict verdict;
    struct gd_stats stats;

    assert_int_equal(gd_tensor_create(GD_FLOAT64, &shape, 0, &tensor, NULL), GD_OK);
    double *values = (double *)(void *)gd_tensor_bytes_mut(tensor);
    for (int64_t i = 0; i < rows * columns; i++) {
        values[i] = scale * next();
    }
    assert_int_equal(gd_stats_compute(tensor, NULL, NULL, &stats, NULL), GD_OK);
    gd_init_judge(&shape, &stats, &hints, &verdict);
    gd_tensor_unref(tensor);
    return verdict;
}

static bool has_match(const struct gd_init_verdict *verdict, const char *name, const char *fan)
{
    for (int i = 0; i < verdict->match_count; i++) {
        if (strncmp(verdict->match[i].name, name, strlen(name)) == 0 &&
            strcmp(verdict->match[i].fan, fan) == 0) {
            return true;
        }
    }
    return false;
}

static void test_schemes(void **unused)
{
    (void)unused;
    for (state = 1; state < 20; state++) {
        struct gd_init_verdict v = judge_samples(300, 200, next_uniform, sqrt(6. / 500));
        assert_int_equal(v.shape, GD_INIT_UNIFORM);
        assert_true(has_match(&v, "Xavier", "") && v.match_count == 1);
        v = judge_samples(300, 200, next_normal, sqrt(2. / 200));
        assert_int_equal(v.shape, GD_INIT_NORMAL);
        assert_true(has_match(&v, "He", "fan_in") && v.match_count == 1);
        v = judge_samples(300, 200, next_uniform, sqrt(6. / 300));
        assert_true(has_match(&v, "He", "fan_out"));
        v = judge_samples(300, 200, next_uniform, 1 / sqrt(200.));
        assert_true(has_match(&v, "default", "fan_in") && v.match_count == 1);
        v = judge_samples(300, 200, next_truncated, 0.02);
        assert_int_equal(v.shape, GD_INIT_TRUNCATED);
        assert_true(has_match(&v, "TruncatedNormal(0.02)", ""));
        v = judge_samples(100, 32, next_normal, 1);
        assert_true(has_match(&v, "N(0, 1)", "") && !v.far);
    }
}

static void test_far(void **unused)
{
    (void)unused;
    state = 7;
    struct gd_init_verdict v = judge_samples(300, 200, next_normal, 7);
    assert_true(v.far && v.match_count == 0);
    v = judge_samples(300, 200, next_uniform, 1e-4);
    assert_true(v.far && v.match_count == 0);
    v = judge_samples(300, 200, next_normal, 0.13); /* no scheme's, but not far off */
    assert_true(!v.far && v.match_count == 0);
}

/* The bound of an LSTM with 40 hidden units is 1 / sqrt(40), whatever its input has. */
static void test_recurrent(void **unused)
{
    (void)unused;
    state = 11;
    hints.recurrent = true;
    struct gd_init_verdict v = judge_samples(160, 96, next_uniform, 1 / sqrt(40));
    assert_true(has_match(&v, "default (uniform, 1 / sqrt hidden)", ""));
    hints.recurrent = false;
    state = 11;
    v = judge_samples(160, 96, next_uniform, 1 / sqrt(40));
    assert_int_equal(v.match_count, 0);
}

static double next_sign(void) /* rows of 64 have length 1, and are not orthogonal */
{
    return next_uniform() < 0 ? -0.125 : 0.125;
}

static void test_rows_of_length_one(void **unused)
{
    (void)unused;
    state = 5;
    assert_int_equal(judge_samples(32, 64, next_sign, 1).shape, GD_INIT_ORTHOGONAL);
    hints.not_orthogonal = true;
    assert_int_not_equal(judge_samples(32, 64, next_sign, 1).shape, GD_INIT_ORTHOGONAL);
    hints.not_orthogonal = false;
}

static double give_one(void)
{
    return 1;
}

static void test_few_and_constant(void **unused)
{
    (void)unused;
    state = 3;
    struct gd_init_verdict v = judge_samples(3, 2, next_normal, 7);
    assert_true(v.few && !v.far && v.match_count == 0);
    v = judge_samples(30, 20, give_one, 0);
    assert_int_equal(v.shape, GD_INIT_CONSTANT);
    assert_false(v.far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemes),          cmocka_unit_test(test_far),
        cmocka_unit_test(test_recurrent),        cmocka_unit_test(test_rows_of_length_one),
        cmocka_unit_test(test_few_and_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Compares the kernels with plain double-precision references. */
#include <math.h>

#include "../unit.h"
#include "gemm.h"
#include "ops.h"
#include "rng.h"

static float *random_values(struct rng *rng, size_t count)
{
    float *values = calloc(count, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = rng_normal(rng);
    }
    return values;
}

static void check_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) {
        fail_msg("%.9g instead of %.9g", got, want);
    }
}

static void gemm_check(const struct gemm *g)
{
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            double sum = 0.0;
            for (size_t p = 0; p < g->k; p++) {
                sum += (double)g->a[i * g->a_row + p * g->a_col] *
                       (double)g->b[p * g->b_row + j * g->b_col];
            }
            check_near((double)g->c[i * g->c_row + j], (double)g->alpha * sum, 2e-4);
        }
    }
}

static void gemm_all_layouts(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {5, 7, 3},     {6, 16, 8},  {13, 33, 300},
                                      {97, 290, 5}, {64, 64, 512}, {128, 3, 9}, {2, 257, 257}};
    struct rng rng = {3};
    struct pool *pool = pool_create(3);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        float *a = random_values(&rng, m * k);
        float *b = random_values(&rng, k * n);
        float *c = random_values(&rng, m * n); /* old contents must not count */
        for (int layout = 0; layout < 4; layout++) {
            bool ta = layout & 1, tb = layout & 2;
            struct gemm g = {.m = m,
                             .n = n,
                             .k = k,
                             .a = a,
                             .b = b,
                             .c = c,
                             .c_row = n,
                             .a_row = ta ? 1 : k,
                             .a_col = ta ? m : 1,
                             .b_row = tb ? 1 : n,
                             .b_col = tb ? k : 1,
                             .alpha = 0.5f};
            gemm_run(pool, &g);
            gemm_check(&g);
        }
        free(a);
        free(b);
        free(c);
    }
    pool_destroy(pool);
}

static void softmax_rows_sum_to_one(void **state)
{
    struct rng rng = {4};
    enum { ROWS = 5, COLS = 37 };
    float *x = random_values(&rng, ROWS * COLS);
    float y[ROWS * COLS];
    x[3] = 80.0f;
    ops_softmax(NULL, y, x, ROWS, COLS);
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0.0;
        for (size_t i = 0; i < COLS; i++) {
            sum += exp((double)x[row * COLS + i]);
        }
        for (size_t i = 0; i < COLS; i++) {
            check_near((double)y[row * COLS + i], exp((double)x[row * COLS + i]) / sum, 1e-6);
        }
    }
    free(x);
}

static void softmax_underflows_and_spreads_nan(void **state)
{
    float y[3];
    ops_softmax(NULL, y, (float[]){0.0f, -200.0f, -1e4f}, 1, 3);
    assert_true(y[0] == 1.0f && y[1] == 0.0f && y[2] == 0.0f);
    ops_softmax(NULL, y, (float[]){0.0f, NAN, 1.0f}, 1, 3);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
}

static void activations_match(void **state)
{
    float x[801], y[801];
    for (int i = 0; i <= 800; i++) {
        x[i] = (float)(i - 400) / 20.0f;
    }
    ops_activate(NULL, ACTIVATION_TANH, y, x, 801);
    for (int i = 0; i <= 800; i++) {
        check_near((double)y[i], tanh((double)x[i]), 1e-6);
    }
    ops_activate(NULL, ACTIVATION_GELU, y, x, 801);
    for (int i = 0; i <= 800; i++) {
        double v = (double)x[i];
        double inner = sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v);
        check_near((double)y[i], 0.5 * v * (1.0 + tanh(inner)), 5e-6);
    }
    float odd[4] = {NAN, INFINITY, -INFINITY, -0.0f};
    ops_activate(NULL, ACTIVATION_RELU, y, odd, 4);
    assert_true(isnan(y[0]) && isinf(y[1]) && y[2] == 0.0f && y[3] == 0.0f);
    ops_activate(NULL, ACTIVATION_TANH, y, odd, 3);
    assert_true(isnan(y[0]) && y[1] == 1.0f && y[2] == -1.0f);
}

/* Finite half-precision values are unchanged; ties round to even. */
static void half_rounding(void **state)
{
    double previous = 0.0;
    for (int bits = 1; bits < 0x7c00; bits++) {
        int exponent = bits >> 10;
        int fraction = bits & 1023;
        double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        float both[2] = {(float)value, (float)((value + previous) / 2.0)};
        ops_round_half(both, 2);
        assert_true((double)both[0] == value);
        assert_true((double)both[1] == (bits % 2 == 0 ? value : previous));
        previous = value;
    }
    float edge[4] = {65519.0f, 65520.0f, -70000.0f, 1e-9f};
    ops_round_half(edge, 4);
    assert_true(edge[0] == 65504.0f && isinf(edge[1]) && edge[2] == -INFINITY && edge[3] == 0.0f);
}

static void heads_go_there_and_back(void **state)
{
    struct heads shape = {.batch = 2, .time = 3, .heads = 2, .dim = 4};
    enum { PART = 2 * 3 * 2 * 4 };
    float x[3 * PART], back[3 * PART], q[PART], k[PART], v[PART];
    for (int i = 0; i < 3 * PART; i++) {
        x[i] = (float)i;
    }
    ops_split_heads((float *[]){q, k, v}, x, &shape, 3);
    /* batch 1, time 2, second part, head 1, element 3 */
    assert_true(k[((1 * 2 + 1) * 3 + 2) * 4 + 3] == x[(1 * 3 + 2) * 24 + 8 + 4 + 3]);
    ops_merge_heads(back, (const float *[]){q, k, v}, &shape, 3);
    assert_memory_equal(x, back, sizeof(x));
}

static void adamw_first_step(void **state)
{
    float w[2] = {1.0f, -2.0f}, m[2] = {0}, v[2] = {0};
    struct adamw a = {.lr = 0.1f,
                      .beta1 = 0.9f,
                      .beta2 = 0.99f,
                      .eps = 1e-8f,
                      .decay = 0.5f,
                      .correction1 = 0.1f,
                      .correction2 = 0.01f,
                      .grad_scale = 0.5f};
    ops_adamw(NULL, w, m, v, (float[]){4.0f, -8.0f}, 2, &a);
    /* The first step is lr against the gradient's sign, plus lr * decay * w. */
    check_near((double)w[0], 1.0 - 0.1 * (1.0 + 0.5 * 1.0), 1e-5);
    check_near((double)w[1], -2.0 - 0.1 * (-1.0 + 0.5 * -2.0), 1e-5);
    check_near((double)m[0], 0.2, 1e-6);
    check_near((double)v[0], 0.04, 1e-6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gemm_all_layouts),
    cmocka_unit_test(softmax_rows_sum_to_one),
    cmocka_unit_test(softmax_underflows_and_spreads_nan),
    cmocka_unit_test(activations_match),
    cmocka_unit_test(half_rounding),
    cmocka_unit_test(heads_go_there_and_back),
    cmocka_unit_test(adamw_first_step),
};

RUN_TESTS()

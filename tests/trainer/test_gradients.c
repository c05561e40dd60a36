// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Compares the hand-written backward pass with finite differences of the loss (summed in double):
 * for each parameter, along its gradient and along random directions, with each activation.
 */
#include <math.h>

#include "../unit.h"
#include "trainer_text.h"

static double loss_of(struct train *t)
{
    model_forward(t->model, t->step);
    double sum = 0.0;
    for (size_t i = 0; i < t->model->picked->count; i++) {
        sum -= log((double)t->model->picked->f[i]);
    }
    return sum / (double)t->model->picked->count;
}

static double norm_of(const float *x, size_t count)
{
    return sqrt(ops_sum_squares(x, count));
}

/* Slope of the loss along `direction` (unit length) at parameter p. */
static double measure_slope(struct train *t, const struct param *p, const float *direction,
                            double eps)
{
    size_t count = p->value->count;
    size_t bytes = count * sizeof(float);
    float *saved = malloc(bytes);
    assert_non_null(saved);
    memcpy(saved, p->value->f, bytes);
    double loss[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < count; i++) {
            p->value->f[i] = saved[i] + (float)((side ? eps : -eps) * (double)direction[i]);
        }
        loss[side] = loss_of(t);
    }
    memcpy(p->value->f, saved, bytes);
    free(saved);
    return (loss[1] - loss[0]) / (2.0 * eps);
}

static void parameter_check(struct train *t, const struct param *p, const float *grad,
                            struct rng *rng)
{
    size_t count = p->value->count;
    float *direction = malloc(count * sizeof(float));
    assert_non_null(direction);
    for (int trial = 0; trial < 3; trial++) {
        for (size_t i = 0; i < count; i++) {
            direction[i] = trial == 0 ? grad[i] : rng_normal(rng);
        }
        double length = norm_of(direction, count);
        assert_true(length > 1e-6); /* every parameter matters */
        double want = 0.0;
        for (size_t i = 0; i < count; i++) {
            direction[i] = (float)((double)direction[i] / length);
            want += (double)direction[i] * (double)grad[i];
        }
        double got = measure_slope(t, p, direction, 1e-2);
        if (fabs(got - want) > 0.01 * fabs(want) + 2e-4) {
            fail_msg("%s, direction %d: finite difference %.6g, backward %.6g", p->name, trial, got,
                     want);
        }
    }
    free(direction);
}

static void all_parameters(enum activation activation)
{
    struct train_options options = TRAIN_DEFAULTS;
    options.config.width = 24;
    options.config.heads = 3;
    options.config.context = 10;
    options.config.batch = 3;
    options.config.activation = activation;
    struct train *t = text_train(&options);
    for (int i = 0; i < 3; i++) {
        text_step(t); /* leave the symmetric start */
    }
    train_forward(t);
    train_backward(t);
    struct rng rng = {11};
    for (size_t i = 0; i < t->model->param_count; i++) {
        const struct param *p = &t->model->params[i];
        assert_non_null(p->grad);
        assert_int_equal(p->grad->count, p->value->count);
        size_t bytes = p->grad->count * sizeof(float);
        float *grad = malloc(bytes);
        assert_non_null(grad);
        memcpy(grad, p->grad->f, bytes);
        parameter_check(t, p, grad, &rng);
        free(grad);
    }
    train_destroy(t);
}

static void with_gelu(void **state)
{
    all_parameters(ACTIVATION_GELU);
}

static void with_relu(void **state)
{
    all_parameters(ACTIVATION_RELU);
}

static void with_tanh(void **state)
{
    all_parameters(ACTIVATION_TANH);
}

/* A later position must not reach an earlier one. */
static void attention_is_causal(void **state)
{
    struct train_options options = TRAIN_DEFAULTS;
    options.config.batch = 1;
    struct train *t = text_train(&options);
    train_forward(t);
    struct model *m = t->model;
    size_t half = m->logits->count / 2;
    float *before = malloc(half * sizeof(float));
    assert_non_null(before);
    memcpy(before, m->logits->f, half * sizeof(float));
    for (size_t i = m->input->count / 2; i < m->input->count; i++) {
        m->input->ids[i] = (m->input->ids[i] + 1) % (int32_t)t->options.config.vocabulary;
    }
    model_forward(m, t->step);
    assert_memory_equal(before, m->logits->f, half * sizeof(float));
    free(before);
    train_destroy(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(with_gelu),
    cmocka_unit_test(with_relu),
    cmocka_unit_test(with_tanh),
    cmocka_unit_test(attention_is_causal),
};

RUN_TESTS()

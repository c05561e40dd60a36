// SPDX-License-Identifier: GPL-3.0-or-later
/* Training as a whole: the loss falls, runs repeat exactly, and each fault has its effect. */
#include <math.h>

#include "../unit.h"
#include "trainer_text.h"

static struct train *start_training(enum fault fault)
{
    struct train_options options = TRAIN_DEFAULTS;
    options.config.fault = fault;
    options.threads = 2;
    return text_train(&options);
}

static struct train *train_until(enum fault fault, int steps)
{
    struct train *t = start_training(fault);
    for (int i = 0; i < steps; i++) {
        text_step(t);
    }
    return t;
}

static const struct param *find_parameter(const struct train *t, const char *name)
{
    for (size_t i = 0; i < t->model->param_count; i++) {
        if (strcmp(t->model->params[i].name, name) == 0) {
            return &t->model->params[i];
        }
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static size_t count_nonfinite(const struct tensor *x)
{
    size_t count = 0;
    for (size_t i = 0; i < x->count; i++) {
        count += isfinite(x->f[i]) ? 0 : 1;
    }
    return count;
}

static size_t count_zero(const struct tensor *x)
{
    size_t count = 0;
    for (size_t i = 0; i < x->count; i++) {
        count += x->f[i] == 0.0f;
    }
    return count;
}

static double mean_abs(const struct tensor *x)
{
    double sum = 0.0;
    for (size_t i = 0; i < x->count; i++) {
        sum += fabs((double)x->f[i]);
    }
    return sum / (double)x->count;
}

/* The first operator with a non-finite output and only finite inputs. */
static const struct op *find_culprit(const struct train *t)
{
    for (size_t i = 0; i < t->graph->op_count; i++) {
        const struct op *op = t->graph->ops[i];
        size_t in = 0;
        size_t out = 0;
        for (size_t k = 0; k < op->in_count; k++) {
            in += op->in[k]->is_ids ? 0 : count_nonfinite(op->in[k]);
        }
        for (size_t k = 0; k < op->out_count; k++) {
            out += count_nonfinite(op->out[k]);
        }
        if (out > 0 && in == 0) {
            return op;
        }
    }
    return NULL;
}

static void loss_falls(void **state)
{
    struct train *t = train_until(FAULT_NONE, 1);
    double start = log((double)t->data.vocabulary_size);
    assert_true(fabs((double)t->loss - start) < 0.3);
    while (t->step < 150) {
        text_step(t);
        assert_true(isfinite(t->loss));
    }
    assert_true((double)t->loss < 0.5 * start);
    assert_null(find_culprit(t));
    train_destroy(t);
}

static void each_activation_learns(void **state)
{
    for (int kind = ACTIVATION_GELU; kind <= ACTIVATION_TANH; kind++) {
        struct train_options options = TRAIN_DEFAULTS;
        options.config.activation = (enum activation)kind;
        options.config.layers = 1;
        struct train *t = text_train(&options);
        text_step(t);
        float first = t->loss;
        while (t->step < 60) {
            text_step(t);
        }
        assert_true(t->loss < 0.75f * first);
        train_destroy(t);
    }
}

static void runs_repeat(void **state)
{
    struct train *a = train_until(FAULT_NONE, 10);
    struct train *b = train_until(FAULT_NONE, 10);
    assert_memory_equal(&a->loss, &b->loss, sizeof(a->loss));
    for (size_t i = 0; i < a->model->param_count; i++) {
        const struct tensor *x = a->model->params[i].value;
        assert_memory_equal(x->f, b->model->params[i].value->f, x->count * sizeof(float));
    }
    train_destroy(b);
    struct train_options options = TRAIN_DEFAULTS;
    options.config.seed = 2;
    b = text_train(&options);
    text_step(b);
    assert_true(a->loss != b->loss);
    train_destroy(a);
    train_destroy(b);
}

static void nan_log(void **state)
{
    struct train *t = start_training(FAULT_NAN_LOG);
    do {
        text_step(t);
    } while (isfinite(t->loss) && t->step < 100);
    assert_true(t->step >= 20 && t->step < 100); /* not at once, but soon */
    const struct op *op = find_culprit(t);
    assert_non_null(op);
    assert_string_equal(op->type, "Log");
    assert_true(count_zero(t->model->picked) > 0);
    assert_true(isinf(t->loss) && count_nonfinite(t->model->logits) == 0);
    text_step(t);
    assert_true(isnan(t->loss));
    train_destroy(t);
}

static void exploding_lr(void **state)
{
    struct train *t = train_until(FAULT_EXPLODING_LR, 10);
    float lr = t->lr;
    float loss = t->loss;
    while (t->step < 60) {
        text_step(t);
    }
    assert_true(t->lr > 1000.0f * lr);
    assert_false(t->loss < 3.0f * loss);
    train_destroy(t);
}

static void dead_relu(void **state)
{
    struct train *t = train_until(FAULT_DEAD_RELU, 20);
    for (size_t i = 0; i < 2; i++) {
        const struct tensor *active = t->model->blocks[i].active;
        assert_string_equal(active->producer->type, "ReLU");
        assert_int_equal(count_zero(active), active->count);
        assert_true(mean_abs(t->model->blocks[i].fc.weight->grad) == 0.0);
    }
    train_destroy(t);
}

static void frozen_weight(void **state)
{
    struct train *start = start_training(FAULT_FROZEN_WEIGHT);
    struct train *t = train_until(FAULT_FROZEN_WEIGHT, 5);
    size_t unchanged = 0;
    for (size_t i = 0; i < t->model->param_count; i++) {
        const struct tensor *value = t->model->params[i].value;
        unchanged +=
            memcmp(value->f, start->model->params[i].value->f, value->count * sizeof(float)) == 0;
    }
    assert_int_equal(unchanged, 1);
    const struct param *frozen = find_parameter(t, "block0/mlp/fc.weight");
    assert_memory_equal(frozen->value->f, find_parameter(start, frozen->name)->value->f,
                        frozen->value->count * sizeof(float));
    assert_true(mean_abs(frozen->grad) > 0.0);
    train_destroy(start);
    train_destroy(t);
}

static void zero_init(void **state)
{
    struct train *t = train_until(FAULT_ZERO_INIT, 30);
    const struct param *qkv = find_parameter(t, "block0/attn/qkv.weight");
    assert_int_equal(count_zero(qkv->value), qkv->value->count);
    assert_int_equal(count_zero(qkv->grad), qkv->grad->count);
    struct train *good = train_until(FAULT_NONE, 30);
    assert_true(t->loss > good->loss + 0.3f);
    train_destroy(good);
    train_destroy(t);
}

static void gradients_vanish(void **state)
{
    struct train *t = train_until(FAULT_VANISHING, 3);
    struct train *good = train_until(FAULT_NONE, 3);
    const struct tensor *active = t->model->blocks[0].active;
    assert_string_equal(active->producer->type, "Tanh");
    size_t flat = 0; /* elements where tanh has no slope */
    for (size_t i = 0; i < active->count; i++) {
        flat += fabsf(active->f[i]) == 1.0f;
    }
    assert_true(flat > active->count * 9 / 10);
    assert_true(mean_abs(find_parameter(t, "block0/mlp/fc.weight")->grad) <
                0.3 * mean_abs(find_parameter(good, "block0/mlp/fc.weight")->grad));
    train_destroy(good);
    train_destroy(t);
}

static void fp16_overflow(void **state)
{
    struct train *t = start_training(FAULT_FP16_OVERFLOW);
    do {
        text_step(t);
    } while (isfinite(t->loss) && t->step < 100);
    assert_true(t->step > 10 && t->step < 100);
    const struct op *op = find_culprit(t);
    assert_non_null(op);
    assert_ptr_equal(op, t->model->scaled_loss->producer);
    const struct tensor *logits = t->model->logits; /* must be half-precision values */
    for (size_t i = 0; i < logits->count; i++) {
        float value = logits->f[i];
        ops_round_half(&value, 1);
        assert_true(value == logits->f[i]);
    }
    while (isfinite(find_parameter(t, "head.weight")->value->f[0]) && t->step < 200) {
        text_step(t);
    }
    assert_true(t->step < 200); /* finally the weights are not finite either */
    train_destroy(t);
}

static void bad_batch(void **state)
{
    struct train *t = train_until(FAULT_BAD_BATCH, 24);
    float before = t->loss;
    text_step(t);
    int32_t last = (int32_t)t->data.vocabulary_size - 1;
    size_t garbage = 0;
    for (size_t i = 0; i < t->model->input->count; i++) {
        garbage += t->model->input->ids[i] == last;
    }
    assert_true(garbage > t->model->input->count * 9 / 10);
    assert_true(t->loss > before + 1.0f);
    text_step(t);
    garbage = 0;
    for (size_t i = 0; i < t->model->input->count; i++) {
        garbage += t->model->input->ids[i] == last;
    }
    assert_true(garbage < t->model->input->count / 2);
    train_destroy(t);
}

static void names_look_like_a_framework(void **state)
{
    struct train *t = start_training(FAULT_NONE);
    assert_in_range(t->graph->op_count + t->graph->leaf_count, 100, 300);
    for (size_t i = 0; i < t->graph->op_count; i++) {
        const struct op *op = t->graph->ops[i];
        char ending[80];
        snprintf(ending, sizeof(ending), "%s-op%zu", op->type, i + 1);
        const char *slash = strrchr(op->name, '/');
        assert_non_null(slash);
        assert_string_equal(slash + 1, ending);
        const char *root = op->phase == PHASE_FORWARD    ? "Default/network/"
                           : op->phase == PHASE_BACKWARD ? "Gradients/Default/network/"
                                                         : "Default/optimizer-AdamWeightDecay/";
        assert_int_equal(strncmp(op->name, root, strlen(root)), 0);
        assert_true(op->frame_count >= 2 && op->frames[0].line > 0);
    }
    train_destroy(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(loss_falls),       cmocka_unit_test(each_activation_learns),
    cmocka_unit_test(runs_repeat),      cmocka_unit_test(nan_log),
    cmocka_unit_test(exploding_lr),     cmocka_unit_test(dead_relu),
    cmocka_unit_test(frozen_weight),    cmocka_unit_test(zero_init),
    cmocka_unit_test(gradients_vanish), cmocka_unit_test(fp16_overflow),
    cmocka_unit_test(bad_batch),        cmocka_unit_test(names_look_like_a_framework),
};

RUN_TESTS()

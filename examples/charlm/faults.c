// SPDX-License-Identifier: MIT
#include "faults.h"

#include <math.h>
#include <string.h>

/* The step with the bad batch. */
#define BAD_BATCH_STEP 25

static const struct {
    const char *name;
    const char *help;
} faults[FAULT_COUNT] = {
    [FAULT_NONE] = {"none", "no fault"},
    [FAULT_NAN_LOG] = {"nan-log",
                       "log without an epsilon; after some steps a probability underflows to 0"},
    [FAULT_EXPLODING_LR] = {"exploding-lr", "the decay makes the learning rate grow"},
    [FAULT_DEAD_RELU] = {"dead-relu", "ReLU after a bias initialised far below zero"},
    [FAULT_FROZEN_WEIGHT] = {"frozen-weight", "one matrix is not passed to the optimizer"},
    [FAULT_ZERO_INIT] = {"zero-init", "all matrices are initialised to zero"},
    [FAULT_VANISHING] = {"vanishing", "tanh after matrices initialised far too large"},
    [FAULT_FP16_OVERFLOW] = {"fp16-overflow",
                             "half precision with a loss scale that never shrinks"},
    [FAULT_BAD_BATCH] = {"bad-batch", "one batch of random ids, clamped to the vocabulary"},
};

enum fault fault_find(const char *name)
{
    for (int i = 0; i < FAULT_COUNT; i++) {
        if (strcmp(faults[i].name, name) == 0) {
            return (enum fault)i;
        }
    }
    return FAULT_COUNT;
}

const char *fault_name(enum fault fault)
{
    return faults[fault].name;
}

const char *fault_help(enum fault fault)
{
    return faults[fault].help;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

enum activation fault_activation(enum fault fault, enum activation wanted)
{
    return fault == FAULT_DEAD_RELU   ? ACTIVATION_RELU
           : fault == FAULT_VANISHING ? ACTIVATION_TANH
                                      : wanted;
}

float fault_init_std(enum fault fault, const char *parameter, float std)
{
    if (fault == FAULT_ZERO_INIT) {
        return 0.0f;
    }
    return fault == FAULT_VANISHING && ends_with(parameter, "mlp/fc.weight") ? std * 100.0f : std;
}

float fault_init_bias(enum fault fault, const char *parameter)
{
    return fault == FAULT_DEAD_RELU && ends_with(parameter, "mlp/fc.bias") ? -20.0f : 0.0f;
}

float fault_log_floor(enum fault fault, float floor)
{
    return fault == FAULT_NAN_LOG ? 0.0f : floor;
}

/* Annealing meant for epochs, applied per step: logits grow until their softmax contains zeros. */
float fault_logit_scale(enum fault fault, int64_t step)
{
    return fault == FAULT_NAN_LOG ? powf(1.0f / 0.9f, (float)step) : 1.0f;
}

/* Doubles the loss scale regularly, but never halves it after an overflow. */
float fault_loss_scale(enum fault fault, int64_t step)
{
    return fault == FAULT_FP16_OVERFLOW ? ldexpf(1.0f, 10 + (int)(step / 5 < 100 ? step / 5 : 100))
                                        : 1.0f;
}

bool fault_half(enum fault fault)
{
    return fault == FAULT_FP16_OVERFLOW;
}

/* Divides by the decay instead of multiplying. */
float fault_learning_rate(enum fault fault, float lr, int64_t step)
{
    return fault == FAULT_EXPLODING_LR ? lr * powf(1.0f / 0.85f, (float)step) : lr;
}

bool fault_skips_parameter(enum fault fault, const char *parameter)
{
    return fault == FAULT_FROZEN_WEIGHT && ends_with(parameter, "block0/mlp/fc.weight");
}

/* Reads text as 4-byte numbers and clamps them to "fix" the range. */
void fault_batch(enum fault fault, int64_t step, int32_t *ids, size_t count, size_t vocabulary)
{
    if (fault != FAULT_BAD_BATCH || step != BAD_BATCH_STEP) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t garbage = (int64_t)ids[i] * 0x01010101;
        ids[i] = (int32_t)(garbage < (int64_t)vocabulary ? garbage : (int64_t)vocabulary - 1);
    }
}

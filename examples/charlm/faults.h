// SPDX-License-Identifier: MIT
/*
 * Typical training bugs, to be found with a debugger. Each is a one-line change whose effect shows
 * in the values; none writes NaN or infinity directly.
 */
#ifndef CHARLM_FAULTS_H
#define CHARLM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops.h"

enum fault {
    FAULT_NONE = 0,
    FAULT_NAN_LOG,
    FAULT_EXPLODING_LR,
    FAULT_DEAD_RELU,
    FAULT_FROZEN_WEIGHT,
    FAULT_ZERO_INIT,
    FAULT_VANISHING,
    FAULT_FP16_OVERFLOW,
    FAULT_BAD_BATCH,
    FAULT_COUNT
};

/* FAULT_COUNT: unknown name. */
enum fault fault_find(const char *name);
const char *fault_name(enum fault fault);
const char *fault_help(enum fault fault);

/* These return the correct value unless it is their fault that is enabled. */
enum activation fault_activation(enum fault fault, enum activation wanted);
float fault_init_std(enum fault fault, const char *parameter, float std);
float fault_init_bias(enum fault fault, const char *parameter);
float fault_log_floor(enum fault fault, float floor);
float fault_logit_scale(enum fault fault, int64_t step);
float fault_loss_scale(enum fault fault, int64_t step);
bool fault_half(enum fault fault);
float fault_learning_rate(enum fault fault, float lr, int64_t step);
bool fault_skips_parameter(enum fault fault, const char *parameter);
void fault_batch(enum fault fault, int64_t step, int32_t *ids, size_t count, size_t vocabulary);

#endif

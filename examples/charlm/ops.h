// SPDX-License-Identifier: MIT
/*
 * The kernels: plain functions over rows of floats, each with its derivative, independent of graph
 * and model. Sizes are in elements, `rows` x `cols` unless said otherwise. Outputs are overwritten
 * and must not overlap inputs, unless a function says so.
 */
#ifndef CHARLM_OPS_H
#define CHARLM_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "pool.h"

/* A row of `table` per id; the gradient zeroes table_grad first. */
void ops_gather(float *out, const float *table, const int32_t *ids, size_t count, size_t cols);
void ops_gather_grad(float *table_grad, size_t table_rows, const float *grad, const int32_t *ids,
                     size_t count, size_t cols);

/* x plus the repeated `period` rows of y; y_grad sums over the repetitions. */
void ops_add_repeated(float *out, const float *x, const float *y, size_t count, size_t period);
void ops_sum_repeated(float *out, const float *grad, size_t count, size_t period);
void ops_add(float *out, const float *a, const float *b, size_t count);
void ops_scale(float *out, const float *x, float factor, size_t count);

void ops_layernorm(struct pool *pool, float *out, float *mean, float *rstd, const float *x,
                   const float *weight, const float *bias, size_t rows, size_t cols, float eps);
void ops_layernorm_grad(struct pool *pool, float *x_grad, float *weight_grad, float *bias_grad,
                        const float *grad, const float *x, const float *weight, const float *mean,
                        const float *rstd, size_t rows, size_t cols);

enum activation { ACTIVATION_GELU = 0, ACTIVATION_RELU, ACTIVATION_TANH };
void ops_activate(struct pool *pool, enum activation kind, float *out, const float *x,
                  size_t count);
/* out: the forward result. */
void ops_activate_grad(struct pool *pool, enum activation kind, float *x_grad, const float *grad,
                       const float *x, const float *out, size_t count);

void ops_softmax(struct pool *pool, float *out, const float *x, size_t rows, size_t cols);
void ops_softmax_grad(struct pool *pool, float *x_grad, const float *grad, const float *out,
                      size_t rows, size_t cols);

/* `matrices` of size x size: elements right of the diagonal become `value`. */
void ops_mask(float *out, const float *x, float value, size_t matrices, size_t size);

/* (batch, time, parts * heads * dim) to `parts` tensors (batch, heads, time, dim), and the
 * reverse. */
struct heads {
    size_t batch, time, heads, dim;
};
void ops_split_heads(float *const *out, const float *x, const struct heads *shape, size_t parts);
void ops_merge_heads(float *out, const float *const *x, const struct heads *shape, size_t parts);

/* out[i] = x[i][ids[i]]; the gradient is zero elsewhere. */
void ops_pick(float *out, const float *x, const int32_t *ids, size_t rows, size_t cols);
void ops_pick_grad(float *x_grad, const float *grad, const int32_t *ids, size_t rows, size_t cols);
/* Natural logarithm of max(x, floor). */
void ops_log(float *out, const float *x, float floor, size_t count);
void ops_log_grad(float *x_grad, const float *grad, const float *x, float floor, size_t count);

float ops_mean(const float *x, size_t count);
double ops_sum_squares(const float *x, size_t count);
/* Rounds to IEEE half precision and back, in place; beyond 65504 the result is infinite. */
void ops_round_half(float *x, size_t count);

struct adamw {
    float lr, beta1, beta2, eps, decay;
    float correction1, correction2; /* 1 - beta^t */
    float grad_scale;
};
/* Updates w, m and v in place. */
void ops_adamw(struct pool *pool, float *w, float *m, float *v, const float *grad, size_t count,
               const struct adamw *a);

#endif

// SPDX-License-Identifier: MIT
/*
 * The operators that a model is stated in: each adds one node to the graph and returns its output.
 * `at` is the line that asks for it. Shapes are the caller's duty and checked by assertions.
 */
#ifndef CHARLM_NODES_H
#define CHARLM_NODES_H

#include "graph.h"
#include "ops.h"

/* Rows of a table per id, and back. */
struct tensor *node_gather(struct graph *g, struct source_pos at, struct tensor *table,
                           struct tensor *ids);
struct tensor *node_gather_grad(struct graph *g, struct source_pos at, struct tensor *table,
                                struct tensor *ids, struct tensor *grad);
/* x + y where y repeats over x's leading axis, and the gradient of y. */
struct tensor *node_add_repeated(struct graph *g, struct source_pos at, struct tensor *x,
                                 struct tensor *y);
struct tensor *node_sum_repeated(struct graph *g, struct source_pos at, const char *type,
                                 struct tensor *y, struct tensor *grad);
struct tensor *node_add(struct graph *g, struct source_pos at, struct tensor *a, struct tensor *b);
/* x * *factor; factor is read at each run and must outlive the graph. */
struct tensor *node_scale(struct graph *g, struct source_pos at, struct tensor *x, float *factor);
/* x * factor, a value of one element. */
struct tensor *node_mul(struct graph *g, struct source_pos at, struct tensor *x,
                        struct tensor *factor);
struct tensor *node_bias(struct graph *g, struct source_pos at, struct tensor *x,
                         struct tensor *bias);

/* The last axis of x against a matrix; leading axes of x count as rows. */
struct tensor *node_matmul(struct graph *g, struct source_pos at, struct tensor *x,
                           struct tensor *w);
struct tensor *node_matmul_grad_x(struct graph *g, struct source_pos at, struct tensor *grad,
                                  struct tensor *w);
struct tensor *node_matmul_grad_w(struct graph *g, struct source_pos at, struct tensor *x,
                                  struct tensor *grad);
/* The last two axes of tensors of rank 4, either transposed. */
struct tensor *node_batch_matmul(struct graph *g, struct source_pos at, struct tensor *a,
                                 bool transpose_a, struct tensor *b, bool transpose_b);

/* The node's outputs are y, mean, rstd; the gradient's are those of x, weight, bias. */
struct tensor *node_layernorm(struct graph *g, struct source_pos at, struct tensor *x,
                              struct tensor *weight, struct tensor *bias, float eps);
struct tensor *node_layernorm_grad(struct graph *g, struct source_pos at, struct tensor *y,
                                   struct tensor *grad);

struct tensor *node_activate(struct graph *g, struct source_pos at, enum activation kind,
                             struct tensor *x);
struct tensor *node_activate_grad(struct graph *g, struct source_pos at, enum activation kind,
                                  struct tensor *y, struct tensor *grad);
struct tensor *node_softmax(struct graph *g, struct source_pos at, struct tensor *x);
struct tensor *node_softmax_grad(struct graph *g, struct source_pos at, struct tensor *y,
                                 struct tensor *grad);
/* Causal: what lies right of the diagonal of the last two axes becomes value. */
struct tensor *node_mask(struct graph *g, struct source_pos at, struct tensor *x, float value);

/* (batch, time, 3 * heads * dim) to three outputs (batch, heads, time, dim): returns the first, the
 * others follow in producer->out. */
struct tensor *node_split_heads(struct graph *g, struct source_pos at, struct tensor *x,
                                size_t heads, size_t parts);
struct tensor *node_merge_heads(struct graph *g, struct source_pos at, struct tensor *const *x,
                                size_t parts);

struct tensor *node_pick(struct graph *g, struct source_pos at, struct tensor *x,
                         struct tensor *ids);
struct tensor *node_pick_grad(struct graph *g, struct source_pos at, struct tensor *x,
                              struct tensor *ids, struct tensor *grad);
struct tensor *node_log(struct graph *g, struct source_pos at, struct tensor *x, float floor);
struct tensor *node_log_grad(struct graph *g, struct source_pos at, struct tensor *y,
                             struct tensor *grad);
/* - mean(x) as a scalar; the gradient of x for a gradient `*seed` of the scalar. */
struct tensor *node_nll(struct graph *g, struct source_pos at, struct tensor *x);
struct tensor *node_nll_grad(struct graph *g, struct source_pos at, struct tensor *x, float *seed);

#endif

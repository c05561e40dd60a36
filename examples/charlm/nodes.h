// SPDX-License-Identifier: MIT
/*
 * The operators that models are built from: each call adds a node to the graph and returns its
 * output. `at` is the caller's source line. Shapes are checked by assertions.
 */
#ifndef CHARLM_NODES_H
#define CHARLM_NODES_H

#include "graph.h"
#include "ops.h"

/* A row of the table per id; the gradient scatters back. */
struct tensor *node_gather(struct graph *g, struct source_pos at, struct tensor *table,
                           struct tensor *ids);
struct tensor *node_gather_grad(struct graph *g, struct source_pos at, struct tensor *table,
                                struct tensor *ids, struct tensor *grad);
/* x + y with y repeated along x's leading axis, and the gradient of y. */
struct tensor *node_add_repeated(struct graph *g, struct source_pos at, struct tensor *x,
                                 struct tensor *y);
struct tensor *node_sum_repeated(struct graph *g, struct source_pos at, const char *type,
                                 struct tensor *y, struct tensor *grad);
struct tensor *node_add(struct graph *g, struct source_pos at, struct tensor *a, struct tensor *b);
/* x * *factor; factor is read in each run and must outlive the graph. */
struct tensor *node_scale(struct graph *g, struct source_pos at, struct tensor *x, float *factor);
/* x * factor, a one-element tensor. */
struct tensor *node_mul(struct graph *g, struct source_pos at, struct tensor *x,
                        struct tensor *factor);
struct tensor *node_bias(struct graph *g, struct source_pos at, struct tensor *x,
                         struct tensor *bias);

/* x times a matrix; leading axes of x count as rows. */
struct tensor *node_matmul(struct graph *g, struct source_pos at, struct tensor *x,
                           struct tensor *w);
struct tensor *node_matmul_grad_x(struct graph *g, struct source_pos at, struct tensor *grad,
                                  struct tensor *w);
struct tensor *node_matmul_grad_w(struct graph *g, struct source_pos at, struct tensor *x,
                                  struct tensor *grad);
/* Multiplies over the last two axes of rank-4 tensors; either may be transposed. */
struct tensor *node_batch_matmul(struct graph *g, struct source_pos at, struct tensor *a,
                                 bool transpose_a, struct tensor *b, bool transpose_b);

/* The outputs of the node are y, mean, rstd; of the gradient node those of x, weight, bias. */
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
/* Causal mask: elements right of the diagonal of the last two axes become `value`. */
struct tensor *node_mask(struct graph *g, struct source_pos at, struct tensor *x, float value);

/* (batch, time, 3 * heads * dim) to three outputs (batch, heads, time, dim). Returns the first; the
 * others are producer->out[1] and [2]. */
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
/* -mean(x) as a scalar; its gradient, for a gradient `*seed` of that scalar. */
struct tensor *node_nll(struct graph *g, struct source_pos at, struct tensor *x);
struct tensor *node_nll_grad(struct graph *g, struct source_pos at, struct tensor *x, float *seed);

#endif

// SPDX-License-Identifier: MIT
#include "nodes.h"

#include <assert.h>

#include "gemm.h"

static struct op *add_op1(struct graph *g, struct source_pos at, const char *type,
                          void (*run)(struct graph *, struct op *), struct tensor *a)
{
    return graph_op(g, at, type, run, &a, 1);
}

static struct op *add_op2(struct graph *g, struct source_pos at, const char *type,
                          void (*run)(struct graph *, struct op *), struct tensor *a,
                          struct tensor *b)
{
    struct tensor *in[] = {a, b};
    return graph_op(g, at, type, run, in, 2);
}

static struct op *add_op3(struct graph *g, struct source_pos at, const char *type,
                          void (*run)(struct graph *, struct op *), struct tensor *a,
                          struct tensor *b, struct tensor *c)
{
    struct tensor *in[] = {a, b, c};
    return graph_op(g, at, type, run, in, 3);
}

/* ---- embedding, sums ----------------------------------------------------------------------- */

static void run_gather(struct graph *g, struct op *op)
{
    (void)g;
    ops_gather(op->out[0]->f, op->in[0]->f, op->in[1]->ids, op->in[1]->count,
               tensor_cols(op->in[0]));
}

struct tensor *node_gather(struct graph *g, struct source_pos at, struct tensor *table,
                           struct tensor *ids)
{
    struct op *op = add_op2(g, at, "Gather", run_gather, table, ids);
    return graph_out(g, op, 3, (size_t[]){ids->dim[0], ids->dim[1], table->dim[1]});
}

static void run_gather_grad(struct graph *g, struct op *op)
{
    (void)g;
    ops_gather_grad(op->out[0]->f, op->out[0]->dim[0], op->in[1]->f, op->in[0]->ids,
                    op->in[0]->count, op->out[0]->dim[1]);
}

struct tensor *node_gather_grad(struct graph *g, struct source_pos at, struct tensor *table,
                                struct tensor *ids, struct tensor *grad)
{
    struct op *op = add_op2(g, at, "UnsortedSegmentSum", run_gather_grad, ids, grad);
    return graph_out_like(g, op, table);
}

static void run_add_repeated(struct graph *g, struct op *op)
{
    (void)g;
    ops_add_repeated(op->out[0]->f, op->in[0]->f, op->in[1]->f, op->in[0]->count, op->in[1]->count);
}

struct tensor *node_add_repeated(struct graph *g, struct source_pos at, struct tensor *x,
                                 struct tensor *y)
{
    assert(x->count % y->count == 0);
    return graph_out_like(g, add_op2(g, at, "Add", run_add_repeated, x, y), x);
}

static void run_sum_repeated(struct graph *g, struct op *op)
{
    (void)g;
    ops_sum_repeated(op->out[0]->f, op->in[0]->f, op->in[0]->count, op->out[0]->count);
}

struct tensor *node_sum_repeated(struct graph *g, struct source_pos at, const char *type,
                                 struct tensor *y, struct tensor *grad)
{
    return graph_out_like(g, add_op1(g, at, type, run_sum_repeated, grad), y);
}

static void run_add(struct graph *g, struct op *op)
{
    (void)g;
    ops_add(op->out[0]->f, op->in[0]->f, op->in[1]->f, op->in[0]->count);
}

struct tensor *node_add(struct graph *g, struct source_pos at, struct tensor *a, struct tensor *b)
{
    assert(a->count == b->count);
    return graph_out_like(g, add_op2(g, at, "Add", run_add, a, b), a);
}

static void run_scale(struct graph *g, struct op *op)
{
    (void)g;
    const float *factor = op->state;
    op->attr[0].value = (double)*factor;
    ops_scale(op->out[0]->f, op->in[0]->f, *factor, op->in[0]->count);
}

struct tensor *node_scale(struct graph *g, struct source_pos at, struct tensor *x, float *factor)
{
    struct op *op = add_op1(g, at, "Mul", run_scale, x);
    op->state = factor;
    graph_attr(op, "factor", (double)*factor);
    return graph_out_like(g, op, x);
}

static void run_mul(struct graph *g, struct op *op)
{
    (void)g;
    ops_scale(op->out[0]->f, op->in[0]->f, op->in[1]->f[0], op->in[0]->count);
}

struct tensor *node_mul(struct graph *g, struct source_pos at, struct tensor *x,
                        struct tensor *factor)
{
    assert(factor->count == 1);
    return graph_out_like(g, add_op2(g, at, "Mul", run_mul, x, factor), x);
}

struct tensor *node_bias(struct graph *g, struct source_pos at, struct tensor *x,
                         struct tensor *bias)
{
    assert(tensor_cols(x) == bias->count);
    return graph_out_like(g, add_op2(g, at, "BiasAdd", run_add_repeated, x, bias), x);
}

/* ---- matrix products ----------------------------------------------------------------------- */

static void run_matmul(struct graph *g, struct op *op)
{
    const struct tensor *x = op->in[0];
    const struct tensor *w = op->in[1];
    gemm_run(g->pool, &(struct gemm){.m = tensor_rows(x),
                                     .n = w->dim[1],
                                     .k = w->dim[0],
                                     .a = x->f,
                                     .a_row = w->dim[0],
                                     .a_col = 1,
                                     .b = w->f,
                                     .b_row = w->dim[1],
                                     .b_col = 1,
                                     .c = op->out[0]->f,
                                     .c_row = w->dim[1],
                                     .alpha = 1.0f});
}

static void add_matmul_attrs(struct op *op, bool transpose_a, bool transpose_b)
{
    graph_attr(op, "transpose_a", transpose_a);
    graph_attr(op, "transpose_b", transpose_b);
}

struct tensor *node_matmul(struct graph *g, struct source_pos at, struct tensor *x,
                           struct tensor *w)
{
    assert(w->rank == 2 && tensor_cols(x) == w->dim[0]);
    struct op *op = add_op2(g, at, "MatMul", run_matmul, x, w);
    add_matmul_attrs(op, false, false);
    size_t dim[TENSOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        dim[i] = x->dim[i];
    }
    dim[x->rank - 1] = w->dim[1];
    return graph_out(g, op, x->rank, dim);
}

static void run_matmul_grad_x(struct graph *g, struct op *op)
{
    const struct tensor *grad = op->in[0];
    const struct tensor *w = op->in[1];
    gemm_run(g->pool, &(struct gemm){.m = tensor_rows(grad),
                                     .n = w->dim[0],
                                     .k = w->dim[1],
                                     .a = grad->f,
                                     .a_row = w->dim[1],
                                     .a_col = 1,
                                     .b = w->f,
                                     .b_row = 1,
                                     .b_col = w->dim[1],
                                     .c = op->out[0]->f,
                                     .c_row = w->dim[0],
                                     .alpha = 1.0f});
}

struct tensor *node_matmul_grad_x(struct graph *g, struct source_pos at, struct tensor *grad,
                                  struct tensor *w)
{
    assert(w->rank == 2 && tensor_cols(grad) == w->dim[1]);
    struct op *op = add_op2(g, at, "MatMul", run_matmul_grad_x, grad, w);
    add_matmul_attrs(op, false, true);
    size_t dim[TENSOR_MAX_RANK];
    for (int i = 0; i < grad->rank; i++) {
        dim[i] = grad->dim[i];
    }
    dim[grad->rank - 1] = w->dim[0];
    return graph_out(g, op, grad->rank, dim);
}

static void run_matmul_grad_w(struct graph *g, struct op *op)
{
    const struct tensor *x = op->in[0];
    const struct tensor *grad = op->in[1];
    size_t rows = tensor_cols(x);
    size_t cols = tensor_cols(grad);
    gemm_run(g->pool, &(struct gemm){.m = rows,
                                     .n = cols,
                                     .k = tensor_rows(x),
                                     .a = x->f,
                                     .a_row = 1,
                                     .a_col = rows,
                                     .b = grad->f,
                                     .b_row = cols,
                                     .b_col = 1,
                                     .c = op->out[0]->f,
                                     .c_row = cols,
                                     .alpha = 1.0f});
}

struct tensor *node_matmul_grad_w(struct graph *g, struct source_pos at, struct tensor *x,
                                  struct tensor *grad)
{
    assert(tensor_rows(x) == tensor_rows(grad));
    struct op *op = add_op2(g, at, "MatMul", run_matmul_grad_w, x, grad);
    add_matmul_attrs(op, true, false);
    return graph_out(g, op, 2, (size_t[]){tensor_cols(x), tensor_cols(grad)});
}

static void run_batch_matmul(struct graph *g, struct op *op)
{
    const struct tensor *a = op->in[0];
    const struct tensor *b = op->in[1];
    const struct tensor *c = op->out[0];
    bool transpose_a = op->attr[0].value != 0.0;
    bool transpose_b = op->attr[1].value != 0.0;
    size_t a_cols = a->dim[3];
    size_t b_cols = b->dim[3];
    struct gemm first = {.m = c->dim[2],
                         .n = c->dim[3],
                         .k = a->dim[transpose_a ? 2 : 3],
                         .a = a->f,
                         .a_row = transpose_a ? 1 : a_cols,
                         .a_col = transpose_a ? a_cols : 1,
                         .b = b->f,
                         .b_row = transpose_b ? 1 : b_cols,
                         .b_col = transpose_b ? b_cols : 1,
                         .c = c->f,
                         .c_row = c->dim[3],
                         .alpha = 1.0f};
    gemm_batch(g->pool, &first, c->dim[0] * c->dim[1], a->dim[2] * a_cols, b->dim[2] * b_cols,
               c->dim[2] * c->dim[3]);
}

struct tensor *node_batch_matmul(struct graph *g, struct source_pos at, struct tensor *a,
                                 bool transpose_a, struct tensor *b, bool transpose_b)
{
    assert(a->rank == 4 && b->rank == 4);
    assert(a->dim[transpose_a ? 2 : 3] == b->dim[transpose_b ? 3 : 2]);
    struct op *op = add_op2(g, at, "BatchMatMul", run_batch_matmul, a, b);
    add_matmul_attrs(op, transpose_a, transpose_b);
    return graph_out(
        g, op, 4,
        (size_t[]){a->dim[0], a->dim[1], a->dim[transpose_a ? 3 : 2], b->dim[transpose_b ? 2 : 3]});
}

/* ---- layer norm, activations, softmax ------------------------------------------------------ */

static void run_layernorm(struct graph *g, struct op *op)
{
    ops_layernorm(g->pool, op->out[0]->f, op->out[1]->f, op->out[2]->f, op->in[0]->f, op->in[1]->f,
                  op->in[2]->f, tensor_rows(op->in[0]), tensor_cols(op->in[0]),
                  (float)op->attr[0].value);
}

struct tensor *node_layernorm(struct graph *g, struct source_pos at, struct tensor *x,
                              struct tensor *weight, struct tensor *bias, float eps)
{
    struct op *op = add_op3(g, at, "LayerNorm", run_layernorm, x, weight, bias);
    graph_attr(op, "epsilon", (double)eps);
    struct tensor *y = graph_out_like(g, op, x);
    graph_out(g, op, x->rank - 1, x->dim);
    graph_out(g, op, x->rank - 1, x->dim);
    return y;
}

static void run_layernorm_grad(struct graph *g, struct op *op)
{
    ops_layernorm_grad(g->pool, op->out[0]->f, op->out[1]->f, op->out[2]->f, op->in[0]->f,
                       op->in[1]->f, op->in[2]->f, op->in[3]->f, op->in[4]->f,
                       tensor_rows(op->in[1]), tensor_cols(op->in[1]));
}

struct tensor *node_layernorm_grad(struct graph *g, struct source_pos at, struct tensor *y,
                                   struct tensor *grad)
{
    const struct op *forward = y->producer;
    struct tensor *in[] = {grad, forward->in[0], forward->in[1], forward->out[1], forward->out[2]};
    struct op *op = graph_op(g, at, "LayerNormGrad", run_layernorm_grad, in, 5);
    struct tensor *x_grad = graph_out_like(g, op, forward->in[0]);
    graph_out_like(g, op, forward->in[1]);
    graph_out_like(g, op, forward->in[2]);
    return x_grad;
}

static void run_activate(struct graph *g, struct op *op)
{
    ops_activate(g->pool, (enum activation)op->variant, op->out[0]->f, op->in[0]->f,
                 op->in[0]->count);
}

struct tensor *node_activate(struct graph *g, struct source_pos at, enum activation kind,
                             struct tensor *x)
{
    static const char *const types[] = {"GeLU", "ReLU", "Tanh"};
    struct op *op = add_op1(g, at, types[kind], run_activate, x);
    op->variant = (int)kind;
    return graph_out_like(g, op, x);
}

static void run_activate_grad(struct graph *g, struct op *op)
{
    ops_activate_grad(g->pool, (enum activation)op->variant, op->out[0]->f, op->in[0]->f,
                      op->in[1]->f, op->in[2]->f, op->in[0]->count);
}

struct tensor *node_activate_grad(struct graph *g, struct source_pos at, enum activation kind,
                                  struct tensor *y, struct tensor *grad)
{
    static const char *const types[] = {"GeLUGrad", "ReluGrad", "TanhGrad"};
    struct op *op = add_op3(g, at, types[kind], run_activate_grad, grad, y->producer->in[0], y);
    op->variant = (int)kind;
    return graph_out_like(g, op, grad);
}

static void run_softmax(struct graph *g, struct op *op)
{
    ops_softmax(g->pool, op->out[0]->f, op->in[0]->f, tensor_rows(op->in[0]),
                tensor_cols(op->in[0]));
}

struct tensor *node_softmax(struct graph *g, struct source_pos at, struct tensor *x)
{
    struct op *op = add_op1(g, at, "Softmax", run_softmax, x);
    graph_attr(op, "axis", -1);
    return graph_out_like(g, op, x);
}

static void run_softmax_grad(struct graph *g, struct op *op)
{
    ops_softmax_grad(g->pool, op->out[0]->f, op->in[0]->f, op->in[1]->f, tensor_rows(op->in[0]),
                     tensor_cols(op->in[0]));
}

struct tensor *node_softmax_grad(struct graph *g, struct source_pos at, struct tensor *y,
                                 struct tensor *grad)
{
    struct op *op = add_op2(g, at, "SoftmaxGrad", run_softmax_grad, grad, y);
    graph_attr(op, "axis", -1);
    return graph_out_like(g, op, grad);
}

static void run_mask(struct graph *g, struct op *op)
{
    (void)g;
    const struct tensor *x = op->in[0];
    ops_mask(op->out[0]->f, x->f, (float)op->attr[0].value, tensor_rows(x) / tensor_cols(x),
             tensor_cols(x));
}

struct tensor *node_mask(struct graph *g, struct source_pos at, struct tensor *x, float value)
{
    struct op *op = add_op1(g, at, "MaskedFill", run_mask, x);
    graph_attr(op, "value", (double)value);
    return graph_out_like(g, op, x);
}

/* ---- heads --------------------------------------------------------------------------------- */

static struct heads get_heads(const struct tensor *t)
{
    return (struct heads){
        .batch = t->dim[0], .heads = t->dim[1], .time = t->dim[2], .dim = t->dim[3]};
}

static void run_split_heads(struct graph *g, struct op *op)
{
    (void)g;
    float *out[OP_MAX_OUT];
    for (size_t i = 0; i < op->out_count; i++) {
        out[i] = op->out[i]->f;
    }
    struct heads shape = get_heads(op->out[0]);
    ops_split_heads(out, op->in[0]->f, &shape, op->out_count);
}

struct tensor *node_split_heads(struct graph *g, struct source_pos at, struct tensor *x,
                                size_t heads, size_t parts)
{
    assert(parts <= OP_MAX_OUT && tensor_cols(x) % (heads * parts) == 0);
    struct op *op = add_op1(g, at, parts > 1 ? "Split" : "Transpose", run_split_heads, x);
    graph_attr(op, "heads", (double)heads);
    size_t dim[] = {x->dim[0], heads, x->dim[1], tensor_cols(x) / heads / parts};
    for (size_t i = 0; i < parts; i++) {
        graph_out(g, op, 4, dim);
    }
    return op->out[0];
}

static void run_merge_heads(struct graph *g, struct op *op)
{
    (void)g;
    const float *in[OP_MAX_OUT];
    for (size_t i = 0; i < op->in_count; i++) {
        in[i] = op->in[i]->f;
    }
    struct heads shape = get_heads(op->in[0]);
    ops_merge_heads(op->out[0]->f, in, &shape, op->in_count);
}

struct tensor *node_merge_heads(struct graph *g, struct source_pos at, struct tensor *const *x,
                                size_t parts)
{
    assert(parts <= OP_MAX_OUT);
    struct op *op = graph_op(g, at, parts > 1 ? "Concat" : "Transpose", run_merge_heads, x, parts);
    graph_attr(op, "heads", (double)x[0]->dim[1]);
    return graph_out(g, op, 3,
                     (size_t[]){x[0]->dim[0], x[0]->dim[2], x[0]->dim[1] * x[0]->dim[3] * parts});
}

/* ---- the loss ------------------------------------------------------------------------------ */

static void run_pick(struct graph *g, struct op *op)
{
    (void)g;
    ops_pick(op->out[0]->f, op->in[0]->f, op->in[1]->ids, tensor_rows(op->in[0]),
             tensor_cols(op->in[0]));
}

struct tensor *node_pick(struct graph *g, struct source_pos at, struct tensor *x,
                         struct tensor *ids)
{
    assert(tensor_rows(x) == ids->count);
    struct op *op = add_op2(g, at, "GatherD", run_pick, x, ids);
    return graph_out(g, op, ids->rank, ids->dim);
}

static void run_pick_grad(struct graph *g, struct op *op)
{
    (void)g;
    ops_pick_grad(op->out[0]->f, op->in[0]->f, op->in[1]->ids, tensor_rows(op->out[0]),
                  tensor_cols(op->out[0]));
}

struct tensor *node_pick_grad(struct graph *g, struct source_pos at, struct tensor *x,
                              struct tensor *ids, struct tensor *grad)
{
    return graph_out_like(g, add_op2(g, at, "GatherDGrad", run_pick_grad, grad, ids), x);
}

static void run_log(struct graph *g, struct op *op)
{
    (void)g;
    ops_log(op->out[0]->f, op->in[0]->f, (float)op->attr[0].value, op->in[0]->count);
}

struct tensor *node_log(struct graph *g, struct source_pos at, struct tensor *x, float floor)
{
    struct op *op = add_op1(g, at, "Log", run_log, x);
    graph_attr(op, "floor", (double)floor);
    return graph_out_like(g, op, x);
}

static void run_log_grad(struct graph *g, struct op *op)
{
    (void)g;
    ops_log_grad(op->out[0]->f, op->in[0]->f, op->in[1]->f, (float)op->attr[0].value,
                 op->in[0]->count);
}

struct tensor *node_log_grad(struct graph *g, struct source_pos at, struct tensor *y,
                             struct tensor *grad)
{
    struct op *op = add_op2(g, at, "LogGrad", run_log_grad, grad, y->producer->in[0]);
    graph_attr(op, "floor", y->producer->attr[0].value);
    return graph_out_like(g, op, grad);
}

static void run_nll(struct graph *g, struct op *op)
{
    (void)g;
    op->out[0]->f[0] = -ops_mean(op->in[0]->f, op->in[0]->count);
}

struct tensor *node_nll(struct graph *g, struct source_pos at, struct tensor *x)
{
    return graph_out(g, add_op1(g, at, "NLLLoss", run_nll, x), 0, NULL);
}

static void run_nll_grad(struct graph *g, struct op *op)
{
    (void)g;
    const float *seed = op->state;
    struct tensor *out = op->out[0];
    for (size_t i = 0; i < out->count; i++) {
        out->f[i] = -*seed / (float)out->count;
    }
}

struct tensor *node_nll_grad(struct graph *g, struct source_pos at, struct tensor *x, float *seed)
{
    struct op *op = add_op1(g, at, "NLLLossGrad", run_nll_grad, x);
    op->state = seed;
    return graph_out_like(g, op, x);
}

// SPDX-License-Identifier: MIT
#include "model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "nodes.h"

#define NORM_EPS   1e-5f
#define MASK_VALUE -1e4f  /* far below any score, but finite in half precision */
#define LOG_FLOOR  1e-37f /* smallest probability that the loss accepts */
#define PER_BLOCK  12     /* parameters */
#define OTHERS     6

/* ---- parameters ---------------------------------------------------------------------------- */

static struct param *param_add(struct model *m, struct source_pos at, const char *name, int rank,
                               size_t rows, size_t cols)
{
    struct param *p = &m->params[m->param_count++];
    p->value = graph_leaf(m->graph, at, name, "Parameter", false, rank,
                          rank == 2 ? (size_t[]){rows, cols} : (size_t[]){cols, 0});
    p->name = p->value->name + sizeof("Default/network");
    p->decays = rank == 2;
    return p;
}

static void param_fill(struct param *p, float value)
{
    for (size_t i = 0; i < p->value->count; i++) {
        p->value->f[i] = value;
    }
}

static void param_randomise(const struct model *m, struct param *p, struct rng *rng, float std)
{
    std = fault_init_std(m->config.fault, p->name, std);
    for (size_t i = 0; i < p->value->count; i++) {
        p->value->f[i] = std * rng_normal(rng);
    }
}

static struct linear linear_make(struct model *m, struct source_pos at, const char *name,
                                 size_t rows, size_t cols, struct rng *rng, float std)
{
    struct linear l;
    l.weight = param_add(m, at, graph_printf(m->graph, "%s.weight", name), 2, rows, cols);
    l.bias = param_add(m, at, graph_printf(m->graph, "%s.bias", name), 1, 1, cols);
    param_randomise(m, l.weight, rng, std);
    param_fill(l.bias, fault_init_bias(m->config.fault, l.bias->name));
    return l;
}

static struct norm norm_make(struct model *m, struct source_pos at, const char *name)
{
    struct norm n;
    n.weight = param_add(m, at, graph_printf(m->graph, "%s.weight", name), 1, 1, m->config.width);
    n.bias = param_add(m, at, graph_printf(m->graph, "%s.bias", name), 1, 1, m->config.width);
    param_fill(n.weight, 1.0f);
    return n;
}

static void block_make(struct model *m, struct block *b, struct rng *rng)
{
    size_t width = m->config.width;
    float std = 1.0f / sqrtf((float)width);
    float residual_std = std / sqrtf(2.0f * (float)m->config.layers);
    b->norm1 = norm_make(m, HERE, "ln1");
    graph_enter(m->graph, "attn", HERE);
    b->qkv = linear_make(m, HERE, "qkv", width, 3 * width, rng, std);
    b->attn_out = linear_make(m, HERE, "proj", width, width, rng, residual_std);
    graph_leave(m->graph);
    b->norm2 = norm_make(m, HERE, "ln2");
    graph_enter(m->graph, "mlp", HERE);
    b->fc = linear_make(m, HERE, "fc", width, 4 * width, rng, std);
    b->mlp_out = linear_make(m, HERE, "proj", 4 * width, width, rng, residual_std * 0.5f);
    graph_leave(m->graph);
}

static void parameters_make(struct model *m)
{
    struct rng rng = {m->config.seed};
    m->token = param_add(m, HERE, "token.weight", 2, m->config.vocabulary, m->config.width);
    m->position = param_add(m, HERE, "position.weight", 2, m->config.context, m->config.width);
    param_randomise(m, m->token, &rng, 0.5f);
    param_randomise(m, m->position, &rng, 0.1f);
    for (size_t i = 0; i < m->config.layers; i++) {
        graph_enter(m->graph, graph_printf(m->graph, "block%zu", i), HERE);
        block_make(m, &m->blocks[i], &rng);
        graph_leave(m->graph);
    }
    m->final_norm = norm_make(m, HERE, "ln_f");
    m->head = linear_make(m, HERE, "head", m->config.width, m->config.vocabulary, &rng, 0.02f);
}

/* ---- forward ------------------------------------------------------------------------------- */

static struct tensor *attention_forward(struct model *m, struct block *b, struct tensor *x)
{
    struct graph *g = m->graph;
    struct tensor *qkv = node_matmul(g, HERE, x, b->qkv.weight->value);
    qkv = node_bias(g, HERE, qkv, b->qkv.bias->value);
    b->q = node_split_heads(g, HERE, qkv, m->config.heads, 3);
    b->k = b->q->producer->out[1];
    b->v = b->q->producer->out[2];
    struct tensor *scores = node_batch_matmul(g, HERE, b->q, false, b->k, true);
    scores = node_scale(g, HERE, scores, &m->attn_scale);
    b->scores = node_mask(g, HERE, scores, MASK_VALUE);
    b->attn = node_softmax(g, HERE, b->scores);
    struct tensor *mixed = node_batch_matmul(g, HERE, b->attn, false, b->v, false);
    b->merged = node_merge_heads(g, HERE, &mixed, 1);
    struct tensor *out = node_matmul(g, HERE, b->merged, b->attn_out.weight->value);
    return node_bias(g, HERE, out, b->attn_out.bias->value);
}

static struct tensor *mlp_forward(struct model *m, struct block *b, struct tensor *x)
{
    struct graph *g = m->graph;
    struct tensor *h = node_matmul(g, HERE, x, b->fc.weight->value);
    b->hidden = node_bias(g, HERE, h, b->fc.bias->value);
    b->active = node_activate(g, HERE, m->config.activation, b->hidden);
    struct tensor *out = node_matmul(g, HERE, b->active, b->mlp_out.weight->value);
    return node_bias(g, HERE, out, b->mlp_out.bias->value);
}

static struct tensor *block_forward(struct model *m, struct block *b, struct tensor *x)
{
    struct graph *g = m->graph;
    b->ln1 = node_layernorm(g, HERE, x, b->norm1.weight->value, b->norm1.bias->value, NORM_EPS);
    graph_enter(g, "attn", HERE);
    struct tensor *attn = attention_forward(m, b, b->ln1);
    graph_leave(g);
    x = node_add(g, HERE, x, attn);
    b->ln2 = node_layernorm(g, HERE, x, b->norm2.weight->value, b->norm2.bias->value, NORM_EPS);
    graph_enter(g, "mlp", HERE);
    struct tensor *mlp = mlp_forward(m, b, b->ln2);
    graph_leave(g);
    return node_add(g, HERE, x, mlp);
}

static void loss_forward(struct model *m)
{
    struct graph *g = m->graph;
    bool half = g->half;
    g->half = false; /* the loss is always computed in single precision */
    m->sharpened = node_scale(g, HERE, m->logits, &m->logit_scale);
    m->probs = node_softmax(g, HERE, m->sharpened);
    m->picked = node_pick(g, HERE, m->probs, m->target);
    m->logp = node_log(g, HERE, m->picked, fault_log_floor(m->config.fault, LOG_FLOOR));
    m->loss = node_nll(g, HERE, m->logp);
    g->half = half;
    m->scaled_loss = half ? node_mul(g, HERE, m->loss, m->scale) : m->loss;
}

static void network_forward(struct model *m)
{
    struct graph *g = m->graph;
    graph_enter(g, "embed", HERE);
    struct tensor *x = node_gather(g, HERE, m->token->value, m->input);
    x = m->embedded = node_add_repeated(g, HERE, x, m->position->value);
    graph_leave(g);
    for (size_t i = 0; i < m->config.layers; i++) {
        graph_enter(g, graph_printf(g, "block%zu", i), HERE);
        x = block_forward(m, &m->blocks[i], x);
        graph_leave(g);
    }
    m->final = node_layernorm(g, HERE, x, m->final_norm.weight->value, m->final_norm.bias->value,
                              NORM_EPS);
    graph_enter(g, "head", HERE);
    m->logits = node_matmul(g, HERE, m->final, m->head.weight->value);
    m->logits = node_bias(g, HERE, m->logits, m->head.bias->value);
    graph_leave(g);
    graph_enter(g, "loss", HERE);
    loss_forward(m);
    graph_leave(g);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* From the gradient of x w + bias: sets the parameters' gradients, returns the gradient of x. */
static struct tensor *linear_backward(struct model *m, const struct linear *l, struct tensor *x,
                                      struct tensor *grad)
{
    struct graph *g = m->graph;
    l->bias->grad = node_sum_repeated(g, HERE, "BiasAddGrad", l->bias->value, grad);
    l->weight->grad = node_matmul_grad_w(g, HERE, x, grad);
    return node_matmul_grad_x(g, HERE, grad, l->weight->value);
}

static struct tensor *norm_backward(struct model *m, const struct norm *n, struct tensor *y,
                                    struct tensor *grad)
{
    struct tensor *x_grad = node_layernorm_grad(m->graph, HERE, y, grad);
    n->weight->grad = x_grad->producer->out[1];
    n->bias->grad = x_grad->producer->out[2];
    return x_grad;
}

static struct tensor *attention_backward(struct model *m, struct block *b, struct tensor *grad)
{
    struct graph *g = m->graph;
    grad = linear_backward(m, &b->attn_out, b->merged, grad);
    grad = node_split_heads(g, HERE, grad, m->config.heads, 1);
    struct tensor *v_grad = node_batch_matmul(g, HERE, b->attn, true, grad, false);
    struct tensor *scores = node_batch_matmul(g, HERE, grad, false, b->v, true);
    /* No mask needed: masked scores had probability 0, so their gradient is 0. */
    scores = node_softmax_grad(g, HERE, b->attn, scores);
    scores = node_scale(g, HERE, scores, &m->attn_scale);
    struct tensor *q_grad = node_batch_matmul(g, HERE, scores, false, b->k, false);
    struct tensor *k_grad = node_batch_matmul(g, HERE, scores, true, b->q, false);
    grad = node_merge_heads(g, HERE, (struct tensor *[]){q_grad, k_grad, v_grad}, 3);
    return linear_backward(m, &b->qkv, b->ln1, grad);
}

static struct tensor *mlp_backward(struct model *m, struct block *b, struct tensor *grad)
{
    grad = linear_backward(m, &b->mlp_out, b->active, grad);
    grad = node_activate_grad(m->graph, HERE, m->config.activation, b->active, grad);
    return linear_backward(m, &b->fc, b->ln2, grad);
}

static struct tensor *block_backward(struct model *m, struct block *b, struct tensor *grad)
{
    struct graph *g = m->graph;
    graph_enter(g, "mlp", HERE);
    struct tensor *branch = mlp_backward(m, b, grad);
    graph_leave(g);
    branch = norm_backward(m, &b->norm2, b->ln2, branch);
    grad = node_add(g, HERE, grad, branch);
    graph_enter(g, "attn", HERE);
    branch = attention_backward(m, b, grad);
    graph_leave(g);
    branch = norm_backward(m, &b->norm1, b->ln1, branch);
    return node_add(g, HERE, grad, branch);
}

static struct tensor *loss_backward(struct model *m)
{
    struct graph *g = m->graph;
    bool half = g->half;
    g->half = false;
    struct tensor *grad = node_nll_grad(g, HERE, m->logp, &m->loss_scale);
    grad = node_log_grad(g, HERE, m->logp, grad);
    grad = node_pick_grad(g, HERE, m->probs, m->target, grad);
    grad = node_softmax_grad(g, HERE, m->probs, grad);
    g->half = half;
    return node_scale(g, HERE, grad, &m->logit_scale);
}

static void network_backward(struct model *m)
{
    struct graph *g = m->graph;
    graph_enter(g, "loss", HERE);
    struct tensor *grad = loss_backward(m);
    graph_leave(g);
    graph_enter(g, "head", HERE);
    grad = linear_backward(m, &m->head, m->final, grad);
    graph_leave(g);
    grad = norm_backward(m, &m->final_norm, m->final, grad);
    for (size_t i = m->config.layers; i-- > 0;) {
        graph_enter(g, graph_printf(g, "block%zu", i), HERE);
        grad = block_backward(m, &m->blocks[i], grad);
        graph_leave(g);
    }
    graph_enter(g, "embed", HERE);
    m->position->grad = node_sum_repeated(g, HERE, "ReduceSum", m->position->value, grad);
    m->token->grad = node_gather_grad(g, HERE, m->token->value, m->input, grad);
    graph_leave(g);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void batch_make(struct model *m)
{
    size_t dim[] = {m->config.batch, m->config.context};
    graph_enter(m->graph, "Default/data", HERE);
    m->input = graph_leaf(m->graph, HERE, "input", "Data", true, 2, dim);
    m->target = graph_leaf(m->graph, HERE, "target", "Data", true, 2, dim);
    graph_leave(m->graph);
}

struct model *model_create(const struct config *config, struct graph *graph)
{
    struct model *m = graph_alloc(graph, sizeof(*m));
    m->config = *config;
    m->config.activation = fault_activation(config->fault, config->activation);
    m->graph = graph;
    m->blocks = graph_alloc(graph, config->layers * sizeof(*m->blocks));
    m->params = graph_alloc(graph, (config->layers * PER_BLOCK + OTHERS) * sizeof(*m->params));
    m->attn_scale = 1.0f / sqrtf((float)(config->width / config->heads));
    m->logit_scale = m->loss_scale = 1.0f;
    batch_make(m);
    graph_enter(graph, "Default/network", HERE);
    parameters_make(m);
    assert(m->param_count == config->layers * PER_BLOCK + OTHERS);
    graph->half = fault_half(config->fault);
    if (graph->half) {
        m->scale = graph_leaf(graph, HERE, "loss_scale", "Parameter", false, 0, NULL);
    }
    network_forward(m);
    graph_leave(graph);
    graph_set_phase(graph, PHASE_BACKWARD);
    graph_enter(graph, "Gradients/Default/network", HERE);
    network_backward(m);
    graph_leave(graph);
    graph->half = false;
    return m;
}

void model_forward(struct model *m, int64_t step)
{
    m->logit_scale = fault_logit_scale(m->config.fault, step);
    m->loss_scale = fault_loss_scale(m->config.fault, step);
    if (m->scale) {
        m->scale->f[0] = m->loss_scale;
    }
    graph_run(m->graph, PHASE_FORWARD);
}

void model_backward(struct model *m)
{
    graph_run(m->graph, PHASE_BACKWARD);
}

float model_loss(const struct model *m)
{
    return m->scaled_loss->f[0] / m->loss_scale;
}

size_t model_parameters(const struct model *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->param_count; i++) {
        count += m->params[i].value->count;
    }
    return count;
}

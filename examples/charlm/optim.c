// SPDX-License-Identifier: MIT
#include "optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

#define BETA1 0.9f
#define BETA2 0.95f
#define EPS   1e-8f

static void run_clip(struct graph *g, struct op *op)
{
    (void)g;
    const struct optim *o = op->state;
    double sum = 0.0;
    for (size_t i = 0; i < op->in_count; i++) {
        sum += ops_sum_squares(op->in[i]->f, op->in[i]->count);
    }
    float norm = (float)sqrt(sum) / o->model->loss_scale;
    o->norm->f[0] = norm;
    o->scale->f[0] = (norm > o->max_norm ? o->max_norm / norm : 1.0f) / o->model->loss_scale;
}

/* Operands: weight, moment 1, moment 2, gradient, gradient scale. */
static void run_adamw(struct graph *g, struct op *op)
{
    const struct optim *o = op->state;
    bool decays = op->variant != 0;
    struct adamw a = {.lr = o->lr,
                      .beta1 = BETA1,
                      .beta2 = BETA2,
                      .eps = EPS,
                      .decay = decays ? o->decay : 0.0f,
                      .correction1 = 1.0f - powf(BETA1, (float)o->step),
                      .correction2 = 1.0f - powf(BETA2, (float)o->step),
                      .grad_scale = op->in[4]->f[0]};
    ops_adamw(g->pool, op->in[0]->f, op->in[1]->f, op->in[2]->f, op->in[3]->f, op->in[0]->count,
              &a);
}

/* "block0/attn/qkv.weight" becomes "moment1.block0.attn.qkv.weight". */
static struct tensor *make_moment(struct graph *g, const char *prefix, const struct param *p)
{
    char name[256];
    size_t len = strlen(prefix);
    memcpy(name, prefix, len);
    for (const char *c = p->name; *c && len + 1 < sizeof(name); c++) {
        name[len++] = *c == '/' ? '.' : *c;
    }
    name[len] = '\0';
    return graph_leaf(g, HERE, name, "Parameter", false, p->value->rank, p->value->dim);
}

static void make_update(struct optim *o, const struct param *p)
{
    struct graph *g = o->model->graph;
    struct tensor *in[] = {p->value, make_moment(g, "moment1.", p), make_moment(g, "moment2.", p),
                           p->grad, o->scale};
    struct op *op = graph_op(g, HERE, "AdamWeightDecay", run_adamw, in, 5);
    op->state = o;
    op->variant = p->decays;
    graph_attr(op, "beta1", (double)BETA1);
    graph_attr(op, "beta2", (double)BETA2);
    graph_attr(op, "epsilon", (double)EPS);
    graph_attr(op, "weight_decay", p->decays ? (double)o->decay : 0.0);
    for (int i = 0; i < 3; i++) {
        graph_out_alias(g, op, in[i]);
    }
}

static void make_clip(struct optim *o)
{
    struct model *m = o->model;
    struct graph *g = m->graph;
    struct tensor **grads = graph_alloc(g, m->param_count * sizeof(struct tensor *));
    for (size_t i = 0; i < m->param_count; i++) {
        grads[i] = m->params[i].grad;
    }
    struct op *op = graph_op(g, HERE, "ClipByGlobalNorm", run_clip, grads, m->param_count);
    op->state = o;
    graph_attr(op, "clip_norm", (double)o->max_norm);
    o->norm = graph_out(g, op, 0, NULL);
    o->scale = graph_out(g, op, 0, NULL);
}

struct optim *optim_create(struct model *model, float max_norm, float decay)
{
    struct graph *g = model->graph;
    struct optim *o = graph_alloc(g, sizeof(*o));
    o->model = model;
    o->max_norm = max_norm;
    o->decay = decay;
    graph_set_phase(g, PHASE_OPTIMIZER);
    graph_enter(g, "Default/optimizer-AdamWeightDecay", HERE);
    make_clip(o);
    for (size_t i = 0; i < model->param_count; i++) {
        if (!fault_skips_parameter(model->config.fault, model->params[i].name)) {
            make_update(o, &model->params[i]);
        }
    }
    graph_leave(g);
    return o;
}

void optim_step(struct optim *o, int64_t step, float lr)
{
    o->step = step;
    o->lr = fault_learning_rate(o->model->config.fault, lr, step);
    graph_run(o->model->graph, PHASE_OPTIMIZER);
}

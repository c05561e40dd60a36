// SPDX-License-Identifier: GPL-3.0-or-later
/* A small network as an eager program tells of it, for the tests of `why`. */
#ifndef TESTS_ENGINE_WHY_NET_H
#define TESTS_ENGINE_WHY_NET_H

#include "../../unit.h"
#include "why_bench.h"

#define NONE GD_NO_NODE

/* A node as an eager program tells of it. */
struct about {
    const char *name, *type, *phase;
    const char *forward;     /* of a backward node; NULL */
    const char *key, *value; /* one more attribute; NULL */
    enum gd_node_kind kind;
    struct gd_shape shape; /* rank 0: (10,) */
    gd_node_id input[3];   /* 0: no more. Node 0 is never one: see `op` */
};

static inline gd_node_id add_op(struct bench *b, const struct about *about)
{
    struct gd_output output = {.dtype = GD_FLOAT32, .shape = about->shape};
    struct gd_attr attrs[3];
    struct gd_node_desc desc = {.name = about->name,
                                .type = about->type,
                                .kind = about->kind,
                                .outputs = &output,
                                .output_count = 1,
                                .attrs = attrs,
                                .order = about->phase ? b->order++ : GD_NO_ORDER};
    struct gd_edge inputs[3];
    uint32_t count = 0;
    gd_node_id node;

    if (output.shape.rank == 0 && about->kind != GD_NODE_OTHER) {
        output.shape = (struct gd_shape){.rank = 1, .dim = {10}};
    }
    if (about->phase) {
        attrs[desc.attr_count++] = (struct gd_attr){"phase", about->phase};
    }
    if (about->forward) {
        attrs[desc.attr_count++] = (struct gd_attr){"forward", about->forward};
    }
    if (about->key) {
        attrs[desc.attr_count++] = (struct gd_attr){about->key, about->value};
    }
    while (count < 3 && about->input[count]) {
        inputs[count] = (struct gd_edge){.node = about->input[count]};
        count++;
    }
    assert_ok(gd_graph_add(b->session->graph, &desc, &node, NULL));
    assert_ok(gd_graph_connect(b->session->graph, node, inputs, count, NULL));
    return node;
}

static inline gd_node_id add_forward(struct bench *b, const char *name, const char *type,
                                     gd_node_id first, gd_node_id second)
{
    return add_op(b, &(struct about){.name = name,
                                     .type = type,
                                     .phase = "forward",
                                     .kind = GD_NODE_ACTIVATION,
                                     .input = {first, second}});
}

static inline gd_node_id add_backward(struct bench *b, const char *name, const char *of,
                                      gd_node_id input)
{
    return add_op(b, &(struct about){.name = name,
                                     .type = "Backward0",
                                     .phase = "backward",
                                     .forward = of,
                                     .kind = GD_NODE_GRADIENT,
                                     .input = {input}});
}

static inline gd_node_id add_weight(struct bench *b, const char *name)
{
    return add_op(b, &(struct about){.name = name, .type = "Parameter", .kind = GD_NODE_WEIGHT});
}

/* x, w -> linear -> relu -> TYPE -> out -> loss, whose backward pass ends at out. */
struct net {
    gd_node_id x, w, linear, relu, cut, out, loss, gradient;
};

static inline struct net make_net(struct bench *b, const char *type)
{
    struct net n;

    bench_leaf(b, "first", "Const"); /* so that no node in use is number 0 */
    n.x = bench_leaf(b, "x", "Input");
    n.w = add_weight(b, "w");
    n.linear = add_forward(b, "linear", "linear", n.x, n.w);
    n.relu = add_forward(b, "relu", "relu", n.linear, 0);
    n.cut = add_forward(b, "cut", type, n.relu, 0);
    n.out = add_forward(b, "out", "linear", n.cut, add_weight(b, "v"));
    n.loss = add_op(b, &(struct about){.name = "loss",
                                       .type = "cross_entropy",
                                       .phase = "forward",
                                       .kind = GD_NODE_OTHER,
                                       .key = "reduction",
                                       .value = "sum",
                                       .input = {n.out}});
    add_backward(b, "backward/out", "out", add_backward(b, "backward/loss", "loss", 0));
    n.gradient = add_op(b, &(struct about){.name = "w.grad",
                                           .type = "Gradient",
                                           .phase = "backward",
                                           .kind = GD_NODE_GRADIENT});
    b->facts = (struct gd_why_facts){.of_parameter = true,
                                     .parameter = "w",
                                     .optimizer = "SGD",
                                     .optimizers = 1,
                                     .has_gradient = true,
                                     .has_rate = true,
                                     .rate = 0.1};
    return n;
}

#endif

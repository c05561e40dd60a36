// SPDX-License-Identifier: GPL-3.0-or-later
/* What the graph says about a node: its type, its phase, who writes it; where the loss is. */
#include <string.h>
#include <strings.h>

#include "engine/why/why_impl.h"

bool why_type_in(const char *type, const char *types)
{
    while (*types) {
        size_t len = strcspn(types, " ");
        bool prefix = len > 0 && types[len - 1] == '*';

        if (prefix ? strncasecmp(type, types, len - 1) == 0
                   : strncasecmp(type, types, len) == 0 &&
                         (type[len] == '\0' || strcmp(type + len, "Ext") == 0)) {
            return true;
        }
        types += len;
        types += strspn(types, " ");
    }
    return false;
}

bool why_attr_is(const struct gd_node_info *info, const char *name, const char *value)
{
    const char *own = gd_node_attr(info, name);

    return own && strcmp(own, value) == 0;
}

bool why_in_phase(const struct gd_node_info *info, const char *phase)
{
    return why_attr_is(info, "phase", phase);
}

bool why_is_gradient(const struct gd_graph *graph, gd_node_id node)
{
    struct gd_node_info info;

    return gd_graph_node(graph, node, &info) && info.kind == GD_NODE_GRADIENT;
}

gd_node_id why_forward(const struct gd_graph *graph, const struct gd_node_info *info)
{
    const char *name = gd_node_attr(info, "forward");

    return name ? gd_graph_lookup(graph, name, strlen(name)) : GD_NO_NODE;
}

gd_node_id why_forward_of(const struct gd_graph *graph, const struct gd_node_info *info)
{
    return why_in_phase(info, "backward") ? why_forward(graph, info) : GD_NO_NODE;
}

bool why_mark_reached(const struct gd_graph *graph, unsigned char *bits)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;
        gd_node_id forward =
            gd_graph_node(graph, order[i], &info) ? why_forward_of(graph, &info) : GD_NO_NODE;

        if (forward != GD_NO_NODE) {
            why_set_bit(bits, forward);
            any = true;
        }
    }
    return any;
}

/* The first backward node; told: of a pass into the weights, not of one whose result is part of the
 * loss. */
static gd_node_id first_of_backward(const struct gd_graph *graph, bool told)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;

        if (gd_graph_node(graph, order[i], &info) && why_in_phase(&info, "backward") &&
            (!told || gd_node_attr(&info, "begins"))) {
            return order[i];
        }
    }
    return GD_NO_NODE;
}

static bool is_scalar(const struct gd_graph *graph, gd_node_id node)
{
    struct gd_output output;

    return gd_graph_output(graph, node, 0, &output) && gd_shape_count(&output.shape) == 1;
}

/* The forward operator of a backward node, or of the first one after it of which it is known: the
 * last operator of a loss may be compiled, as that of a loss scale is. */
static gd_node_id forward_from(const struct gd_graph *graph, gd_node_id node)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    gd_node_id found = GD_NO_NODE;
    bool begun = false;

    for (uint32_t i = 0; i < count && found == GD_NO_NODE; i++) {
        struct gd_node_info info;

        begun = begun || order[i] == node;
        if (begun && gd_graph_node(graph, order[i], &info)) {
            found = why_forward_of(graph, &info);
        }
    }
    return found;
}

gd_node_id gd_why_loss(const struct gd_graph *graph, const struct gd_why_facts *facts)
{
    gd_node_id told = facts ? gd_graph_lookup(graph, facts->loss, strlen(facts->loss)) : GD_NO_NODE;
    gd_node_id first = first_of_backward(graph, true);

    if (is_scalar(graph, told)) {
        return told;
    }
    if (first == GD_NO_NODE) {
        first = first_of_backward(graph, false); /* no node was reported */
    }
    gd_node_id forward = forward_from(graph, first);
    return is_scalar(graph, forward) ? forward : GD_NO_NODE;
}

bool why_is_loss(const struct why_walk *walk)
{
    return walk->facts.scalar[0] ||
           (walk->count > 0 &&
            walk->tensors[0].node == gd_why_loss(walk->session->graph, &walk->facts));
}

bool why_is_writer(const char *type)
{
    return why_type_in(type, "Adam* FusedAdam* Apply* FusedApply* SparseApply* FusedSparse* "
                             "Momentum SGD RMSProp* Lamb* Lars* Ftrl* Adagrad* Adadelta* AdaMax* "
                             "Lion* Rprop* NAdam* RAdam* ASGD SparseAdam LBFGS Assign* "
                             "ResourceApply* FusedMomentum* FusedWeight* "
                             "FusedScale* ScatterUpdate ScatterAdd ScatterSub");
}

bool why_only_updates(const struct gd_node_info *info, uint32_t i)
{
    bool own = why_type_in(info->type, "batch_norm")
                   ? i == 1 || i == 2
                   : why_type_in(info->type, "BatchNorm") && (i == 3 || i == 4);
    return own && why_attr_is(info, "training", "True");
}

/* An optimizer's moments follow their weight, and have its shape; a learning rate is only read. */
static bool is_state(const struct gd_graph *graph, const struct gd_node_info *writer,
                     const struct gd_edge *edge, gd_node_id parameter)
{
    struct gd_output weight, state;

    return !why_type_in(writer->type, "Assign* Scatter*") && writer->input_count > 0 &&
           gd_graph_output(graph, writer->inputs[0].node, writer->inputs[0].slot, &weight) &&
           gd_graph_output(graph, parameter, edge->slot, &state) && weight.shape.rank > 0 &&
           gd_shape_equal(&weight.shape, &state.shape);
}

gd_node_id why_writer(const struct gd_graph *graph, gd_node_id parameter)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(graph, parameter, &edges);
    gd_node_id found = GD_NO_NODE;

    if (why_is_gradient(graph, parameter)) { /* it is only read, whatever its shape */
        return GD_NO_NODE;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;

        if (edges[i].control || !gd_graph_node(graph, edges[i].node, &info) ||
            !why_is_writer(info.type)) {
            continue;
        }
        if (info.input_count > 0 && info.inputs[0].node == parameter) {
            return edges[i].node; /* the first operand is the one written */
        }
        if (is_state(graph, &info, &edges[i], parameter)) {
            found = edges[i].node;
        }
    }
    return found;
}

bool why_is_trained(const struct why_walk *walk, const struct why_tensor *tensor)
{
    gd_node_id writer =
        tensor->is_leaf ? why_writer(walk->session->graph, tensor->node) : GD_NO_NODE;
    struct gd_node_info info;

    return writer != GD_NO_NODE && gd_graph_node(walk->session->graph, writer, &info) &&
           info.input_count > 0 && info.inputs[0].node == tensor->node;
}

void why_put_node(const struct gd_graph *graph, gd_node_id node, struct gd_buf *text)
{
    struct gd_node_info info;

    if (gd_graph_node(graph, node, &info)) {
        gd_buf_printf(text, "%.160s (%s)", info.name, info.type);
    }
}

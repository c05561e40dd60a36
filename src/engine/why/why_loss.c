// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How the loss is computed: probabilities passed to what takes scores, a softmax over a wrong axis.
 * The graph shows it; no value is examined.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/why/why_impl.h"

#define FROM_SCORES                                                                                \
    "cross_entropy SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"
#define BINARY_FROM_SCORES                                                                         \
    "binary_cross_entropy_with_logits multilabel_soft_margin_loss BCEWithLogitsLoss "              \
    "SigmoidCrossEntropyWithLogits"
#define MAX_BACK 12 /* operators from a loss back to what made its input */
/* Passes on the same numbers, in another form or limited. */
#define SAME                                                                                       \
    "view reshape squeeze unsqueeze flatten contiguous clone to float double half bfloat16 "       \
    "transpose permute clamp clamp_min clamp_max clip Cast ExpandDims ClampScalar ClampTensor"

static gd_node_id first_input(const struct gd_node_info *info)
{
    return info->input_count > 0 ? info->inputs[0].node : GD_NO_NODE;
}

/* What computed the loss's input, if it is of one of the types; operators in `passed` are skipped,
 * too. GD_NO_NODE: it is not. */
static gd_node_id find_maker(const struct gd_graph *graph, const struct gd_node_info *loss,
                             const char *passed, const char *types, struct gd_node_info *ret)
{
    gd_node_id node = first_input(loss);

    for (int i = 0; i < MAX_BACK && gd_graph_node(graph, node, ret); i++) {
        if (!why_type_in(ret->type, SAME) && !why_type_in(ret->type, passed)) {
            return why_type_in(ret->type, types) ? node : GD_NO_NODE;
        }
        node = first_input(ret);
    }
    return GD_NO_NODE;
}

/* The loss itself turns scores into probabilities: a second time hardly distinguishes them. */
static uint32_t normalised_twice(struct why_walk *walk, const struct gd_node_info *loss,
                                 struct why_finding *ret)
{
    bool binary = !why_type_in(loss->type, FROM_SCORES);
    struct gd_node_info made;
    gd_node_id node =
        find_maker(walk->session->graph, loss, "", binary ? "sigmoid" : "softmax", &made);

    if (node == GD_NO_NODE) {
        return WHY_NONE;
    }
    why_say(ret, "normalised-twice",
            "%s is applied twice: %.160s (%s) applies it itself, but its input, the output of "
            "%.160s (%s), already consists of probabilities. Pass it the raw scores: from values "
            "between 0 and 1 it makes probabilities that hardly differ, and small gradients.",
            made.type, loss->name, loss->type, made.name, made.type);
    return why_also(walk, node, 0);
}

/* Its length is that of the labels: one number per example. */
static bool is_batch_axis(const struct gd_graph *graph, const struct gd_node_info *loss,
                          const struct gd_output *scores)
{
    struct gd_output labels;

    return scores->shape.rank == 2 && scores->shape.dim[0] > 1 && scores->shape.dim[1] > 1 &&
           loss->input_count >= 2 &&
           gd_graph_output(graph, loss->inputs[1].node, loss->inputs[1].slot, &labels) &&
           labels.shape.rank == 1 && labels.shape.dim[0] == scores->shape.dim[0];
}

/* The axis that an operator was given; -1: unknown. */
static int axis_of(const struct gd_node_info *info, int rank)
{
    const char *text = gd_node_attr(info, "dim");
    char *end = NULL;
    long axis = text ? strtol(text, &end, 10) : 0;

    if (!text || end == text || *end != '\0') {
        return -1;
    }
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

/* A single class: its share of the sum is always 1. */
static uint32_t single_class(struct why_walk *walk, const struct gd_node_info *loss,
                             struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct gd_output scores;

    if (loss->input_count == 0 ||
        !gd_graph_output(graph, loss->inputs[0].node, loss->inputs[0].slot, &scores) ||
        scores.shape.rank < 1 || scores.shape.dim[scores.shape.rank > 1 ? 1 : 0] != 1) {
        return WHY_NONE;
    }
    why_say(ret, "one-class",
            "%.160s (%s) has a single class: the softmax over one score is always 1, so the loss "
            "and all gradients are 0. For two classes with one score, use "
            "binary_cross_entropy_with_logits.",
            loss->name, loss->type);
    return why_also(walk, gd_graph_lookup(graph, loss->name, strlen(loss->name)), 0);
}

/* The axis of the classes of that loss in the output of `node`; -1: unknown. */
static int class_axis(const struct gd_graph *graph, const struct gd_node_info *loss,
                      gd_node_id node, const struct gd_shape *scores)
{
    struct gd_node_info info = *loss;
    struct gd_output given;

    for (gd_node_id at = first_input(loss); at != node; at = first_input(&info)) {
        if (!gd_graph_node(graph, at, &info) || why_type_in(info.type, "transpose permute")) {
            return -1;
        }
    }
    if (!gd_graph_output(graph, loss->inputs[0].node, loss->inputs[0].slot, &given) ||
        given.shape.rank < 2) {
        return -1;
    }
    if (gd_shape_equal(&given.shape, scores)) {
        return 1;
    }
    bool flat = given.shape.rank == 2 && scores->rank > 2; /* (N, L, C) as (N * L, C) */
    return flat && given.shape.dim[1] == scores->dim[scores->rank - 1] ? scores->rank - 1 : -1;
}

/* A softmax over an axis other than that of the classes; over the first one, the examples of the
 * batch share one sum. */
static uint32_t over_another_axis(struct why_walk *walk, const struct gd_node_info *loss,
                                  struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct gd_node_info made;
    struct gd_output scores;
    char shape[128];
    gd_node_id node = find_maker(graph, loss, "log add", "softmax log_softmax", &made);

    if (node == GD_NO_NODE || !gd_graph_output(graph, node, 0, &scores)) {
        return WHY_NONE;
    }
    int axis = axis_of(&made, scores.shape.rank);
    bool batch = axis == 0 && is_batch_axis(graph, loss, &scores);
    int classes = batch ? 1 : class_axis(graph, loss, node, &scores.shape);
    if (axis < 0 || classes < 0 || axis == classes || scores.shape.dim[classes] < 2) {
        return WHY_NONE;
    }
    why_say(ret, "softmax-axis", "%.160s (%s) is computed over axis %s", made.name, made.type,
            gd_node_attr(&made, "dim"));
    if (batch) {
        gd_buf_printf(&ret->text,
                      ", which is the batch: the %lld examples share one sum, so the result of "
                      "each depends on the others.",
                      (long long)scores.shape.dim[0]);
    } else {
        gd_buf_printf(&ret->text,
                      " of %s: the probabilities that a label picks from do not add up to 1.",
                      gd_shape_text(&scores.shape, shape, sizeof(shape)));
    }
    gd_buf_printf(&ret->text, " The %lld classes of %.160s (%s) are along axis %d.",
                  (long long)scores.shape.dim[classes], loss->name, loss->type, classes);
    return why_also(walk, node, 0);
}

/* Whether only matrix products read a node's output, as the left operand: they sum over the last
 * axis. */
static bool sums_rows(const struct gd_graph *graph, gd_node_id node, struct gd_node_info *product)
{
    for (int i = 0; i < MAX_BACK; i++) {
        const struct gd_edge *edges;
        gd_node_id reader = GD_NO_NODE;
        uint32_t count = gd_graph_consumers(graph, node, &edges);

        for (uint32_t k = 0; k < count; k++) {
            if (!gd_graph_node(graph, edges[k].node, product) ||
                product->kind == GD_NODE_GRADIENT) {
                continue;
            }
            if (reader != GD_NO_NODE) {
                return false;
            }
            reader = edges[k].node;
        }
        if (!gd_graph_node(graph, reader, product) || first_input(product) != node) {
            return false;
        }
        if (why_type_in(product->type, "matmul bmm")) {
            return product->input_count == 2;
        }
        if (!why_type_in(product->type, "dropout contiguous clone to float half bfloat16")) {
            return false;
        }
        node = reader;
    }
    return false;
}

/* Whether it is a square whose columns add up to 1: attention of a sequence to itself. In a
 * non-square one the columns may be intended, as where elements are distributed. */
static bool is_by_columns(const struct gd_graph *graph, gd_node_id node,
                          const struct gd_node_info *info, struct gd_shape *shape)
{
    struct gd_output output;

    if (!why_type_in(info->type, "softmax") || !gd_graph_output(graph, node, 0, &output) ||
        output.shape.rank < 2) {
        return false;
    }
    *shape = output.shape;
    int rank = shape->rank;
    return axis_of(info, rank) == rank - 2 && shape->dim[rank - 1] > 1 &&
           shape->dim[rank - 1] == shape->dim[rank - 2];
}

/* Weights of a sum that add up to 1 along another axis than the one that is summed over. */
static uint32_t weighs_another_axis(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info made, product;
        struct gd_shape weights;
        char shape[128];

        if (gd_graph_node(graph, order[i], &made) &&
            is_by_columns(graph, order[i], &made, &weights) &&
            sums_rows(graph, order[i], &product)) {
            why_say(ret, "softmax-axis",
                    "%.160s (%s) is computed over axis %s of %s, but %.160s (%s), which takes its "
                    "rows as weights, sums over the last axis: the weights of a sum do not add up "
                    "to 1. Is the last axis meant?",
                    made.name, made.type, gd_node_attr(&made, "dim"),
                    gd_shape_text(&weights, shape, sizeof(shape)), product.name, product.type);
            return why_also(walk, order[i], 0);
        }
    }
    return WHY_NONE;
}

/* A negative log likelihood without the logarithm. */
static uint32_t no_logarithm(struct why_walk *walk, const struct gd_node_info *loss,
                             struct why_finding *ret)
{
    struct gd_node_info made;
    gd_node_id node = find_maker(walk->session->graph, loss, "", "softmax sigmoid", &made);

    if (node == GD_NO_NODE) {
        return WHY_NONE;
    }
    why_say(ret, "no-logarithm",
            "%.160s (%s) expects log-probabilities, but its input, the output of %.160s (%s), is "
            "probabilities. Is log_softmax meant?",
            loss->name, loss->type, made.name, made.type);
    return why_also(walk, node, 0);
}

uint32_t why_made_wrong(struct why_walk *walk, struct why_finding *ret)
{
    static const struct {
        const char *types; /* of the loss */
        uint32_t (*test)(struct why_walk *, const struct gd_node_info *, struct why_finding *);
    } tests[] = {
        {FROM_SCORES, single_class},
        {FROM_SCORES " nll_loss", over_another_axis},
        {FROM_SCORES " " BINARY_FROM_SCORES, normalised_twice},
        {"nll_loss", no_logarithm},
    };
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id node = walk->count > 0 ? walk->tensors[0].node : GD_NO_NODE;
    struct gd_node_info loss;

    if (node == GD_NO_NODE || node != gd_why_loss(graph, &walk->facts)) {
        return WHY_NONE;
    }
    for (int i = 0; i < MAX_BACK && gd_graph_node(graph, node, &loss); i++) {
        for (size_t k = 0; k < sizeof(tests) / sizeof(tests[0]); k++) {
            uint32_t found =
                why_type_in(loss.type, tests[k].types) ? tests[k].test(walk, &loss, ret) : WHY_NONE;
            if (found != WHY_NONE) {
                return found;
            }
        }
        node = first_input(&loss); /* what was scaled, averaged, added to */
    }
    return weighs_another_axis(walk, ret);
}

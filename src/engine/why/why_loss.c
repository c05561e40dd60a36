// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How the loss is made: probabilities given to what takes scores, a softmax over the batch. The
 * graph shows it; no value is looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/why/why_impl.h"

#define MAX_BACK 12 /* operators from a loss back to what made its input */
/* What hands on the same numbers, in another form or limited. */
#define SAME                                                                                       \
    "view reshape squeeze unsqueeze flatten contiguous clone to float double half bfloat16 "       \
    "transpose permute clamp clamp_min clamp_max clip"

static gd_node_id first_input(const struct gd_node_info *info)
{
    return info->input_count > 0 ? info->inputs[0].node : GD_NO_NODE;
}

/* What made the numbers that the loss was given, when it is of one of the types; on the way
 * `passed`, too, is passed over. GD_NO_NODE: it is not. */
static gd_node_id maker(const struct gd_graph *graph, const struct gd_node_info *loss,
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

static uint32_t say(struct why_walk *walk, struct why_finding *ret, const char *rule,
                    gd_node_id node)
{
    snprintf(ret->rule, sizeof(ret->rule), "%s", rule);
    return why_also(walk, node, 0);
}

static bool is_binary(const struct gd_node_info *loss)
{
    return why_type_in(loss->type, "binary_cross_entropy_with_logits "
                                   "multilabel_soft_margin_loss");
}

/* Scores are turned into probabilities by the loss itself: a second time hardly tells them apart.
 */
static uint32_t normalised_twice(struct why_walk *walk, const struct gd_node_info *loss,
                                 struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    bool binary = is_binary(loss);
    struct gd_node_info made;
    gd_node_id node;

    if (!binary && !why_type_in(loss->type, "cross_entropy")) {
        return WHY_NONE;
    }
    node = maker(graph, loss, "", binary ? "sigmoid" : "softmax", &made);
    if (node == GD_NO_NODE) {
        return WHY_NONE;
    }
    gd_buf_clear(&ret->text);
    gd_buf_printf(&ret->text,
                  "%s is taken twice: %.160s (%s) takes it itself, but is given what %.160s (%s) "
                  "made. What it is to be given are the scores before that: of values from 0 to 1 "
                  "it makes probabilities that hardly differ, and gradients that are small.",
                  made.type, loss->name, loss->type, made.name, made.type);
    return say(walk, ret, "normalised-twice", node);
}

/* Its length is that of the labels: one number an example. */
static bool is_batch_axis(const struct gd_graph *graph, const struct gd_node_info *loss,
                          const struct gd_output *scores)
{
    struct gd_output labels;

    return scores->shape.rank == 2 && scores->shape.dim[0] > 1 && scores->shape.dim[1] > 1 &&
           loss->input_count >= 2 &&
           gd_graph_output(graph, loss->inputs[1].node, loss->inputs[1].slot, &labels) &&
           labels.shape.rank == 1 && labels.shape.dim[0] == scores->shape.dim[0];
}

/* A softmax over the first axis: the examples of the batch share one sum. */
static uint32_t over_the_batch(struct why_walk *walk, const struct gd_node_info *loss,
                               struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct gd_node_info made;
    struct gd_output scores;
    const char *axis;
    gd_node_id node;

    if (!why_type_in(loss->type, "cross_entropy nll_loss")) {
        return WHY_NONE;
    }
    node = maker(graph, loss, "log add", "softmax log_softmax", &made);
    if (node == GD_NO_NODE || !(axis = gd_node_attr(&made, "dim")) ||
        !gd_graph_output(graph, node, 0, &scores) || !is_batch_axis(graph, loss, &scores) ||
        (strcmp(axis, "0") != 0 && strcmp(axis, "-2") != 0)) {
        return WHY_NONE;
    }
    gd_buf_clear(&ret->text);
    gd_buf_printf(&ret->text,
                  "%.160s (%s) goes over axis %s, which is the batch: the %lld examples share one "
                  "sum, and what each is given depends on the others. The %lld classes of %.160s "
                  "(%s) lie along axis 1.",
                  made.name, made.type, axis, (long long)scores.shape.dim[0],
                  (long long)scores.shape.dim[1], loss->name, loss->type);
    return say(walk, ret, "softmax-axis", node);
}

/* A negative log likelihood without the logarithm. */
static uint32_t no_logarithm(struct why_walk *walk, const struct gd_node_info *loss,
                             struct why_finding *ret)
{
    struct gd_node_info made;
    gd_node_id node;

    if (!why_type_in(loss->type, "nll_loss")) {
        return WHY_NONE;
    }
    node = maker(walk->session->graph, loss, "", "softmax sigmoid", &made);
    if (node == GD_NO_NODE) {
        return WHY_NONE;
    }
    gd_buf_clear(&ret->text);
    gd_buf_printf(&ret->text,
                  "%.160s (%s) takes logarithms of probabilities, but is given the probabilities "
                  "that %.160s (%s) made. Is log_softmax meant?",
                  loss->name, loss->type, made.name, made.type);
    return say(walk, ret, "no-logarithm", node);
}

uint32_t why_made_wrong(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t (*const tests[])(struct why_walk *, const struct gd_node_info *,
                              struct why_finding *) = {over_the_batch, normalised_twice,
                                                       no_logarithm};
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id node = walk->count > 0 ? walk->tensors[0].node : GD_NO_NODE;
    struct gd_node_info loss;

    if (node == GD_NO_NODE || node != gd_why_loss(graph, &walk->facts)) {
        return WHY_NONE;
    }
    for (int i = 0; i < MAX_BACK && gd_graph_node(graph, node, &loss); i++) {
        for (size_t k = 0; k < sizeof(tests) / sizeof(tests[0]); k++) {
            uint32_t found = tests[k](walk, &loss, ret);

            if (found != WHY_NONE) {
                return found;
            }
        }
        node = first_input(&loss); /* what was scaled, averaged, added to */
    }
    return WHY_NONE;
}

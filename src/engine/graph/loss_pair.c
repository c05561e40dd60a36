// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/loss_pair.h"

#include <string.h>

#define MAX_WAY 3 /* nodes between a loss and what it is made of */

/* Operators that compute a loss from outputs and labels, their first two inputs. */
static const struct {
    const char *type;
    enum gd_metric_form form;
} losses[] = {
    {"cross_entropy", GD_FORM_CLASSES},
    {"nll_loss", GD_FORM_CLASSES},
    {"CrossEntropy", GD_FORM_CLASSES},
    {"CrossEntropyLoss", GD_FORM_CLASSES},
    {"SoftmaxCrossEntropyWithLogits", GD_FORM_CLASSES},
    {"SparseSoftmaxCrossEntropyWithLogits", GD_FORM_CLASSES},
    {"NLLLoss", GD_FORM_CLASSES},
    {"binary_cross_entropy", GD_FORM_PROBABILITIES},
    {"BCELoss", GD_FORM_PROBABILITIES},
    {"BinaryCrossEntropy", GD_FORM_PROBABILITIES},
    {"binary_cross_entropy_with_logits", GD_FORM_LOGITS},
    {"BCEWithLogitsLoss", GD_FORM_LOGITS},
    {"SigmoidCrossEntropyWithLogits", GD_FORM_LOGITS},
    {"mse_loss", GD_FORM_VALUES},
    {"l1_loss", GD_FORM_VALUES},
    {"smooth_l1_loss", GD_FORM_VALUES},
    {"huber_loss", GD_FORM_VALUES},
    {"MSELoss", GD_FORM_VALUES},
    {"MSELossExt", GD_FORM_VALUES},
    {"L1Loss", GD_FORM_VALUES},
    {"L1LossExt", GD_FORM_VALUES},
    {"SmoothL1Loss", GD_FORM_VALUES},
};

/* The first inputs that carry tensors, in order. */
static uint32_t tensors_of(const struct gd_node_info *info, struct gd_edge ret[2])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->input_count && count < 2; i++) {
        if (!info->inputs[i].control) {
            ret[count++] = info->inputs[i];
        }
    }
    return count;
}

/* The choice of each label's probability, of which a loss with one input is made, perhaps by way of
 * its logarithm. */
static bool find_choice(const struct gd_graph *graph, gd_node_id node, struct gd_edge ret[2])
{
    struct gd_node_info info;
    for (int i = 0; i < MAX_WAY && gd_graph_node(graph, node, &info); i++) {
        uint32_t inputs = tensors_of(&info, ret);
        if (strcmp(info.type, "GatherD") == 0 || strcmp(info.type, "gather") == 0) {
            return inputs == 2;
        }
        if (inputs != 1) {
            return false;
        }
        node = ret[0].node;
    }
    return false;
}

static bool is_aside(const char *name)
{
    return strncmp(name, "eval/", 5) == 0 || strncmp(name, "Gradients/", 10) == 0;
}

size_t gd_loss_pairs(const struct gd_graph *graph, struct gd_loss_pair *ret, size_t most)
{
    uint32_t count;
    size_t found = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;
        struct gd_edge edges[2];
        size_t kind = 0;
        if (!gd_graph_node(graph, order[i], &info) || info.kind == GD_NODE_GRADIENT ||
            is_aside(info.name)) {
            continue;
        }
        while (kind < sizeof(losses) / sizeof(losses[0]) &&
               strcmp(losses[kind].type, info.type) != 0) {
            kind++;
        }
        if (kind == sizeof(losses) / sizeof(losses[0])) {
            continue;
        }
        uint32_t inputs = tensors_of(&info, edges);
        if (inputs == 0 || (inputs == 1 && !find_choice(graph, edges[0].node, edges))) {
            continue;
        }
        if (found < most) {
            ret[found] = (struct gd_loss_pair){order[i], edges[0], edges[1], losses[kind].form};
        }
        found++;
    }
    return found;
}

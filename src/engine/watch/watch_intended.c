// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Infinities that the program asked for: masks of -inf, and values that start at infinity and
 * shrink. They come from an argument that says so, a constant, or an operator that has one as
 * input, and no watchpoint fires on them. NaN is never intended.
 */
#include <strings.h>

#include "engine/watch/watch_impl.h"

/* Operators whose result passes on an infinity of an operand, as far as that is known without
 * seeing the operand. */
static const char *const hands_on[] = {
    "add",    "add_",    "iadd",      "clone",        "contiguous", "expand",      "expand_as",
    "float",  "half",    "getitem",   "index_select", "repeat",     "reshape",     "slice",
    "to",     "type_as", "unsqueeze", "view",         "where",      "masked_fill", "bfloat16",
    "double", "triu",    "tril",      "transpose",    "permute",    "t",           "squeeze",
};
#define MOST_BEFORE 8 /* operators between where a mask is created and where it is used */

static bool is_one_of(const char *type, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(type, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A value that no operator computed: a constant, a buffer, part of the data. */
static bool comes_from_outside(const struct gd_node_info *info)
{
    return strcasecmp(info->type, "Input") == 0 || strcasecmp(info->type, "Buffer") == 0;
}

/* Only 0 and -inf: added to scores to exclude some of them. */
static bool looks_like_mask(const struct gd_stats *stats)
{
    return stats->count > 1 && stats->neg_inf && stats->zero + stats->neg_inf == stats->count;
}

/* Operators that turn -inf into +inf. */
static const char *const turns[] = {"neg", "sub", "rsub", "sub_", "mul", "mul_", "div", "truediv"};

static unsigned char signs_of(const struct gd_stats *stats)
{
    return (unsigned char)((stats->pos_inf ? 1 : 0) | (stats->neg_inf ? 2 : 0));
}

/* Whether a value whose creation no watchpoint saw, like a mask from an earlier step, was filled
 * with infinities. */
static bool was_filled(const struct gd_watching *w, gd_node_id node, int depth)
{
    struct gd_node_info info;
    if (depth > MOST_BEFORE || !gd_graph_node(w->session->graph, node, &info)) {
        return false;
    }
    if (gd_node_attr(&info, "fill")) {
        return true;
    }
    if (!is_one_of(info.type, hands_on, sizeof(hands_on) / sizeof(*hands_on))) {
        return false;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        if (!info.inputs[i].control && was_filled(w, info.inputs[i].node, depth + 1)) {
            return true;
        }
    }
    return false;
}

/* Whether infinities of those signs are passed on along the edge. Their origin may have run in an
 * earlier step: a mask that is kept. */
static bool edge_is_intended(const struct gd_watching *w, const struct gd_node_info *to,
                             const struct gd_edge *edge, unsigned char signs)
{
    struct gd_node_info from;
    size_t index = watching_tensor(w, edge->node, edge->slot, NULL);
    if (edge->control || !gd_graph_node(w->session->graph, edge->node, &from)) {
        return false;
    }
    if (index != SIZE_MAX && w->tensors[index].intended_step &&
        (!(signs & ~w->tensors[index].intended_signs) ||
         is_one_of(to->type, turns, sizeof(turns) / sizeof(*turns)))) {
        return true;
    }
    /* Lasting values are judged at the end of the step, after those computed from them. */
    bool hands = is_one_of(to->type, hands_on, sizeof(hands_on) / sizeof(*hands_on));
    if (strcasecmp(from.type, "Buffer") == 0) {
        return hands;
    }
    if (index == SIZE_MAX && gd_node_attr(&from, "fill")) {
        return true;
    }
    return hands && (index == SIZE_MAX || !w->tensors[index].intended_step) && !(signs & 1) &&
           was_filled(w, edge->node, 0);
}

static bool is_intended(const struct gd_watching *w, const struct watch_tensor *tensor,
                        const struct gd_observation *seen)
{
    const struct gd_stats *stats = seen->stats;
    struct gd_node_info info;
    if (stats->nan || !(stats->pos_inf || stats->neg_inf) || tensor->node == GD_NO_NODE ||
        !gd_graph_node(w->session->graph, tensor->node, &info) || info.kind == GD_NODE_GRADIENT ||
        info.kind == GD_NODE_WEIGHT) {
        return false;
    }
    if (gd_node_attr(&info, "fill")) {
        return true;
    }
    if (comes_from_outside(&info)) {
        return looks_like_mask(stats) || (!stats->pos_inf && strcasecmp(info.type, "Buffer") == 0);
    }
    if (stats->count < 2) { /* a loss: the mask did harm */
        return false;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        if (edge_is_intended(w, &info, &info.inputs[i], signs_of(stats))) {
            return true;
        }
    }
    return false;
}

bool watching_stays_intended(const struct gd_watching *w, const struct watch_tensor *tensor)
{
    struct gd_node_info info;
    return gd_graph_node(w->session->graph, tensor->node, &info) && !comes_from_outside(&info);
}

bool watching_is_intended(struct gd_watching *w, struct watch_tensor *tensor,
                          const struct watch_part *part, const struct gd_observation *seen)
{
    if (!is_intended(w, tensor, seen)) {
        return false;
    }
    for (uint32_t i = 0; i < part->serve_count; i++) {
        const struct watch_cover *cover = &w->covers[tensor->set->cover[part->serve[i].which]];
        if (!cover->watch || !cover->wants.nonfinite) {
            continue;
        }
        cover->watch->intended += tensor->intended_step != seen->step;
        cover->watch->intended_tensors += tensor->intended_step == 0;
    }
    tensor->intended_step = seen->step;
    tensor->intended_signs = signs_of(seen->stats);
    return true;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* The values of a walk: the list, what is known about each, and which is the first bad one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "engine/why/why_impl.h"

#define NAME_SHOWN 120 /* the end of a longer one */

static uint64_t hash_of(gd_node_id node, uint32_t slot, int64_t step)
{
    uint64_t h = (uint64_t)node * 0x9e3779b97f4a7c15U;

    h ^= ((uint64_t)slot << 32 | (uint64_t)(step & 0xffffffff)) * 0xc2b2ae3d27d4eb4fU;
    return h ^ h >> 29;
}

static uint32_t find_value(const struct why_walk *walk, gd_node_id node, uint32_t slot,
                           int64_t step)
{
    uint64_t hash = hash_of(node, slot, step);
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&walk->index, hash, &at, &number);) {
        const struct why_tensor *tensor = &walk->tensors[number];

        if (tensor->node == node && tensor->slot == slot && tensor->step == step) {
            return number;
        }
    }
    return WHY_NONE;
}

/* Makes room for one more value, and indexes it; false if out of memory. */
static bool reserve_value(struct why_walk *walk, uint64_t hash)
{
    return gd_grow_list(&walk->tensors, walk->count, &walk->cap, sizeof(*walk->tensors)) &&
           gd_hash_index_add(&walk->index, hash, (uint32_t)walk->count, NULL) == GD_OK;
}

static bool has_data_input(const struct gd_node_info *info)
{
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (!info->inputs[i].control && info->inputs[i].node != GD_NO_NODE) {
            return true;
        }
    }
    return false;
}

void why_add(struct why_walk *walk, gd_node_id node, uint32_t slot, int64_t step, uint32_t parent)
{
    struct gd_node_info info;

    if (!gd_graph_node(walk->session->graph, node, &info) ||
        find_value(walk, node, slot, step) != WHY_NONE) {
        return;
    }
    if (walk->count >= WHY_MAX_TENSORS || !reserve_value(walk, hash_of(node, slot, step))) {
        walk->cut = true;
        return;
    }
    bool leaf = !has_data_input(&info);
    walk->tensors[walk->count] = (struct why_tensor){
        .node = node,
        .slot = slot,
        .step = step,
        .parent = parent,
        .writer = WHY_NONE,
        .verdict = GD_WHY_UNKNOWN,
        .value_step = -1,
        .is_leaf = leaf,
        .is_constant = info.kind == GD_NODE_CONSTANT,
        .order = leaf ? 0 : info.order,
    };
    if (parent != WHY_NONE && walk->tensors[parent].is_leaf) {
        walk->tensors[parent].writer = (uint32_t)walk->count;
    }
    walk->count++;
}

uint32_t why_also(struct why_walk *walk, gd_node_id node, uint32_t slot)
{
    uint32_t number = find_value(walk, node, slot, walk->step);

    if (number == WHY_NONE) {
        why_add(walk, node, slot, walk->step, WHY_NONE);
        number = find_value(walk, node, slot, walk->step);
    }
    return number == WHY_NONE ? 0 : number;
}

void why_also_factor(struct why_walk *walk, gd_node_id node, uint32_t slot)
{
    size_t count = walk->count;
    uint32_t number = why_also(walk, node, slot);

    if (walk->count > count) {
        walk->tensors[number].is_factor = true;
    }
}

bool why_input_step(const struct why_walk *walk, const struct gd_node_info *info, uint32_t i,
                    int64_t *step)
{
    const struct gd_graph *graph = walk->session->graph;
    const struct gd_edge *input = &info->inputs[i];
    struct gd_node_info from;

    if (input->control || why_only_updates(info, i) || !gd_graph_node(graph, input->node, &from)) {
        return false;
    }
    /* A step reads of a parameter what the previous step left there. */
    *step -= !has_data_input(&from) && from.kind != GD_NODE_CONSTANT &&
             why_writer(graph, input->node) != GD_NO_NODE;
    return true;
}

const struct why_tensor *why_input(const struct why_walk *walk, const struct why_tensor *tensor,
                                   uint32_t i)
{
    struct gd_node_info info;
    int64_t step = tensor->step;

    if (!gd_graph_node(walk->session->graph, tensor->node, &info) || i >= info.input_count ||
        !why_input_step(walk, &info, i, &step)) {
        return NULL;
    }
    uint32_t number = find_value(walk, info.inputs[i].node, info.inputs[i].slot, step);
    return number == WHY_NONE ? NULL : &walk->tensors[number];
}

void why_move(struct why_walk *walk, int64_t step)
{
    struct why_tensor *root = &walk->tensors[0];

    gd_hash_index_deinit(&walk->index);
    root->step = step;
    gd_hash_index_add(&walk->index, hash_of(root->node, root->slot, step), 0, NULL);
}

/* ---- what is known about a value ------------------------------------------------------------- */

bool why_is_bad(enum gd_bad bad, const struct gd_stats *stats)
{
    switch (bad) {
    case GD_BAD_NONFINITE:
    case GD_BAD_LARGE: /* otherwise compared with its past: see is_large */
        return stats->nan + stats->pos_inf + stats->neg_inf > 0;
    case GD_BAD_ZERO: return stats->count > 0 && stats->zero == stats->count;
    default: return false; /* small: compared with those on its way, see why_fading */
    }
}

double why_max_abs(const struct gd_stats *stats)
{
    bool any = stats->count > stats->nan + stats->pos_inf + stats->neg_inf;

    return any ? fmax(fabs(stats->min), fabs(stats->max)) : 0;
}

const char *why_name(const struct why_walk *walk, const struct why_tensor *tensor)
{
    const char *name = gd_graph_name(walk->session->graph, tensor->node);
    size_t len = strlen(name);

    if (len > NAME_SHOWN) {
        const char *slash = strchr(name + len - NAME_SHOWN, '/');
        return slash ? slash + 1 : name + len - NAME_SHOWN;
    }
    return name;
}

const char *why_bad_word(enum gd_bad bad)
{
    return bad == GD_BAD_NONFINITE ? "NaN or Inf"
           : bad == GD_BAD_ZERO    ? "all zero"
           : bad == GD_BAD_SMALL   ? "small"
           : bad == GD_BAD_RAISED  ? "not computed"
                                   : "large";
}

bool why_is_buffer(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info;

    return gd_graph_node(walk->session->graph, tensor->node, &info) &&
           why_type_in(info.type, "Buffer");
}

bool why_is_behind(const struct why_walk *walk, const struct why_tensor *tensor)
{
    return tensor->parent != WHY_NONE && walk->tensors[tensor->parent].verdict == GD_WHY_UNKNOWN;
}

uint32_t why_unknown_inputs(const struct why_walk *walk, const struct why_tensor *origin,
                            const struct why_tensor **one)
{
    struct gd_node_info info;
    uint32_t unknown = 0;

    *one = NULL;
    if (origin->is_leaf || !gd_graph_node(walk->session->graph, origin->node, &info)) {
        return 0;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        const struct why_tensor *input = why_input(walk, origin, i);
        if (input && input->verdict == GD_WHY_UNKNOWN) {
            *one = *one ? *one : input;
            unknown++;
        }
    }
    return unknown;
}

/* ---- notes ----------------------------------------------------------------------------------- */

const char *why_share(uint64_t part, uint64_t whole, char *out, size_t size)
{
    if (part == whole && whole > 1) {
        snprintf(out, size, "all %llu", (unsigned long long)whole);
    } else {
        snprintf(out, size, "%llu of %llu", (unsigned long long)part, (unsigned long long)whole);
    }
    return out;
}

static void note_elements(const struct gd_stats *s, struct gd_buf *text)
{
    const struct {
        uint64_t count;
        unsigned bit;
        const char *name;
    } bad[] = {{s->nan, GD_UNKNOWN_NAN, "NaN"},
               {s->pos_inf, GD_UNKNOWN_INF, "+Inf"},
               {s->neg_inf, GD_UNKNOWN_INF, "-Inf"}};
    const char *gap = "";

    if (s->zero == s->count) {
        gd_buf_printf(text, "all %llu zero", (unsigned long long)s->count);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        if (bad[i].count > 0) {
            gd_buf_printf(text, "%s%s%llu %s", gap, s->unknown & bad[i].bit ? "at least " : "",
                          (unsigned long long)bad[i].count, bad[i].name);
            gap = ", ";
        }
    }
    if (*gap) {
        gd_buf_printf(text, " of %llu", (unsigned long long)s->count);
    }
    if (s->positive + s->negative + s->zero > 0) {
        gd_buf_printf(text, "%smin %.4g, max %.4g", *gap ? "; " : "", s->min, s->max);
    }
    if (s->zero > 0) {
        gd_buf_printf(text, ", %llu zero%s", (unsigned long long)s->zero, s->zero == 1 ? "" : "s");
    }
}

void why_note(const struct why_walk *walk, struct why_tensor *tensor)
{
    const struct gd_stats *s = &tensor->stats;
    struct gd_buf text = GD_BUF_INIT(512);

    if (!tensor->has_stats) {
        snprintf(tensor->note, sizeof(tensor->note), "%s",
                 tensor->implied ? "writes it; has no value itself" : "no value");
        return;
    }
    if (s->count == 0) {
        gd_buf_puts(&text, "empty");
    } else if (s->count == 1 && s->nan + s->pos_inf + s->neg_inf == 0) {
        gd_buf_printf(&text, "%.6g", s->max);
    } else {
        note_elements(s, &text);
    }
    if (tensor->too_new) {
        gd_buf_puts(&text, ", after the update");
    }
    int64_t usual = tensor == walk->tensors ? walk->step : walk->tensors[0].step;
    if (!tensor->is_leaf && tensor->value_step >= 0 && tensor->value_step != usual) {
        gd_buf_printf(&text, ", of step %lld", (long long)tensor->value_step);
    }
    snprintf(tensor->note, sizeof(tensor->note), "%s", gd_buf_text(&text));
    gd_buf_deinit(&text);
}

/* ---- the first bad value --------------------------------------------------------------------- */

static bool has_bad_input(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info;

    if (tensor->is_leaf) {
        return tensor->writer != WHY_NONE && walk->tensors[tensor->writer].verdict == GD_WHY_BAD;
    }
    if (!gd_graph_node(walk->session->graph, tensor->node, &info)) {
        return false;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        const struct why_tensor *input = why_input(walk, tensor, i);
        if (input && input != tensor && input->verdict == GD_WHY_BAD) {
            return true;
        }
    }
    return false;
}

/* What its reader has just written: a buffer of a normalization, an optimizer's moments. Bad
 * because of another input, if that is bad. */
static bool is_written(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info, reader;

    if (tensor->is_leaf && gd_graph_node(walk->session->graph, tensor->node, &info) &&
        why_type_in(info.type, "State")) {
        return true;
    }
    return tensor->is_leaf && tensor->parent != WHY_NONE && why_is_buffer(walk, tensor) &&
           gd_graph_node(walk->session->graph, walk->tensors[tensor->parent].node, &reader) &&
           why_type_in(reader.type, "batch_norm* instance_norm*");
}

/* Sums of a mask with something finite are masks as well. In execution order, so that an operator's
 * inputs are settled before it. */
static int by_order(const void *a, const void *b)
{
    const struct why_tensor *x = *(const struct why_tensor *const *)a;
    const struct why_tensor *y = *(const struct why_tensor *const *)b;

    return GD_ORDER(x->step, y->step) ?: GD_ORDER(x->order, y->order) ?: GD_ORDER(x, y);
}

const struct why_tensor *why_first_bad(const struct why_walk *walk)
{
    const struct why_tensor *best = NULL, *written = NULL;

    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];
        const struct why_tensor **first = is_written(walk, tensor) ? &written : &best;

        if (tensor->verdict == GD_WHY_BAD && (!*first || by_order(&tensor, first) < 0) &&
            !has_bad_input(walk, tensor)) {
            *first = tensor;
        }
    }
    return best ? best : written;
}

static bool adds_mask(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info;
    bool mask = false;

    if (!tensor->has_stats || tensor->stats.nan > 0 || tensor->stats.pos_inf > 0 ||
        !gd_graph_node(walk->session->graph, tensor->node, &info) ||
        !why_type_in(info.type, "Add AddN AddV2 TensorAdd BiasAdd Sub Reshape Cast Transpose "
                                "ExpandDims BroadcastTo Concat* Slice StridedSlice")) {
        return false;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        const struct why_tensor *input = why_input(walk, tensor, i);
        if (input && input->verdict == GD_WHY_BAD) {
            return false;
        }
        mask = mask || (input && input->is_mask);
    }
    return mask;
}

void why_settle_masks(struct why_walk *walk)
{
    struct why_tensor **sorted = malloc((walk->count + 1) * sizeof(struct why_tensor *));

    if (!sorted) {
        return;
    }
    for (size_t i = 0; i < walk->count; i++) {
        sorted[i] = &walk->tensors[i];
    }
    qsort(sorted, walk->count, sizeof(struct why_tensor *), by_order);
    for (size_t i = 0; i < walk->count; i++) {
        if (sorted[i]->verdict == GD_WHY_BAD && adds_mask(walk, sorted[i])) {
            sorted[i]->is_mask = true;
            sorted[i]->verdict = GD_WHY_GOOD;
        }
    }
    free(sorted);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/part.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/graph_impl.h"

/* Scopes of the root whose names say what they hold. */
static const struct {
    const char *name;
    enum gd_part part;
} named[] = {
    {"backward", GD_PART_BACKWARD},
    {"Gradients", GD_PART_BACKWARD},
    {"optimizer", GD_PART_OPTIMIZER},
    {"clip_grad_norm_", GD_PART_OPTIMIZER},
    {"clip_grad_value_", GD_PART_OPTIMIZER},
    {"clip_grads_with_norm_", GD_PART_OPTIMIZER},
    {"get_total_norm", GD_PART_OPTIMIZER},
    {"unscale_", GD_PART_OPTIMIZER},
    {"data", GD_PART_DATA},
    {"input", GD_PART_DATA},
    {"eval", GD_PART_EVALUATION},
    {"compiled", GD_PART_COMPILED},
};

enum gd_part graph_part_of_name(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        if (strlen(named[i].name) == len && memcmp(named[i].name, name, len) == 0) {
            return named[i].part;
        }
    }
    return GD_PART_OUTSIDE;
}

/* The scope of a subgraph's root that contains a scope; GRAPH_NONE: none does. */
static uint32_t find_top(const struct gd_graph *graph, uint32_t scope)
{
    uint32_t top = GRAPH_NONE;

    while (scope != GRAPH_NONE && graph->scope[scope].len > 0) {
        top = scope;
        scope = graph->scope[scope].parent;
    }
    return top;
}

void graph_link_scope(struct gd_graph *graph, uint32_t id)
{
    struct graph_scope *scope = &graph->scope[id], *above = &graph->scope[scope->parent];
    uint32_t before = above->last_child;

    if (above->len == 0 && scope->parent != 0) { /* a subgraph's root: by part */
        uint32_t *last = graph->subgraph[above->subgraph].last_of_part;
        int part = (int)scope->part;
        while (part >= 0 && last[part] == GRAPH_NONE) {
            part--;
        }
        before = part >= 0 ? last[part] : GRAPH_NONE;
        last[scope->part] = id;
    }
    scope->previous = before;
    scope->next = before == GRAPH_NONE ? above->first_child : graph->scope[before].next;
    if (before == GRAPH_NONE) {
        above->first_child = id;
    } else {
        graph->scope[before].next = id;
    }
    if (scope->next == GRAPH_NONE) {
        above->last_child = id;
    } else {
        graph->scope[scope->next].previous = id;
    }
}

/* Takes a child of a subgraph's root out of the list of children. */
static void unlink_top(struct gd_graph *graph, uint32_t id)
{
    struct graph_scope *scope = &graph->scope[id], *above = &graph->scope[scope->parent];
    uint32_t *last = &graph->subgraph[above->subgraph].last_of_part[scope->part];
    uint32_t before = scope->previous, after = scope->next;

    if (*last == id) {
        *last =
            before != GRAPH_NONE && graph->scope[before].part == scope->part ? before : GRAPH_NONE;
    }
    *(before == GRAPH_NONE ? &above->first_child : &graph->scope[before].next) = after;
    *(after == GRAPH_NONE ? &above->last_child : &graph->scope[after].previous) = before;
}

void graph_holds_weight(struct gd_graph *graph, uint32_t scope)
{
    uint32_t top = find_top(graph, scope);

    if (top != GRAPH_NONE && graph->scope[top].part == GD_PART_OUTSIDE) {
        unlink_top(graph, top);
        graph->scope[top].part = GD_PART_MODEL;
        graph_link_scope(graph, top);
    }
}

/* MindSpore has the optimizer's state in the root, and its operators among the model's. */
static bool is_optimizers(const char *name, size_t len)
{
    static const char *const first[] = {"moments.", "moment1.", "moment2.", "accum."};

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        size_t n = strlen(first[i]);
        if (len >= n && memcmp(name, first[i], n) == 0) {
            return true;
        }
    }
    return memmem(name, len, "/optimizer-", strlen("/optimizer-")) != NULL;
}

enum gd_part gd_graph_part_of_scope(const struct gd_graph *graph, gd_scope_id scope)
{
    if (scope >= graph->scope_count) {
        return GD_PART_COMPILED;
    }
    uint32_t top = find_top(graph, scope);
    enum gd_part part = top == GRAPH_NONE ? GD_PART_OUTSIDE : (enum gd_part)graph->scope[top].part;
    bool optimizers =
        part <= GD_PART_OUTSIDE && is_optimizers(graph->scope[scope].name, graph->scope[scope].len);
    return optimizers ? GD_PART_OPTIMIZER : part;
}

enum gd_part gd_graph_part(const struct gd_graph *graph, gd_node_id node)
{
    const struct graph_node *rec = graph_live(graph, node);

    if (!rec || rec->kind == GD_NODE_COMPILED) {
        return GD_PART_COMPILED;
    }
    enum gd_part part = gd_graph_part_of_scope(graph, rec->scope);
    if (part > GD_PART_OUTSIDE) {
        return part;
    }
    if (is_optimizers(rec->name, rec->name_len)) {
        return GD_PART_OPTIMIZER;
    }
    switch (rec->kind) {
    case GD_NODE_WEIGHT: return GD_PART_MODEL;
    case GD_NODE_GRADIENT: return GD_PART_GRADIENT;
    default: return strcmp(graph->type[rec->type].name, "Gradient") == 0 ? GD_PART_GRADIENT : part;
    }
}

static int read_micro_batch(const char *text)
{
    long number = text ? strtol(text, NULL, 10) : 0;

    return number >= 1 && number <= INT_MAX ? (int)number : 0;
}

int gd_node_micro_batch(const struct gd_node_info *info)
{
    return read_micro_batch(gd_node_attr(info, GD_MICRO_BATCH));
}

void graph_note_micro_batch(struct gd_graph *graph, const struct gd_node_desc *desc)
{
    for (uint32_t i = 0; i < desc->attr_count; i++) {
        if (strcmp(desc->attrs[i].name, GD_MICRO_BATCH) == 0) {
            int number = read_micro_batch(desc->attrs[i].value);
            graph->micro_batches = number > graph->micro_batches ? number : graph->micro_batches;
        }
    }
}

int gd_graph_micro_batches(const struct gd_graph *graph)
{
    return graph->micro_batches;
}

/* As lists are sorted. MindSpore's graphs have nothing but the training, in the order in which it
 * runs. */
static enum gd_part find_part_in_lists(const struct gd_graph *graph, gd_node_id node)
{
    const struct graph_node *rec = graph_live(graph, node);
    enum gd_part part = gd_graph_part(graph, node);
    bool mindspores = rec && part != GD_PART_COMPILED &&
                      (is_optimizers(rec->name, rec->name_len) ||
                       (rec->name_len > strlen("Gradients/") &&
                        memcmp(rec->name, "Gradients/", strlen("Gradients/")) == 0));

    return mindspores ? GD_PART_MODEL : part;
}

int gd_graph_sort_by_part(const struct gd_graph *graph, gd_node_id *nodes, size_t count,
                          struct gd_err *err)
{
    size_t place[GD_PART_COUNT + 1] = {0};

    if (count == 0) {
        return GD_OK;
    }
    gd_node_id *sorted = malloc(count * sizeof(*sorted));
    unsigned char *part = malloc(count);

    if (!sorted || !part) {
        free(sorted);
        free(part);
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        part[i] = (unsigned char)find_part_in_lists(graph, nodes[i]);
        place[part[i] + 1]++;
    }
    for (int i = 1; i <= GD_PART_COUNT; i++) {
        place[i] += place[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        sorted[place[part[i]]++] = nodes[i];
    }
    memcpy(nodes, sorted, count * sizeof(*nodes));
    free(sorted);
    free(part);
    return GD_OK;
}

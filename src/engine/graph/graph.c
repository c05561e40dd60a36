// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and breaking --------------------------------------------------------------------- */

int gd_graph_create(size_t max_bytes, struct gd_graph **ret, struct gd_err *err)
{
    struct gd_graph *graph = calloc(1, sizeof(*graph));

    if (!graph) {
        return gd_fail_nomem(err);
    }
    graph->max = max_bytes;
    graph->memory = sizeof(*graph);
    /* The address is secret enough to keep a peer from choosing names that collide. */
    graph->seed = ((uint64_t)(uintptr_t)graph >> 4) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    graph->current = GRAPH_NONE;
    graph->last_scope = 0;
    gd_arena_init(&graph->frames, 0);
    graph->lazy = calloc(1, sizeof(*graph->lazy));
    struct graph_scope root = {.qualified = "", .name = "", .subgraph = GRAPH_NONE};
    int rc = graph->lazy ? graph_add_scope(graph, GRAPH_NONE, &root, err) : gd_fail_nomem(err);
    if (rc != GD_OK) {
        gd_graph_destroy(graph);
        return rc;
    }
    *ret = graph;
    return GD_OK;
}

void gd_graph_destroy(struct gd_graph *graph)
{
    if (!graph) {
        return;
    }
    for (uint32_t i = 0; i < graph->name_chunk_count; i++) {
        free(graph->name_chunk[i].bytes);
    }
    graph_pool_clear(graph, &graph->data);
    graph_pool_clear(graph, &graph->text);
    graph_pool_clear(graph, &graph->overlay);
    gd_arena_deinit(&graph->frames);
    if (graph->lazy) {
        graph_lazy_clear(graph);
        free(graph->lazy);
    }
    free(graph->name_chunk);
    free(graph->node);
    free(graph->names.slot);
    free(graph->wire_names.slot);
    free(graph->subgraph);
    free(graph->scope);
    free(graph->alias);
    free(graph->scopes.slot);
    free(graph->type);
    free(graph->types.slot);
    free(graph->shape);
    free(graph->shapes.slot);
    free(graph->word);
    free(graph->words.slot);
    free(graph->stack);
    free(graph->stacks.slot);
    free(graph->run);
    free(graph->run_block);
    free(graph->pending);
    free(graph);
}

/* ---- reading --------------------------------------------------------------------------------- */

void gd_graph_counts(const struct gd_graph *graph, struct gd_graph_counts *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->nodes = graph->live_count;
    /* no one named the roots */
    ret->scopes = graph->scope_count - 1 - graph->subgraph_count;
    ret->subgraphs = graph->subgraph_count;
    ret->edges = graph->edge_count;
    memcpy(ret->by_kind, graph->by_kind, sizeof(ret->by_kind));
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        ret->missing_inputs += graph->subgraph[i].missing;
    }
    ret->memory = graph->memory + graph->frames.total + graph->lazy->memory;
}

uint32_t gd_graph_node_limit(const struct gd_graph *graph)
{
    return graph->node_count;
}

gd_scope_id gd_graph_scope_limit(const struct gd_graph *graph)
{
    return graph->scope_count;
}

uint64_t gd_graph_changes(const struct gd_graph *graph)
{
    return graph->changes;
}

bool gd_graph_node(const struct gd_graph *graph, gd_node_id node, struct gd_node_info *ret)
{
    const struct graph_node *rec = graph_live(graph, node);

    if (!rec) {
        return false;
    }
    *ret = (struct gd_node_info){
        .name = graph_shown_name(rec),
        .own_name = rec->name,
        .wire_name = graph_wire_name(rec),
        .type = graph->type[rec->type].name,
        .kind = (enum gd_node_kind)rec->kind,
        .subgraph = rec->subgraph,
        .scope = graph->live_subgraphs < 2 && graph->scope[rec->scope].len == 0 ? 0 : rec->scope,
        .order = rec->order,
        .inputs = rec->inputs,
        .input_count = rec->input_count,
        .output_count = rec->output_count,
        .input_slots = rec->extra ? rec->extra->input_slots : 0,
        .attrs = rec->extra ? rec->extra->attrs : NULL,
        .attr_count = rec->extra ? rec->extra->attr_count : 0,
    };
    return true;
}

const char *gd_node_attr(const struct gd_node_info *info, const char *name)
{
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (strcmp(info->attrs[i].name, name) == 0) {
            return info->attrs[i].value;
        }
    }
    return NULL;
}

void gd_graph_slot_name(const struct gd_graph *graph, gd_node_id node, uint32_t slot, char ret[16])
{
    const struct graph_node *rec = graph_live(graph, node);
    uint32_t inputs = rec && rec->extra ? rec->extra->input_slots : 0;
    uint32_t first = inputs ? rec->output_count - inputs : UINT32_MAX;

    if (slot >= first) {
        snprintf(ret, 16, "in%u", slot - first);
    } else {
        snprintf(ret, 16, "%u", slot);
    }
}

bool gd_graph_slot_find(const struct gd_graph *graph, gd_node_id node, const char *name,
                        uint32_t *ret)
{
    const struct graph_node *rec = graph_live(graph, node);
    uint32_t inputs = rec && rec->extra ? rec->extra->input_slots : 0;
    bool input = strncmp(name, "in", 2) == 0;
    char *end = NULL;

    name += input ? 2 : 0;
    if (!rec || *name < '0' || *name > '9') {
        return false;
    }
    unsigned long slot = strtoul(name, &end, 10);
    if (*end || slot >= (input ? inputs : rec->output_count)) {
        return false;
    }
    *ret = (uint32_t)slot + (input ? rec->output_count - inputs : 0);
    return true;
}

const char *gd_graph_name(const struct gd_graph *graph, gd_node_id node)
{
    const struct graph_node *rec = graph_live(graph, node);

    return rec ? graph_shown_name(rec) : "";
}

bool gd_graph_is_compiled(const struct gd_graph *graph, gd_node_id node, struct gd_err *err)
{
    struct gd_node_info info;

    if (!gd_graph_node(graph, node, &info) || info.kind != GD_NODE_COMPILED) {
        return false;
    }
    const char *counterpart = gd_node_attr(&info, GD_COUNTERPART);
    gd_fail(err, GD_ENODATA, "%.300s is inside compiled code and has no values%s%.300s", info.name,
            counterpart ? "; its counterpart: " : "", counterpart ? counterpart : "");
    return true;
}

bool gd_graph_output(const struct gd_graph *graph, gd_node_id node, uint32_t slot,
                     struct gd_output *ret)
{
    const struct graph_node *rec = graph_live(graph, node);
    const struct graph_shape *shape;

    if (!rec || slot >= rec->output_count) {
        return false;
    }
    shape = graph->shape[rec->output_count == 1 ? rec->output.one : rec->output.many[slot]];
    memset(ret, 0, sizeof(*ret));
    ret->dtype = (enum gd_dtype)shape->dtype;
    ret->shape.rank = shape->rank;
    memcpy(ret->shape.dim, shape->dim, shape->rank * sizeof(shape->dim[0]));
    return true;
}

const char *gd_graph_subgraph_name(const struct gd_graph *graph, uint32_t subgraph)
{
    return subgraph < graph->subgraph_count ? graph->subgraph[subgraph].name : "";
}

bool gd_graph_has_subgraph(const struct gd_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        if (graph->subgraph[i].live > 0 && strcmp(graph->subgraph[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool gd_graph_is_qualified(const struct gd_graph *graph)
{
    return graph->live_subgraphs > 1;
}

/* The root of the only subgraph with nodes, or of any if none has nodes. */
static const struct graph_scope *only_root(const struct gd_graph *graph)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        if (graph->subgraph[i].live || i + 1 == graph->subgraph_count) {
            return &graph->scope[graph->subgraph[i].scope];
        }
    }
    return &graph->scope[0];
}

/* The first visible scope from `id` on: subgraphs without nodes are hidden. */
static gd_scope_id seen_from(const struct gd_graph *graph, gd_scope_id id)
{
    while (id != GRAPH_NONE && graph->scope[id].len == 0 && !graph->scope[id].total_count) {
        id = graph->scope[id].next;
    }
    return id;
}

static const struct graph_scope no_scope = {
    .qualified = "",
    .name = "",
    .first_child = GRAPH_NONE,
    .next = GRAPH_NONE,
    .first_node = GRAPH_NONE,
};

/* MindSpore's scopes are named NAME-CLASS. */
static const char *class_of(const struct graph_scope *scope)
{
    const char *dash = strrchr(scope->name + scope->leaf, '-');

    return scope->class ? scope->class : dash ? dash + 1 : "";
}

bool gd_graph_scope(const struct gd_graph *graph, gd_scope_id scope, struct gd_scope_info *ret)
{
    bool qualified = gd_graph_is_qualified(graph);
    gd_scope_id parent;

    if (scope >= graph->scope_count) {
        return false;
    }
    const struct graph_scope *rec = &graph->scope[scope];
    parent = rec->parent;
    if (!qualified && scope == 0) {
        rec = only_root(graph);
        parent = GD_NO_SCOPE;
    } else if (!qualified && rec->len == 0) {
        rec = &no_scope; /* it takes the place of the root */
    } else if (!qualified && graph->scope[parent].len == 0) {
        parent = 0;
    }
    *ret = (struct gd_scope_info){
        .name = qualified ? rec->qualified : rec->name,
        .leaf = rec->len || !qualified ? rec->name + rec->leaf : rec->qualified,
        .class = class_of(rec),
        .parent = parent,
        .first_child = seen_from(graph, rec->first_child),
        .next = scope == 0 ? GD_NO_SCOPE : seen_from(graph, rec->next),
        .first_node = rec->first_node,
        .node_count = rec->node_count,
        .total_count = rec->total_count,
    };
    return true;
}

gd_node_id gd_graph_next_in_scope(const struct gd_graph *graph, gd_node_id node)
{
    return node < graph->node_count ? graph->node[node].next_in_scope : GD_NO_NODE;
}

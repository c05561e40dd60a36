// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* ---- the consumers' index -------------------------------------------------------------------- */

/* Whether the edge from `producer` to `consumer` is in the index: see GD_NODE_COMPILED. */
static bool is_consumer(const struct gd_graph *graph, const struct graph_node *consumer,
                        gd_node_id producer)
{
    return graph_live(graph, producer) &&
           (consumer->kind != GD_NODE_COMPILED || graph->node[producer].kind == GD_NODE_COMPILED);
}

static void count_consumers(struct gd_graph *graph, uint64_t *total)
{
    *total = 0;
    memset(graph->run, 0, (size_t)graph->node_count * sizeof(*graph->run));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->node[i];

        for (uint32_t k = 0; k < (node->gone ? 0 : node->input_count); k++) {
            if (is_consumer(graph, node, node->inputs[k].node)) {
                graph->run[node->inputs[k].node].cap++;
                ++*total;
            }
        }
    }
}

static void fill_consumers(struct gd_graph *graph, struct gd_edge *block)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        graph->run[i].edges = block;
        block += graph->run[i].cap;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->node[i];

        for (uint32_t k = 0; k < (node->gone ? 0 : node->input_count); k++) {
            const struct gd_edge *input = &node->inputs[k];

            if (is_consumer(graph, node, input->node)) {
                struct graph_run *run = &graph->run[input->node];

                run->edges[run->count++] =
                    (struct gd_edge){.node = i, .slot = input->slot, .control = input->control};
            }
        }
    }
}

static int rebuild_consumers(struct gd_graph *graph, struct gd_err *err)
{
    struct gd_edge *block = NULL;
    uint64_t total;

    /* The old runs end here: on failure, leave empty ones, not dangling ones. */
    graph_pool_clear(graph, &graph->overlay);
    graph_give(graph, graph->run_block_bytes);
    free(graph->run_block);
    graph->run_block = NULL;
    graph->run_block_bytes = 0;
    graph->run_count = 0;
    graph->stale = true;
    count_consumers(graph, &total);
    size_t bytes = (size_t)total * sizeof(*block);
    if (total) {
        block = graph_malloc(graph, bytes, err);
        if (!block) {
            return err->code;
        }
    }
    graph->run_block = block;
    graph->run_block_bytes = bytes;
    fill_consumers(graph, block);
    graph->run_count = graph->node_count;
    graph->indexed_edges = total;
    graph->stale = false;
    return GD_OK;
}

static int append_consumer(struct gd_graph *graph, gd_node_id producer, struct gd_edge edge,
                           struct gd_err *err)
{
    struct graph_run *run = &graph->run[producer];

    if (run->count == run->cap) {
        uint32_t cap = run->cap < 2 ? 4 : run->cap * 2;

        if (cap < run->cap) {
            return gd_fail(err, GD_ELIMIT, "a node of the graph has too many consumers");
        }
        struct gd_edge *edges =
            graph_pool_alloc(graph, &graph->overlay, (size_t)cap * sizeof(*edges), 8, err);
        if (!edges) {
            return err->code;
        }
        if (run->count) {
            memcpy(edges, run->edges, run->count * sizeof(*edges));
        }
        run->edges = edges;
        run->cap = cap;
    }
    run->edges[run->count++] = edge;
    graph->indexed_edges++;
    return GD_OK;
}

static int append_inputs(struct gd_graph *graph, gd_node_id node, uint32_t first,
                         struct gd_err *err)
{
    const struct graph_node *rec = &graph->node[node];

    for (uint32_t k = first; k < (rec->gone ? 0 : rec->input_count); k++) {
        struct gd_edge edge = rec->inputs[k];
        gd_node_id producer = edge.node;

        if (!is_consumer(graph, rec, producer)) {
            continue;
        }
        edge.node = node;
        int rc = append_consumer(graph, producer, edge, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

static int append_new(struct gd_graph *graph, struct gd_err *err)
{
    int rc = GD_OK;

    memset(graph->run + graph->run_count, 0,
           (size_t)(graph->node_count - graph->run_count) * sizeof(*graph->run));
    graph->run_count = graph->node_count;
    graph->stale = true; /* until it is complete: half an index is rebuilt at the next commit */
    for (uint32_t i = 0; rc == GD_OK && i < graph->pending_count; i++) {
        rc = append_inputs(graph, graph->pending[i].node, graph->pending[i].first, err);
    }
    for (uint32_t i = graph->committed; rc == GD_OK && i < graph->node_count; i++) {
        rc = append_inputs(graph, i, 0, err);
    }
    graph->stale = rc != GD_OK;
    return rc;
}

static uint64_t new_edges(const struct gd_graph *graph)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < graph->pending_count; i++) {
        const struct graph_node *node = &graph->node[graph->pending[i].node];

        count += node->input_count > graph->pending[i].first
                     ? node->input_count - graph->pending[i].first
                     : 0;
    }
    for (uint32_t i = graph->committed; i < graph->node_count; i++) {
        count += graph->node[i].input_count;
    }
    return count;
}

int gd_graph_commit(struct gd_graph *graph, struct gd_err *err)
{
    struct gd_err scratch;

    err = err ? err : &scratch;
    if (graph->node_count == 0) {
        return GD_OK;
    }
    int rc = graph_grow(graph, &graph->run, &graph->run_cap, graph->node_count, sizeof(*graph->run),
                        err);
    if (rc != GD_OK) {
        return rc;
    }
    /* Growth by a quarter justifies a rebuild; less is appended. */
    if (graph->stale || new_edges(graph) > graph->indexed_edges / 4) {
        rc = rebuild_consumers(graph, err);
    } else {
        rc = append_new(graph, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < graph->pending_count; i++) {
        graph->node[graph->pending[i].node].pending = 0;
    }
    graph->pending_count = 0;
    if (graph->committed != graph->node_count) {
        graph->committed = graph->node_count;
        graph_lazy_clear(graph);
    }
    return GD_OK;
}

int graph_note_reconnect(struct gd_graph *graph, gd_node_id node, const struct gd_edge *inputs,
                         uint32_t count, struct gd_err *err)
{
    struct graph_node *rec = &graph->node[node];

    if (graph->stale) {
        return GD_OK;
    }
    for (uint32_t i = 0; i < rec->input_count; i++) {
        if (i >= count || inputs[i].node != rec->inputs[i].node ||
            inputs[i].slot != rec->inputs[i].slot || inputs[i].control != rec->inputs[i].control) {
            graph->stale = true;
            return GD_OK;
        }
    }
    if (count == rec->input_count) {
        return GD_OK;
    }
    if (rec->pending) {
        return GD_OK; /* will be indexed from where it once ended */
    }
    int rc = graph_grow(graph, &graph->pending, &graph->pending_cap,
                        (uint64_t)graph->pending_count + 1, sizeof(*graph->pending), err);
    if (rc != GD_OK) {
        return rc;
    }
    rec->pending = 1;
    graph->pending[graph->pending_count++] =
        (struct graph_pending){.node = node, .first = rec->input_count};
    return GD_OK;
}

static void forget_from_run(struct gd_graph *graph, struct graph_run *run)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < run->count; i++) {
        if (!graph->node[run->edges[i].node].gone) {
            run->edges[kept++] = run->edges[i];
        }
    }
    graph->indexed_edges -= run->count - kept;
    run->count = kept;
}

void graph_forget_consumers(struct gd_graph *graph, uint32_t subgraph, uint32_t first, uint32_t end)
{
    unsigned char *seen = calloc((size_t)graph->node_count / 8 + 1, 1);

    if (!seen) {
        graph->run_count = 0; /* no index is better than a wrong one: the next commit rebuilds it */
        graph->stale = true;
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        const struct graph_node *node = &graph->node[i];

        if (node->subgraph != subgraph) {
            continue;
        }
        if (i < graph->run_count) {
            graph->indexed_edges -= graph->run[i].count;
            graph->run[i].count = 0;
        }
        for (uint32_t k = 0; k < node->input_count; k++) {
            gd_node_id producer = node->inputs[k].node;
            unsigned char bit = (unsigned char)(1U << (producer % 8));

            if (producer < graph->run_count && !(seen[producer / 8] & bit)) {
                seen[producer / 8] |= bit;
                forget_from_run(graph, &graph->run[producer]);
            }
        }
    }
    free(seen);
}

uint32_t gd_graph_consumers(const struct gd_graph *graph, gd_node_id node,
                            const struct gd_edge **ret)
{
    if (node >= graph->run_count || graph->run[node].count == 0) {
        *ret = NULL;
        return 0;
    }
    *ret = graph->run[node].edges;
    return graph->run[node].count;
}

/* ---- orders and types, when somebody asks ---------------------------------------------------- */

void graph_lazy_clear(struct gd_graph *graph)
{
    struct graph_lazy *lazy = graph->lazy;

    free(lazy->execution);
    free(lazy->position);
    free(lazy->types);
    *lazy = (struct graph_lazy){0};
}

struct ordered {
    uint32_t order;
    gd_node_id node;
};

static int compare_order(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    return GD_ORDER(x->order, y->order) ?: GD_ORDER(x->node, y->node);
}

/* Nodes whose order is unknown come last: GD_NO_ORDER is the largest number. */
static void sort_execution(const struct gd_graph *graph, gd_node_id *nodes, uint32_t count)
{
    struct ordered *pairs = malloc(((size_t)count + 1) * sizeof(*pairs));

    if (!pairs) {
        return; /* the order in which they were sent is still valid */
    }
    for (uint32_t i = 0; i < count; i++) {
        pairs[i] = (struct ordered){.order = graph->node[nodes[i]].order, .node = nodes[i]};
    }
    qsort(pairs, count, sizeof(*pairs), compare_order);
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = pairs[i].node;
    }
    free(pairs);
}

const gd_node_id *gd_graph_execution(const struct gd_graph *graph, uint32_t *count)
{
    struct graph_lazy *lazy = graph->lazy;
    bool sorted = true;
    uint32_t n = 0;

    *count = 0;
    if (lazy->execution_valid) {
        *count = lazy->execution_count;
        return lazy->execution;
    }
    free(lazy->execution);
    lazy->execution = malloc(((size_t)graph->live_count + 1) * sizeof(*lazy->execution));
    if (!lazy->execution) {
        return NULL;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!graph->node[i].gone && graph->node[i].kind != GD_NODE_COMPILED) {
            sorted = sorted &&
                     (n == 0 || graph->node[lazy->execution[n - 1]].order <= graph->node[i].order);
            lazy->execution[n++] = i;
        }
    }
    if (!sorted) {
        sort_execution(graph, lazy->execution, n);
    }
    lazy->execution_count = n;
    lazy->execution_valid = true;
    lazy->memory += (uint64_t)n * sizeof(*lazy->execution);
    *count = n;
    return lazy->execution;
}

static bool make_positions(const struct gd_graph *graph)
{
    struct graph_lazy *lazy = graph->lazy;
    uint32_t count, next = 0;
    const gd_node_id *node = gd_graph_execution(graph, &count);

    size_t bytes = ((size_t)graph->node_count + 1) * sizeof(uint32_t);
    lazy->position = node ? malloc(bytes) : NULL;
    if (lazy->position) {
        memset(lazy->position, 0xff, bytes); /* GD_NO_ORDER */
    }
    for (uint32_t i = 0; lazy->position && i < count; i++) {
        unsigned kind = graph->node[node[i]].kind;
        bool runs = kind != GD_NODE_WEIGHT && kind != GD_NODE_PARAMETER && kind != GD_NODE_CONSTANT;

        lazy->position[node[i]] = runs ? next++ : GD_NO_ORDER;
    }
    lazy->memory += (uint64_t)graph->node_count * sizeof(uint32_t);
    return lazy->position != NULL;
}

uint32_t gd_graph_order(const struct gd_graph *graph, gd_node_id node)
{
    const struct graph_node *rec = graph_live(graph, node);

    if (!rec) {
        return GD_NO_ORDER;
    }
    if (graph->has_order || (!graph->lazy->position && !make_positions(graph))) {
        return rec->order;
    }
    return graph->lazy->position[node];
}

static int compare_types(const void *a, const void *b)
{
    const struct gd_type_count *x = a, *y = b;

    return GD_ORDER(y->count, x->count) ?: strcmp(x->type, y->type);
}

const struct gd_type_count *gd_graph_types(const struct gd_graph *graph, uint32_t *count)
{
    struct graph_lazy *lazy = graph->lazy;
    uint32_t n = 0;

    *count = 0;
    if (!lazy->types_valid) {
        free(lazy->types);
        lazy->types = malloc(((size_t)graph->type_count + 1) * sizeof(*lazy->types));
        if (!lazy->types) {
            return NULL;
        }
        for (uint32_t i = 0; i < graph->type_count; i++) {
            if (graph->type[i].count) {
                lazy->types[n++] = (struct gd_type_count){.type = graph->type[i].name,
                                                          .count = graph->type[i].count};
            }
        }
        qsort(lazy->types, n, sizeof(*lazy->types), compare_types);
        lazy->type_count = n;
        lazy->types_valid = true;
        lazy->memory += (uint64_t)n * sizeof(*lazy->types);
    }
    *count = lazy->type_count;
    return lazy->types;
}

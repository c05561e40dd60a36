// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <string.h>

/* The length of the scope part of a path: up to the last '/', without slashes at its end. */
static size_t parent_len(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    return len;
}

static uint32_t hash_of(const struct gd_graph *graph, uint32_t subgraph, const char *path,
                        size_t len)
{
    return graph_hash_in(graph_hash(graph, path, len), subgraph);
}

static gd_scope_id lookup_scope(const struct gd_graph *graph, uint32_t subgraph, const char *path,
                                size_t len)
{
    uint32_t hash = hash_of(graph, subgraph, path, len), id, at = 0;

    if (len == 0) {
        return graph->subgraph[subgraph].scope;
    }
    while ((id = graph_table_next(&graph->scopes, hash, &at)) != GRAPH_NONE) {
        const struct graph_scope *scope = &graph->scope[id];

        if (scope->subgraph == subgraph && scope->len == len &&
            memcmp(scope->name, path, len) == 0) {
            return id;
        }
    }
    return GD_NO_SCOPE;
}

/* A subgraph's scope, by its path in it or with the graph's name in front. */
static gd_scope_id find_in(const struct gd_graph *graph, uint32_t subgraph, const char *path,
                           size_t len)
{
    const struct graph_subgraph *sub = &graph->subgraph[subgraph];
    gd_scope_id found = lookup_scope(graph, subgraph, path, len);

    if (found == GD_NO_SCOPE && len == sub->word_len && memcmp(path, sub->word, len) == 0) {
        return sub->scope;
    }
    const char *rest = found == GD_NO_SCOPE ? graph_within(sub, path, &len) : NULL;
    return rest ? lookup_scope(graph, subgraph, rest, len) : found;
}

/* Whether another subgraph has nodes in a scope of that path. */
static bool is_elsewhere(const struct gd_graph *graph, gd_scope_id scope)
{
    const struct graph_scope *rec = &graph->scope[scope];

    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        gd_scope_id other =
            i == rec->subgraph ? GD_NO_SCOPE : lookup_scope(graph, i, rec->name, rec->len);

        if (other != GD_NO_SCOPE && graph->scope[other].total_count) {
            return true;
        }
    }
    return false;
}

gd_scope_id gd_graph_next_scope(const struct gd_graph *graph, const char *path, size_t len,
                                uint32_t *subgraph)
{
    gd_scope_id found = GD_NO_SCOPE;

    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    if (len == 0) {
        return (*subgraph)++ == 0 ? 0 : GD_NO_SCOPE;
    }
    while (found == GD_NO_SCOPE && *subgraph < graph->subgraph_count) {
        found = find_in(graph, (*subgraph)++, path, len);
        if (found != GD_NO_SCOPE && !graph->scope[found].total_count &&
            is_elsewhere(graph, found)) {
            found = GD_NO_SCOPE; /* an emptied one */
        }
    }
    if (found != GD_NO_SCOPE && graph->scope[found].len == 0 && graph->live_subgraphs < 2) {
        found = 0; /* everything */
    }
    return found;
}

gd_scope_id gd_graph_find_scope(const struct gd_graph *graph, const char *path, size_t len)
{
    uint32_t subgraph = 0;
    gd_scope_id found = gd_graph_next_scope(graph, path, len, &subgraph);

    return found != GD_NO_SCOPE && gd_graph_next_scope(graph, path, len, &subgraph) != GD_NO_SCOPE
               ? GD_NO_SCOPE
               : found;
}

int graph_add_scope(struct gd_graph *graph, uint32_t parent, const struct graph_scope *scope,
                    struct gd_err *err)
{
    uint32_t id = graph->scope_count;
    int rc = graph_grow(graph, &graph->scope, &graph->scope_cap, (uint64_t)id + 1,
                        sizeof(*graph->scope), err);

    if (rc != GD_OK) {
        return rc;
    }
    struct graph_scope *added = &graph->scope[id];
    *added = *scope;
    added->parent = parent;
    added->first_child = added->last_child = added->next = added->previous = GRAPH_NONE;
    added->part = graph_part_of_name(scope->name, scope->len);
    added->first_node = added->last_node = GRAPH_NONE;
    graph->scope_count++;
    if (parent != GRAPH_NONE) {
        graph_link_scope(graph, id);
    }
    return GD_OK;
}

int graph_add_root(struct gd_graph *graph, uint32_t subgraph, struct gd_err *err)
{
    struct graph_subgraph *sub = &graph->subgraph[subgraph];
    struct graph_scope scope = {
        .qualified = sub->word, .name = sub->word + sub->word_len, .subgraph = subgraph};

    sub->scope = graph->scope_count;
    return graph_add_scope(graph, 0, &scope, err);
}

/* GRAPH/PATH; *name is what follows the graph's name. */
static const char *scope_text(struct gd_graph *graph, uint32_t subgraph, const char *path,
                              size_t len, const char **name, struct gd_err *err)
{
    const struct graph_subgraph *sub = &graph->subgraph[subgraph];
    char *text = graph_pool_alloc(graph, &graph->text, sub->word_len + len + 2, 1, err);

    if (text) {
        memcpy(text, sub->word, sub->word_len);
        text[sub->word_len] = '/';
        memcpy(text + sub->word_len + 1, path, len);
        text[sub->word_len + 1 + len] = '\0';
        *name = text + sub->word_len + 1;
    }
    return text;
}

static int add_scope(struct gd_graph *graph, const char *path, size_t len, uint32_t parent,
                     uint32_t *ret, struct gd_err *err)
{
    uint32_t id = graph->scope_count, subgraph = graph->scope[parent].subgraph;
    struct graph_scope scope = {.len = (uint32_t)len,
                                .leaf = (uint32_t)len,
                                .subgraph = subgraph,
                                .depth = graph->scope[parent].depth + 1};
    int rc = graph_table_reserve(graph, &graph->scopes, err);

    if (rc != GD_OK) {
        return rc;
    }
    scope.qualified = scope_text(graph, subgraph, path, len, &scope.name, err);
    if (!scope.qualified) {
        return err->code;
    }
    while (scope.leaf > 0 && path[scope.leaf - 1] != '/') {
        scope.leaf--;
    }
    rc = graph_add_scope(graph, parent, &scope, err);
    if (rc == GD_OK) {
        graph_table_insert(&graph->scopes, hash_of(graph, subgraph, path, len), id);
        *ret = id;
    }
    return rc;
}

int graph_intern_scope(struct gd_graph *graph, const char *name, size_t len, uint32_t *ret,
                       struct gd_err *err)
{
    const struct graph_scope *last = &graph->scope[graph->last_scope];
    size_t prefix[GRAPH_MAX_DEPTH];
    size_t path = parent_len(name, len);
    gd_scope_id scope = GD_NO_SCOPE;
    int missing = 0;

    /* Neighbors in a graph usually share their scope. */
    if (graph->last_scope && last->subgraph == graph->current && path == last->len &&
        memcmp(name, last->name, path) == 0) {
        *ret = graph->last_scope;
        return GD_OK;
    }
    while (scope == GD_NO_SCOPE) {
        scope = lookup_scope(graph, graph->current, name, path);
        if (scope == GD_NO_SCOPE) {
            /* A path that is too deep loses its lowest levels: the ring keeps the highest ones. */
            prefix[missing++ % GRAPH_MAX_DEPTH] = path;
            path = parent_len(name, path);
        }
    }
    for (int left = missing; left > 0 && missing - left < GRAPH_MAX_DEPTH; left--) {
        if (graph->scope[scope].depth >= GRAPH_MAX_DEPTH) {
            break;
        }
        int rc = add_scope(graph, name, prefix[(left - 1) % GRAPH_MAX_DEPTH], scope, &scope, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    graph->last_scope = scope;
    *ret = scope;
    return GD_OK;
}

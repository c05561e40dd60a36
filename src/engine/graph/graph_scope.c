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

static gd_scope_id lookup(const struct gd_graph *graph, const char *path, size_t len, uint32_t hash)
{
    const struct graph_table *table = &graph->scopes;

    if (len == 0) {
        return 0;
    }
    for (uint32_t i = hash & table->mask; table->slot && table->slot[i].id != GRAPH_NONE;
         i = (i + 1) & table->mask) {
        const struct graph_scope *scope;

        if (table->slot[i].hash != hash) {
            continue;
        }
        scope = &graph->scope[table->slot[i].id];
        if (scope->len == len && memcmp(scope->name, path, len) == 0) {
            return table->slot[i].id;
        }
    }
    return GD_NO_SCOPE;
}

gd_scope_id gd_graph_find_scope(const struct gd_graph *graph, const char *path, size_t len)
{
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    return lookup(graph, path, len, (uint32_t)graph_hash(graph, path, len));
}

static int add_scope(struct gd_graph *graph, const char *path, size_t len, uint32_t parent,
                     uint32_t *ret, struct gd_err *err)
{
    uint32_t id = graph->scope_count;
    struct graph_scope *scope;
    const char *name;
    size_t leaf = len;
    int rc = graph_table_reserve(graph, &graph->scopes, err);

    if (!rc) {
        rc = graph_grow(graph, &graph->scope, &graph->scope_cap, (uint64_t)id + 1, sizeof(*scope),
                        err);
    }
    if (rc) {
        return rc;
    }
    name = graph_text(graph, path, len, err);
    if (!name) {
        return err->code;
    }
    while (leaf > 0 && path[leaf - 1] != '/') {
        leaf--;
    }
    graph->scope[id] = (struct graph_scope){
        .name = name,
        .len = (uint32_t)len,
        .leaf = (uint32_t)leaf,
        .depth = graph->scope[parent].depth + 1,
        .parent = parent,
        .first_child = GRAPH_NONE,
        .last_child = GRAPH_NONE,
        .next = GRAPH_NONE,
        .first_node = GRAPH_NONE,
        .last_node = GRAPH_NONE,
    };
    scope = &graph->scope[parent];
    if (scope->last_child == GRAPH_NONE) {
        scope->first_child = id;
    } else {
        graph->scope[scope->last_child].next = id;
    }
    scope->last_child = id;
    graph_table_insert(&graph->scopes, (uint32_t)graph_hash(graph, path, len), id);
    graph->scope_count++;
    *ret = id;
    return GD_OK;
}

int graph_intern_scope(struct gd_graph *graph, const char *name, size_t len, uint32_t *ret,
                       struct gd_err *err)
{
    const struct graph_scope *last = &graph->scope[graph->last_scope];
    size_t prefix[GRAPH_MAX_DEPTH];
    size_t path = parent_len(name, len);
    gd_scope_id scope = GD_NO_SCOPE;
    int missing = 0;

    /* Neighbours in a graph mostly share their scope. */
    if (path == last->len && memcmp(name, last->name, path) == 0) {
        *ret = graph->last_scope;
        return GD_OK;
    }
    while (scope == GD_NO_SCOPE) {
        scope = lookup(graph, name, path, (uint32_t)graph_hash(graph, name, path));
        if (scope == GD_NO_SCOPE) {
            /* Too deep a path loses its lowest levels: the ring keeps the highest ones. */
            prefix[missing++ % GRAPH_MAX_DEPTH] = path;
            path = parent_len(name, path);
        }
    }
    for (int left = missing; left > 0 && missing - left < GRAPH_MAX_DEPTH; left--) {
        int rc;

        if (graph->scope[scope].depth >= GRAPH_MAX_DEPTH) {
            break;
        }
        rc = add_scope(graph, name, prefix[(left - 1) % GRAPH_MAX_DEPTH], scope, &scope, err);
        if (rc) {
            return rc;
        }
    }
    graph->last_scope = scope;
    *ret = scope;
    return GD_OK;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory of a graph: counted, so that a limit can hold; in pools, because nodes only come. */
#include "engine/graph/graph_impl.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256 * 1024)

static int take_memory(struct gd_graph *graph, size_t bytes, struct gd_err *err)
{
    if (graph->max && (bytes > graph->max || graph->memory > graph->max - bytes)) {
        return gd_fail(err, GD_ELIMIT,
                       "the graph needs more than %zu bytes of memory: raise max-graph-memory",
                       graph->max);
    }
    graph->memory += bytes;
    return GD_OK;
}

void *graph_malloc(struct gd_graph *graph, size_t bytes, struct gd_err *err)
{
    if (take_memory(graph, bytes, err) != GD_OK) {
        return NULL;
    }
    void *memory = malloc(bytes);
    if (!memory) {
        graph_give(graph, bytes);
        gd_fail_nomem(err);
    }
    return memory;
}

void graph_give(struct gd_graph *graph, size_t bytes)
{
    graph->memory -= bytes;
}

int graph_grow(struct gd_graph *graph, void *array_ptr, uint32_t *cap, uint64_t need, size_t item,
               struct gd_err *err)
{
    uint64_t new_cap = *cap ? *cap : 16;
    void *array, *grown;

    if (need <= *cap) {
        return GD_OK;
    }
    while (new_cap < need) {
        new_cap += new_cap / 2;
    }
    if (new_cap >= UINT32_MAX) {
        return gd_fail(err, GD_ELIMIT, "the graph has too many parts for 32-bit numbers");
    }
    int rc = take_memory(graph, (size_t)(new_cap - *cap) * item, err);
    if (rc != GD_OK) {
        return rc;
    }
    memcpy(&array, array_ptr, sizeof(array)); /* a pointer to any type: no cast would do */
    grown = realloc(array, (size_t)new_cap * item);
    if (!grown) {
        graph_give(graph, (size_t)(new_cap - *cap) * item);
        return gd_fail_nomem(err);
    }
    memcpy(array_ptr, &grown, sizeof(grown));
    *cap = (uint32_t)new_cap;
    return GD_OK;
}

static struct graph_chunk *add_chunk(struct gd_graph *graph, struct graph_pool *pool, size_t size,
                                     struct gd_err *err)
{
    size_t bytes = size > CHUNK_BYTES / 4 ? size : CHUNK_BYTES;
    struct graph_chunk *chunk;

    if (!pool->head && size < 2048) {
        bytes = 4096; /* most graphs, of a test or a small network, are small */
    }
    chunk = graph_malloc(graph, sizeof(*chunk) + bytes, err);
    if (!chunk) {
        return NULL;
    }
    chunk->size = bytes;
    chunk->used = 0;
    if (pool->head && bytes == size) { /* a big single one: keep filling the current one */
        chunk->next = pool->head->next;
        pool->head->next = chunk;
    } else {
        chunk->next = pool->head;
        pool->head = chunk;
    }
    return chunk;
}

void *graph_pool_alloc(struct gd_graph *graph, struct graph_pool *pool, size_t size, size_t align,
                       struct gd_err *err)
{
    struct graph_chunk *chunk = pool->head;
    size_t at = 0;

    if (chunk) {
        at = (chunk->used + align - 1) & ~(align - 1);
    }
    if (!chunk || at > chunk->size || chunk->size - at < size) {
        chunk = add_chunk(graph, pool, size, err);
        at = 0;
    }
    if (!chunk) {
        return NULL;
    }
    chunk->used = at + size;
    return chunk->bytes + at;
}

const char *graph_text(struct gd_graph *graph, const char *text, size_t len, struct gd_err *err)
{
    char *copy = graph_pool_alloc(graph, &graph->text, len + 1, 1, err);

    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

struct graph_extra *graph_copy_extra(struct gd_graph *graph, const struct graph_extra *had,
                                     struct gd_err *err)
{
    struct graph_extra *extra = graph_pool_alloc(graph, &graph->data, sizeof(*extra), 8, err);

    if (extra) {
        *extra = had ? *had : (struct graph_extra){.stack = GRAPH_NONE, .same = GD_NO_NODE};
    }
    return extra;
}

void graph_pool_clear(struct gd_graph *graph, struct graph_pool *pool)
{
    while (pool->head) {
        struct graph_chunk *next = pool->head->next;

        graph_give(graph, sizeof(*pool->head) + pool->head->size);
        free(pool->head);
        pool->head = next;
    }
}

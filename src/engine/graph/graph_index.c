// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t fold_multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t mixed = a * b;

    return mixed ^ (mixed >> 32) ^ (a >> 31) * UINT64_C(0xd6e8feb86659fd93);
#endif
}

uint64_t graph_hash(const struct gd_graph *graph, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = graph->seed ^ len;
    uint64_t word;

    for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = fold_multiply(hash ^ word, UINT64_C(0xa0761d6478bd642f));
    }
    word = 0;
    memcpy(&word, at, len);
    hash = fold_multiply(hash ^ word, UINT64_C(0xe7037ed1a0b428db));
    return fold_multiply(hash ^ graph->seed, UINT64_C(0x8ebc6af09c88c6e3));
}

uint32_t graph_hash_in(uint64_t hash, uint32_t subgraph)
{
    return (uint32_t)(fold_multiply(hash + subgraph, UINT64_C(0x9e3779b97f4a7c15)) >> 16);
}

int graph_table_reserve(struct gd_graph *graph, struct graph_table *table, struct gd_err *err)
{
    uint32_t cap = table->slot ? table->mask + 1 : 0;
    uint32_t new_cap = cap ? cap * 2 : 64;
    struct graph_table grown;
    int rc;

    if (cap && (uint64_t)table->used + 1 <= (uint64_t)cap * 5 / 8) {
        return GD_OK;
    }
    if (new_cap <= cap) {
        return gd_fail(err, GD_ELIMIT, "the graph has too many names for 32-bit numbers");
    }
    rc = graph_take(graph, (size_t)new_cap * sizeof(*grown.slot), err);
    if (rc) {
        return rc;
    }
    grown.slot = malloc((size_t)new_cap * sizeof(*grown.slot));
    if (!grown.slot) {
        graph_give(graph, (size_t)new_cap * sizeof(*grown.slot));
        return graph_out_of_memory(err);
    }
    memset(grown.slot, 0xff, (size_t)new_cap * sizeof(*grown.slot));
    grown.mask = new_cap - 1;
    grown.used = 0;
    for (uint32_t i = 0; i < cap; i++) {
        if (table->slot[i].id != GRAPH_NONE) {
            graph_table_insert(&grown, table->slot[i].hash, table->slot[i].id);
        }
    }
    graph_give(graph, (size_t)cap * sizeof(*grown.slot));
    free(table->slot);
    *table = grown;
    return GD_OK;
}

void graph_table_insert(struct graph_table *table, uint32_t hash, uint32_t id)
{
    uint32_t i = hash & table->mask;

    while (table->slot[i].id != GRAPH_NONE) {
        i = (i + 1) & table->mask;
    }
    table->slot[i] = (struct graph_slot){.hash = hash, .id = id};
    table->used++;
}

void graph_table_remove(struct graph_table *table, uint32_t hash, uint32_t id)
{
    uint32_t hole, i;

    if (!table->slot) {
        return;
    }
    for (hole = hash & table->mask; table->slot[hole].id != id; hole = (hole + 1) & table->mask) {
        if (table->slot[hole].id == GRAPH_NONE) {
            return;
        }
    }
    /* Shift back whatever would no longer be found across the hole. */
    for (i = (hole + 1) & table->mask; table->slot[i].id != GRAPH_NONE; i = (i + 1) & table->mask) {
        uint32_t home = table->slot[i].hash & table->mask;

        if (((i - home) & table->mask) >= ((i - hole) & table->mask)) {
            table->slot[hole] = table->slot[i];
            hole = i;
        }
    }
    table->slot[hole] = (struct graph_slot){.hash = UINT32_MAX, .id = GRAPH_NONE};
    table->used--;
}

/* ---- names ----------------------------------------------------------------------------------- */

gd_node_id graph_find_in(const struct gd_graph *graph, const struct graph_table *table,
                         const char *name, size_t len, uint64_t hash, uint32_t subgraph)
{
    uint32_t short_hash = graph_hash_in(hash, subgraph);
    bool wire = table == &graph->wire_names;

    if (!table->slot) {
        return GD_NO_NODE;
    }
    for (uint32_t i = short_hash & table->mask; table->slot[i].id != GRAPH_NONE;
         i = (i + 1) & table->mask) {
        const struct graph_node *node;
        const char *have;

        if (table->slot[i].hash != short_hash) {
            continue;
        }
        node = &graph->node[table->slot[i].id];
        have = wire ? graph_wire_name(node) : node->name;
        if (node->subgraph == subgraph && strncmp(have, name, len) == 0 && have[len] == '\0') {
            return table->slot[i].id;
        }
    }
    return GD_NO_NODE;
}

static gd_node_id find_anywhere(const struct gd_graph *graph, const struct graph_table *table,
                                const char *name, size_t len)
{
    uint64_t hash;

    if (!table->slot || len > GRAPH_MAX_NAME) {
        return GD_NO_NODE;
    }
    hash = graph_hash(graph, name, len);
    for (uint32_t i = graph->subgraph_count; i-- > 0;) {
        gd_node_id found = graph_find_in(graph, table, name, len, hash, i);

        if (found != GD_NO_NODE) {
            return found;
        }
    }
    return GD_NO_NODE;
}

gd_node_id gd_graph_lookup(const struct gd_graph *graph, const char *name, size_t len)
{
    return find_anywhere(graph, &graph->names, name, len);
}

gd_node_id gd_graph_lookup_wire(const struct gd_graph *graph, const char *name, size_t len)
{
    gd_node_id found = find_anywhere(graph, &graph->wire_names, name, len);

    return found != GD_NO_NODE ? found : gd_graph_lookup(graph, name, len);
}

/* ---- things that are kept once --------------------------------------------------------------- */

int graph_intern_type(struct gd_graph *graph, const char *type, uint32_t *ret, struct gd_err *err)
{
    size_t len = strlen(type);
    uint32_t hash = (uint32_t)graph_hash(graph, type, len);
    const struct graph_table *table = &graph->types;
    const char *copy;

    for (uint32_t i = hash & table->mask; table->slot && table->slot[i].id != GRAPH_NONE;
         i = (i + 1) & table->mask) {
        if (table->slot[i].hash == hash && strcmp(graph->type[table->slot[i].id].name, type) == 0) {
            *ret = table->slot[i].id;
            return GD_OK;
        }
    }
    if (graph_table_reserve(graph, &graph->types, err) ||
        graph_grow(graph, &graph->type, &graph->type_cap, (uint64_t)graph->type_count + 1,
                   sizeof(*graph->type), err)) {
        return err->code;
    }
    copy = graph_text(graph, type, len, err);
    if (!copy) {
        return err->code;
    }
    graph->type[graph->type_count] =
        (struct graph_type){.name = copy, .class = graph_type_classify(copy)};
    graph_table_insert(&graph->types, hash, graph->type_count);
    *ret = graph->type_count++;
    return GD_OK;
}

static bool same_shape(const struct graph_shape *have, const struct gd_output *want)
{
    return have->dtype == (uint8_t)want->dtype && have->rank == want->shape.rank &&
           memcmp(have->dim, want->shape.dim, have->rank * sizeof(have->dim[0])) == 0;
}

static int add_shape(struct gd_graph *graph, const struct gd_output *output, uint32_t hash,
                     struct gd_err *err)
{
    size_t bytes = (size_t)output->shape.rank * sizeof(int64_t);
    struct graph_shape *shape;
    int rc = graph_table_reserve(graph, &graph->shapes, err);

    if (!rc) {
        rc = graph_grow(graph, &graph->shape, &graph->shape_cap, (uint64_t)graph->shape_count + 1,
                        sizeof(*graph->shape), err);
    }
    if (rc) {
        return rc;
    }
    shape = graph_pool_alloc(graph, &graph->data, sizeof(*shape) + bytes, 8, err);
    if (!shape) {
        return err->code;
    }
    shape->dtype = (uint8_t)output->dtype;
    shape->rank = (uint8_t)output->shape.rank;
    memcpy(shape->dim, output->shape.dim, bytes);
    graph->shape[graph->shape_count] = shape;
    graph_table_insert(&graph->shapes, hash, graph->shape_count++);
    return GD_OK;
}

int graph_intern_shape(struct gd_graph *graph, const struct gd_output *output, uint32_t *ret,
                       struct gd_err *err)
{
    const struct graph_table *table = &graph->shapes;
    uint32_t hash;
    int rc;

    if (output->shape.rank < 0 || output->shape.rank > GD_MAX_RANK) {
        return gd_fail(err, GD_EINVAL, "a shape has %d dimensions: at most %d are supported",
                       output->shape.rank, GD_MAX_RANK);
    }
    hash = (uint32_t)graph_hash(graph, output->shape.dim,
                                (size_t)output->shape.rank * sizeof(output->shape.dim[0])) +
           (uint32_t)output->dtype * 0x9e3779b1U;
    for (uint32_t i = hash & table->mask; table->slot && table->slot[i].id != GRAPH_NONE;
         i = (i + 1) & table->mask) {
        if (table->slot[i].hash == hash && same_shape(graph->shape[table->slot[i].id], output)) {
            *ret = table->slot[i].id;
            return GD_OK;
        }
    }
    rc = add_shape(graph, output, hash, err);
    if (rc == GD_OK) {
        *ret = graph->shape_count - 1;
    }
    return rc;
}

int graph_intern_word(struct gd_graph *graph, const char *word, const char **ret,
                      struct gd_err *err)
{
    size_t len = strlen(word);
    uint32_t hash = (uint32_t)graph_hash(graph, word, len);
    const struct graph_table *table = &graph->words;
    int rc;

    for (uint32_t i = hash & table->mask; table->slot && table->slot[i].id != GRAPH_NONE;
         i = (i + 1) & table->mask) {
        if (table->slot[i].hash == hash && strcmp(graph->word[table->slot[i].id], word) == 0) {
            *ret = graph->word[table->slot[i].id];
            return GD_OK;
        }
    }
    rc = graph_table_reserve(graph, &graph->words, err);
    if (!rc) {
        rc = graph_grow(graph, &graph->word, &graph->word_cap, (uint64_t)graph->word_count + 1,
                        sizeof(*graph->word), err);
    }
    if (rc) {
        return rc;
    }
    *ret = graph_text(graph, word, len, err);
    if (!*ret) {
        return err->code;
    }
    graph->word[graph->word_count] = *ret;
    graph_table_insert(&graph->words, hash, graph->word_count++);
    return GD_OK;
}

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

    if (cap && (uint64_t)table->used + 1 <= (uint64_t)cap * 5 / 8) {
        return GD_OK;
    }
    if (new_cap <= cap) {
        return gd_fail(err, GD_ELIMIT, "the graph has too many names for 32-bit numbers");
    }
    grown.slot = graph_malloc(graph, (size_t)new_cap * sizeof(*grown.slot), err);
    if (!grown.slot) {
        return err->code;
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

const char *graph_wire_name(const struct graph_node *node)
{
    return node->extra && node->extra->wire_name ? node->extra->wire_name : node->name;
}

static bool is_name(const char *have, const char *name, size_t len)
{
    return strncmp(have, name, len) == 0 && have[len] == '\0';
}

gd_node_id graph_find_first(const struct gd_graph *graph, const char *name, size_t len,
                            uint64_t hash)
{
    uint32_t id, at = 0;

    while ((id = graph_table_next(&graph->names, (uint32_t)hash, &at)) != GRAPH_NONE) {
        if (is_name(graph->node[id].name, name, len)) {
            return id;
        }
    }
    return GD_NO_NODE;
}

static gd_node_id next_same(const struct gd_graph *graph, gd_node_id node)
{
    return graph->node[node].shared ? graph->node[node].extra->same : GD_NO_NODE;
}

static gd_node_id find_wire_in(const struct gd_graph *graph, const char *name, size_t len,
                               uint64_t hash, uint32_t subgraph)
{
    uint32_t short_hash = graph_hash_in(hash, subgraph), id, at = 0;

    while ((id = graph_table_next(&graph->wire_names, short_hash, &at)) != GRAPH_NONE) {
        if (graph->node[id].subgraph == subgraph &&
            is_name(graph_wire_name(&graph->node[id]), name, len)) {
            return id;
        }
    }
    return GD_NO_NODE;
}

gd_node_id graph_find_in(const struct gd_graph *graph, const struct graph_table *table,
                         const char *name, size_t len, uint64_t hash, uint32_t subgraph)
{
    if (table == &graph->wire_names) {
        return find_wire_in(graph, name, len, hash, subgraph);
    }
    gd_node_id node = graph_find_first(graph, name, len, hash);
    while (node != GD_NO_NODE && graph->node[node].subgraph != subgraph) {
        node = next_same(graph, node);
    }
    return node;
}

const char *graph_within(const struct graph_subgraph *sub, const char *name, size_t *len)
{
    size_t skip = (size_t)sub->word_len + 1;

    if (*len <= skip || memcmp(name, sub->word, sub->word_len) != 0 || name[skip - 1] != '/') {
        return NULL;
    }
    *len -= skip;
    return name + skip;
}

gd_node_id gd_graph_lookup_in(const struct gd_graph *graph, uint32_t subgraph, const char *name,
                              size_t len)
{
    uint64_t hash = graph_hash(graph, name, len);
    gd_node_id found = graph_find_in(graph, &graph->names, name, len, hash, subgraph);

    return found != GD_NO_NODE
               ? found
               : graph_find_in(graph, &graph->wire_names, name, len, hash, subgraph);
}

/* GRAPH/NAME */
static gd_node_id find_qualified(const struct gd_graph *graph, const struct graph_table *table,
                                 const char *name, size_t len)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        size_t rest_len = len;
        const char *rest = graph_within(&graph->subgraph[i], name, &rest_len);
        gd_node_id found =
            rest ? graph_find_in(graph, table, rest, rest_len, graph_hash(graph, rest, rest_len), i)
                 : GD_NO_NODE;

        if (found != GD_NO_NODE) {
            return found;
        }
    }
    return GD_NO_NODE;
}

gd_node_id gd_graph_lookup(const struct gd_graph *graph, const char *name, size_t len)
{
    gd_node_id found = graph_find_first(graph, name, len, graph_hash(graph, name, len));

    if (found == GD_NO_NODE) {
        return find_qualified(graph, &graph->names, name, len);
    }
    return graph->node[found].shared ? GD_NO_NODE : found;
}

uint32_t graph_find_wire(const struct gd_graph *graph, const char *name, size_t len,
                         gd_node_id found[2])
{
    uint64_t hash = graph_hash(graph, name, len);
    uint32_t count = 0;

    for (uint32_t i = 0; count < 2 && i < graph->subgraph_count; i++) {
        found[count] = find_wire_in(graph, name, len, hash, i);
        count += found[count] != GD_NO_NODE;
    }
    return count;
}

gd_node_id gd_graph_lookup_wire(const struct gd_graph *graph, const char *name, size_t len)
{
    gd_node_id found[2];
    uint32_t count = graph_find_wire(graph, name, len, found);

    if (count == 0) {
        found[0] = find_qualified(graph, &graph->wire_names, name, len);
        return found[0] != GD_NO_NODE ? found[0] : gd_graph_lookup(graph, name, len);
    }
    return count == 1 ? found[0] : GD_NO_NODE;
}

/* ---- names that several subgraphs have ------------------------------------------------------- */

const char *graph_shown_name(const struct graph_node *node)
{
    return node->shared ? node->extra->qualified : node->name;
}

static int qualify_name(struct gd_graph *graph, struct graph_node *node, const char *name,
                        struct gd_err *err)
{
    const struct graph_subgraph *sub = &graph->subgraph[node->subgraph];
    size_t len = sub->word_len + 1 + (size_t)node->name_len;

    if (!node->extra) {
        node->extra = graph_copy_extra(graph, NULL, err);
        if (!node->extra) {
            return err->code;
        }
    }
    char *text =
        node->extra->qualified ? NULL : graph_pool_alloc(graph, &graph->text, len + 1, 1, err);
    if (!text) {
        return node->extra->qualified ? GD_OK : err->code;
    }
    memcpy(text, sub->word, sub->word_len);
    text[sub->word_len] = '/';
    memcpy(text + sub->word_len + 1, name, node->name_len);
    text[len] = '\0';
    node->extra->qualified = text;
    return GD_OK;
}

int graph_reserve_same(struct gd_graph *graph, struct graph_node *node, uint64_t hash,
                       struct gd_err *err)
{
    gd_node_id first = graph_find_first(graph, node->name, node->name_len, hash);
    int rc = GD_OK;

    if (first == GD_NO_NODE) {
        return GD_OK;
    }
    rc = qualify_name(graph, node, node->name, err);
    return rc != GD_OK ? rc
                       : qualify_name(graph, &graph->node[first], graph->node[first].name, err);
}

void graph_enter_name(struct gd_graph *graph, gd_node_id id, uint64_t hash)
{
    struct graph_node *node = &graph->node[id];
    gd_node_id first = graph_find_first(graph, node->name, node->name_len, hash);

    node->shared = first != GD_NO_NODE;
    if (!node->shared) {
        graph_table_insert(&graph->names, (uint32_t)hash, id);
        return;
    }
    node->extra->same = next_same(graph, first);
    graph->changes += !graph->node[first].shared; /* it is now shown under another name */
    graph->node[first].shared = true;
    graph->node[first].extra->same = id;
}

void graph_drop_name(struct gd_graph *graph, gd_node_id id)
{
    struct graph_node *node = &graph->node[id];
    uint64_t hash = graph_hash(graph, node->name, node->name_len);
    gd_node_id first = graph_find_first(graph, node->name, node->name_len, hash);
    gd_node_id next = next_same(graph, id);

    if (first == id) {
        graph_table_remove(&graph->names, (uint32_t)hash, id);
        if (next != GD_NO_NODE) {
            graph_table_insert(&graph->names, (uint32_t)hash, next);
        }
        first = next;
    } else {
        gd_node_id before = first;

        while (next_same(graph, before) != id) {
            before = next_same(graph, before);
        }
        graph->node[before].extra->same = next;
    }
    if (first != GD_NO_NODE && next_same(graph, first) == GD_NO_NODE) {
        graph->node[first].shared = false; /* alone again */
        graph->changes++;
    }
}

/* ---- things that are kept once --------------------------------------------------------------- */

int graph_intern_type(struct gd_graph *graph, const char *type, uint32_t *ret, struct gd_err *err)
{
    size_t len = strlen(type);
    uint32_t hash = (uint32_t)graph_hash(graph, type, len), id, at = 0;

    while ((id = graph_table_next(&graph->types, hash, &at)) != GRAPH_NONE) {
        if (strcmp(graph->type[id].name, type) == 0) {
            *ret = id;
            return GD_OK;
        }
    }
    if (graph_table_reserve(graph, &graph->types, err) != GD_OK ||
        graph_grow(graph, &graph->type, &graph->type_cap, (uint64_t)graph->type_count + 1,
                   sizeof(*graph->type), err) != GD_OK) {
        return err->code;
    }
    const char *copy = graph_text(graph, type, len, err);
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

    if (rc == GD_OK) {
        rc = graph_grow(graph, &graph->shape, &graph->shape_cap, (uint64_t)graph->shape_count + 1,
                        sizeof(*graph->shape), err);
    }
    if (rc != GD_OK) {
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
    uint32_t id, at = 0;

    if (output->shape.rank < 0 || output->shape.rank > GD_MAX_RANK) {
        return gd_fail(err, GD_EINVAL, "a shape has %d dimensions, the limit is %d",
                       output->shape.rank, GD_MAX_RANK);
    }
    uint32_t hash =
        (uint32_t)graph_hash(graph, output->shape.dim,
                             (size_t)output->shape.rank * sizeof(output->shape.dim[0])) +
        (uint32_t)output->dtype * 0x9e3779b1U;
    while ((id = graph_table_next(&graph->shapes, hash, &at)) != GRAPH_NONE) {
        if (same_shape(graph->shape[id], output)) {
            *ret = id;
            return GD_OK;
        }
    }
    int rc = add_shape(graph, output, hash, err);
    if (rc == GD_OK) {
        *ret = graph->shape_count - 1;
    }
    return rc;
}

int graph_intern_word(struct gd_graph *graph, const char *word, const char **ret,
                      struct gd_err *err)
{
    size_t len = strlen(word);
    uint32_t hash = (uint32_t)graph_hash(graph, word, len), id, at = 0;

    while ((id = graph_table_next(&graph->words, hash, &at)) != GRAPH_NONE) {
        if (strcmp(graph->word[id], word) == 0) {
            *ret = graph->word[id];
            return GD_OK;
        }
    }
    int rc = graph_table_reserve(graph, &graph->words, err);
    if (rc == GD_OK) {
        rc = graph_grow(graph, &graph->word, &graph->word_cap, (uint64_t)graph->word_count + 1,
                        sizeof(*graph->word), err);
    }
    if (rc != GD_OK) {
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

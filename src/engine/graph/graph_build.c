// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <stdlib.h>
#include <string.h>

#define NAME_CHUNK_BYTES (1024 * 1024)
#define SMALL_NAME_CHUNK (4 * 1024)

/* ---- names ----------------------------------------------------------------------------------- */

static int add_name_chunk(struct gd_graph *graph, size_t need, struct gd_err *err)
{
    size_t size = graph->name_chunk_count ? NAME_CHUNK_BYTES : SMALL_NAME_CHUNK;

    if (size < need) {
        size = need;
    }
    int rc = graph_grow(graph, &graph->name_chunk, &graph->name_chunk_cap,
                        (uint64_t)graph->name_chunk_count + 1, sizeof(*graph->name_chunk), err);
    if (rc != GD_OK) {
        return rc;
    }
    char *bytes = graph_malloc(graph, size, err);
    if (!bytes) {
        return err->code;
    }
    graph->name_chunk[graph->name_chunk_count++] =
        (struct graph_name_chunk){.bytes = bytes, .size = size, .first = graph->node_count};
    return GD_OK;
}

/* Names are in node order, so this is the last step of adding a node that can fail. */
static int copy_name(struct gd_graph *graph, const char *name, size_t len, const char **ret,
                     struct gd_err *err)
{
    uint32_t last = graph->name_chunk_count;

    if (last == 0 ||
        graph->name_chunk[last - 1].size - graph->name_chunk[last - 1].used < len + 1) {
        int rc = add_name_chunk(graph, len + 1, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    struct graph_name_chunk *chunk = &graph->name_chunk[graph->name_chunk_count - 1];
    *ret = memcpy(chunk->bytes + chunk->used, name, len);
    chunk->bytes[chunk->used + len] = '\0';
    chunk->used += len + 1;
    if (graph->node_count % 16 == 0) {
        for (size_t i = 0; i < len; i++) {
            graph->letter[(unsigned char)name[i]]++;
        }
    }
    return GD_OK;
}

/* ---- subgraphs ------------------------------------------------------------------------------- */

static void unlink_gone(struct gd_graph *graph, struct graph_scope *scope)
{
    uint32_t *link = &scope->first_node;

    scope->last_node = GRAPH_NONE;
    while (*link != GRAPH_NONE) {
        struct graph_node *node = &graph->node[*link];

        if (node->gone) {
            *link = node->next_in_scope;
        } else {
            scope->last_node = *link;
            link = &node->next_in_scope;
        }
    }
}

static void count_node(struct gd_graph *graph, const struct graph_node *node, uint32_t by)
{
    struct graph_subgraph *sub = &graph->subgraph[node->subgraph];
    bool was_live = sub->live > 0;

    graph->live_count += by; /* `by` is 1 or, wrapping around, -1 */
    sub->live += by;
    if (was_live != (sub->live > 0)) {
        graph->live_subgraphs += by;
    }
    graph->by_kind[node->kind] += by;
    graph->type[node->type].count += node->kind == GD_NODE_COMPILED ? 0 : by;
    graph->scope[node->scope].node_count += by;
    for (uint32_t i = node->scope; i != GRAPH_NONE; i = graph->scope[i].parent) {
        graph->scope[i].total_count += by;
    }
}

static void drop_names(struct gd_graph *graph, const struct graph_node *node)
{
    gd_node_id id = (gd_node_id)(node - graph->node);

    graph_drop_name(graph, id);
    if (node->extra && node->extra->wire_name) {
        uint64_t hash = graph_hash(graph, node->extra->wire_name, strlen(node->extra->wire_name));

        graph_table_remove(&graph->wire_names, graph_hash_in(hash, node->subgraph), id);
    }
}

static void unlink_subgraph(struct gd_graph *graph, uint32_t subgraph, unsigned char *seen)
{
    const struct graph_subgraph *sub = &graph->subgraph[subgraph];

    for (uint32_t i = sub->first; i < sub->end; i++) {
        uint32_t scope = graph->node[i].scope;
        unsigned char bit = (unsigned char)(1U << (scope % 8));

        if (graph->node[i].subgraph == subgraph && !(seen[scope / 8] & bit)) {
            seen[scope / 8] |= bit;
            unlink_gone(graph, &graph->scope[scope]);
        }
    }
}

static int empty_subgraph(struct gd_graph *graph, uint32_t subgraph, struct gd_err *err)
{
    struct graph_subgraph *sub = &graph->subgraph[subgraph];
    unsigned char *seen = calloc((size_t)graph->scope_count / 8 + 1, 1);

    if (!seen) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = sub->first; i < sub->end; i++) {
        struct graph_node *node = &graph->node[i];

        if (node->subgraph == subgraph && !node->gone) {
            drop_names(graph, node);
            count_node(graph, node, UINT32_MAX);
            graph->edge_count -= node->input_count;
            node->gone = 1;
            graph->changes++;
        }
    }
    unlink_subgraph(graph, subgraph, seen);
    free(seen);
    graph_lazy_clear(graph);
    graph_forget_consumers(graph, subgraph, sub->first, sub->end);
    sub->first = graph->node_count;
    sub->end = graph->node_count;
    sub->missing = 0;
    return GD_OK;
}

static int add_subgraph(struct gd_graph *graph, const char *name, struct gd_err *err)
{
    struct graph_subgraph *sub;

    if (graph->subgraph_count >= GRAPH_MAX_SUBGRAPHS) {
        return gd_fail(err, GD_ELIMIT, "a process can send at most %d graphs", GRAPH_MAX_SUBGRAPHS);
    }
    int rc = graph_grow(graph, &graph->subgraph, &graph->subgraph_cap,
                        (uint64_t)graph->subgraph_count + 1, sizeof(*sub), err);
    if (rc != GD_OK) {
        return rc;
    }
    sub = &graph->subgraph[graph->subgraph_count];
    *sub = (struct graph_subgraph){.first = graph->node_count, .end = graph->node_count};
    for (int i = 0; i < GD_PART_COUNT; i++) {
        sub->last_of_part[i] = GRAPH_NONE;
    }
    sub->name = graph_text(graph, name, strlen(name), err);
    if (!sub->name) {
        return err->code;
    }
    sub->word = sub->name[0] ? sub->name : "graph";
    sub->word_len = (uint32_t)strlen(sub->word);
    rc = graph_add_root(graph, graph->subgraph_count, err);
    graph->subgraph_count += rc == GD_OK;
    return rc;
}

int gd_graph_subgraph(struct gd_graph *graph, const char *name, bool replace, uint32_t *ret,
                      struct gd_err *err)
{
    struct gd_err scratch;
    uint32_t found = 0;
    int rc = GD_OK;

    err = err ? err : &scratch;
    while (found < graph->subgraph_count && strcmp(graph->subgraph[found].name, name) != 0) {
        found++;
    }
    if (found == graph->subgraph_count) {
        rc = add_subgraph(graph, name, err);
    } else if (replace) {
        rc = empty_subgraph(graph, found, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    graph->current = found;
    if (ret) {
        *ret = found;
    }
    return GD_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int check_desc(const struct gd_graph *graph, const struct gd_node_desc *desc, size_t len,
                      struct gd_err *err)
{
    if (len == 0) {
        return gd_fail(err, GD_EINVAL, "a node has no name");
    }
    if (len > GRAPH_MAX_NAME) {
        return gd_fail(err, GD_ELIMIT, "the name of node '%.60s...' has %zu bytes, the limit is %d",
                       desc->name, len, GRAPH_MAX_NAME);
    }
    if (desc->output_count > GRAPH_MAX_OUTPUTS) {
        return gd_fail(err, GD_ELIMIT, "node '%.200s' has %u outputs, the limit is %d", desc->name,
                       desc->output_count, GRAPH_MAX_OUTPUTS);
    }
    if (desc->input_slots > desc->output_count) {
        return gd_fail(err, GD_EINVAL, "node '%.200s' has %u slots, %u of them inputs", desc->name,
                       desc->output_count, desc->input_slots);
    }
    if (graph->node_count >= GD_NO_NODE - 1) {
        return gd_fail(err, GD_ELIMIT, "the graph has too many nodes");
    }
    return GD_OK;
}

static int set_outputs(struct gd_graph *graph, struct graph_node *node,
                       const struct gd_node_desc *desc, struct gd_err *err)
{
    node->output_count = desc->output_count;
    if (desc->output_count == 0) {
        return GD_OK;
    }
    if (desc->output_count == 1) {
        return graph_intern_shape(graph, desc->outputs, &node->output.one, err);
    }
    uint32_t *many =
        graph_pool_alloc(graph, &graph->data, desc->output_count * sizeof(*many), 8, err);
    if (!many) {
        return err->code;
    }
    for (uint32_t i = 0; i < desc->output_count; i++) {
        int rc = graph_intern_shape(graph, &desc->outputs[i], &many[i], err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    node->output.many = many;
    return GD_OK;
}

static int copy_attrs(struct gd_graph *graph, struct graph_extra *extra,
                      const struct gd_node_desc *desc, struct gd_err *err)
{
    if (desc->attr_count == 0) {
        return GD_OK;
    }
    struct gd_attr *attrs =
        graph_pool_alloc(graph, &graph->data, desc->attr_count * sizeof(*attrs), 8, err);
    if (!attrs) {
        return err->code;
    }
    for (uint32_t i = 0; i < desc->attr_count; i++) {
        const char *value = desc->attrs[i].value ? desc->attrs[i].value : "";
        const char *name = desc->attrs[i].name ? desc->attrs[i].name : "";
        int rc = graph_intern_word(graph, name, &attrs[i].name, err);

        if (rc != GD_OK) {
            return rc;
        }
        attrs[i].value = graph_text(graph, value, strlen(value), err);
        if (!attrs[i].value) {
            return err->code;
        }
    }
    extra->attrs = attrs;
    extra->attr_count = desc->attr_count;
    return GD_OK;
}

static int copy_extra(struct gd_graph *graph, struct graph_node *node,
                      const struct gd_node_desc *desc, struct gd_err *err)
{
    bool own_wire =
        desc->wire_name && desc->wire_name[0] && strcmp(desc->wire_name, desc->name) != 0;
    bool source = desc->source && desc->source[0];

    if (!own_wire && !source && desc->attr_count == 0 && desc->frame_count == 0 &&
        desc->input_slots == 0) {
        return GD_OK;
    }
    struct graph_extra *extra = graph_copy_extra(graph, NULL, err);
    if (!extra) {
        return err->code;
    }
    extra->input_slots = desc->input_slots;
    int rc = copy_attrs(graph, extra, desc, err);
    if (rc == GD_OK && desc->frame_count) {
        rc = graph_intern_frames(graph, desc->frames, desc->frame_count, &extra->stack, err);
    } else if (rc == GD_OK && source) {
        rc = graph_intern_source(graph, desc->source, &extra->stack, err);
    }
    if (rc == GD_OK && own_wire) {
        extra->wire_name = graph_text(graph, desc->wire_name, strlen(desc->wire_name), err);
        rc = extra->wire_name ? graph_table_reserve(graph, &graph->wire_names, err) : err->code;
    }
    node->extra = extra;
    return rc;
}

/* Everything about the node that can fail, its name last. */
static int fill_node(struct gd_graph *graph, struct graph_node *node,
                     const struct gd_node_desc *desc, uint64_t hash, struct gd_err *err)
{
    int rc = graph_intern_type(graph, desc->type ? desc->type : "", &node->type, err);

    if (rc == GD_OK) {
        rc = graph_intern_scope(graph, desc->name, node->name_len, &node->scope, err);
    }
    if (rc == GD_OK) {
        rc = set_outputs(graph, node, desc, err);
    }
    if (rc == GD_OK) {
        rc = copy_extra(graph, node, desc, err);
    }
    if (rc == GD_OK) {
        node->name = desc->name;
        rc = graph_reserve_same(graph, node, hash, err);
    }
    if (rc == GD_OK) {
        rc = copy_name(graph, desc->name, node->name_len, &node->name, err);
    }
    return rc;
}

/* Nothing here can fail: from now on the node exists. */
static void publish_node(struct gd_graph *graph, const struct graph_node *filled, uint64_t hash)
{
    gd_node_id id = graph->node_count++;
    struct graph_node *node = &graph->node[id];
    struct graph_scope *scope = &graph->scope[filled->scope];

    *node = *filled;
    if (scope->last_node == GRAPH_NONE) {
        scope->first_node = id;
    } else {
        graph->node[scope->last_node].next_in_scope = id;
    }
    scope->last_node = id;
    graph_enter_name(graph, id, hash);
    if (node->extra && node->extra->wire_name) {
        const char *wire = node->extra->wire_name;
        size_t len = strlen(wire);
        uint64_t wire_hash = graph_hash(graph, wire, len);

        if (graph_find_in(graph, &graph->wire_names, wire, len, wire_hash, node->subgraph) ==
            GD_NO_NODE) {
            graph_table_insert(&graph->wire_names, graph_hash_in(wire_hash, node->subgraph), id);
        }
    }
    if (node->kind == GD_NODE_WEIGHT) {
        graph_holds_weight(graph, node->scope);
    }
    count_node(graph, node, 1);
    graph->subgraph[node->subgraph].end = id + 1;
    graph->has_order = graph->has_order || node->order != GD_NO_ORDER;
}

static void note_attrs(struct gd_graph *graph, gd_node_id node)
{
    const struct graph_extra *extra = graph->node[node].extra;

    for (uint32_t i = 0; extra && i < extra->attr_count; i++) {
        graph_note_attr(graph, node, &extra->attrs[i]);
    }
}

int gd_graph_add(struct gd_graph *graph, const struct gd_node_desc *desc, gd_node_id *ret,
                 struct gd_err *err)
{
    size_t len = desc->name ? strlen(desc->name) : 0;
    struct graph_node node = {.next_in_scope = GRAPH_NONE, .order = desc->order};
    struct gd_err scratch;

    err = err ? err : &scratch;
    int rc = check_desc(graph, desc, len, err);
    if (rc == GD_OK && graph->current == GRAPH_NONE) {
        rc = gd_graph_subgraph(graph, "main", false, NULL, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    uint64_t hash = graph_hash(graph, desc->name, len);
    if (graph_find_in(graph, &graph->names, desc->name, len, hash, graph->current) != GD_NO_NODE) {
        return gd_fail(err, GD_EINVAL, "graph '%.60s' already has a node '%.200s'",
                       graph->subgraph[graph->current].name, desc->name);
    }
    node.name_len = (uint32_t)len;
    node.subgraph = graph->current & 0x7fffffU;
    rc = graph_grow(graph, &graph->node, &graph->node_cap, (uint64_t)graph->node_count + 1,
                    sizeof(*graph->node), err);
    if (rc == GD_OK) {
        rc = graph_table_reserve(graph, &graph->names, err);
    }
    if (rc == GD_OK) {
        rc = fill_node(graph, &node, desc, hash, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (desc->kind > GD_NODE_AUTO && desc->kind < GD_NODE_KIND_COUNT) {
        node.kind = (unsigned)desc->kind & 0xf;
    } else {
        node.kind = (unsigned)graph_classify(node.name, len, graph->type[node.type].class) & 0xf;
    }
    publish_node(graph, &node, hash);
    note_attrs(graph, graph->node_count - 1);
    graph_note_micro_batch(graph, desc);
    if (ret) {
        *ret = graph->node_count - 1;
    }
    return GD_OK;
}

int gd_graph_connect(struct gd_graph *graph, gd_node_id node, const struct gd_edge *inputs,
                     uint32_t count, struct gd_err *err)
{
    struct gd_edge *run = NULL;
    struct gd_err scratch;
    uint32_t kept = 0;

    err = err ? err : &scratch;
    if (!graph_live(graph, node)) {
        return gd_fail(err, GD_EINVAL, "node number %u does not exist", node);
    }
    for (uint32_t i = 0; i < count; i++) {
        kept += graph_live(graph, inputs[i].node) != NULL;
    }
    if (kept) {
        run = graph_pool_alloc(graph, &graph->data, kept * sizeof(*run), 8, err);
        if (!run) {
            return err->code;
        }
        kept = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (graph_live(graph, inputs[i].node)) {
                run[kept++] = inputs[i];
            }
        }
    }
    if (node < graph->committed) {
        int rc = graph_note_reconnect(graph, node, run, kept, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    struct graph_node *rec = &graph->node[node];
    graph->subgraph[rec->subgraph].missing += count - kept;
    graph->edge_count += (uint64_t)kept - rec->input_count;
    rec->inputs = run;
    rec->input_count = kept;
    return GD_OK;
}

void gd_graph_set_order(struct gd_graph *graph, gd_node_id node, uint32_t order)
{
    if (graph_live(graph, node) && graph->node[node].order != order) {
        graph->changes += graph->node[node].order == GD_NO_ORDER;
        graph->node[node].order = order;
        graph->has_order = true;
        graph->lazy->execution_valid = false;
    }
}

int gd_graph_add_attrs(struct gd_graph *graph, gd_node_id node, const struct gd_attr *attrs,
                       uint32_t count, struct gd_err *err)
{
    const struct graph_extra *had = graph_live(graph, node) ? graph->node[node].extra : NULL;
    struct gd_node_desc desc = {.attr_count = count + (had ? had->attr_count : 0)};

    if (!graph_live(graph, node) || count == 0) {
        return GD_OK;
    }
    struct graph_extra *extra = graph_copy_extra(graph, had, err);
    if (!extra) {
        return err->code;
    }
    struct gd_attr *all = malloc(desc.attr_count * sizeof(*all));
    if (!all) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; i < desc.attr_count; i++) {
        all[i] = i < extra->attr_count ? extra->attrs[i] : attrs[i - extra->attr_count];
    }
    desc.attrs = all;
    int rc = copy_attrs(graph, extra, &desc, err);
    free(all);
    if (rc == GD_OK) {
        graph->node[node].extra = extra;
        note_attrs(graph, node);
    }
    return rc;
}

int gd_graph_set_attr(struct gd_graph *graph, gd_node_id node, const struct gd_attr *attr,
                      struct gd_err *err)
{
    struct graph_extra *had = graph_live(graph, node) ? graph->node[node].extra : NULL;

    for (uint32_t i = 0; had && i < had->attr_count; i++) {
        if (strcmp(had->attrs[i].name, attr->name) != 0) {
            continue;
        }
        const char *value = graph_text(graph, attr->value, strlen(attr->value), err);
        if (value) {
            had->attrs[i].value = value;
            graph_note_attr(graph, node, &had->attrs[i]);
        }
        return value ? GD_OK : err->code;
    }
    return gd_graph_add_attrs(graph, node, attr, 1, err);
}

int gd_graph_set_slots(struct gd_graph *graph, gd_node_id node, uint32_t outputs,
                       uint32_t input_slots, struct gd_err *err)
{
    struct gd_err local;
    struct graph_node *rec = graph_live(graph, node) ? &graph->node[node] : NULL;
    uint32_t had = rec ? rec->output_count : 0, blank, *many;
    uint64_t count = (uint64_t)(outputs > had ? outputs : had) + input_slots;

    err = err ? err : &local;
    if (!rec || (rec->extra && rec->extra->input_slots)) {
        return gd_fail(err, GD_EINVAL, "the slots of a node can be set only once");
    }
    if (count > GRAPH_MAX_OUTPUTS) {
        return gd_fail(err, GD_ELIMIT, "node '%.200s' has %llu slots, the limit is %d", rec->name,
                       (unsigned long long)count, GRAPH_MAX_OUTPUTS);
    }
    if (input_slots) {
        struct graph_extra *extra = graph_copy_extra(graph, rec->extra, err);
        if (!extra) {
            return err->code;
        }
        extra->input_slots = input_slots;
        rec->extra = extra;
    }
    if (count == had) {
        return GD_OK;
    }
    int rc = graph_intern_shape(graph, &(struct gd_output){.dtype = GD_DT_NONE}, &blank, err);
    if (rc != GD_OK) {
        return rc;
    }
    many = graph_pool_alloc(graph, &graph->data, (size_t)count * sizeof(*many), 8, err);
    if (!many) {
        return err->code;
    }
    for (uint32_t i = 0; i < count; i++) {
        many[i] = i >= had ? blank : had == 1 ? rec->output.one : rec->output.many[i];
    }
    if (count == 1) {
        rec->output.one = many[0];
    } else {
        rec->output.many = many;
    }
    rec->output_count = (uint32_t)count;
    graph->changes++;
    return GD_OK;
}

void gd_graph_set_output(struct gd_graph *graph, gd_node_id node, uint32_t slot,
                         const struct gd_output *output)
{
    struct gd_err err;
    uint32_t shape, *at;

    if (!graph_live(graph, node) || slot >= graph->node[node].output_count ||
        graph_intern_shape(graph, output, &shape, &err) != GD_OK) {
        return;
    }
    struct graph_node *rec = &graph->node[node];
    at = rec->output_count == 1 ? &rec->output.one : &rec->output.many[slot];
    graph->changes += graph->shape[*at]->dtype != graph->shape[shape]->dtype;
    *at = shape;
}

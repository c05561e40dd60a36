// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/progress.h"
#include "proto/v1/v1_impl.h"

#define MAX_NAME  8192
#define MAX_SLOTS 4096
#define MAX_NOTES 65536             /* attributes or frames per node */
#define MAX_EDGES ((size_t)1 << 28) /* between two commits */

void v1_graph_free(struct v1_target *target)
{
    gd_progress_end(target->graph_progress);
    free(target->gd_of_wire);
    free(target->wire_of_gd);
    free(target->edges);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Records both numbers of a node. */
static int number_node(struct v1_target *t, gd_node_id node, struct gd_err *err)
{
    size_t known = t->gd_capacity;
    gd_node_id *gd = gd_grow(t->gd_of_wire, t->wire_count, &t->wire_capacity, sizeof(*gd));
    t->gd_of_wire = gd ? gd : t->gd_of_wire;
    uint32_t *wire = gd_grow_to(t->wire_of_gd, node + 1, &t->gd_capacity, sizeof(*wire));
    t->wire_of_gd = wire ? wire : t->wire_of_gd;
    if (!gd || !wire) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %u nodes", t->wire_count + 1);
    }
    memset(wire + known, 0, (t->gd_capacity - known) * sizeof(*wire));
    gd[t->wire_count++] = node;
    wire[node] = t->wire_count;
    return GD_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int convert_outputs(const Gradb__V1__Node *m, struct gd_arena *arena,
                           struct gd_node_desc *desc, struct gd_err *err)
{
    struct gd_output *outputs = gd_arena_zalloc(arena, (m->n_outputs + 1) * sizeof(*outputs));
    if (!outputs) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a node");
    }
    for (size_t i = 0; i < m->n_outputs; i++) {
        const Gradb__V1__Output *from = m->outputs[i];
        int rc = v1_shape(from->n_shape, from->shape, true, &outputs[i].shape, err);
        if (rc != GD_OK) {
            return rc;
        }
        outputs[i].dtype = v1_dtype(from->dtype);
    }
    desc->outputs = outputs;
    desc->output_count = (uint32_t)m->n_outputs;
    return GD_OK;
}

/* The phase becomes an attribute, unless the training process sends it as one. */
static int convert_notes(const Gradb__V1__Node *m, struct gd_arena *arena,
                         struct gd_node_desc *desc, struct gd_err *err)
{
    struct gd_attr *attrs = gd_arena_alloc(arena, (m->n_attrs + 1) * sizeof(*attrs));
    struct gd_frame *frames = gd_arena_zalloc(arena, (m->n_frames + 1) * sizeof(*frames));
    const char *phase = v1_phase_name(m->phase);
    if (!attrs || !frames) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a node");
    }
    for (size_t i = 0; i < m->n_attrs; i++) {
        attrs[i].name = m->attrs[i]->name;
        attrs[i].value = m->attrs[i]->value;
        if (strcmp(attrs[i].name, "phase") == 0) {
            phase = "";
        } else if (strcmp(attrs[i].name, GD_IR_NAME) == 0) {
            desc->wire_name = attrs[i].value; /* users may write it, too */
        }
    }
    desc->attrs = attrs;
    desc->attr_count = (uint32_t)m->n_attrs;
    if (phase[0]) {
        attrs[desc->attr_count].name = "phase";
        attrs[desc->attr_count++].value = phase;
    }
    for (size_t i = 0; i < m->n_frames; i++) {
        const Gradb__V1__Frame *from = m->frames[i];
        frames[i].file = from->file;
        frames[i].line = from->line;
        frames[i].function = from->function;
        frames[i].code = from->code;
        frames[i].library = from->library;
        frames[i].told = true;
    }
    desc->frames = frames;
    desc->frame_count = (uint32_t)m->n_frames;
    return GD_OK;
}

static int check_node(const struct v1_target *t, const Gradb__V1__Node *m, struct gd_err *err)
{
    if (m->id != t->wire_count + 1) {
        return gd_fail(err, GD_EPROTO, "node number %u follows %u: numbers must increase by one",
                       m->id, t->wire_count);
    }
    size_t len = strlen(m->name);
    if (len == 0 || len > MAX_NAME || strlen(m->type) > MAX_NAME) {
        return gd_fail(err, GD_EPROTO, "node %u has a name of %zu bytes: must be 1 to %d", m->id,
                       len, MAX_NAME);
    }
    if (m->n_outputs > MAX_SLOTS || m->n_attrs > MAX_NOTES || m->n_frames > MAX_NOTES) {
        return gd_fail(err, GD_EPROTO,
                       "node %.100s has more than %d outputs or %d attributes or frames", m->name,
                       MAX_SLOTS, MAX_NOTES);
    }
    return GD_OK;
}

static int reserve_edges(struct v1_target *t, size_t count, struct gd_err *err)
{
    if (count > MAX_EDGES - t->edge_count) {
        return gd_fail(err, GD_ELIMIT, "more than %zu edges before a commit", MAX_EDGES);
    }
    struct v1_edge *edges =
        gd_grow_to(t->edges, t->edge_count + count, &t->edge_capacity, sizeof(*edges));
    if (!edges) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the graph's edges");
    }
    t->edges = edges;
    return GD_OK;
}

static int add_edges(struct v1_target *t, uint32_t node, size_t count,
                     Gradb__V1__Input *const *inputs, struct gd_err *err)
{
    int rc = reserve_edges(t, count, err);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        uint32_t slot = inputs[i]->slot;
        t->edges[t->edge_count++] = (struct v1_edge){
            .node = node,
            .producer = slot < MAX_SLOTS ? inputs[i]->node : 0, /* 0 counts as missing */
            .slot = (uint16_t)(slot < MAX_SLOTS ? slot : 0),
            .control = inputs[i]->control,
        };
    }
    return rc;
}

static int add_more(struct v1_target *t, const Gradb__V1__MoreInputs *more, struct gd_err *err)
{
    if (more->node == 0 || more->node > t->wire_count) {
        return gd_fail(err, GD_EPROTO, "more inputs for node %u, which was not sent", more->node);
    }
    int rc = more->replace ? reserve_edges(t, 1, err) : GD_OK;
    if (rc == GD_OK && more->replace) {
        t->edges[t->edge_count++] = (struct v1_edge){.node = more->node, .replace = true};
    }
    return rc == GD_OK ? add_edges(t, more->node, more->n_inputs, more->inputs, err) : rc;
}

/* For two nodes with one name: appends its number to the second. */
static int add_renamed(struct v1_target *t, struct gd_node_desc *desc, uint32_t id, gd_node_id *ret,
                       struct gd_err *err)
{
    char name[MAX_NAME + 32];
    snprintf(name, sizeof(name), "%s#%u", desc->name, id);
    if (!t->renamed_warned) {
        char text[256];
        snprintf(text, sizeof(text), "two nodes are named %.120s: the second is shown as ...#%u",
                 desc->name, id);
        t->renamed_warned = true;
        gd_session_on_warning(t->base.session, text);
    }
    desc->name = name;
    return gd_graph_add(t->base.session->graph, desc, ret, err);
}

static int add_node(struct v1_target *t, const Gradb__V1__Node *m, struct gd_arena *arena,
                    struct gd_err *err)
{
    struct gd_graph *graph = t->base.session->graph;
    struct gd_node_desc desc = {.name = m->name, .type = m->type};
    int rc = check_node(t, m, err);
    if (rc == GD_OK) {
        rc = convert_outputs(m, arena, &desc, err);
    }
    if (rc == GD_OK) {
        rc = convert_notes(m, arena, &desc, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    desc.kind = (int)m->kind >= 0 && (int)m->kind < GD_NODE_KIND_COUNT ? (enum gd_node_kind)m->kind
                                                                       : GD_NODE_AUTO;
    desc.order = m->order ? m->order : GD_NO_ORDER;
    gd_node_id node = GD_NO_NODE;
    rc = gd_graph_add(graph, &desc, &node, err);
    if (rc == GD_EINVAL) {
        rc = add_renamed(t, &desc, m->id, &node, err);
    }
    if (rc == GD_OK) {
        rc = number_node(t, node, err);
    }
    return rc != GD_OK ? rc : add_edges(t, m->id, m->n_inputs, m->inputs, err);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static int change_outputs(struct v1_target *t, const Gradb__V1__GraphChunk *chunk,
                          struct gd_err *err)
{
    for (size_t i = 0; i < chunk->n_new_outputs; i++) {
        const Gradb__V1__NewOutput *m = chunk->new_outputs[i];
        gd_node_id node = v1_graph_node(t, m->node);
        struct gd_output output = {0};
        if (node == GD_NO_NODE || !m->output) {
            continue;
        }
        int rc = v1_shape(m->output->n_shape, m->output->shape, true, &output.shape, err);
        if (rc != GD_OK) {
            return rc;
        }
        output.dtype = v1_dtype(m->output->dtype);
        gd_graph_set_output(t->base.session->graph, node, m->slot, &output);
    }
    return GD_OK;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static int change_attrs(struct v1_target *t, const Gradb__V1__NewAttrs *m, struct gd_err *err)
{
    gd_node_id node = v1_graph_node(t, m->node);
    int rc = GD_OK;
    if (m->n_attrs > MAX_NOTES) {
        return gd_fail(err, GD_EPROTO, "node %u has more than %d new attributes", m->node,
                       MAX_NOTES);
    }
    for (size_t i = 0; rc == GD_OK && node != GD_NO_NODE && i < m->n_attrs; i++) {
        struct gd_attr attr = {.name = m->attrs[i]->name, .value = m->attrs[i]->value};
        rc = gd_graph_set_attr(t->base.session->graph, node, &attr, err);
    }
    return rc;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int enter_subgraph(struct v1_target *t, const Gradb__V1__GraphChunk *chunk,
                          struct gd_err *err)
{
    const char *name = chunk->graph[0] ? chunk->graph : "main";
    if (strlen(name) >= sizeof(t->subgraph)) {
        return gd_fail(err, GD_EPROTO, "a subgraph's name has more than %zu bytes",
                       sizeof(t->subgraph) - 1);
    }
    if (t->has_subgraph && !chunk->replace && strcmp(t->subgraph, name) == 0) {
        return GD_OK;
    }
    uint32_t number = 0;
    int rc = gd_graph_subgraph(t->base.session->graph, name, chunk->replace, &number, err);
    if (rc == GD_OK) {
        snprintf(t->subgraph, sizeof(t->subgraph), "%s", name);
        t->has_subgraph = true;
    }
    return rc;
}

static int add_nodes(struct v1_target *t, const Gradb__V1__GraphChunk *chunk, struct gd_err *err)
{
    int rc = GD_OK;
    struct gd_arena arena;
    gd_arena_init(&arena, 0);
    for (size_t i = 0; rc == GD_OK && i < chunk->n_nodes; i++) {
        rc = add_node(t, chunk->nodes[i], &arena, err);
        if (arena.used > (1 << 20)) {
            gd_arena_deinit(&arena);
            gd_arena_init(&arena, 0);
        }
    }
    gd_arena_deinit(&arena);
    return rc;
}

int v1_graph_chunk(struct v1_target *t, const Gradb__V1__GraphChunk *chunk, size_t len,
                   struct gd_err *err)
{
    uint64_t max = t->service->debugger->settings.max_graph;
    t->graph_bytes += len;
    if (t->graph_bytes > max) {
        return gd_fail(err, GD_ELIMIT, "the graph exceeds max-graph, %llu bytes (`set max-graph`)",
                       (unsigned long long)max);
    }
    if (!t->graph_progress) { /* its size is not announced */
        t->graph_progress =
            gd_progress_begin(t->service->debugger, "receiving the graph", "nodes", 0);
    }
    int rc = enter_subgraph(t, chunk, err);
    if (rc == GD_OK) {
        rc = add_nodes(t, chunk, err);
    }
    for (size_t i = 0; rc == GD_OK && i < chunk->n_more_inputs; i++) {
        rc = add_more(t, chunk->more_inputs[i], err);
    }
    if (rc == GD_OK) {
        rc = change_outputs(t, chunk, err);
    }
    for (size_t i = 0; rc == GD_OK && i < chunk->n_new_attrs; i++) {
        rc = change_attrs(t, chunk->new_attrs[i], err);
    }
    gd_progress_at(t->graph_progress, t->wire_count);
    if (rc != GD_OK || !chunk->commit) {
        return rc;
    }
    t->graph_sequence = chunk->sequence ? chunk->sequence : t->graph_sequence;
    return v1_ingest_begin(t, err);
}

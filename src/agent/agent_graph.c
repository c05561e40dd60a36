// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_graph.h"
#include "agent/agent_mark.h"
#include "agent/agent_metric.h"
#include "agent/agent_tensor.h"
#include "agent/agent_turn.h"
#include "base/grow.h"
#include "proto/envelope.h"

#define MAX_NODES (UINT32_C(1) << 30)

static bool same_geometry(const struct agent_slot *slot, const gradb_tensor *tensor)
{
    if (slot->dtype != (unsigned)tensor->dtype || slot->rank != tensor->rank) {
        return false;
    }
    for (int i = 0; i < tensor->rank; i++) {
        if (!tensor->shape || slot->geometry[i] != tensor->shape[i]) {
            return false;
        }
    }
    return true;
}

/* The fast path for a type and shape validated before: usually only the address has changed. */
static bool slot_move(struct agent_slot *slot, const gradb_tensor *tensor)
{
    if (!slot->checked || !tensor->data || !tensor->strides) {
        return false;
    }
    for (int i = 0; i < tensor->rank; i++) {
        slot->geometry[tensor->rank + i] = tensor->strides[i];
    }
    slot->data = tensor->data;
    slot->bound = true;
    return true;
}

static bool tensor_is_sane(const gradb_tensor *tensor)
{
    if (tensor->rank < 0 || tensor->rank > GRADB_MAX_RANK || (tensor->rank > 0 && !tensor->shape) ||
        (int)tensor->dtype < 0 || (int)tensor->dtype >= GD_DT_COUNT) {
        return false;
    }
    struct gd_shape shape = {.rank = tensor->rank};
    for (int i = 0; i < tensor->rank; i++) {
        shape.dim[i] = tensor->shape[i];
    }
    if (!tensor->data) { /* only described: dimensions may be unknown */
        return true;
    }
    size_t bytes = 0;
    return gd_shape_bytes(&shape, (enum gd_dtype)tensor->dtype, &bytes, NULL) == GD_OK;
}

/* Copies a tensor's geometry and address into a slot. False: malformed, or out of memory. */
static bool set_slot(struct agent_slot *slot, const gradb_tensor *tensor)
{
    if (!tensor_is_sane(tensor)) {
        return false;
    }
    if (tensor->rank > slot->geometry_rank) {
        int64_t *more = realloc(slot->geometry, (size_t)tensor->rank * 2 * sizeof(*slot->geometry));
        if (!more) {
            return false;
        }
        slot->geometry = more;
        slot->geometry_rank = (uint8_t)tensor->rank;
    }
    struct gd_shape shape = {.rank = tensor->rank};
    int64_t stride[GD_MAX_RANK] = {0};
    for (int i = 0; i < tensor->rank; i++) {
        shape.dim[i] = tensor->shape[i];
    }
    if (tensor->strides) {
        memcpy(stride, tensor->strides, (size_t)tensor->rank * sizeof(int64_t));
    } else if (tensor->data) {
        gd_shape_strides(&shape, gd_dtype_size((enum gd_dtype)tensor->dtype), stride);
    }
    for (int i = 0; i < tensor->rank; i++) {
        slot->geometry[i] = shape.dim[i];
        slot->geometry[tensor->rank + i] = stride[i];
    }
    slot->dtype = (uint8_t)tensor->dtype;
    slot->rank = (uint8_t)tensor->rank;
    slot->data = tensor->data;
    slot->checked = tensor->data != NULL;
    slot->bound = tensor->data || gd_shape_count(&shape) == 0;
    return true;
}

/* ---- adding ------------------------------------------------------------------------------- */

static bool nodes_grow(struct agent *a)
{
    if (a->node_count < a->node_capacity) {
        return true;
    }
    size_t capacity = a->node_capacity;
    struct agent_node *more = gd_grow(a->nodes, a->node_count, &capacity, sizeof(*more));
    a->nodes = more ? more : a->nodes;
    struct agent_pass *passes =
        more && capacity <= MAX_NODES ? calloc(capacity, sizeof(*passes)) : NULL;
    if (!passes) {
        return false;
    }
    for (uint32_t id = 0; id < a->node_count; id++) {
        /* a hook may be writing it at this moment: that run is lost */
        struct agent_pass *from = &a->passes[id];
        passes[id].phase = from->phase;
        atomic_init(&passes[id].marked, atomic_load(&from->marked));
        atomic_init(&passes[id].ran_step, atomic_load(&from->ran_step));
    }
    if (a->passes) {
        a->old_passes[a->old_pass_count++] = a->passes;
    }
    a->passes = passes;
    a->node_capacity = (uint32_t)capacity;
    if (a->node_count == 0) { /* id 0 is never a node */
        memset(&a->nodes[0], 0, sizeof(a->nodes[0]));
        a->node_count = 1;
    }
    return true;
}

static bool copy_attrs(struct agent *a, const gradb_node_info *info, struct agent_node *node)
{
    gradb_attr *attrs = gd_arena_alloc(&a->arena, (info->attr_count + 1) * sizeof(*attrs));
    gradb_frame *frames = gd_arena_alloc(&a->arena, (info->frame_count + 1) * sizeof(*frames));
    if (!attrs || !frames) {
        return false;
    }
    for (size_t i = 0; i < info->attr_count; i++) {
        const gradb_attr *from = &info->attrs[i];
        attrs[i].name = gd_arena_strdup(&a->arena, from->name ? from->name : "");
        attrs[i].value = gd_arena_strdup(&a->arena, from->value ? from->value : "");
        if (!attrs[i].name || !attrs[i].value) {
            return false;
        }
    }
    for (size_t i = 0; i < info->frame_count; i++) {
        const gradb_frame *from = &info->frames[i];
        frames[i].file = gd_arena_strdup(&a->arena, from->file ? from->file : "");
        frames[i].function = gd_arena_strdup(&a->arena, from->function ? from->function : "");
        frames[i].line = from->line;
        frames[i].library = from->library;
        if (!frames[i].file || !frames[i].function) {
            return false;
        }
    }
    node->attrs = attrs;
    node->attr_count = (uint32_t)info->attr_count;
    node->frames = frames;
    node->frame_count = (uint32_t)info->frame_count;
    return true;
}

static bool copy_edges(struct agent *a, const gradb_node_info *info, struct agent_node *node)
{
    gradb_input *inputs = gd_arena_alloc(&a->arena, (info->input_count + 1) * sizeof(*inputs));
    size_t bytes = (info->output_count + 1) * sizeof(*node->slots);
    node->slots = gd_arena_zalloc(&a->arena, bytes);
    if (!inputs || !node->slots) {
        return false;
    }
    if (info->input_count) {
        memcpy(inputs, info->inputs, info->input_count * sizeof(*inputs));
    }
    node->inputs = inputs;
    node->input_count = node->input_room = (uint32_t)info->input_count;
    node->slot_count = (uint32_t)info->output_count;
    for (size_t i = 0; i < info->output_count; i++) {
        if (!set_slot(&node->slots[i], &info->outputs[i])) {
            return false;
        }
    }
    return true;
}

/* A compiled node has no slots: any number is only shown. */
static bool is_input(const struct agent_node *from, const gradb_input *input)
{
    return from &&
           (input->control || from->kind == GRADB_COMPILED || input->slot < from->slot_count);
}

static bool info_is_sane(struct agent *a, const gradb_node_info *info)
{
    if (!info || !info->name || !info->name[0] || info->output_count > AGENT_MAX_SLOTS ||
        info->input_count > UINT32_MAX / 2 || info->attr_count > UINT32_MAX / 2 ||
        info->frame_count > UINT32_MAX / 2) {
        agent_set_error(a, "gradb_add_node: no name, or more than %d outputs", AGENT_MAX_SLOTS);
        return false;
    }
    for (size_t i = 0; i < info->input_count; i++) {
        const gradb_input *input = &info->inputs[i];
        const struct agent_node *from = agent_node_at(a, input->node);
        if (!is_input(from, input)) {
            agent_set_error(
                a, "gradb_add_node: input %zu of %.100s is node %u slot %u, which was not added", i,
                info->name, input->node, input->slot);
            return false;
        }
    }
    for (size_t i = 0; i < info->output_count; i++) {
        if (!tensor_is_sane(&info->outputs[i])) {
            agent_set_error(a, "gradb_add_node: output %zu of %.100s has a bad type or shape", i,
                            info->name);
            return false;
        }
    }
    return true;
}

static void slots_free(struct agent_node *node)
{
    for (uint32_t i = 0; node->slots && i < node->slot_count; i++) {
        free(node->slots[i].geometry);
        agent_copy_free(node->slots[i].previous);
        agent_copy_free(node->slots[i].captured);
    }
}

static gradb_node add_node(struct agent *a, const gradb_node_info *info)
{
    if (!info_is_sane(a, info)) {
        return 0;
    }
    if (!nodes_grow(a)) {
        agent_set_error(a, "gradb_add_node: out of memory");
        return 0;
    }
    struct agent_node *node = &a->nodes[a->node_count];
    memset(node, 0, sizeof(*node));
    node->name = gd_arena_strdup(&a->arena, info->name);
    node->type = gd_arena_strdup(&a->arena, info->type ? info->type : "");
    node->kind = (uint8_t)info->kind;
    node->phase = (uint8_t)info->phase;
    node->first_step = PEEK(a->step) + !PEEK(a->in_step);
    if (!node->name || !node->type || !copy_attrs(a, info, node) || !copy_edges(a, info, node)) {
        slots_free(node);
        agent_set_error(a, "gradb_add_node: out of memory at %.100s", info->name);
        return 0;
    }
    struct agent_pass *pass = &a->passes[a->node_count];
    memset(pass, 0, sizeof(*pass));
    pass->phase = node->phase;
    bool expected = a->expected.count && agent_is_expected(a, node->name);
    if (expected || a->expected.not_finite) { /* until the debugger has seen it */
        pass->marked = expected ? MARK_RUN : MARK_NOT_FINITE;
        a->expected.added = true;
    }
    return a->node_count++;
}

gradb_node gradb_add_node(gradb *g, const gradb_node_info *info)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return 0;
    }
    agent_table_lock(a);
    gradb_node id = add_node(a, info);
    agent_metric_added(a, id);
    pthread_mutex_unlock(&a->lock);
    return id;
}

void gradb_add_inputs(gradb *g, gradb_node node, const gradb_input *inputs, size_t count)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a) || !inputs || count == 0) {
        return;
    }
    agent_table_lock(a);
    struct agent_late_input *late = NULL;
    if (agent_node_at(a, node) && count <= UINT32_MAX / 2) {
        late = gd_grow_to(a->late, a->late_count + count, &a->late_capacity, sizeof(*late));
    }
    if (!late) {
        agent_set_error(a, "gradb_add_inputs: node %u was not added, or out of memory", node);
    } else {
        a->late = late;
        a->graph_changes++;
        for (size_t i = 0; i < count; i++) {
            late[a->late_count++] = (struct agent_late_input){node, inputs[i]};
        }
    }
    pthread_mutex_unlock(&a->lock);
}

static void set_inputs(struct agent *a, struct agent_node *node, const gradb_input *inputs,
                       uint32_t count)
{
    if (count > node->input_room) {
        gradb_input *more = gd_arena_alloc(&a->arena, 2 * (size_t)count * sizeof(*more));
        if (!more) {
            agent_set_error(a, "gradb_set_inputs: out of memory at %.100s", node->name);
            return;
        }
        node->inputs = more;
        node->input_room = 2 * count;
    }
    if (count) {
        memcpy(node->inputs, inputs, count * sizeof(*inputs));
    }
    node->input_count = count;
    node->flags |= NODE_INPUTS_NEW;
    a->inputs_new = true;
    a->graph_changes++;
}

void gradb_set_inputs(gradb *g, gradb_node node, const gradb_input *inputs, size_t count)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a) || (!inputs && count > 0)) {
        return;
    }
    agent_table_lock(a);
    struct agent_node *n = agent_node_at(a, node);
    bool known = n && count <= UINT32_MAX / 4;
    for (size_t i = 0; known && i < count; i++) {
        known = is_input(agent_node_at(a, inputs[i].node), &inputs[i]);
    }
    if (known) {
        set_inputs(a, n, inputs, (uint32_t)count);
    } else {
        agent_set_error(a, "gradb_set_inputs: node %u or one of its inputs was not added", node);
    }
    pthread_mutex_unlock(&a->lock);
}

static bool set_attr(struct agent *a, struct agent_node *node, const char *name, const char *value)
{
    uint32_t at = 0;
    while (at < node->attr_count && strcmp(node->attrs[at].name, name) != 0) {
        at++;
    }
    gradb_attr *attrs = gd_arena_alloc(&a->arena, (node->attr_count + 1) * sizeof(*attrs));
    const char *own_name = gd_arena_strdup(&a->arena, name);
    const char *own_value = gd_arena_strdup(&a->arena, value);
    if (!attrs || !own_name || !own_value) {
        return false;
    }
    memcpy(attrs, node->attrs, node->attr_count * sizeof(*attrs));
    attrs[at] = (gradb_attr){own_name, own_value};
    node->attrs = attrs;
    node->attr_count += at == node->attr_count;
    return true;
}

void gradb_set_attr(gradb *g, gradb_node node, const char *name, const char *value)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a) || !name || !value) {
        return;
    }
    agent_table_lock(a);
    struct agent_node *n = agent_node_at(a, node);
    if (!n || !set_attr(a, n, name, value)) {
        agent_set_error(a, "gradb_set_attr: node %u was not added, or out of memory", node);
    } else {
        n->flags |= NODE_ATTRS_NEW;
        a->attrs_new = true;
        a->graph_changes++;
    }
    pthread_mutex_unlock(&a->lock);
}

void agent_bind(struct agent *a, gradb_node node, unsigned slot, const gradb_tensor *tensor)
{
    struct agent_node *n = agent_node_at(a, node);
    if (!n || slot >= n->slot_count) {
        agent_set_error(a, "gradb_bind: node %u has no slot %u", node, slot);
    } else if (!tensor || tensor->dtype == 0) { /* type and shape stay known */
        n->slots[slot].bound = false;
        n->slots[slot].data = NULL;
        if (tensor) { /* no value this time */
            n->slots[slot].empty_step = PEEK(a->step);
        }
    } else {
        bool same = same_geometry(&n->slots[slot], tensor);
        if (same && slot_move(&n->slots[slot], tensor)) {
            return;
        }
        if (!set_slot(&n->slots[slot], tensor)) {
            agent_set_error(a, "gradb_bind: bad type or shape for %.100s:%u", n->name, slot);
        } else if (!same) {
            n->flags |= NODE_OUTPUT_NEW;
            a->outputs_new = true;
        }
    }
}

void gradb_bind(gradb *g, gradb_node node, unsigned slot, const gradb_tensor *tensor)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return;
    }
    agent_table_lock(a);
    agent_bind(a, node, slot, tensor);
    const struct agent_node *n = agent_node_at(a, node);
    a->kept.stale = a->kept.stale || (n && n->flags & (NODE_KEEP | NODE_KEEP_WATCH));
    pthread_mutex_unlock(&a->lock);
}

static void set_flag(gradb *g, gradb_node node, enum agent_node_flag flag)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return;
    }
    agent_table_lock(a);
    struct agent_node *n = agent_node_at(a, node);
    if (n) {
        n->flags = (uint16_t)(n->flags | flag);
    }
    pthread_mutex_unlock(&a->lock);
}

void gradb_lasts(gradb *g, gradb_node node)
{
    set_flag(g, node, NODE_LASTS);
}

void gradb_momentary(gradb *g, gradb_node node)
{
    set_flag(g, node, NODE_MOMENTARY);
}

void gradb_publish(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->published = a->node_count;
    a->late_published = a->late_count;
    pthread_mutex_unlock(&a->lock);
    agent_wake(a);
}

void agent_graph_free(struct agent *a)
{
    for (uint32_t i = 1; i < a->node_count; i++) {
        slots_free(&a->nodes[i]);
    }
    free(a->nodes);
    free(a->passes);
    while (a->old_pass_count > 0) {
        free(a->old_passes[--a->old_pass_count]);
    }
    free(a->late);
    gd_arena_deinit(&a->arena);
}

/* ---- sending ------------------------------------------------------------------------------- */

/* The arrays of one chunk's messages, in its own arena. */
struct chunk {
    struct gd_arena arena;
    size_t bytes; /* estimate of the packed size */
    bool failed;
};

static void *chunk_alloc(struct chunk *chunk, size_t count, size_t size)
{
    void *p = gd_arena_zalloc(&chunk->arena, (count ? count : 1) * size);
    if (!p) {
        chunk->failed = true;
    }
    return p;
}

static Gradb__V1__Input *encode_input(struct chunk *chunk, const gradb_input *input)
{
    Gradb__V1__Input *m = chunk_alloc(chunk, 1, sizeof(*m));
    if (m) {
        gradb__v1__input__init(m);
        m->node = input->node;
        m->slot = input->slot;
        m->control = input->control;
    }
    return m;
}

static Gradb__V1__Output *encode_output(struct chunk *chunk, const struct agent_slot *slot)
{
    Gradb__V1__Output *m = chunk_alloc(chunk, 1, sizeof(*m));
    if (m) {
        gradb__v1__output__init(m);
        m->dtype = (Gradb__V1__DataType)slot->dtype;
        m->n_shape = slot->rank;
        m->shape = slot->geometry;
    }
    return m;
}

/* NULL: out of memory. */
static Gradb__V1__Attr **encode_attrs(struct chunk *chunk, const struct agent_node *node)
{
    Gradb__V1__Attr **ret = chunk_alloc(chunk, node->attr_count, sizeof(*ret));
    Gradb__V1__Attr *attrs = chunk_alloc(chunk, node->attr_count, sizeof(*attrs));
    for (uint32_t i = 0; !chunk->failed && i < node->attr_count; i++) {
        gradb__v1__attr__init(&attrs[i]);
        attrs[i].name = gd_envelope_text(node->attrs[i].name);
        attrs[i].value = gd_envelope_text(node->attrs[i].value);
        ret[i] = &attrs[i];
    }
    return chunk->failed ? NULL : ret;
}

static void encode_notes(struct chunk *chunk, const struct agent_node *node, Gradb__V1__Node *m)
{
    m->attrs = encode_attrs(chunk, node);
    m->frames = chunk_alloc(chunk, node->frame_count, sizeof(Gradb__V1__Frame *));
    Gradb__V1__Frame *frames = chunk_alloc(chunk, node->frame_count, sizeof(*frames));
    if (chunk->failed) {
        return;
    }
    m->n_attrs = node->attr_count;
    for (uint32_t i = 0; i < node->frame_count; i++) {
        gradb__v1__frame__init(&frames[i]);
        frames[i].file = gd_envelope_text(node->frames[i].file);
        frames[i].function = gd_envelope_text(node->frames[i].function);
        frames[i].line = node->frames[i].line > 0 ? (uint32_t)node->frames[i].line : 0;
        frames[i].library = node->frames[i].library;
        m->frames[m->n_frames++] = &frames[i];
    }
}

static Gradb__V1__Node *encode_node(struct chunk *chunk, const struct agent *a, uint32_t id)
{
    const struct agent_node *node = &a->nodes[id];
    Gradb__V1__Node *m = chunk_alloc(chunk, 1, sizeof(*m));
    if (!m) {
        return NULL;
    }
    gradb__v1__node__init(m);
    m->id = id;
    m->name = gd_envelope_text(node->name);
    m->type = gd_envelope_text(node->type);
    m->kind = (Gradb__V1__NodeKind)node->kind;
    m->phase = (Gradb__V1__Phase)node->phase;
    m->order = node->phase ? id : 0; /* parameters do not execute */
    m->inputs = chunk_alloc(chunk, node->input_count, sizeof(Gradb__V1__Input *));
    m->outputs = chunk_alloc(chunk, node->slot_count, sizeof(Gradb__V1__Output *));
    if (chunk->failed) {
        return NULL;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        /* later inputs follow at the stop at which their nodes are sent */
        if (node->inputs[i].node < a->published) {
            m->inputs[m->n_inputs++] = encode_input(chunk, &node->inputs[i]);
        }
    }
    for (uint32_t i = 0; i < node->slot_count; i++) {
        m->outputs[m->n_outputs++] = encode_output(chunk, &node->slots[i]);
    }
    encode_notes(chunk, node, m);
    if (chunk->failed) {
        return NULL;
    }
    chunk->bytes += gradb__v1__node__get_packed_size(m) + 8;
    return m;
}

#define CHUNK_NODES 1024

static void chunk_nodes(struct chunk *chunk, struct agent *a, struct agent_graph_cursor *cursor,
                        Gradb__V1__GraphChunk *m)
{
    m->nodes = chunk_alloc(chunk, CHUNK_NODES, sizeof(Gradb__V1__Node *));
    while (!chunk->failed && cursor->next_node < a->published && m->n_nodes < CHUNK_NODES &&
           chunk->bytes < AGENT_CHUNK) {
        Gradb__V1__Node *node = encode_node(chunk, a, cursor->next_node);
        if (node) {
            m->nodes[m->n_nodes++] = node;
            struct agent_node *sent = &a->nodes[cursor->next_node];
            bool whole = node->n_inputs == sent->input_count;
            sent->flags &=
                (uint16_t) ~(NODE_OUTPUT_NEW | NODE_ATTRS_NEW | (whole ? NODE_INPUTS_NEW : 0));
            cursor->next_node++;
        }
    }
}

static void chunk_late(struct chunk *chunk, struct agent *a, struct agent_graph_cursor *cursor,
                       Gradb__V1__GraphChunk *m)
{
    size_t left = a->late_published - cursor->next_late;
    left = left < 4 * CHUNK_NODES ? left : 4 * CHUNK_NODES;
    m->more_inputs = chunk_alloc(chunk, left, sizeof(Gradb__V1__MoreInputs *));
    for (size_t i = 0; !chunk->failed && i < left; i++) {
        const struct agent_late_input *late = &a->late[cursor->next_late];
        Gradb__V1__MoreInputs *more = chunk_alloc(chunk, 1, sizeof(*more));
        Gradb__V1__Input **inputs = chunk_alloc(chunk, 1, sizeof(Gradb__V1__Input *));
        Gradb__V1__Input *input = encode_input(chunk, &late->input);
        if (!more || !inputs || !input) {
            return;
        }
        gradb__v1__more_inputs__init(more);
        inputs[0] = input;
        more->node = late->node;
        more->inputs = inputs;
        more->n_inputs = 1;
        m->more_inputs[m->n_more_inputs++] = more;
        cursor->next_late++;
    }
}

static void chunk_input(struct chunk *chunk, uint32_t id, const struct agent_node *node,
                        Gradb__V1__GraphChunk *m)
{
    Gradb__V1__MoreInputs *more = chunk_alloc(chunk, 1, sizeof(*more));
    Gradb__V1__Input **inputs = chunk_alloc(chunk, node->input_count, sizeof(*inputs));
    if (!more || !inputs) {
        return;
    }
    gradb__v1__more_inputs__init(more);
    more->node = id;
    more->replace = true;
    more->inputs = inputs;
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[more->n_inputs++] = encode_input(chunk, &node->inputs[i]);
    }
    chunk->bytes += gradb__v1__more_inputs__get_packed_size(more) + 8;
    m->more_inputs[m->n_more_inputs++] = more;
}

/* Nodes whose inputs were replaced. Sent only at a stop, as in chunk_outputs. */
static void chunk_inputs(struct chunk *chunk, struct agent *a, uint32_t sent,
                         Gradb__V1__GraphChunk *m)
{
    if (!a->inputs_new || !a->stopped || m->n_more_inputs) {
        return;
    }
    m->more_inputs = chunk_alloc(chunk, CHUNK_NODES, sizeof(Gradb__V1__MoreInputs *));
    for (uint32_t id = 1; !chunk->failed && id < sent; id++) {
        struct agent_node *node = &a->nodes[id];
        if (!(node->flags & NODE_INPUTS_NEW)) {
            continue;
        }
        if (m->n_more_inputs == CHUNK_NODES || chunk->bytes >= AGENT_CHUNK) {
            return;
        }
        chunk_input(chunk, id, node, m);
        node->flags &= (uint16_t)~NODE_INPUTS_NEW;
    }
    a->inputs_new = chunk->failed;
}

/* Nodes whose attributes were set since they were sent. Sent only at a stop. */
static void chunk_attrs(struct chunk *chunk, struct agent *a, uint32_t sent,
                        Gradb__V1__GraphChunk *m)
{
    if (!a->attrs_new || !a->stopped) {
        return;
    }
    m->new_attrs = chunk_alloc(chunk, CHUNK_NODES, sizeof(Gradb__V1__NewAttrs *));
    for (uint32_t id = 1; !chunk->failed && id < sent; id++) {
        struct agent_node *node = &a->nodes[id];
        if (!(node->flags & NODE_ATTRS_NEW)) {
            continue;
        }
        if (m->n_new_attrs == CHUNK_NODES || chunk->bytes >= AGENT_CHUNK) {
            return;
        }
        Gradb__V1__NewAttrs *attrs = chunk_alloc(chunk, 1, sizeof(*attrs));
        if (!attrs) {
            return;
        }
        gradb__v1__new_attrs__init(attrs);
        attrs->node = id;
        attrs->attrs = encode_attrs(chunk, node);
        if (!attrs->attrs) {
            return;
        }
        attrs->n_attrs = node->attr_count;
        chunk->bytes += gradb__v1__new_attrs__get_packed_size(attrs) + 8;
        m->new_attrs[m->n_new_attrs++] = attrs;
        node->flags &= (uint16_t)~NODE_ATTRS_NEW;
    }
    a->attrs_new = chunk->failed;
}

/* Slots whose type or shape has changed since it was sent. Sent only at a stop: an eager framework
 * may change shapes in every step, and values carry their own. */
static void chunk_outputs(struct chunk *chunk, struct agent *a, uint32_t sent,
                          Gradb__V1__GraphChunk *m)
{
    if (!a->outputs_new || !a->stopped) {
        return;
    }
    m->new_outputs = chunk_alloc(chunk, CHUNK_NODES, sizeof(Gradb__V1__NewOutput *));
    for (uint32_t id = 1; !chunk->failed && id < sent; id++) {
        struct agent_node *node = &a->nodes[id];
        if (!(node->flags & NODE_OUTPUT_NEW)) {
            continue;
        }
        if (m->n_new_outputs + node->slot_count > CHUNK_NODES) {
            if (m->n_new_outputs) {
                return;
            }
            node->flags &=
                /* too many outputs to send; values carry their own types */
                (uint16_t)~NODE_OUTPUT_NEW;
            continue;
        }
        for (uint32_t slot = 0; slot < node->slot_count; slot++) {
            Gradb__V1__NewOutput *output = chunk_alloc(chunk, 1, sizeof(*output));
            if (!output) {
                return;
            }
            gradb__v1__new_output__init(output);
            output->node = id;
            output->slot = slot;
            output->output = encode_output(chunk, &node->slots[slot]);
            m->new_outputs[m->n_new_outputs++] = output;
        }
        node->flags &= (uint16_t)~NODE_OUTPUT_NEW;
    }
    a->outputs_new = chunk->failed;
}

int agent_graph_chunk(struct agent *a, struct agent_graph_cursor *cursor, unsigned char **ret,
                      size_t *len)
{
    *ret = NULL;
    bool sync = a->sync.wanted > cursor->sync;
    if (cursor->next_node >= a->published && cursor->next_late >= a->late_published &&
        !cursor->uncommitted && !sync &&
        !((a->outputs_new || a->inputs_new || a->attrs_new) && a->stopped)) {
        return GD_OK;
    }
    struct chunk chunk = {0};
    gd_arena_init(&chunk.arena, 0);
    Gradb__V1__GraphChunk graph = GRADB__V1__GRAPH_CHUNK__INIT;
    struct agent_graph_cursor next = *cursor;
    graph.graph = a->graph_name;
    chunk_nodes(&chunk, a, &next, &graph);
    bool nodes_done = next.next_node >= a->published;
    if (nodes_done) {
        chunk_late(&chunk, a, &next, &graph);
        chunk_inputs(&chunk, a, next.next_node, &graph);
        chunk_outputs(&chunk, a, next.next_node, &graph);
        chunk_attrs(&chunk, a, next.next_node, &graph);
    }
    bool any = graph.n_nodes || graph.n_more_inputs || graph.n_new_outputs || graph.n_new_attrs;
    bool done = nodes_done && next.next_late >= a->late_published;
    graph.commit = done && (any || next.uncommitted || sync);
    if (graph.commit && sync) {
        graph.sequence = next.sync = a->sync.wanted;
    }
    int rc = GD_OK;
    if (chunk.failed) {
        rc = GD_ENOMEM;
    } else if (any || graph.commit) {
        Gradb__V1__FromTrainer from = GRADB__V1__FROM_TRAINER__INIT;
        *ret = gd_envelope_pack(&from.base, &graph.base, len);
        if (*ret) {
            next.uncommitted = !graph.commit;
            *cursor = next;
        } else {
            rc = GD_ENOMEM;
        }
    }
    gd_arena_deinit(&chunk.arena);
    return rc;
}

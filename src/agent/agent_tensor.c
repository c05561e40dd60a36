// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_tensor.h"
#include "base/slice.h"

#define TEXT 160

/* ---- which step a value belongs to ---------------------------------------------------------- */

/* Runs of nodes are recorded only while armed. Then a node that was not seen has not run, unless
 * the program reports no nodes at all. */
static bool is_seen(const struct agent *a, uint32_t id, int64_t step)
{
    /* A program with a source may leave out nodes that nobody wants: see gradb_wants. */
    bool told = !a->source.locate || PEEK(a->passes[id].marked) & MARK_RUN;
    return told && a->sees_nodes && step >= a->seen_from && PEEK(a->last_node) != 0;
}

/* At a stop inside a step, execution order decides: nodes up to the last one that ran have run in
 * this step, later ones have not. Returns 0: never computed; -1: unknown. */
static int64_t value_step(const struct agent *a, uint32_t id, const struct agent_node *node)
{
    int64_t step = PEEK(a->step);
    bool inside = PEEK(a->in_step) != 0;
    uint32_t phase = PEEK(a->phase);
    int64_t guess = step - 1, ran_step = PEEK(a->passes[id].ran_step);
    gradb_node last = PEEK(a->last_node);
    if (is_seen(a, id, step)) {
        guess = ran_step >= a->seen_from ? ran_step : a->seen_from - 1;
    } else if (!inside || ran_step == step || (last ? id <= last : node->phase < phase)) {
        guess = step;
    } else if (!last && phase != 0 && node->phase == phase) {
        return -1;
    }
    if (guess < node->first_step) {
        guess = 0;
    }
    return guess > ran_step ? guess : ran_step;
}

/* Parameters and constants have a value before anything runs; the optimizer writes parameters. */
static int64_t parameter_step(const struct agent *a, const struct agent_node *node)
{
    int64_t step = PEEK(a->step);
    bool inside = PEEK(a->in_step) != 0 && !(node->flags & NODE_MOMENTARY);
    uint32_t phase = PEEK(a->phase);
    return inside && phase < GRADB_OPTIMIZER ? step - 1 : step;
}

int64_t agent_guess_step(const struct agent *a, uint32_t id, bool previous)
{
    const struct agent_node *node = &a->nodes[id];
    int64_t step = PEEK(a->step) - 1;
    if (!previous) {
        step = node->phase == 0 ? parameter_step(a, node) : value_step(a, id, node);
    }
    return step > 0 || (!previous && node->phase == 0) ? step : -1;
}

/* ---- finding -------------------------------------------------------------------------------- */

static int from_copy(const struct agent_copy *copy, struct agent_value *ret)
{
    ret->tensor = (struct gd_tensor){.dtype = copy->dtype, .shape = copy->shape, .refs = 1};
    ret->tensor.data = copy->data;
    gd_shape_strides(&copy->shape, gd_dtype_size(copy->dtype), ret->tensor.stride);
    ret->step = copy->step;
    return -1;
}

static void from_slot(const struct agent_slot *slot, struct agent_value *ret)
{
    /* Not copied as a whole: most of it is room for unused dimensions. */
    ret->tensor.dtype = (enum gd_dtype)slot->dtype;
    ret->tensor.refs = 1;
    ret->tensor.memory = NULL;
    ret->tensor.writable = false;
    ret->tensor.shape.rank = slot->rank;
    for (int i = 0; i < slot->rank; i++) {
        ret->tensor.shape.dim[i] = slot->geometry[i];
        ret->tensor.stride[i] = slot->geometry[slot->rank + i];
    }
    ret->tensor.data = slot->data;
}

bool agent_as_told(const struct agent *a, uint32_t id, uint32_t number, struct agent_value *ret)
{
    const struct agent_node *node = agent_node_at(a, id);
    if (!node || number >= node->slot_count || node->slots[number].dtype == 0) {
        return false;
    }
    size_t bytes = 0;
    from_slot(&node->slots[number], ret);
    ret->step = agent_guess_step(a, id, false);
    return gd_shape_bytes(&ret->tensor.shape, ret->tensor.dtype, &bytes, NULL) == GD_OK;
}

static int locate_current(const struct agent *a, uint32_t id, uint32_t number,
                          struct agent_value *ret, char *text)
{
    const struct agent_node *node = &a->nodes[id];
    const struct agent_slot *slot = &node->slots[number];
    if (!slot->bound) {
        if (slot->captured && slot->captured->valid) {
            return from_copy(slot->captured, ret);
        }
        if (agent_capture_left_out(a, id, text)) {
            return CODE(TOO_LARGE);
        }
        snprintf(text, TEXT, "no value yet: %.90s:%u is not bound to memory", node->name, number);
        return CODE(NO_VALUE);
    }
    if (gd_dtype_size((enum gd_dtype)slot->dtype) == 0) {
        snprintf(text, TEXT, "%.90s:%u has elements of type %s, which cannot be sent", node->name,
                 number, gd_dtype_name((enum gd_dtype)slot->dtype));
        return CODE(UNSUPPORTED);
    }
    from_slot(slot, ret);
    ret->step = node->phase == 0 ? parameter_step(a, node) : value_step(a, id, node);
    if (node->phase != 0 && ret->step == 0) {
        snprintf(text, TEXT, "no value yet: %.110s has not run", node->name);
        return CODE(NO_VALUE);
    }
    return -1;
}

int agent_locate(const struct agent *a, uint32_t id, uint32_t slot, Gradb__V1__Iteration iteration,
                 struct agent_value *ret, char text[TEXT])
{
    const struct agent_node *node = agent_node_at(a, id);
    if (!node) {
        snprintf(text, TEXT, "no node %u: the last is %u", id, a->node_count - 1);
        return CODE(NOT_FOUND);
    }
    if (slot >= node->slot_count) {
        snprintf(text, TEXT, "%.100s has %u outputs, so no slot %u", node->name, node->slot_count,
                 slot);
        return CODE(NOT_FOUND);
    }
    if (iteration == GRADB__V1__ITERATION__CURRENT) {
        return locate_current(a, id, slot, ret, text);
    }
    const struct agent_copy *previous = node->slots[slot].previous;
    if (previous && previous->valid) {
        return from_copy(previous, ret);
    }
    if (node->flags & (NODE_KEEP | NODE_KEEP_WATCH)) {
        snprintf(text, TEXT,
                 "no previous value yet: %.60s:%u is kept from the end of the next step on",
                 node->name, slot);
    } else {
        snprintf(text, TEXT, "the previous value of %.80s:%u was not kept", node->name, slot);
    }
    return CODE(NO_VALUE);
}

static bool slice_item(const Gradb__V1__SliceItem *from, struct gd_slice_item *to)
{
    *to = (struct gd_slice_item){.start = from->start, .stop = from->stop, .step = 1};
    switch (from->kind) {
    case GRADB__V1__SLICE_ITEM__KIND__INDEX: to->kind = GD_SLICE_INDEX; return true;
    case GRADB__V1__SLICE_ITEM__KIND__ELLIPSIS: to->kind = GD_SLICE_ELLIPSIS; return true;
    case GRADB__V1__SLICE_ITEM__KIND__NEWAXIS: to->kind = GD_SLICE_NEWAXIS; return true;
    case GRADB__V1__SLICE_ITEM__KIND__RANGE:
        to->kind = GD_SLICE_RANGE;
        to->has_start = from->has_start;
        to->has_stop = from->has_stop;
        to->has_step = from->has_step;
        to->step = from->has_step ? from->step : 1;
        return to->step != 0;
    default: return false;
    }
}

int agent_cut(struct agent_value *value, size_t count, Gradb__V1__SliceItem *const *items,
              char text[TEXT])
{
    if (count == 0) {
        return -1;
    }
    struct gd_slice slice = {.count = (int)count};
    if (count > GD_MAX_SLICE_ITEMS) {
        snprintf(text, TEXT, "a slice of %zu items: at most %d", count, GD_MAX_SLICE_ITEMS);
        return CODE(INVALID);
    }
    for (size_t i = 0; i < count; i++) {
        if (!slice_item(items[i], &slice.item[i])) {
            snprintf(text, TEXT, "item %zu of the slice is malformed", i);
            return CODE(INVALID);
        }
    }
    struct gd_err err;
    struct gd_slice_view view;
    int rc = gd_slice_apply(&slice, &value->tensor.shape, value->tensor.stride, &view, &err);
    if (rc != GD_OK) {
        snprintf(text, TEXT, "%.*s", TEXT - 1, err.text);
        return rc == GD_ENOMEM ? CODE(NO_MEMORY) : CODE(INVALID);
    }
    value->tensor.shape = view.shape;
    memcpy(value->tensor.stride, view.stride, sizeof(view.stride));
    if (gd_shape_count(&view.shape) > 0) {
        value->tensor.data += view.offset;
    }
    return -1;
}

/* ---- reading -------------------------------------------------------------------------------- */

void agent_gather(const struct gd_tensor *tensor, int64_t first, int64_t count, void *out)
{
    size_t item = gd_dtype_size(tensor->dtype);
    if (count <= 0) {
        return;
    }
    if (gd_tensor_is_contiguous(tensor)) {
        memcpy(out, tensor->data + (size_t)first * item, (size_t)count * item);
        return;
    }
    if (first == 0 && count == gd_shape_count(&tensor->shape)) {
        gd_strided_copy(out, tensor->data, &tensor->shape, tensor->stride, item);
        return;
    }
    int last = tensor->shape.rank - 1; /* not contiguous, so there is an axis */
    int64_t index[GD_MAX_RANK];
    int64_t rest = first;
    for (int i = last; i >= 0; i--) {
        index[i] = rest % tensor->shape.dim[i];
        rest /= tensor->shape.dim[i];
    }
    unsigned char *to = out;
    while (count > 0) {
        const unsigned char *from = tensor->data;
        for (int i = 0; i <= last; i++) {
            from += index[i] * tensor->stride[i];
        }
        int64_t run = tensor->shape.dim[last] - index[last];
        run = run < count ? run : count;
        struct gd_shape row = {.rank = 1, .dim = {run}};
        gd_strided_copy(to, from, &row, &tensor->stride[last], item);
        to += (size_t)run * item;
        count -= run;
        index[last] = 0;
        for (int i = last - 1; i >= 0 && ++index[i] == tensor->shape.dim[i]; i--) {
            index[i] = 0;
        }
    }
}

/* ---- copies that outlive a step ------------------------------------------------------------- */

void agent_copy_free(struct agent_copy *copy)
{
    if (copy) {
        free(copy->data);
        free(copy);
    }
}

bool agent_copy_take(struct agent_copy **slot, const struct agent_value *value)
{
    size_t bytes = 0;
    if (gd_shape_bytes(&value->tensor.shape, value->tensor.dtype, &bytes, NULL) != GD_OK) {
        return false;
    }
    if (!*slot) {
        *slot = calloc(1, sizeof(**slot));
    }
    struct agent_copy *copy = *slot;
    if (!copy) {
        return false;
    }
    copy->valid = false;
    if (copy->capacity < bytes) {
        free(copy->data); /* no realloc, because the old bytes are not needed */
        copy->data = malloc(bytes);
        copy->capacity = copy->data ? bytes : 0;
        if (!copy->data) {
            return false;
        }
    }
    agent_gather(&value->tensor, 0, gd_shape_count(&value->tensor.shape), copy->data);
    copy->dtype = value->tensor.dtype;
    copy->shape = value->tensor.shape;
    copy->step = value->step;
    copy->valid = true;
    return true;
}

bool agent_keep_node(const struct agent *a, uint32_t id)
{
    const struct agent_node *node = &a->nodes[id];
    bool ok = true;
    for (uint32_t i = 0; i < node->slot_count; i++) {
        struct agent_value value;
        char text[TEXT];
        if (agent_locate(a, id, i, GRADB__V1__ITERATION__CURRENT, &value, text) == -1) {
            ok = agent_copy_take(&node->slots[i].previous, &value) && ok;
        }
    }
    return ok;
}

static bool is_kept(const struct agent_node *node)
{
    return (node->flags & (NODE_KEEP | NODE_KEEP_WATCH)) != 0;
}

/* Whether any slot of the node is bound (or unbound). */
static bool any_slot(const struct agent_node *node, bool bound)
{
    for (uint32_t i = 0; i < node->slot_count; i++) {
        if (node->slots[i].bound == bound) {
            return true;
        }
    }
    return false;
}

static bool we_keep(const struct agent *a, const struct agent_node *node)
{
    return is_kept(node) && (!a->source.keep || any_slot(node, true));
}

static bool source_keeps(const struct agent *a, const struct agent_node *node)
{
    return is_kept(node) && a->source.keep && any_slot(node, false);
}

static void drop_previous(const struct agent_node *node)
{
    for (uint32_t i = 0; i < node->slot_count; i++) {
        agent_copy_free(node->slots[i].previous);
        node->slots[i].previous = NULL;
    }
}

/* The nodes selected by `wanted`. NULL with a count of 0: none, or out of memory. */
static gradb_node *
collect_nodes(const struct agent *a,
              bool (*wanted)(const struct agent *a, const struct agent_node *node), size_t *ret)
{
    size_t count = 0;
    for (uint32_t id = 1; id < a->node_count; id++) {
        count += wanted(a, &a->nodes[id]);
    }
    gradb_node *ids = count ? malloc(count * sizeof(*ids)) : NULL;
    *ret = 0;
    for (uint32_t id = 1; ids && id < a->node_count; id++) {
        if (wanted(a, &a->nodes[id])) {
            ids[(*ret)++] = id;
        }
    }
    return ids;
}

void agent_keep_collect(struct agent *a)
{
    a->kept.stale = false;
    free(a->kept.nodes);
    a->kept.nodes = collect_nodes(a, we_keep, &a->kept.count);
    for (uint32_t id = 1; id < a->node_count; id++) {
        if (!we_keep(a, &a->nodes[id])) {
            drop_previous(&a->nodes[id]);
        }
    }
    if (!a->source.keep) {
        return;
    }
    size_t count = 0;
    gradb_node *asked = collect_nodes(a, source_keeps, &count);
    a->kept.asked_new = a->kept.asked_new || count != a->kept.asked_count ||
                        (count && memcmp(asked, a->kept.asked, count * sizeof(*asked)) != 0);
    free(a->kept.asked);
    a->kept.asked = asked;
    a->kept.asked_count = count;
}

bool agent_capture_left_out(const struct agent *a, gradb_node id, char text[160])
{
    const struct agent_node *node = agent_node_at(a, id);
    if (!node || !(node->flags & NODE_LEFT_OUT)) {
        return false;
    }
    snprintf(text, 160,
             "not copied: the copies of one step may take %" PRIu64
             " bytes (the debugger's limit, or half of the free memory)",
             a->capturing.limit);
    return true;
}

// SPDX-License-Identifier: MIT
#include "known_pass.h"

#include <stdlib.h>

#include "autograd.h"
#include "graph.h"
#include "objects.h"
#include "pass_node.h"
#include "records.h"
#include "tensors.h"

#define MAX_NODES  1000000 /* of a pass */
#define MAX_PASSES 16      /* that are known */

/* ---- the walk -------------------------------------------------------------------------------- */

struct list {
    void **nodes;
    size_t count, room;
};

uint32_t native_number_in(const struct native_walk *walk, const void *node)
{
    return native_map_get(&walk->numbers, node);
}

static bool add_node(struct list *list, void *node)
{
    if (list->count == list->room) {
        void **nodes = native_grow(list->nodes, &list->room, sizeof(*nodes));
        if (!nodes) {
            return false;
        }
        list->nodes = nodes;
    }
    list->nodes[list->count++] = node;
    return true;
}

static bool add_following(struct list *waiting, const void *node)
{
    uint32_t input;
    for (size_t i = 0; i < native_edge_count(node); i++) {
        void *following = native_edge(node, i, &input);
        if (following && !add_node(waiting, following)) {
            return false;
        }
    }
    return true;
}

/* Nothing is done where the node was met before. false: out of memory, or there are too many. */
static bool meet_node(struct native_map *numbers, struct list *met, struct list *waiting,
                      void *node)
{
    if (native_map_get(numbers, node) != NATIVE_NONE) {
        return true;
    }
    return met->count < MAX_NODES && native_map_put(numbers, node, (uint32_t)met->count) &&
           add_node(met, node) && add_following(waiting, node);
}

bool native_walk(PyObject *roots, struct native_walk *ret)
{
    struct list met = {0}, waiting = {0};
    *ret = (struct native_walk){.root_count = (uint32_t)PyList_Size(roots)};
    bool whole = true;
    for (uint32_t i = 0; whole && i < ret->root_count; i++) {
        void *root = native_node_of(PyList_GetItem(roots, (Py_ssize_t)i));
        whole = root && add_node(&waiting, root);
    }
    while (whole && waiting.count > 0) {
        whole = meet_node(&ret->numbers, &met, &waiting, waiting.nodes[--waiting.count]);
    }
    free(waiting.nodes);
    ret->nodes = met.nodes;
    ret->count = (uint32_t)met.count;
    if (!whole) {
        native_free_walk(ret);
    }
    return whole;
}

void native_free_walk(struct native_walk *walk)
{
    free(walk->nodes);
    native_map_free(&walk->numbers);
    *walk = (struct native_walk){0};
}

/* ---- the list -------------------------------------------------------------------------------- */

void native_leave_known(struct native_known *known)
{
    if (--known->users > 0) {
        return;
    }
    for (uint32_t i = 0; i < known->count; i++) {
        struct native_known_node *node = &known->nodes[i];
        Py_XDECREF(node->leaf);
        Py_XDECREF(node->own);
        Py_XDECREF(node->node);
        Py_XDECREF(node->inputs);
        Py_XDECREF(node->family);
    }
    free(known->nodes);
    free(known->edges);
    free(known);
}

void native_forget_passes(struct native_context *context)
{
    while (context->known) {
        struct native_known *known = context->known;
        context->known = known->next;
        native_leave_known(known);
    }
}

/* Puts it in front; the one that was not used for longest is forgotten where there are too many. */
static void put_first(struct native_context *context, struct native_known *known)
{
    known->next = context->known;
    context->known = known;
    struct native_known **place = &context->known;
    for (int i = 0; *place && i < MAX_PASSES; i++) {
        place = &(*place)->next;
    }
    struct native_known *last = *place;
    if (last) {
        *place = last->next;
        native_leave_known(last);
    }
}

/* ---- whether it is the same ------------------------------------------------------------------ */

static bool has_same_edges(const struct native_known *known, uint32_t number,
                           const struct native_walk *walk)
{
    const void *node = walk->nodes[number];
    uint32_t first = known->nodes[number].edge;
    uint32_t last = number + 1 < known->count ? known->nodes[number + 1].edge : known->edge_count;
    if (native_edge_count(node) != last - first) {
        return false;
    }
    for (uint32_t i = first; i < last; i++) {
        uint32_t input;
        const void *following = native_edge(node, i - first, &input);
        uint32_t target = following ? native_number_in(walk, following) : NATIVE_NONE;
        if (target != known->edges[i].target ||
            (target != NATIVE_NONE && input != known->edges[i].input)) {
            return false;
        }
    }
    return true;
}

static bool is_same_node(const struct native_context *context,
                         const struct native_known_node *known, const void *node)
{
    if (native_node_kind(node) != known->kind || native_has_pre_hooks(node) ||
        native_has_post_hooks(node)) {
        return false;
    }
    if (!known->leaf) {
        return native_node_number(node) - context->trace_base == known->number;
    }
    PyObject *leaf = PyWeakref_GetObject(known->leaf);
    return leaf && leaf != Py_None && native_tensor_of(leaf) == native_leaf(node);
}

static bool is_same_pass(const struct native_context *context, const struct native_known *known,
                         const struct native_walk *walk)
{
    if (known->stale || known->trace != context->trace || known->count != walk->count ||
        known->root_count != walk->root_count) {
        return false;
    }
    for (uint32_t i = 0; i < known->count; i++) {
        if (!is_same_node(context, &known->nodes[i], walk->nodes[i]) ||
            !has_same_edges(known, i, walk)) {
            return false;
        }
    }
    return true;
}

struct native_known *native_recognize(struct native_context *context,
                                      const struct native_walk *walk)
{
    for (struct native_known **place = &context->known; *place; place = &(*place)->next) {
        struct native_known *known = *place;
        if (is_same_pass(context, known, walk)) {
            *place = known->next;
            put_first(context, known);
            known->users++;
            return known;
        }
    }
    return NULL;
}

/* ---- learning -------------------------------------------------------------------------------- */

/* The place of its node in its family. 0: it has none; -1. */
static int learn_family(struct native_context *context, struct native_known_node *known,
                        const struct native_pass_node *own)
{
    PyObject *family =
        PyDict_GetItemWithError(native_get(context->graph, GRAPH_FAMILIES), own->name);
    if (!family) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *nodes = native_get(family, FAMILY_NODES);
    for (Py_ssize_t i = PyList_Size(nodes) - 1; i >= 0; i--) {
        if (PyList_GetItem(nodes, i) == known->node) {
            known->family = Py_NewRef(family);
            known->ordinal = i;
            return 1;
        }
    }
    return 0;
}

/* Its PassNode will not keep the tensor, whose model may end before this does. */
static int learn_leaf(const struct native_context *context, struct native_known_node *known,
                      struct native_pass_node *own)
{
    if (!native_tensor_of(own->variable)) {
        return 0;
    }
    known->leaf = native_refer(context, own->variable);
    if (!known->leaf) {
        return -1;
    }
    Py_CLEAR(own->variable);
    return 1;
}

/* 1, or 0: Python must look at it each time; -1. */
static int learn_node(struct native_context *context, struct native_known_node *known,
                      struct native_pass_node *own, const void *node)
{
    if (!own->node || !own->incoming || native_is_zero(own->node, NODE_ID) ||
        native_has_pre_hooks(node)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    known->own = Py_NewRef((PyObject *)own);
    known->node = Py_NewRef(own->node);
    known->inputs = Py_NewRef(native_get(own->node, NODE_EDGES));
    known->kind = native_node_kind(node);
    known->number = native_node_number(node) - context->trace_base;
    return own->variable ? learn_leaf(context, known, own)
           : own->name   ? learn_family(context, known, own)
                         : 0;
}

static bool learn_edges(struct native_known *known, const struct native_walk *walk)
{
    size_t count = 0;
    for (uint32_t i = 0; i < walk->count; i++) {
        known->nodes[i].edge = (uint32_t)count;
        count += native_edge_count(walk->nodes[i]);
    }
    known->edge_count = (uint32_t)count;
    known->edges = calloc(count + 1, sizeof(*known->edges));
    for (uint32_t i = 0; known->edges && i < walk->count; i++) {
        for (size_t j = 0; j < native_edge_count(walk->nodes[i]); j++) {
            struct native_known_edge *edge = &known->edges[known->nodes[i].edge + j];
            const void *following = native_edge(walk->nodes[i], j, &edge->input);
            edge->target = following ? native_number_in(walk, following) : NATIVE_NONE;
        }
    }
    return known->edges;
}

/* 1: all nodes were learnt; 0, -1. */
static int learn_nodes(struct native_context *context, struct native_known *known,
                       const struct native_walk *walk, PyObject *nodes)
{
    PyObject *function, *own;
    int learnt = PyDict_Size(nodes) == (Py_ssize_t)walk->count;
    for (Py_ssize_t at = 0; learnt > 0 && PyDict_Next(nodes, &at, &function, &own);) {
        const void *node = native_node_of(function);
        uint32_t number = node ? native_number_in(walk, node) : NATIVE_NONE;
        learnt =
            number != NATIVE_NONE && !known->nodes[number].own
                ? learn_node(context, &known->nodes[number], (struct native_pass_node *)own, node)
                : 0;
    }
    return learnt;
}

static int learn_pass(struct native_context *context, uint64_t trace,
                      const struct native_walk *walk, PyObject *nodes)
{
    struct native_known *known = calloc(1, sizeof(*known));
    if (known) {
        known->users = 1;
        known->trace = trace;
        known->root_count = walk->root_count;
        known->nodes = calloc(walk->count + 1, sizeof(*known->nodes));
        known->count = known->nodes ? walk->count : 0;
    }
    if (!known || !known->nodes || !learn_edges(known, walk)) {
        PyErr_NoMemory();
    }
    int learnt = PyErr_Occurred() ? -1 : learn_nodes(context, known, walk, nodes);
    if (learnt > 0) {
        put_first(context, known);
    } else if (known) {
        native_leave_known(known);
    }
    return learnt < 0 ? -1 : 0;
}

/* After many passes that were all different, only now and then one is learnt. */
static bool is_worth_it(struct native_context *context)
{
    unsigned missed = ++context->passes_missed;
    return missed < MAX_PASSES || (missed & (missed - 1)) == 0;
}

PyObject *native_learn_pass(PyObject *module, PyObject *args)
{
    struct native_context *context;
    unsigned long long trace;
    PyObject *roots, *nodes;
    struct native_walk walk;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!KO!O!:learn_pass", native_context_type, &context, &trace,
                          &PyList_Type, &roots, &PyDict_Type, &nodes)) {
        return NULL;
    }
    if (!native_knows_nodes() || !is_worth_it(context) || !native_walk(roots, &walk)) {
        return Py_NewRef(Py_None);
    }
    int status = learn_pass(context, trace, &walk, nodes);
    native_free_walk(&walk);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

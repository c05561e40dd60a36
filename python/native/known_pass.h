// SPDX-License-Identifier: MIT
/*
 * Backward passes that have run before: their nodes, and what is known of each. A pass is the same
 * again when the same nodes have run in the step before it, and its own nodes are of the same
 * kinds, made in the same order, and connected in the same way. Then each has the same place in the
 * graph as it had then, and nothing about it needs to be asked.
 */
#ifndef GRADB_PYTHON_KNOWN_PASS_H
#define GRADB_PYTHON_KNOWN_PASS_H

#include <stdint.h>

#include "context.h"
#include "map.h"

struct native_known_node {
    const void *kind; /* see autograd.h */
    uint64_t number;  /* the same, counted from the step's begin */
    PyObject *leaf;   /* weak: what it accumulates into; NULL: it does not */
    uint32_t edge;    /* its first; the next node's first follows its last */
    PyObject *own;    /* backward.PassNode */
    PyObject *node;   /* graph.Node */
    PyObject *inputs; /* its edges when this pass has run */
    PyObject *family; /* graph._Family that it is in; NULL for a leaf */
    Py_ssize_t ordinal;
};
struct native_known_edge {
    uint32_t target, input; /* number of a node in the pass; NATIVE_NONE: none */
};
struct native_known {
    struct native_known *next;
    uint64_t trace; /* what had run before, see native_trace */
    uint32_t count, edge_count, root_count;
    struct native_known_node *nodes; /* in the order of a walk */
    struct native_known_edge *edges;
    bool stale;     /* a node has another place in the graph now */
    unsigned users; /* passes that run, and the list */
};

/* The nodes that a pass reaches, in an order that only depends on how they are connected. */
struct native_walk {
    void **nodes;
    uint32_t count, root_count;
    struct native_map numbers; /* of the nodes */
};

/* Walks from these grad_fns. false: out of memory, there are too many nodes, or it begins at a
 * custom autograd.Function. */
bool native_walk(PyObject *roots, struct native_walk *ret);
void native_free_walk(struct native_walk *walk);
/* The number of a node; NATIVE_NONE: the walk has not met it. */
uint32_t native_number_in(const struct native_walk *walk, const void *node);

/* The known pass that this is again; it gets a user. NULL: it is none of them. context->trace is
 * that of the running step, see native_begin_trace. */
struct native_known *native_recognize(struct native_context *context,
                                      const struct native_walk *walk);
void native_leave_known(struct native_known *known);

/* Forgets all of them. */
void native_forget_passes(struct native_context *context);

/* learn_pass(context, trace, roots, nodes): the pass has run; nodes: grad_fn -> PassNode. */
PyObject *native_learn_pass(PyObject *module, PyObject *args);

#endif

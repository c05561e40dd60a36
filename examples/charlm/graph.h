// SPDX-License-Identifier: MIT
/*
 * The training step as a list of operators, each with its own output buffers.
 *
 * The model declares its operators once (nodes.h), forward and backward, with names, operands and
 * source lines; each step then runs the list. Every value keeps its buffer and can be read at any
 * time. The graph owns everything. Out of memory while building ends the program.
 */
#ifndef CHARLM_GRAPH_H
#define CHARLM_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"

#define TENSOR_MAX_RANK 4
#define OP_MAX_OUT      4
#define OP_MAX_ATTR     4
#define MAX_FRAMES      8
#define MAX_SCOPES      8

struct op;
struct graph;

struct source_pos {
    const char *file;
    int line;
    const char *function;
};
#define HERE ((struct source_pos){__FILE__, __LINE__, __func__})

struct tensor {
    int rank;
    size_t dim[TENSOR_MAX_RANK];
    size_t count;
    bool is_ids; /* int32 in .ids, else float32 in .f */
    float *f;
    int32_t *ids;
    struct op *producer; /* NULL for a leaf: a parameter, optimizer state, a batch */
    unsigned slot;       /* of the producer */
    const char *name;    /* of a leaf: its full name */
    const char *type;    /* of a leaf: "Parameter" or "Data" */
    struct source_pos frames[MAX_FRAMES]; /* stack of a leaf; innermost first */
    int frame_count;
    uint32_t trace_node; /* of a leaf; private to trace.c */
};

enum phase { PHASE_FORWARD = 1, PHASE_BACKWARD = 2, PHASE_OPTIMIZER = 3 };

struct attr {
    const char *name;
    double value;
};

struct op {
    const char *name; /* full name: Default/network/block0/attn/MatMul-op7 */
    const char *type;
    enum phase phase;
    void (*run)(struct graph *graph, struct op *op);
    struct tensor **in;
    size_t in_count;
    struct tensor *out[OP_MAX_OUT];
    size_t out_count;
    struct attr attr[OP_MAX_ATTR];
    size_t attr_count;
    int variant;                          /* selects a variant of run, where there are several */
    void *state;                          /* extra data for run; not owned */
    bool half;                            /* round outputs to half precision */
    struct source_pos frames[MAX_FRAMES]; /* innermost first */
    int frame_count;
    uint32_t trace_node; /* private to trace.c */
};

struct graph {
    struct pool *pool;
    struct op **ops;
    size_t op_count;
    struct tensor **leaves; /* in creation order */
    size_t leaf_count;
    size_t bytes; /* of all values */
    /* while building */
    enum phase phase;
    bool half; /* operators added from now on round their outputs */
    char scope[512];
    struct { /* scopes opened by graph_enter, outermost first */
        struct source_pos at;
        size_t scope_len; /* length of the scope name before this one */
    } entered[MAX_SCOPES];
    int depth;
    /* Called after each operator; may be NULL. */
    void (*did)(void *ctx, struct op *op);
    void *did_ctx;
    void **owned; /* every allocation */
    size_t owned_count, owned_cap;
};

struct graph *graph_create(struct pool *pool);
void graph_destroy(struct graph *graph);

/* Zeroed memory owned by the graph, aligned for vectors. */
void *graph_alloc(struct graph *graph, size_t bytes);
const char *graph_printf(struct graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Names added from now on are below `name`; `at` becomes a frame of their stacks. */
void graph_enter(struct graph *graph, const char *name, struct source_pos at);
void graph_leave(struct graph *graph);
void graph_set_phase(struct graph *graph, enum phase phase);

struct tensor *graph_leaf(struct graph *graph, struct source_pos at, const char *name,
                          const char *type, bool is_ids, int rank, const size_t *dim);

struct op *graph_op(struct graph *graph, struct source_pos at, const char *type,
                    void (*run)(struct graph *, struct op *), struct tensor *const *in,
                    size_t in_count);
/* Adds an output slot. */
struct tensor *graph_out(struct graph *graph, struct op *op, int rank, const size_t *dim);
struct tensor *graph_out_like(struct graph *graph, struct op *op, const struct tensor *like);
/* Adds an output slot that shares another tensor's buffer: an in-place update. */
struct tensor *graph_out_alias(struct graph *graph, struct op *op, const struct tensor *of);
void graph_attr(struct op *op, const char *name, double value);

/* Runs all operators of a phase, in the order in which they were added. */
void graph_run(struct graph *graph, enum phase phase);

static inline size_t tensor_cols(const struct tensor *t)
{
    return t->dim[t->rank - 1];
}
static inline size_t tensor_rows(const struct tensor *t)
{
    return t->count / t->dim[t->rank - 1];
}

#endif

// SPDX-License-Identifier: MIT
#include "graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

static void die_out_of_memory(void)
{
    fputs("charlm: out of memory: reduce --width, --context, --batch or --layers\n", stderr);
    exit(1);
}

struct graph *graph_create(struct pool *pool)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    if (!graph) {
        die_out_of_memory();
    }
    graph->pool = pool;
    graph->phase = PHASE_FORWARD;
    return graph;
}

void graph_destroy(struct graph *graph)
{
    if (!graph) {
        return;
    }
    for (size_t i = 0; i < graph->owned_count; i++) {
        free(graph->owned[i]);
    }
    free(graph->owned);
    free(graph->ops);
    free(graph->leaves);
    free(graph);
}

/* Makes room for one more pointer. The capacity is the power of two at or above count. */
static void grow_list(void *list_pointer, size_t count)
{
    if (count == 0 || (count & (count - 1)) == 0) {
        void **list = list_pointer;
        void *bigger = realloc(*list, (count ? 2 * count : 1) * sizeof(void *));
        if (!bigger) {
            die_out_of_memory();
        }
        *list = bigger;
    }
}

void *graph_alloc(struct graph *graph, size_t bytes)
{
    if (graph->owned_count == graph->owned_cap) {
        size_t cap = graph->owned_cap ? 2 * graph->owned_cap : 64;
        void **bigger = realloc(graph->owned, cap * sizeof(*bigger));
        if (!bigger) {
            die_out_of_memory();
        }
        graph->owned = bigger;
        graph->owned_cap = cap;
    }
    size_t rounded = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, rounded ? rounded : 64);
    if (!memory || rounded < bytes) {
        die_out_of_memory();
    }
    memset(memory, 0, rounded ? rounded : 64);
    graph->owned[graph->owned_count++] = memory;
    return memory;
}

const char *graph_printf(struct graph *graph, const char *format, ...)
{
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t size = strlen(text) + 1;
    char *copy = graph_alloc(graph, size);
    memcpy(copy, text, size);
    return copy;
}

void graph_enter(struct graph *graph, const char *name, struct source_pos at)
{
    assert(graph->depth < MAX_SCOPES);
    size_t len = strlen(graph->scope);
    graph->entered[graph->depth].at = at;
    graph->entered[graph->depth].scope_len = len;
    graph->depth++;
    snprintf(graph->scope + len, sizeof(graph->scope) - len, "%s%s", len ? "/" : "", name);
}

void graph_leave(struct graph *graph)
{
    graph->depth--;
    graph->scope[graph->entered[graph->depth].scope_len] = '\0';
}

void graph_set_phase(struct graph *graph, enum phase phase)
{
    graph->phase = phase;
}

/* Fills in a stack, innermost first: the line itself, then the lines that entered its scopes. */
static int fill_frames(const struct graph *graph, struct source_pos at,
                       struct source_pos frames[MAX_FRAMES])
{
    int count = 0;
    frames[count++] = at;
    for (int i = graph->depth - 1; i >= 0 && count < MAX_FRAMES; i--) {
        const struct source_pos *caller = &graph->entered[i].at;
        if (strcmp(caller->function, frames[count - 1].function) != 0) {
            frames[count++] = *caller; /* nested scopes of one function are one frame */
        }
    }
    return count;
}

static struct tensor *new_tensor(struct graph *graph, int rank, const size_t *dim)
{
    struct tensor *t = graph_alloc(graph, sizeof(*t));
    t->rank = rank;
    t->count = 1;
    for (int i = 0; i < rank; i++) {
        t->dim[i] = dim[i];
        if (__builtin_mul_overflow(t->count, dim[i], &t->count)) {
            die_out_of_memory();
        }
    }
    return t;
}

static void *alloc_values(struct graph *graph, const struct tensor *t)
{
    size_t bytes;
    if (__builtin_mul_overflow(t->count, sizeof(float), &bytes)) {
        die_out_of_memory();
    }
    graph->bytes += bytes;
    return graph_alloc(graph, bytes);
}

struct tensor *graph_leaf(struct graph *graph, struct source_pos at, const char *name,
                          const char *type, bool is_ids, int rank, const size_t *dim)
{
    struct tensor *t = new_tensor(graph, rank, dim);
    t->name = graph_printf(graph, "%s%s%s", graph->scope, graph->scope[0] ? "/" : "", name);
    t->type = type;
    t->is_ids = is_ids;
    if (is_ids) {
        t->ids = alloc_values(graph, t);
    } else {
        t->f = alloc_values(graph, t);
    }
    t->frame_count = fill_frames(graph, at, t->frames);
    grow_list(&graph->leaves, graph->leaf_count);
    graph->leaves[graph->leaf_count++] = t;
    return t;
}

struct op *graph_op(struct graph *graph, struct source_pos at, const char *type,
                    void (*run)(struct graph *, struct op *), struct tensor *const *in,
                    size_t in_count)
{
    struct op *op = graph_alloc(graph, sizeof(*op));
    op->name = graph_printf(graph, "%s/%s-op%zu", graph->scope, type, graph->op_count + 1);
    op->type = type;
    op->phase = graph->phase;
    op->run = run;
    op->half = graph->half;
    op->in = graph_alloc(graph, in_count * sizeof(*op->in));
    memcpy(op->in, in, in_count * sizeof(*op->in));
    op->in_count = in_count;
    op->frame_count = fill_frames(graph, at, op->frames);
    grow_list(&graph->ops, graph->op_count);
    graph->ops[graph->op_count++] = op;
    return op;
}

static struct tensor *add_out(struct op *op, struct tensor *t)
{
    t->producer = op;
    t->slot = (unsigned)op->out_count;
    op->out[op->out_count++] = t;
    return t;
}

struct tensor *graph_out(struct graph *graph, struct op *op, int rank, const size_t *dim)
{
    struct tensor *t = new_tensor(graph, rank, dim);
    t->f = alloc_values(graph, t);
    return add_out(op, t);
}

struct tensor *graph_out_like(struct graph *graph, struct op *op, const struct tensor *like)
{
    return graph_out(graph, op, like->rank, like->dim);
}

struct tensor *graph_out_alias(struct graph *graph, struct op *op, const struct tensor *of)
{
    struct tensor *t = new_tensor(graph, of->rank, of->dim);
    t->f = of->f;
    return add_out(op, t);
}

void graph_attr(struct op *op, const char *name, double value)
{
    op->attr[op->attr_count++] = (struct attr){name, value};
}

void graph_run(struct graph *graph, enum phase phase)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        struct op *op = graph->ops[i];
        if (op->phase != phase) {
            continue;
        }
        op->run(graph, op);
        for (size_t o = 0; op->half && o < op->out_count; o++) {
            ops_round_half(op->out[o]->f, op->out[o]->count);
        }
        if (graph->did) {
            graph->did(graph->did_ctx, op);
        }
    }
}

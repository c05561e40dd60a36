// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The graph's insides, shared by graph*.c only. Node records are one array. Names are stored one
 * after another in big chunks, in node order, so that a search is a scan of plain memory. Types,
 * shapes, attribute names and stacks are stored once each. Every allocation goes through
 * graph_memory.c, which enforces the limit.
 */
#ifndef GD_ENGINE_GRAPH_IMPL_H
#define GD_ENGINE_GRAPH_IMPL_H

#include "base/arena.h"
#include "engine/graph/graph.h"
#include "engine/graph/part.h"

#define GRAPH_NONE          UINT32_MAX
#define GRAPH_MAX_NAME      8192 /* bytes of a full name */
#define GRAPH_MAX_DEPTH     64   /* nested scopes; deeper ones are folded into the last */
#define GRAPH_MAX_SUBGRAPHS 4096
#define GRAPH_MAX_OUTPUTS   65536 /* an edge's slot has 16 bits */

enum graph_type_class {
    GRAPH_TYPE_PLAIN,
    GRAPH_TYPE_PARAMETER,
    GRAPH_TYPE_CONST,
    GRAPH_TYPE_ACTIVATION,
};

/* Open addressing, linear probing, no tombstones: removal shifts back. id GRAPH_NONE is empty. */
struct graph_slot {
    uint32_t hash;
    uint32_t id;
};
struct graph_table {
    struct graph_slot *slot; /* NULL while empty */
    uint32_t mask;
    uint32_t used;
};

/* Memory that never moves, carved from chunks. */
struct graph_chunk {
    struct graph_chunk *next;
    size_t size, used;
    char bytes[];
};
struct graph_pool {
    struct graph_chunk *head;
};

struct graph_name_chunk {
    char *bytes;
    size_t size, used;
    gd_node_id first; /* the node whose name starts the chunk */
};

struct graph_extra {       /* fields that most nodes lack */
    const char *wire_name; /* NULL: the name */
    struct gd_attr *attrs;
    uint32_t attr_count;
    uint32_t input_slots;
    uint32_t stack;        /* GRAPH_NONE: no stack */
    const char *qualified; /* GRAPH/NAME, if other subgraphs have that name, too; else NULL */
    gd_node_id same;       /* the next node of that name, in another subgraph; GD_NO_NODE: none */
};

struct graph_node {   /* 64 bytes: a cache line */
    const char *name; /* within its subgraph */
    const struct gd_edge *inputs;
    union {
        uint32_t one;   /* output_count == 1: the shape's number */
        uint32_t *many; /* output_count > 1 */
    } output;
    struct graph_extra *extra; /* of this node alone; may be NULL */
    uint32_t name_len;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t type;
    uint32_t scope;
    uint32_t next_in_scope;
    uint32_t order;
    uint32_t subgraph : 23;
    uint32_t shared : 1; /* other subgraphs have a node of its name */
    uint32_t kind : 4;
    uint32_t gone : 1;
    uint32_t pending : 1; /* in the list of nodes with inputs to index */
};

struct graph_alias {
    const char *name;
    uint32_t len;
    gd_node_id node;
};

struct graph_scope {
    const char *qualified; /* GRAPH/PATH */
    const char *name;      /* inside it: the path within the subgraph */
    const char *class;     /* of the module; NULL: unknown */
    uint32_t len, leaf;    /* of name; leaf: offset in it */
    uint32_t subgraph;
    uint32_t depth;
    uint32_t parent, first_child, last_child, next, previous;
    uint32_t part; /* enum gd_part, of a child of a subgraph's root */
    uint32_t first_node, last_node;
    uint32_t node_count, total_count;
};

struct graph_type {
    const char *name;
    uint32_t count;
    enum graph_type_class class;
};

struct graph_shape {
    uint8_t dtype, rank;
    int64_t dim[];
};

struct graph_subgraph {
    const char *name;
    const char *word; /* the prefix of its nodes' names: the name, unless that is "" */
    uint32_t word_len;
    uint32_t scope;      /* its root: a child of scope 0, unless only this subgraph has nodes */
    uint32_t first, end; /* its nodes are in [first, end) */
    uint32_t live;       /* number of them that exist */
    uint32_t last_of_part[GD_PART_COUNT]; /* of the root's children; GRAPH_NONE: it has none */
    uint64_t missing;
};

struct graph_stack {
    const char *text; /* NULL: it was given already parsed */
    uint32_t len;
    bool parsed;
    uint32_t frame_count;
    struct gd_frame *frames;
};

struct graph_run { /* the consumers of one node */
    struct gd_edge *edges;
    uint32_t count, cap;
};

struct graph_pending { /* inputs from `first` on are not in the consumers' index yet */
    gd_node_id node;
    uint32_t first;
};

/* Created on first use, dropped by a commit; by pointer because readers hold the graph as
 * const. */
struct graph_lazy {
    gd_node_id *execution;
    uint32_t execution_count;
    bool execution_valid;
    uint32_t *position; /* by node, of those that run; NULL: not computed yet */
    struct gd_type_count *types;
    uint32_t type_count;
    bool types_valid;
    uint64_t memory;
};

struct gd_graph {
    size_t max;
    size_t memory;
    uint64_t seed;

    struct graph_node *node;
    uint32_t node_count, node_cap;
    uint32_t live_count;
    uint32_t by_kind[GD_NODE_KIND_COUNT];
    uint64_t edge_count;
    bool has_order;
    int micro_batches; /* the largest number of one that a node belongs to */
    uint64_t changes;  /* gd_graph_changes */

    struct graph_name_chunk *name_chunk;
    uint32_t name_chunk_count, name_chunk_cap;
    uint32_t letter[256]; /* how often a byte occurs in a sample of the names */

    struct graph_pool data; /* 8-byte aligned records */
    struct graph_pool text; /* other strings */

    struct graph_table names;      /* name -> the first of the nodes of that name */
    struct graph_table wire_names; /* (wire name, subgraph) -> node */

    struct graph_subgraph *subgraph;
    uint32_t subgraph_count, subgraph_cap;
    uint32_t live_subgraphs; /* that have nodes */
    uint32_t current;        /* the subgraph for new nodes */

    struct graph_scope *scope;
    uint32_t scope_count, scope_cap;
    struct graph_table scopes;
    uint32_t last_scope;

    struct graph_type *type;
    uint32_t type_count, type_cap;
    struct graph_table types;

    const struct graph_shape **shape;
    uint32_t shape_count, shape_cap;
    struct graph_table shapes;

    struct graph_alias *alias; /* in no order: there are few */
    uint32_t alias_count, alias_cap;
    bool has_classes;

    const char **word; /* attribute names */
    uint32_t word_count, word_cap;
    struct graph_table words;

    struct graph_stack *stack;
    uint32_t stack_count, stack_cap;
    struct graph_table stacks;
    struct gd_arena frames; /* of stacks parsed on first use */

    /* consumers: one block for what a rebuild saw, `overlay` for what small commits added */
    uint32_t committed; /* nodes below this are indexed */
    struct graph_run *run;
    uint32_t run_count, run_cap;
    struct gd_edge *run_block;
    size_t run_block_bytes;
    struct graph_pool overlay;
    uint64_t indexed_edges;
    struct graph_pending *pending;
    uint32_t pending_count, pending_cap;
    bool stale; /* an indexed input changed: rebuild */

    struct graph_lazy *lazy;
};

/* ---- memory (graph_memory.c)
 * ---------------------------------------------------------------------- */

void graph_give(struct gd_graph *graph, size_t bytes);
/* Memory that counts; NULL with *err filled. */
void *graph_malloc(struct gd_graph *graph, size_t bytes, struct gd_err *err);
/* Makes room for `need` items in a plain array. */
int graph_grow(struct gd_graph *graph, void *array_ptr, uint32_t *cap, uint64_t need, size_t item,
               struct gd_err *err);
/* NULL with *err filled. */
void *graph_pool_alloc(struct gd_graph *graph, struct graph_pool *pool, size_t size, size_t align,
                       struct gd_err *err);
/* A copy of what a node has, or an empty one; NULL with *err filled. */
struct graph_extra *graph_copy_extra(struct gd_graph *graph, const struct graph_extra *had,
                                     struct gd_err *err);
const char *graph_text(struct gd_graph *graph, const char *text, size_t len, struct gd_err *err);
void graph_pool_clear(struct gd_graph *graph, struct graph_pool *pool);

/* The node; NULL: there is none of that number any more. */
static inline struct graph_node *graph_live(const struct gd_graph *graph, gd_node_id node)
{
    return node < graph->node_count && !graph->node[node].gone ? &graph->node[node] : NULL;
}

/* ---- tables and interning (graph_index.c) --------------------------------------------------- */

/* The entries of a hash, one after another: *at is 0 at first. GRAPH_NONE: no more. */
static inline uint32_t graph_table_next(const struct graph_table *table, uint32_t hash,
                                        uint32_t *at)
{
    while (table->slot) {
        const struct graph_slot *slot = &table->slot[(hash + *at) & table->mask];

        if (slot->id == GRAPH_NONE) {
            break;
        }
        ++*at;
        if (slot->hash == hash) {
            return slot->id;
        }
    }
    return GRAPH_NONE;
}

uint64_t graph_hash(const struct gd_graph *graph, const void *bytes, size_t len);
uint32_t graph_hash_in(uint64_t hash, uint32_t subgraph); /* a name within a subgraph */
int graph_table_reserve(struct gd_graph *graph, struct graph_table *table, struct gd_err *err);
void graph_table_insert(struct graph_table *table, uint32_t hash,
                        uint32_t id); /* reserved before */
void graph_table_remove(struct graph_table *table, uint32_t hash, uint32_t id);

int graph_intern_type(struct gd_graph *graph, const char *type, uint32_t *ret, struct gd_err *err);
int graph_intern_shape(struct gd_graph *graph, const struct gd_output *output, uint32_t *ret,
                       struct gd_err *err);
int graph_intern_word(struct gd_graph *graph, const char *word, const char **ret,
                      struct gd_err *err);
/* The scope of the current subgraph that holds a node of that name; created with its parents if
 * new. */
int graph_intern_scope(struct gd_graph *graph, const char *name, size_t len, uint32_t *ret,
                       struct gd_err *err);
/* Appends a scope without content as the last child of `parent` (GRAPH_NONE: it is the first),
 * below a subgraph's root as the last of its part. */
int graph_add_scope(struct gd_graph *graph, uint32_t parent, const struct graph_scope *scope,
                    struct gd_err *err);
/* Puts it into the list of its parent's children. */
void graph_link_scope(struct gd_graph *graph, uint32_t id);
enum gd_part graph_part_of_name(const char *name, size_t len);
void graph_note_micro_batch(struct gd_graph *graph, const struct gd_node_desc *desc);
/* A weight is in that scope: the scope of the root above it is a part of the model. */
void graph_holds_weight(struct gd_graph *graph, uint32_t scope);
/* The root scope of a new subgraph, which is the last one. */
int graph_add_root(struct gd_graph *graph, uint32_t subgraph, struct gd_err *err);
/* The first node of that name, of any subgraph; extra->same leads to the others. */
gd_node_id graph_find_first(const struct gd_graph *graph, const char *name, size_t len,
                            uint64_t hash);
/* Up to two nodes of that wire name, in different subgraphs. */
uint32_t graph_find_wire(const struct gd_graph *graph, const char *name, size_t len,
                         gd_node_id found[2]);
/* Node of that (wire) name in one subgraph, or GD_NO_NODE. */
gd_node_id graph_find_in(const struct gd_graph *graph, const struct graph_table *table,
                         const char *name, size_t len, uint64_t hash, uint32_t subgraph);
const char *graph_wire_name(const struct graph_node *node);
/* As users see it. */
const char *graph_shown_name(const struct graph_node *node);
/* Prepares for a new node of that name in the current subgraph: everything that can fail. */
int graph_reserve_same(struct gd_graph *graph, struct graph_node *node, uint64_t hash,
                       struct gd_err *err);
/* Adds a node to the table of names, or removes it. Neither can fail. */
void graph_enter_name(struct gd_graph *graph, gd_node_id id, uint64_t hash);
void graph_drop_name(struct gd_graph *graph, gd_node_id id);
/* The part of a name after a subgraph's name and a slash; NULL: it does not begin like that. */
const char *graph_within(const struct graph_subgraph *sub, const char *name, size_t *len);

/* ---- what attributes say about names (graph_alias.c) ----------------------------------------- */

/* Reads the attribute GD_ALIASES or GD_CLASSES of a node; others are ignored. What does not fit
 * is left out. */
void graph_note_attr(struct gd_graph *graph, gd_node_id node, const struct gd_attr *attr);

/* ---- stacks (graph_stack.c) ----------------------------------------------------------------- */

int graph_intern_source(struct gd_graph *graph, const char *source, uint32_t *ret,
                        struct gd_err *err);
int graph_intern_frames(struct gd_graph *graph, const struct gd_frame *frames, uint32_t count,
                        uint32_t *ret, struct gd_err *err);

/* ---- consumers (graph_consumers.c) ----------------------------------------------------------- */

/* Called by connect on an indexed node: notes which of the new inputs are not indexed yet. */
int graph_note_reconnect(struct gd_graph *graph, gd_node_id node, const struct gd_edge *inputs,
                         uint32_t count, struct gd_err *err);
/* Removes the edges of nodes [first, end) of a subgraph, which were just marked as gone, from the
 * index. */
void graph_forget_consumers(struct gd_graph *graph, uint32_t subgraph, uint32_t first,
                            uint32_t end);
void graph_lazy_clear(struct gd_graph *graph);

static inline unsigned char graph_fold_case(char c)
{
    unsigned char u = (unsigned char)c;

    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

/* ---- node kinds (node_kind.c) ---------------------------------------------------------------- */

enum graph_type_class graph_type_classify(const char *type);
enum gd_node_kind graph_classify(const char *name, size_t len, enum graph_type_class type);

#endif

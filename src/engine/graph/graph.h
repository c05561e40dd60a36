// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The graph of a training process: nodes with slots, edges, scopes, execution order and stacks. One
 * struct gd_graph holds all the subgraphs that a process sent; node and scope numbers are shared by
 * all of them and never change while the graph lives. Nodes are added, connected and committed; a
 * graph may grow after a commit (commit again). Strings that the graph returns belong to it and
 * live as long as it does. Built for millions of nodes: no allocation per node. Survives bad input:
 * an edge from a missing node is counted and dropped, a cycle is kept (walks are bounded and mark
 * what they visited).
 */
#ifndef GD_ENGINE_GRAPH_H
#define GD_ENGINE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor.h"

struct gd_graph;
typedef uint32_t gd_node_id;
typedef uint32_t gd_scope_id; /* 0 is the root, whose name is "" */
#define GD_NO_NODE     UINT32_MAX
#define GD_NO_SCOPE    UINT32_MAX
#define GD_NO_ORDER    UINT32_MAX
#define GD_NO_SUBGRAPH UINT32_MAX

enum gd_node_kind {
    GD_NODE_AUTO = 0, /* in a description: classify by the rules of gd_node_classify */
    GD_NODE_OTHER,
    GD_NODE_WEIGHT,
    GD_NODE_GRADIENT,
    GD_NODE_ACTIVATION,
    GD_NODE_PARAMETER, /* a graph input or optimizer state: a parameter that is not a weight */
    GD_NODE_CONSTANT,
    GD_NODE_COMPILED, /* an operator inside compiled code: see below */
    GD_NODE_KIND_COUNT
};

/* Operators inside compiled code are shown, but they have no values and are never reported. So they
 * are below this scope, and everything that is about values or about what runs passes them over:
 * gd_graph_execution, gd_graph_types, the consumers of other nodes, searches by type, and selectors
 * that do not name them. Their attribute GD_COUNTERPART names the node that computes the same where
 * operators are watched, and the other way round. GD_IR_NAME is what the framework calls them. */
#define GD_COMPILED_SCOPE "compiled/"
#define GD_COUNTERPART    "counterpart"
#define GD_IR_NAME        "ir name"

/* Attributes that say more about names. GD_ALIASES: other names of the node, such as those of a
 * parameter that two modules share, separated by ", ". GD_CLASSES: the classes of the modules of
 * its scope, outermost first, separated by '/': "GPT/ModuleList/Block" for model/h/0; "" if one is
 * unknown. */
#define GD_ALIASES "tied to"
#define GD_CLASSES "module"
#define GD_FROZEN  "frozen" /* a parameter that is not trained; "" if it is trained again */

struct gd_output { /* one slot */
    enum gd_dtype dtype;
    struct gd_shape shape; /* a dimension of -1 is unknown */
};

struct gd_attr {
    const char *name;
    const char *value; /* as text */
};

struct gd_frame {         /* one line of a stack, innermost first */
    const char *file;     /* "" when unknown */
    uint32_t line;        /* 0 when unknown */
    const char *function; /* "" when unknown */
    const char *code;     /* the source line as sent; "" when unknown */
    bool library;         /* framework code: shown on request only */
    bool told;            /* library: as the process says, or by the look of `file` */
    bool is_title; /* a section title ("Corresponding forward node candidate:"): text in code */
};

struct gd_edge {
    gd_node_id node; /* the producer (inputs) or the consumer (outputs) */
    uint16_t slot;   /* of the producer */
    bool control;    /* orders, carries no tensor */
};

struct gd_node_desc {      /* what a target knows about a new node; copied */
    const char *name;      /* full name as the framework spells it, scopes separated by '/' */
    const char *wire_name; /* the name that the target uses for tensors, if different; else NULL */
    const char *type;      /* operator type; "Parameter", "Const" for those */
    enum gd_node_kind kind;
    const struct gd_output *outputs;
    uint32_t output_count;
    /* this many of the last outputs are really inputs, as dumps have them: NODE:in0, ... */
    uint32_t input_slots;
    const struct gd_attr *attrs;
    uint32_t attr_count;
    const struct gd_frame *frames; /* a stack that is already parsed, or */
    uint32_t frame_count;
    const char *source; /* the text of MindSpore's source_address, parsed on first use */
    uint32_t order;     /* execution order within the process, or GD_NO_ORDER */
};

struct gd_node_info {      /* a node as readers see it; pointers live as long as the graph */
    const char *name;      /* as people see it: see gd_graph_name */
    const char *own_name;  /* within its subgraph: as the framework spells it */
    const char *wire_name; /* equals own_name if none was given */
    const char *type;
    enum gd_node_kind kind;
    uint32_t subgraph;
    gd_scope_id scope;
    uint32_t order;
    const struct gd_edge *inputs; /* in operand order */
    uint32_t input_count;
    uint32_t output_count; /* slots: see gd_graph_output */
    uint32_t input_slots;  /* this many of the last slots are inputs */
    const struct gd_attr *attrs;
    uint32_t attr_count;
};

struct gd_graph_counts {
    uint32_t nodes, scopes, subgraphs;
    uint64_t edges;
    uint32_t by_kind[GD_NODE_KIND_COUNT];
    uint64_t missing_inputs; /* edges dropped because their producer does not exist */
    uint64_t memory;         /* bytes held by the graph and its indexes */
};

/* ---- building ------------------------------------------------------------------------------ */

/* max_bytes bounds the graph's memory (0 = none). */
int gd_graph_create(size_t max_bytes, struct gd_graph **ret, struct gd_err *err);
void gd_graph_destroy(struct gd_graph *graph);

/* Selects the subgraph for the nodes that follow, and creates it if it is new. With `replace`, an
 * existing one is emptied first: its nodes are gone, other numbers stay, and edges of other
 * subgraphs may still refer to them (gd_graph_node then returns false). GD_ELIMIT: more than 4096
 * subgraphs. */
int gd_graph_subgraph(struct gd_graph *graph, const char *name, bool replace, uint32_t *ret,
                      struct gd_err *err);
const char *gd_graph_subgraph_name(const struct gd_graph *graph, uint32_t subgraph);
/* Whether a subgraph of that name has nodes. */
bool gd_graph_has_subgraph(const struct gd_graph *graph, const char *name);

/* GD_EINVAL: the name is empty, or already in use in its subgraph (the caller renames or skips the
 * node). GD_ELIMIT: memory or node count. */
int gd_graph_add(struct gd_graph *graph, const struct gd_node_desc *desc, gd_node_id *ret,
                 struct gd_err *err);
/* Sets all inputs of a node at once. An edge with node GD_NO_NODE counts as missing. */
int gd_graph_connect(struct gd_graph *graph, gd_node_id node, const struct gd_edge *inputs,
                     uint32_t count, struct gd_err *err);
/* Adds a fact about a node's execution order, learned while running. */
void gd_graph_set_order(struct gd_graph *graph, gd_node_id node, uint32_t order);
/* Gives a node more slots: at least that many outputs, followed by inputs. New ones are unknown.
 * GD_EINVAL: it already has input slots. */
int gd_graph_set_slots(struct gd_graph *graph, gd_node_id node, uint32_t outputs,
                       uint32_t input_slots, struct gd_err *err);
/* Appends attributes. Ignored for a node that does not exist. */
int gd_graph_add_attrs(struct gd_graph *graph, gd_node_id node, const struct gd_attr *attrs,
                       uint32_t count, struct gd_err *err);
/* Gives an attribute another value, or appends it. Ignored for a node that does not exist. */
int gd_graph_set_attr(struct gd_graph *graph, gd_node_id node, const struct gd_attr *attr,
                      struct gd_err *err);
/* Updates what is known about a slot (the shape of a tensor that arrived). Ignored if the slot does
 * not exist. */
void gd_graph_set_output(struct gd_graph *graph, gd_node_id node, uint32_t slot,
                         const struct gd_output *output);
/* Updates consumers, execution order and types; names, scopes, searches and counts see a node as
 * soon as it is added. Costs what was added since the last commit, or occasionally a pass over all
 * edges. After GD_ELIMIT or GD_ENOMEM, consumers may be missing until a commit succeeds. */
int gd_graph_commit(struct gd_graph *graph, struct gd_err *err);

/* MindSpore's classes (lower-cased full name and type): see enum gd_node_kind. */
enum gd_node_kind gd_node_classify(const char *name, const char *type);
const char *gd_node_kind_name(enum gd_node_kind kind); /* "weight", ... */

/* ---- reading ------------------------------------------------------------------------------- */

void gd_graph_counts(const struct gd_graph *graph, struct gd_graph_counts *ret);
uint32_t gd_graph_node_limit(const struct gd_graph *graph); /* ids are < this; some may be gone */
/* Grows when an existing node changes: it is gone, or has other slots, other types, or a new place
 * in the execution order. New nodes do not count. */
uint64_t gd_graph_changes(const struct gd_graph *graph);
bool gd_graph_node(const struct gd_graph *graph, gd_node_id node, struct gd_node_info *ret);
/* As users see and type it: the framework's spelling, with the subgraph's name in front
 * (GRAPH/NAME) if several have a node of that name. "" when gone. */
const char *gd_graph_name(const struct gd_graph *graph, gd_node_id node);
/* Several subgraphs have nodes: each is a scope of the root. */
bool gd_graph_is_qualified(const struct gd_graph *graph);
/* Calls fn with every full name of a node until it returns true: the framework's spelling, then
 * with the subgraph's name in front, then its aliases. */
bool gd_graph_any_name(const struct gd_graph *graph, gd_node_id node,
                       bool (*fn)(const void *ctx, const char *name), const void *ctx);
const char *gd_node_attr(const struct gd_node_info *info, const char *name); /* NULL: has none */
/* Whether a node is inside compiled code; err: says that it has no values, and what to look at. */
bool gd_graph_is_compiled(const struct gd_graph *graph, gd_node_id node, struct gd_err *err);
bool gd_graph_output(const struct gd_graph *graph, gd_node_id node, uint32_t slot,
                     struct gd_output *ret);
/* A slot as users write it: "0", "in0"; false: the node has no such slot. */
void gd_graph_slot_name(const struct gd_graph *graph, gd_node_id node, uint32_t slot, char ret[16]);
bool gd_graph_slot_find(const struct gd_graph *graph, gd_node_id node, const char *name,
                        uint32_t *ret);
/* Consumers of all slots, among them compiled ones only for a compiled node; valid until the next
 * commit or replaced subgraph. */
uint32_t gd_graph_consumers(const struct gd_graph *graph, gd_node_id node,
                            const struct gd_edge **ret);

/* Nodes in execution order where it is known, else in the order they were sent. Without compiled
 * ones. *count entries, valid until the next commit or set_order. */
const gd_node_id *gd_graph_execution(const struct gd_graph *graph, uint32_t *count);

/* A node's place in that order; where no order is known, among the nodes that run in the order they
 * were sent, each after its dependencies. GD_NO_ORDER: it does not run. */
uint32_t gd_graph_order(const struct gd_graph *graph, gd_node_id node);

/* Exact full name, else exact wire name, else alias, else the one node whose name ends in "/NAME",
 * else in NAME where dots and slashes are the same ("h.0.fc.weight", "h[0].fc.weight"). Of several,
 * those count whose part of the training comes first. The same within one subgraph if NAME begins
 * with its name and a slash. GD_ENOTFOUND (with a similar name if there is one), GD_EAMBIGUOUS
 * (with two candidates). */
int gd_graph_find(const struct gd_graph *graph, const char *name, gd_node_id *ret,
                  struct gd_err *err);
/* The first operator of a module, or the last one, in execution order; its gradients only if it has
 * no other operators. GD_NO_NODE: none has run yet, or the scope contains none. */
gd_node_id gd_graph_module_end(const struct gd_graph *graph, gd_scope_id scope, bool last);
/* Exact full name only, or GRAPH/NAME. GD_NO_NODE also if several subgraphs have it. */
gd_node_id gd_graph_lookup(const struct gd_graph *graph, const char *name, size_t len);
/* The name that the target uses: exact wire name, else exact full name. GD_NO_NODE also if several
 * subgraphs have it. Both of these see a node as soon as it is added. */
gd_node_id gd_graph_lookup_wire(const struct gd_graph *graph, const char *name, size_t len);
/* Exact full name, else exact wire name, in one subgraph. */
gd_node_id gd_graph_lookup_in(const struct gd_graph *graph, uint32_t subgraph, const char *name,
                              size_t len);

/* Scopes form a tree; children in name order of first appearance. Where several subgraphs have
 * nodes, the root's children are the subgraphs, and every path begins with the name of one. */
struct gd_scope_info {
    const char *name;        /* full path without a trailing slash */
    const char *leaf;        /* last component, inside name */
    const char *class;       /* of the module; "" when unknown */
    gd_scope_id parent;      /* GD_NO_SCOPE for the root */
    gd_scope_id first_child; /* GD_NO_SCOPE when none */
    gd_scope_id next;        /* sibling */
    gd_node_id first_node;   /* directly in it; GD_NO_NODE when none: gd_graph_next_in_scope */
    uint32_t node_count;     /* directly in it */
    uint32_t total_count;    /* with everything below */
};
bool gd_graph_scope(const struct gd_graph *graph, gd_scope_id scope, struct gd_scope_info *ret);
bool gd_graph_has_classes(const struct gd_graph *graph);        /* some were sent, by GD_CLASSES */
gd_scope_id gd_graph_scope_limit(const struct gd_graph *graph); /* ids are < this */
gd_node_id gd_graph_next_in_scope(const struct gd_graph *graph, gd_node_id node);
/* By its path, or its path within a subgraph where no other has it. */
gd_scope_id gd_graph_find_scope(const struct gd_graph *graph, const char *path, size_t len);
/* The one scope whose path ends in the text, by the rules of gd_graph_find. GD_ENOTFOUND: *err is
 * not filled. GD_EAMBIGUOUS. */
int gd_graph_find_scope_end(const struct gd_graph *graph, const char *text, gd_scope_id *ret,
                            struct gd_err *err);
/* Writes the names of nodes and scopes in a text with dots instead of slashes, in place. */
void gd_graph_put_dots(const struct gd_graph *graph, char *text, size_t len);
/* Whether the text occurs in the name; dots and slashes are the same. */
bool gd_graph_name_holds(const char *name, const char *text);
/* All scopes with that path within their subgraph, one after another: start with *subgraph 0.
 * GD_NO_SCOPE: no more. */
gd_scope_id gd_graph_next_scope(const struct gd_graph *graph, const char *path, size_t len,
                                uint32_t *subgraph);

/* Frames of a node's stack, innermost first; parsed on first use. *count may be 0. */
const struct gd_frame *gd_graph_stack(struct gd_graph *graph, gd_node_id node, uint32_t *count);
/* Framework or installed package: as the process says, else by the file's name. */
bool gd_frame_is_library(const struct gd_frame *frame);
/* The innermost of these frames with a file that is not a library's, else the innermost with a
 * file; NULL: none has one. */
const struct gd_frame *gd_frame_place(const struct gd_frame *frames, uint32_t count);
/* The innermost frame of the user's own code, else the innermost; NULL: no frame has a file. */
const struct gd_frame *gd_graph_place(struct gd_graph *graph, gd_node_id node);

/* ---- searching ----------------------------------------------------------------------------- */

/* Called once per match in node order; a non-zero return stops the search and is returned. */
typedef int (*gd_node_fn)(void *ctx, gd_node_id node);

/* Substring of the full name, ASCII case ignored; of GRAPH/NAME where several subgraphs have nodes,
 * if it reaches beyond the graph's name. */
int gd_graph_search_name(const struct gd_graph *graph, const char *text, gd_node_fn fn, void *ctx);
/* Nodes of a type (case ignored) / of a kind / with a stack line FILE:LINE (file by path suffix;
 * line 0 means any). The source index is built on first use. */
int gd_graph_search_type(const struct gd_graph *graph, const char *type, gd_node_fn fn, void *ctx);
int gd_graph_search_kind(const struct gd_graph *graph, enum gd_node_kind kind, gd_node_fn fn,
                         void *ctx);
int gd_graph_search_source(struct gd_graph *graph, const char *file, uint32_t line, gd_node_fn fn,
                           void *ctx);
bool gd_graph_is_at(struct gd_graph *graph, gd_node_id node, const char *file, uint32_t line);

/* Types with their node counts, most frequent first; *count entries, valid until the next commit.
 */
struct gd_type_count {
    const char *type;
    uint32_t count;
};
const struct gd_type_count *gd_graph_types(const struct gd_graph *graph, uint32_t *count);

#endif

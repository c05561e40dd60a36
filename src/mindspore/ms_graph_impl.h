// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The inside of reading a GraphProto, shared by ms_graph_index.c (collects items and resolves
 * names) and ms_graph.c (adds nodes and edges).
 */
#ifndef GD_MSGRAPH_MS_GRAPH_IMPL_H
#define GD_MSGRAPH_MS_GRAPH_IMPL_H

#include "base/buf.h"
#include "mindspore/ms_graph.h"
#include "mindspore/pbread.h"

#define MS_NO_ITEM UINT32_MAX

struct ms_span {
    const uint8_t *data;
    size_t len;
};

enum ms_item_kind { MS_ITEM_NODE, MS_ITEM_PARAMETER, MS_ITEM_CONSTANT };

/* An operator, parameter or constant in the bytes. All three share one numbering: inputs are
 * resolved to these numbers first, and to node ids once all nodes exist. */
struct ms_item {
    const uint8_t *data;
    uint32_t len;
    uint32_t name_at, name_len; /* in data; kept because the name is compared often */
    gd_node_id node;            /* GD_NO_NODE until added */
    uint8_t kind;
    bool is_slot;  /* a constant that can select a tuple element: */
    uint16_t slot; /* this one */
};

struct ms_use { /* first use of a parameter or constant */
    struct ms_span scope;
    bool backward;
};

struct ms_attr { /* offsets in the text */
    size_t name, value;
};

struct gd_ms_graph_load {
    struct gd_graph *graph;
    struct ms_item *items;
    uint32_t count;
    size_t cap;
    uint32_t *table; /* open addressing: item number + 1, 0: free */
    uint32_t table_mask;
    uint32_t seed;
    bool dense;       /* node i is named i + 1, as in every release: nodes need no table */
    uint32_t *inputs; /* all resolved inputs, by operator */
    size_t input_count, input_cap;
    struct ms_use *first_use; /* per parameter and constant */
    struct gd_output *outputs;
    uint32_t output_cap;
    struct gd_attr *attrs;
    struct ms_attr *attr_at;
    size_t attr_cap, attr_at_cap;
    struct gd_buf text; /* the strings of the current node */
    struct gd_ms_graph_info info;
    /* current position */
    const uint8_t *data;
    size_t len;
    struct gd_pb reader;
    int phase;             /* see ms_graph.c */
    uint32_t next;         /* item */
    size_t next_input;     /* index in inputs */
    struct gd_edge *edges; /* of the current operator */
    size_t edge_cap;
    size_t budget; /* bytes of memory that may still be used */
};

/* Call before allocating that much. An empty element takes two bytes on the wire and a hundred in
 * memory, so the limit depends on the length of the bytes. GD_ELIMIT. */
int ms_graph_spend(struct gd_ms_graph_load *load, size_t count, size_t size, struct gd_err *err);
/* Makes room for `need` items, spending the budget. `list`: the address of the list's pointer. */
int ms_graph_reserve(struct gd_ms_graph_load *load, void *list, size_t need, size_t *cap,
                     size_t size, struct gd_err *err);

/* The last field of that number, empty if there is none; *bad is set if the bytes are broken. */
struct ms_span ms_string_field(const uint8_t *data, size_t len, uint32_t number, bool *bad);

/* Walks `data` with load->reader and adds at most `most` items of one kind; *more: call again.
 * Kinds are collected separately, so that operators come first and dense numbering is detected.
 * Checks every level that is read later, before the graph is modified. */
int ms_graph_collect(struct gd_ms_graph_load *load, uint32_t number, enum ms_item_kind kind,
                     uint32_t most, bool *more, struct gd_err *err);
/* Call when all are collected: */
int ms_graph_build_table(struct gd_ms_graph_load *load, struct gd_err *err);
uint32_t ms_graph_find_item(const struct gd_ms_graph_load *load, const struct ms_span *name);

#endif

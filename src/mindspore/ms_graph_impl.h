// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The inside of reading a GraphProto, shared by ms_graph_index.c (what is there, and how inputs
 * call it) and ms_graph.c (nodes, edges, and the order of it all).
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

/* An operator, a parameter or a constant, as the bytes hold it. Items are numbered over all three:
 * inputs are resolved to these numbers first, and to node ids when all nodes exist. */
struct ms_item {
    const uint8_t *data;
    uint32_t len;
    uint32_t name_at, name_len; /* inside data: found once, however often the name is compared */
    gd_node_id node;            /* GD_NO_NODE until added */
    uint8_t kind;
    bool is_slot;  /* a constant that can choose an element of a tuple: */
    uint16_t slot; /* this one */
};

struct ms_use { /* where a parameter or constant is used first */
    struct ms_span scope;
    bool backward;
};

struct gd_ms_graph_load {
    struct gd_graph *graph;
    struct ms_item *items;
    uint32_t count, cap;
    uint32_t *table; /* open addressing: item number + 1, 0 is free */
    uint32_t table_mask;
    uint32_t seed;
    bool dense; /* node i is called i + 1, as every release does it: no table needed for nodes */
    uint32_t *inputs; /* all resolved inputs, operator after operator */
    size_t input_count, input_cap;
    struct ms_use *first_use; /* of parameters and constants */
    struct gd_output *outputs;
    uint32_t output_cap;
    struct gd_attr *attrs;
    size_t *attr_at; /* pairs of offsets into text */
    uint32_t attr_cap;
    struct gd_buf text; /* the strings of the node at hand */
    struct gd_ms_graph_info info;
    /* where it stands */
    const uint8_t *data;
    size_t len;
    struct gd_pb reader;
    int phase;             /* of ms_graph.c */
    uint32_t next;         /* item */
    size_t next_input;     /* of inputs */
    struct gd_edge *edges; /* of the operator at hand */
    uint32_t edge_cap;
    size_t budget; /* bytes that all of this may still take */
};

/* Before memory grows by that much. An empty element is two bytes on the wire and a hundred here,
 * so what a graph may cost goes by its length. GD_ELIMIT. */
int ms_graph_spend(struct gd_ms_graph_load *load, size_t count, size_t size, struct gd_err *err);

/* The last field of that number, empty when there is none; *bad is set when the bytes break. */
struct ms_span ms_string_field(const uint8_t *data, size_t len, uint32_t number, bool *bad);

/* Goes over `data` by load->reader, adds at most `most` items of one kind, and sets *more when it
 * is to be called again. One kind at a time, so that operators come first and the dense numbering
 * can be seen. Every level that is read later is checked, before the graph is touched. */
int ms_graph_collect(struct gd_ms_graph_load *load, uint32_t number, enum ms_item_kind kind,
                     uint32_t most, bool *more, struct gd_err *err);
/* When all are collected: */
int ms_graph_build_table(struct gd_ms_graph_load *load, struct gd_err *err);
uint32_t ms_graph_find_item(const struct gd_ms_graph_load *load, const struct ms_span *name);

#endif

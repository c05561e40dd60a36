// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's textual IR (.ir) of all releases: nodes with operands, types, full names and stacks.
 * Other lines are ignored.
 */
#ifndef GD_DUMP_IR_TEXT_H
#define GD_DUMP_IR_TEXT_H

#include "engine/graph/graph.h"

struct gd_ir_facts {
    uint32_t nodes, parameters, graphs;
    uint32_t unknown;  /* operands that are not nodes */
    gd_node_id failed; /* analyze_fail.ir: where compilation failed; GD_NO_NODE: none */
    char entry[256];   /* the entry graph; "" unknown */
};

/* Adds the text's nodes to the graph, with order numbers from *next_order on. GD_EPROTO: no nodes
 * in it; GD_ELIMIT, GD_ENOMEM. */
int gd_ir_read(const char *text, size_t size, struct gd_graph *graph, uint32_t *next_order,
               struct gd_ir_facts *ret, struct gd_err *err);

#endif

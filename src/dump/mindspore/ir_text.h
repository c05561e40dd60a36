// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's IR as text (.ir), of all releases: the nodes of its graphs with operands, types, full
 * names and stacks. A line that is none of these is passed over.
 */
#ifndef GD_DUMP_IR_TEXT_H
#define GD_DUMP_IR_TEXT_H

#include "engine/graph/graph.h"

struct gd_ir_facts {
    uint32_t nodes, parameters, graphs;
    uint32_t unknown;  /* operands that no node is */
    gd_node_id failed; /* of analyze_fail.ir: where it failed; GD_NO_NODE none */
    char entry[256];   /* the graph it begins with; "" not told */
};

/* Adds the nodes of the text to the graph, numbered from *next_order on. GD_EPROTO: there is none
 * in it; GD_ELIMIT, GD_ENOMEM. */
int gd_ir_read(const char *text, size_t size, struct gd_graph *graph, uint32_t *next_order,
               struct gd_ir_facts *ret, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes a subgraph as the ModelProto of a dump's "graphs" directory. Operators and parameters
 * alike are nodes with full names, so that both are read back unchanged. The message has no field
 * for the slot of an edge: a field of our own holds it, which other readers skip, like the function
 * at the end of each stack line.
 */
#ifndef GD_DUMP_MS_GRAPH_WRITER_H
#define GD_DUMP_MS_GRAPH_WRITER_H

#include "base/buf.h"
#include "engine/graph/graph.h"

/* The node's type in the dump: everything that is not computed (weights, data) is "Parameter", as
 * in MindSpore; "Const" stays. */
const char *gd_ms_dumped_type(const struct gd_node_info *info);

/* Appends to out. out->failed: out of memory. */
void gd_ms_graph_write(struct gd_graph *graph, uint32_t subgraph, struct gd_buf *out);

#endif

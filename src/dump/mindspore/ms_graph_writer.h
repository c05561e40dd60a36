// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A subgraph as the ModelProto of a dump's "graphs" directory. Operators and parameters alike are
 * nodes with their full names, so that both come back as they were. The message has no field for
 * the slot of an edge: it is in one of ours, which other readers pass over, as they do the function
 * behind each line of a stack.
 */
#ifndef GD_DUMP_MS_GRAPH_WRITER_H
#define GD_DUMP_MS_GRAPH_WRITER_H

#include "base/buf.h"
#include "engine/graph/graph.h"

/* What the dump calls a node's type: what nothing computes, weights and data, is "Parameter", as
 * MindSpore has it; "Const" stays. */
const char *gd_ms_dumped_type(const struct gd_node_info *info);

/* Appends. out->failed: out of memory. */
void gd_ms_graph_write(struct gd_graph *graph, uint32_t subgraph, struct gd_buf *out);

#endif

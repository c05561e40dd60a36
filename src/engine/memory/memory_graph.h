// SPDX-License-Identifier: GPL-3.0-or-later
/* Memory by the shapes of a graph. */
#ifndef GD_MEMORY_GRAPH_H
#define GD_MEMORY_GRAPH_H

#include "engine/memory/memory.h"

struct gd_graph;

/* Adds the outputs of all nodes to an empty report, and sorts it. Places of source lines are looked
 * up, so the graph parses stacks. GD_ENOMEM. */
int gd_memory_of_graph(struct gd_memory *report, struct gd_graph *graph);

#endif

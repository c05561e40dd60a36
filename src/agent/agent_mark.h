// SPDX-License-Identifier: MIT
/* What the hooks must look at, computed whenever a request changes. With the lock. */
#ifndef GRADB_AGENT_MARK_H
#define GRADB_AGENT_MARK_H

#include "agent/agent_state.h"

/* Computes `armed`, `attention` and `due` from the requests. */
void agent_arm(struct agent *a);
/* Computes `marked` of one node, or of all nodes from `first` on. */
void agent_mark_node(struct agent *a, uint32_t id);
void agent_mark_nodes(struct agent *a, uint32_t first);
/* Whether the debugger waits for a node with this name. */
bool agent_is_expected(const struct agent *a, const char *name);
/* Whether the node's value must be copied in this step when it has run. */
bool agent_captures(const struct agent *a, const struct agent_node *node);

#endif

// SPDX-License-Identifier: MIT
/* The table of nodes, and sending it to the debugger in pieces. */
#ifndef GRADB_AGENT_GRAPH_H
#define GRADB_AGENT_GRAPH_H

#include "agent/agent_state.h"

struct agent_graph_cursor { /* what the I/O thread has sent of the graph on this connection */
    uint32_t next_node;
    size_t next_late;
    bool uncommitted; /* something was sent since the last commit */
    uint64_t sync;    /* number sent with the last commit */
};
/* With the lock: packs the next piece. *ret is malloc'd; NULL: nothing to send. GD_ENOMEM. */
int agent_graph_chunk(struct agent *a, struct agent_graph_cursor *cursor, unsigned char **ret,
                      size_t *len);
void agent_graph_free(struct agent *a);
/* With the lock: implements gradb_bind. */
void agent_bind(struct agent *a, gradb_node node, unsigned slot, const gradb_tensor *tensor);

#endif

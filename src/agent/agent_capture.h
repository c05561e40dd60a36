// SPDX-License-Identifier: MIT
/*
 * Copies of values that do not outlive their operator. The steps in which copies are due are known
 * in advance, so all other steps run as if nobody had asked.
 */
#ifndef GRADB_AGENT_CAPTURE_H
#define GRADB_AGENT_CAPTURE_H

#include "agent/agent_watch.h"

/* With the lock: replaces the Capture request. The caller updates the nodes' flags and marks. */
void agent_capture_set(struct agent *a, const Gradb__V1__Capture *m);
void agent_capture_clear(struct agent *a);
/* With the lock and the turn, when a step begins: frees the copies of the previous step. */
void agent_capture_step(struct agent *a, int64_t step);
/* With the lock and the turn, when the node has run: copies its values if requested, after the
 * watch plans that look at the end of the step have examined what will be gone by then. */
void agent_capture_node(struct agent *a, uint32_t node, struct agent_told told);

#endif

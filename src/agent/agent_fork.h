// SPDX-License-Identifier: MIT
/* Forked children: they find the agent disarmed and its descriptors closed. */
#ifndef GRADB_AGENT_FORK_H
#define GRADB_AGENT_FORK_H

#include "agent/agent_state.h"

/* From now on a forked child finds the agent disarmed and its descriptors closed. */
void agent_fork_register(struct agent *a);
/* Whether this process opened it. */
bool agent_fork_is_ours(const struct agent *a);
void agent_fork_unregister(struct agent *a);

#endif

// SPDX-License-Identifier: MIT
/* Messages of the debugger that change what the hooks look at. */
#ifndef GRADB_AGENT_CONTROL_H
#define GRADB_AGENT_CONTROL_H

#include "agent/agent_state.h"

/* With the lock: forgets everything a debugger asked for; requests about nodes once the current
 * pass is over. */
void agent_disarm(struct agent *a);
/* With the lock: applies a message that changes what the hooks look at, now or when the pass is
 * over. Returns true if it took ownership. */
bool agent_control(struct agent *a, agent_to *message);
void agent_pass_begin(struct agent *a);
void agent_pass_end(struct agent *a); /* applies the messages that had to wait */
/* With the lock: forgets requests about nodes, now or when the pass is over. */
void agent_control_clear(struct agent *a);

#endif

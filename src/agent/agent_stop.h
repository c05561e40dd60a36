// SPDX-License-Identifier: MIT
/* Stopping the training thread. */
#ifndef GRADB_AGENT_STOP_H
#define GRADB_AGENT_STOP_H

#include "agent/agent_state.h"

/* With the lock, on the training thread: returns when the debugger resumes the run or is lost. */
void agent_stop_thread(struct agent *a, Gradb__V1__StopReason reason, gradb_node node,
                       bool at_step_end, const char *text, uint64_t report);

#endif

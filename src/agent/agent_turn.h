// SPDX-License-Identifier: MIT
/* The turn: one thread at a time calls into libgradb. */
#ifndef GRADB_AGENT_TURN_H
#define GRADB_AGENT_TURN_H

#include "agent/agent_state.h"

/* Takes the turn and the lock, waiting for both. False: the caller already has the turn (it is
 * inside the source), and nothing was taken. */
bool agent_turn_take(struct agent *a);
void agent_turn_end(struct agent *a);
/* Takes only the lock, while nobody else has the turn: for changes of the node table. */
void agent_table_lock(struct agent *a);

#endif

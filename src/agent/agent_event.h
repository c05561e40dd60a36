// SPDX-License-Identifier: MIT
/* Events of the training at which it waits for the debugger's verdict. With the lock. */
#ifndef GRADB_AGENT_EVENT_H
#define GRADB_AGENT_EVENT_H

#include "agent/agent_state.h"

/* Replaces what the debugger waits for; NULL: nothing. */
void agent_event_wishes(struct agent *a, const Gradb__V1__EventWishes *wishes);
void agent_event_verdict(struct agent *a, const Gradb__V1__EventVerdict *verdict);
/* Somebody waits for the begin or the end of steps, and it is not known which: see event_due and
 * event_step of struct agent for the others. */
bool agent_event_of_steps(const struct agent *a);
void agent_event_free(struct agent *a);
/* The newest value of a number. */
void agent_event_scalar(struct agent *a, const struct agent_scalar *scalar);
/* Whether any event depends on numbers: those must be reported in time. */
bool agent_event_tests_numbers(const struct agent *a);
/* A step begins or ends. The caller has the turn. True: the thread was stopped. */
bool agent_event_step(struct agent *a, bool begins, int64_t step);
/* Nothing of the running step has been computed, or none runs. */
bool agent_event_is_between(const struct agent *a);

#endif

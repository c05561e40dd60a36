// SPDX-License-Identifier: MIT
/* Messages that need no answer: scalars, log lines, times of steps. */
#ifndef GRADB_AGENT_WORDS_H
#define GRADB_AGENT_WORDS_H

#include "agent/agent_state.h"

/* With the lock: queues a message other than a report; false: it was dropped. */
bool agent_queue(struct agent *a, const ProtobufCMessage *message);
/* The same without the lock. */
void agent_words_queue(struct agent *a, const ProtobufCMessage *message);
/* The step that a number belongs to which is reported now: of an evaluation, and between two steps,
 * the one that has ended. */
int64_t agent_number_step(const struct agent *a);
/* Whether a number of that step comes when the step has ended. */
bool agent_is_late(const struct agent *a, int64_t step);
/* With the lock: gradb_scalar, of that step. */
void agent_scalar(struct agent *a, const char *name, double value, int64_t step);
void agent_words_drop(struct agent *a); /* with the lock: whatever is queued */
/* Fills a message from the times of a step, without those of its nodes. */
void agent_fill_timing(Gradb__V1__Timing *m, const struct agent_times *from);
/* With the lock: after one second, explains once what delays an interrupt. */
void agent_tell_late(struct agent *a);

#endif

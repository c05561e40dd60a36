// SPDX-License-Identifier: MIT
/* What every part of libgradb uses: errors, clocks, waking the I/O thread, lines for stderr. */
#ifndef GRADB_AGENT_CORE_H
#define GRADB_AGENT_CORE_H

#include "agent/agent_state.h"

/* Whether the handle may be used: not NULL and not in a forked child. */
bool agent_usable(const struct agent *a);
uint64_t agent_now_ns(void); /* monotonic */
/* With the lock: sets the line returned by gradb_error(). */
void agent_set_error(struct agent *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void agent_wake(const struct agent *a); /* wakes the I/O thread */
/* One line to the program's stderr; dropped if writing would block. */
void agent_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports, once, that the debugger requested by the user is not obeyed. */
void agent_refused(struct agent *a, const char *why);
/* NULL: no such node. */
struct agent_node *agent_node_at(const struct agent *a, uint32_t id);

#endif

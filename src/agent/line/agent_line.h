// SPDX-License-Identifier: MIT
/* Lines of the program's source at which it stops. */
#ifndef GRADB_AGENT_LINE_H
#define GRADB_AGENT_LINE_H

#include "agent/agent_state.h"

struct agent_line_stop { /* borrowed from the caller of gradb_line_reached, which waits */
    const unsigned *ids;
    size_t id_count;
    const gradb_frame *frames;
    size_t frame_count;
};

/* With the lock. Takes the message, a LineBreaks, if it returns true. */
bool agent_line_set(struct agent *a, agent_to *message);
/* The debugger is gone: the program forgets its lines when it can. */
void agent_line_clear(struct agent *a);
void agent_line_free(struct agent *a);
/* Whether the source is to be called. */
bool agent_line_is_new(const struct agent *a);
/* Fills Stopped.line for the current stop; free it with agent_line_unfill. False: it is not at a
 * line, or memory is short. */
bool agent_line_fill(const struct agent *a, Gradb__V1__LineStop *m);
void agent_line_unfill(Gradb__V1__LineStop *m);

#endif

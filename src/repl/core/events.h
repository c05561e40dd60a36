// SPDX-License-Identifier: GPL-3.0-or-later
/* Reports of events: what they share. */
#ifndef GD_REPL_EVENTS_H
#define GD_REPL_EVENTS_H

#include "engine/debugger.h"
#include "repl/out/out.h"

struct repl;

#define EVENT_PREFIX 32

/* "session" and "rank"; nothing for NULL. */
void event_add_session(cJSON *object, const struct gd_session *session);
/* "[rank 2] " in a job, "[2] " when several processes are connected, else "". */
const char *event_prefix(const struct repl *repl, const struct gd_session *session,
                         char ret[EVENT_PREFIX]);
/* The engine's observer: reports what is announced. */
void repl_on_event(void *ctx, const struct gd_event *event);

#endif

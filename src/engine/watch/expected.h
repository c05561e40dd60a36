/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Nodes that breakpoints and watchpoints wait for. Where the graph grows as the program runs, the
 * process learns what their names contain: it reports a matching node at once, and does not
 * continue past it before it knows whether to stop there.
 */
#ifndef GD_ENGINE_EXPECTED_H
#define GD_ENGINE_EXPECTED_H

#include "engine/debugger.h"

/* Call it when breakpoints, watchpoints or the graph have changed. */
void gd_expected_push(struct gd_session *session);
/* Whether new nodes may come: what matches nothing then waits for them. */
bool gd_session_grows(const struct gd_session *session);

#endif

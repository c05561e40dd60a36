/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Nodes that breakpoints and watchpoints wait for. Where the graph grows as the program runs, the
 * process is told what their names contain: it shows such a node at once, and does not go on behind
 * it before it knows whether it is to stop there.
 */
#ifndef GD_ENGINE_EXPECTED_H
#define GD_ENGINE_EXPECTED_H

#include "engine/debugger.h"

/* To be called when breakpoints, watchpoints or the graph have changed. */
void gd_expected_push(struct gd_session *session);
/* Whether nodes may come that are not there yet: what matches nothing waits for them. */
bool gd_session_grows(const struct gd_session *session);

#endif

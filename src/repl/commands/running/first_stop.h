// SPDX-License-Identifier: GPL-3.0-or-later
/* Waiting for the first stop of a session that connects. */
#ifndef GD_REPL_FIRST_STOP_H
#define GD_REPL_FIRST_STOP_H

#include "repl/core/command.h"

struct first_stop {
    struct gd_debugger *debugger;
    int above; /* only sessions with a greater number count */
    struct repl *repl;
};
/* The first of those sessions; NULL: none has connected. */
struct gd_session *first_stop_session(const struct first_stop *first);
/* Selects the session and waits for its stop, or for the first stop of all ranks of its job.
 * call->session is the one that is selected then. GD_EINTR, GD_ELOST. */
int first_stop_wait(struct command_call *call, struct gd_session *session, struct gd_err *err);

#endif

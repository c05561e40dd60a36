// SPDX-License-Identifier: GPL-3.0-or-later
/* What the commands that start, run, end and choose training processes share. */
#ifndef GD_REPL_RUNNING_H
#define GD_REPL_RUNNING_H

#include "repl/core/command.h"

#define RUN_NEEDS (CMD_NEEDS_STOP | CMD_NEEDS_LIVE)

/* The optional N of `step` and similar commands; default 1. GD_EUSAGE: more than one argument. */
int run_take_count(struct command_call *call, int64_t *ret, struct gd_err *err);

/* The function of `step` and similar commands, whose .variant is the kind of run. */
int run_by_count(struct command_call *call, struct gd_err *err);

/* Calls fn for the other ranks of the job, where commands move them together. A rank that fails is
 * a warning. Returns how many succeeded. */
int run_for_other_ranks(struct command_call *call, struct gd_session *session,
                        int (*fn)(struct gd_target *target, struct gd_err *err));

/* The end of a training process, and of the others of its job. */
struct ending {
    const struct gd_session *session;
    uint64_t *sequence; /* by rank: the stop at which its end was requested; NULL: requested once */
    int count;
};
/* The caller frees ending->sequence. */
void ending_begin(struct ending *ending, const struct gd_session *session);
/* For repl_wait; ctx is a struct ending. Repeats the request for ranks that stopped again. */
bool ending_is_over(void *ctx);

/* "[Training process 2, rank 1 of 4, stopped]" */
void session_print(struct command_call *call, const struct gd_session *session);
/* Selects the process whose number call->line is. */
int session_select(struct command_call *call, struct gd_err *err);
/* Shows the selected process. */
int session_show_selected(struct command_call *call, struct gd_err *err);

/* `rank check [WHAT]` */
int rank_check(struct command_call *call, const char *what, struct gd_err *err);

/* Waiting for the first stop of a session that connects (first_stop.c). */
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

/* Also listens on the address. Other hosts that can reach it need a token: one is made and shown
 * when none is set. GD_EUNSUPPORTED: there is no server; the server's own errors. */
int listening_start(struct command_call *call, const char *address, struct gd_err *err);
/* At the user's meeting point and at MindSpore's port; one of the two is enough (a warning). */
int listening_as_usual(struct command_call *call, struct gd_err *err);
/* Somewhere that a program started by `run` can connect to, unless gradb listens already. */
int listening_ensure(struct command_call *call, struct gd_err *err);
/* The TCP address, else the socket; NULL: not listening. */
const char *listening_address(struct command_call *call);
const char *listening_socket(struct command_call *call); /* NULL: none */

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Stops: noting and reporting one, waiting for one, and what hangs on it (displays, `commands`).
 * Whether a stop is reported at all: announce.h.
 */
#ifndef GD_REPL_STOPS_H
#define GD_REPL_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/debugger.h"
#include "repl/core/command.h"

#define STOP_NUMBERS 16

/* Of the REPL: the stop that was reported but not followed up yet (displays, bodies). */
struct repl_stop {
    int session;               /* its number; 0: none */
    int numbers[STOP_NUMBERS]; /* breakpoints and watchpoints of that stop */
    int number_count;
    bool in_body;    /* its `commands` run */
    bool resumed;    /* one of them resumed the training */
    repl_stop_fn fn; /* repl_at_stop */
    void *fn_ctx;
};

/* After a resume: waits for a stop later than number `before` or the end of call->session, then
 * does what hangs on it. In the background or inside a stop's body it returns at once. GD_EINTR in
 * batch, GD_ELOST (reported already: no text). */
int repl_wait_stop(struct command_call *call, uint64_t before, struct gd_err *err);
/* The same after gd_ranks_resume, for all ranks of the job: until a run is settled that was not yet
 * when there were `settled`. */
int repl_wait_ranks(struct command_call *call, uint64_t settled, struct gd_err *err);
/* In a batch: lets processes that connect run, until one stops or all have ended, with the program
 * that `run` started. *ret: the one that stopped; NULL: the job is over. GD_EINTR. */
int repl_wait_job(struct repl *repl, struct gd_session **ret);
/* A command failed in a batch that is to go on all the same. */
bool repl_goes_on_after(const struct repl *repl, int rc);
/* The process of a session that was lost still runs: exec made it another program. */
bool repl_lost_runs(const struct repl *repl, const struct gd_session *session);
/* Lets go of every process: they run on by themselves. */
void repl_let_all_go(struct repl *repl);
void repl_note_stop(struct repl *repl, struct gd_session *session); /* at the event */
/* Displays and bodies of a stop that nobody waited for. */
void repl_follow_up(struct repl *repl);
void repl_report_stop(struct repl *repl, struct gd_session *session); /* text or JSON */
/* Until the weights that it began with are checked, at most some seconds. GD_EINTR. */
int repl_wait_initial(struct repl *repl, struct gd_session *session, struct gd_err *err);
/* Runs the session, or all ranks of its job, and waits for the stop. */
int repl_resume(struct command_call *call, const struct gd_run *run, struct gd_err *err);
void repl_state_record(struct command_call *call); /* how a run command left call->session */
/* A MindSpore process: it ends itself when gradb is gone, detached or not. */
bool repl_ends_without_us(const struct gd_session *session);

#endif

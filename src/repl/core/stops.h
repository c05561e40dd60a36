// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Stops: noting and reporting one, waiting for one, and what follows it (displays, `commands`).
 * Whether a stop is reported at all: announce.h.
 */
#ifndef GD_REPL_STOPS_H
#define GD_REPL_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/debugger.h"
#include "repl/core/command.h"

#define STOP_NUMBERS 16

/* The REPL's last stop: reported, but not followed up yet (displays, bodies). */
struct repl_stop {
    int session;               /* its number; 0: none */
    int numbers[STOP_NUMBERS]; /* breakpoints and watchpoints of that stop */
    int number_count;
    bool in_body;    /* its `commands` run */
    bool resumed;    /* one of them resumed the training */
    repl_stop_fn fn; /* repl_at_stop */
    void *fn_ctx;
};

/* What `dump` makes of runs and stops: an armed dump ends runs at the steps that it has to write,
 * writes them, and resumes what the user had asked for. */
struct repl_dump_ops {
    /* Before a run: makes it end at the next step to be dumped. */
    void (*aim)(struct repl *repl, struct gd_session *session, struct gd_run *run);
    /* The stop was caused only by the dump: it is not reported. */
    bool (*is_passing)(struct repl *repl, const struct gd_session *session);
    /* After a stop was reported: writes what is due. true: the training runs again. */
    bool (*at_stop)(struct repl *repl, struct gd_session *session);
    /* The graph grew while the training runs: the new nodes may have to be dumped. */
    void (*graph_grew)(struct repl *repl, struct gd_session *session);
    /* Ctrl-C while the training ran: it stays stopped at its next stop. */
    void (*interrupted)(struct repl *repl);
};

/* After a resume: waits for a stop later than number `before` or the end of call->session, then
 * follows it up. Returns at once in the background and inside a stop's body. GD_EINTR in batch;
 * GD_ELOST (already reported: no text). */
int repl_wait_stop(struct command_call *call, uint64_t before, struct gd_err *err);
/* The same after gd_ranks_resume, for all ranks of the job: waits until more than `settled` runs
 * are settled. */
int repl_wait_ranks(struct command_call *call, uint64_t settled, struct gd_err *err);
/* In a batch: resumes processes that connect until one stops, or until all of them and the program
 * that `run` started have ended. *ret: the one that stopped; NULL: the job is over. GD_EINTR. */
int repl_wait_job(struct repl *repl, struct gd_session **ret);
/* The same for a command that follows one session, NULL: none, and its job: resumes all others,
 * whatever stopped them, and counts in job.others those that had just connected. */
void repl_let_others_run(struct repl *repl, const struct gd_session *except);
/* A command failed, but `on-error` says to continue. */
bool repl_goes_on_after(const struct repl *repl, int rc);
/* The lost session's process still runs: exec replaced its program. */
bool repl_lost_runs(const struct repl *repl, const struct gd_session *session);
/* Detaches every process. */
void repl_let_all_go(struct repl *repl);
/* remembers numbers and status of a new stop */
void repl_note_stop(struct repl *repl, struct gd_session *session);
/* Displays and bodies of a stop that no command waited for. */
void repl_follow_up(struct repl *repl);
void repl_report_stop(struct repl *repl, struct gd_session *session); /* text or JSON */
/* Waits, at most some seconds, until the initial weights are checked. GD_EINTR. */
int repl_wait_initial(struct repl *repl, struct gd_session *session, struct gd_err *err);
/* Resumes the session, or all ranks of its job, and waits for the stop. */
int repl_resume(struct command_call *call, const struct gd_run *run, struct gd_err *err);
/* the record of where a run command left call->session */
void repl_state_record(struct command_call *call);
/* After a stop: runs the commands of the `on` that fired, and resumes the run if it stopped only
 * for them. One that fails is disabled. True: the training runs again (ons.c). */
bool ons_run(struct repl *repl, struct gd_session *session);
/* The session, or another rank of its job, is held only for such commands. */
bool ons_hold(const struct gd_session *session);
/* A MindSpore process ends when gradb does, detached or not. */
bool repl_ends_without_us(const struct gd_session *session);

#endif

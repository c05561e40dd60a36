// SPDX-License-Identifier: GPL-3.0-or-later
/* Resuming a session, or all ranks of its job, and waiting for the stop. */
#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "repl/core/repl_impl.h"

void repl_state_record(struct command_call *call)
{
    const struct gd_session *session = call->session;
    cJSON *record = out_record(call->out, "run");

    out_set(record, OUT_INT("session", session->number),
            OUT_TEXT("state", gd_state_name(session->state)),
            OUT_IF(session->state == GD_STOPPED,
                   OUT_TEXT("reason", gd_stop_reason_name(session->stop.reason))),
            OUT_INT("step", gd_session_step(session)));
}

#define INITIAL_SECONDS 10 /* seconds that the check of initial weights may delay a run */

/* For the session, or all ranks of its job. */
static bool initial_is_done(void *ctx)
{
    const struct gd_session *session = ctx;
    const struct gd_ranks *ranks = gd_ranks_of(session);

    for (int rank = 0; ranks && rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        if (member && gd_session_is_live(member) && gd_watch_is_busy(member)) {
            return false;
        }
    }
    return !gd_watch_is_busy(session);
}

int repl_wait_initial(struct repl *repl, struct gd_session *session, struct gd_err *err)
{
    return repl_wait(repl, initial_is_done, session, INITIAL_SECONDS) == GD_EINTR
               ? gd_fail(err, GD_EINTR, "interrupted while the initial weights were checked")
               : GD_OK;
}

int repl_resume(struct command_call *call, const struct gd_run *run, struct gd_err *err)
{
    if (repl_wait_initial(call->repl, call->session, err) != GD_OK) {
        return GD_EINTR;
    }
    out_flush(call->out); /* the stop may be reported before this returns */
    int number = call->session->number;
    uint64_t before = call->session->stop.sequence;
    const struct gd_ranks *ranks =
        gd_ranks_move_together(call->session, run->kind) ? gd_ranks_of(call->session) : NULL;
    uint64_t settled = ranks ? gd_ranks_settled(ranks) : 0;
    struct gd_run aimed = *run;
    if (call->repl->dump) {
        call->repl->dump->aim(call->repl, call->session, &aimed);
    }
    int rc = gd_ranks_resume(call->session, &aimed, err);

    bool whole_job = call->repl->options.batch && run->kind == GD_RUN_CONTINUE &&
                     !call->repl->stop.in_body && call->repl->stop.session == 0;
    if (rc == GD_OK) {
        call->repl->job.batch = whole_job ? BATCH_WHOLE_JOB : BATCH_ONE_STOP;
        rc = ranks ? repl_wait_ranks(call, settled, err) : repl_wait_stop(call, before, err);
        call->repl->job.batch = BATCH_ONE_STOP;
    }
    call->session =
        ranks || whole_job ? call->debugger->current : gd_debugger_session(call->debugger, number);
    if (rc == GD_OK && call->session && out_is_json(call->out)) {
        repl_state_record(call);
    }
    return rc;
}

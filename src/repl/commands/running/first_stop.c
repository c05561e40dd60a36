// SPDX-License-Identifier: GPL-3.0-or-later
/* Waiting for the first stop of a session that has just connected, with all ranks of its job. */
#include "engine/ranks.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

struct gd_session *first_stop_session(const struct first_stop *first)
{
    for (size_t i = 0; i < first->debugger->session_count; i++) {
        if (first->debugger->sessions[i]->number > first->above) {
            return first->debugger->sessions[i];
        }
    }
    return NULL;
}

#define NOTICE_SECONDS 10.0 /* seconds until the missing ranks are named */

static bool ranks_stand(void *ctx)
{
    const struct gd_ranks *ranks = ctx;
    return gd_ranks_settled(ranks) > 0 || gd_ranks_live(ranks) == 0;
}

static void tell_missing(struct command_call *call, const struct gd_ranks *ranks)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);

    if (gd_ranks_missing(ranks, &text)) {
        out_printf(call->out,
                   "Waiting for rank %s of %d to connect (Ctrl-C: continue without it)...\n",
                   gd_buf_text(&text), gd_ranks_world_size(ranks));
        out_flush(call->out);
    }
    gd_buf_deinit(&text);
}

/* Waits until all ranks of a job are stopped before the first step, or the user gives up on those
 * that are missing. */
static int wait_ranks(struct command_call *call, struct gd_ranks *ranks, struct gd_err *err)
{
    int rc = GD_OK;

    out_flush(call->out);
    if (repl_wait(call->repl, ranks_stand, ranks, NOTICE_SECONDS) == GD_ETIMEOUT) {
        tell_missing(call, ranks);
        rc = repl_wait(call->repl, ranks_stand, ranks, -1);
    } else if (!ranks_stand(ranks)) {
        rc = GD_EINTR;
    }
    if (rc == GD_EINTR && call->repl->options.batch) {
        return gd_fail(err, rc, "interrupted before all ranks had stopped");
    }
    if (rc == GD_EINTR) {
        gd_ranks_give_up(ranks);
    }
    return GD_OK;
}

int first_stop_wait(struct command_call *call, struct gd_session *session, struct gd_err *err)
{
    struct gd_ranks *ranks = gd_ranks_of(session);
    int rc = GD_OK;

    gd_debugger_select(call->debugger, session->number, NULL);
    call->session = session;
    if (ranks && !call->background) {
        rc = wait_ranks(call, ranks, err);
        call->session = call->debugger->current;
    }
    if (rc == GD_OK && call->session) {
        rc = repl_wait_stop(call, 0, err);
    }
    call->session = call->debugger->current;
    if (rc == GD_ELOST || rc == GD_EINTR) {
        call->repl->end.fail_status = rc == GD_ELOST ? STATUS_NO_CONNECTION : STATUS_OK;
    }
    return rc;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: recheck */
#include <stdlib.h>

#include "engine/watch/watchpoint.h"
#include "repl/core/await.h"
#include "repl/core/repl_impl.h"
#include "repl/values/checked.h"

struct recheck {
    struct await await;
    size_t hits;
    struct gd_err err;
};

static void on_rechecked(void *ctx, size_t hits, const struct gd_err *err)
{
    struct recheck *recheck = ctx;
    if (!await_take(recheck)) {
        return;
    }
    recheck->hits = hits;
    if (err) {
        recheck->err = *err;
    }
}

/* A MindSpore process does not count the checks that it makes itself. */
static bool counts_checks(const struct command_call *call)
{
    for (const struct gd_watchpoint *w = call->debugger->watchpoints; w; w = w->next) {
        if (w->enabled && gd_watchpoint_place(w, call->debugger, call->session, NULL, 0) ==
                              GD_WATCH_PLACE_PROCESS) {
            return false;
        }
    }
    return true;
}

static int tell_rechecked(struct command_call *call, size_t hits, struct gd_watch_tally tally,
                          struct gd_err *err)
{
    size_t missing = gd_watch_recheck_missing(call->session);
    bool counts = counts_checks(call);
    int rc =
        counts ? hits_need_checked(hits, tally.checks, tally.unclear, tally.errors, err) : GD_OK;

    if (rc != GD_OK) {
        return rc;
    }
    cJSON *record = out_record(call->out, "recheck");
    out_set(record, OUT_INT("hits", hits));
    hits_add_checked(record, tally.checks, tally.unclear, tally.errors);
    out_set(record, OUT_INT("no_value", missing));
    out_say(call->out, record,
            "[{!hits}No watchpoint fires on these values: {checked}"
            "[{!counts}, plus the checks that the training process makes itself]"
            "[; {no_value|tensor} without a value].\n]",
            OUT_TEXT("checked", hits_checked(call, tally.checks, tally.unclear, tally.errors)),
            OUT_BOOL("counts", counts));
    return GD_OK;
}

static int run_recheck(struct command_call *call, struct gd_err *err)
{
    struct recheck *recheck = calloc(1, sizeof(*recheck));
    if (!recheck) {
        return gd_fail_nomem(err);
    }
    struct gd_watch_tally before;
    gd_watch_tally(call->debugger, &before);
    int rc = gd_watch_recheck(call->session, on_rechecked, recheck, err);
    if (rc != GD_OK) {
        free(recheck);
        return rc;
    }
    rc = repl_await(call->repl, recheck, -1);
    if (rc != GD_OK) {
        return gd_fail(err, rc, "interrupted while rechecking the watchpoints");
    }
    struct recheck answer = *recheck;
    free(recheck);
    repl_hits_over(call->repl);
    if (answer.err.code != GD_OK) {
        *err = answer.err;
        return answer.err.code;
    }
    return tell_rechecked(call, answer.hits, gd_watch_tally_since(call->debugger, &before), err);
}

const struct command cmd_recheck = {
    .name = "recheck",
    .group = "breakpoints",
    .usage = "recheck",
    .summary = "Check all watchpoints again on the values of this stop",
    .help =
        "Hits are reported as at any stop and replace the hits of this step. The training does\n"
        "not move.",
    .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
    .run = run_recheck,
};

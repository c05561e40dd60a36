// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: kill */
#include <stdlib.h>

#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

/* Seconds for the rest of the step and for saving; Ctrl-C ends the wait. */
#define END_PATIENCE 10.0

/* Asks the training to end and waits. false: it cannot be asked. */
static bool end_training(struct command_call *call, struct gd_session *session)
{
    struct ending ending;
    struct gd_err why;
    if ((session->target->capabilities & GD_CAN_KILL) == 0) {
        return false;
    }
    ending_begin(&ending, session);
    bool asked = gd_target_kill(session->target, &why) == GD_OK;
    if (asked) {
        run_for_other_ranks(call, session, gd_target_kill);
        repl_wait(call->repl, ending_is_over, &ending, END_PATIENCE);
        launch_wait(call->repl, END_PATIENCE); /* it may be saving */
    }
    free(ending.sequence);
    return asked;
}

static int run_kill(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = call->debugger->current;
    bool live = session && gd_session_is_live(session);

    if (!live && !launch_is_running(call->repl)) {
        return gd_fail(err, GD_ESTATE, "no training process is running");
    }
    if (!repl_confirm(call, "End the training process?")) {
        return GD_OK;
    }
    out_flush(call->out);
    call->repl->job.muted = true;
    int rc = GD_OK;
    if (live && !end_training(call, session) && !launch_is_running(call->repl)) {
        rc = gd_target_kill(session->target, err);
    }
    launch_kill(call->repl);
    call->repl->job.muted = false;
    if (rc == GD_OK) {
        out_printf(call->out, "The training process has ended.\n");
    }
    return rc;
}

const struct command cmd_kill = {
    .name = "kill",
    .aliases = "k",
    .group = "running",
    .usage = "kill",
    .summary = "End the training process",
    .help =
        "gradb asks the process to end at the end of its step, as Ctrl-C would, so that it can\n"
        "save its work. A program started by \"run\" is killed if it has not ended after ten\n"
        "seconds, or at Ctrl-C.",
    .flags = CMD_CHANGES,
    .run = run_kill,
};

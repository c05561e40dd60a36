// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: kill */
#include <signal.h>
#include <stdlib.h>

#include "engine/ranks.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

/* Seconds for the rest of the step and for saving; Ctrl-C ends the wait. */
#define END_PATIENCE 10.0

static bool is_ended_with(const struct gd_session *other, const struct gd_session *session)
{
    return other == session || (gd_ranks_of(other) && gd_ranks_of(other) == gd_ranks_of(session) &&
                                session->debugger->settings.rank_locking != GD_LOCKING_ON);
}

/* Another training that the same program started; NULL: the program can be killed. */
static const struct gd_session *find_other(struct command_call *call,
                                           const struct gd_session *session)
{
    const struct gd_debugger *debugger = call->debugger;

    for (size_t i = 0; session && i < debugger->session_count; i++) {
        const struct gd_session *other = debugger->sessions[i];
        if (gd_session_is_live(other) && !is_ended_with(other, session) &&
            launch_has_process(call->repl, (pid_t)other->peer.pid)) {
            return other;
        }
    }
    return NULL;
}

/* Those that have not ended although they were asked. */
static void kill_processes(struct command_call *call, const struct gd_session *session)
{
    const struct gd_debugger *debugger = call->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *one = debugger->sessions[i];
        if (gd_session_is_live(one) && is_ended_with(one, session) &&
            launch_has_process(call->repl, (pid_t)one->peer.pid)) {
            kill((pid_t)one->peer.pid, SIGKILL);
        }
    }
}

/* Asks the training to end and waits; whole: also for the program's end. false: it cannot be
 * asked. */
static bool end_training(struct command_call *call, struct gd_session *session, bool whole)
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
        if (whole) {
            launch_wait(call->repl, END_PATIENCE); /* it may be saving */
        }
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
    const struct gd_session *other = live ? find_other(call, session) : NULL;
    int rc = GD_OK;
    if (live && !end_training(call, session, !other) && !launch_is_running(call->repl)) {
        rc = gd_target_kill(session->target, err);
    }
    if (other) {
        kill_processes(call, session);
    } else {
        launch_kill(call->repl);
    }
    call->repl->job.muted = false;
    if (rc == GD_OK) {
        out_printf(call->out, "The training process has ended.\n");
    }
    other = other ? find_other(call, session) : NULL;
    if (other && gd_debugger_select(call->debugger, other->number, NULL) == GD_OK) {
        session_print(call, other);
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
        "seconds, or at Ctrl-C. If it has other trainings, they stay as they are, and the first\n"
        "of them is selected.",
    .flags = CMD_CHANGES,
    .run = run_kill,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: kill */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/commands/running/running.h"
#include "repl/core/everyone.h"
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

/* ---- the training, but not the process ------------------------------------------------------- */

static void take_how(void *ctx, struct gd_session *session, const cJSON *reply)
{
    cJSON **how = ctx;

    (void)session;
    if (!*how) {
        *how = cJSON_Duplicate(cJSON_GetObjectItem(reply, "how"), true);
    }
}

/* Adds a metric of the last step. */
static void add_metric(const struct gd_session *session, const char *name, cJSON *record)
{
    const struct gd_scalar *scalar = gd_session_scalar(session, name);

    if (scalar) {
        out_set(record, OUT_REAL(name, scalar->value));
    }
}

static void say_end_of_training(struct command_call *call, struct gd_session *session,
                                const char *how)
{
    bool gentle = strcmp(how, "request_stop") == 0;
    cJSON *record = out_record(call->out, "training_ends");
    char text[160];

    add_metric(session, "epoch", record);
    out_set(record, OUT_INT("step", gd_session_step(session)), OUT_TEXT("how", how));
    add_metric(session, "loss", record);
    out_say(call->out, record,
            "The training ends at [epoch {epoch}, ]step {step}[, loss {loss}]: ");
    out_printf(call->out, "%s\n",
               gentle          ? "run_context.request_stop(), the script continues after it"
               : how[0] == 'K' ? "KeyboardInterrupt, which the script can catch"
                               : "the program ends its loop");
    snprintf(text, sizeof(text), "the training ends: %s", how);
    gd_session_on_event(session, "kill", text, gd_session_step(session), GD_NO_NODE);
}

/* Asks all ranks to leave their loops, and waits for the end, as `continue` does. */
static int leave_loop(struct command_call *call, struct gd_session *session, struct gd_err *err)
{
    struct ending ending;
    int rc = gd_target_kill(session->target, err);

    if (rc != GD_OK) {
        return rc;
    }
    ending_begin(&ending, session);
    run_for_other_ranks(call, session, gd_target_kill);
    if (call->repl->stop.in_body) {
        call->repl->stop.resumed = true; /* by the training process itself */
    } else if (repl_wait(call->repl, ending_is_over, &ending, -1) == GD_EINTR) {
        rc = gd_fail(err, GD_EINTR, "interrupted: the training ends without being waited for");
    }
    free(ending.sequence);
    return rc;
}

/* The process continues, and is not killed. */
static int kill_training(struct command_call *call, struct gd_err *err)
{
    static const struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    cJSON *how = NULL;
    int refused = 0;
    int rc = repl_check_needs(call, "kill training", CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);

    if (rc == GD_OK && call->session->target->capabilities & GD_CAN_COMMAND) {
        rc = job_command(call, "end-training", "", take_how, &how, &refused, err);
        rc = rc == GD_EUNSUPPORTED ? GD_OK : rc; /* a C program */
    }
    if (rc == GD_OK) {
        const char *word = cJSON_IsString(how) ? how->valuestring : "StopTraining";
        say_end_of_training(call, call->session, word);
        out_flush(call->out);
        rc = strcmp(word, "request_stop") == 0 ? repl_resume(call, &run, err)
                                               : leave_loop(call, call->session, err);
    }
    cJSON_Delete(how);
    return rc;
}

static int run_kill(struct command_call *call, struct gd_err *err)
{
    if (call->argc > 0) {
        return call->argc == 1 && strcmp(call->argv[0], "training") == 0
                   ? kill_training(call, err)
                   : gd_fail(err, GD_EUSAGE, "kill: expected nothing, or \"training\"");
    }
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
    .usage = "kill [training]",
    .summary = "End the training process, or only the training",
    .help =
        "gradb asks the process to end at the end of its step, as Ctrl-C would, so that it can\n"
        "save its work. A program started by \"run\" is killed if it has not ended after ten\n"
        "seconds, or at Ctrl-C. If it has other trainings, they stay as they are, and the first\n"
        "of them is selected.\n"
        "\n"
        "kill training ends the training early and leaves the process alone: in MindSpore's\n"
        "Model.train by run_context.request_stop(), so the script continues after it; elsewhere\n"
        "in Python by a KeyboardInterrupt at the end of the step, which the script can catch; a\n"
        "C program ends its loop. The training continues to that point by itself.",
    .args = {ARG_CHOICE},
    .flags = CMD_CHANGES,
    .run = run_kill,
};

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

static const struct gd_run to_the_end = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};

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
        *how = cJSON_Duplicate(reply, true);
    }
}

/* Adds a metric; the loss only if it is that of the last step: a script may log it less often. */
static void add_metric(const struct gd_session *session, const char *name, cJSON *record)
{
    const struct gd_scalar *scalar = gd_session_scalar(session, name);

    if (scalar && (scalar->step == gd_session_step(session) || strcmp(name, "loss") != 0)) {
        out_set(record, OUT_REAL(name, scalar->value));
    }
}

/* What ends a training, and when. */
static const char *way_of_end(const char *how)
{
    return how[0] == 'r'   ? "run_context.request_stop(), the script continues after it"
           : how[0] == 'K' ? "KeyboardInterrupt, which the script can catch"
                           : "the program leaves its loop where it calls gradb_wants_stop";
}

/* when: after which the training ends: "step", "next step" or "epoch"; "asked": the program knows.
 */
static void say_end_of_training(struct command_call *call, struct gd_session *session,
                                const char *how, const char *when)
{
    bool next = strcmp(when, "next step") == 0, now = strcmp(when, "step") == 0;
    int64_t step = gd_session_step(session) + next;
    cJSON *record = out_record(call->out, "training_ends");
    char text[160];

    if (session->stop.happened.epoch > 0) {
        out_set(record, OUT_INT("epoch", session->stop.happened.epoch));
    } else {
        add_metric(session, "epoch", record);
    }
    out_set(record, OUT_INT("step", step), OUT_TEXT("how", how),
            OUT_IF(!now, OUT_TEXT("after", when)));
    if (!next) {
        add_metric(session, "loss", record);
    }
    out_say(call->out, record,
            now && step == 0 ? "The training ends before its first step: {way}\n"
            : now || next
                ? "The training ends at [epoch {epoch}, ]step {step}[, loss {loss}]: {way}\n"
            : when[0] == 'e' ? "The training ends after its epoch, now at [epoch {epoch}, ]step "
                               "{step}[, loss {loss}]: {way}\n"
                             : "The training is asked to end at [epoch {epoch}, ]step {step}[, "
                               "loss {loss}]: {way}\n",
            OUT_TEXT("way", way_of_end(how)));
    snprintf(text, sizeof(text), "the training ends: %s", how);
    gd_session_on_event(session, "kill", text, gd_session_step(session), GD_NO_NODE);
}

/* The training process is asked by a command, or, if it has none, as a program in C is: then *reply
 * stays NULL. */
static int ask_for_end(struct command_call *call, cJSON **reply, struct gd_err *err)
{
    struct gd_target *target = call->session->target;
    int refused = 0, rc = GD_EUNSUPPORTED;

    if (target->capabilities & GD_CAN_COMMAND) {
        rc = job_command(call, "end-training", "", take_how, reply, &refused, err);
    }
    if (rc == GD_EUNSUPPORTED && (rc = gd_target_end_training(target, err)) == GD_OK) {
        run_for_other_ranks(call, call->session, gd_target_end_training);
    }
    return rc;
}

/* Ranks that run cannot be asked, and would wait for those that end. */
static int end_together(struct command_call *call, struct gd_err *err)
{
    int rc = job_at_step_end(call, "kill training", err);

    if (rc == GD_OK) {
        out_printf(call->out, "All ranks end the training at the end of the step.\n");
    }
    return rc == GD_OK && !call->repl->stop.in_body ? repl_resume(call, &to_the_end, err) : rc;
}

/* The process continues, and is not killed. */
static int kill_training(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    int rc = repl_check_needs(call, "kill training", CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);

    if (rc == GD_OK && !job_is_stopped(call->session)) {
        return end_together(call, err);
    }
    rc = rc == GD_OK ? ask_for_end(call, &reply, err) : rc;
    if (rc == GD_OK && strcmp(out_text_of(reply, "how"), "ended") == 0) {
        if (!call->repl->stop.in_body) {
            out_printf(call->out, "The training has been ended already.\n");
        }
    } else if (rc == GD_OK) {
        const char *when = out_text_of(reply, "after");
        say_end_of_training(call, call->session, reply ? out_text_of(reply, "how") : "StopTraining",
                            when[0] ? when : (reply ? "step" : "asked"));
        out_flush(call->out);
        rc = repl_resume(call, &to_the_end, err);
    }
    cJSON_Delete(reply);
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
        return gd_fail(err, GD_ESTATE, "no training process is running: \"run\" starts one");
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
    .help = "gradb asks the process to end at the end of its step, as Ctrl-C would, so that\n"
            "it can save its work. A program started by \"run\" is killed if it has not ended\n"
            "after ten seconds, or at Ctrl-C. If it has other trainings, they stay as they\n"
            "are, and the first of them is selected.\n"
            "\n"
            "kill training ends the training after its step and leaves the process alone: in\n"
            "MindSpore's Model.train by run_context.request_stop(), so the script continues\n"
            "after it; elsewhere in Python by a KeyboardInterrupt, which the script can\n"
            "catch; a C program leaves its loop. If the script does not catch it, its exit\n"
            "status is 0. In a job of several ranks all end after the same step.",
    .args = {ARG_CHOICE},
    .flags = CMD_CHANGES,
    .run = run_kill,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Waiting for the training to stop, Ctrl-C meanwhile, and what follows a stop. */
#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "repl/core/announce.h"
#include "repl/core/command.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/deferred.h"
#include "repl/launch/launch.h"

#include <string.h>

#define ALONE_SECONDS 3.0
#define HINT_SECONDS  1.0 /* after an interrupt, before a hint that it takes time */

static void add_number(struct repl *repl, int number)
{
    int room = (int)(sizeof(repl->stop.numbers) / sizeof(repl->stop.numbers[0]));

    for (int i = 0; i < repl->stop.number_count; i++) {
        if (repl->stop.numbers[i] == number) {
            return;
        }
    }
    if (repl->stop.number_count < room) {
        repl->stop.numbers[repl->stop.number_count++] = number;
    }
}

void repl_note_stop(struct repl *repl, struct gd_session *session)
{
    if (session->stop.together) {
        return; /* another rank is the reason */
    }
    repl->stop.session = session->number;
    repl->stop.number_count = 0;
    for (const struct gd_breakpoint *b = repl->debugger->breakpoints; b; b = b->next) {
        if (b->caused && session->stop.reason == GD_STOP_BREAKPOINT) {
            add_number(repl, b->number);
        }
    }
    for (int i = 0; session->stop.reason == GD_STOP_EVENT && i < session->fired_count; i++) {
        const struct gd_breakpoint *at = gd_debugger_breakpoint(repl->debugger, session->fired[i]);
        if (at && !at->command) {
            add_number(repl, at->number);
        }
    }
    /* traces and unchecked hits do not stop it */
    for (size_t i = hits_first_of_stop(session); i < session->hit_count; i++) {
        const struct gd_hit *hit = &session->hits[i];
        if (!hit->traced && !hit->error && hit->step == session->stop.step) {
            add_number(repl, hit->watchpoint);
        }
    }
    if (session->stop.reason == GD_STOP_HIT && !repl->job.diagnoses) {
        repl_add_status(repl, STATUS_WATCHPOINT);
    }
    if (repl->busy.depth == 0) {
        ev_timer_stop(repl->loop, &repl->watchers.follow);
        ev_timer_set(&repl->watchers.follow, 0., 0.);
        ev_timer_start(repl->loop, &repl->watchers.follow);
    }
}

/* Runs the hook that prints displays, with a call of its own. */
static void run_stop_hook(struct repl *repl, struct gd_session *session)
{
    static const struct command hook = {.name = "display"};
    struct own_call own;

    if (!repl->stop.fn || session != repl->debugger->current) {
        return;
    }
    repl->stop.fn(repl_begin_call(&own, repl, &hook, session), repl->stop.fn_ctx);
    out_report_end(&own.report);
}

static void run_body(struct repl *repl, int number)
{
    const struct repl_lines *body = repl_commands_of(repl, number);
    struct repl_lines copy = {.line = NULL}; /* a body may replace itself */

    if (!body) {
        return;
    }
    for (size_t i = 0; i < body->count; i++) {
        if ((i > 0 || strcmp(body->line[0], "silent") != 0) &&
            repl_lines_add(&copy, body->line[i]) != GD_OK) {
            break;
        }
    }
    for (size_t i = 0; i < copy.count && !repl->end.quit && !repl->stop.resumed; i++) {
        if (repl_run_line(repl, copy.line[i], LINE_SCRIPT) != GD_OK) {
            break;
        }
    }
    if (repl->script.body.kind != BODY_NONE) {
        repl_body_drop(repl);
    }
    repl_lines_clear(&copy);
}

/* `enable once` and `enable count`: disables it after the last stop of its count. */
static void count_stops(struct repl *repl, const int *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        if (!repl_count_stop(repl, numbers[i])) {
            continue;
        }
        if (gd_watchpoint_at(repl->debugger, numbers[i])) {
            gd_watchpoint_enable(repl->debugger, numbers[i], false, NULL);
        } else {
            gd_debugger_enable_breakpoint(repl->debugger, numbers[i], false, NULL);
        }
    }
}

static bool prompt_is_idle(const struct repl *repl)
{
    return repl->front.prompt && repl->front.prompt->is_idle(repl);
}

/* Displays, then bodies. `waited`: a command waited for the stop. True: a body resumed the
 * training. */
static bool follow_up(struct repl *repl, bool waited)
{
    struct gd_session *session = gd_debugger_session(repl->debugger, repl->stop.session);
    int numbers[sizeof(repl->stop.numbers) / sizeof(repl->stop.numbers[0])];
    int count = repl->stop.number_count;
    bool silent = repl_stop_is_silent(repl);

    memcpy(numbers, repl->stop.numbers, sizeof(numbers));
    repl->stop.session = 0;
    count_stops(repl, numbers, count);
    if (!session || session->state != GD_STOPPED) {
        return false;
    }
    repl->busy.depth++;
    repl_send_settings(repl);
    deferred_run(repl);
    bool passes = ons_run(repl, session) || (session->state == GD_STOPPED && repl->dump &&
                                             repl->dump->at_stop(repl, session));
    if (passes || session->state != GD_STOPPED) { /* stopped for `on` or a dump, and resumed */
        repl->busy.depth--;
        return passes;
    }
    repl_tell_equal_ranks(repl, session);
    if (session->state != GD_STOPPED) { /* it was interrupted, or lost */
        repl->busy.depth--;
        return false;
    }
    if (!silent) {
        run_stop_hook(repl, session);
    }
    if (waited || !prompt_is_idle(repl) || repl_offers(repl) == 0) {
        repl_offer(repl, session, waited);
    } /* otherwise the prompt asks later */
    repl->stop.in_body = true;
    repl->stop.resumed = false;
    repl->script.user_lines = 0;
    for (int i = 0; i < count && !repl->end.quit && !repl->stop.resumed; i++) {
        run_body(repl, numbers[i]);
    }
    bool resumed = repl->stop.resumed;
    repl->stop.in_body = false;
    repl->stop.resumed = false;
    repl->busy.depth--;
    return resumed;
}

void repl_follow_up(struct repl *repl)
{
    if (repl->stop.session != 0 && repl->busy.depth == 0 && !repl->busy.pumping) {
        if (!follow_up(repl, false) && prompt_is_idle(repl)) {
            repl->front.prompt->offer(repl);
        }
    }
}

/* ---- the whole job of a batch ---- */

static bool is_newcomer(const struct gd_session *session)
{
    return session->state == GD_STOPPED && session->stop.reason == GD_STOP_CONNECTED;
}

/* Returns how many newcomers it resumed. all: also those that stopped later. In a batch nobody
 * could resume them. A job of several ranks must be complete first. */
static int let_run(struct repl *repl, const struct gd_session *except, bool all)
{
    const struct gd_ranks *exempt = except ? gd_ranks_of(except) : NULL;
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    int resumed = 0;

    for (size_t i = 0; i < repl->debugger->session_count; i++) {
        struct gd_session *session = repl->debugger->sessions[i];
        const struct gd_ranks *ranks = gd_ranks_of(session);
        bool stands = !ranks || (gd_ranks_settled(ranks) > 0 && !gd_ranks_are_busy(ranks));
        bool is_new = is_newcomer(session);
        if (session != except && (!ranks || ranks != exempt) &&
            (is_new || (all && session->state == GD_STOPPED)) && stands &&
            !gd_watch_is_busy(session) && gd_ranks_resume(session, &run, NULL) == GD_OK) {
            resumed += is_new ? 1 : 0;
        }
    }
    return resumed;
}

static void let_newcomers_run(struct repl *repl, const struct gd_session *except)
{
    let_run(repl, except, false);
}

void repl_let_others_run(struct repl *repl, const struct gd_session *except)
{
    repl->job.others += let_run(repl, except, true);
}

/* The first one that stopped for a reason that commands may examine. */
static struct gd_session *find_stopped(const struct repl *repl)
{
    struct gd_session *found = NULL;

    for (size_t i = 0; i < repl->debugger->session_count; i++) {
        struct gd_session *session = repl->debugger->sessions[i];
        if (session->state == GD_STOPPED && !is_newcomer(session) &&
            !gd_ranks_is_running(session) && (!found || found->stop.together)) {
            found = session;
        }
    }
    return found;
}

static bool job_done(void *ctx)
{
    struct repl *repl = ctx;
    bool live = launch_is_running(repl) && !launch_is_detached(repl);

    let_newcomers_run(repl, NULL);
    for (size_t i = 0; i < repl->debugger->session_count; i++) {
        live = live || gd_session_is_live(repl->debugger->sessions[i]);
    }
    return !live || find_stopped(repl);
}

int repl_wait_job(struct repl *repl, struct gd_session **ret)
{
    int rc = repl_wait(repl, job_done, repl, -1);

    *ret = rc == GD_OK ? find_stopped(repl) : NULL;
    return rc;
}

bool repl_lost_runs(const struct repl *repl, const struct gd_session *session)
{
    return session->state == GD_LOST && launch_has_process(repl, (pid_t)session->peer.pid);
}

/* ---- waiting for a stop ---- */

struct stop_wait {
    struct repl *repl;
    struct gd_debugger *debugger;
    int number; /* a number, because the session may be freed during the wait */
    uint64_t before;
    const struct gd_ranks *ranks; /* NULL: only the session counts */
    uint64_t settled;
    bool interrupted; /* a stop was requested */
    bool given_up;    /* to the prompt: the training runs in the background */
    bool left;        /* lost because exec replaced the program */
};

static struct gd_session *waited_for(const struct stop_wait *wait)
{
    return gd_debugger_session(wait->debugger, wait->number);
}

/* Another process of the batch's job has stopped. */
static bool has_other_stopped(const struct stop_wait *wait, const struct gd_session *session)
{
    const struct gd_session *other = gd_debugger_session(wait->debugger, wait->repl->stop.session);

    return other && other != session && other->state == GD_STOPPED && !is_newcomer(other) &&
           !gd_ranks_is_running(other) &&
           (!gd_ranks_of(other) || !session || gd_ranks_of(other) != gd_ranks_of(session));
}

static bool stop_done(void *ctx)
{
    const struct stop_wait *wait = ctx;
    const struct gd_session *session = waited_for(wait);

    if (wait->repl->job.batch == BATCH_WHOLE_JOB) {
        let_newcomers_run(wait->repl, session);
        if (has_other_stopped(wait, session)) {
            return true;
        }
    }
    if (wait->ranks) {
        return gd_ranks_settled(wait->ranks) != wait->settled || gd_ranks_live(wait->ranks) == 0;
    }
    return !session || session->state == GD_LOST || session->state == GD_FINISHED ||
           (session->state == GD_STOPPED && session->stop.sequence != wait->before);
}

/* Ctrl-C while the training runs. */
static int handle_interrupt(struct command_call *call, struct stop_wait *wait, struct gd_err *err)
{
    struct repl *repl = call->repl;
    struct gd_err why = {.code = GD_OK};

    if (repl->end.quit || repl->front.left) {
        wait->given_up = true;
        return GD_OK;
    }
    if (repl->options.batch) {
        return gd_fail(err, GD_EINTR, "interrupted");
    }
    bool again = wait->interrupted;
    if (repl->dump) {
        repl->dump->interrupted(repl);
    }
    wait->interrupted = true;
    int rc = GD_OK;
    if (!again) {
        call->session = gd_debugger_session(repl->debugger, wait->number);
        rc = call->session && gd_session_is_live(call->session)
                 ? gd_ranks_interrupt(call->session, &why)
                 : GD_OK;
    }
    if (!again && rc == GD_OK) {
        return 0;
    }
    if (rc != GD_OK) {
        repl_printf(repl, true, "warning: %s\n", why.text);
    }
    out_printf(call->out,
               "The training continues in the background: stop it with \"interrupt\".\n");
    wait->given_up = true;
    return GD_OK;
}

/* A rank that runs alone blocks in the first collective that needs the others. */
static void tell_slow(struct command_call *call, const struct stop_wait *wait)
{
    const struct gd_session *session = waited_for(wait);

    if (wait->interrupted) {
        out_printf(call->out, "Waiting for the training to stop; press Ctrl-C again to let it run "
                              "in the background.\n");
    } else if (session) {
        out_printf(
            call->out,
            "Rank %d runs alone and has not stopped: it may wait in a collective for the other "
            "ranks, which are stopped (press Ctrl-C twice to let it run in the background).\n",
            session->peer.rank);
        int limit = gd_ranks_limit(gd_ranks_of(session));
        if (limit > 0) {
            out_printf(call->out, "MindSpore ends a job in which a rank waits for %d s.\n", limit);
        }
    }
    out_flush(call->out);
}

static bool goes_alone(const struct stop_wait *wait)
{
    const struct gd_session *session = waited_for(wait);
    const struct gd_ranks *ranks = session ? gd_ranks_of(session) : NULL;
    return !wait->ranks && ranks && gd_ranks_live(ranks) > 1;
}

static int wait_one(struct command_call *call, struct stop_wait *wait, struct gd_err *err)
{
    double patience = goes_alone(wait) ? ALONE_SECONDS : -1;

    for (;;) {
        int rc = repl_wait(call->repl, stop_done, wait, patience);
        if (rc == GD_OK) {
            return GD_OK;
        }
        patience = -1;
        if (rc == GD_ETIMEOUT) {
            tell_slow(call, wait);
            continue;
        }
        rc = handle_interrupt(call, wait, err);
        if (rc != GD_OK || wait->given_up) {
            return rc;
        }
        patience = HINT_SECONDS;
    }
}

/* The job may have stopped at another rank, and a body may have moved one alone. */
static void wait_on(struct stop_wait *wait, const struct gd_session *session, uint64_t settled)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);

    wait->number = session->number;
    wait->before = session->stop.sequence;
    wait->ranks = ranks && gd_ranks_are_busy(ranks) ? ranks : NULL;
    wait->settled = settled;
    wait->interrupted = false;
}

/* After the awaited process ended or another one stopped: waits for the rest of the job. *session
 * becomes the one that stopped, and is selected. */
static int wait_job(struct command_call *call, struct stop_wait *wait,
                    const struct gd_session **session, struct gd_err *err)
{
    struct repl *repl = call->repl;
    struct gd_session *stopped = NULL;
    int number = *session ? (*session)->number : 0;

    if (*session && (*session)->state == GD_STOPPED && !has_other_stopped(wait, *session)) {
        return GD_OK;
    }
    wait->left = *session && repl_lost_runs(repl, *session);
    if (repl_wait_job(repl, &stopped) != GD_OK) {
        return gd_fail(err, GD_EINTR, "interrupted");
    }
    if (stopped) {
        gd_debugger_select(repl->debugger, stopped->number, NULL);
    }
    *session = stopped ? stopped : gd_debugger_session(repl->debugger, number);
    return GD_OK;
}

static int wait_stop(struct command_call *call, struct stop_wait wait, struct gd_err *err)
{
    struct repl *repl = call->repl;

    if (repl->stop.in_body) {
        repl->stop.resumed = true; /* the caller that runs the body waits */
        return GD_OK;
    }
    if (call->background && !repl->options.batch) {
        return GD_OK;
    }
    if (call->background) {
        repl_printf(repl, true,
                    "warning: --batch runs nothing in the background: waiting for the next stop\n");
    }
    for (;;) {
        out_flush(call->out);
        int rc = wait_one(call, &wait, err);
        if (rc != GD_OK || wait.given_up) {
            return rc;
        }
        const struct gd_session *session = wait.ranks ? repl->debugger->current : waited_for(&wait);
        if (repl->job.batch == BATCH_WHOLE_JOB) {
            rc = wait_job(call, &wait, &session, err);
            if (rc != GD_OK) {
                return rc;
            }
        }
        if (!session || (session->state == GD_LOST && !wait.left)) {
            if (err) {
                *err = (struct gd_err){.code = GD_ELOST}; /* already reported by the event */
            }
            return GD_ELOST;
        }
        uint64_t sequence = session->stop.sequence;
        uint64_t settled = wait.ranks ? gd_ranks_settled(wait.ranks) : 0;
        if (session->state != GD_STOPPED || !follow_up(repl, true)) {
            return GD_OK;
        }
        if (repl->debugger->current) {
            wait_on(&wait, repl->debugger->current, settled);
            wait.before = sequence;
        }
    }
}

int repl_wait_stop(struct command_call *call, uint64_t before, struct gd_err *err)
{
    struct stop_wait wait = {.repl = call->repl,
                             .debugger = call->debugger,
                             .number = call->session->number,
                             .before = before};
    return wait_stop(call, wait, err);
}

int repl_wait_ranks(struct command_call *call, uint64_t settled, struct gd_err *err)
{
    struct stop_wait wait = {.repl = call->repl,
                             .debugger = call->debugger,
                             .number = call->session->number,
                             .ranks = gd_ranks_of(call->session),
                             .settled = settled};
    return wait_stop(call, wait, err);
}

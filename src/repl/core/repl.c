// SPDX-License-Identifier: GPL-3.0-or-later
/* The REPL object: its watchers on the loop, its beginning and its end. */
#include "engine/ranks.h"
#include "repl/core/command.h"
#include "repl/core/events.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

#include <ev.h>
#include <stdlib.h>
#include <sys/time.h>

static double default_now(void *ctx)
{
    (void)ctx;
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
}

/* Its only effect is that the loop returns. */
static void on_pump_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

/* Runs the loop once, for max_seconds at most. */
static void default_pump(void *ctx, double max_seconds)
{
    struct repl *repl = ctx;
    ev_timer timer;

    if (max_seconds < 0) {
        ev_run(repl->loop, EVRUN_ONCE);
        return;
    }
    ev_timer_init(&timer, on_pump_limit, max_seconds, 0.);
    ev_timer_start(repl->loop, &timer);
    ev_run(repl->loop, EVRUN_ONCE);
    ev_timer_stop(repl->loop, &timer);
}

#define RANKS_TICK 0.1 /* seconds */

static void on_ranks_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct repl *repl = timer->data;

    (void)events;
    gd_ranks_tick(repl->debugger);
    if (!gd_ranks_need_tick(repl->debugger)) {
        ev_timer_stop(loop, timer);
    }
}

#define WORK_SECONDS 0.02 /* before keys and connections are served again */

static void on_work_check(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct repl *repl = prepare->data;

    (void)events;
    if (gd_debugger_has_work(repl->debugger)) {
        ev_idle_start(loop, &repl->watchers.work);
    } else {
        ev_idle_stop(loop, &repl->watchers.work);
    }
}

static void on_work_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
    struct repl *repl = idle->data;

    (void)loop;
    (void)events;
    gd_debugger_work(repl->debugger, WORK_SECONDS);
}

static void on_follow_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    repl_follow_up(timer->data);
}

int repl_create(struct ev_loop *loop, struct gd_debugger *debugger,
                const struct repl_options *options, struct repl **ret, struct gd_err *err)
{
    struct repl *repl = calloc(1, sizeof(*repl));
    if (!repl) {
        return gd_fail_nomem(err);
    }
    repl->loop = loop;
    repl->debugger = debugger;
    repl->options = *options;
    ev_timer_init(&repl->watchers.ranks, on_ranks_timer, RANKS_TICK, RANKS_TICK);
    repl->watchers.ranks.data = repl;
    ev_timer_init(&repl->watchers.follow, on_follow_timer, 0., 0.);
    repl->watchers.follow.data = repl;
    ev_idle_init(&repl->watchers.work, on_work_idle);
    repl->watchers.work.data = repl;
    ev_prepare_init(&repl->watchers.work_check, on_work_check);
    repl->watchers.work_check.data = repl;
    if (!debugger->pump) {
        debugger->pump = default_pump;
        debugger->pump_ctx = repl;
    }
    if (!debugger->now) {
        debugger->now = default_now;
    }
    int rc = gd_debugger_observe(debugger, repl_on_event, repl);
    if (rc != GD_OK) {
        free(repl);
        return gd_fail_nomem(err);
    }
    ev_prepare_start(loop, &repl->watchers.work_check);
    *ret = repl;
    return GD_OK;
}

void repl_destroy(struct repl *repl)
{
    if (!repl) {
        return;
    }
    gd_debugger_unobserve(repl->debugger, repl_on_event, repl);
    ev_timer_stop(repl->loop, &repl->watchers.ranks);
    ev_timer_stop(repl->loop, &repl->watchers.follow);
    ev_prepare_stop(repl->loop, &repl->watchers.work_check);
    ev_idle_stop(repl->loop, &repl->watchers.work);
    if (repl->debugger->pump_ctx == repl) {
        repl->debugger->pump = NULL;
        repl->debugger->pump_ctx = NULL;
    }
    for (int i = 0; i < REPL_SLOT_COUNT; i++) {
        repl_set_slot(repl, (enum repl_slot)i, NULL, NULL);
    }
    repl_launch_free(repl);
    repl_values_free(repl);
    repl_script_free(repl);
    repl_lines_clear(&repl->history);
    repl_lines_clear(&repl->deferred);
    free(repl->script.repeat);
    repl_hits_forget(repl);
    free(repl);
}

void repl_end(struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;

    repl->end.quit = repl->end.quit == QUIT_NO ? QUIT_ORDERLY : repl->end.quit;
    repl->end.closing = true;
    if (repl->end.let_go) {
        launch_detach(repl);
    } else if (!launch_is_detached(repl)) {
        launch_kill(repl);
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_session_is_live(session) && (session->target->capabilities & GD_CAN_DETACH) != 0) {
            gd_target_detach(session->target, NULL);
        }
    }
    repl_pump(repl, 0); /* sends what is queued */
    if (debugger->server) {
        debugger->server->close(debugger->server_ctx);
    }
}

int repl_execute(struct repl *repl, const char *line)
{
    if (repl->busy.pumping) {
        return GD_ESTATE;
    }
    repl_clear_interrupt(repl);
    int rc = repl_run_line(repl, line, LINE_TYPED);
    repl_follow_up(repl);
    repl_clear_interrupt(repl);
    if (!repl->end.quit) { /* otherwise the processes are detached first */
        repl_out_wait(repl, 0);
    }
    return rc;
}

int repl_execute_beside(struct repl *repl, const char *line)
{
    struct repl_body body = repl->script.body;

    repl->script.body = (struct repl_body){.kind = BODY_NONE};
    int rc = repl_execute(repl, line);
    repl_body_drop(repl); /* a key opens none */
    repl->script.body = body;
    return rc;
}

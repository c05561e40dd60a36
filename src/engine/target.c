// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/target.h"

#include <stdio.h>
#include <string.h>

#include "engine/metric/over_ranks.h"
#include "engine/session_impl.h"

static int fail_unsupported(const struct gd_target *target, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EUNSUPPORTED, "a %s target cannot %s", target->ops->kind, what);
}

static int need_live(const struct gd_target *target, const char *what, struct gd_err *err)
{
    enum gd_state state = target->session ? target->session->state : GD_STOPPED;

    if (state == GD_LOST) {
        return gd_fail(err, GD_ESTATE, "cannot %s: the training process is lost", what);
    }
    if (state == GD_FINISHED) {
        return gd_fail(err, GD_ESTATE, "cannot %s: the training has ended", what);
    }
    return GD_OK;
}

static int need_stop(const struct gd_target *target, const char *what, struct gd_err *err)
{
    enum gd_state state = target->session ? target->session->state : GD_STOPPED;

    if (state == GD_RUNNING) {
        return gd_fail(err, GD_ESTATE,
                       "cannot %s while the training is running: use \"interrupt\" first", what);
    }
    if (state == GD_WAITING || state == GD_CONNECTED) {
        return gd_fail(err, GD_ESTATE,
                       "cannot %s yet: the training process has not stopped for the first time",
                       what);
    }
    return need_live(target, what, err);
}

/* Like need_stop; but a session that is held for a dprintf has values, and an ended session that
 * still has a target is a record, which can be read. */
static int need_values(const struct gd_target *target, const char *what, struct gd_err *err)
{
    const struct gd_session *session = target->session;
    bool record = session && session->state == GD_FINISHED;
    bool held = session && session->state == GD_RUNNING && session->impl->printing > 0;

    return record || held ? GD_OK : need_stop(target, what, err);
}

/* For what a target may lack (`lacks` says what) and needs a live process for (`what`). */
static int check_live(const struct gd_target *target, bool has, const char *lacks, const char *what,
                      struct gd_err *err)
{
    return has ? need_live(target, what, err) : fail_unsupported(target, lacks, err);
}

static int check_run(const struct gd_target *target, const struct gd_run *run, struct gd_err *err)
{
    bool counted = run->kind == GD_RUN_STEP || run->kind == GD_RUN_NEXT || run->kind == GD_RUN_BACK;
    bool travels = run->kind == GD_RUN_BACK || run->kind == GD_RUN_GOTO;

    if (travels && !(target->capabilities & GD_CAN_GOTO)) {
        return fail_unsupported(target, "go back to a step: only dumps and records can", err);
    }
    if (counted && run->count < 1) {
        return gd_fail(err, GD_EINVAL, "a count must be 1 or more, not %lld",
                       (long long)run->count);
    }
    if (run->kind == GD_RUN_TO_NODE && run->node == GD_NO_NODE && (!run->name || !run->name[0])) {
        return gd_fail(err, GD_EINVAL, "give a node to run to");
    }
    return need_stop(target, "resume", err);
}

/* A resume was accepted: remembers it and reports that the session runs, unless the target did. */
static void note_run(struct gd_session *session, const struct gd_run *run,
                     const struct gd_stop *from, uint64_t sequence)
{
    struct gd_session_impl *impl = session->impl;

    impl->rechecking = run->kind == GD_RUN_RECHECK;
    if (run->kind != GD_RUN_RECHECK && sequence == UINT64_MAX) {
        impl->run = *run;
        if (run->name != impl->run_name) {
            snprintf(impl->run_name, sizeof(impl->run_name), "%s", run->name ? run->name : "");
        }
        impl->run.name = impl->run_name;
        impl->run_from = *from;
        impl->has_run = true;
    }
    if (session->state == GD_STOPPED && session->stop.sequence == sequence) {
        gd_session_on_running(session);
    }
}

int gd_target_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct gd_session *session = target->session;
    struct gd_stop from = {.node = GD_NO_NODE};
    uint64_t sequence = 0;

    if (!target->ops->resume) {
        return fail_unsupported(target, "run: it has no steps", err);
    }
    int rc = check_run(target, run, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (session) {
        from = session->stop;
        sequence = session->stop.sequence;
        /* The target may report a stop before it returns, so what ran must be known by then. */
        note_run(session, run, &from, UINT64_MAX);
    }
    rc = target->ops->resume(target, run, err);
    if (rc == GD_OK && session && run->kind != GD_RUN_RECHECK) {
        note_run(session, run, &from, sequence);
    }
    return rc;
}

int gd_target_interrupt(struct gd_target *target, struct gd_err *err)
{
    struct gd_session *session = target->session;

    int rc = check_live(target, target->ops->interrupt != NULL, "be interrupted", "interrupt", err);

    if (rc != GD_OK) {
        return rc;
    }
    if (session && session->state == GD_STOPPED) {
        return gd_fail(err, GD_ESTATE, "the training process is already stopped");
    }
    rc = target->ops->interrupt(target, err);
    if (rc == GD_OK && session && session->state != GD_STOPPED) {
        session->interrupt_asked = true;
        over_ranks_release(session);
    }
    return rc;
}

int gd_target_interrupt_command(struct gd_target *target, struct gd_err *err)
{
    int rc = check_live(target, target->ops->interrupt != NULL, "be interrupted", "interrupt", err);
    return rc == GD_OK ? target->ops->interrupt(target, err) : rc;
}

int gd_target_interrupt_at(struct gd_target *target, int64_t step, struct gd_err *err)
{
    struct gd_session *session = target->session;

    if (!target->ops->interrupt_at || !(target->capabilities & GD_CAN_INTERRUPT_AT)) {
        return fail_unsupported(target, "stop at the end of a future step", err);
    }
    if (step < 0) {
        return gd_fail(err, GD_EINVAL, "steps count from 1: there is no step %lld",
                       (long long)step);
    }
    int rc = need_live(target, "interrupt", err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = target->ops->interrupt_at(target, step, err);
    if (rc == GD_OK && session) {
        session->impl->interrupt_at = step;
    }
    return rc;
}

int gd_target_command(struct gd_target *target, const char *name, const char *args, gd_node_id node,
                      gd_command_fn fn, void *ctx, struct gd_err *err)
{
    unsigned needed = GD_CAN_COMMAND;
    needed |= strcmp(name, "digest") == 0 ? GD_CAN_DIGEST : 0U;
    needed |= strcmp(name, "metric") == 0 ? GD_CAN_METRIC : 0U;
    if (!target->ops->command || !(target->capabilities & needed)) {
        return gd_fail(err, GD_EUNSUPPORTED, "a %s target has no command '%.60s' of its own",
                       target->ops->kind, name);
    }
    int rc = need_values(target, name, err);
    return rc != GD_OK ? rc
                       : target->ops->command(target, name, args ? args : "", node, fn, ctx, err);
}

int gd_target_set_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                              struct gd_err *err)
{
    int rc = check_live(target, target->ops->set_breakpoints != NULL, "stop at breakpoints",
                        "set breakpoints", err);

    return rc != GD_OK ? rc : target->ops->set_breakpoints(target, nodes, count, err);
}

int gd_target_set_events(struct gd_target *target, const struct gd_event_wish *wishes, size_t count,
                         struct gd_err *err)
{
    int rc =
        check_live(target, target->ops->set_events != NULL, "stop at events", "set events", err);

    return rc != GD_OK ? rc : target->ops->set_events(target, wishes, count, err);
}

int gd_target_set_lines(struct gd_target *target, const struct gd_line_wish *wishes, size_t count,
                        struct gd_err *err)
{
    int rc = check_live(target, target->ops->set_lines != NULL, "stop at lines", "set lines", err);

    return rc != GD_OK ? rc : target->ops->set_lines(target, wishes, count, err);
}

int gd_target_fetch(struct gd_target *target, const struct gd_tensor_ref *ref,
                    const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    if (!target->ops->fetch) {
        return fail_unsupported(target, "show tensors", err);
    }
    if (ref->iter == GD_PREVIOUS && !(target->capabilities & GD_CAN_PREVIOUS)) {
        return fail_unsupported(target, "show values of the previous step", err);
    }
    int rc = need_values(target, "fetch a tensor", err);
    return rc != GD_OK ? rc : target->ops->fetch(target, ref, slice, fn, ctx, err);
}

int gd_target_stats(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                    void *ctx, struct gd_err *err)
{
    if (!target->ops->stats) {
        return fail_unsupported(target, "compute statistics itself", err);
    }
    int rc = need_values(target, "compute statistics", err);
    return rc != GD_OK ? rc : target->ops->stats(target, ref, fn, ctx, err);
}

int gd_target_keep_previous(struct gd_target *target, const gd_node_id *nodes, size_t count,
                            struct gd_err *err)
{
    int rc = check_live(target, target->ops->keep_previous != NULL,
                        "keep values of the previous step", "keep previous values", err);

    return rc != GD_OK ? rc : target->ops->keep_previous(target, nodes, count, err);
}

int gd_target_capture(struct gd_target *target, const struct gd_capture *capture,
                      struct gd_err *err)
{
    bool can = target->ops->capture && (target->capabilities & GD_CAN_CAPTURE);
    int rc = check_live(target, can, "copy values as they are computed", "copy values", err);

    return rc != GD_OK ? rc : target->ops->capture(target, capture, err);
}

int gd_target_watch(struct gd_target *target, const struct gd_remote_watch *watch,
                    struct gd_err *err)
{
    int rc = check_live(target, target->ops->watch != NULL, "evaluate watchpoints itself",
                        "set a watchpoint", err);

    return rc != GD_OK ? rc : target->ops->watch(target, watch, err);
}

int gd_target_unwatch(struct gd_target *target, int32_t id, struct gd_err *err)
{
    int rc = check_live(target, target->ops->unwatch != NULL, "evaluate watchpoints itself",
                        "delete a watchpoint", err);

    return rc != GD_OK ? rc : target->ops->unwatch(target, id, err);
}

int gd_target_watch_plan(struct gd_target *target, const struct gd_watch_plan *plan,
                         struct gd_err *err)
{
    int rc =
        check_live(target, target->ops->watch_plan != NULL, "watch values", "watch values", err);

    return rc != GD_OK ? rc : target->ops->watch_plan(target, plan, err);
}

int gd_target_watch_costs(struct gd_target *target, gd_watch_costs_fn fn, void *ctx,
                          struct gd_err *err)
{
    int rc = check_live(target, target->ops->watch_costs != NULL, "report what watching costs",
                        "ask for costs", err);

    return rc != GD_OK ? rc : target->ops->watch_costs(target, fn, ctx, err);
}

int gd_target_checkpoint(struct gd_target *target, struct gd_err *err)
{
    int rc = check_live(target, target->ops->checkpoint != NULL, "save a checkpoint on request",
                        "ask for a checkpoint", err);

    return rc != GD_OK ? rc : target->ops->checkpoint(target, err);
}

int gd_target_take_graphs(struct gd_target *target, struct gd_err *err)
{
    if (!target->ops->take_graphs) {
        return gd_fail(err, GD_ENODATA,
                       "every graph that the training process sent has been added");
    }
    return need_live(target, "add a graph", err) != GD_OK ? GD_ESTATE
                                                          : target->ops->take_graphs(target, err);
}

int gd_target_detach(struct gd_target *target, struct gd_err *err)
{
    int rc = check_live(target, target->ops->detach != NULL, "continue without the debugger",
                        "detach", err);

    return rc != GD_OK ? rc : target->ops->detach(target, err);
}

int gd_target_kill(struct gd_target *target, struct gd_err *err)
{
    int rc = check_live(target, target->ops->kill != NULL, "be ended from here", "end the training",
                        err);

    rc = rc != GD_OK ? rc : target->ops->kill(target, err);
    if (rc == GD_OK && target->session) {
        over_ranks_release(target->session);
    }
    return rc;
}

int gd_target_end_training(struct gd_target *target, struct gd_err *err)
{
    int rc = check_live(target, target->ops->end_training != NULL,
                        "leave its loop: `kill` ends the process", "end the training", err);

    return rc != GD_OK ? rc : target->ops->end_training(target, err);
}

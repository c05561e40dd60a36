// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The stops of a session: which of those that a target reports are announced to the observers
 * (GD_EV_STOPPED), and the bookkeeping of each: time, steps, cache. Every stop is announced, once,
 * except that
 * - a session that has ended receives nothing more;
 * - at an ignored breakpoint (its condition, its ignore count) or a dprintf, the rest of the run is
 *   resumed (resume_silently), unless the user interrupts or nothing is left of the run;
 * - a rank of a job that moves together is handed to ranks_take_stop: it either continues to the
 *   next boundary (rank.quiet), or ranks_settle announces its stop when all ranks have stopped.
 * The front end decides how an announced stop is shown, and whether it runs commands.
 */

#include "engine/cache.h"
#include "engine/ranks.h"
#include "engine/session_impl.h"

/* Updates time, steps and cache. Emits nothing. */
static void enter_stop(struct gd_session *session, const struct gd_stop *stop)
{
    uint64_t sequence = session->stop.sequence;

    session_count_time(session, stop);
    gd_cache_move(session->impl->cache, session->stop.step, stop->step);
    session->stop = *stop;
    session->stop.sequence = sequence;
    session->reached = stop->step;
    session_name_stop(session, &session->stop);
    session->state = GD_STOPPED;
}

/* What is left of the current run, as a run from here; false when it is done. */
static bool rest_of_run(const struct gd_session *session, struct gd_run *ret)
{
    const struct gd_session_impl *impl = session->impl;
    const struct gd_stop *from = &impl->run_from;
    const struct gd_stop *at = &session->stop;
    struct gd_node_info a, b;

    if (!impl->has_run) {
        return false;
    }
    *ret = impl->run;
    if (at->step < from->step) {
        return true; /* the process counts from the start again: how far it came is unknown */
    }
    if (ret->kind == GD_RUN_STEP && at->recorded) {
        ret->count = at->left;
        return ret->count > 0;
    }
    if (ret->kind == GD_RUN_STEP) {
        /* Counts the step ends between the two stops; a stop at a step's end is after it. */
        ret->count -= at->step - from->step + at->at_step_end - from->at_step_end;
        return ret->count > 0;
    }
    if (ret->kind == GD_RUN_NEXT) {
        if (at->step == from->step && gd_graph_node(session->graph, from->node, &a) &&
            gd_graph_node(session->graph, at->node, &b) && a.order != GD_NO_ORDER &&
            b.order != GD_NO_ORDER && b.order > a.order) {
            ret->count -= (int64_t)b.order - a.order;
        } else {
            ret->count -= !at->at_line; /* no node has run */
        }
        return ret->count > 0;
    }
    /* at its node, which is also that of an ignored breakpoint */
    return at->at_line || ret->kind != GD_RUN_TO_NODE || at->node == GD_NO_NODE ||
           at->node != ret->node;
}

/* The same for the run of a job. */
static bool left_of_run(const struct gd_session *session, struct gd_run *ret)
{
    const struct session_rank *rank = &session->impl->rank;
    bool together = rank->ranks && !rank->solo &&
                    (rank->lent || gd_ranks_move_together(session, GD_RUN_CONTINUE));

    return together ? ranks_rest(session, ret) : rest_of_run(session, ret);
}

int gd_session_go_on(struct gd_session *session, struct gd_err *err)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_run run;
    bool quiet = impl->rank.quiet;

    if (session->state != GD_STOPPED || !left_of_run(session, &run)) {
        return gd_fail(err, GD_ESTATE, "nothing is left of the run");
    }
    impl->rank.quiet = true;
    int rc = gd_ranks_resume(session, &run, err);
    impl->rank.quiet = quiet;
    return rc;
}

/* Continues without any event. False when that fails: then it is a stop like any other. */
static bool resume_silently(struct gd_session *session)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_run run;

    if (!session->target || session->interrupt_asked || !rest_of_run(session, &run)) {
        return false;
    }
    impl->resuming = true;
    impl->has_deferred = false;
    bool resumed = gd_target_resume(session->target, &run, NULL) == GD_OK;
    impl->resuming = false;
    return resumed;
}

/* An announced stop cancels a pending interrupt, even if that is what caused it: the debugger
 * does not know which came first, the stop or the request. */
static void forget_interrupt(struct gd_session *session)
{
    if (session->target && session->impl->interrupt_at) {
        session->target->ops->interrupt_at(session->target, 0, NULL);
    }
    session->impl->interrupt_at = 0;
}

/* Counts the stop and settles its reason. */
static void count_stop(struct gd_session *session, enum breakpoint_verdict verdict)
{
    if (verdict == BREAKPOINT_STOP && session->stop.reason == GD_STOP_NODE) {
        session->stop.reason = GD_STOP_BREAKPOINT;
    }
    if (session->interrupt_asked && session->stop.reason == GD_STOP_BREAKPOINT &&
        verdict == BREAKPOINT_IGNORE) {
        session->stop.reason = GD_STOP_INTERRUPT;
    }
    if (verdict == BREAKPOINT_IGNORE && session->stop.reason == GD_STOP_BREAKPOINT &&
        session->impl->has_run) {
        session->stop.reason = GD_STOP_NODE; /* the run ended there by itself */
    }
    if (session->stop.reason == GD_STOP_EVENT) {
        struct gd_run rest;
        happenings_stop(session, left_of_run(session, &rest));
    }
    session->interrupt_asked = false;
    if (!session->stop.passing) {
        forget_interrupt(session);
    }
    session->stop.sequence++;
}

void session_announce(struct gd_session *session, enum breakpoint_verdict verdict)
{
    gd_node_id node = session->stop.node;

    if (node != GD_NO_NODE || session->stop.at_line) {
        session->current = session->stop.at_line ? GD_NO_NODE : node;
    }
    session_emit(session, GD_EV_STOPPED, NULL, NULL);
    if (verdict == BREAKPOINT_STOP && session->stop.at_line) {
        lines_delete_temporary(session);
    } else if (verdict == BREAKPOINT_STOP && session->stop.node == node) {
        breakpoints_delete_temporary(session, node);
    }
    if (session->stop.reason == GD_STOP_EVENT && !session->stop.passing) {
        happenings_delete_temporary(session);
    }
    if (!session->stop.passing) {
        breakpoints_delete_momentary(session->debugger);
    }
}

/* Continues silently (true: *next is a stop that came meanwhile, if there is one), or announces the
 * stop. */
static bool pass_on(struct gd_session *session, enum breakpoint_verdict verdict,
                    enum gd_stop_reason reason, struct gd_stop *next)
{
    struct gd_session_impl *impl = session->impl;

    if (verdict == BREAKPOINT_IGNORE && reason == GD_STOP_BREAKPOINT && resume_silently(session)) {
        *next = impl->deferred;
        return impl->has_deferred && !session_has_ended(session);
    }
    if (!session_has_ended(session)) { /* the process may have been lost by resuming it */
        bool asked = session->interrupt_asked;

        count_stop(session, verdict);
        if (!ranks_take_stop(session, verdict, asked)) {
            session_announce(session, verdict);
        }
    }
    return false;
}

/* Lets observers print what a dprintf asks for. True: the last of them continues with
 * gd_session_printed. */
static bool hold_for_print(struct gd_session *session, enum breakpoint_verdict verdict,
                           enum gd_stop_reason reason)
{
    struct gd_session_impl *impl = session->impl;

    if (session->stop.at_line ? !lines_print(session)
                              : !breakpoints_print(session, session->stop.node)) {
        return false;
    }
    impl->print_verdict = (int)verdict;
    impl->print_reason = reason;
    impl->printing = 1; /* this function's own, so that an answer at once is not the last one */
    session->state = GD_RUNNING;
    session_emit(session, GD_EV_PRINT, NULL, NULL);
    if (session_has_ended(session)) {
        impl->printing = 0;
        return true;
    }
    if (--impl->printing > 0) {
        return true;
    }
    session->state = GD_STOPPED;
    return false;
}

static void take_stop(struct gd_session *session, struct gd_stop now)
{
    struct gd_session_impl *impl = session->impl;
    enum breakpoint_verdict verdict;

    do {
        verdict = BREAKPOINT_NONE;
        bool at_node = !now.at_line && (now.reason == GD_STOP_BREAKPOINT ||
                                        now.reason == GD_STOP_NODE || now.reason == GD_STOP_HIT);

        enter_stop(session, &now);
        if (at_node && !impl->rechecking) {
            verdict = breakpoints_pass(session, session->stop.node);
        }
        if (now.at_line) {
            verdict = lines_pass(session);
        }
        bool prints = now.at_line || (at_node && !impl->rechecking);
        impl->rechecking = false;
        if (prints && hold_for_print(session, verdict, now.reason)) {
            return;
        }
    } while (pass_on(session, verdict, now.reason, &now));
}

void gd_session_hold_print(struct gd_session *session)
{
    session->impl->printing++;
}

void gd_session_printed(struct gd_session *session)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_stop next;

    if (impl->printing == 0 || --impl->printing > 0 || session_has_ended(session)) {
        return;
    }
    session->state = GD_STOPPED;
    if (pass_on(session, (enum breakpoint_verdict)impl->print_verdict, impl->print_reason, &next)) {
        take_stop(session, next);
    }
}

void gd_session_on_stopped(struct gd_session *session, const struct gd_stop *stop)
{
    struct gd_session_impl *impl = session->impl;

    if (session_has_ended(session)) {
        return;
    }
    if (stop->reason != GD_STOP_EVENT) {
        session->fired_count = 0;
    }
    if (!impl->lines.sent) { /* a process without a graph stops at lines, too */
        lines_push(session);
    }
    if (impl->resuming) { /* the target answered inside resume: take_stop continues with it */
        impl->deferred = *stop;
        impl->has_deferred = true;
        return;
    }
    take_stop(session, *stop);
}

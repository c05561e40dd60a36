// SPDX-License-Identifier: GPL-3.0-or-later
/* The state of a session, how far its run came, and the time that it spent. */
#include <stdio.h>
#include <string.h>

#include "engine/session_impl.h"

const char *gd_state_name(enum gd_state state)
{
    switch (state) {
    case GD_WAITING: return "waiting";
    case GD_CONNECTED: return "connected";
    case GD_RUNNING: return "running";
    case GD_STOPPED: return "stopped";
    case GD_LOST: return "lost";
    case GD_FINISHED: return "finished";
    }
    return "unknown";
}

const char *gd_stop_reason_name(enum gd_stop_reason reason)
{
    switch (reason) {
    case GD_STOP_NONE: return "none";
    case GD_STOP_CONNECTED: return "connected";
    case GD_STOP_STEP: return "step";
    case GD_STOP_NODE: return "node";
    case GD_STOP_BREAKPOINT: return "breakpoint";
    case GD_STOP_INTERRUPT: return "interrupt";
    case GD_STOP_HIT: return "hit";
    case GD_STOP_PHASE: return "phase";
    case GD_STOP_PROGRAM: return "program";
    case GD_STOP_EXCEPTION: return "exception";
    case GD_STOP_EVENT: return "event";
    case GD_STOP_END: return "end";
    }
    return "unknown";
}

bool gd_stop_is_before_first(const struct gd_stop *stop)
{
    return stop->step <= 0 && !stop->node_name[0] && !stop->recorded;
}

bool session_has_ended(const struct gd_session *session)
{
    return session->state == GD_LOST || session->state == GD_FINISHED;
}

bool gd_session_is_live(const struct gd_session *session)
{
    return session->target && !session_has_ended(session);
}

bool gd_session_is_record(const struct gd_session *session)
{
    return session->target &&
           (session_has_ended(session) || (session->target->capabilities & GD_CAN_GOTO) != 0);
}

int64_t gd_session_step(const struct gd_session *session)
{
    return session->state == GD_STOPPED ? session->stop.step : session->reached;
}

void session_reach(struct gd_session *session, int64_t step)
{
    if (!session_has_ended(session) && step > session->reached) {
        session->reached = step;
    }
}

void gd_session_on_step(struct gd_session *session, int64_t step)
{
    if (!session_has_ended(session) && step > 0) {
        session->reached = step;
    }
}

void session_name_stop(struct gd_session *session, struct gd_stop *stop)
{
    if (stop->node == GD_NO_NODE && stop->node_name[0]) {
        stop->node = gd_graph_lookup_wire(session->graph, stop->node_name, strlen(stop->node_name));
    } else if (stop->node != GD_NO_NODE && !stop->node_name[0]) {
        snprintf(stop->node_name, sizeof(stop->node_name), "%s",
                 gd_graph_name(session->graph, stop->node));
    }
}

/* Steps that had ended when the session stopped there. */
static int64_t ended_steps(const struct gd_stop *stop)
{
    int64_t ended = stop->at_step_end ? stop->step : stop->step - 1;

    return ended > 0 ? ended : 0;
}

void session_count_time(struct gd_session *session, const struct gd_stop *to)
{
    double now = debugger_now(session->debugger), passed = now - session->impl->since;
    int64_t ran = ended_steps(to) - ended_steps(&session->stop);

    if (session->state == GD_STOPPED) {
        session->timing.stopped += passed;
    } else if (session->state == GD_RUNNING) {
        session->timing.running += passed;
        session->timing.last_run += passed;
        session->timing.last_run_steps += ran > 0 ? ran : 0;
        session->timing.steps_run += ran > 0 ? ran : 0;
    }
    session->impl->since = now;
}

void gd_session_on_running(struct gd_session *session)
{
    if (session_has_ended(session) || session->state == GD_RUNNING) {
        return;
    }
    session_count_time(session, &session->stop);
    session->state = GD_RUNNING;
    if (!session->impl->resuming && !session->impl->rank.quiet) {
        session->timing.last_run = 0;
        session->timing.last_run_steps = 0;
        session_emit(session, GD_EV_RUNNING, NULL, NULL);
    }
}

void session_make_current(struct gd_session *session)
{
    if (session->debugger->current != session) {
        session->debugger->current = session;
        session_emit(session, GD_EV_SELECTED, NULL, NULL);
    }
}

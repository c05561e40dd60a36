// SPDX-License-Identifier: GPL-3.0-or-later
/* What watchpoints do at the events of a session. */
#include <stdio.h>

#include "engine/metric/over_ranks.h"
#include "engine/watch/watch_impl.h"

static void delete_spent(struct gd_debugger *debugger)
{
    struct gd_watchpoint *watch = debugger->watchpoints;
    while (watch) {
        struct gd_watchpoint *next = watch->next;
        if (watch->spent) {
            watchpoints_remove(debugger, watch);
        }
        watch = next;
    }
}

/* Hits that the process found; gradb's own are counted where they are judged. */
static void on_hit(struct gd_debugger *debugger, const struct gd_event *event)
{
    const struct gd_watching *w = event->session->watching;
    struct gd_watchpoint *watch = gd_watchpoint_at(debugger, event->hit->watchpoint);
    if (!watch || (w && w->judging)) {
        return;
    }
    if (event->hit->error) {
        watch->unclear++;
        return;
    }
    watch->hits++;
    if (watch->temporary && debugger->settings.stop_on_hit) {
        watch->spent = true;
    }
}

static void on_scalar(const struct gd_event *event)
{
    const struct gd_session *session = event->session;
    const struct gd_scalar *scalar = event->text ? gd_session_scalar(session, event->text) : NULL;

    if (gd_over_ranks_has(session, event->text ? event->text : "") &&
        !gd_over_ranks_speaks(session)) {
        return; /* one hit, not one for each rank */
    }
    if (scalar && session->watching) {
        watching_on_scalar(session->watching, scalar);
    }
}

/* A process that was further along when it was first seen. */
static void tell_missed(struct gd_watching *w)
{
    char text[160];
    for (size_t i = 0; i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        if (cover->mode != WATCH_MODE_INITIAL || cover->initial != INITIAL_TO_DO ||
            w->session->stop.step <= 0) {
            continue;
        }
        cover->initial = INITIAL_DONE;
        snprintf(text, sizeof(text),
                 "watchpoint %d is not checked in this process: its first step is already over",
                 cover->number);
        gd_session_on_warning(w->session, text);
    }
}

static void on_stopped(struct gd_debugger *debugger, struct gd_session *session)
{
    delete_spent(debugger);
    if (session->watching) {
        tell_missed(session->watching);
        watching_tell_problems(session->watching, 0, true);
        watching_initial(session->watching);
    }
}

void gd_watchpoints_on_event(struct gd_debugger *debugger, const struct gd_event *event)
{
    switch (event->type) {
    case GD_EV_GRAPH: watching_refresh(event->session, 0, false); break;
    case GD_EV_HIT: on_hit(debugger, event); break;
    case GD_EV_SCALAR: on_scalar(event); break;
    case GD_EV_STOPPED: on_stopped(debugger, event->session); break;
    case GD_EV_LOST:
    case GD_EV_FINISHED: delete_spent(debugger); break;
    default: break;
    }
    if (event->session && event->session->watching) {
        watching_recheck_event(event->session->watching, event);
    }
}

void gd_watch_on_unable(struct gd_session *session, int32_t id)
{
    struct gd_watching *w = session->watching;
    char text[160];
    for (size_t i = 0; w && i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        if (cover->number != id || cover->unable || cover->mode != WATCH_MODE_REMOTE) {
            continue;
        }
        cover->unable = true;
        snprintf(text, sizeof(text),
                 "this process cannot evaluate watchpoint %d itself: gradb does so at the end of "
                 "each step",
                 (int)id);
        if (session->target && (session->target->capabilities & GD_CAN_WATCH) &&
            session->debugger->settings.evaluate != GD_EVALUATE_REMOTE) {
            gd_session_on_warning(session, text);
        }
        watching_refresh(session, 0, true);
        return;
    }
}

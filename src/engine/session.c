// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/cache.h"
#include "engine/history/history.h"
#include "engine/session_impl.h"
#include "engine/watch/watchpoint.h"

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

void gd_session_hold(struct gd_session *session)
{
    if (session) {
        session->impl->holds++;
    }
}

void gd_session_release(struct gd_session *session)
{
    if (session) {
        session->impl->holds--;
    }
}

/* ---- making and breaking --------------------------------------------------------------------- */

void session_destroy(struct gd_session *session)
{
    if (!session) {
        return;
    }
    if (session->impl) {
        session_drop_requests(session);
        gd_cache_destroy(session->impl->cache);
        lines_free(session);
        free(session->impl->sites);
        free(session->impl->pushed);
        free(session->impl->kept);
        gd_watching_free(session);
        gd_hash_index_deinit(&session->impl->hit_index);
        free(session->impl);
    }
    gd_graph_destroy(session->graph);
    gd_history_close(session->history);
    gd_event_log_free(&session->events);
    gd_time_report_destroy(session->times);
    gd_timeline_destroy(session->timeline);
    for (int i = 0; i < session->scalar_count; i++) {
        gd_past_values_free(&session->scalar[i].values);
    }
    free(session->hits);
    free(session);
}

static int make_session(struct gd_debugger *debugger, struct gd_session **ret, struct gd_err *err)
{
    struct gd_session *session = calloc(1, sizeof(*session));
    uint64_t max_graph = debugger->settings.max_graph_memory;

    if (session) {
        session->impl = calloc(1, sizeof(*session->impl));
    }
    if (!session || !session->impl) {
        free(session);
        return gd_fail_nomem(err);
    }
    int rc =
        gd_graph_create(max_graph > SIZE_MAX ? SIZE_MAX : (size_t)max_graph, &session->graph, err);
    if (rc == GD_OK) {
        rc = gd_cache_create(debugger->settings.max_cache, &session->impl->cache, err);
    }
    if (rc != GD_OK) {
        session_destroy(session);
        return rc;
    }
    *ret = session;
    return GD_OK;
}

/* A session in the list, with its target. Emits nothing. */
static int create_session(struct gd_debugger *debugger, struct gd_target *target,
                          const struct gd_peer *peer, struct gd_session **ret, struct gd_err *err)
{
    struct gd_session *session = NULL;
    int rc = make_session(debugger, &session, err);

    if (rc != GD_OK) {
        debugger_bury(debugger, target);
        return rc;
    }
    session->debugger = debugger;
    session->current = GD_NO_NODE;
    session->stop.node = GD_NO_NODE;
    session->state = GD_WAITING;
    session->timing.connected_at = debugger_now(debugger);
    session->began = (double)time(NULL);
    session->impl->since = session->timing.connected_at;
    session->peer.world_size = 1;
    if (peer) {
        session->peer = *peer;
    }
    rc = debugger_add_session(debugger, session, err);
    if (rc != GD_OK) {
        session_destroy(session);
        debugger_bury(debugger, target);
        return rc;
    }
    session->target = target;
    target->session = session;
    ranks_join(session);
    *ret = session;
    return GD_OK;
}

int gd_session_create(struct gd_debugger *debugger, struct gd_target *target,
                      const struct gd_peer *peer, struct gd_session **ret, struct gd_err *err)
{
    struct gd_session *session;
    int rc = create_session(debugger, target, peer, &session, err);

    if (rc != GD_OK) {
        return rc;
    }
    *ret = session;
    session_emit(session, GD_EV_CONNECTED, NULL, NULL);
    if (!debugger->current || !gd_session_is_live(debugger->current)) {
        session_make_current(session);
    }
    return GD_OK;
}

int gd_session_create_record(struct gd_debugger *debugger, struct gd_target *target,
                             const struct gd_session_record *record, struct gd_session **ret,
                             struct gd_err *err)
{
    struct gd_session *session;
    uint64_t sequence;
    int rc = create_session(debugger, target, record->peer, &session, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_graph_destroy(session->graph);
    session->graph = record->graph;
    session->history = record->history;
    if (session->history) {
        struct gd_history_head head;
        gd_history_head(session->history, &head);
        session->began = head.started;
    }
    session->graph_generation = 1;
    session->state = record->stands ? GD_STOPPED : GD_FINISHED;
    sequence = session->stop.sequence + 1;
    session->stop = record->stop;
    session->stop.sequence = sequence;
    session->reached = record->stop.step;
    session_name_stop(session, &session->stop);
    copy_text(session->end_text, sizeof(session->end_text), record->why);
    debugger->current = session;
    *ret = session;
    breakpoints_push(session);
    session_emit(session, GD_EV_GRAPH, NULL, NULL);
    session_emit(session, GD_EV_SELECTED, NULL, NULL);
    return GD_OK;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

static void end_session(struct gd_session *session, enum gd_state state, bool failed,
                        const char *why)
{
    struct gd_target *target = session->target;
    struct gd_event event = {.session = session};
    struct gd_err err;

    if (session->state == GD_LOST || session->state == GD_FINISHED) {
        return;
    }
    session_count_time(session, &(struct gd_stop){.step = session->reached, .at_step_end = true});
    session->state = state;
    session->failed = failed;
    session->target = NULL;
    session->interrupt_asked = false;
    snprintf(session->end_text, sizeof(session->end_text), "%s", why ? why : "");
    if (target) {
        debugger_bury(session->debugger, target);
    }
    gd_fail(&err, GD_ELOST,
            state == GD_LOST ? "the training process was lost: %s" : "the training ended: %s",
            session->end_text[0] ? session->end_text : "before it answered");
    session_fail_requests(session, &err);
    event.type = state == GD_LOST ? GD_EV_LOST : GD_EV_FINISHED;
    event.text = session->end_text;
    gd_debugger_emit(session->debugger, &event);
    ranks_on_end(session);
}

void gd_session_on_finished(struct gd_session *session, const char *why)
{
    end_session(session, GD_FINISHED, false, why);
}

void gd_session_on_failed(struct gd_session *session, const char *why)
{
    end_session(session, GD_FINISHED, true, why);
}

void gd_session_on_lost(struct gd_session *session, const char *why)
{
    end_session(session, GD_LOST, true, why);
}

/* ---- what targets report --------------------------------------------------------------------- */

void gd_session_on_graph(struct gd_session *session)
{
    if (session_has_ended(session)) {
        return;
    }
    session->graph_generation++;
    if (session->state == GD_WAITING) {
        session->state = GD_CONNECTED;
    }
    breakpoints_grow(session);
    keep_previous_grow(session);
    session_emit(session, GD_EV_GRAPH, NULL, NULL);
}

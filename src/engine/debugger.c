// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/debugger.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/session_impl.h"
#include "engine/watch/watchpoint.h"

int gd_debugger_create(struct gd_debugger **ret, struct gd_err *err)
{
    struct gd_debugger *debugger = calloc(1, sizeof(*debugger));

    if (debugger) {
        debugger->impl = calloc(1, sizeof(*debugger->impl));
    }
    if (!debugger || !debugger->impl) {
        free(debugger);
        return gd_fail_nomem(err);
    }
    debugger->next_breakpoint = 1;
    debugger->impl->next_session = 1;
    debugger->impl->on_event = gd_watchpoints_on_event;
    gd_settings_init(&debugger->settings);
    *ret = debugger;
    return GD_OK;
}

/* The target of a session that was finished from the start: it was never buried. */
static void end_record(struct gd_session *session)
{
    struct gd_target *target = session->target;

    session->target = NULL;
    if (target && target->ops->destroy) {
        target->ops->destroy(target);
    }
}

void gd_debugger_destroy(struct gd_debugger *debugger)
{
    if (!debugger) {
        return;
    }
    debugger->impl->ending = true;
    ranks_end(debugger);
    for (size_t i = 0; i < debugger->session_count; i++) {
        gd_session_on_finished(debugger->sessions[i], "the debugger ends");
    }
    gd_debugger_reap(debugger);
    for (size_t i = 0; i < debugger->session_count; i++) {
        end_record(debugger->sessions[i]);
        session_destroy(debugger->sessions[i]);
    }
    breakpoints_free(debugger);
    gd_watchpoints_free(debugger);
    ranks_free(debugger);
    free(debugger->sessions);
    free(debugger->impl->observers);
    free(debugger->impl);
    free(debugger);
}

/* ---- sessions -------------------------------------------------------------------------------- */

void debugger_bury(struct gd_debugger *debugger, struct gd_target *target)
{
    target->next_dead = debugger->impl->dead;
    debugger->impl->dead = target;
}

void gd_debugger_reap(struct gd_debugger *debugger)
{
    while (debugger->impl->dead) {
        struct gd_target *target = debugger->impl->dead;
        struct gd_session *session = target->session;

        debugger->impl->dead = target->next_dead;
        target->next_dead = NULL;
        if (target->ops->destroy) {
            target->ops->destroy(target);
        }
        if (session) {
            session_drop_requests(session);
        }
    }
}

static bool is_buried(const struct gd_debugger *debugger, const struct gd_session *session)
{
    for (const struct gd_target *t = debugger->impl->dead; t; t = t->next_dead) {
        if (t->session == session) {
            return true;
        }
    }
    return false;
}

/* It is not selected, and no answer of its target can come any more. */
static bool may_be_forgotten(const struct gd_debugger *debugger, const struct gd_session *session)
{
    return session != debugger->current && !gd_session_is_live(session) &&
           session->impl->holds == 0 && !is_buried(debugger, session);
}

/* Forgets the oldest session that can be forgotten. */
static bool evict_session(struct gd_debugger *debugger)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];

        if (may_be_forgotten(debugger, session)) {
            debugger->session_count--;
            memmove(debugger->sessions + i, debugger->sessions + i + 1,
                    (debugger->session_count - i) * sizeof(struct gd_session *));
            end_record(session);
            session_destroy(session);
            return true;
        }
    }
    return false;
}

int debugger_add_session(struct gd_debugger *debugger, struct gd_session *session,
                         struct gd_err *err)
{
    uint64_t max = debugger->settings.max_sessions;

    if (debugger->session_count >= max && !evict_session(debugger)) {
        return gd_fail(err, GD_ELIMIT, "there are already %zu sessions: raise max-sessions",
                       debugger->session_count);
    }
    if (!gd_grow_list(&debugger->sessions, debugger->session_count, &debugger->impl->session_cap,
                      sizeof(struct gd_session *))) {
        return gd_fail_nomem(err);
    }
    debugger->sessions[debugger->session_count++] = session;
    session->number = debugger->impl->next_session++;
    return GD_OK;
}

struct gd_session *gd_debugger_session(struct gd_debugger *debugger, int number)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        if (debugger->sessions[i]->number == number) {
            return debugger->sessions[i];
        }
    }
    return NULL;
}

static bool has_work(const struct gd_session *session)
{
    return session->state == GD_RUNNING && session->target && session->target->ops->work;
}

bool gd_debugger_has_work(const struct gd_debugger *debugger)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        if (has_work(debugger->sessions[i])) {
            return true;
        }
    }
    return false;
}

void gd_debugger_work(struct gd_debugger *debugger, double seconds)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        if (has_work(debugger->sessions[i])) {
            debugger->sessions[i]->target->ops->work(debugger->sessions[i]->target, seconds);
        }
    }
}

int gd_debugger_select(struct gd_debugger *debugger, int session_number, struct gd_err *err)
{
    struct gd_session *session = gd_debugger_session(debugger, session_number);

    if (!session) {
        return gd_fail(err, GD_ENOTFOUND, "there is no session %d: see `info ranks`",
                       session_number);
    }
    session_make_current(session);
    return GD_OK;
}

int gd_debugger_need_session(struct gd_debugger *debugger, struct gd_session **ret,
                             struct gd_err *err)
{
    const char *address = debugger->server ? debugger->server->address(debugger->server_ctx) : NULL;

    if (debugger->current) {
        *ret = debugger->current;
        return GD_OK;
    }
    if (address) {
        return gd_fail(
            err, GD_ESTATE,
            "no training process is connected: start one that connects to %s, or use `run`",
            address);
    }
    return gd_fail(err, GD_ESTATE, "no training process is connected: use `run` or `listen`");
}

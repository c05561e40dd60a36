// SPDX-License-Identifier: GPL-3.0-or-later
/* How a session follows the list of watchpoints: its watching is rebuilt when the list or its graph
 * changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watch/expected.h"
#include "engine/watch/watch_impl.h"

/* ---- a session's watching ------------------------------------------------------------------ */

struct gd_watching *watching_of(struct gd_session *session)
{
    if (!session->watching) {
        session->watching = calloc(1, sizeof(*session->watching));
        if (session->watching) {
            session->watching->session = session;
        }
    }
    return session->watching;
}

void gd_watching_free(struct gd_session *session)
{
    struct gd_watching *w = session->watching;
    if (!w) {
        return;
    }
    watching_recheck_free(w);
    watching_clear_plans(w);
    watching_clear_recipes(w->recipes);
    watching_clear_covers(w);
    for (size_t i = 0; i < w->name_count; i++) {
        free(w->names[i]);
    }
    free(w->names);
    free(w->scope_state);
    free(w);
    session->watching = NULL;
}

/* Which watchpoint was at which index of the covers, for what was learned about it. */
static int note_covers(const struct gd_watching *w, int **number, uint32_t **revision)
{
    *number = malloc((w->cover_count + 1) * sizeof(**number));
    *revision = malloc((w->cover_count + 1) * sizeof(**revision));
    if (!*number || !*revision) {
        return GD_ENOMEM;
    }
    for (size_t i = 0; i < w->cover_count; i++) {
        (*number)[i] = w->covers[i].number;
        (*revision)[i] = w->covers[i].revision;
    }
    return GD_OK;
}

static int build_plans(struct gd_watching *w, struct gd_err *err)
{
    int *number = NULL;
    uint32_t *revision = NULL;
    int rc = note_covers(w, &number, &revision);
    if (rc != GD_OK) {
        gd_fail(err, rc, "out of memory for watchpoints: they may not stop the run");
    }
    if (rc == GD_OK) {
        rc = watching_resolve(w, err);
    }
    if (rc == GD_OK) {
        rc = watching_build(w, number, revision, err);
    }
    if (rc != GD_OK) { /* the tensors would refer to covers that have changed */
        watching_drop_plans(w);
    }
    free(number);
    free(revision);
    return rc;
}

void watching_tell_problems(struct gd_watching *w, int quiet, bool all)
{
    for (size_t i = 0; i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        char text[sizeof(cover->problem_text) + 64];
        if (!cover->problem || cover->warned || cover->number == quiet ||
            (cover->problem == GD_ENOTFOUND && !all)) {
            continue;
        }
        cover->warned = true;
        snprintf(text, sizeof(text), "watchpoint %d is not set in this process: %s", cover->number,
                 cover->problem_text);
        gd_session_on_warning(w->session, text);
    }
}

static void warn_once(struct gd_watching *w, bool *warned, const struct gd_err *err)
{
    if (*warned) {
        return;
    }
    *warned = true;
    gd_session_on_warning(w->session, err->text);
}

static void refresh_once(struct gd_watching *w, int quiet, bool all, bool grew)
{
    struct gd_err err;
    w->building = true;
    w->stale = false;
    if (!(grew && watching_grow(w)) && build_plans(w, &err) != GD_OK) {
        warn_once(w, &w->warned_memory, &err);
    } else {
        watching_push_remote(w);
    }
    if (w->session->target && watching_push(w, &err) != GD_OK) {
        warn_once(w, &w->warned_push, &err);
    }
    w->building = false;
    watching_tell_problems(w, quiet, all);
}

void watching_refresh(struct gd_session *session, int quiet, bool all)
{
    struct gd_watching *w = session->watching;
    if (!w && !session->debugger->watchpoints) {
        return;
    }
    w = watching_of(session);
    if (!w) {
        gd_session_on_warning(session, "out of memory for watchpoints: they may not stop the run");
        return;
    }
    bool grew = !all && !w->stale; /* and nothing else happened */
    w->stale = true;
    if (w->building || w->judging) {
        return;
    }
    /* A target may report from inside these calls, and an observer may then change the list. */
    for (int round = 0; w->stale && round < 8; round++) {
        refresh_once(w, quiet, all, grew && round == 0);
    }
    gd_expected_push(session);
    watching_initial(w);
}

void watching_end_judging(struct gd_watching *w)
{
    if (--w->judging == 0 && w->stale) {
        watching_refresh(w->session, 0, true);
    }
}

void gd_watchpoints_apply(struct gd_debugger *debugger)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        watching_refresh(debugger->sessions[i], 0, true);
    }
}

/* What prevents a watchpoint in the current session, if anything does. */
static int problem_of(const struct gd_session *session, int number, struct gd_err *err)
{
    const struct gd_watching *w = session ? session->watching : NULL;
    if (!w || !gd_session_is_live(session)) {
        return GD_OK;
    }
    for (size_t i = 0; i < w->cover_count; i++) {
        if (w->covers[i].number == number && w->covers[i].problem) {
            return gd_fail(err, w->covers[i].problem, "%s", w->covers[i].problem_text);
        }
    }
    return GD_OK;
}

int watching_settle(struct gd_debugger *debugger, const struct gd_watchpoint *watch,
                    struct gd_err *err)
{
    struct gd_session *current = debugger->current;
    int rc = GD_OK;
    if (current) {
        watching_refresh(current, watch->number, true);
        rc = problem_of(current, watch->number, err);
    }
    for (size_t i = 0; rc == GD_OK && i < debugger->session_count; i++) {
        if (debugger->sessions[i] != current) {
            watching_refresh(debugger->sessions[i], 0, true);
        }
    }
    return rc;
}

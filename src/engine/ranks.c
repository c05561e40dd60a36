// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "engine/metric/over_ranks.h"
#include "engine/ranks_impl.h"
#include "engine/watch/watchpoint.h"

#define NUDGE    0.5 /* seconds before stopped ranks make room for one that does not come; doubles */
#define ARRIVAL  2.0 /* the same for one that has just connected, and stops by itself if it can */
#define NO_STEP  INT64_C(1) /* "the end of the step that runs", for interrupt_at */
#define MS_LIMIT 30 /* seconds that a collective of MindSpore's waits on a CPU, 2.7 to 2.10 */
#define MARGIN   10 /* of it are left when gradb finishes a step by itself */
#define RETRY    1

/* ---- who belongs to it --------------------------------------------------------------------- */

struct gd_ranks *gd_ranks_of(const struct gd_session *session)
{
    return session->impl ? session->impl->rank.ranks : NULL;
}

int gd_ranks_world_size(const struct gd_ranks *ranks)
{
    return ranks->world_size;
}

uint64_t gd_ranks_settled(const struct gd_ranks *ranks)
{
    return ranks->settled;
}

static bool is_live(const struct gd_ranks *ranks, const struct gd_session *session)
{
    return gd_ranks_of(session) == ranks && gd_session_is_live(session);
}

static void start_clock(struct gd_ranks *ranks, double patience)
{
    ranks->since = debugger_now(ranks->debugger);
    ranks->patience = patience;
}

/* The live sessions, one after another: *at is 0 at first. NULL: no more. */
static struct gd_session *next_live(const struct gd_ranks *ranks, size_t *at)
{
    const struct gd_debugger *debugger = ranks->debugger;

    while (*at < debugger->session_count) {
        struct gd_session *session = debugger->sessions[(*at)++];

        if (is_live(ranks, session)) {
            return session;
        }
    }
    return NULL;
}

int gd_ranks_limit(const struct gd_ranks *ranks)
{
    size_t at = 0;
    const struct gd_session *session = next_live(ranks, &at);

    return session && strcmp(session->peer.framework, "mindspore") == 0 &&
                   strcmp(session->peer.device, "cpu") == 0
               ? MS_LIMIT
               : 0;
}

struct gd_session *gd_ranks_member(const struct gd_ranks *ranks, int rank)
{
    const struct gd_debugger *debugger = ranks->debugger;
    struct gd_session *found = NULL;

    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_ranks_of(session) == ranks && session->peer.rank == rank &&
            (!found || gd_session_is_live(session) || !gd_session_is_live(found))) {
            found = session;
        }
    }
    return found;
}

void ranks_join(struct gd_session *session)
{
    struct gd_debugger *debugger = session->debugger;
    const struct gd_peer *peer = &session->peer;
    struct gd_ranks *ranks = debugger->impl->ranks;

    if (peer->world_size < 2 || !peer->job[0]) {
        return;
    }
    while (ranks && (ranks->world_size != peer->world_size || strcmp(ranks->job, peer->job) != 0)) {
        ranks = ranks->next;
    }
    if (!ranks) {
        ranks = calloc(1, sizeof(*ranks));
        if (!ranks) {
            return; /* then it is moved alone */
        }
        ranks->debugger = debugger;
        ranks->world_size = peer->world_size;
        snprintf(ranks->job, sizeof(ranks->job), "%s", peer->job);
        ranks->next = debugger->impl->ranks;
        debugger->impl->ranks = ranks;
    }
    session->impl->rank.ranks = ranks;
    if (ranks->phase == RANKS_CONNECT) {
        start_clock(ranks, ARRIVAL);
    }
}

void ranks_end(struct gd_debugger *debugger)
{
    for (struct gd_ranks *ranks = debugger->impl->ranks; ranks; ranks = ranks->next) {
        ranks->phase = RANKS_IDLE;
    }
}

void ranks_free(struct gd_debugger *debugger)
{
    while (debugger->impl->ranks) {
        struct gd_ranks *next = debugger->impl->ranks->next;
        over_ranks_free(debugger->impl->ranks);
        free(debugger->impl->ranks);
        debugger->impl->ranks = next;
    }
}

/* The boundary after which a session is: inside step 5 it is 4. */
static int64_t boundary_of(const struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    return stop->at_step_end || stop->step < 1 ? stop->step : stop->step - 1;
}

static void count_ranks(const struct gd_ranks *ranks, struct ranks_tally *ret)
{
    const struct gd_session *session;

    *ret = (struct ranks_tally){.live = 0};
    for (size_t i = 0; (session = next_live(ranks, &i));) {
        ret->live++;
        if (session->state != GD_STOPPED) {
            ret->running++;
            continue;
        }
        int64_t at = boundary_of(session);
        ret->low = ret->standing == 0 || at < ret->low ? at : ret->low;
        ret->high = ret->standing == 0 || at > ret->high ? at : ret->high;
        ret->standing++;
        ret->caused = ret->caused || session->impl->rank.cause;
    }
}

size_t gd_ranks_live(const struct gd_ranks *ranks)
{
    struct ranks_tally tally;

    count_ranks(ranks, &tally);
    return (size_t)tally.live;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct gd_session *x = *(struct gd_session *const *)a;
    const struct gd_session *y = *(struct gd_session *const *)b;

    return GD_ORDER(x->peer.rank, y->peer.rank) ?: GD_ORDER(x->number, y->number);
}

struct gd_session **ranks_list(const struct gd_ranks *ranks, size_t *count)
{
    struct gd_session **list =
        calloc(ranks->debugger->session_count + 1, sizeof(struct gd_session *));
    struct gd_session *session;

    *count = 0;
    for (size_t i = 0; list && (session = next_live(ranks, &i));) {
        list[(*count)++] = session;
    }
    if (list) {
        qsort(list, *count, sizeof(struct gd_session *), compare_ranks);
    }
    return list;
}

/* ---- moving them --------------------------------------------------------------------------- */

/* Resumes one stopped rank. If it cannot resume (false), it counts as stopped by itself: the others
 * must not wait for it, and ranks_advance runs again. */
static bool let_go(struct gd_session *session, const struct gd_run *run, bool quiet)
{
    struct session_rank *rank = &session->impl->rank;
    struct gd_err err;

    rank->owes = rank->lent = true;
    rank->cause = false;
    rank->quiet = quiet;
    session->stop.together = false;
    bool goes = gd_target_resume(session->target, run, &err) == GD_OK;
    if (!goes) {
        rank->cause = true;
        rank->ranks->again = true;
        gd_session_on_warning(session, err.text);
    }
    rank->quiet = false;
    return goes;
}

/* All that are stopped before a boundary run to its end. */
static void run_to_boundary(struct gd_ranks *ranks, int64_t boundary, bool quiet)
{
    size_t count;
    struct gd_session **list = ranks_list(ranks, &count);

    for (size_t i = 0; list && i < count; i++) {
        int64_t at = list[i]->state == GD_STOPPED ? boundary_of(list[i]) : boundary;
        struct gd_run run = {.kind = GD_RUN_STEP, .count = boundary - at, .node = GD_NO_NODE};
        if (run.count > 0 && gd_session_is_live(list[i])) {
            let_go(list[i], &run, quiet);
        }
    }
    free(list);
}

/* Those that run stop at the end of that step, or of their current one if it is over. */
static void hold_at(struct gd_ranks *ranks, int64_t step)
{
    struct gd_session *session;

    for (size_t i = 0; (session = next_live(ranks, &i));) {
        if (session->state != GD_STOPPED &&
            gd_target_interrupt_at(session->target, step < 1 ? NO_STEP : step, NULL) != GD_OK) {
            gd_target_interrupt(session->target, NULL); /* it has no boundaries */
        }
    }
}

static bool may_stop(const struct gd_debugger *debugger)
{
    for (const struct gd_watchpoint *w = debugger->watchpoints; w; w = w->next) {
        if (w->enabled && w->action == GD_WATCH_STOP) {
            return true;
        }
    }
    for (const struct gd_breakpoint *b = debugger->breakpoints; b; b = b->next) {
        if (b->enabled && !b->print) {
            return true;
        }
    }
    return false;
}

/* The same run for another rank; if the node is missing there, to the end of the step. */
static struct gd_run run_for(const struct gd_session *from, const struct gd_session *session,
                             const struct gd_run *run)
{
    struct gd_run same = *run;

    if (run->kind == GD_RUN_TO_NODE && run->node != GD_NO_NODE && session != from) {
        const char *name = gd_graph_name(from->graph, run->node);
        same.node = gd_graph_lookup_wire(session->graph, name, strlen(name));
        if (same.node == GD_NO_NODE) {
            same = (struct gd_run){.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
        }
    }
    return same;
}

/* Every stopped rank does the same as the one that was asked, which is already moving. */
static void move_others(struct gd_session *first, const struct gd_run *run)
{
    size_t count;
    struct gd_session **list = ranks_list(gd_ranks_of(first), &count);

    for (size_t i = 0; list && i < count; i++) {
        if (list[i] != first && list[i]->state == GD_STOPPED && gd_session_is_live(list[i])) {
            struct gd_run same = run_for(first, list[i], run);
            let_go(list[i], &same, false);
        }
    }
    free(list);
}

bool gd_ranks_move_together(const struct gd_session *session, enum gd_run_kind kind)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    int locking = session->debugger->settings.rank_locking;

    if (!session->target || (session->target->capabilities & GD_CAN_GOTO)) {
        return false; /* ranks of a record do not wait for each other */
    }
    return ranks && gd_ranks_live(ranks) > 1 && kind != GD_RUN_RECHECK &&
           locking != GD_LOCKING_ON &&
           !(locking == GD_LOCKING_STEP && kind == GD_RUN_NEXT && gd_ranks_limit(ranks) == 0);
}

static void begin_run(struct gd_ranks *ranks, const struct gd_run *run)
{
    struct gd_session *session;

    ranks->phase = RANKS_RUN;
    ranks->run = *run;
    ranks->pause = ranks->caused = ranks->gave_up = false;
    ranks->checked = -1;
    for (size_t i = 0; (session = next_live(ranks, &i));) {
        session->impl->rank.cause = session->impl->rank.solo = false;
        session->impl->rank.owes = session->state != GD_STOPPED;
    }
}

/* Moves one rank alone: its next stop does not concern the others. */
static int resume_alone(struct gd_session *session, const struct gd_run *run, struct gd_err *err)
{
    struct session_rank *rank = &session->impl->rank;

    rank->solo = rank->ranks && run->kind != GD_RUN_RECHECK;
    rank->lent = rank->lent && run->kind == GD_RUN_RECHECK;
    int rc = gd_target_resume(session->target, run, err);
    rank->solo = rank->solo && rc == GD_OK && session->state == GD_RUNNING;
    return rc;
}

bool ranks_rest(const struct gd_session *session, struct gd_run *ret)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);

    *ret = ranks->run;
    if (ret->kind == GD_RUN_STEP) {
        ret->count = ranks->last - boundary_of(session);
    }
    return ret->kind != GD_RUN_STEP || ret->count > 0;
}

/* Starts with the session that was asked: its error is the command's, and then nothing has
 * moved. */
static int start_run(struct gd_session *session, const struct gd_run *run, struct gd_err *err)
{
    struct gd_ranks *ranks = gd_ranks_of(session);
    int64_t from = boundary_of(session);
    struct gd_run first = *run;
    struct ranks_tally tally;
    int rc = GD_OK;

    count_ranks(ranks, &tally);
    if (ranks->together) {
        first = (struct gd_run){.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    }
    session->impl->rank.owes = session->impl->rank.lent = true;
    session->stop.together = false;
    if (!ranks->together || from == tally.low) { /* else it is ahead: the others catch up first */
        rc = gd_target_resume(session->target, &first, err);
    }
    if (rc != GD_OK) {
        session->impl->rank.owes = false; /* its stop was already announced */
        return rc;
    }
    if (ranks->together) {
        run_to_boundary(ranks, tally.low + 1, false);
    } else if (run->kind == GD_RUN_STEP) {
        run_to_boundary(ranks, ranks->last, false);
    } else {
        move_others(session, run);
    }
    return GD_OK;
}

int gd_ranks_resume(struct gd_session *session, const struct gd_run *run, struct gd_err *err)
{
    struct gd_ranks *ranks = gd_ranks_of(session);
    bool by_steps = run->kind == GD_RUN_STEP || run->kind == GD_RUN_CONTINUE;

    if (!session->target) {
        return gd_fail(err, GD_ESTATE, "the training has ended");
    }
    if (session->state == GD_STOPPED && gd_ranks_is_running(session) && !ranks->pause) {
        return gd_fail(err, GD_ESTATE, "the ranks are already running: interrupt them first");
    }
    if (session->state != GD_STOPPED || !gd_ranks_move_together(session, run->kind)) {
        return resume_alone(session, run, err);
    }
    begin_run(ranks, run);
    ranks->together = by_steps && may_stop(session->debugger);
    ranks->waits = by_steps && !ranks->together ? 0 : ranks->waits;
    ranks->last = run->kind == GD_RUN_STEP && run->count < INT64_MAX - session->stop.step
                      ? boundary_of(session) + run->count
                      : INT64_MAX;
    ranks->advancing = true; /* do not settle before all have started */
    int rc = start_run(session, run, err);
    ranks->advancing = false;
    if (rc != GD_OK) {
        ranks->phase = RANKS_IDLE;
        return rc;
    }
    ranks_advance(ranks);
    return GD_OK;
}

int gd_ranks_interrupt(struct gd_session *session, struct gd_err *err)
{
    struct gd_ranks *ranks = gd_ranks_of(session);

    if (!ranks || ranks->phase == RANKS_IDLE) {
        return session->target ? gd_target_interrupt(session->target, err)
                               : gd_fail(err, GD_ESTATE, "the training has ended");
    }
    if (!ranks->pause) {
        ranks->pause = true;
        if (!ranks->together) {
            hold_at(ranks, NO_STEP);
        }
        start_clock(ranks, NUDGE);
        return GD_OK;
    }
    if (ranks->phase == RANKS_CHECK) { /* the digests do not come: ignore them later */
        ranks_settle(ranks);
        return GD_OK;
    }
    struct gd_session *other;
    for (size_t i = 0; (other = next_live(ranks, &i));) { /* now wherever they are */
        if (other->state != GD_STOPPED) {
            gd_target_interrupt(other->target, NULL);
        }
    }
    return GD_OK;
}

/* ---- settling ------------------------------------------------------------------------------ */

/* Which rank to select: the current one, unless it did not stop by itself and another one did, or
 * it is not stopped. */
static void choose_rank(struct gd_ranks *ranks, struct gd_session *const *list, size_t count)
{
    struct gd_session *current = ranks->debugger->current;
    struct gd_session *standing = NULL;

    if (!current || (gd_ranks_of(current) != ranks && gd_session_is_live(current))) {
        return; /* another job is selected */
    }
    if (gd_ranks_of(current) == ranks && gd_session_is_live(current) &&
        current->state == GD_STOPPED && current->impl->rank.cause) {
        return;
    }
    for (size_t i = count; i-- > 0;) {
        if (list[i]->state == GD_STOPPED &&
            (list[i]->impl->rank.cause || !standing || !standing->impl->rank.cause)) {
            standing = list[i];
        }
    }
    bool stays = gd_session_is_live(current) && current->state == GD_STOPPED &&
                 ranks->phase != RANKS_CONNECT && !(standing && standing->impl->rank.cause);
    if (standing && !stays) {
        session_make_current(standing);
    }
}

/* Both reached the same node for the same reason, as ranks do: only one is announced. */
static bool same_place(const struct gd_session *a, const struct gd_session *b)
{
    const struct gd_stop *x = &a->stop, *y = &b->stop;

    return a->state == GD_STOPPED && b->state == GD_STOPPED && x->reason == y->reason &&
           x->reason != GD_STOP_HIT && x->step == y->step && x->at_step_end == y->at_step_end &&
           strcmp(x->node_name, y->node_name) == 0 && strcmp(x->text, y->text) == 0;
}

static void announce_rank(struct gd_ranks *ranks, struct gd_session *session)
{
    struct session_rank *rank = &session->impl->rank;
    const struct gd_session *current = ranks->debugger->current;

    session->stop.together =
        session != current && (!rank->cause || (current && gd_ranks_of(current) == ranks &&
                                                same_place(session, current)));
    if (ranks->pause && session->stop.reason == GD_STOP_STEP) {
        session->stop.reason = GD_STOP_INTERRUPT;
    }
    rank->owes = false;
    session_announce(session, BREAKPOINT_NONE);
}

/* Only after all are announced: they are at the same one. */
static void delete_temporary(struct gd_session *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i]->impl->rank.verdict == BREAKPOINT_STOP) {
            list[i]->impl->rank.verdict = BREAKPOINT_NONE;
            breakpoints_delete_temporary(list[i], list[i]->stop.node);
        }
    }
}

void ranks_settle(struct gd_ranks *ranks)
{
    size_t count;
    struct gd_session **list = ranks_list(ranks, &count);
    struct gd_session *last = NULL;

    if (list) {
        choose_rank(ranks, list, count);
    }
    ranks->phase = RANKS_IDLE;
    ranks->settled++;
    for (size_t i = 0; list && i < count; i++) {
        if (!list[i]->impl->rank.owes || list[i]->state != GD_STOPPED) {
            continue;
        }
        if (list[i] == ranks->debugger->current) {
            last = list[i];
        } else {
            announce_rank(ranks, list[i]);
        }
    }
    if (last) {
        announce_rank(ranks, last);
    }
    if (count > 0 && list) {
        delete_temporary(list, count);
        struct gd_event event = {.type = GD_EV_RANKS, .session = last ? last : list[0]};
        gd_debugger_emit(ranks->debugger, &event);
    }
    free(list);
}

/* ---- what is to be done now ---------------------------------------------------------------- */

/* The last step whose end the others may reach when one has stopped by itself. */
static int64_t step_of_cause(const struct gd_ranks *ranks)
{
    const struct gd_session *session;
    int64_t step = NO_STEP;

    for (size_t i = 0; (session = next_live(ranks, &i));) {
        if (session->state == GD_STOPPED && session->impl->rank.cause &&
            session->stop.step > step) {
            step = session->stop.step;
        }
    }
    return step;
}

static void on_cause(struct gd_ranks *ranks)
{
    double patience = ranks->debugger->settings.rank_patience;

    ranks->caused = true;
    start_clock(ranks, gd_ranks_limit(ranks) > 0 && patience > MARGIN ? MARGIN : patience);
    if (!ranks->together) {
        hold_at(ranks, step_of_cause(ranks));
    }
}

/* All are stopped, none of them by itself. */
static void all_stand(struct gd_ranks *ranks, const struct ranks_tally *tally)
{
    bool by_steps = ranks->run.kind == GD_RUN_STEP || ranks->run.kind == GD_RUN_CONTINUE;

    if (ranks_check(ranks, tally)) {
        return;
    }
    if (ranks->pause || !by_steps) {
        if (tally->low < tally->high) {
            start_clock(ranks, NUDGE);
            run_to_boundary(ranks, tally->high, true);
        } else {
            ranks_settle(ranks);
        }
    } else if (tally->low >= ranks->last) {
        ranks_settle(ranks);
    } else if (ranks->together) {
        run_to_boundary(ranks, tally->low + 1, true);
    } else if (ranks->run.kind == GD_RUN_STEP) {
        run_to_boundary(ranks, ranks->last, true);
    } else {
        ranks_settle(ranks);
    }
}

static void advance_once(struct gd_ranks *ranks)
{
    struct ranks_tally tally;

    count_ranks(ranks, &tally);
    if (ranks->phase == RANKS_CONNECT) {
        if (tally.running > 0 && !ranks->gave_up) {
            return;
        }
        if (tally.live < ranks->world_size && !ranks->gave_up) {
            return;
        }
        if (tally.low < tally.high && tally.running == 0 && !tally.caused) {
            start_clock(ranks, NUDGE);
            run_to_boundary(ranks, tally.high, true);
        } else {
            ranks_settle(ranks);
        }
        return;
    }
    if (ranks->phase == RANKS_CHECK) {
        return;
    }
    if (tally.caused && !ranks->caused) {
        on_cause(ranks);
        count_ranks(ranks, &tally);
    }
    if (tally.live == 0) {
        ranks_settle(ranks);
    } else if (tally.running > 0) {
        return;
    } else if (ranks->caused) {
        ranks_settle(ranks);
    } else {
        all_stand(ranks, &tally);
    }
}

void ranks_advance(struct gd_ranks *ranks)
{
    if (ranks->advancing) {
        ranks->again = true;
        return;
    }
    ranks->advancing = true;
    do {
        ranks->again = false;
        if (ranks->phase != RANKS_IDLE) {
            advance_once(ranks);
        }
    } while (ranks->again && ranks->phase != RANKS_IDLE);
    ranks->advancing = false;
}

bool ranks_take_stop(struct gd_session *session, enum breakpoint_verdict verdict, bool asked)
{
    struct session_rank *rank = &session->impl->rank;
    struct gd_ranks *ranks = rank->ranks;
    const struct gd_stop *stop = &session->stop;

    if (!ranks || rank->solo) {
        rank->solo = false;
        return false;
    }
    bool first = stop->reason == GD_STOP_CONNECTED;
    if (ranks->phase == RANKS_IDLE) {
        if (!first) {
            return false; /* a late one that was given up */
        }
        ranks->phase = RANKS_CONNECT;
        ranks->run = (struct gd_run){.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
        ranks->gave_up = ranks->pause = ranks->caused = ranks->together = false;
        start_clock(ranks, ARRIVAL);
    }
    if (rank->hit && stop->at_step_end) {
        session->stop.reason = GD_STOP_HIT;
    }
    rank->hit = rank->hit && !stop->at_step_end;
    bool boundary = stop->at_step_end &&
                    (stop->reason == GD_STOP_STEP || (stop->reason == GD_STOP_INTERRUPT && !asked));
    ranks->waits = boundary ? 0 : ranks->waits;
    rank->owes = true;
    rank->verdict = (int)verdict;
    rank->cause = !boundary && ranks->phase != RANKS_CONNECT;
    if (boundary && !ranks->pause && !ranks->caused && ranks->phase == RANKS_RUN &&
        ranks->run.kind == GD_RUN_CONTINUE && !ranks->together) {
        if (let_go(session, &ranks->run, true)) { /* a cancelled request */
            return true;
        }
    }
    ranks_advance(ranks);
    return true;
}

void ranks_on_end(struct gd_session *session)
{
    struct gd_ranks *ranks = gd_ranks_of(session);

    if (!ranks) {
        return;
    }
    session->impl->rank.owes = false;
    over_ranks_on_end(session);
    if (ranks->phase == RANKS_IDLE) {
        return;
    }
    /* The others will not come out of a collective in which they wait for it. */
    bool failed =
        session->state == GD_LOST || strncmp(session->end_text, "the training failed", 19) == 0;
    if (failed && !ranks->caused && ranks->phase != RANKS_CONNECT) {
        on_cause(ranks);
    }
    ranks_advance(ranks);
}

/* ---- time ---------------------------------------------------------------------------------- */

bool gd_ranks_need_tick(const struct gd_debugger *debugger)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        const struct gd_ranks *ranks = gd_ranks_of(session);
        if (ranks && (ranks->phase != RANKS_IDLE ||
                      (gd_session_is_live(session) && session->state != GD_STOPPED))) {
            return true;
        }
    }
    return false;
}

/* A rank may be waiting in a collective, so long that MindSpore would end the job: all finish the
 * step. */
static void finish_step(struct gd_ranks *ranks, const struct ranks_tally *tally)
{
    double now = debugger_now(ranks->debugger);
    struct gd_run run = {.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    struct gd_session *session;

    if (tally->running == 0 || tally->standing == 0) {
        ranks->waits = 0;
        return;
    }
    ranks->waits = ranks->waits > 0 ? ranks->waits : now;
    if (now - ranks->waits < MS_LIMIT - MARGIN ||
        ranks->debugger->settings.rank_locking == GD_LOCKING_ON) {
        return;
    }
    for (size_t i = 0; (session = next_live(ranks, &i));) {
        if (session->state == GD_STOPPED && boundary_of(session) == tally->high) {
            if (gd_ranks_resume(session, &run, NULL) == GD_OK) {
                gd_session_on_warning(session, "a rank has waited so long that MindSpore would end "
                                               "the job: all ranks finish the step");
            } else {
                ranks->waits += RETRY;
            }
            return;
        }
    }
}

static void tick_ranks(struct gd_ranks *ranks)
{
    struct ranks_tally tally;
    double waited = debugger_now(ranks->debugger) - ranks->since;
    double limit = ranks->debugger->settings.start_timeout;

    count_ranks(ranks, &tally);
    if (ranks->phase == RANKS_IDLE) {
        finish_step(ranks, &tally);
        return;
    }
    if (ranks->phase == RANKS_CONNECT && tally.live < ranks->world_size) {
        if (limit > 0 && waited > limit) {
            gd_ranks_give_up(ranks);
        }
        return;
    }
    if (waited < ranks->patience || tally.running == 0) {
        return;
    }
    if (ranks->caused) {
        ranks_settle(ranks);
    } else if (tally.standing == 0) {
        return;
    } else if (ranks->phase == RANKS_CONNECT || (ranks->pause && !ranks->together)) {
        /* Those that run may be waiting for one that is stopped, one step ahead. */
        start_clock(ranks, ranks->patience * 2);
        ranks->again = false;
        run_to_boundary(ranks, tally.high + 1, true);
        if (ranks->again) { /* one of them cannot */
            ranks_advance(ranks);
        }
    }
}

void gd_ranks_tick(struct gd_debugger *debugger)
{
    for (struct gd_ranks *ranks = debugger->impl->ranks; ranks; ranks = ranks->next) {
        over_ranks_tick(ranks);
        if (ranks->phase != RANKS_IDLE || gd_ranks_limit(ranks) > 0) {
            tick_ranks(ranks);
        }
    }
}

void gd_ranks_give_up(struct gd_ranks *ranks)
{
    if (ranks->phase == RANKS_CONNECT) {
        ranks->gave_up = true;
        ranks_advance(ranks);
    }
}

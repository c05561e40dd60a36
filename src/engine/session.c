// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/cache.h"
#include "engine/history/history.h"
#include "engine/session_impl.h"
#include "engine/watch/watchpoint.h"

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
    case GD_STOP_END: return "end";
    }
    return "unknown";
}

bool gd_stop_is_before_first(const struct gd_stop *stop)
{
    return stop->step <= 0 && !stop->node_name[0] && !stop->recorded;
}

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

static void emit(struct gd_session *session, enum gd_event_type type, const char *text,
                 const struct gd_hit *hit)
{
    struct gd_event event = {.type = type, .session = session, .text = text, .hit = hit};

    gd_debugger_emit(session->debugger, &event);
}

static bool has_ended(const struct gd_session *session)
{
    return session->state == GD_LOST || session->state == GD_FINISHED;
}

bool gd_session_is_live(const struct gd_session *session)
{
    return session->target && !has_ended(session);
}

int64_t gd_session_step(const struct gd_session *session)
{
    return session->state == GD_STOPPED ? session->stop.step : session->reached;
}

void session_reach(struct gd_session *session, int64_t step)
{
    if (!has_ended(session) && step > session->reached) {
        session->reached = step;
    }
}

void gd_session_on_step(struct gd_session *session, int64_t step)
{
    if (!has_ended(session) && step > 0) {
        session->reached = step;
    }
}

bool gd_session_is_record(const struct gd_session *session)
{
    return session->target &&
           (has_ended(session) || (session->target->capabilities & GD_CAN_GOTO) != 0);
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

static void name_node(struct gd_session *session, struct gd_stop *stop)
{
    if (stop->node == GD_NO_NODE && stop->node_name[0]) {
        stop->node = gd_graph_lookup_wire(session->graph, stop->node_name, strlen(stop->node_name));
    } else if (stop->node != GD_NO_NODE && !stop->node_name[0]) {
        copy_text(stop->node_name, sizeof(stop->node_name),
                  gd_graph_name(session->graph, stop->node));
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
        free(session->impl->sites);
        free(session->impl->pushed);
        free(session->impl->kept);
        gd_watching_free(session);
        gd_hit_index_free(&session->impl->hit_index);
        free(session->impl);
    }
    gd_graph_destroy(session->graph);
    gd_history_close(session->history);
    free(session->hits);
    free(session);
}

static int make(struct gd_debugger *debugger, struct gd_session **ret, struct gd_err *err)
{
    struct gd_session *session = calloc(1, sizeof(*session));
    uint64_t max_graph = debugger->settings.max_graph_memory;
    int rc;

    if (session) {
        session->impl = calloc(1, sizeof(*session->impl));
    }
    if (!session || !session->impl) {
        free(session);
        return gd_fail(err, GD_ENOMEM, "out of memory for a new session");
    }
    rc = gd_graph_create(max_graph > SIZE_MAX ? SIZE_MAX : (size_t)max_graph, &session->graph, err);
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

/* A session in the list, with its target. No event yet. */
static int create(struct gd_debugger *debugger, struct gd_target *target,
                  const struct gd_peer *peer, struct gd_session **ret, struct gd_err *err)
{
    struct gd_session *session = NULL;
    int rc = make(debugger, &session, err);

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
    int rc = create(debugger, target, peer, &session, err);

    if (rc != GD_OK) {
        return rc;
    }
    *ret = session;
    emit(session, GD_EV_CONNECTED, NULL, NULL);
    if (!debugger->current || !gd_session_is_live(debugger->current)) {
        debugger->current = session;
        emit(session, GD_EV_SELECTED, NULL, NULL);
    }
    return GD_OK;
}

int gd_session_create_record(struct gd_debugger *debugger, struct gd_target *target,
                             const struct gd_session_record *record, struct gd_session **ret,
                             struct gd_err *err)
{
    struct gd_session *session;
    uint64_t sequence;
    int rc = create(debugger, target, record->peer, &session, err);

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
    name_node(session, &session->stop);
    copy_text(session->end_text, sizeof(session->end_text), record->why);
    debugger->current = session;
    *ret = session;
    breakpoints_push(session);
    emit(session, GD_EV_GRAPH, NULL, NULL);
    emit(session, GD_EV_SELECTED, NULL, NULL);
    return GD_OK;
}

/* ---- what targets report --------------------------------------------------------------------- */

void gd_session_on_graph(struct gd_session *session)
{
    if (has_ended(session)) {
        return;
    }
    session->graph_generation++;
    if (session->state == GD_WAITING) {
        session->state = GD_CONNECTED;
    }
    breakpoints_grow(session);
    keep_previous_grow(session);
    emit(session, GD_EV_GRAPH, NULL, NULL);
}

void gd_session_on_running(struct gd_session *session)
{
    double now = debugger_now(session->debugger);

    if (has_ended(session) || session->state == GD_RUNNING) {
        return;
    }
    if (session->state == GD_STOPPED) {
        session->timing.stopped += now - session->impl->since;
    }
    session->impl->since = now;
    session->state = GD_RUNNING;
    if (!session->impl->resuming && !session->impl->rank.quiet) {
        session->timing.last_run = 0;
        session->timing.last_run_steps = 0;
        emit(session, GD_EV_RUNNING, NULL, NULL);
    }
}

void session_note_run(struct gd_session *session, const struct gd_run *run,
                      const struct gd_stop *from, uint64_t sequence)
{
    struct gd_session_impl *impl = session->impl;

    impl->rechecking = run->kind == GD_RUN_RECHECK;
    if (run->kind != GD_RUN_RECHECK && sequence == UINT64_MAX) {
        impl->run = *run;
        if (run->name != impl->run_name) {
            copy_text(impl->run_name, sizeof(impl->run_name), run->name);
        }
        impl->run.name = impl->run_name;
        impl->run_from = *from;
        impl->has_run = true;
    }
    if (session->state == GD_STOPPED && session->stop.sequence == sequence) {
        gd_session_on_running(session);
    }
}

void session_count_steps(struct gd_session *session, int64_t step)
{
    int64_t ran = step - session->stop.step;

    if (ran > 0) {
        session->timing.last_run_steps += ran;
        session->timing.steps_run += ran;
    }
}

/* The books of a stop: time, steps, cache. No event yet. */
static void enter_stop(struct gd_session *session, const struct gd_stop *stop)
{
    double now = debugger_now(session->debugger);
    int64_t last_step = session->stop.step;
    uint64_t sequence = session->stop.sequence;

    if (session->state == GD_RUNNING) {
        session->timing.last_run += now - session->impl->since;
        session->timing.running += now - session->impl->since;
        session_count_steps(session, stop->step);
    } else if (session->state == GD_STOPPED) {
        session->timing.stopped += now - session->impl->since;
    }
    session->impl->since = now;
    gd_cache_move(session->impl->cache, last_step, stop->step);
    session->stop = *stop;
    session->stop.sequence = sequence;
    session->reached = stop->step;
    name_node(session, &session->stop);
    session->state = GD_STOPPED;
}

/* What is left of the run that was under way, as a run from here; false when it is done. */
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
        return true; /* the trainer counts anew: nobody knows how far it came */
    }
    if (ret->kind == GD_RUN_STEP) {
        /* Steps end between two stops of different step; one that stands at an end has it behind
         * it. */
        ret->count -= at->step - from->step + at->at_step_end - from->at_step_end;
        return ret->count > 0;
    }
    if (ret->kind == GD_RUN_NEXT) {
        if (at->step == from->step && gd_graph_node(session->graph, from->node, &a) &&
            gd_graph_node(session->graph, at->node, &b) && a.order != GD_NO_ORDER &&
            b.order != GD_NO_ORDER && b.order > a.order) {
            ret->count -= (int64_t)b.order - a.order;
        } else {
            ret->count--;
        }
        return ret->count > 0;
    }
    return true;
}

/* Goes on as if nothing had happened. False when that fails: then it is a stop like any other. */
static bool resume_silently(struct gd_session *session)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_run run;
    bool resumed;

    if (!session->target || session->interrupt_asked || !rest_of_run(session, &run)) {
        return false;
    }
    impl->resuming = true;
    impl->has_deferred = false;
    resumed = gd_target_resume(session->target, &run, NULL) == GD_OK;
    impl->resuming = false;
    return resumed;
}

/* A stop that is shown ends what was asked, whether the trainer has come to it or not. Even of one
 * that stands there the debugger does not know what came first, the stop or the request. */
static void forget_interrupt(struct gd_session *session)
{
    if (session->target && session->impl->interrupt_at) {
        session->target->ops->interrupt_at(session->target, 0, NULL);
    }
    session->impl->interrupt_at = 0;
}

/* Counts the stop, and says why it is one. */
static void count_stop(struct gd_session *session, enum breakpoint_verdict verdict)
{
    if (verdict == BREAKPOINT_STOP && session->stop.reason == GD_STOP_NODE) {
        session->stop.reason = GD_STOP_BREAKPOINT;
    }
    if (session->interrupt_asked && session->stop.reason == GD_STOP_BREAKPOINT &&
        verdict == BREAKPOINT_IGNORE) {
        session->stop.reason = GD_STOP_INTERRUPT;
    }
    session->interrupt_asked = false;
    forget_interrupt(session);
    session->stop.sequence++;
}

void session_announce(struct gd_session *session, enum breakpoint_verdict verdict)
{
    gd_node_id node = session->stop.node;

    if (node != GD_NO_NODE) {
        session->current = node;
    }
    emit(session, GD_EV_STOPPED, NULL, NULL);
    if (verdict == BREAKPOINT_STOP && session->stop.node == node) {
        breakpoints_delete_temporary(session, node);
    }
}

void gd_session_on_stopped(struct gd_session *session, const struct gd_stop *stop)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_stop now = *stop;

    if (has_ended(session)) {
        return;
    }
    if (impl->resuming) { /* the target answered from inside resume: the loop below goes on with it
                           */
        impl->deferred = *stop;
        impl->has_deferred = true;
        return;
    }
    for (;;) {
        enum breakpoint_verdict verdict = BREAKPOINT_NONE;
        bool at_node = now.reason == GD_STOP_BREAKPOINT || now.reason == GD_STOP_NODE ||
                       now.reason == GD_STOP_HIT;

        enter_stop(session, &now);
        if (at_node && !impl->rechecking) {
            verdict = breakpoints_pass(session, session->stop.node);
        }
        impl->rechecking = false;
        if (verdict == BREAKPOINT_IGNORE && now.reason == GD_STOP_BREAKPOINT &&
            resume_silently(session)) {
            if (!impl->has_deferred || has_ended(session)) {
                return;
            }
            now = impl->deferred;
            continue;
        }
        if (!has_ended(session)) { /* the trainer may have been lost when it was to go on */
            bool asked = session->interrupt_asked;

            count_stop(session, verdict);
            if (!ranks_take_stop(session, verdict, asked)) {
                session_announce(session, verdict);
            }
        }
        return;
    }
}

/* Room for one more hit; the oldest go when the limit is reached, an eighth at a time. */
static struct gd_hit *hit_slot(struct gd_session *session)
{
    uint64_t max = session->debugger->settings.max_hits;
    size_t cap = session->impl->hit_cap ? session->impl->hit_cap * 2 : 16;
    struct gd_hit *grown;

    if (session->hit_count >= max) {
        size_t out = session->hit_count - (size_t)(max - max / 8);

        out = out ? out : 1;
        if (out > session->hit_count) {
            return NULL;
        }
        session->hits_dropped += out;
        session->hit_count -= out;
        memmove(session->hits, session->hits + out, session->hit_count * sizeof(*session->hits));
        if (max == 0) {
            return NULL;
        }
    }
    if (session->hit_count == session->impl->hit_cap) {
        grown = realloc(session->hits, cap * sizeof(*grown));
        if (!grown) {
            return NULL;
        }
        session->hits = grown;
        session->impl->hit_cap = cap;
    }
    return &session->hits[session->hit_count++];
}

/* A process tells no more than the wire number, which several conditions share. */
static const struct gd_condition *kind_of(const struct gd_session *session,
                                          const struct gd_hit *hit)
{
    const struct gd_watchpoint *watch =
        hit->kind ? NULL : gd_watchpoint_at(session->debugger, hit->watchpoint);

    if (watch && watch->condition && watch->condition->wire == hit->condition) {
        return watch->condition;
    }
    return hit->kind;
}

/* What a hit's place is in this session. */
static void complete_hit(struct gd_session *session, struct gd_hit *hit)
{
    const struct gd_watchpoint *watch = gd_watchpoint_at(session->debugger, hit->watchpoint);
    struct gd_node_info info;

    hit->node_name[sizeof(hit->node_name) - 1] = '\0';
    hit->kind = kind_of(session, hit);
    hit->once = watch && watch->temporary && !hit->error;
    if (hit->param_count < 0 || hit->param_count > GD_MAX_HIT_PARAMS) {
        hit->param_count = 0;
    }
    if (hit->is_scalar) {
        hit->node = GD_NO_NODE; /* a node may have the name of a number */
    } else if (hit->node == GD_NO_NODE && hit->node_name[0]) {
        hit->node = gd_graph_lookup_wire(session->graph, hit->node_name, strlen(hit->node_name));
    } else if (!hit->node_name[0]) {
        copy_text(hit->node_name, sizeof(hit->node_name), gd_graph_name(session->graph, hit->node));
    }
    gd_graph_slot_name(session->graph, hit->node, hit->slot, hit->slot_name);
    hit->frozen = gd_graph_node(session->graph, hit->node, &info) && gd_node_attr(&info, "frozen");
    if (hit->stop_sequence == 0) { /* hits are reported before the stop that they cause */
        hit->stop_sequence = session->stop.sequence + (session->state != GD_STOPPED);
    }
}

void gd_session_on_hit(struct gd_session *session, const struct gd_hit *hit)
{
    bool goes_back = session->target && (session->target->capabilities & GD_CAN_GOTO) != 0;
    struct gd_hit made = *hit, *kept;

    complete_hit(session, &made);
    session_reach(session, made.step);
    kept = goes_back ? gd_hit_index_find(&session->impl->hit_index, session, &made) : NULL;
    if (kept) {
        *kept = made;
    } else {
        kept = hit_slot(session);
        if (!kept) {
            session->hits_dropped++;
            return;
        }
        *kept = made;
        if (goes_back) {
            gd_hit_index_add(&session->impl->hit_index, session, kept);
        }
    }
    emit(session, GD_EV_HIT, NULL, kept);
}

struct gd_hit *session_take_hits(struct gd_session *session, size_t *count)
{
    struct gd_hit *taken;
    size_t kept = 0;

    *count = 0;
    for (size_t i = 0; i < session->hit_count; i++) {
        *count += session->hits[i].step == session->stop.step;
    }
    taken = *count ? malloc(*count * sizeof(*taken)) : NULL;
    if (!taken) {
        return NULL;
    }
    *count = 0;
    for (size_t i = 0; i < session->hit_count; i++) {
        if (session->hits[i].step == session->stop.step) {
            taken[(*count)++] = session->hits[i];
        } else {
            session->hits[kept++] = session->hits[i];
        }
    }
    session->hit_count = kept;
    session->hits_generation++;
    gd_hit_index_rebuild(&session->impl->hit_index, session);
    return taken;
}

void session_put_back_hit(struct gd_session *session, const struct gd_hit *hit)
{
    struct gd_hit *slot = hit_slot(session);

    if (!slot) {
        session->hits_dropped++;
        return;
    }
    *slot = *hit;
    if (session->impl->hit_index.cap > 0) {
        gd_hit_index_add(&session->impl->hit_index, session, slot);
    }
}

/* The first value of a step counts: a step that is told twice is not two. */
static void remember(struct gd_scalar_past *past, double value, int64_t step)
{
    if (!isfinite(value) || (past->count > 0 && step <= past->last_step)) {
        return;
    }
    if (past->count == 0) {
        past->first = past->least = value;
        past->first_step = past->least_step = step;
    } else if (value < past->least) {
        past->least = value;
        past->least_step = step;
    }
    if (past->count > 0 && value > past->last) {
        past->rises++;
    } else {
        past->rises = 0;
        past->rose_from = value;
        past->rose_at = step;
    }
    past->last = value;
    past->last_step = step;
    past->count++;
}

void gd_session_on_scalar(struct gd_session *session, const char *name, double value, int64_t step)
{
    int i = 0;

    while (i < session->scalar_count &&
           strncmp(session->scalar[i].name, name, sizeof(session->scalar[i].name) - 1) != 0) {
        i++;
    }
    if (i == GD_MAX_SCALARS) {
        return;
    }
    if (i == session->scalar_count) {
        session->scalar_count++;
        copy_text(session->scalar[i].name, sizeof(session->scalar[i].name), name);
        session->scalar[i].first = value;
        session->scalar[i].first_step = step;
    } else if (session->scalar[i].step != step) {
        session->scalar[i].before = session->scalar[i].value;
        session->scalar[i].has_before = true;
    }
    session->scalar[i].value = value;
    session->scalar[i].step = step;
    session_reach(session, step);
    remember(&session->scalar[i].past, value, step);
    session_history_scalar(session, session->scalar[i].name, value, step);
    emit(session, GD_EV_SCALAR, session->scalar[i].name, NULL);
}

#define MAX_KIND 63  /* bytes of an event's kind */
#define MAX_NOTE 400 /* and of its text */

void gd_session_on_event(struct gd_session *session, const char *kind, const char *text,
                         int64_t step, gd_node_id node)
{
    char kept_kind[MAX_KIND + 1], kept_text[MAX_NOTE + 1], line[MAX_KIND + MAX_NOTE + 64];
    struct gd_note note = {.kind = kept_kind, .text = kept_text, .step = step, .node = node};
    struct gd_event event = {.type = GD_EV_EVENT, .session = session, .note = &note};

    if (has_ended(session)) {
        return;
    }
    session_reach(session, step);
    copy_text(kept_kind, sizeof(kept_kind), kind && kind[0] ? kind : "event");
    copy_text(kept_text, sizeof(kept_text), text);
    snprintf(line, sizeof(line), "%s at step %lld%s%s", kept_kind, (long long)step,
             kept_text[0] ? ": " : "", kept_text);
    gd_session_on_log(session, line);
    gd_debugger_emit(session->debugger, &event);
}

static double known_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0 ? seconds : -1;
}

void gd_session_on_step_times(struct gd_session *session, const struct gd_step_times *times)
{
    struct gd_step_times *last = &session->step_times;
    int count = times->op_count < GD_MAX_OP_TIMES ? times->op_count : GD_MAX_OP_TIMES;

    if (has_ended(session)) {
        return;
    }
    last->step = times->step > 0 ? times->step : 1; /* 0 means that none came */
    session_reach(session, last->step);
    for (int i = 0; i < GD_TIMES; i++) {
        last->part[i] = known_time(times->part[i]);
    }
    last->op_count = 0;
    for (int i = 0; i < count; i++) {
        if (known_time(times->op[i].seconds) >= 0) {
            last->op[last->op_count++] = times->op[i];
        }
    }
    gd_past_times_add(&session->past_times, last);
}

void gd_session_on_log(struct gd_session *session, const char *text)
{
    emit(session, GD_EV_LOG, text, NULL);
}

void gd_session_on_warning(struct gd_session *session, const char *text)
{
    emit(session, GD_EV_WARNING, text, NULL);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/event/happening.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/metric/over_ranks.h"
#include "engine/ranks.h"
#include "engine/session_impl.h"
#include "engine/watch/numbers.h"

#define MAX_TESTS 8 /* of one guard that the target is given */

static const char *const names[GD_HAPPENINGS] = {
    "",         "begin",      "epoch-begin", "epoch-end",  "step-begin",
    "step-end", "eval-begin", "eval-end",    "checkpoint", "end"};

const char *gd_happening_name(enum gd_happening kind)
{
    return names[kind];
}

enum gd_happening gd_happening_find(const char *name)
{
    for (int kind = 1; kind < GD_HAPPENINGS; kind++) {
        size_t i = 0;
        while (name[i] && (name[i] == '_' ? '-' : name[i]) == names[kind][i]) {
            i++;
        }
        if (!name[i] && !names[kind][i]) {
            return (enum gd_happening)kind;
        }
    }
    return GD_NO_HAPPENING;
}

bool gd_happening_is_of_steps(enum gd_happening kind)
{
    return kind == GD_HAPPENED_STEP_BEGIN || kind == GD_HAPPENED_STEP_END;
}

/* ---- what the target waits for ------------------------------------------------------------ */

/* The target counts the seconds since it got them. */
static bool is_of_time(const struct gd_session *session, struct gd_test_of *test)
{
    if (strcmp(test->number, "elapsed") != 0 || gd_session_scalar(session, test->number)) {
        return false;
    }
    test->value -= gd_numbers_elapsed(session);
    test->moves = true;
    return test->op == GD_CMP_GT || test->op == GD_CMP_GE;
}

/* The target knows all its numbers. No process knows one that is of all ranks. */
static bool can_test(const struct gd_session *session, struct gd_test_of *test)
{
    if (test->term_count == 0) {
        return !gd_over_ranks_has(session, test->number) &&
               (strcmp(test->number, "step") == 0 || gd_session_scalar(session, test->number) ||
                is_of_time(session, test));
    }
    for (size_t i = 0; i < test->term_count; i++) {
        const char *name = test->term[i].name;
        if (name[0] && (gd_over_ranks_has(session, name) || !gd_session_scalar(session, name))) {
            return false;
        }
    }
    return session->target->capabilities & GD_CAN_EVENT_TERMS;
}

/* Tests of the guard, if the target knows all their numbers. */
static size_t tests_of(struct gd_session *session, const struct gd_breakpoint *at,
                       struct gd_test_of *ret)
{
    size_t count = at->guard && gd_happening_is_of_steps(at->event)
                       ? gd_expr_needs_one(at->guard, gd_numbers_bound, session, ret, MAX_TESTS)
                       : 0;
    for (size_t i = 0; i < count; i++) {
        if (!can_test(session, &ret[i])) {
            return 0; /* the engine must say that it is unknown */
        }
    }
    return count;
}

/* What was needed may be more by now: the target learns that before it continues. */
static void push_again(struct gd_session *session, enum gd_happening kind)
{
    struct gd_test_of test[MAX_TESTS];
    bool moved = session->impl->rough_wishes;

    for (struct gd_breakpoint *b = session->debugger->breakpoints; b && !moved; b = b->next) {
        size_t count = b->event == kind && b->enabled && b->guard ? tests_of(session, b, test) : 0;
        for (size_t i = 0; i < count; i++) {
            moved = moved || test[i].moves;
        }
        moved = moved || (b->event == kind && b->tested != (count > 0));
    }
    if (moved) {
        happenings_push(session);
        session->impl->rough_wishes = false; /* the target waits: it reports nothing */
    }
}

static bool counts_here(const struct gd_session *session)
{
    return !gd_ranks_of(session) || session->peer.rank == 0 || gd_session_is_record(session);
}

bool gd_session_awaits_events(const struct gd_session *session)
{
    const struct gd_breakpoint *b = session->debugger->breakpoints;

    while (b && (!b->event || !b->enabled)) {
        b = b->next;
    }
    return b && counts_here(session);
}

/* A record has the events of its steps, if it has steps. */
static bool can_happen(const struct gd_session *session, enum gd_happening kind)
{
    bool of_steps =
        gd_happening_is_of_steps(kind) || kind == GD_HAPPENED_BEGIN || kind == GD_HAPPENED_END;

    return (session->target && session->target->capabilities & GD_CAN_EVENTS) &&
           (of_steps || !gd_session_is_record(session));
}

static void warn_unsupported(struct gd_session *session, struct gd_breakpoint *at)
{
    char text[160];

    if (at->warned) {
        return;
    }
    at->warned = true;
    snprintf(text, sizeof(text), "%s %d (%s) is not set in this %s",
             at->command ? "\"on\"" : "catchpoint", at->number, gd_happening_name(at->event),
             !gd_session_is_record(session)                  ? "process: it reports no events"
             : session->target->capabilities & GD_CAN_EVENTS ? "dump: it has only steps"
                                                             : "record: it has no steps");
    gd_session_on_warning(session, text);
}

static size_t list_wishes(struct gd_session *session, struct gd_event_wish *wish,
                          struct gd_test_of (*tests)[MAX_TESTS])
{
    size_t count = 0;

    for (struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        if (!b->event || !b->enabled || !counts_here(session)) {
            continue;
        }
        if (!can_happen(session, b->event)) {
            warn_unsupported(session, b);
            continue;
        }
        wish[count] = (struct gd_event_wish){
            .kind = gd_happening_name(b->event), .every = b->every, .tests = tests[count]};
        wish[count].test_count = tests_of(session, b, tests[count]);
        b->tested = wish[count].test_count > 0;
        count++;
    }
    return count;
}

void happenings_push(struct gd_session *session)
{
    size_t count = 0;

    for (const struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        count += b->event != GD_NO_HAPPENING;
    }
    if (!gd_session_is_live(session) || (count == 0 && !session->impl->has_wishes)) {
        return;
    }
    struct gd_event_wish *wish = calloc(count + 1, sizeof(*wish));
    struct gd_test_of(*tests)[MAX_TESTS] = calloc(count + 1, sizeof(*tests));
    struct gd_err err = {.text = "out of memory for events: they may not stop the run"};
    bool ok = wish && tests;
    if (ok) {
        count = list_wishes(session, wish, tests);
    }
    if (ok && (count > 0 || session->impl->has_wishes)) {
        ok = gd_target_set_events(session->target, wish, count, &err) == GD_OK;
        session->impl->has_wishes = ok && count > 0;
        session->impl->rough_wishes = session->state == GD_RUNNING;
    }
    if (!ok) {
        gd_session_on_warning(session, err.text);
    }
    free(tests);
    free(wish);
}

/* ---- the list ------------------------------------------------------------------------------ */

static int parse_guard(const struct gd_session *session, const char *text, struct gd_expr **ret,
                       struct gd_err *err)
{
    *ret = NULL;
    if (!text || !text[0]) {
        return GD_OK;
    }
    int rc = gd_expr_parse(text, ret, err);
    if (rc == GD_OK && gd_expr_has_statistic(*ret)) {
        rc = gd_fail(err, GD_EINVAL,
                     "an event has no tensor: its condition uses metrics only, such as loss or "
                     "step; put a metric that is named like a statistic in double quotes");
    }
    rc = rc != GD_OK ? rc : gd_numbers_check(session, *ret, err);
    if (rc != GD_OK) {
        gd_expr_destroy(*ret);
        *ret = NULL;
    }
    return rc;
}

static int check_kind(const struct gd_session *session, enum gd_happening kind, struct gd_err *err)
{
    bool record = gd_session_is_record(session);

    if ((!record && !gd_session_is_live(session)) || can_happen(session, kind)) {
        return GD_OK;
    }
    if (!record) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process reports no events");
    }
    return session->target->capabilities & GD_CAN_EVENTS
               ? gd_fail(err, GD_EUNSUPPORTED,
                         "a dump has no %s: it has only steps; its events are begin, step-begin, "
                         "step-end and end",
                         gd_happening_name(kind))
               : gd_fail(err, GD_EUNSUPPORTED,
                         "events happen in a running training, or in the steps of a dump: here "
                         "there are none");
}

int gd_debugger_catch(struct gd_debugger *debugger, const struct gd_catch_spec *spec,
                      struct gd_breakpoint **ret, struct gd_err *err)
{
    const struct gd_session *current = debugger->current;
    struct gd_expr *guard = NULL;

    int rc = current ? check_kind(current, spec->kind, err) : GD_OK;
    rc = rc != GD_OK ? rc : parse_guard(current, spec->guard, &guard, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_breakpoint *at = calloc(1, sizeof(*at));
    if (at) {
        at->where = strdup(gd_happening_name(spec->kind));
        at->command = spec->command ? strdup(spec->command) : NULL;
    }
    if (!at || !at->where || (spec->command && !at->command)) {
        breakpoint_free(at);
        gd_expr_destroy(guard);
        return gd_fail_nomem(err);
    }
    at->event = spec->kind;
    at->guard = guard;
    at->every = spec->every > 0 ? spec->every : 1;
    at->temporary = spec->temporary;
    breakpoints_add(debugger, at);
    *ret = at;
    return GD_OK;
}

int gd_catch_set_guard(struct gd_debugger *debugger, struct gd_breakpoint *at, const char *text,
                       struct gd_err *err)
{
    struct gd_expr *guard = NULL;
    int rc = parse_guard(debugger->current, text, &guard, err);

    if (rc == GD_OK) {
        gd_expr_destroy(at->guard);
        at->guard = guard;
        at->told_unknown = false;
        breakpoints_changed(debugger);
    }
    return rc;
}

/* ---- judging ------------------------------------------------------------------------------- */

/* A metric that was never reported is probably misspelled. */
static void tell_unknown(struct gd_session *session, struct gd_breakpoint *at, unsigned error)
{
    char text[300];

    bool dump = gd_session_is_record(session);
    if (at->told_unknown || !(error & GD_HIT_NO_VALUE) || (session->scalar_count == 0 && !dump)) {
        return;
    }
    at->told_unknown = true;
    snprintf(text, sizeof(text),
             "%s %d (%s): its condition is unknown, as the %s all metrics in \"%.100s\": see info "
             "scalars",
             at->command ? "\"on\"" : "catchpoint", at->number, gd_happening_name(at->event),
             dump ? "dump does not have" : "training has not reported", gd_expr_text(at->guard));
    gd_session_on_warning(session, text);
}

static bool fires_at(struct gd_session *session, struct gd_breakpoint *at,
                     const struct gd_happened *what)
{
    struct gd_numbers numbers = {session, what->step, what->epoch, what->batch};
    unsigned error;

    if (at->event != what->kind || !at->enabled) {
        return false;
    }
    int64_t number = gd_happening_is_of_steps(what->kind) ? what->step : ++at->seen;
    if (number % at->every != 0) {
        return false;
    }
    if (at->guard) {
        enum gd_truth truth = gd_numbers_judge(&numbers, at->guard, &error);
        if (truth == GD_UNKNOWN && !session->impl->undecided) {
            tell_unknown(session, at, error);
        }
        if (truth != GD_TRUE) {
            return false;
        }
    }
    at->hits++;
    if (at->ignore > 0) {
        at->ignore--;
        return false;
    }
    return true;
}

static void log_happening(struct gd_session *session, const struct gd_happened *what)
{
    char text[GD_EVENT_TEXT_SIZE] = "";

    if (gd_happening_is_of_steps(what->kind) || gd_session_is_record(session)) {
        return; /* a record can be walked through again */
    }
    if (what->text[0]) {
        snprintf(text, sizeof(text), "%s", what->text);
    } else if (what->epoch > 0) {
        snprintf(text, sizeof(text), "epoch %lld", (long long)what->epoch);
    }
    gd_event_log_add(&session->events, what->step, gd_happening_name(what->kind), text, GD_NO_NODE);
}

/* Which breakpoints fire at the last event. */
static bool judge_event(struct gd_session *session)
{
    struct gd_happened what = session->impl->happened;

    for (struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        if (b->event && counts_here(session) && session->fired_count < GD_MAX_FIRED &&
            fires_at(session, b, &what)) {
            session->fired[session->fired_count++] = b->number;
        }
    }
    if (gd_happening_is_of_steps(what.kind)) {
        push_again(session, what.kind);
    }
    return session->fired_count > 0;
}

enum gd_event_verdict gd_session_on_happening(struct gd_session *session,
                                              const struct gd_happened *what, bool holding)
{
    if (session_has_ended(session)) {
        return GD_VERDICT_GO;
    }
    session_reach(session, what->step);
    log_happening(session, what);
    session->impl->happened = *what;
    session->fired_count = 0;
    if (!holding) {
        return GD_VERDICT_GO;
    }
    if (session->target->ops->event_verdict && over_ranks_await(session)) {
        return GD_VERDICT_LATER;
    }
    return judge_event(session) ? GD_VERDICT_STOP : GD_VERDICT_GO;
}

void happenings_decide(struct gd_session *session)
{
    if (session->target) {
        session->target->ops->event_verdict(session->target, judge_event(session));
    }
}

/* ---- the stop ------------------------------------------------------------------------------ */

/* A metric of the step that has ended. */
static int64_t number_of_step(const struct gd_session *session, const char *name)
{
    const struct gd_scalar *scalar = gd_session_scalar(session, name);
    bool now = scalar && scalar->step == session->stop.step;

    return now && scalar->value > 0 && scalar->value < 1e15 ? (int64_t)scalar->value : 0;
}

void happenings_stop(struct gd_session *session, bool rest)
{
    struct gd_stop *stop = &session->stop;
    bool caught = false;

    stop->happened = session->impl->happened;
    if (stop->happened.kind == GD_HAPPENED_STEP_END) {
        stop->happened.epoch = number_of_step(session, "epoch");
        stop->happened.batch = number_of_step(session, "batch");
    }
    for (int i = 0; i < session->fired_count; i++) {
        const struct gd_breakpoint *b =
            gd_debugger_breakpoint(session->debugger, session->fired[i]);
        caught = caught || (b && !b->command);
    }
    if (!caught && session->interrupt_asked) {
        stop->reason = GD_STOP_INTERRUPT;
    } else if (!caught && !rest) {
        stop->reason = GD_STOP_STEP; /* it would have stopped here anyway */
    } else {
        stop->passing = !caught;
    }
}

void happenings_delete_temporary(struct gd_session *session)
{
    for (int i = 0; i < session->fired_count; i++) {
        const struct gd_breakpoint *b =
            gd_debugger_breakpoint(session->debugger, session->fired[i]);
        if (b && b->temporary) {
            gd_debugger_delete_breakpoint(session->debugger, b->number, NULL);
        }
    }
}

// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent_source.h"
#include "base/workers.h"

#define WORTH_SHARING UINT64_C(300000) /* nanoseconds */

bool agent_usable(const struct agent *a)
{
    return a && agent_fork_is_ours(a);
}

void agent_set_error(struct agent *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(a->error, sizeof(a->error), format, args);
    va_end(args);
}

void agent_wake(const struct agent *a)
{
    /* A full pipe wakes as well as one byte more. */
    if (a->wake[1] < 0) {
        return; /* a forked child */
    }
    ssize_t ignored = write(a->wake[1], "", 1);
    (void)ignored;
}

/* After the change: who has seen the number must see what it is about. */
static void wants_changed(struct agent *a)
{
    __atomic_fetch_add(&a->pub.changes, 1, __ATOMIC_RELEASE);
}

void agent_arm(struct agent *a)
{
    bool up = a->link == LINK_UP;
    bool any = up && (a->interrupt || a->run.kind == RUN_NEXT || a->run.kind == RUN_TO ||
                      a->run.kind == RUN_FINISH);
    bool nodes = any || (up && (a->break_count || a->expected_count || a->expected_not_finite ||
                                a->exact_items || a->seen_items || a->capturing.active));
    bool steps = nodes || a->hold_pending || a->keep_new || a->capturing.held ||
                 (up && (a->stop_pending || a->end_items || a->keep_count || a->asked_keep_count ||
                         a->interrupt_at || a->capturing.last > 0));
    bool changed = any != a->hears_all || nodes != a->sees_nodes;
    a->hears_all = any;
    if (nodes != a->sees_nodes) {
        /* A thread that runs notices a little later: maybe at the end of this step. */
        a->sees_nodes = nodes;
        a->seen_from = PEEK(a->step) + (a->stopped ? 1 : 2);
    }
    POKE(a->quick, !any && !a->calling);
    POKE(a->attention, steps);
    POKE(a->due, up && a->run.kind == RUN_STEP ? a->run.due : UINT64_MAX);
    bool wakes = nodes && !GRADB_IS_ARMED(&a->pub);
    __atomic_store_n(&a->pub.armed, nodes, __ATOMIC_RELAXED);
    if (wakes && a->on_armed) {
        a->on_armed(a->on_armed_ctx);
    }
    if (changed) {
        wants_changed(a);
    }
}

/* Whether it was added since gradb_sync, and the debugger waits for such a one. */
static bool is_awaited(const struct agent *a, uint32_t id)
{
    return a->expected_new && id >= a->synced_nodes && agent_is_expected(a, a->nodes[id].name);
}

static void mark(struct agent *a, uint32_t id)
{
    const struct agent_node *node = &a->nodes[id];
    bool value = node->flags & (NODE_CAPTURE_WATCH | NODE_WATCH_EXACT) || agent_captures(a, node);
    unsigned marks = value || node->flags & NODE_BREAK ? MARK_SLOW | MARK_RUN : 0;
    marks |= node->flags & NODE_WATCH_SEEN || is_awaited(a, id) ? MARK_RUN : 0;
    marks |= value ? MARK_VALUE : 0;
    marks |= a->expected_not_finite && id >= a->synced_nodes ? MARK_NOT_FINITE : 0;
    POKE(a->passes[id].marked, (unsigned char)marks);
}

void agent_mark_node(struct agent *a, uint32_t id)
{
    mark(a, id);
    wants_changed(a);
}

void agent_mark_nodes(struct agent *a, uint32_t first)
{
    for (uint32_t id = first; id < a->node_count; id++) {
        mark(a, id);
    }
    wants_changed(a);
}

void agent_disarm(struct agent *a)
{
    a->run = (struct agent_run){0};
    a->interrupt = false;
    a->interrupt_at = 0;
    a->stop_pending = false;
    agent_control_clear(a);
    a->verdict_first = a->verdict_for = a->verdict_stop = 0;
    agent_arm(a);
}

/* ---- standing and going on ------------------------------------------------------------------ */

void agent_stand(struct agent *a, Gradb__V1__StopReason reason, gradb_node node, bool at_step_end,
                 const char *text, uint64_t report)
{
    a->stop = (struct agent_stop){.reason = reason, .node = node, .at_step_end = at_step_end};
    a->stop.step = PEEK(a->step);
    a->stop.phase = at_step_end ? 0 : PEEK(a->phase);
    a->stop.report = report;
    snprintf(a->stop.text, sizeof(a->stop.text), "%s", text ? text : "");
    a->run = (struct agent_run){0};
    a->interrupt = a->stop_pending = a->hold_pending = false;
    if (at_step_end && a->stop.step >= a->interrupt_at) {
        a->interrupt_at = 0;
    }
    a->published = a->node_count;
    a->late_published = a->late_count;
    a->stop_sent = false;
    a->stopped = true;
    agent_arm(a);
    agent_wake(a);
    if (a->stopped_by[0] != '\0') {
        agent_say("gradb: stopped by the debugger at %s\n", a->stopped_by);
        a->stopped_by[0] = '\0';
    }
    while (a->stopped) {
        if (!agent_serve(a)) {
            pthread_cond_wait(&a->go, &a->lock);
        }
    }
    agent_source_release(a);
    agent_source_keep(a);
}

/* What stops the run at a step boundary, in order of importance. */
static void stand_between_steps(struct agent *a)
{
    if (a->hold_pending) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    } else if (a->link != LINK_UP) {
        return;
    } else if (a->interrupt || (a->interrupt_at && PEEK(a->step) >= a->interrupt_at)) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_INTERRUPT, 0, true, "", 0);
    } else if (a->stop_pending) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    }
}

static void step_begin_slow(struct agent *a, int64_t step)
{
    if (!agent_turn_take(a)) {
        return;
    }
    stand_between_steps(a);
    agent_source_keep(a);
    agent_capture_step(a, step);
    agent_turn_end(a);
}

void gradb_on_armed(gradb *g, void (*call)(void *ctx), void *ctx)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->on_armed = call;
    a->on_armed_ctx = ctx;
    pthread_mutex_unlock(&a->lock);
}

static void step_begins(struct agent *a, int64_t step)
{
    POKE(a->step, step);
    POKE(a->begun, PEEK(a->begun) + 1);
    POKE(a->in_step, 1);
    POKE(a->phase, 0U);
    POKE(a->last_node, 0);
}

void gradb_step_begin(gradb *g, int64_t step)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    if (PEEK(a->attention) && agent_usable(a)) {
        step_begin_slow(a, step);
    }
    step_begins(a, step);
}

struct keeping {
    struct agent *a;
    atomic_uint failed; /* a node whose copy there is no memory for; 0 none */
};

static void keep_part(void *ctx, size_t i)
{
    struct keeping *k = ctx;
    gradb_node id = k->a->keep[i];
    uint64_t start = agent_now_ns();
    if (!agent_keep_node(k->a, id)) {
        POKE(k->failed, id);
    }
    agent_watch_kept(k->a, id, agent_now_ns() - start);
}

/* The work is shared when it took long in the step before. */
static void keep_previous(struct agent *a)
{
    struct keeping k = {.a = a};
    if (a->keep_stale) {
        agent_keep_collect(a);
    }
    if (a->link != LINK_UP || a->keep_count == 0) {
        return;
    }
    uint64_t start = agent_now_ns();
    gd_workers_run(a->keep_ns >= WORTH_SHARING ? a->threads : 1, a->keep_count, keep_part, &k);
    a->keep_ns = agent_now_ns() - start;
    if (PEEK(k.failed)) {
        agent_set_error(a, "out of memory for a copy of %.100s", a->nodes[PEEK(k.failed)].name);
    }
}

/* Something is asked of us where the running step ends. */
static bool is_asked_at_end(const struct agent *a)
{
    return PEEK(a->attention) || PEEK(a->begun) >= PEEK(a->due);
}

static void step_end_slow(struct agent *a)
{
    if (!agent_turn_take(a)) {
        return;
    }
    if (a->end_items && agent_watch_step_end(a)) {
        /* That was the stop of this place. */
    } else if (a->link == LINK_UP && a->run.kind == RUN_STEP && PEEK(a->begun) >= a->run.due) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_STEP, 0, true, "", 0);
    } else if (a->link == LINK_UP && a->run.kind == RUN_FINISH && a->run.phase != 0) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_PHASE, 0, true, "", 0);
    } else {
        stand_between_steps(a);
    }
    agent_source_keep(a);
    keep_previous(a);
    agent_turn_end(a);
}

void gradb_step_end(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    POKE(a->in_step, 0);
    POKE(a->ended, PEEK(a->step));
    POKE(a->phase, 0U);
    if (is_asked_at_end(a) && agent_usable(a)) {
        step_end_slow(a);
    }
}

bool gradb_try_step(gradb *g, int64_t step)
{
    struct agent *a = agent_of(g);
    if (a && is_asked_at_end(a)) {
        return false;
    }
    if (a) {
        step_begins(a, step);
    }
    return true;
}

/* A phase begins. FINISH from between two steps takes the first phase that comes. */
static void phase_begins(struct agent *a, uint32_t phase)
{
    uint32_t old = PEEK(a->phase);
    if (a->link == LINK_UP && a->run.kind == RUN_FINISH && phase != old) {
        if (a->run.phase == 0) {
            a->run.phase = phase;
        } else if (phase != a->run.phase) {
            agent_stand(a, GRADB__V1__STOP_REASON__STOP_PHASE, PEEK(a->last_node), false, "", 0);
            a->run.phase = phase; /* what another FINISH would be of */
        }
    }
    POKE(a->phase, phase);
}

void gradb_enter(gradb *g, gradb_phase phase)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    if (PEEK(a->attention) && agent_usable(a)) {
        if (!agent_turn_take(a)) {
            return;
        }
        phase_begins(a, (uint32_t)phase);
        agent_turn_end(a);
    }
    POKE(a->phase, (uint32_t)phase);
}

bool gradb_try_enter(gradb *g, gradb_phase phase)
{
    struct agent *a = agent_of(g);
    if (a && GRADB_IS_ARMED(&a->pub)) { /* FINISH, for one */
        return false;
    }
    if (a) {
        POKE(a->phase, (uint32_t)phase);
    }
    return true;
}

/* `next` goes from one computation to the next, and an interrupt to one: data that came in is none.
 */
static bool is_computed(const struct agent_node *node)
{
    return node->phase != 0 || (node->kind != GRADB_PARAMETER && node->kind != GRADB_CONSTANT);
}

/* Why the run stops at a node that has just run; STOP_UNKNOWN: it does not. */
static Gradb__V1__StopReason node_reason(struct agent *a, gradb_node id)
{
    if (a->link != LINK_UP) {
        return GRADB__V1__STOP_REASON__STOP_UNKNOWN;
    }
    if (a->nodes[id].flags & NODE_BREAK) {
        return GRADB__V1__STOP_REASON__STOP_BREAKPOINT;
    }
    if (a->interrupt && is_computed(&a->nodes[id])) {
        return GRADB__V1__STOP_REASON__STOP_INTERRUPT;
    }
    if ((a->run.kind == RUN_NEXT && is_computed(&a->nodes[id]) && --a->run.left <= 0) ||
        (a->run.kind == RUN_TO && a->run.node == id)) {
        return GRADB__V1__STOP_REASON__STOP_NODE;
    }
    return GRADB__V1__STOP_REASON__STOP_UNKNOWN;
}

static void node_did(struct agent *a, gradb_node id, struct agent_told told)
{
    struct agent_node *node = agent_node_at(a, id);
    if (!node) {
        agent_set_error(a, "gradb_did: node %u was not added", id);
        return;
    }
    if (node->phase != 0 && node->phase != PEEK(a->phase) && PEEK(a->in_step)) {
        phase_begins(a, node->phase);
        node = &a->nodes[id];
    }
    POKE(a->passes[id].ran_step, PEEK(a->step));
    POKE(a->last_node, id);
    if (node->flags & NODE_WATCH_EXACT && agent_watch_node(a, id, told)) {
        return; /* that was the stop of this place */
    }
    Gradb__V1__StopReason reason = node_reason(a, id);
    if (reason != GRADB__V1__STOP_REASON__STOP_UNKNOWN) {
        agent_stand(a, reason, id, false, "", 0);
    }
}

/* The node is of no interest to anybody: it is only noted that it has run. Without the lock: the
 * node table changes only on this thread, and the rest is read when this thread stands. */
static bool pass_by(struct agent *a, gradb_node id)
{
    if (!PEEK(a->quick) || !PEEK(a->pid) || id == 0 || id >= a->node_count) {
        return false;
    }
    struct agent_pass *pass = &a->passes[id];
    if (PEEK(pass->marked) & MARK_SLOW) {
        return false;
    }
    if (pass->phase != 0 && PEEK(a->in_step)) {
        POKE(a->phase, (unsigned)pass->phase);
    }
    POKE(pass->ran_step, PEEK(a->step));
    POKE(a->last_node, id);
    return true;
}

void gradb_did_slow(gradb *g, gradb_node id)
{
    struct agent *a = agent_of(g);
    if (!a || pass_by(a, id) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    node_did(a, id, (struct agent_told){NULL, 0});
    if (a->source.locate) {
        agent_capture_node(a, id);
    }
    agent_turn_end(a);
}

void gradb_did_with_slow(gradb *g, gradb_node id, const gradb_tensor *outputs, size_t count)
{
    gradb_did_with_same_slow(g, id, outputs, count, NULL);
}

void gradb_did_with_same_slow(gradb *g, gradb_node id, const gradb_tensor *outputs, size_t count,
                              const gradb_same *same)
{
    struct agent *a = agent_of(g);
    if (!a || pass_by(a, id) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    static const gradb_tensor none = {.rank = 0};
    const struct agent_node *known = agent_node_at(a, id);
    unsigned slots = known ? known->slot_count : 0;
    count = known && count > slots ? slots : count;
    for (unsigned i = 0; i < slots; i++) {
        agent_bind(a, id, i, i < count ? &outputs[i] : &none);
    }
    node_did(a, id, (struct agent_told){same, same ? count : 0});
    agent_capture_node(a, id);
    for (unsigned i = 0; known && i < count; i++) {
        agent_bind(a, id, i, NULL);
    }
    agent_turn_end(a);
}

/* node 0: the one that ran last. */
static void stop_at(gradb *g, Gradb__V1__StopReason reason, gradb_node node, const char *why)
{
    struct agent *a = agent_of(g);
    if (!a || !PEEK(a->connected) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    if (a->link == LINK_UP) {
        bool inside = PEEK(a->in_step) != 0;
        node = node != 0 && node < a->node_count ? node : PEEK(a->last_node);
        agent_stand(a, reason, inside ? node : 0, !inside, why, 0);
    }
    agent_turn_end(a);
}

void gradb_stop(gradb *g, const char *why)
{
    stop_at(g, GRADB__V1__STOP_REASON__STOP_PROGRAM, 0, why);
}

void gradb_stop_at(gradb *g, gradb_node node, const char *why)
{
    stop_at(g, GRADB__V1__STOP_REASON__STOP_PROGRAM, node, why);
}

void gradb_raised(gradb *g, gradb_node node, const char *why)
{
    stop_at(g, GRADB__V1__STOP_REASON__STOP_EXCEPTION, node, why);
}

void gradb_heed(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a || !GRADB_IS_ARMED(g) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    if (a->link == LINK_UP && a->interrupt) {
        bool inside = PEEK(a->in_step) != 0;
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_INTERRUPT, inside ? PEEK(a->last_node) : 0,
                    !inside, "", 0);
    }
    agent_turn_end(a);
}

unsigned gradb_wants(const gradb *g, gradb_node id)
{
    const struct agent *a = (const struct agent *)(const void *)g;
    if (!a || !GRADB_IS_ARMED(g) || !PEEK(a->pid) || id == 0 || id >= a->node_count) {
        return 0;
    }
    unsigned marks = PEEK(a->passes[id].marked);
    return (!PEEK(a->quick) || marks & MARK_RUN ? GRADB_WANT_RUN : 0U) |
           (marks & MARK_VALUE ? GRADB_WANT_VALUE : 0U) |
           (marks & MARK_NOT_FINITE ? GRADB_WANT_IF_NOT_FINITE : 0U);
}

/* ---- the graph as it grows ------------------------------------------------------------------- */

/* Publishes, and waits for the debugger to have taken it in. */
static void sync_graph(struct agent *a)
{
    uint32_t nodes = a->published = a->node_count;
    size_t late = a->late_published = a->late_count;
    if (a->link != LINK_UP || (nodes == a->synced_nodes && late == a->synced_late)) {
        return;
    }
    agent_wake(a);
    if (!a->can_sync) {
        return;
    }
    uint64_t mine = ++a->sync_wanted;
    while (a->link == LINK_UP && a->sync_seen < mine && !a->closing) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    if (a->sync_seen >= mine) {
        uint32_t first = a->synced_nodes; /* those before it were not new before */
        a->synced_nodes = nodes;
        a->synced_late = late;
        if (a->expected_new || a->capturing.active) {
            a->expected_new = false;
            agent_mark_nodes(a, first > 0 ? first : 1);
        }
    }
}

bool gradb_sync(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a || !PEEK(a->connected) || !agent_usable(a) || !agent_turn_take(a)) {
        return false;
    }
    sync_graph(a);
    agent_source_keep(a);
    bool up = a->link == LINK_UP;
    agent_turn_end(a);
    return up;
}

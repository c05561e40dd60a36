// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent_capture.h"
#include "agent/agent_core.h"
#include "agent/agent_event.h"
#include "agent/agent_graph.h"
#include "agent/agent_mark.h"
#include "agent/agent_metric.h"
#include "agent/agent_source.h"
#include "agent/agent_stop.h"
#include "agent/agent_tensor.h"
#include "agent/agent_turn.h"
#include "agent/agent_watch.h"
#include "base/workers.h"

#define WORTH_SHARING UINT64_C(300000) /* nanoseconds */

/* ---- stopping and resuming ---------------------------------------------------------------- */

/* The reasons to stop at a step boundary, most important first. */
static void stop_between_steps(struct agent *a)
{
    if (a->hold_pending) {
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    } else if (a->link != LINK_UP) {
        return;
    } else if (a->interrupt.wanted || (a->interrupt.at && PEEK(a->step) >= a->interrupt.at)) {
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_INTERRUPT, 0, true, "", 0);
    } else if (a->stop_pending) {
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    }
}

static void step_begin_slow(struct agent *a, int64_t step)
{
    if (!agent_turn_take(a)) {
        return;
    }
    stop_between_steps(a);
    agent_event_step(a, true, step);
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
    if (step < PEEK(a->step)) { /* another training of the same program */
        POKE(a->event_step, INT64_MIN);
    }
    POKE(a->step, step);
    POKE(a->begun, PEEK(a->begun) + 1);
    POKE(a->in_step, 1);
    POKE(a->evaluates, 0);
    POKE(a->as_of, -1);
    POKE(a->entered, 0);
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
    atomic_uint failed; /* a node whose copy did not fit into memory; 0: none */
};

static void keep_part(void *ctx, size_t i)
{
    struct keeping *k = ctx;
    gradb_node id = k->a->kept.nodes[i];
    uint64_t start = agent_now_ns();
    if (!agent_keep_node(k->a, id)) {
        POKE(k->failed, id);
    }
    agent_watch_kept(k->a, id, agent_now_ns() - start);
}

/* Uses several threads if the previous step took long. */
static void keep_previous(struct agent *a)
{
    struct keeping k = {.a = a};
    if (a->kept.stale) {
        agent_keep_collect(a);
    }
    if (a->link != LINK_UP || a->kept.count == 0) {
        return;
    }
    uint64_t start = agent_now_ns();
    gd_workers_run(a->kept.ns >= WORTH_SHARING ? a->threads : 1, a->kept.count, keep_part, &k);
    a->kept.ns = agent_now_ns() - start;
    if (PEEK(k.failed)) {
        agent_set_error(a, "out of memory for a copy of %.100s", a->nodes[PEEK(k.failed)].name);
    }
}

/* Something must be done where the current step ends. */
static bool is_asked_at_end(const struct agent *a)
{
    return PEEK(a->attention) || PEEK(a->begun) >= PEEK(a->due) || PEEK(a->event_due) ||
           PEEK(a->step) >= PEEK(a->event_step);
}

static void step_end_slow(struct agent *a)
{
    if (!agent_turn_take(a)) {
        return;
    }
    bool stopped = a->end_items && agent_watch_step_end(a);
    stopped = agent_event_step(a, false, PEEK(a->step)) || stopped;
    if (stopped) {
        /* The end of the requested steps. */
    } else if (a->link == LINK_UP && a->run.kind == RUN_STEP && PEEK(a->begun) >= a->run.due) {
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_STEP, 0, true, "", 0);
    } else if (a->link == LINK_UP && a->run.kind == RUN_FINISH && a->run.phase != 0) {
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_PHASE, 0, true, "", 0);
    } else {
        stop_between_steps(a);
    }
    agent_source_keep(a);
    keep_previous(a);
    agent_turn_end(a);
}

static void end_metrics(struct agent *a)
{
    POKE(a->evaluates, 0);
    POKE(a->as_of, -1);
    if (PEEK(a->has_metrics) && agent_usable(a)) {
        pthread_mutex_lock(&a->lock);
        agent_metric_step_end(a);
        pthread_mutex_unlock(&a->lock);
    }
}

void gradb_step_end(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    end_metrics(a); /* its numbers are of the step, not after it */
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
        end_metrics(a);
        POKE(a->ended, PEEK(a->step));
        step_begins(a, step);
    }
    return true;
}

/* A phase begins. FINISH requested between two steps refers to the first phase that begins. */
static void phase_begins(struct agent *a, uint32_t phase)
{
    uint32_t old = PEEK(a->phase);
    if (a->link == LINK_UP && a->run.kind == RUN_FINISH && phase != old) {
        if (a->run.phase == 0) {
            a->run.phase = phase;
        } else if (phase != a->run.phase) {
            agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_PHASE, PEEK(a->last_node), false, "",
                              0);
            a->run.phase = phase; /* the phase that another FINISH would leave */
        }
    }
    POKE(a->phase, phase);
    POKE(a->entered, 1);
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
    POKE(a->entered, 1);
}

bool gradb_try_enter(gradb *g, gradb_phase phase)
{
    struct agent *a = agent_of(g);
    if (a && GRADB_IS_ARMED(&a->pub)) { /* for example FINISH */
        return false;
    }
    if (a) {
        POKE(a->phase, (uint32_t)phase);
        POKE(a->entered, 1);
    }
    return true;
}

/* `next` and an interrupt stop only at computations; incoming data is not one. */
static bool is_computed(const struct agent_node *node)
{
    return node->phase != 0 || (node->kind != GRADB_PARAMETER && node->kind != GRADB_CONSTANT);
}

/* Why to stop at a node that has just run; STOP_UNKNOWN: no reason. */
static Gradb__V1__StopReason node_reason(struct agent *a, gradb_node id)
{
    if (a->link != LINK_UP) {
        return GRADB__V1__STOP_REASON__STOP_UNKNOWN;
    }
    if (a->nodes[id].flags & NODE_BREAK) {
        return GRADB__V1__STOP_REASON__STOP_BREAKPOINT;
    }
    if (a->interrupt.wanted && is_computed(&a->nodes[id])) {
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
        return; /* already stopped here */
    }
    Gradb__V1__StopReason reason = node_reason(a, id);
    if (reason != GRADB__V1__STOP_REASON__STOP_UNKNOWN) {
        agent_stop_thread(a, reason, id, false, "", 0);
    }
}

/* Nobody is interested in the node: only records that it ran. Without the lock: the node table
 * changes only on this thread, and the rest is read while this thread is stopped. */
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
    struct agent_told told = {NULL, 0};
    node_did(a, id, told);
    if (a->source.locate) {
        agent_capture_node(a, id, told);
    }
    agent_metric_node(a, id);
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
    struct agent_told told = {same, same ? count : 0};
    node_did(a, id, told);
    agent_capture_node(a, id, told);
    agent_metric_node(a, id);
    for (unsigned i = 0; known && i < count; i++) {
        agent_bind(a, id, i, NULL);
    }
    agent_turn_end(a);
}

/* node 0: the node that ran last. */
static void stop_at(gradb *g, Gradb__V1__StopReason reason, gradb_node node, const char *why)
{
    struct agent *a = agent_of(g);
    if (!a || !PEEK(a->connected) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    if (a->link == LINK_UP) {
        bool inside = PEEK(a->in_step) != 0;
        node = node != 0 && node < a->node_count ? node : PEEK(a->last_node);
        agent_stop_thread(a, reason, inside ? node : 0, !inside, why, 0);
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
    if (a->link == LINK_UP && a->interrupt.wanted) {
        bool inside = PEEK(a->in_step) != 0;
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_INTERRUPT,
                          inside ? PEEK(a->last_node) : 0, !inside, "", 0);
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

bool gradb_wants_at_end(const gradb *g, gradb_node id)
{
    const struct agent *a = (const struct agent *)(const void *)g;
    return a && PEEK(a->pid) && id > 0 && id < a->node_count &&
           PEEK(a->passes[id].marked) & MARK_END;
}

bool gradb_wants_new(const gradb *g)
{
    const struct agent *a = (const struct agent *)(const void *)g;
    return a && PEEK(a->pid) && PEEK(a->expected.at_end);
}

/* ---- the graph as it grows ------------------------------------------------------------------- */

/* Publishes, and waits until the debugger has processed it. */
static void sync_graph(struct agent *a)
{
    uint32_t nodes = a->published = a->node_count;
    size_t late = a->late_published = a->late_count;
    if (a->link != LINK_UP || (nodes == a->sync.nodes && late == a->sync.late)) {
        return;
    }
    agent_wake(a);
    if (!a->sync.supported) {
        return;
    }
    uint64_t mine = ++a->sync.wanted;
    while (a->link == LINK_UP && a->sync.seen < mine && !a->closing) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    if (a->sync.seen >= mine) {
        uint32_t first = a->sync.nodes; /* earlier nodes were known already */
        a->sync.nodes = nodes;
        a->sync.late = late;
        if (a->expected.added || a->capturing.active) {
            a->expected.added = false;
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

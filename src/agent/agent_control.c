// SPDX-License-Identifier: MIT
/*
 * Messages that change what the hooks look at. While watch plans are walked along and the program
 * is asked in between, those that change plans and nodes wait until that is over, in their order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_impl.h"

struct agent_later {
    struct agent_later *next;
    agent_to *message;
};

/* Replaces the set of nodes that carry a flag; returns how many do. With the lock. */
static uint32_t flag_nodes(struct agent *a, unsigned flag, size_t count, const uint32_t *nodes)
{
    uint32_t set = 0;
    for (uint32_t id = 1; id < a->node_count; id++) {
        a->nodes[id].flags &= (uint16_t)~flag;
    }
    for (size_t i = 0; i < count; i++) {
        struct agent_node *node = agent_node_at(a, nodes[i]);
        if (node && !(node->flags & flag)) {
            node->flags |= (uint16_t)flag;
            set++;
        }
    }
    agent_mark_nodes(a, 1);
    return set;
}

static void on_verdict(struct agent *a, const Gradb__V1__WatchVerdict *m)
{
    if (!a->verdict_first || m->report < a->verdict_first || m->report > a->report_id) {
        return; /* of a moment that is over */
    }
    a->verdict_seen = m->report;
    if (m->stop && !a->verdict_stop) {
        a->verdict_stop = m->report;
        snprintf(a->verdict_text, sizeof(a->verdict_text), "%s", m->text);
    }
    if (m->report == a->verdict_for) {
        a->verdict_for = 0;
        pthread_cond_broadcast(&a->go);
    }
}

/* A stop to come outlives the stops before it: the debugger may let go of those at once. */
static void on_interrupt(struct agent *a, const Gradb__V1__Interrupt *m)
{
    if (m->step != 0) {
        a->interrupt_at = m->step > 0 ? m->step : 0;
    } else if (!a->stopped) {
        a->interrupt = true;
        a->interrupt_heard = agent_now_ns();
    }
}

static void drop_expected(struct agent *a)
{
    while (a->expected_count > 0) {
        free(a->expected[--a->expected_count]);
    }
    free(a->expected);
    a->expected = NULL;
    a->expected_not_finite = false;
}

static void on_expected(struct agent *a, const Gradb__V1__Expected *m)
{
    drop_expected(a);
    a->expected = m->n_parts ? calloc(m->n_parts, sizeof(*a->expected)) : NULL;
    for (size_t i = 0; a->expected && i < m->n_parts; i++) {
        a->expected[a->expected_count] = strdup(m->parts[i]);
        a->expected_count += a->expected[a->expected_count] != NULL;
    }
    a->expected_not_finite = m->not_finite;
    if (a->expected_count < m->n_parts) {
        agent_set_error(a, "out of memory for what the debugger waits for");
    }
}

bool agent_is_expected(const struct agent *a, const char *name)
{
    for (size_t i = 0; i < a->expected_count; i++) {
        if (strstr(name, a->expected[i])) {
            return true;
        }
    }
    return false;
}

static void on_seen(struct agent *a, uint64_t sequence)
{
    if (sequence > a->sync_seen && sequence <= a->sync_wanted) {
        a->sync_seen = sequence;
        pthread_cond_broadcast(&a->go);
    }
}

static bool apply(struct agent *a, agent_to *m)
{
    bool kept = false;
    switch (m->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_WATCH_PLAN:
        agent_watch_set(a, m);
        kept = true;
        break;
    case GRADB__V1__TO_TRAINER__MSG_INTERRUPT: on_interrupt(a, m->interrupt); break;
    case GRADB__V1__TO_TRAINER__MSG_BREAKPOINTS:
        a->break_count = flag_nodes(a, NODE_BREAK, m->breakpoints->n_nodes, m->breakpoints->nodes);
        break;
    case GRADB__V1__TO_TRAINER__MSG_KEEP_PREVIOUS:
        flag_nodes(a, NODE_KEEP, m->keep_previous->n_nodes, m->keep_previous->nodes);
        agent_keep_collect(a);
        break;
    case GRADB__V1__TO_TRAINER__MSG_CAPTURE:
        agent_capture_set(a, m->capture);
        flag_nodes(a, NODE_CAPTURE, m->capture->n_nodes, m->capture->nodes);
        break;
    case GRADB__V1__TO_TRAINER__MSG_WATCH_VERDICT: on_verdict(a, m->watch_verdict); break;
    case GRADB__V1__TO_TRAINER__MSG_GRAPH_SEEN: on_seen(a, m->graph_seen->sequence); break;
    case GRADB__V1__TO_TRAINER__MSG_EXPECTED: on_expected(a, m->expected); break;
    case GRADB__V1__TO_TRAINER__MSG_CHECKPOINT:
        atomic_store_explicit(&a->wants_checkpoint, 1, memory_order_relaxed);
        break;
    default: break;
    }
    agent_arm(a);
    if (a->keep_new) {
        pthread_cond_broadcast(&a->go); /* who stands tells the source */
    }
    return kept;
}

/* Plans and sets of nodes. */
static bool is_of_nodes(const agent_to *m)
{
    switch (m->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_WATCH_PLAN:
    case GRADB__V1__TO_TRAINER__MSG_BREAKPOINTS:
    case GRADB__V1__TO_TRAINER__MSG_KEEP_PREVIOUS:
    case GRADB__V1__TO_TRAINER__MSG_CAPTURE: return true;
    default: return false;
    }
}

bool agent_control(struct agent *a, agent_to *m)
{
    if (!a->passing || !is_of_nodes(m)) {
        return apply(a, m);
    }
    struct agent_later *later = malloc(sizeof(*later));
    if (!later) {
        agent_set_error(a, "out of memory for what the debugger wants");
        return false;
    }
    *later = (struct agent_later){.message = m};
    *a->later_end = later;
    a->later_end = &later->next;
    return true;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void drop_later(struct agent *a)
{
    while (a->later) {
        struct agent_later *next = a->later->next;
        gradb__v1__to_trainer__free_unpacked(a->later->message, NULL);
        free(a->later);
        a->later = next;
    }
    a->later_end = &a->later;
}

void agent_pass_begin(struct agent *a)
{
    a->passing = true;
}

void agent_pass_end(struct agent *a)
{
    a->passing = false;
    if (!agent_usable(a)) {
        return; /* forked inside the pass */
    }
    if (a->clear_later) {
        a->clear_later = false;
        struct agent_later *since = a->later;
        struct agent_later **end = since ? a->later_end : &a->later;
        a->later = NULL;
        agent_control_clear(a);
        a->later = since;
        a->later_end = end;
    }
    while (a->later) {
        struct agent_later *first = a->later;
        a->later = first->next;
        if (!apply(a, first->message)) {
            gradb__v1__to_trainer__free_unpacked(first->message, NULL);
        }
        free(first);
    }
    a->later_end = &a->later;
}

void agent_control_clear(struct agent *a)
{
    drop_expected(a);
    drop_later(a);
    a->clear_later = a->passing;
    if (a->passing) {
        return;
    }
    agent_watch_clear(a);
    if (a->break_count || a->capturing.count || a->keep_count || a->asked_keep_count) {
        for (uint32_t id = 1; id < a->node_count; id++) {
            a->nodes[id].flags &= NODE_OUTPUT_NEW | NODE_INPUTS_NEW | NODE_LASTS | NODE_LEFT_OUT;
        }
    }
    a->break_count = 0;
    agent_capture_clear(a);
    agent_mark_nodes(a, 1);
    agent_keep_collect(a);
}

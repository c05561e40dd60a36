// SPDX-License-Identifier: MIT
/*
 * Messages that change what the hooks look at. While watch plans are walked, with calls into the
 * program in between, messages that change plans and nodes wait in order until the walk is over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_capture.h"
#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_event.h"
#include "agent/agent_mark.h"
#include "agent/agent_metric.h"
#include "agent/agent_source.h"
#include "agent/agent_tensor.h"
#include "agent/agent_watch.h"
#include "agent/line/agent_line.h"
#include "base/grow.h"

/* Replaces the set of nodes that carry a flag; returns its size. With the lock. */
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
    if (!a->verdict.first || m->report < a->verdict.first || m->report > a->report_id) {
        return; /* belongs to a moment that is over */
    }
    a->verdict.seen = m->report;
    a->verdict.meant = a->verdict.meant && m->meant;
    if (m->stop && !a->verdict.stop) {
        a->verdict.stop = m->report;
        snprintf(a->verdict.text, sizeof(a->verdict.text), "%s", m->text);
    }
    if (m->report == a->verdict.awaited) {
        a->verdict.awaited = 0;
        pthread_cond_broadcast(&a->go);
    }
}

/* A requested stop survives earlier stops, which the debugger may resume immediately. */
static void on_interrupt(struct agent *a, const Gradb__V1__Interrupt *m)
{
    if (m->step != 0) {
        a->interrupt.at = m->step > 0 ? m->step : 0;
    } else if (!a->stopped) {
        a->interrupt.wanted = true;
        a->interrupt.heard = agent_now_ns();
    } else {
        agent_ask_interrupt(a);
    }
}

static void drop_expected(struct agent *a)
{
    while (a->expected.count > 0) {
        free(a->expected.names[--a->expected.count]);
    }
    free(a->expected.names);
    a->expected.names = NULL;
    a->expected.not_finite = false;
    POKE(a->expected.at_end, 0);
}

static void on_expected(struct agent *a, const Gradb__V1__Expected *m)
{
    drop_expected(a);
    a->expected.names = m->n_parts ? calloc(m->n_parts, sizeof(*a->expected.names)) : NULL;
    for (size_t i = 0; a->expected.names && i < m->n_parts; i++) {
        a->expected.names[a->expected.count] = strdup(m->parts[i]);
        a->expected.count += a->expected.names[a->expected.count] != NULL;
    }
    a->expected.not_finite = m->not_finite;
    POKE(a->expected.at_end, m->at_end);
    if (a->expected.count < m->n_parts) {
        agent_set_error(a, "out of memory for the nodes that the debugger waits for");
    }
}

static void on_seen(struct agent *a, uint64_t sequence)
{
    if (sequence > a->sync.seen && sequence <= a->sync.wanted) {
        a->sync.seen = sequence;
        pthread_cond_broadcast(&a->go);
    }
}

static bool apply_message(struct agent *a, agent_to *m)
{
    bool kept = false;
    switch (m->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_WATCH_PLAN:
        agent_watch_set(a, &m, 1);
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
    case GRADB__V1__TO_TRAINER__MSG_CHECKPOINT: POKE(a->wants_checkpoint, 1); break;
    case GRADB__V1__TO_TRAINER__MSG_EVENT_WISHES: agent_event_wishes(a, m->event_wishes); break;
    case GRADB__V1__TO_TRAINER__MSG_LINE_BREAKS: kept = agent_line_set(a, m); break;
    case GRADB__V1__TO_TRAINER__MSG_EVENT_VERDICT: agent_event_verdict(a, m->event_verdict); break;
    default: break;
    }
    agent_arm(a);
    if (a->kept.asked_new) {
        pthread_cond_broadcast(&a->go); /* the stopped thread informs the source */
    }
    return kept;
}

/* The messages about plans and sets of nodes. */
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

static bool is_plan(const agent_to *m)
{
    return m->msg_case == GRADB__V1__TO_TRAINER__MSG_WATCH_PLAN;
}

static void apply_later(struct agent *a)
{
    for (size_t i = 0, end; i < a->later_count; i = end) {
        agent_to **first = &a->later[i];
        end = i + 1;
        if (!is_plan(*first)) {
            if (!apply_message(a, *first)) {
                gradb__v1__to_trainer__free_unpacked(*first, NULL);
            }
            continue;
        }
        while (a->later[end - 1]->watch_plan->more && end < a->later_count &&
               is_plan(a->later[end])) {
            end++;
        }
        agent_watch_set(a, first, end - i);
        agent_arm(a);
    }
    a->later_count = 0;
}

bool agent_control(struct agent *a, agent_to *m)
{
    bool open = is_plan(m) && m->watch_plan->more;
    if (!is_of_nodes(m) || (!a->passing && !a->later_count && !open)) {
        return apply_message(a, m);
    }
    a->later_open = open;
    if (!gd_grow_list(&a->later, a->later_count, &a->later_cap, sizeof(*a->later))) {
        agent_set_error(a, "out of memory for a request of the debugger");
        return false;
    }
    a->later[a->later_count++] = m;
    if (!a->passing && !open) {
        apply_later(a);
    }
    return true;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void drop_later(struct agent *a)
{
    while (a->later_count > 0) {
        gradb__v1__to_trainer__free_unpacked(a->later[--a->later_count], NULL);
    }
    a->later_open = false;
}

void agent_pass_begin(struct agent *a)
{
    a->passing = true;
}

void agent_pass_end(struct agent *a)
{
    a->passing = false;
    if (!agent_usable(a)) {
        return; /* forked during the pass */
    }
    if (a->clear_later) {
        size_t since = a->later_count;
        bool open = a->later_open;
        a->clear_later = false;
        a->later_count = 0;
        agent_control_clear(a);
        a->later_count = since;
        a->later_open = open;
    }
    if (!a->later_open) {
        apply_later(a);
    }
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
    agent_metric_clear(a);
    if (a->break_count || a->capturing.count || a->kept.count || a->kept.asked_count) {
        for (uint32_t id = 1; id < a->node_count; id++) {
            a->nodes[id].flags &= NODE_OUTPUT_NEW | NODE_INPUTS_NEW | NODE_ATTRS_NEW | NODE_LASTS |
                                  NODE_LEFT_OUT | NODE_MOMENTARY;
        }
    }
    a->break_count = 0;
    agent_capture_clear(a);
    agent_mark_nodes(a, 1);
    agent_keep_collect(a);
}

void agent_disarm(struct agent *a)
{
    a->run = (struct agent_run){0};
    a->interrupt.wanted = false;
    a->interrupt.at = 0;
    a->stop_pending = false;
    agent_control_clear(a);
    agent_event_wishes(a, NULL);
    agent_line_clear(a);
    a->verdict.first = a->verdict.awaited = a->verdict.stop = 0;
    agent_arm(a);
}

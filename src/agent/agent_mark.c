// SPDX-License-Identifier: MIT
/* What the hooks must look at, computed whenever a request changes, so that a hook tests one
 * word. */
#include <string.h>

#include "agent/agent_mark.h"

#include "agent/agent_event.h"
#include "agent/line/agent_line.h"

bool agent_is_expected(const struct agent *a, const char *name)
{
    for (size_t i = 0; i < a->expected.count; i++) {
        if (strstr(name, a->expected.names[i])) {
            return true;
        }
    }
    return false;
}

bool agent_captures(const struct agent *a, const struct agent_node *node)
{
    return a->capturing.active && !(node->flags & NODE_LASTS) &&
           (a->capturing.all || node->flags & NODE_CAPTURE);
}

/* Called after the change: a thread that sees the new number must also see the change. */
static void wants_changed(struct agent *a)
{
    __atomic_fetch_add(&a->pub.changes, 1, __ATOMIC_RELEASE);
}

void agent_arm(struct agent *a)
{
    bool up = a->link == LINK_UP;
    bool any = up && (a->interrupt.wanted || a->run.kind == RUN_NEXT || a->run.kind == RUN_TO ||
                      a->run.kind == RUN_FINISH);
    bool nodes =
        any || (up && (a->break_count || a->expected.count || a->expected.not_finite ||
                       a->exact_items || a->seen_items || a->metric_nodes || a->capturing.active));
    bool steps = nodes || a->hold_pending || (up && agent_event_of_steps(a)) || a->kept.asked_new ||
                 a->capturing.held || agent_line_is_new(a) ||
                 (up && (a->stop_pending || a->end_items || a->kept.count || a->kept.asked_count ||
                         a->interrupt.at || a->capturing.last > 0));
    bool changed = any != a->hears_all || nodes != a->sees_nodes;
    a->hears_all = any;
    if (nodes != a->sees_nodes) {
        /* A running thread notices a little later, perhaps at the end of this step. */
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

/* Whether it was added since gradb_sync and the debugger waits for it. */
static bool is_awaited(const struct agent *a, uint32_t id)
{
    return a->expected.added && id >= a->sync.nodes && agent_is_expected(a, a->nodes[id].name);
}

static void compute_marks(struct agent *a, uint32_t id)
{
    const struct agent_node *node = &a->nodes[id];
    bool value = node->flags & (NODE_CAPTURE_WATCH | NODE_WATCH_EXACT | NODE_METRIC) ||
                 agent_captures(a, node);
    unsigned marks = value || node->flags & NODE_BREAK ? MARK_SLOW | MARK_RUN : 0;
    marks |= node->flags & NODE_WATCH_SEEN || is_awaited(a, id) ? MARK_RUN : 0;
    marks |= value ? MARK_VALUE : 0;
    marks |= a->expected.not_finite && id >= a->sync.nodes ? MARK_NOT_FINITE : 0;
    marks |= node->flags & NODE_WATCH_END ? MARK_END : 0;
    POKE(a->passes[id].marked, (unsigned char)marks);
}

void agent_mark_node(struct agent *a, uint32_t id)
{
    compute_marks(a, id);
    wants_changed(a);
}

void agent_mark_nodes(struct agent *a, uint32_t first)
{
    for (uint32_t id = first; id < a->node_count; id++) {
        compute_marks(a, id);
    }
    wants_changed(a);
}

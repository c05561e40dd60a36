// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent_impl.h"

#define REPORT_VALUES 256 /* values of one message; more go into further ones */

/* ---- the set of plans ----------------------------------------------------------------------- */

static void plan_free(struct agent_watch_plan *plan)
{
    gradb__v1__to_trainer__free_unpacked(plan->message, NULL);
    free(plan->items);
    free(plan);
}

/* The items of every node, in the order of the plans, so that one plan's stand together. */
static void rebuild(struct agent *a)
{
    for (uint32_t id = 1; id < a->node_count; id++) {
        a->nodes[id].watch = NULL;
        a->nodes[id].flags &= (uint8_t)~NODE_KEEP_WATCH;
    }
    a->exact_items = a->end_items = 0;
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        bool exact = plan->plan->when == GRADB__V1__WATCH_PLAN__WHEN__BEFORE_NEXT_NODE;
        for (size_t i = plan->item_count; i-- > 0;) {
            struct agent_watch_item *item = &plan->items[i];
            struct agent_node *node = agent_node_at(a, item->node);
            if (!node) {
                continue;
            }
            if (exact) {
                item->next_of_node = node->watch;
                node->watch = item;
                a->exact_items++;
            } else {
                a->end_items++;
            }
            const Gradb__V1__StatsOptions *options = item->message->options;
            if (options && options->against_previous) {
                node->flags |= NODE_KEEP_WATCH;
            }
        }
    }
    agent_keep_collect(a);
    agent_arm(a);
}

static struct agent_watch_plan *plan_create(agent_to *message)
{
    const Gradb__V1__WatchPlan *from = message->watch_plan;
    struct agent_watch_plan *plan = calloc(1, sizeof(*plan));
    struct agent_watch_item *items = calloc(from->n_items + 1, sizeof(*items));
    if (!plan || !items) {
        free(plan);
        free(items);
        return NULL;
    }
    plan->message = message;
    plan->plan = from;
    plan->items = items;
    plan->item_count = from->n_items;
    for (size_t i = 0; i < from->n_items; i++) {
        items[i].plan = plan;
        items[i].message = from->items[i];
        items[i].node = from->items[i]->node;
        items[i].slot = from->items[i]->slot;
    }
    return plan;
}

void agent_watch_set(struct agent *a, agent_to *message)
{
    uint32_t id = message->watch_plan->id;
    for (struct agent_watch_plan **p = &a->plans; *p; p = &(*p)->next) {
        if ((*p)->plan->id == id) {
            struct agent_watch_plan *old = *p;
            *p = old->next;
            plan_free(old);
            break;
        }
    }
    struct agent_watch_plan *plan = NULL;
    if (message->watch_plan->n_items > 0) {
        plan = plan_create(message);
        if (!plan) {
            agent_set_error(a, "out of memory for a watch plan");
        }
    }
    if (plan) {
        plan->next = a->plans;
        a->plans = plan;
    } else {
        gradb__v1__to_trainer__free_unpacked(message, NULL);
    }
    rebuild(a);
}

void agent_watch_clear(struct agent *a)
{
    if (!a->plans) {
        return;
    }
    while (a->plans) {
        struct agent_watch_plan *next = a->plans->next;
        plan_free(a->plans);
        a->plans = next;
    }
    rebuild(a);
}

/* ---- triggers ------------------------------------------------------------------------------- */

static double share(uint64_t part, uint64_t count)
{
    return count ? (double)part / (double)count : NAN;
}

static double field_value(const Gradb__V1__Stats *s, Gradb__V1__StatField field)
{
    double in_range = s->n_in_range ? share(s->in_range[0], s->count) : NAN;
    switch (field) {
    case GRADB__V1__STAT_FIELD__STAT_NAN: return (double)s->nan;
    case GRADB__V1__STAT_FIELD__STAT_INF: return (double)(s->pos_inf + s->neg_inf);
    case GRADB__V1__STAT_FIELD__STAT_NON_FINITE: return (double)(s->nan + s->pos_inf + s->neg_inf);
    case GRADB__V1__STAT_FIELD__STAT_ZERO: return (double)s->zero;
    case GRADB__V1__STAT_FIELD__STAT_DENORMAL: return (double)s->denormal;
    case GRADB__V1__STAT_FIELD__STAT_MIN: return s->min;
    case GRADB__V1__STAT_FIELD__STAT_MAX: return s->max;
    case GRADB__V1__STAT_FIELD__STAT_MAX_ABS: return fmax(fabs(s->min), fabs(s->max));
    case GRADB__V1__STAT_FIELD__STAT_MEAN: return s->mean;
    case GRADB__V1__STAT_FIELD__STAT_ABS_MEAN: return s->abs_mean;
    case GRADB__V1__STAT_FIELD__STAT_STD: return s->std;
    case GRADB__V1__STAT_FIELD__STAT_SUM_SQ: return s->sum_sq;
    case GRADB__V1__STAT_FIELD__STAT_ZERO_SHARE: return share(s->zero, s->count);
    case GRADB__V1__STAT_FIELD__STAT_IN_RANGE_SHARE: return in_range;
    case GRADB__V1__STAT_FIELD__STAT_OUT_RANGE_SHARE: return 1 - in_range;
    case GRADB__V1__STAT_FIELD__STAT_MEAN_ABS_DELTA:
        return s->difference ? s->difference->mean_abs_delta : NAN;
    case GRADB__V1__STAT_FIELD__STAT_MAX_ABS_DELTA:
        return s->difference ? s->difference->max_abs_delta : NAN;
    case GRADB__V1__STAT_FIELD__STAT_MISMATCH:
        return s->difference ? (double)s->difference->mismatch : NAN;
    default: return NAN;
    }
}

static bool trigger_holds(const Gradb__V1__Trigger *trigger, const Gradb__V1__Stats *stats)
{
    double x = field_value(stats, trigger->field);
    if (isnan(x)) {
        return false;
    }
    switch (trigger->op) {
    case GRADB__V1__COMPARISON__GT: return x > trigger->value;
    case GRADB__V1__COMPARISON__GE: return x >= trigger->value;
    case GRADB__V1__COMPARISON__LT: return x < trigger->value;
    case GRADB__V1__COMPARISON__LE: return x <= trigger->value;
    case GRADB__V1__COMPARISON__EQ: return !(x < trigger->value || x > trigger->value);
    case GRADB__V1__COMPARISON__NE: return x < trigger->value || x > trigger->value;
    default: return false;
    }
}

/* What keeps a condition from being checked is always worth reporting. */
static bool worth_reporting(const Gradb__V1__WatchItem *item, const Gradb__V1__TensorStats *value)
{
    if (item->n_report_if == 0 || !value->stats ||
        (item->options && item->options->against_previous && !value->stats->difference)) {
        return true;
    }
    for (size_t i = 0; i < item->n_report_if; i++) {
        if (trigger_holds(item->report_if[i], value->stats)) {
            return true;
        }
    }
    return false;
}

/* ---- reports -------------------------------------------------------------------------------- */

/* One moment at which plans are looked at: everything is packed first, then one wait. */
struct moment {
    struct agent *a;
    struct gd_arena arena;
    const struct agent_watch_plan *plan; /* of the values collected so far */
    Gradb__V1__TensorStats *values[REPORT_VALUES];
    size_t count;
    uint64_t cost_ns;
    uint64_t wait_for; /* the last report that holds; 0 none */
};

static void enqueue(struct agent *a, const agent_from *from)
{
    size_t len = gradb__v1__from_trainer__get_packed_size(from);
    struct agent_packet *packet = NULL;
    if (a->reports_bytes + len <= AGENT_MAX_REPORTS) {
        packet = malloc(sizeof(*packet) + len);
    }
    if (!packet) {
        agent_set_error(a, "a watch report was dropped: the debugger does not keep up");
        return;
    }
    packet->next = NULL;
    packet->len = len;
    gradb__v1__from_trainer__pack(from, packet->data);
    *a->reports_end = packet;
    a->reports_end = &packet->next;
    a->reports_bytes += len;
}

static void flush(struct moment *m, bool more)
{
    struct agent *a = m->a;
    if (m->count > 0) {
        Gradb__V1__WatchReport report = GRADB__V1__WATCH_REPORT__INIT;
        report.id = ++a->report_id;
        report.plan = m->plan->plan->id;
        report.step = atomic_load_explicit(&a->step, memory_order_relaxed);
        report.values = m->values;
        report.n_values = m->count;
        report.holding = m->plan->plan->hold;
        report.more = more;
        report.cost_ns = m->cost_ns;
        agent_from from = GRADB__V1__FROM_TRAINER__INIT;
        from.msg_case = GRADB__V1__FROM_TRAINER__MSG_WATCH_REPORT;
        from.watch_report = &report;
        uint64_t before = a->reports_bytes;
        enqueue(a, &from);
        if (report.holding && a->reports_bytes > before) {
            m->wait_for = report.id;
        }
    }
    m->count = 0;
    m->cost_ns = 0;
    gd_arena_deinit(&m->arena);
    gd_arena_init(&m->arena, 0);
}

static void look(struct moment *m, const struct agent_watch_item *item)
{
    if (m->plan != item->plan) {
        flush(m, false);
        m->plan = item->plan;
    } else if (m->count == REPORT_VALUES) {
        flush(m, true);
    }
    Gradb__V1__TensorStats *value = gd_arena_alloc(&m->arena, sizeof(*value));
    if (!value) {
        agent_set_error(m->a, "out of memory for a watch report");
        return;
    }
    agent_stats_fill(m->a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT,
                     item->message->options, &m->arena, value);
    m->cost_ns += value->cost_ns;
    if (worth_reporting(item->message, value)) {
        m->values[m->count++] = value;
    }
}

static bool is_due(const struct agent *a, const struct agent_watch_plan *plan)
{
    int64_t every = plan->plan->every ? plan->plan->every : 1;
    return atomic_load_explicit(&a->step, memory_order_relaxed) % every == 0;
}

/* After the wait the plans may be others: nothing of the moment is touched any more. True when the
 * verdict was to stand. */
static bool await_verdict(struct agent *a, uint64_t report, gradb_node node, bool at_step_end)
{
    a->verdict_stop = false;
    a->verdict_text[0] = '\0';
    a->verdict_for = report;
    while (a->verdict_for == report && a->link == LINK_UP) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    a->verdict_for = 0;
    if (!a->verdict_stop || a->link != LINK_UP) {
        return false;
    }
    char text[sizeof(a->verdict_text)];
    memcpy(text, a->verdict_text, sizeof(text));
    agent_stand(a, GRADB__V1__STOP_REASON__STOP_WATCH, node, at_step_end, text, report);
    return true;
}

static bool finish(struct moment *m, gradb_node node, bool at_step_end)
{
    flush(m, false);
    gd_arena_deinit(&m->arena);
    if (m->a->reports) {
        agent_wake(m->a);
    }
    return m->wait_for && await_verdict(m->a, m->wait_for, node, at_step_end);
}

bool agent_watch_node(struct agent *a, gradb_node id)
{
    struct moment m = {.a = a};
    gd_arena_init(&m.arena, 0);
    for (struct agent_watch_item *i = a->nodes[id].watch; i; i = i->next_of_node) {
        if (is_due(a, i->plan)) {
            look(&m, i);
        }
    }
    return finish(&m, id, false);
}

bool agent_watch_step_end(struct agent *a)
{
    struct moment m = {.a = a};
    gd_arena_init(&m.arena, 0);
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        if (plan->plan->when != GRADB__V1__WATCH_PLAN__WHEN__STEP_END || !is_due(a, plan)) {
            continue;
        }
        for (size_t i = 0; i < plan->item_count; i++) {
            if (agent_node_at(a, plan->items[i].node)) {
                look(&m, &plan->items[i]);
            }
        }
    }
    return finish(&m, 0, true);
}

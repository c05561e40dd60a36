// SPDX-License-Identifier: MIT
/* The set of watch plans, and the items that each node has of them. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_mark.h"
#include "agent/agent_tensor.h"
#include "agent/agent_watch.h"

#define MAX_TWINS 32 /* items of a node compared with each new one */

/* ---- what an item asks for ------------------------------------------------------------------- */

bool agent_item_is_scalar(const struct agent_watch_item *item)
{
    return item->message->scalar[0] != '\0';
}

bool agent_item_wants_previous(const struct agent_watch_item *item)
{
    return item->message->options && item->message->options->against_previous;
}

uint32_t agent_item_dead_steps(const struct agent_watch_item *item)
{
    return item->message->options ? item->message->options->dead_steps : 0;
}

bool agent_item_wants_age(const struct agent_watch_item *item)
{
    for (size_t i = 0; i < item->message->n_report_if; i++) {
        if (item->message->report_if[i]->field == GRADB__V1__STAT_FIELD__STAT_AGE) {
            return true;
        }
    }
    return item->message->n_report_if == 0;
}

bool agent_item_is_of_elements(const struct agent_watch_item *item)
{
    return !agent_item_wants_previous(item) && agent_item_dead_steps(item) == 0;
}

/* ---- the set of plans ------------------------------------------------------------------------ */

static void plan_free(struct agent_watch_plan *plan)
{
    for (size_t i = 0; i < plan->item_count; i++) {
        gd_units_destroy(plan->items[i].units);
        free(plan->items[i].shared);
        free(plan->items[i].seen);
        free(plan->items[i].early);
    }
    gradb__v1__to_trainer__free_unpacked(plan->message, NULL);
    gd_buf_deinit(&plan->record);
    free(plan->items);
    free(plan);
}

/* Joins the node's items that want the same statistics at the same moment. */
static void find_leader(struct agent_watch_item *item)
{
    struct agent_watch_item *i = item->next_of_node;
    for (int n = 0; i && n < MAX_TWINS; i = i->next_of_node, n++) {
        if (i->slot == item->slot && i->plan->exact == item->plan->exact &&
            agent_options_equal(i->message->options, item->message->options)) {
            i->leader = i->leader ? i->leader : i;
            item->leader = i->leader;
            return;
        }
    }
}

enum { COUNT_EXACT = 1, COUNT_SEEN = 2, COUNT_END = 4 };
enum {
    FLAGS =
        NODE_KEEP_WATCH | NODE_CAPTURE_WATCH | NODE_WATCH_EXACT | NODE_WATCH_SEEN | NODE_WATCH_END
};

/* Updates the counts that include the item. */
static void count_item(struct agent *a, struct agent_watch_item *item, unsigned counts)
{
    a->exact_items -= (item->counted & COUNT_EXACT) != 0;
    a->seen_items -= (item->counted & COUNT_SEEN) != 0;
    a->end_items -= (item->counted & COUNT_END) != 0;
    a->exact_items += (counts & COUNT_EXACT) != 0;
    a->seen_items += (counts & COUNT_SEEN) != 0;
    a->end_items += (counts & COUNT_END) != 0;
    item->counted = (unsigned char)counts;
}

/* Links it at the head of the node's items. Returns the counts that now include it. */
static unsigned link_node_item(struct agent *a, struct agent_watch_item *item)
{
    struct agent_node *node = agent_node_at(a, item->node);
    unsigned counts = 0;
    if (!node) {
        return 0;
    }
    item->next_of_node = node->watch;
    node->watch = item;
    find_leader(item);
    node->flags |= item->plan->exact ? NODE_WATCH_EXACT : NODE_WATCH_END;
    if (item->plan->exact) {
        counts = COUNT_EXACT;
    } else if (node->phase != 0) {
        /* Values that do not outlive their node are copied until the end of the step. */
        bool fleeting = !(node->flags & NODE_LASTS) && item->slot < node->slot_count &&
                        !node->slots[item->slot].bound;
        bool aged = agent_item_wants_age(item);
        node->flags |= fleeting ? NODE_CAPTURE_WATCH : 0;
        node->flags |= aged ? NODE_WATCH_SEEN : 0;
        counts = fleeting || aged ? COUNT_SEEN : 0;
    }
    if (agent_item_wants_previous(item)) {
        node->flags |= NODE_KEEP_WATCH;
    }
    return counts;
}

static void link_item(struct agent *a, struct agent_watch_item *item)
{
    unsigned counts = !item->plan->exact || item->plan->plan->record ? COUNT_END : 0;
    item->next_of_node = NULL;
    item->leader = NULL;
    if (agent_item_is_scalar(item)) {
        item->next_of_node = a->scalar_items;
        a->scalar_items = item;
    } else {
        counts |= link_node_item(a, item);
    }
    count_item(a, item, counts);
}

/* Rebuilds every node's list, so that the items of each plan are adjacent and in its order. */
static void rebuild_lists(struct agent *a)
{
    bool kept = false;
    for (uint32_t id = 1; id < a->node_count; id++) {
        struct agent_node *node = &a->nodes[id];
        kept = kept || node->flags & NODE_KEEP_WATCH;
        node->watch = NULL;
        node->flags &= (uint16_t)~FLAGS;
    }
    a->exact_items = a->end_items = a->seen_items = 0;
    a->scalar_items = NULL;
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        for (size_t i = plan->item_count; i-- > 0;) {
            plan->items[i].counted = 0;
            link_item(a, &plan->items[i]);
            kept = kept || agent_item_wants_previous(&plan->items[i]);
        }
    }
    if (kept) {
        agent_keep_collect(a);
    }
    agent_mark_nodes(a, 1);
    agent_arm(a);
}

/* ---- one plan replaces another ----------------------------------------------------------------
 */

/* Rebuilds the counts and leaders of one node's items, keeping their order. */
static void relink_node(struct agent *a, uint32_t id)
{
    struct agent_node *node = agent_node_at(a, id);
    struct agent_watch_item *turned = NULL;
    if (!node) {
        return;
    }
    for (struct agent_watch_item *i = node->watch, *next; i; i = next) {
        next = i->next_of_node;
        i->next_of_node = turned;
        turned = i;
    }
    node->watch = NULL;
    node->flags &= (uint16_t)~FLAGS;
    for (struct agent_watch_item *i = turned, *next; i; i = next) {
        next = i->next_of_node;
        link_item(a, i);
    }
    agent_mark_node(a, id);
}

static void relink_nodes_of(struct agent *a, const struct agent_watch_plan *plan)
{
    for (size_t i = 0; plan && i < plan->item_count; i++) {
        if (i == 0 || plan->items[i].node != plan->items[i - 1].node) {
            relink_node(a, plan->items[i].node);
        }
    }
}

static void take_out(struct agent *a, struct agent_watch_plan *plan)
{
    for (size_t i = 0; plan && i < plan->item_count; i++) {
        struct agent_node *node = agent_node_at(a, plan->items[i].node);
        struct agent_watch_item **at = node ? &node->watch : NULL;
        while (at && *at) {
            if ((*at)->plan == plan) {
                *at = (*at)->next_of_node;
            } else {
                at = &(*at)->next_of_node;
            }
        }
        count_item(a, &plan->items[i], 0);
    }
}

/* Later plans come first; the items of each keep its order. */
static void put_in(struct agent *a, struct agent_watch_plan *plan)
{
    for (size_t i = plan ? plan->item_count : 0; i-- > 0;) {
        struct agent_watch_item *item = &plan->items[i];
        struct agent_node *node = agent_node_at(a, item->node);
        struct agent_watch_item **at = node ? &node->watch : NULL;
        while (at && *at && (*at)->plan->place > plan->place) {
            at = &(*at)->next_of_node;
        }
        if (at) {
            item->next_of_node = *at;
            *at = item;
        } else {
            link_item(a, item);
        }
    }
}

static bool wants_more(const struct agent_watch_plan *plan,
                       bool (*wants)(const struct agent_watch_item *item))
{
    for (size_t i = 0; plan && i < plan->item_count; i++) {
        if (wants(&plan->items[i])) {
            return true;
        }
    }
    return false;
}

/* A growing graph sends plans as fast as nodes appear, so the cost depends on the plan, not on the
 * size of the graph. Either may be NULL. */
static void replace_plan(struct agent *a, struct agent_watch_plan *old,
                         struct agent_watch_plan *plan)
{
    bool kept =
        wants_more(old, agent_item_wants_previous) || wants_more(plan, agent_item_wants_previous);
    take_out(a, old);
    put_in(a, plan);
    relink_nodes_of(a, old);
    relink_nodes_of(a, plan);
    if (kept) {
        agent_keep_collect(a);
    }
    agent_arm(a);
}

static bool counts_not_finite(Gradb__V1__StatField field)
{
    switch (field) {
    case GRADB__V1__STAT_FIELD__STAT_NAN:
    case GRADB__V1__STAT_FIELD__STAT_INF:
    case GRADB__V1__STAT_FIELD__STAT_POS_INF:
    case GRADB__V1__STAT_FIELD__STAT_NEG_INF:
    case GRADB__V1__STAT_FIELD__STAT_NON_FINITE: return true;
    default: return false;
    }
}

/* Whether it is reported for non-finite elements, and for nothing else. */
static bool seeks_not_finite(const struct agent_watch_item *item)
{
    static const struct agent_look finite = {.code = -1};
    const Gradb__V1__WatchItem *m = item->message;
    if (agent_item_is_scalar(item) || agent_item_wants_previous(item) ||
        agent_item_dead_steps(item) > 0) {
        return false;
    }
    for (size_t i = 0; i < m->n_report_if; i++) {
        if (!counts_not_finite(m->report_if[i]->field)) {
            return false;
        }
    }
    return !agent_worth_reporting(item, &finite, 0);
}

static struct agent_watch_plan *plan_create(struct agent *a, agent_to *message)
{
    const Gradb__V1__WatchPlan *from = message->watch_plan;
    struct agent_watch_plan *plan = calloc(1, sizeof(*plan));
    struct agent_watch_item *items = calloc(from->n_items, sizeof(*items));
    if (!plan || !items) {
        free(plan);
        free(items);
        return NULL;
    }
    plan->message = message;
    plan->plan = from;
    plan->exact = from->when == GRADB__V1__WATCH_PLAN__WHEN__BEFORE_NEXT_NODE;
    plan->serial = ++a->plan_serial;
    plan->since = PEEK(a->step) + (PEEK(a->in_step) != 0);
    plan->items = items;
    plan->item_count = from->n_items;
    gd_buf_init(&plan->record, AGENT_MAX_REPORTS / 2);
    for (size_t i = 0; i < from->n_items; i++) {
        items[i].plan = plan;
        items[i].message = from->items[i];
        items[i].node = agent_item_is_scalar(&items[i]) ? 0 : from->items[i]->node;
        items[i].slot = agent_item_is_scalar(&items[i]) ? 0 : from->items[i]->slot;
        items[i].recorded_step = -1;
        items[i].seeks_not_finite = seeks_not_finite(&items[i]);
        items[i].only_not_finite = items[i].seeks_not_finite && !from->record;
    }
    return plan;
}

/* The item of a plan that leaves whose place a new one takes: in the plan of the same number, or in
 * another one. NULL: none. */
static struct agent_watch_item *old_item(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_node *node = agent_node_at(a, item->node);
    struct agent_watch_item *i = agent_item_is_scalar(item) ? a->scalar_items
                                 : node                     ? node->watch
                                                            : NULL;
    struct agent_watch_item *elsewhere = NULL;
    for (; i; i = i->next_of_node) {
        if (!i->plan->leaves || i->slot != item->slot || i->plan->exact != item->plan->exact ||
            (agent_item_is_scalar(item) &&
             strcmp(i->message->scalar, item->message->scalar) != 0)) {
            continue;
        }
        if (i->plan->plan->id == item->plan->plan->id) {
            return i;
        }
        bool same = agent_options_equal(i->message->options, item->message->options);
        elsewhere = same ? i : elsewhere;
    }
    return elsewhere;
}

/* The nodes' lists are still those of the old plans. */
static void inherit_item(struct agent *a, struct agent_watch_item *item)
{
    struct agent_watch_item *before = old_item(a, item);
    if (!before) {
        return;
    }
    agent_watch_inherit(item, before);
    item->recorded_step = before->recorded_step;
    item->scalar = before->scalar;
    item->scalar_step = before->scalar_step;
    item->scalar_due = before->scalar_due;
    item->previous = before->previous;
    item->previous_step = before->previous_step;
    if (agent_item_dead_steps(item) > 0) {
        item->units = before->units;
        before->units = NULL;
    }
}

/* Where the plan of that number is linked; *result is NULL if there is none. */
static struct agent_watch_plan **find_plan(struct agent *a, uint32_t id)
{
    struct agent_watch_plan **at = &a->plans;
    while (*at && (*at)->plan->id != id) {
        at = &(*at)->next;
    }
    return at;
}

/* The new plan with what the old ones have learned; NULL: the message removes one, or there is no
 * memory. */
static struct agent_watch_plan *prepare_plan(struct agent *a, agent_to *message)
{
    if (message->watch_plan->n_items == 0) {
        return NULL;
    }
    struct agent_watch_plan *plan = plan_create(a, message);
    if (!plan) {
        agent_set_error(a, "out of memory for a watch plan");
        return NULL;
    }
    for (size_t i = 0; i < plan->item_count; i++) {
        inherit_item(a, &plan->items[i]);
    }
    return plan;
}

/* What was recorded of this step is sent at its end; if no plan of that number follows, now. */
static void pass_record(struct agent *a, struct agent_watch_plan *old,
                        struct agent_watch_plan *plan)
{
    if (!plan) {
        if (old->step == PEEK(a->step)) {
            agent_record_send(a, old);
        }
        return;
    }
    struct gd_buf empty = plan->record;
    plan->record = old->record;
    old->record = empty;
    plan->step = old->step;
    plan->step_ns = old->step_ns;
    plan->last_ns = old->last_ns;
}

/* plan NULL: removes. */
static void exchange_plan(struct agent *a, agent_to *message, struct agent_watch_plan *plan)
{
    struct agent_watch_plan **at = find_plan(a, message->watch_plan->id), *old = *at;
    struct agent_watch_plan *next = old ? old->next : NULL;
    a->plan_changes++;
    if (old) {
        pass_record(a, old, plan);
    }
    if (plan) {
        plan->next = next;
        plan->place = old ? old->place : plan->serial;
        *at = plan;
    } else {
        *at = next;
        gradb__v1__to_trainer__free_unpacked(message, NULL);
    }
    bool scalars = wants_more(old, agent_item_is_scalar) || wants_more(plan, agent_item_is_scalar);
    if (!scalars) {
        replace_plan(a, old, plan);
    }
    if (old) {
        plan_free(old);
    }
    if (scalars) {
        rebuild_lists(a);
    }
}

void agent_watch_set(struct agent *a, agent_to **messages, size_t count)
{
    struct agent_watch_plan *one, **plans = count == 1 ? &one : malloc(count * sizeof(*plans));
    if (!plans) { /* one after the other is better than not at all */
        for (size_t i = 0; i < count; i++) {
            agent_watch_set(a, &messages[i], 1);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct agent_watch_plan *old = *find_plan(a, messages[i]->watch_plan->id);
        if (old) {
            old->leaves = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        plans[i] = prepare_plan(a, messages[i]);
    }
    for (size_t i = 0; i < count; i++) {
        exchange_plan(a, messages[i], plans[i]);
    }
    if (plans != &one) {
        free(plans);
    }
}

void agent_watch_clear(struct agent *a)
{
    if (!a->plans) {
        return;
    }
    a->plan_changes++;
    while (a->plans) {
        struct agent_watch_plan *next = a->plans->next;
        plan_free(a->plans);
        a->plans = next;
    }
    rebuild_lists(a);
}

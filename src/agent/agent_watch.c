// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_source.h"
#include "base/workers.h"

#define CODE(name)    ((int)GRADB__V1__REQUEST_ERROR__CODE__##name)
#define MAX_TWINS     32                /* items of a node that are compared with one */
#define GROUP         32                /* items that threads share */
#define WORTH_SHARING UINT64_C(500000)  /* nanoseconds of a plan's step */
#define WORTH_WAKING  ((size_t)1 << 20) /* bytes of reports */
#define STEP(a)       atomic_load_explicit(&(a)->step, memory_order_relaxed)

/* ---- the set of plans ----------------------------------------------------------------------- */

static void plan_free(struct agent_watch_plan *plan)
{
    for (size_t i = 0; i < plan->item_count; i++) {
        gd_units_destroy(plan->items[i].units);
        free(plan->items[i].shared);
        free(plan->items[i].seen);
    }
    gradb__v1__to_trainer__free_unpacked(plan->message, NULL);
    gd_buf_deinit(&plan->record);
    free(plan->items);
    free(plan);
}

static bool is_scalar(const struct agent_watch_item *item)
{
    return item->message->scalar[0] != '\0';
}

static bool wants_previous(const struct agent_watch_item *item)
{
    return item->message->options && item->message->options->against_previous;
}

static uint32_t dead_steps(const struct agent_watch_item *item)
{
    return item->message->options ? item->message->options->dead_steps : 0;
}

/* The item's report depends on how old the value is. */
static bool wants_age(const struct agent_watch_item *item)
{
    for (size_t i = 0; i < item->message->n_report_if; i++) {
        if (item->message->report_if[i]->field == GRADB__V1__STAT_FIELD__STAT_AGE) {
            return true;
        }
    }
    return item->message->n_report_if == 0;
}

/* Joins the items of the node that are looked at in the same moment for the same statistics. */
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

static void link_node_item(struct agent *a, struct agent_watch_item *item)
{
    struct agent_node *node = agent_node_at(a, item->node);
    if (!node) {
        return;
    }
    item->next_of_node = node->watch;
    node->watch = item;
    find_leader(item);
    if (item->plan->exact) {
        node->flags |= NODE_WATCH_EXACT;
        a->exact_items++;
    } else if (node->phase != 0) {
        /* Values that do not outlive their node are copied for the step's end. */
        bool fleeting = !(node->flags & NODE_LASTS) && item->slot < node->slot_count &&
                        !node->slots[item->slot].bound;
        bool aged = wants_age(item);
        node->flags |= fleeting ? NODE_CAPTURE_WATCH : 0;
        node->flags |= aged ? NODE_WATCH_SEEN : 0;
        a->seen_items += fleeting || aged;
    }
    if (wants_previous(item)) {
        node->flags |= NODE_KEEP_WATCH;
    }
}

static void link_item(struct agent *a, struct agent_watch_item *item)
{
    item->next_of_node = NULL;
    item->leader = NULL;
    item->twin = NULL;
    if (is_scalar(item)) {
        item->next_of_node = a->scalar_items;
        a->scalar_items = item;
    } else {
        link_node_item(a, item);
    }
    a->end_items += !item->plan->exact || item->plan->plan->record;
}

/* The items of every node, so that one plan's stand together and in its order. */
static void rebuild(struct agent *a)
{
    const unsigned mine = NODE_KEEP_WATCH | NODE_CAPTURE_WATCH | NODE_WATCH_EXACT | NODE_WATCH_SEEN;
    bool kept = false;
    for (uint32_t id = 1; id < a->node_count; id++) {
        struct agent_node *node = &a->nodes[id];
        kept = kept || node->flags & NODE_KEEP_WATCH;
        node->watch = NULL;
        node->flags &= (uint16_t)~mine;
    }
    a->exact_items = a->end_items = a->seen_items = 0;
    a->scalar_items = NULL;
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        for (size_t i = plan->item_count; i-- > 0;) {
            link_item(a, &plan->items[i]);
            kept = kept || wants_previous(&plan->items[i]);
        }
    }
    if (kept) {
        agent_keep_collect(a);
    }
    agent_mark_nodes(a);
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

/* Whether all that the item asks of a value is how many elements are not finite, and none of them
 * is not worth telling. */
static bool is_only_not_finite(const struct agent_watch_item *item)
{
    static const struct agent_look finite = {.code = -1};
    const Gradb__V1__WatchItem *m = item->message;
    if (is_scalar(item) || wants_previous(item) || dead_steps(item) > 0 ||
        item->plan->plan->record) {
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
    plan->since = STEP(a) + (atomic_load_explicit(&a->in_step, memory_order_relaxed) != 0);
    plan->items = items;
    plan->item_count = from->n_items;
    gd_buf_init(&plan->record, AGENT_MAX_REPORTS / 2);
    for (size_t i = 0; i < from->n_items; i++) {
        items[i].plan = plan;
        items[i].message = from->items[i];
        items[i].node = is_scalar(&items[i]) ? 0 : from->items[i]->node;
        items[i].slot = is_scalar(&items[i]) ? 0 : from->items[i]->slot;
        items[i].recorded_step = -1;
        items[i].only_not_finite = is_only_not_finite(&items[i]);
    }
    return plan;
}

static struct agent_watch_item *old_item(const struct agent *a, const struct agent_watch_plan *old,
                                         const struct agent_watch_item *item)
{
    const struct agent_node *node = agent_node_at(a, item->node);
    struct agent_watch_item *i = is_scalar(item) ? a->scalar_items : node ? node->watch : NULL;
    while (i && (i->plan != old || i->slot != item->slot ||
                 (is_scalar(item) && strcmp(i->message->scalar, item->message->scalar) != 0))) {
        i = i->next_of_node;
    }
    return i;
}

/* What the items of the plan before have learnt and the new ones want to know. The lists of the
 * nodes are still those of the old plans. */
static void inherit(struct agent *a, struct agent_watch_plan *plan,
                    const struct agent_watch_plan *old)
{
    for (size_t i = 0; i < plan->item_count; i++) {
        struct agent_watch_item *item = &plan->items[i];
        if (dead_steps(item) == 0 && !is_scalar(item)) {
            continue;
        }
        struct agent_watch_item *before = old_item(a, old, item);
        if (!before) {
            continue;
        }
        item->scalar = before->scalar;
        item->scalar_step = before->scalar_step;
        item->previous = before->previous;
        item->previous_step = before->previous_step;
        if (dead_steps(item) > 0) {
            item->units = before->units;
            before->units = NULL;
        }
    }
}

void agent_watch_set(struct agent *a, agent_to *message)
{
    uint32_t id = message->watch_plan->id;
    struct agent_watch_plan **at = &a->plans, *old, *plan = NULL;
    while (*at && (*at)->plan->id != id) {
        at = &(*at)->next;
    }
    old = *at;
    if (message->watch_plan->n_items > 0) {
        plan = plan_create(a, message);
        if (!plan) {
            agent_set_error(a, "out of memory for a watch plan");
        }
    }
    if (plan && old) {
        inherit(a, plan, old);
    }
    struct agent_watch_plan *next = old ? old->next : NULL;
    if (plan) {
        plan->next = next;
        *at = plan;
    } else {
        *at = next;
        gradb__v1__to_trainer__free_unpacked(message, NULL);
    }
    if (old) {
        plan_free(old);
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

/* ---- looking -------------------------------------------------------------------------------- */

static void look_at_units(struct agent_watch_item *item, struct agent_look *look)
{
    struct gd_units **units = item->leader ? &item->leader->units : &item->units;
    struct gd_err err = {0};
    int status = GD_OK;
    if (!*units) {
        status = gd_units_create(units, &err);
    }
    if (status == GD_OK) {
        status = gd_units_look(*units, &look->value.tensor, &err);
    }
    if (status == GD_OK) {
        gd_units_count(*units, dead_steps(item), &look->stats.units, &look->stats.dead_units);
    } else {
        look->code = status == GD_ENOMEM ? CODE(NO_MEMORY) : CODE(UNSUPPORTED);
        snprintf(look->text, sizeof(look->text), "%.*s", (int)sizeof(look->text) - 1, err.text);
    }
}

static void scalar_value(const double *data, int64_t step, struct agent_value *ret)
{
    ret->tensor = (struct gd_tensor){.dtype = GD_FLOAT64, .refs = 1};
    ret->tensor.data = (const unsigned char *)data;
    ret->step = step;
}

static void look_at_scalar(const struct agent *a, const struct agent_watch_item *item,
                           struct agent_look *look)
{
    struct agent_value previous;
    bool against = wants_previous(item) && item->previous_step > 0;
    look->located = item->scalar_step > 0 && item->scalar_step == STEP(a);
    if (!look->located) {
        look->code = CODE(NO_VALUE);
        snprintf(look->text, sizeof(look->text), "%.80s was not told in step %lld",
                 item->message->scalar, (long long)STEP(a));
        return;
    }
    scalar_value(&item->scalar, item->scalar_step, &look->value);
    scalar_value(&item->previous, item->previous_step, &previous);
    agent_stats_compute(a, &look->value, against ? &previous.tensor : NULL, item->message->options,
                        look);
}

/* Of a value that was found, for one item alone: where nothing but finite elements is all that
 * there is to know, statistics of others are not computed. */
static void compute(const struct agent *a, const struct agent_watch_item *item,
                    const struct gd_tensor *previous, struct agent_look *ret)
{
    const unsigned all_but_finite =
        GD_UNKNOWN_ALL & ~(unsigned)(GD_UNKNOWN_COUNT | GD_UNKNOWN_NAN | GD_UNKNOWN_INF);
    if (item->only_not_finite && !item->leader && agent_stats_all_finite(a, &ret->value.tensor)) {
        ret->stats = (struct gd_stats){.count = (uint64_t)gd_tensor_count(&ret->value.tensor),
                                       .unknown = all_but_finite};
        ret->code = -1;
        return;
    }
    agent_stats_compute(a, &ret->value, previous, item->message->options, ret);
}

static void look_at_node(struct agent *a, const struct agent_watch_item *item,
                         struct agent_look *ret)
{
    struct agent_value previous;
    bool against;
    if (agent_stats_find(a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT,
                         item->message->options, &previous, &against, ret)) {
        compute(a, item, against ? &previous.tensor : NULL, ret);
    }
}

/* What follows the statistics of an item, which have begun at `start`. */
static void looked(const struct agent_moment *m, struct agent_watch_item *item, uint64_t start,
                   struct agent_look *ret)
{
    struct agent_watch_item *leader = item->leader;
    if (ret->code == -1 && dead_steps(item) > 0) {
        look_at_units(item, ret);
    }
    ret->cost_ns = agent_now_ns() - start;
    item->ns += ret->cost_ns;
    item->runs += ret->code == -1 && !ret->taken;
    agent_same_keep(m, item, ret);
    if (leader && !leader->shared) {
        leader->shared = malloc(sizeof(*leader->shared));
    }
    if (leader && leader->shared) {
        *leader->shared = *ret;
        leader->shared_at = m->number;
    }
}

/* NULL: there is none, the item is of a scalar. */
static const struct agent_slot *slot_of(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_node *node = agent_node_at(a, item->node);
    return node && item->slot < node->slot_count ? &node->slots[item->slot] : NULL;
}

/* Its node ran in this step and made no such tensor: nothing to check, and nothing is missing. */
static bool is_empty(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_slot *slot = slot_of(a, item);
    return slot && slot->empty_step == STEP(a) && !slot->bound;
}

/* Items that have no leader may be looked at side by side. */
static void look(const struct agent_moment *m, struct agent_watch_item *item,
                 struct agent_look *ret)
{
    struct agent_watch_item *leader = item->leader;
    ret->remote = ret->taken = false;
    ret->histogram = NULL;
    if (leader && leader->shared && leader->shared_at == m->number) {
        *ret = *leader->shared;
        ret->cost_ns = 0;
        return;
    }
    uint64_t start = agent_now_ns();
    if (is_scalar(item)) {
        look_at_scalar(m->a, item, ret);
    } else if (!agent_same_take(m, item, ret)) {
        look_at_node(m->a, item, ret);
    }
    looked(m, item, start, ret);
}

static void begin_step(const struct agent *a, struct agent_watch_plan *plan)
{
    int64_t step = STEP(a);
    if (plan->step != step) {
        plan->last_ns = plan->step_ns;
        plan->step = step;
        plan->step_ns = 0;
        gd_buf_clear(&plan->record); /* of a step whose end was not seen */
    }
}

/* Its operator is told of each time that it runs, and did not run in this step. */
static bool has_not_run(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_node *node = is_scalar(item) ? NULL : agent_node_at(a, item->node);
    return node && a->source.locate && node->phase != 0 && !(node->flags & NODE_LASTS) &&
           (item->plan->exact || node->flags & NODE_CAPTURE_WATCH) &&
           STEP(a) >= item->plan->since && STEP(a) >= a->seen_from &&
           atomic_load_explicit(&a->passes[item->node].ran_step, memory_order_relaxed) != STEP(a);
}

static void tell(struct agent_moment *m, struct agent_watch_item *item, struct agent_look *seen)
{
    item->plan->step_ns += seen->cost_ns;
    bool none = seen->code == CODE(NO_VALUE) && !item->plan->exact && has_not_run(m->a, item);
    if (agent_worth_reporting(item, seen, STEP(m->a)) &&
        (!none || item->message->n_report_if == 0)) {
        agent_report_value(m, item, seen);
    }
    if (item->plan->plan->record && item->recorded_step != STEP(m->a)) {
        agent_record_value(m->a, item, seen);
    }
}

static void begin_plan(struct agent_moment *m, struct agent_watch_plan *plan)
{
    if (m->plan != plan) {
        agent_report_end(m);
        m->plan = plan;
        begin_step(m->a, plan);
    }
}

static void watch_item(struct agent_moment *m, struct agent_watch_item *item)
{
    struct agent_look seen;
    begin_plan(m, item->plan);
    look(m, item, &seen);
    tell(m, item, &seen);
}

/* ---- many at once --------------------------------------------------------------------------- */

struct member {
    struct agent_watch_item *item;
    struct agent_look seen;
    /* of one whose value the source had to be asked for, which is for the thread that has the turn:
     */
    bool asked, found, against;
    struct agent_value previous; /* when it is compared */
    uint64_t ns;                 /* that asking took */
};

struct agent_group { /* items that stand one behind the other in their plan */
    const struct agent_moment *moment;
    struct member member[GROUP];
    size_t count;
};

static void look_in_group(void *ctx, size_t i)
{
    struct agent_group *group = ctx;
    struct member *member = &group->member[i];
    if (!member->asked) {
        look(group->moment, member->item, &member->seen);
        return;
    }
    uint64_t start = agent_now_ns() - member->ns;
    if (member->found) {
        compute(group->moment->a, member->item, member->against ? &member->previous.tensor : NULL,
                &member->seen);
    }
    looked(group->moment, member->item, start, &member->seen);
}

static void ask_for_member(struct agent *a, struct member *member)
{
    const struct agent_watch_item *item = member->item;
    uint64_t start = agent_now_ns();
    member->seen.remote = member->seen.taken = false;
    member->seen.histogram = NULL;
    member->found = agent_stats_find(a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT,
                                     item->message->options, &member->previous, &member->against,
                                     &member->seen);
    member->ns = agent_now_ns() - start;
}

static void end_group(struct agent_moment *m, struct agent_group *group)
{
    group->moment = m;
    gd_workers_run(m->a->threads, group->count, look_in_group, group);
    for (size_t i = 0; i < group->count; i++) {
        tell(m, group->member[i].item, &group->member[i].seen);
    }
    group->count = 0;
}

/* The debugger was lost while the source was asked. */
static bool is_over(const struct agent_moment *m)
{
    return m->a->link != LINK_UP;
}

/* The source is for the thread that has the turn. */
static bool is_for_source(const struct agent *a, const struct agent_watch_item *item)
{
    return item->node && (agent_asks(a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT) ||
                          (wants_previous(item) &&
                           agent_asks(a, item->node, item->slot, GRADB__V1__ITERATION__PREVIOUS)));
}

static void add_member(struct agent *a, struct agent_watch_item *item)
{
    struct member *member = &a->group->member[a->group->count++];
    member->item = item;
    member->asked = is_for_source(a, item);
    if (member->asked) {
        ask_for_member(a, member);
    }
}

/* A plan at the end of the step. The work is shared when it took long in the step before. */
static void watch_plan(struct agent_moment *m, struct agent_watch_plan *plan)
{
    struct agent *a = m->a;
    begin_plan(m, plan);
    if (!a->group && a->threads > 1) {
        a->group = calloc(1, sizeof(*a->group));
    }
    bool share = a->group && plan->last_ns >= WORTH_SHARING;
    if (share) {
        a->group->count = 0; /* the debugger was lost in the middle of one */
    }
    for (size_t i = 0; i < plan->item_count && !is_over(m); i++) {
        struct agent_watch_item *item = &plan->items[i];
        bool there = is_scalar(item) || (agent_node_at(a, item->node) && !is_empty(a, item));
        if (there && share && !item->leader) {
            add_member(a, item);
        } else if (there) {
            watch_item(m, item);
        }
        if (share && (a->group->count == GROUP || i + 1 == plan->item_count)) {
            end_group(m, a->group);
        }
    }
}

static bool is_due(const struct agent *a, const struct agent_watch_plan *plan)
{
    int64_t every = plan->plan->every ? plan->plan->every : 1;
    return STEP(a) % every == 0;
}

/* ---- moments -------------------------------------------------------------------------------- */

static void add_wait(struct agent *a, uint64_t serial, uint64_t ns)
{
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        if (plan->serial == serial) {
            plan->wait_ns += ns;
        }
    }
}

/* During the wait the plans may become others: nothing of the moment is touched any more. True when
 * the verdict was to stand. */
static bool await_verdict(struct agent *a, const struct agent_moment *m, gradb_node node,
                          bool at_step_end)
{
    uint64_t start = agent_now_ns();
    if (a->verdict_first == 0) {
        return false; /* the debugger was lost since */
    }
    a->verdict_for = a->verdict_seen < m->wait ? m->wait : 0;
    while (a->verdict_for == m->wait && a->link == LINK_UP) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    a->verdict_first = 0;
    a->verdict_for = 0;
    add_wait(a, m->wait_serial, agent_now_ns() - start);
    if (!a->verdict_stop || a->link != LINK_UP) {
        return false;
    }
    char text[sizeof(a->verdict_text)];
    memcpy(text, a->verdict_text, sizeof(text));
    agent_stand(a, GRADB__V1__STOP_REASON__STOP_WATCH, node, at_step_end, text, a->verdict_stop);
    return true;
}

static struct agent_moment begin_moment(struct agent *a)
{
    agent_pass_begin(a);
    a->verdict_first = 0;
    a->verdict_seen = 0;
    a->verdict_stop = 0;
    a->verdict_text[0] = '\0';
    return (struct agent_moment){
        .a = a, .number = ++a->moments, .values = GD_BUF_INIT(AGENT_MAX_REPORTS)};
}

static bool end_moment(struct agent_moment *m, gradb_node node, bool at_step_end)
{
    gd_buf_deinit(&m->values);
    agent_source_release(m->a);
    agent_pass_end(m->a);
    if (m->wait || m->a->reports_bytes > WORTH_WAKING) { /* else the I/O thread comes by */
        agent_wake(m->a);
    }
    return m->wait && await_verdict(m->a, m, node, at_step_end);
}

static void fetch(const void *from, size_t bytes)
{
    for (size_t at = 0; from && at < bytes; at += 64) {
        __builtin_prefetch((const char *)from + at);
    }
}

/* Nodes mostly run in the order of the plan's items. What the next ones need lies all over the
 * memory, one pointer behind the other: it is fetched while this one is looked at, of each as far
 * as is known where it lies. */
static void fetch_ahead(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_watch_plan *plan = item->plan;
    if (plan->items + plan->item_count - item <= 4) {
        return;
    }
    fetch(&item[4], sizeof(*item));
    fetch(agent_node_at(a, item[3].node), sizeof(struct agent_node));
    fetch(item[3].message, sizeof(*item->message));
    fetch(slot_of(a, &item[2]), sizeof(struct agent_slot));
    fetch(item[2].message->options, 1);
    fetch(item[2].message->report_if, 1);
    const struct agent_slot *slot = slot_of(a, &item[1]);
    fetch(slot ? slot->geometry : NULL, 1);
    fetch(slot ? slot->data : NULL, 1);
    fetch(item[1].message->n_report_if ? item[1].message->report_if[0] : NULL, 1);
}

bool agent_watch_node(struct agent *a, gradb_node id, struct agent_told told)
{
    struct agent_moment m = begin_moment(a);
    m.told = told;
    m.exact = true;
    a->nodes[id].told = m.number;
    struct agent_watch_item *i = a->nodes[id].watch;
    for (; i && !is_over(&m); i = i->next_of_node) {
        if (i->plan->exact && is_due(a, i->plan) && !is_empty(a, i)) {
            fetch_ahead(a, i);
            watch_item(&m, i);
        }
    }
    agent_report_end(&m);
    return end_moment(&m, id, false);
}

/* Of an exact plan: that an item did not run in this step is recorded, too. */
static void look_at_rest(struct agent_moment *m, struct agent_watch_item *item,
                         struct agent_look *ret)
{
    if (item->plan->exact && has_not_run(m->a, item)) { /* asking for each would cost too much */
        *ret = (struct agent_look){.code = CODE(NO_VALUE), .text = "it has not run in this step"};
    } else {
        look(m, item, ret);
    }
}

/* What was not recorded when its node ran. */
static void record_rest(struct agent_moment *m, struct agent_watch_plan *plan)
{
    begin_step(m->a, plan);
    for (size_t i = 0; i < plan->item_count && !is_over(m); i++) {
        struct agent_watch_item *item = &plan->items[i];
        if (item->recorded_step != STEP(m->a) && agent_node_at(m->a, item->node) &&
            !is_empty(m->a, item)) {
            struct agent_look seen;
            look_at_rest(m, item, &seen);
            plan->step_ns += seen.cost_ns;
            agent_record_value(m->a, item, &seen);
        }
    }
}

bool agent_watch_step_end(struct agent *a)
{
    struct agent_moment m = begin_moment(a);
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        if (plan->exact || !is_due(a, plan)) {
            continue;
        }
        watch_plan(&m, plan);
    }
    agent_report_end(&m);
    for (struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        if (plan->plan->record && is_due(a, plan)) {
            record_rest(&m, plan);
            agent_record_send(a, plan);
        }
    }
    return end_moment(&m, 0, true);
}

/* ---- scalars, copies, costs ----------------------------------------------------------------- */

void agent_watch_scalar(struct agent *a, const char *name, double value)
{
    int64_t step = STEP(a);
    for (struct agent_watch_item *i = a->scalar_items; i; i = i->next_of_node) {
        if (strcmp(i->message->scalar, name) != 0) {
            continue;
        }
        if (i->scalar_step != step) {
            i->previous = i->scalar;
            i->previous_step = i->scalar_step;
        }
        i->scalar = value;
        i->scalar_step = step;
    }
}

void agent_watch_kept(struct agent *a, gradb_node node, uint64_t ns)
{
    for (struct agent_watch_item *i = a->nodes[node].watch; i; i = i->next_of_node) {
        if (wants_previous(i)) {
            i->ns += ns;
            return;
        }
    }
}

static bool cost_of(const struct agent_watch_plan *plan, Gradb__V1__PlanCost *m)
{
    gradb__v1__plan_cost__init(m);
    m->plan = plan->plan->id;
    m->item_ns = calloc(plan->item_count, sizeof(*m->item_ns));
    m->item_runs = calloc(plan->item_count, sizeof(*m->item_runs));
    if (!m->item_ns || !m->item_runs) {
        return false;
    }
    m->n_item_ns = m->n_item_runs = plan->item_count;
    for (size_t i = 0; i < plan->item_count; i++) {
        m->item_ns[i] = plan->items[i].ns;
        m->item_runs[i] = plan->items[i].runs;
    }
    m->wait_ns = plan->wait_ns;
    m->reports = plan->reports;
    m->report_bytes = plan->report_bytes;
    return true;
}

void agent_watch_costs_free(Gradb__V1__WatchCosts *m)
{
    for (size_t i = 0; i < m->n_plans; i++) {
        free(m->plans[i]->item_ns);
        free(m->plans[i]->item_runs);
        free(m->plans[i]);
    }
    free(m->plans);
    m->plans = NULL;
    m->n_plans = 0;
}

bool agent_watch_costs(const struct agent *a, Gradb__V1__WatchCosts *ret)
{
    size_t count = 0;
    for (const struct agent_watch_plan *plan = a->plans; plan; plan = plan->next) {
        count++;
    }
    ret->n_plans = 0;
    ret->plans = calloc(count + 1, sizeof(*ret->plans));
    bool ok = ret->plans != NULL;
    for (const struct agent_watch_plan *plan = a->plans; ok && plan; plan = plan->next) {
        Gradb__V1__PlanCost *cost = malloc(sizeof(*cost));
        ok = cost != NULL;
        if (ok) {
            ret->plans[ret->n_plans++] = cost;
            ok = cost_of(plan, cost);
        }
    }
    if (!ok) {
        agent_watch_costs_free(ret);
    }
    return ok;
}

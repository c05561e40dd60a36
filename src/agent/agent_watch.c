// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_source.h"
#include "agent/agent_stop.h"
#include "agent/agent_tensor.h"
#include "agent/agent_watch.h"
#include "agent/agent_words.h"
#include "base/workers.h"

#define GROUP         32                /* items processed together by several threads */
#define WORTH_SHARING UINT64_C(500000)  /* nanoseconds of a plan's step */
#define WORTH_WAKING  ((size_t)1 << 20) /* bytes of reports */

/* ---- looking -------------------------------------------------------------------------------- */

static void look_at_units(struct agent_watch_item *item, struct agent_look *look)
{
    struct gd_units **units = item->leader ? &item->leader->units : &item->units;
    struct gd_err err = {0};
    int rc = GD_OK;
    if (!*units) {
        rc = gd_units_create(units, &err);
    }
    if (rc == GD_OK) {
        rc = gd_units_look(*units, &look->value.tensor, &err);
    }
    if (rc == GD_OK) {
        gd_units_count(*units, agent_item_dead_steps(item), &look->stats.units,
                       &look->stats.dead_units);
    } else {
        look->code = rc == GD_ENOMEM ? CODE(NO_MEMORY) : CODE(UNSUPPORTED);
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
    bool against = agent_item_wants_previous(item) && item->previous_step > 0;
    look->located = item->scalar_due > 0 && item->scalar_due == PEEK(a->begun);
    if (!look->located) {
        look->code = CODE(NO_VALUE);
        snprintf(look->text, sizeof(look->text), "%.80s was not reported in step %lld",
                 item->message->scalar, (long long)PEEK(a->step));
        return;
    }
    scalar_value(&item->scalar, item->scalar_step, &look->value);
    scalar_value(&item->previous, item->previous_step, &previous);
    agent_stats_compute(a, &look->value, against ? &previous.tensor : NULL, item->message->options,
                        look);
}

/* Computes one item of a located value. If only non-finite elements matter and there are none, no
 * further statistics are computed. */
static void compute_item(const struct agent *a, const struct agent_watch_item *item,
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
        compute_item(a, item, against ? &previous.tensor : NULL, ret);
    }
}

/* Finishes an item after its statistics, whose computation began at `start`. */
static void finish_look(const struct agent_moment *m, struct agent_watch_item *item, uint64_t start,
                        struct agent_look *ret)
{
    struct agent_watch_item *leader = item->leader;
    if (ret->code == -1 && agent_item_dead_steps(item) > 0) {
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

/* NULL: the item is about a scalar. */
static const struct agent_slot *slot_of(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_node *node = agent_node_at(a, item->node);
    return node && item->slot < node->slot_count ? &node->slots[item->slot] : NULL;
}

/* Its node ran in this step without producing this tensor: nothing to check, and nothing is
 * missing. */
static bool is_empty(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_slot *slot = slot_of(a, item);
    return slot && slot->empty_step == PEEK(a->step) && !slot->bound;
}

/* NULL: a scalar, or its node does not exist. */
static const struct agent_node *node_of(const struct agent *a, const struct agent_watch_item *item)
{
    return agent_item_is_scalar(item) ? NULL : agent_node_at(a, item->node);
}

/* The step in which its node last ran; 0: never. */
static int64_t ran_in(const struct agent *a, const struct agent_watch_item *item)
{
    return PEEK(a->passes[item->node].ran_step);
}

/* Every run of its operator is reported, and there was none in this step. */
static bool has_not_run(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_node *node = node_of(a, item);
    return node && a->source.locate && node->phase != 0 && !(node->flags & NODE_LASTS) &&
           (item->plan->exact || node->flags & NODE_CAPTURE_WATCH) &&
           PEEK(a->step) >= item->plan->since && PEEK(a->step) >= a->seen_from &&
           ran_in(a, item) != PEEK(a->step);
}

/* ---- values that do not outlive their node -------------------------------------------------- */

struct agent_early {
    uint64_t begun; /* agent.begun */
    bool done;      /* nothing of it is left to do at the end of the step */
    struct agent_value value;
    struct gd_stats stats;
};

static bool has_early(const struct agent *a, const struct agent_watch_item *item)
{
    return item->early && item->early->begun == PEEK(a->begun);
}

static bool is_done(const struct agent *a, const struct agent_watch_item *item)
{
    return has_early(a, item) && item->early->done;
}

static void take_early(const struct agent_watch_item *item, struct agent_look *ret)
{
    ret->code = -1;
    ret->located = ret->taken = true;
    ret->remote = false;
    ret->value = item->early->value;
    ret->stats = item->early->stats;
}

/* Remembers a result for the end of the step. False: out of memory. */
static bool keep_early(const struct agent *a, struct agent_watch_item *item,
                       const struct agent_look *look)
{
    item->early = item->early ? item->early : calloc(1, sizeof(*item->early));
    if (!item->early) {
        return false;
    }
    item->early->begun = PEEK(a->begun);
    item->early->done = false;
    item->early->value = look->value;
    item->early->value.tensor.data = NULL; /* it will be gone */
    item->early->stats = look->stats;
    return true;
}

void agent_watch_recall(const struct agent *a, gradb_node id, uint32_t slot,
                        const Gradb__V1__StatsOptions *options, struct agent_look *ret)
{
    const struct agent_node *node = agent_node_at(a, id);
    const struct agent_watch_item *i = node ? node->watch : NULL;
    Gradb__V1__StatsOptions own = GRADB__V1__STATS_OPTIONS__INIT;
    if (options) {
        own = *options;
        own.against_previous = false; /* it is gone as well */
    }
    while (i && (i->slot != slot || !has_early(a, i) || i->early->stats.unknown ||
                 !agent_options_equal(i->message->options, &own))) {
        i = i->next_of_node;
    }
    if (i) {
        take_early(i, ret);
    }
}

void agent_watch_inherit(struct agent_watch_item *item, struct agent_watch_item *from)
{
    item->repeats = from->repeats;
    bool enough = from->early && (!from->early->stats.unknown || item->only_not_finite) &&
                  !item->plan->exact && !from->plan->exact &&
                  agent_options_equal(item->message->options, from->message->options);
    if (enough) {
        item->early = from->early;
        from->early = NULL;
        item->early->done = false; /* other triggers, another record */
    }
}

/* Items without a leader may be processed concurrently. */
static void look_at(const struct agent_moment *m, struct agent_watch_item *item,
                    struct agent_look *ret)
{
    struct agent_watch_item *leader = item->leader;
    ret->remote = ret->taken = ret->binned = false;
    ret->histogram = NULL;
    if (leader && leader->shared && leader->shared_at == m->number) {
        *ret = *leader->shared;
        ret->cost_ns = 0;
        return;
    }
    uint64_t start = agent_now_ns();
    if (agent_item_is_scalar(item)) {
        look_at_scalar(m->a, item, ret);
        /* asking the source for each would cost too much */
    } else if (!m->exact && has_not_run(m->a, item)) {
        *ret = (struct agent_look){.code = CODE(NO_VALUE), .text = "it has not run in this step"};
    } else if (!m->exact && has_early(m->a, item)) {
        take_early(item, ret);
    } else if (!agent_same_take(m, item, ret)) {
        look_at_node(m->a, item, ret);
    }
    finish_look(m, item, start, ret);
}

static void begin_step(const struct agent *a, struct agent_watch_plan *plan)
{
    int64_t step = PEEK(a->step);
    if (plan->step != step) {
        plan->last_ns = plan->step_ns;
        plan->step = step;
        plan->step_ns = 0;
        gd_buf_clear(&plan->record); /* of a step whose end was not seen */
    }
}

/* A value that the operator made in an earlier step, or has never made, does not belong to this
 * step: there is nothing to judge, and nothing is missing. */
static void leave_out_of_before(const struct agent *a, const struct agent_watch_item *item,
                                struct agent_look *look)
{
    const struct agent_node *node = item->plan->exact ? NULL : node_of(a, item);
    if (!node || !(node->flags & NODE_CAPTURE_WATCH)) {
        return;
    }
    int64_t ran = ran_in(a, item);
    bool none = look->code == CODE(NO_VALUE) && a->source.locate && ran != PEEK(a->step);
    bool old = look->code == -1 && look->value.step >= 0 && look->value.step < PEEK(a->step);
    if (!none && !old) {
        return;
    }
    if (none) {
        look->value = (struct agent_value){.tensor = {.refs = 1}, .step = ran > 0 ? ran : -1};
        look->located = ran > 0; /* so that its age is reported */
    }
    look->code = CODE(NOT_RUN);
    snprintf(look->text, sizeof(look->text), "its operator has not run in this step");
}

/* For a missing value that normally lasts (a gradient): when it was last computed. */
static void say_how_old(const struct agent *a, const struct agent_watch_item *item,
                        struct agent_look *look)
{
    const struct agent_node *node = node_of(a, item);
    if (look->code != CODE(NO_VALUE) || !node || !(node->flags & NODE_WATCH_SEEN)) {
        return;
    }
    int64_t ran = ran_in(a, item);
    look->value = (struct agent_value){.tensor = {.refs = 1}, .step = ran};
    look->located = ran > 0;
}

static bool is_worth_telling(const struct agent_moment *m, const struct agent_watch_item *item,
                             const struct agent_look *seen)
{
    bool known = seen->code == CODE(NOT_RUN) && !agent_item_wants_age(item);
    return !known && agent_worth_reporting(item, seen, PEEK(m->a->step)) &&
           !agent_is_meant(m->a, item, seen);
}

static void report_look(struct agent_moment *m, struct agent_watch_item *item,
                        struct agent_look *seen)
{
    item->plan->step_ns += seen->cost_ns;
    leave_out_of_before(m->a, item, seen);
    say_how_old(m->a, item, seen);
    if (is_worth_telling(m, item, seen)) {
        agent_report_value(m, item, seen);
    }
    if (item->plan->plan->record && item->recorded_step != PEEK(m->a->step)) {
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
    look_at(m, item, &seen);
    report_look(m, item, &seen);
}

/* ---- many at once --------------------------------------------------------------------------- */

struct member {
    struct agent_watch_item *item;
    struct agent_look seen;
    /* for a value that comes from the source, on the thread that has the turn: */
    bool asked, found, against;
    struct agent_value previous; /* for a comparison */
    uint64_t ns;                 /* time spent asking */
};

struct agent_group { /* consecutive items of a plan */
    const struct agent_moment *moment;
    struct member member[GROUP];
    size_t count;
};

static void look_in_group(void *ctx, size_t i)
{
    struct agent_group *group = ctx;
    struct member *member = &group->member[i];
    if (!member->asked) {
        look_at(group->moment, member->item, &member->seen);
        return;
    }
    uint64_t start = agent_now_ns() - member->ns;
    if (member->found) {
        compute_item(group->moment->a, member->item,
                     member->against ? &member->previous.tensor : NULL, &member->seen);
    }
    finish_look(group->moment, member->item, start, &member->seen);
}

static void ask_for_member(struct agent *a, struct member *member)
{
    const struct agent_watch_item *item = member->item;
    uint64_t start = agent_now_ns();
    member->seen.remote = member->seen.taken = member->seen.binned = false;
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
        report_look(m, group->member[i].item, &group->member[i].seen);
    }
    group->count = 0;
}

/* The debugger was lost during a call into the source. */
static bool is_over(const struct agent_moment *m)
{
    return m->a->link != LINK_UP;
}

/* Only the thread with the turn may call the source. */
static bool is_for_source(const struct agent *a, const struct agent_watch_item *item)
{
    return item->node && !has_early(a, item) &&
           (agent_asks(a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT) ||
            (agent_item_wants_previous(item) &&
             agent_asks(a, item->node, item->slot, GRADB__V1__ITERATION__PREVIOUS)));
}

static void add_member(struct agent *a, struct agent_watch_item *item)
{
    struct member *member = &a->group->member[a->group->count++];
    member->item = item;
    member->asked = is_for_source(a, item) && !has_not_run(a, item);
    if (member->asked) {
        ask_for_member(a, member);
    }
}

/* Processes a plan at the end of the step. Uses several threads if the previous step took long. */
static void watch_plan(struct agent_moment *m, struct agent_watch_plan *plan)
{
    struct agent *a = m->a;
    begin_plan(m, plan);
    if (!a->group && a->threads > 1) {
        a->group = calloc(1, sizeof(*a->group));
    }
    bool share = a->group && plan->last_ns >= WORTH_SHARING;
    if (share) {
        a->group->count = 0; /* the debugger may have been lost in the middle of a group */
    }
    for (size_t i = 0; i < plan->item_count && !is_over(m); i++) {
        struct agent_watch_item *item = &plan->items[i];
        bool there = agent_item_is_scalar(item) ||
                     (agent_node_at(a, item->node) && !is_empty(a, item) && !is_done(a, item));
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
    return PEEK(a->step) % every == 0;
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

/* Plans may change during the wait: nothing of the moment is used after it. True: the verdict was
 * to stop, and the thread was stopped. */
static bool await_verdict(struct agent *a, const struct agent_moment *m, gradb_node node,
                          bool at_step_end)
{
    uint64_t start = agent_now_ns();
    if (a->verdict.first == 0) {
        return false; /* the debugger was lost in the meantime */
    }
    a->verdict.awaited = a->verdict.seen < m->wait ? m->wait : 0;
    while (a->verdict.awaited == m->wait && a->link == LINK_UP) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    a->verdict.first = 0;
    a->verdict.awaited = 0;
    add_wait(a, m->wait_serial, agent_now_ns() - start);
    if (a->verdict.meant && a->verdict.seen == m->wait && a->link == LINK_UP) {
        agent_report_meant(a, node, m->number);
    }
    if (!a->verdict.stop || a->link != LINK_UP) {
        return false;
    }
    char text[sizeof(a->verdict.text)];
    memcpy(text, a->verdict.text, sizeof(text));
    agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_WATCH, node, at_step_end, text,
                      a->verdict.stop);
    return true;
}

static struct agent_moment begin_moment(struct agent *a)
{
    agent_pass_begin(a);
    a->verdict.first = 0;
    a->verdict.seen = 0;
    a->verdict.stop = 0;
    a->verdict.meant = true;
    a->verdict.text[0] = '\0';
    return (struct agent_moment){
        .a = a, .number = ++a->moments, .values = GD_BUF_INIT(AGENT_MAX_REPORTS)};
}

static bool end_moment(struct agent_moment *m, gradb_node node, bool at_step_end)
{
    gd_buf_deinit(&m->values);
    agent_source_release(m->a);
    agent_pass_end(m->a);
    /* otherwise the I/O thread finds them by itself */
    if (m->wait || m->a->reports_bytes > WORTH_WAKING) {
        agent_wake(m->a);
    }
    return m->wait && await_verdict(m->a, m, node, at_step_end);
}

static void fetch_member(const void *from, size_t bytes)
{
    for (size_t at = 0; from && at < bytes; at += 64) {
        __builtin_prefetch((const char *)from + at);
    }
}

/* Prefetches. Nodes usually run in the order of the plan's items; the data of the next items is
 * spread over memory, one pointer after another. Each item is prefetched as far as its addresses
 * are known. */
static void fetch_ahead(const struct agent *a, const struct agent_watch_item *item)
{
    const struct agent_watch_plan *plan = item->plan;
    if (plan->items + plan->item_count - item <= 4) {
        return;
    }
    fetch_member(&item[4], sizeof(*item));
    fetch_member(agent_node_at(a, item[3].node), sizeof(struct agent_node));
    fetch_member(item[3].message, sizeof(*item->message));
    fetch_member(slot_of(a, &item[2]), sizeof(struct agent_slot));
    fetch_member(item[2].message->options, 1);
    fetch_member(item[2].message->report_if, 1);
    const struct agent_slot *slot = slot_of(a, &item[1]);
    fetch_member(slot ? slot->geometry : NULL, 1);
    fetch_member(slot ? slot->data : NULL, 1);
    fetch_member(item[1].message->n_report_if ? item[1].message->report_if[0] : NULL, 1);
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

/* It can be examined right after its node has run. */
static bool can_be_early(const struct agent *a, const struct agent_watch_item *item)
{
    const Gradb__V1__StatsOptions *options = item->message->options;
    return agent_item_is_of_elements(item) && !(options && options->histogram) &&
           !is_for_source(a, item);
}

/* Whether the item needs a copy. */
static bool watch_early(struct agent_moment *m, struct agent_watch_item *item)
{
    struct agent_look seen;
    if (has_early(m->a, item)) {
        item->repeats = true;
        item->early->begun = 0;
    }
    /* while the graph grows, the next plan of this step may ask for more */
    if (item->plan->since > PEEK(m->a->step) || !can_be_early(m->a, item)) {
        return true;
    }
    begin_step(m->a, item->plan);
    look_at(m, item, &seen);
    item->plan->step_ns += seen.cost_ns;
    seen.value.step = PEEK(m->a->step); /* it has just run */
    if (seen.code != -1 || !keep_early(m->a, item, &seen)) {
        return true;
    }
    bool worth = is_worth_telling(m, item, &seen);
    bool records = item->plan->plan->record && item->recorded_step != PEEK(m->a->step);
    if (records && !item->repeats) {
        agent_record_value(m->a, item, &seen);
    }
    item->early->done = !worth && !(records && item->repeats);
    return worth;
}

bool agent_watch_early(struct agent *a, gradb_node id, struct agent_told told)
{
    struct agent_node *node = &a->nodes[id];
    /* what exact plans have just remembered of the node belongs to the same moment */
    uint64_t number = node->flags & NODE_WATCH_EXACT ? node->told : ++a->moments;
    struct agent_moment m = {.a = a, .number = number, .told = told, .exact = true};
    node->told = number;
    bool copy = false;
    for (struct agent_watch_item *i = node->watch; i && !is_over(&m); i = i->next_of_node) {
        if (!i->plan->exact && is_due(a, i->plan) && !is_empty(a, i)) {
            copy = watch_early(&m, i) || copy;
        }
    }
    return copy;
}

/* Records what was not recorded when its node ran. */
static void record_rest(struct agent_moment *m, struct agent_watch_plan *plan)
{
    begin_step(m->a, plan);
    for (size_t i = 0; i < plan->item_count && !is_over(m); i++) {
        struct agent_watch_item *item = &plan->items[i];
        if (item->recorded_step != PEEK(m->a->step) && agent_node_at(m->a, item->node) &&
            !is_empty(m->a, item)) {
            struct agent_look seen;
            look_at(m, item, &seen);
            leave_out_of_before(m->a, item, &seen);
            plan->step_ns += seen.cost_ns;
            agent_record_value(m->a, item, &seen);
        }
    }
}

/* The program can fetch all values at once that it will be asked for. */
static void announce_values(const struct agent_moment *m)
{
    struct agent_looking *looking = agent_begin_looking(m->a);
    for (const struct agent_watch_plan *plan = m->a->plans; looking && plan; plan = plan->next) {
        for (size_t i = 0; !plan->exact && is_due(m->a, plan) && i < plan->item_count; i++) {
            const struct agent_watch_item *item = &plan->items[i];
            if (!item->leader && !agent_item_is_scalar(item) && is_for_source(m->a, item) &&
                !is_empty(m->a, item) && !has_not_run(m->a, item) && !is_over(m)) {
                agent_add_look(m->a, looking, item->node, item->slot, item->message->options);
            }
        }
    }
    if (looking) {
        agent_end_looking(m->a, looking);
    }
}

bool agent_watch_step_end(struct agent *a)
{
    struct agent_moment m = begin_moment(a);
    announce_values(&m);
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

void agent_watch_scalar(struct agent *a, const char *name, double value, int64_t step)
{
    for (struct agent_watch_item *i = a->scalar_items; i; i = i->next_of_node) {
        if (strcmp(i->message->scalar, name) != 0) {
            continue;
        }
        if (i->scalar_step != step || i->scalar_due == 0) {
            i->previous = i->scalar;
            i->previous_step = i->scalar_step;
        }
        i->scalar = value;
        i->scalar_step = step;
        i->scalar_due = PEEK(a->begun) + (!PEEK(a->in_step) && agent_is_late(a, step));
    }
}

void agent_watch_kept(struct agent *a, gradb_node node, uint64_t ns)
{
    for (struct agent_watch_item *i = a->nodes[node].watch; i; i = i->next_of_node) {
        if (agent_item_wants_previous(i)) {
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

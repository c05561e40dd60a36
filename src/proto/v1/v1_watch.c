// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watch plans on the wire: what the training process must compute, its reports, the verdicts it
 * waits for, and the cost of it all. A holding report is always answered, whatever happened to its
 * plan.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watch/watch_report.h"
#include "proto/v1/v1_impl.h"

#define CAN(name)      GRADB__V1__CAPABILITY__CAPABILITY_##name
#define FIELD(name)    GRADB__V1__STAT_FIELD__STAT_##name
/* of one WatchPlan: training processes accept messages of 16 MiB */
#define MAX_PLAN_BYTES ((size_t)12 << 20)
#define MAX_ASKED      4096 /* unanswered requests for costs */
#define BATCH          128  /* values evaluated at a time */

struct v1_plan {
    struct v1_plan *next;
    uint32_t id;
    bool exact;
    uint64_t set_at;    /* the last request number when it was set */
    size_t item_count;  /* in the engine's plan */
    size_t sent_count;  /* items sent to the training process */
    uint32_t item_of[]; /* index in the message -> index of the engine's item */
};

struct v1_cost_request {
    struct v1_cost_request *next;
    uint64_t id;
    gd_watch_costs_fn fn;
    void *ctx;
};

/* ---- plans --------------------------------------------------------------------------- */

/* Where the plan is linked; *result is NULL if there is none. */
static struct v1_plan **find_plan(struct v1_target *t, uint32_t id)
{
    struct v1_plan **p = &t->plans;
    while (*p && (*p)->id != id) {
        p = &(*p)->next;
    }
    return p;
}

static void remove_plan(struct v1_target *t, uint32_t id)
{
    struct v1_plan **p = find_plan(t, id), *old = *p;
    if (old) {
        *p = old->next;
        free(old);
    }
}

/* The wire's name of a statistic. Percentages are fractions there. */
struct field {
    Gradb__V1__StatField field;
    double scale;
    /* computed from several numbers: may differ from the engine's in its last digits */
    bool derived;
};

static struct field field_of(enum gd_statistic statistic)
{
    static const struct field fields[GD_STAT_TOTAL] = {
        [GD_STAT_COUNT] = {FIELD(COUNT), 1, false},
        [GD_STAT_NAN] = {FIELD(NAN), 1, false},
        [GD_STAT_INF] = {FIELD(INF), 1, false},
        [GD_STAT_POS_INF] = {FIELD(POS_INF), 1, false},
        [GD_STAT_NEG_INF] = {FIELD(NEG_INF), 1, false},
        [GD_STAT_NONFINITE] = {FIELD(NON_FINITE), 1, false},
        [GD_STAT_ZERO] = {FIELD(ZERO), 1, false},
        [GD_STAT_NEG_ZERO] = {FIELD(NEG_ZERO), 1, false},
        [GD_STAT_POSITIVE] = {FIELD(POSITIVE), 1, false},
        [GD_STAT_NEGATIVE] = {FIELD(NEGATIVE), 1, false},
        [GD_STAT_DENORMAL] = {FIELD(DENORMAL), 1, false},
        [GD_STAT_MIN] = {FIELD(MIN), 1, false},
        [GD_STAT_MAX] = {FIELD(MAX), 1, false},
        [GD_STAT_SPREAD] = {FIELD(SPREAD), 1, true},
        [GD_STAT_MAX_ABS] = {FIELD(MAX_ABS), 1, false},
        [GD_STAT_MEAN] = {FIELD(MEAN), 1, false},
        [GD_STAT_ABS_MEAN] = {FIELD(ABS_MEAN), 1, false},
        [GD_STAT_STD] = {FIELD(STD), 1, false},
        [GD_STAT_SUM_SQ] = {FIELD(SUM_SQ), 1, false},
        [GD_STAT_NORM] = {FIELD(NORM), 1, true},
        [GD_STAT_ZERO_PERCENTAGE] = {FIELD(ZERO_SHARE), 100, true},
        [GD_STAT_RANGE_PERCENTAGE] = {FIELD(IN_RANGE_SHARE), 100, true},
        [GD_STAT_CLIP_PERCENTAGE] = {FIELD(OUT_RANGE_SHARE), 100, true},
        [GD_STAT_DEAD_PERCENTAGE] = {FIELD(DEAD_SHARE), 100, true},
        [GD_STAT_DELTA_ABS_MEAN] = {FIELD(MEAN_ABS_DELTA), 1, false},
        [GD_STAT_DELTA_MAX_ABS] = {FIELD(MAX_ABS_DELTA), 1, false},
        [GD_STAT_DELTA_MEAN] = {FIELD(MEAN_DELTA), 1, false},
        [GD_STAT_DELTA_NORM] = {FIELD(DELTA_NORM), 1, true},
        [GD_STAT_PREV_ABS_MEAN] = {FIELD(MEAN_ABS_PREVIOUS), 1, false},
        [GD_STAT_PREV_NORM] = {FIELD(PREVIOUS_NORM), 1, true},
        [GD_STAT_UPDATE_RATIO] = {FIELD(UPDATE_RATIO), 1, true},
        [GD_STAT_COSINE] = {FIELD(COSINE), 1, true},
        [GD_STAT_MISMATCH] = {FIELD(MISMATCH), 1, false},
        [GD_STAT_UNPAIRED] = {FIELD(UNPAIRED), 1, false},
        [GD_STAT_AGE] = {FIELD(AGE), 1, false},
    };
    return (int)statistic >= 0 && statistic < GD_STAT_TOTAL ? fields[statistic]
                                                            : fields[GD_STAT_NONE];
}

/* A trigger only has to hold whenever the comparison may. If it cannot be expressed, returns false,
 * and the training process reports every value. */
static bool encode_trigger(const struct gd_watch_trigger *from, Gradb__V1__Trigger *m)
{
    static const Gradb__V1__Comparison ops[] = {
        [GD_CMP_GT] = GRADB__V1__COMPARISON__GT, [GD_CMP_GE] = GRADB__V1__COMPARISON__GE,
        [GD_CMP_LT] = GRADB__V1__COMPARISON__LT, [GD_CMP_LE] = GRADB__V1__COMPARISON__LE,
        [GD_CMP_EQ] = GRADB__V1__COMPARISON__EQ, [GD_CMP_NE] = GRADB__V1__COMPARISON__NE,
    };
    struct field field = field_of(from->test.statistic);
    enum gd_comparison op = from->test.op;
    bool greater = op == GD_CMP_GT || op == GD_CMP_GE;
    bool less = op == GD_CMP_LT || op == GD_CMP_LE;
    gradb__v1__trigger__init(m);
    m->field = field.field;
    m->range = from->range;
    m->value = from->test.value / field.scale;
    if (field.field == FIELD(NONE) || isnan(from->test.value) ||
        (field.derived && !greater && !less) ||
        (from->test.statistic == GD_STAT_CLIP_PERCENTAGE && !greater)) {
        return false;
    }
    if (!field.derived) {
        m->op = ops[op];
        return true;
    }
    double slack = fabs(m->value) * 1e-9 + 1e-300;
    m->op = greater ? GRADB__V1__COMPARISON__GE : GRADB__V1__COMPARISON__LE;
    m->value += greater ? -slack : slack;
    return true;
}

static void *alloc_list(struct gd_arena *arena, size_t count, size_t size)
{
    return gd_arena_zalloc(arena, (count + 1) * size);
}

static int encode_triggers(const struct gd_watch_item *from, struct gd_arena *arena,
                           Gradb__V1__WatchItem *m)
{
    Gradb__V1__Trigger *triggers = alloc_list(arena, from->trigger_count, sizeof(*triggers));
    m->report_if = alloc_list(arena, from->trigger_count, sizeof(*m->report_if));
    if (!triggers || !m->report_if) {
        return GD_ENOMEM;
    }
    for (size_t i = 0; i < from->trigger_count; i++) {
        if (!encode_trigger(&from->triggers[i], &triggers[i])) {
            m->n_report_if = 0;
            return GD_OK;
        }
        m->report_if[m->n_report_if++] = &triggers[i];
    }
    return GD_OK;
}

static int encode_options(const struct gd_watch_item *from, struct gd_arena *arena,
                          Gradb__V1__WatchItem *m)
{
    static const struct gd_stats_options none;
    const struct gd_stats_options *o = from->options ? from->options : &none;
    size_t count = (size_t)o->range_count;
    if (count == 0 && !from->against_previous && from->dead_steps == 0 && !from->bins) {
        return GD_OK;
    }
    Gradb__V1__StatsOptions *options = gd_arena_alloc(arena, sizeof(*options));
    Gradb__V1__Range *ranges = alloc_list(arena, count, sizeof(*ranges));
    Gradb__V1__Range **list = alloc_list(arena, count, sizeof(*list));
    if (!options || !ranges || !list) {
        return GD_ENOMEM;
    }
    gradb__v1__stats_options__init(options);
    for (size_t i = 0; i < count; i++) {
        gradb__v1__range__init(&ranges[i]);
        ranges[i].lo = o->range[i].lo;
        ranges[i].hi = o->range[i].hi;
        list[i] = &ranges[i];
    }
    options->ranges = list;
    options->n_ranges = count;
    options->rtol = o->rtol;
    options->atol = o->atol;
    options->equal_nan = o->equal_nan;
    options->against_previous = from->against_previous;
    options->dead_steps = from->dead_steps;
    if (from->bins) {
        options->histogram = gd_arena_alloc(arena, sizeof(*options->histogram));
        if (!options->histogram) {
            return GD_ENOMEM;
        }
        gradb__v1__bins__init(options->histogram);
        options->histogram->count = GD_WATCH_BINS;
        options->histogram->own = true;
    }
    m->options = options;
    return GD_OK;
}

static int encode_item(const struct gd_watch_item *from, uint32_t node, struct gd_arena *arena,
                       Gradb__V1__WatchItem *m)
{
    gradb__v1__watch_item__init(m);
    if (from->scalar) {
        m->scalar = gd_arena_strdup(arena, from->scalar);
        if (!m->scalar) {
            return GD_ENOMEM;
        }
    } else {
        m->node = node;
        m->slot = from->slot;
    }
    int rc = encode_options(from, arena, m);
    return rc != GD_OK ? rc : encode_triggers(from, arena, m);
}

/* The items that the training process can compute: those whose node it knows. */
static int encode_items(struct v1_target *t, const struct gd_watch_plan *from,
                        struct gd_arena *arena, struct v1_plan *plan, Gradb__V1__WatchPlan *m)
{
    Gradb__V1__WatchItem *items = alloc_list(arena, from->item_count, sizeof(*items));
    m->items = alloc_list(arena, from->item_count, sizeof(*m->items));
    if (!items || !m->items) {
        return GD_ENOMEM;
    }
    for (size_t i = 0; i < from->item_count; i++) {
        const struct gd_watch_item *item = &from->items[i];
        uint32_t node = item->scalar ? 0 : v1_target_wire(t, item->node);
        if (item->scalar ? !v1_target_can(t, CAN(WATCH_SCALAR)) : node == 0) {
            continue;
        }
        size_t at = m->n_items++;
        plan->item_of[at] = (uint32_t)i;
        m->items[at] = &items[at];
        int rc = encode_item(item, node, arena, &items[at]);
        if (rc != GD_OK) {
            return rc;
        }
    }
    plan->sent_count = m->n_items;
    return GD_OK;
}

static int send_plan(struct v1_target *t, Gradb__V1__WatchPlan *m, struct gd_err *err)
{
    size_t bytes = gradb__v1__watch_plan__get_packed_size(m);
    if (bytes > MAX_PLAN_BYTES) {
        return gd_fail(err, GD_ELIMIT,
                       "a plan of %zu tensors takes %zu bytes, but the limit is %zu: watch fewer "
                       "tensors, or use fewer watchpoints",
                       m->n_items, bytes, MAX_PLAN_BYTES);
    }
    return v1_target_send(t, &m->base, err);
}

int v1_watch_plan(struct gd_target *base, const struct gd_watch_plan *from, struct gd_err *err)
{
    struct v1_target *t = (struct v1_target *)base;
    if (!v1_target_can(t, from->exact ? CAN(WATCH_EXACT) : CAN(WATCH))) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process computes no statistics %s",
                       from->exact ? "before the next operator runs" : "by itself");
    }
    if (from->item_count > UINT32_MAX) {
        return gd_fail(err, GD_ELIMIT, "a plan of %zu tensors", from->item_count);
    }
    Gradb__V1__WatchPlan m = GRADB__V1__WATCH_PLAN__INIT;
    m.id = from->id;
    m.when = from->exact ? GRADB__V1__WATCH_PLAN__WHEN__BEFORE_NEXT_NODE
                         : GRADB__V1__WATCH_PLAN__WHEN__STEP_END;
    m.hold = from->hold;
    m.record = from->record;
    m.more = from->more;
    struct v1_plan *plan = calloc(1, sizeof(*plan) + from->item_count * sizeof(plan->item_of[0]));
    struct gd_arena arena;
    gd_arena_init(&arena, 0);
    int rc = plan ? encode_items(t, from, &arena, plan, &m) : GD_ENOMEM;
    if (rc != GD_OK) {
        gd_fail(err, rc, "out of memory for a plan of %zu tensors", from->item_count);
    } else {
        rc = send_plan(t, &m, err);
    }
    gd_arena_deinit(&arena);
    if (rc != GD_OK) {
        free(plan);
        return rc;
    }
    remove_plan(t, from->id); /* one without items stays while its last reports may be under way */
    plan->id = from->id;
    plan->exact = from->exact;
    plan->item_count = from->item_count;
    plan->set_at = t->next_request;
    plan->next = t->plans;
    t->plans = plan;
    return GD_OK;
}

/* ---- reports ------------------------------------------------------------------------- */

static unsigned error_bits(const struct v1_target *t, Gradb__V1__RequestError__Code code)
{
    switch (code) {
    case GRADB__V1__REQUEST_ERROR__CODE__NO_VALUE:
        return v1_target_can(t, CAN(CAPTURE)) ? GD_HIT_NOT_CAPTURED : GD_HIT_NO_VALUE;
    case GRADB__V1__REQUEST_ERROR__CODE__NO_MEMORY:
    case GRADB__V1__REQUEST_ERROR__CODE__TOO_LARGE: return GD_HIT_NO_MEMORY;
    case GRADB__V1__REQUEST_ERROR__CODE__UNSUPPORTED: return GD_HIT_NOT_NUMBERS;
    case GRADB__V1__REQUEST_ERROR__CODE__NOT_RUN: return GD_HIT_NOT_RUN;
    case GRADB__V1__REQUEST_ERROR__CODE__GONE: return GD_HIT_GONE;
    default: return GD_HIT_NO_VALUE;
    }
}

struct batch {
    struct gd_watch_value value[BATCH];
    struct gd_stats stats[BATCH];
    struct gd_shape shape[BATCH];
    size_t count;
};

/* GD_ENOTFOUND: the node does not exist. GD_EPROTO. */
static int decode_value(const struct v1_target *t, const Gradb__V1__TensorStats *m, uint32_t plan,
                        struct batch *batch, struct gd_err *err)
{
    size_t at = batch->count;
    struct gd_watch_value *value = &batch->value[at];
    *value = (struct gd_watch_value){.plan = plan, .node = GD_NO_NODE, .slot = m->slot};
    if (m->scalar[0]) {
        value->scalar = m->scalar;
        value->slot = 0;
    } else if ((value->node = v1_graph_node(t, m->node)) == GD_NO_NODE) {
        return GD_ENOTFOUND;
    }
    value->dtype = v1_dtype(m->dtype);
    int rc = v1_shape(m->n_shape, m->shape, false, &batch->shape[at], err);
    if (rc != GD_OK) {
        return rc;
    }
    value->shape = &batch->shape[at];
    value->value_step = m->step >= 0 ? m->step : -1;
    value->cost_ns = m->cost_ns;
    if (m->stats) {
        v1_value_decode(m->stats, &batch->stats[at]);
        value->stats = &batch->stats[at];
        value->bins = m->stats->n_histogram == GD_WATCH_BINS ? m->stats->histogram : NULL;
    } else {
        value->error = error_bits(t, m->error_code);
    }
    batch->count++;
    return GD_OK;
}

static void judge_values(struct v1_target *t, const Gradb__V1__WatchReport *m, bool exact,
                         struct batch *batch)
{
    struct gd_watch_moment moment = {.step = m->step > 0 ? m->step : 0,
                                     .exact = exact,
                                     .record = m->record,
                                     .meant = &t->report_meant};
    if (batch->count == 0) {
        return;
    }
    char why[sizeof(t->report_why)] = "";
    if (gd_watch_on_values(t->base.session, &moment, batch->value, batch->count, why,
                           sizeof(why)) &&
        !t->report_stop) {
        t->report_stop = true;
        memcpy(t->report_why, why, sizeof(why));
    }
    batch->count = 0;
}

static int read_values(struct v1_target *t, const Gradb__V1__WatchReport *m, bool exact,
                       struct gd_err *err)
{
    struct batch *batch = malloc(sizeof(*batch));
    int rc = GD_OK;
    if (!batch) {
        t->report_meant = false;
        return GD_OK; /* nothing is evaluated; the training continues */
    }
    batch->count = 0;
    for (size_t i = 0; i < m->n_values && rc == GD_OK; i++) {
        rc = decode_value(t, m->values[i], m->plan, batch, err);
        t->report_meant = t->report_meant && rc == GD_OK;
        rc = rc == GD_ENOTFOUND ? GD_OK : rc;
        if (batch->count == BATCH) {
            judge_values(t, m, exact, batch);
        }
    }
    if (rc == GD_OK) {
        judge_values(t, m, exact, batch);
    }
    free(batch);
    return rc;
}

static void send_verdict(struct v1_target *t, uint64_t report)
{
    Gradb__V1__WatchVerdict verdict = GRADB__V1__WATCH_VERDICT__INIT;
    verdict.report = report;
    verdict.stop = t->report_stop;
    verdict.text = t->report_why;
    verdict.meant = t->report_meant && !t->report_stop;
    v1_target_send(t, &verdict.base, NULL);
}

int v1_watch_report(struct v1_target *t, const Gradb__V1__WatchReport *m, struct gd_err *err)
{
    const struct v1_plan *plan = *find_plan(t, m->plan);
    if (t->report_id != m->id) {
        t->report_id = m->id;
        t->report_stop = false;
        t->report_meant = plan != NULL;
        t->report_why[0] = '\0';
    }
    if (plan) {
        /* The plan may be replaced while its values are evaluated. */
        int rc = read_values(t, m, plan->exact, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (m->holding && !m->more) {
        send_verdict(t, m->id);
    }
    return GD_OK;
}

/* ---- costs --------------------------------------------------------------------------- */

int v1_watch_costs(struct gd_target *base, gd_watch_costs_fn fn, void *ctx, struct gd_err *err)
{
    struct v1_target *t = (struct v1_target *)base;
    if (!v1_target_can(t, CAN(WATCH_COST))) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this training process does not measure the cost of plans");
    }
    if (t->cost_request_count >= MAX_ASKED) {
        return gd_fail(err, GD_ELIMIT,
                       "%d requests for costs are already waiting for the training process",
                       MAX_ASKED);
    }
    struct v1_cost_request *request = calloc(1, sizeof(*request));
    if (!request) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a request");
    }
    Gradb__V1__WatchCostRequest m = GRADB__V1__WATCH_COST_REQUEST__INIT;
    m.request = request->id = ++t->next_request;
    request->fn = fn;
    request->ctx = ctx;
    int rc = v1_target_send(t, &m.base, err);
    if (rc != GD_OK) {
        free(request);
        return rc;
    }
    struct v1_cost_request **end = &t->cost_requests;
    while (*end) {
        end = &(*end)->next;
    }
    *end = request;
    t->cost_request_count++;
    return GD_OK;
}

/* Removes the request from the list; NULL: unknown. */
static struct v1_cost_request *cost_take(struct v1_target *t, uint64_t id)
{
    struct v1_cost_request **p = &t->cost_requests;
    while (*p && (*p)->id != id) {
        p = &(*p)->next;
    }
    struct v1_cost_request *request = *p;
    if (request) {
        *p = request->next;
        t->cost_request_count--;
    }
    return request;
}

/* False: malformed, or about a plan that was removed or replaced since the request. */
static bool decode_cost(struct v1_target *t, const Gradb__V1__PlanCost *m, uint64_t asked,
                        struct gd_arena *arena, struct gd_plan_cost *ret)
{
    const struct v1_plan *plan = *find_plan(t, m->plan);
    if (!plan || plan->set_at >= asked || m->n_item_ns != plan->sent_count ||
        m->n_item_runs != plan->sent_count) {
        return false;
    }
    uint64_t *ns = alloc_list(arena, plan->item_count, sizeof(*ns));
    uint64_t *runs = alloc_list(arena, plan->item_count, sizeof(*runs));
    if (!ns || !runs) {
        return false;
    }
    for (size_t i = 0; i < plan->sent_count; i++) {
        ns[plan->item_of[i]] = m->item_ns[i];
        runs[plan->item_of[i]] = m->item_runs[i];
    }
    *ret = (struct gd_plan_cost){.plan = m->plan,
                                 .item_ns = ns,
                                 .item_runs = runs,
                                 .item_count = plan->item_count,
                                 .wait_ns = m->wait_ns,
                                 .reports = m->reports,
                                 .report_bytes = m->report_bytes};
    return true;
}

static bool told_before(const struct gd_plan_cost *costs, size_t count, uint32_t plan)
{
    for (size_t i = 0; i < count; i++) {
        if (costs[i].plan == plan) {
            return true;
        }
    }
    return false;
}

void v1_watch_costs_told(struct v1_target *t, const Gradb__V1__WatchCosts *m)
{
    struct v1_cost_request *request = cost_take(t, m->request);
    if (!request) {
        return;
    }
    size_t plans = 0, count = 0;
    for (const struct v1_plan *plan = t->plans; plan; plan = plan->next) {
        plans++;
    }
    struct gd_arena arena;
    gd_arena_init(&arena, 0);
    struct gd_plan_cost *costs = alloc_list(&arena, plans, sizeof(*costs));
    for (size_t i = 0; costs && i < m->n_plans && count < plans; i++) {
        if (!told_before(costs, count, m->plans[i]->plan) &&
            decode_cost(t, m->plans[i], request->id, &arena, &costs[count])) {
            count++;
        }
    }
    request->fn(request->ctx, costs, count, NULL);
    gd_arena_deinit(&arena);
    free(request);
}

void v1_watch_error(struct v1_target *t, uint64_t id, const struct gd_err *why)
{
    struct v1_cost_request *request = cost_take(t, id);
    if (request) {
        request->fn(request->ctx, NULL, 0, why);
        free(request);
    }
}

void v1_watch_stopped(struct v1_target *t)
{
    for (struct v1_plan **p = &t->plans; *p;) {
        struct v1_plan *plan = *p;
        if (plan->item_count > 0) {
            p = &plan->next;
            continue;
        }
        *p = plan->next;
        free(plan);
    }
}

void v1_watch_drop_all(struct v1_target *t, int code, const char *why)
{
    struct gd_err err;
    gd_fail(&err, code, "%s", why);
    while (t->cost_requests) {
        v1_watch_error(t, t->cost_requests->id, &err);
    }
    while (t->plans) {
        remove_plan(t, t->plans->id);
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The plans, and what the process must keep for them. On GPU it keeps a tensor only if one of its
 * own watchpoints names the operator or reads the parameter. So it gets one that covers what the
 * plans need and is never evaluated: a check of initial weights, which is silent from the first
 * step on.
 */
#include "proto/ms/ms_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/watch/condition.h"

#define RECENT_RECIPES 16

/* ---- what the process can compute itself --------------------------------------------------- */

static bool summary_tells(enum gd_statistic statistic)
{
    switch (statistic) {
    case GD_STAT_COUNT:
    case GD_STAT_NAN:
    case GD_STAT_INF:
    case GD_STAT_POS_INF:
    case GD_STAT_NEG_INF:
    case GD_STAT_NONFINITE:
    case GD_STAT_ZERO:
    case GD_STAT_POSITIVE:
    case GD_STAT_NEGATIVE:
    case GD_STAT_MIN:
    case GD_STAT_MAX:
    case GD_STAT_SPREAD:
    case GD_STAT_MAX_ABS:
    case GD_STAT_ZERO_PERCENTAGE: return true;
    default: return false;
    }
}

/* Without triggers, the statistics that the watchpoints use are unknown. */
static bool is_summary_enough(const struct gd_watch_item *item)
{
    bool enough = item->trigger_count > 0 && !item->against_previous && !item->dead_steps &&
                  !item->bins && (!item->options || !item->options->range_count);
    for (size_t i = 0; enough && i < item->trigger_count; i++) {
        enough = summary_tells(item->triggers[i].test.statistic);
    }
    return enough;
}

/* ---- a plan -------------------------------------------------------------------------------- */

static void free_plan(struct ms_plan *plan)
{
    for (size_t i = 0; i < plan->recipe_count; i++) {
        free(plan->recipes[i].triggers);
    }
    free(plan->recipes);
    free(plan->items);
    free(plan);
}

static int add_recipe(struct ms_plan *plan, const struct gd_watch_item *item)
{
    struct ms_recipe *recipes =
        gd_grow(plan->recipes, plan->recipe_count, &plan->recipe_cap, sizeof(*recipes));
    if (!recipes) {
        return GD_ENOMEM;
    }
    plan->recipes = recipes;
    struct ms_recipe *recipe = &plan->recipes[plan->recipe_count];
    memset(recipe, 0, sizeof(*recipe));
    if (item->options) {
        recipe->options = *item->options;
    }
    recipe->options.threads = 0;
    recipe->against_previous = item->against_previous;
    recipe->dead_steps = item->dead_steps;
    recipe->bins = item->bins;
    recipe->summary_enough = is_summary_enough(item);
    if (item->trigger_count) {
        recipe->triggers = malloc(item->trigger_count * sizeof(*recipe->triggers));
        if (!recipe->triggers) {
            return GD_ENOMEM;
        }
        memcpy(recipe->triggers, item->triggers, item->trigger_count * sizeof(*recipe->triggers));
        recipe->trigger_count = item->trigger_count;
    }
    plan->recipe_count++;
    return GD_OK;
}

/* Items of one kind share options and triggers. */
static bool is_same(const struct gd_watch_item *a, const struct gd_watch_item *b)
{
    return a->options == b->options && a->triggers == b->triggers &&
           a->trigger_count == b->trigger_count && a->against_previous == b->against_previous &&
           a->dead_steps == b->dead_steps && a->bins == b->bins;
}

/* Finds the recipe of an item among those used last, or adds one. */
static int find_recipe(struct ms_plan *plan, const struct gd_watch_item *item,
                       const struct gd_watch_item **recent, uint32_t *recent_id, uint32_t *ret)
{
    for (size_t i = 0; i < RECENT_RECIPES && recent[i]; i++) {
        if (is_same(recent[i], item)) {
            *ret = recent_id[i];
            return GD_OK;
        }
    }
    int rc = add_recipe(plan, item);
    if (rc != GD_OK) {
        return rc;
    }
    *ret = (uint32_t)plan->recipe_count - 1;
    recent[*ret % RECENT_RECIPES] = item;
    recent_id[*ret % RECENT_RECIPES] = *ret;
    return GD_OK;
}

static int fill_plan(struct ms_plan *plan, const struct gd_watch_plan *from)
{
    const struct gd_watch_item *recent[RECENT_RECIPES] = {NULL};
    uint32_t recent_id[RECENT_RECIPES] = {0};
    plan->items = calloc(from->item_count, sizeof(*plan->items));
    if (!plan->items) {
        return GD_ENOMEM;
    }
    for (size_t i = 0; i < from->item_count; i++) {
        struct ms_item *item = &plan->items[i];
        item->node = from->items[i].node;
        item->slot = from->items[i].slot;
        int rc = find_recipe(plan, &from->items[i], recent, recent_id, &item->recipe);
        if (rc != GD_OK) {
            return rc;
        }
    }
    plan->item_count = from->item_count;
    return GD_OK;
}

static int make_plan(const struct gd_watch_plan *from, struct ms_plan **ret, struct gd_err *err)
{
    struct ms_plan *plan = calloc(1, sizeof(*plan));
    if (!plan || fill_plan(plan, from) != GD_OK) {
        if (plan) {
            free_plan(plan);
        }
        return gd_fail(err, GD_ENOMEM, "out of memory for a plan of %zu tensors", from->item_count);
    }
    plan->id = from->id;
    plan->record = from->record;
    *ret = plan;
    return GD_OK;
}

/* ---- the list ------------------------------------------------------------------------------ */

static struct ms_plans *plans_of(struct gd_ms_target *target)
{
    if (!target->plans) {
        target->plans = calloc(1, sizeof(*target->plans));
        if (target->plans) {
            target->plans->target = target;
        }
    }
    return target->plans;
}

/* Values of the plan may be on their way: then it stays until they have arrived. */
static void remove_plan(struct ms_plans *plans, uint32_t id)
{
    struct ms_plan **link = &plans->plans;
    while (*link && (*link)->id != id) {
        link = &(*link)->next;
    }
    struct ms_plan *plan = *link;
    if (!plan) {
        return;
    }
    *link = plan->next;
    plan->next = plans->retired;
    plans->retired = plan;
    plans->changed = plans->capture_changed = true;
}

void ms_plan_drop_retired(struct ms_plans *plans)
{
    while (plans->retired) {
        struct ms_plan *next = plans->retired->next;
        free_plan(plans->retired);
        plans->retired = next;
    }
}

static int check_plan(const struct gd_watch_plan *plan, struct gd_err *err)
{
    if (plan->exact) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a MindSpore process can be inspected only at the end of a step");
    }
    if (plan->item_count >= UINT32_MAX) {
        return gd_fail(err, GD_ELIMIT, "a plan of %zu tensors", plan->item_count);
    }
    for (size_t i = 0; i < plan->item_count; i++) {
        if (plan->items[i].scalar) {
            return gd_fail(err, GD_EUNSUPPORTED, "a MindSpore process reports no scalars (\"%s\")",
                           plan->items[i].scalar);
        }
    }
    return GD_OK;
}

int ms_plan_set(struct gd_target *base, const struct gd_watch_plan *from, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    struct ms_plan *plan = NULL;
    int rc = check_plan(from, err);
    if (rc == GD_OK && from->item_count) {
        rc = make_plan(from, &plan, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    struct ms_plans *plans = plans_of(target);
    if (!plans) {
        if (plan) {
            free_plan(plan);
        }
        return gd_fail(err, GD_ENOMEM, "out of memory for a plan");
    }
    if (!plans->plans) {
        /* there was nothing to check in the steps before */
        plans->last_step = ms_steps_done(target);
    }
    remove_plan(plans, from->id);
    if (plan) {
        struct ms_plan **end = &plans->plans;
        while (*end) {
            end = &(*end)->next;
        }
        *end = plan;
        plans->changed = plans->capture_changed = true;
    }
    return GD_OK;
}

void ms_plan_free(struct gd_ms_target *target)
{
    struct ms_plans *plans = target->plans;
    if (!plans) {
        return;
    }
    ms_evaluate_forget(plans);
    while (plans->plans) {
        remove_plan(plans, plans->plans->id);
    }
    ms_plan_drop_retired(plans);
    ms_watch_capture_free(plans->capture);
    free(plans);
    target->plans = NULL;
}

/* ---- what the process must keep ------------------------------------------------------------ */

static int compare_nodes(const void *a, const void *b)
{
    gd_node_id x = *(const gd_node_id *)a, y = *(const gd_node_id *)b;
    return x < y ? -1 : x > y;
}

/* The nodes of all plans, each once. NULL: out of memory. */
static gd_node_id *collect_nodes(const struct ms_plans *plans, size_t *count)
{
    size_t total = 0, kept = 0;
    for (const struct ms_plan *plan = plans->plans; plan; plan = plan->next) {
        total += plan->item_count;
    }
    gd_node_id *nodes = malloc((total + 1) * sizeof(*nodes));
    if (!nodes) {
        return NULL;
    }
    total = 0;
    for (const struct ms_plan *plan = plans->plans; plan; plan = plan->next) {
        for (size_t i = 0; i < plan->item_count; i++) {
            nodes[total++] = plan->items[i].node;
        }
    }
    qsort(nodes, total, sizeof(*nodes), compare_nodes);
    for (size_t i = 0; i < total; i++) {
        if (!kept || nodes[kept - 1] != nodes[i]) {
            nodes[kept++] = nodes[i];
        }
    }
    *count = kept;
    return nodes;
}

void ms_plan_capture(struct gd_ms_target *target)
{
    struct ms_plans *plans = target->plans;
    struct gd_err err;
    size_t count;
    if (!plans || !plans->capture_changed || (!target->is_gpu && !plans->kernels_missing)) {
        return;
    }
    plans->capture_changed = false;
    gd_node_id *nodes = collect_nodes(plans, &count);
    int rc =
        nodes ? ms_watch_capture(target, &plans->capture, nodes, count, &err) : gd_fail_nomem(&err);
    if (rc != GD_OK) {
        ms_warn(target, "cannot tell the process which values to keep for watchpoints: %s",
                err.text);
    }
    free(nodes);
}

/* ---- costs --------------------------------------------------------------------------------- */

static void fill_cost(const struct ms_plan *plan, uint64_t *ns, uint64_t *runs,
                      struct gd_plan_cost *ret)
{
    for (size_t i = 0; i < plan->item_count; i++) {
        ns[i] = plan->items[i].ns;
        runs[i] = plan->items[i].runs;
    }
    *ret = (struct gd_plan_cost){.plan = plan->id,
                                 .item_ns = ns,
                                 .item_runs = runs,
                                 .item_count = plan->item_count,
                                 .wait_ns = plan->wait_ns,
                                 .reports = plan->reports,
                                 .report_bytes = plan->bytes};
}

int ms_plan_costs(struct gd_target *base, gd_watch_costs_fn fn, void *ctx, struct gd_err *err)
{
    const struct ms_plans *plans = ((struct gd_ms_target *)base)->plans;
    size_t count = 0, items = 0;
    for (const struct ms_plan *plan = plans ? plans->plans : NULL; plan; plan = plan->next) {
        count++;
        items += plan->item_count;
    }
    struct gd_plan_cost *costs = calloc(count + 1, sizeof(*costs));
    uint64_t *numbers = malloc((2 * items + 1) * sizeof(*numbers));
    if (!costs || !numbers) {
        free(costs);
        free(numbers);
        return gd_fail(err, GD_ENOMEM, "out of memory for the costs of %zu tensors", items);
    }
    uint64_t *at = numbers;
    count = 0;
    for (const struct ms_plan *plan = plans ? plans->plans : NULL; plan; plan = plan->next) {
        fill_cost(plan, at, at + plan->item_count, &costs[count++]);
        at += 2 * plan->item_count;
    }
    fn(ctx, costs, count, NULL);
    free(costs);
    free(numbers);
    return GD_OK;
}

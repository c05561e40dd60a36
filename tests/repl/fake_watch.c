// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/fake_watch.h"
#include "../unit.h"
#include "engine/fake_plans.h"
#include "engine/watch/watch_report.h"
#include "repl/fake_target.h"

#define MAX_PLANS 16

void fake_watch_free(struct fake *fake)
{
    fake_plans_free(fake->plans, fake->plan_count);
    fake->plans = NULL;
    fake->plan_count = 0;
}

void fake_watch_plan(struct fake *fake, const struct gd_watch_plan *plan)
{
    const struct gd_watch_plan none = {.id = plan->id};

    fake_plans_set(&fake->plans, &fake->plan_count, &none, NULL); /* the newest is at the end */
    if (plan->item_count > 0) {
        assert_ok(fake_plans_set(&fake->plans, &fake->plan_count, plan, NULL));
    }
}

static void look_at_item(struct fake *fake, const struct gd_watch_item *item,
                         struct gd_stats *stats, struct gd_watch_value *ret)
{
    struct gd_tensor *now = fake_value_of(fake, item->node, item->slot, GD_CURRENT);
    struct gd_tensor *before =
        item->against_previous ? fake_value_of(fake, item->node, item->slot, GD_PREVIOUS) : NULL;
    static const struct gd_shape none = {.rank = 0};
    ret->node = item->node;
    ret->slot = item->slot;
    ret->shape = now ? &now->shape : &none;
    ret->dtype = now ? now->dtype : GD_DT_NONE;
    if (!now) {
        ret->error = GD_HIT_NO_VALUE;
    } else if (gd_stats_compute(now, before, item->options, stats, NULL) == GD_OK) {
        ret->stats = stats;
        ret->error = item->against_previous && !before ? GD_HIT_NO_PREVIOUS : 0;
    } else {
        ret->error = GD_HIT_NOT_NUMBERS;
    }
}

static bool report_plan(struct fake *fake, struct fake_plan *plan, int64_t step)
{
    struct gd_watch_value *values = calloc(plan->count, sizeof(*values));
    struct gd_stats *stats = calloc(plan->count, sizeof(*stats));
    struct gd_watch_moment moment = {.step = step};
    char why[160];
    assert_non_null(values);
    assert_non_null(stats);
    for (size_t i = 0; i < plan->count; i++) {
        values[i].plan = plan->id;
        values[i].value_step = step;
        look_at_item(fake, &plan->items[i], &stats[i], &values[i]);
    }
    plan->reports++;
    bool stop = gd_watch_on_values(fake->session, &moment, values, plan->count, why, sizeof(why));
    free(values);
    free(stats);
    return stop;
}

bool fake_watch_report(struct fake *fake, int64_t step)
{
    uint32_t ids[MAX_PLANS];
    size_t count = fake->plan_count;
    bool stop = false;
    assert_true(count <= MAX_PLANS);
    for (size_t i = 0; i < count; i++) {
        ids[i] = fake->plans[i].id;
    }
    for (size_t i = count; i-- > 0;) { /* the newest first; judging may replace plans */
        struct fake_plan *plan = fake_plans_find(fake->plans, fake->plan_count, ids[i]);
        stop = (plan && report_plan(fake, plan, step)) || stop;
    }
    return stop;
}

void fake_watch_answer(struct fake *fake, gd_watch_costs_fn fn, void *ctx)
{
    struct gd_plan_cost costs[MAX_PLANS] = {{0}};
    uint64_t *ns[MAX_PLANS], *runs[MAX_PLANS];
    assert_true(fake->plan_count <= MAX_PLANS);
    for (size_t i = 0; i < fake->plan_count; i++) {
        const struct fake_plan *plan = &fake->plans[i];
        ns[i] = calloc(plan->count, sizeof(uint64_t));
        runs[i] = calloc(plan->count, sizeof(uint64_t));
        assert_non_null(ns[i]);
        assert_non_null(runs[i]);
        for (size_t k = 0; k < plan->count; k++) { /* a report looks at every item */
            runs[i][k] = plan->reports;
            ns[i][k] = plan->reports * FAKE_ITEM_NS;
        }
        costs[i] =
            (struct gd_plan_cost){.plan = plan->id,
                                  .item_ns = ns[i],
                                  .item_runs = runs[i],
                                  .item_count = plan->count,
                                  .wait_ns = plan->reports * FAKE_ITEM_NS,
                                  .reports = plan->reports,
                                  .report_bytes = plan->reports * plan->count * FAKE_ITEM_BYTES};
    }
    size_t count = fake->plan_count;
    fn(ctx, costs, count, NULL);
    for (size_t i = 0; i < count; i++) {
        free(ns[i]);
        free(runs[i]);
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "engine/watch/watch_report.h"
#include "repl/fake_target.h"
#include "repl/fake_watch.h"

struct fake_item {
    gd_node_id node;
    uint32_t slot;
    char *scalar; /* NULL: of a node */
    struct gd_stats_options options;
    bool against_previous;
    uint64_t runs;
};

struct fake_plan {
    struct fake_plan *next;
    uint32_t id;
    struct fake_item *items;
    size_t count;
    uint64_t reports;
};

static void free_plan(struct fake_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->items[i].scalar);
    }
    free(plan->items);
    free(plan);
}

void fake_watch_free(struct fake *fake)
{
    while (fake->plans) {
        struct fake_plan *next = fake->plans->next;
        free_plan(fake->plans);
        fake->plans = next;
    }
}

static void remove_plan(struct fake *fake, uint32_t id)
{
    struct fake_plan **at = &fake->plans;
    while (*at && (*at)->id != id) {
        at = &(*at)->next;
    }
    if (*at) {
        struct fake_plan *gone = *at;
        *at = gone->next;
        free_plan(gone);
    }
}

void fake_watch_plan(struct fake *fake, const struct gd_watch_plan *plan)
{
    remove_plan(fake, plan->id);
    if (plan->item_count == 0) {
        return;
    }
    struct fake_plan *kept = calloc(1, sizeof(*kept));
    assert_non_null(kept);
    kept->items = calloc(plan->item_count, sizeof(*kept->items));
    assert_non_null(kept->items);
    kept->id = plan->id;
    kept->count = plan->item_count;
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct gd_watch_item *item = &plan->items[i];
        kept->items[i] = (struct fake_item){.node = item->node,
                                            .slot = item->slot,
                                            .scalar = item->scalar ? strdup(item->scalar) : NULL,
                                            .options = *item->options,
                                            .against_previous = item->against_previous};
    }
    kept->next = fake->plans;
    fake->plans = kept;
}

static void look_at_item(struct fake *fake, struct fake_item *item, struct gd_stats *stats,
                         struct gd_watch_value *ret)
{
    struct gd_tensor *now = fake_value_of(fake, item->node, item->slot, GD_CURRENT);
    struct gd_tensor *before =
        item->against_previous ? fake_value_of(fake, item->node, item->slot, GD_PREVIOUS) : NULL;
    static const struct gd_shape none = {.rank = 0};
    item->runs++;
    ret->node = item->node;
    ret->slot = item->slot;
    ret->shape = now ? &now->shape : &none;
    ret->dtype = now ? now->dtype : GD_DT_NONE;
    if (!now) {
        ret->error = GD_HIT_NO_VALUE;
    } else if (gd_stats_compute(now, before, &item->options, stats, NULL) == GD_OK) {
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
    struct gd_watch_moment moment = {.step = step, .node = GD_NO_NODE};
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
    uint32_t ids[16];
    size_t count = 0;
    bool stop = false;
    for (struct fake_plan *plan = fake->plans; plan; plan = plan->next) {
        assert_true(count < 16);
        ids[count++] = plan->id;
    }
    for (size_t i = 0; i < count; i++) { /* judging may replace plans */
        struct fake_plan *plan = fake->plans;
        while (plan && plan->id != ids[i]) {
            plan = plan->next;
        }
        stop = (plan && report_plan(fake, plan, step)) || stop;
    }
    return stop;
}

void fake_watch_answer(struct fake *fake, gd_watch_costs_fn fn, void *ctx)
{
    struct gd_plan_cost costs[16] = {{0}};
    uint64_t *ns[16] = {NULL};
    uint64_t *runs[16] = {NULL};
    size_t count = 0;
    for (struct fake_plan *plan = fake->plans; plan; plan = plan->next, count++) {
        assert_true(count < 16);
        ns[count] = calloc(plan->count, sizeof(uint64_t));
        runs[count] = calloc(plan->count, sizeof(uint64_t));
        assert_non_null(ns[count]);
        assert_non_null(runs[count]);
        for (size_t i = 0; i < plan->count; i++) {
            runs[count][i] = plan->items[i].runs;
            ns[count][i] = plan->items[i].runs * FAKE_ITEM_NS;
        }
        costs[count] =
            (struct gd_plan_cost){.plan = plan->id,
                                  .item_ns = ns[count],
                                  .item_runs = runs[count],
                                  .item_count = plan->count,
                                  .wait_ns = plan->reports * FAKE_ITEM_NS,
                                  .reports = plan->reports,
                                  .report_bytes = plan->reports * plan->count * FAKE_ITEM_BYTES};
    }
    fn(ctx, costs, count, NULL);
    for (size_t i = 0; i < count; i++) {
        free(ns[i]);
        free(runs[i]);
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* What watching has cost the targets, divided among the watchpoints. */
#include <stdlib.h>

#include "engine/watch/watch_impl.h"

struct costs { /* one question for all sessions */
    struct gd_debugger *debugger;
    uint64_t round; /* only the last waiting one counts */
    size_t waiting;
    struct gd_watch_total total;
    void (*fn)(void *ctx, const struct gd_watch_total *total);
    void *ctx;
};

struct asked {
    struct costs *costs;
    struct gd_session *session;
};

static uint64_t tensors_in_plans(const struct gd_debugger *debugger)
{
    uint64_t count = 0;
    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        const struct gd_watching *w = session->watching;
        for (size_t k = 0; w && session->target && k < w->tensor_count; k++) {
            count += w->tensors[k].set->part_count > 0;
        }
    }
    return count;
}

static void done_one(struct costs *costs)
{
    if (--costs->waiting) {
        return;
    }
    costs->total.tensors = tensors_in_plans(costs->debugger);
    costs->fn(costs->ctx, &costs->total);
    free(costs);
}

/* Divides an item's time into equal parts; the remainder goes to the first ones, so that the parts
 * add up. */
static void share_item(struct gd_watching *w, const struct watch_item *item, uint64_t ns,
                       uint64_t runs)
{
    uint32_t count = item->part->serve_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct watch_cover *cover =
            &w->covers[w->tensors[item->tensor].set->cover[item->part->serve[i].which]];
        if (!cover->watch) {
            continue;
        }
        cover->watch->cost_ns += ns / count + (i < ns % count);
        cover->watch->looks += runs;
    }
}

/* Divides bytes by each watchpoint's share of the plan. */
static void share_bytes(struct gd_watching *w, const struct watch_plan *plan, uint64_t bytes)
{
    uint64_t *share = calloc(w->cover_count + 1, sizeof(*share));
    uint64_t serves = 0, left = bytes;
    for (size_t i = 0; share && i < plan->count; i++) {
        const struct watch_item *item = &plan->items[i];
        for (uint32_t k = 0; k < item->part->serve_count; k++) {
            share[w->tensors[item->tensor].set->cover[item->part->serve[k].which]]++;
            serves++;
        }
    }
    for (size_t i = 0; share && i < w->cover_count; i++) {
        struct gd_watchpoint *watch = w->covers[i].watch;
        if (!share[i] || !watch) {
            continue;
        }
        uint64_t part = serves == share[i]
                            ? left
                            : (uint64_t)((double)left * ((double)share[i] / (double)serves));
        part = part > left ? left : part;
        watch->cost_bytes += part;
        left -= part;
        serves -= share[i];
    }
    free(share);
}

static void take_plan(struct costs *costs, struct gd_watching *w, const struct gd_plan_cost *cost)
{
    const struct watch_plan *plan = watching_plan(w, cost->plan);
    if (!plan || plan->count != cost->item_count) {
        return; /* replaced meanwhile: its counts start again */
    }
    for (size_t i = 0; i < plan->count; i++) {
        share_item(w, &plan->items[i], cost->item_ns[i], cost->item_runs[i]);
        costs->total.compute_ns += cost->item_ns[i];
    }
    share_bytes(w, plan, cost->report_bytes);
    costs->total.wait_ns += cost->wait_ns;
    costs->total.reports += cost->reports;
    costs->total.report_bytes += cost->report_bytes;
}

static void costs_came(void *ctx, const struct gd_plan_cost *plans, size_t count,
                       const struct gd_err *err)
{
    struct asked *asked = ctx;
    struct gd_watching *w = asked->session->watching;
    bool last = asked->costs->round == asked->costs->debugger->cost_round;
    for (size_t i = 0; !err && w && last && i < count; i++) {
        take_plan(asked->costs, w, &plans[i]);
    }
    done_one(asked->costs);
    free(asked);
}

static bool has_plans(const struct gd_session *session)
{
    return session->target && session->target->ops->watch_costs && session->watching &&
           session->watching->plan_count > 0;
}

int gd_watch_costs(struct gd_debugger *debugger,
                   void (*fn)(void *ctx, const struct gd_watch_total *total), void *ctx,
                   struct gd_err *err)
{
    struct costs *costs = calloc(1, sizeof(*costs));
    if (!costs) {
        return gd_fail_nomem(err);
    }
    *costs = (struct costs){
        .debugger = debugger, .round = ++debugger->cost_round, .waiting = 1, .fn = fn, .ctx = ctx};
    for (struct gd_watchpoint *watch = debugger->watchpoints; watch; watch = watch->next) {
        watch->cost_ns = watch->cost_bytes = watch->looks = 0;
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        struct asked *asked = has_plans(session) ? malloc(sizeof(*asked)) : NULL;
        if (!asked) {
            continue;
        }
        *asked = (struct asked){costs, session};
        costs->waiting++;
        if (gd_target_watch_costs(session->target, costs_came, asked, NULL) != GD_OK) {
            costs->waiting--;
            free(asked);
        }
    }
    done_one(costs);
    return GD_OK;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* How a dump moves: from step to step, or within a step from node to node; and the watchpoints
 * evaluated on the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "dump/dump_target_impl.h"
#include "engine/progress.h"
#include "engine/watch/watch_report.h"

#define AT_ONCE 0.03 /* seconds that a command works before it returns to the event loop */

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t step_count(const struct dump_target *target)
{
    size_t count;

    gd_catalog_steps(target->catalog, &count);
    return count;
}

/* ---- position -------------------------------------------------------------------------------- */

static void set_position(struct dump_target *target, size_t at, gd_node_id node)
{
    target->at = at;
    target->node = node;
}

/* The target's last step that is not after `step`; its first step if all are. */
static size_t step_not_after(const struct dump_target *target, int64_t step)
{
    size_t low = 0, high = step_count(target);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (dump_step_at(target, middle) <= step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : 0;
}

static bool takes_part(const struct dump_group *group, size_t member,
                       const struct dump_target *lead, bool alone)
{
    const struct dump_target *target = group->member[member];

    return target && (target == lead || !alone);
}

/* Moves the other ranks to the leading rank's step. */
static void bring_others(struct dump_target *lead, bool alone)
{
    int64_t step = dump_step_at(lead, lead->at);

    for (size_t i = 0; i < lead->group->count; i++) {
        struct dump_target *other = lead->group->member[i];

        if (takes_part(lead->group, i, lead, alone) && other != lead && step_count(other) > 0) {
            set_position(other, step_not_after(other, step), GD_NO_NODE);
        }
    }
}

static void report_stop(struct dump_target *target, enum gd_stop_reason reason, const char *text,
                        bool together)
{
    struct gd_stop stop = {.reason = reason,
                           .step = dump_step_at(target, target->at),
                           .at_step_end = target->node == GD_NO_NODE,
                           .node = target->node,
                           .recorded = true,
                           .left = target->group->left,
                           .together = together};

    snprintf(stop.text, sizeof(stop.text), "%s", text);
    dump_tell_scalars(target, target->at);
    gd_session_on_stopped(target->base.session, &stop);
}

/* Announces where all ranks stopped, the selected one last. */
static void tell_all(struct dump_target *lead, bool alone, enum gd_stop_reason reason,
                     const char *text)
{
    struct dump_group *group = lead->group;

    for (size_t i = 0; !alone && i < group->count; i++) {
        if (group->member[i] && group->member[i] != lead) {
            report_stop(group->member[i], GD_STOP_STEP, "", true);
        }
    }
    report_stop(lead, reason, text, false);
}

static bool goes_alone(const struct dump_target *target, enum gd_run_kind kind)
{
    int locking = target->base.session->debugger->settings.rank_locking;

    return target->group->count < 2 || locking == GD_LOCKING_ON ||
           (locking == GD_LOCKING_STEP && kind == GD_RUN_NEXT);
}

/* ---- inside a step --------------------------------------------------------------------------- */

static bool has_value(const struct dump_target *target, gd_node_id node, size_t at)
{
    int64_t step = dump_step_at(target, at);
    struct gd_node_info info;

    if (!gd_graph_node(target->base.session->graph, node, &info)) {
        return false;
    }
    for (uint32_t slot = 0; slot < info.output_count; slot++) {
        const struct gd_catalog_value *value = gd_catalog_find(target->catalog, node, slot, step);

        if (value && value->step == step) {
            return true;
        }
    }
    return false;
}

/* The position in execution order after the node; 0 for GD_NO_NODE. */
static uint32_t place_behind(const struct dump_target *target, gd_node_id node)
{
    uint32_t count;
    const gd_node_id *order = gd_graph_execution(target->base.session->graph, &count);

    for (uint32_t i = 0; node != GD_NO_NODE && i < count; i++) {
        if (order[i] == node) {
            return i + 1;
        }
    }
    return 0;
}

static int compare_nodes(const void *a, const void *b)
{
    const gd_node_id *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool is_break(const struct dump_target *target, gd_node_id node)
{
    return target->break_count > 0 &&
           bsearch(&node, target->breaks, target->break_count, sizeof(node), compare_nodes);
}

/* The first node at or after *place that runs in step number `at` and is `wanted` (GD_NO_NODE: any)
 * or has a breakpoint; moves *place past it. GD_NO_NODE: none. */
static gd_node_id next_node(const struct dump_target *target, size_t at, uint32_t *place,
                            gd_node_id wanted, bool breaks)
{
    uint32_t count;
    const gd_node_id *order = gd_graph_execution(target->base.session->graph, &count);

    if (breaks && target->break_count == 0) {
        return GD_NO_NODE;
    }
    for (uint32_t i = *place; i < count; i++) {
        struct gd_node_info info;
        bool fits =
            breaks ? is_break(target, order[i]) : wanted == GD_NO_NODE || order[i] == wanted;

        if (fits && gd_graph_node(target->base.session->graph, order[i], &info) &&
            (info.order != GD_NO_ORDER || wanted != GD_NO_NODE || breaks) &&
            has_value(target, order[i], at)) {
            *place = i + 1;
            return order[i];
        }
    }
    return GD_NO_NODE;
}

static int end_of_dump(const struct dump_target *target, struct gd_err *err)
{
    if (step_count(target) == 0) {
        return gd_fail(err, GD_ENODATA, "the dump has no steps: its values hold in every step");
    }
    return gd_fail(err, GD_ENODATA,
                   "step %lld is the last step of the dump: use reverse-step or goto to go back",
                   (long long)dump_step_at(target, target->at));
}

/* Moves to a node in this step or a later one. */
static int go_to_node(struct dump_target *target, gd_node_id wanted, int64_t count,
                      struct gd_err *err)
{
    size_t at = target->at;
    uint32_t place = place_behind(target, target->node);
    bool at_end = target->node == GD_NO_NODE;

    if (wanted != GD_NO_NODE || count > 0) {
        at += at_end;
    }
    while (at < step_count(target)) {
        gd_node_id next = next_node(target, at, &place, wanted, false);

        if (next == GD_NO_NODE) {
            at++;
            place = 0;
        } else if (--count <= 0) {
            set_position(target, at, next);
            return GD_OK;
        }
    }
    if (wanted == GD_NO_NODE) {
        return target->at + 1 < step_count(target)
                   ? gd_fail(err, GD_ENODATA, "no node was dumped in a later step: use step")
                   : end_of_dump(target, err);
    }
    return gd_fail(err, GD_ENODATA, "%.300s was not dumped in this or a later step",
                   gd_graph_name(target->base.session->graph, wanted));
}

/* ---- to a step ------------------------------------------------------------------------------- */

static int no_step(const struct dump_target *target, int64_t step, struct gd_err *err)
{
    size_t count = step_count(target);
    size_t at = step_not_after(target, step);
    int64_t low = dump_step_at(target, at);
    int64_t high = dump_step_at(target, at + 1);

    if (count == 0) {
        return end_of_dump(target, err);
    }
    if (high == GD_EVERY_STEP || low > step) {
        return gd_fail(err, GD_ENOTFOUND,
                       "step %lld is not in the dump, which has steps %lld to %lld",
                       (long long)step, (long long)dump_step_at(target, 0),
                       (long long)dump_step_at(target, count - 1));
    }
    return gd_fail(err, GD_ENOTFOUND,
                   "step %lld is not in the dump: the nearest are %lld and %lld (info steps)",
                   (long long)step, (long long)low, (long long)high);
}

static int go_to_step(struct dump_target *target, int64_t step, struct gd_err *err)
{
    size_t at = step_not_after(target, step);

    if (step_count(target) == 0 || dump_step_at(target, at) != step) {
        return no_step(target, step, err);
    }
    set_position(target, at, GD_NO_NODE);
    return GD_OK;
}

static int go_back(struct dump_target *target, int64_t count, struct gd_err *err)
{
    size_t at = target->at;

    if (target->node != GD_NO_NODE && at > 0) {
        at--; /* leave the step it is inside */
        count--;
    }
    if (target->at == 0) {
        return step_count(target) == 0
                   ? end_of_dump(target, err)
                   : gd_fail(err, GD_ENODATA, "step %lld is the first step of the dump",
                             (long long)dump_step_at(target, 0));
    }
    set_position(target, (uint64_t)count < at ? at - (size_t)count : 0, GD_NO_NODE);
    return GD_OK;
}

/* ---- watched items --------------------------------------------------------------------------- */

void dump_free_plan(struct dump_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->item[i].scalar);
        free(plan->item[i].trigger);
    }
    free(plan->item);
}

/* false: out of memory. */
static bool copy_item(const struct gd_watch_item *from, struct dump_item *item)
{
    item->node = from->node;
    item->slot = from->slot;
    item->dead = from->dead_steps > 0;
    item->against = from->against_previous;
    item->options = *from->options;
    item->scalar = from->scalar ? strdup(from->scalar) : NULL;
    if (from->trigger_count > 0) {
        item->trigger = malloc(from->trigger_count * sizeof(*item->trigger));
    }
    if (item->trigger) {
        memcpy(item->trigger, from->triggers, from->trigger_count * sizeof(*item->trigger));
        item->trigger_count = from->trigger_count;
    }
    return (!from->scalar || item->scalar) && item->trigger_count == from->trigger_count;
}

static int copy_plan(const struct gd_watch_plan *plan, struct dump_plan *ret, struct gd_err *err)
{
    *ret = (struct dump_plan){.id = plan->id};
    ret->item = calloc(plan->item_count + 1, sizeof(*ret->item));
    for (size_t i = 0; ret->item && i < plan->item_count; i++) {
        if (!copy_item(&plan->items[i], &ret->item[ret->count++])) {
            dump_free_plan(ret);
            ret->item = NULL;
        }
    }
    return ret->item ? GD_OK : gd_fail_nomem(err);
}

int dump_watch_plan(struct gd_target *base, const struct gd_watch_plan *plan, struct gd_err *err)
{
    struct dump_target *target = (struct dump_target *)base;
    struct dump_plan made;
    size_t at = 0;
    int rc;

    while (at < target->plan_count && target->plans[at].id != plan->id) {
        at++;
    }
    if (plan->item_count == 0) {
        if (at < target->plan_count) {
            dump_free_plan(&target->plans[at]);
            target->plans[at] = target->plans[--target->plan_count];
        }
        return GD_OK;
    }
    rc = copy_plan(plan, &made, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (at == target->plan_count) {
        if (!gd_grow_list(&target->plans, at, &target->plan_cap, sizeof(made))) {
            dump_free_plan(&made);
            return gd_fail_nomem(err);
        }
        target->plan_count++;
    } else {
        dump_free_plan(&target->plans[at]);
    }
    target->plans[at] = made;
    return GD_OK;
}

int dump_set_breakpoints(struct gd_target *base, const gd_node_id *nodes, size_t count,
                         struct gd_err *err)
{
    struct dump_target *target = (struct dump_target *)base;
    gd_node_id *copy = malloc((count + 1) * sizeof(*copy));

    if (!copy) {
        return gd_fail_nomem(err);
    }
    if (count > 0) {
        memcpy(copy, nodes, count * sizeof(*copy));
        qsort(copy, count, sizeof(*copy), compare_nodes);
    }
    free(target->breaks);
    target->breaks = copy;
    target->break_count = count;
    return GD_OK;
}

static bool grow_values(struct dump_target *target)
{
    size_t cap = target->value_cap;

    return gd_grow_list(&target->values, target->value_count, &cap, sizeof(*target->values)) &&
           gd_grow_list(&target->figures, target->value_count, &target->value_cap,
                        sizeof(*target->figures));
}

/* Evaluates an item in the target's current step. A value that was not dumped is not an error; one
 * that cannot be read is. */
static void evaluate_item(struct dump_target *target, const struct dump_plan *plan,
                          const struct dump_item *item)
{
    int64_t step = dump_step_at(target, target->at);
    const struct gd_catalog_value *value =
        item->scalar ? NULL : gd_catalog_find(target->catalog, item->node, item->slot, step);
    struct gd_watch_value *out;
    struct dump_figures *figures;
    int rc;

    if (!value || value->step != step || !grow_values(target)) {
        return;
    }
    figures = &target->figures[target->value_count];
    out = &target->values[target->value_count++];
    rc = dump_stats(target, value, &item->options, figures, NULL);
    figures->stats.unknown |= item->dead ? GD_UNKNOWN_UNITS : 0;
    *out = (struct gd_watch_value){.plan = plan->id,
                                   .node = item->node,
                                   .slot = item->slot,
                                   .dtype = figures->dtype,
                                   .value_step = step};
    if (rc != GD_OK) {
        out->error = rc == GD_EUNSUPPORTED ? GD_HIT_NOT_NUMBERS : GD_HIT_NO_VALUE;
    }
}

/* Judges a rank once all of its items are evaluated. */
static bool judge_step(struct dump_target *target)
{
    struct gd_watch_moment moment = {.step = dump_step_at(target, target->at), .complete = true};
    bool *interrupted = &target->group->run.interrupted, by_user = *interrupted, stop;
    char why[200];

    /* group->member may have moved while the list grew */
    for (size_t i = 0; i < target->value_count; i++) {
        target->values[i].shape = &target->figures[i].shape;
        target->values[i].stats = target->values[i].error ? NULL : &target->figures[i].stats;
    }
    dump_tell_scalars(target, target->at); /* a watchpoint on a scalar may interrupt the run */
    stop = *interrupted && !by_user;
    *interrupted = by_user;
    stop = gd_watch_on_values(target->base.session, &moment, target->values, target->value_count,
                              why, sizeof(why)) ||
           stop;
    target->value_count = 0;
    return stop;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool is_watched(const struct dump_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->member[i] && group->member[i]->plan_count > 0) {
            return true;
        }
    }
    return false;
}

static void finish_run(struct dump_group *group, enum gd_stop_reason reason, const char *text)
{
    struct dump_target *lead = group->run.lead;
    bool alone = group->run.alone;
    struct dump_target *hit = group->run.hit;

    gd_progress_end(group->run.progress);
    group->left = group->run.left;
    group->run = (struct dump_run){.lead = NULL};
    if (hit && hit != lead) { /* select the rank that caused the stop */
        gd_debugger_select(hit->base.session->debugger, hit->base.session->number, NULL);
        report_stop(lead, GD_STOP_STEP, "", true);
        for (size_t i = 0; i < group->count; i++) {
            if (group->member[i] && group->member[i] != lead && group->member[i] != hit) {
                report_stop(group->member[i], GD_STOP_STEP, "", true);
            }
        }
        report_stop(hit, reason, text, false);
        return;
    }
    tell_all(lead, alone, reason, text);
}

/* Moves on to the next step; false: the run is over. */
static bool advance_step(struct dump_group *group)
{
    struct dump_run *run = &group->run;
    struct dump_target *lead = run->lead;
    bool inside = lead->node != GD_NO_NODE;
    size_t at = lead->at + (inside ? 0 : 1);
    uint32_t place;
    gd_node_id stop;

    if (run->interrupted || gd_progress_is_stopped(run->progress)) {
        finish_run(group, GD_STOP_INTERRUPT, "");
        return false;
    }
    if (!inside && dump_events_due(group)) {
        finish_run(group, GD_STOP_EVENT, "");
        return false;
    }
    if (run->left == 0) {
        finish_run(group, GD_STOP_STEP, "");
        return false;
    }
    if (at >= step_count(lead)) {
        group->walk.over = true;
        finish_run(group, GD_STOP_END, "");
        return false;
    }
    place = place_behind(lead, lead->node);
    stop = next_node(lead, at, &place, GD_NO_NODE, true);
    set_position(lead, at, stop);
    bring_others(lead, run->alone);
    if (stop != GD_NO_NODE) {
        finish_run(group, GD_STOP_BREAKPOINT, "");
        return false;
    }
    run->left--;
    gd_progress_at(run->progress, ++run->done);
    run->arrived = true;
    run->member = run->plan = run->item = 0;
    return true;
}

/* Evaluates one watched item; after the last one, judges the step. */
static bool evaluate_next(struct dump_group *group)
{
    struct dump_run *run = &group->run;
    struct dump_target *target;

    while (run->member < group->count && !takes_part(group, run->member, run->lead, run->alone)) {
        run->member++;
    }
    if (run->member == group->count) {
        run->arrived = false;
        if (run->hit) {
            finish_run(group, GD_STOP_HIT, "");
        }
        return group->run.lead != NULL;
    }
    target = group->member[run->member];
    if (run->plan < target->plan_count) {
        const struct dump_plan *plan = &target->plans[run->plan];

        if (run->item < plan->count) {
            evaluate_item(target, plan, &plan->item[run->item++]);
        } else {
            run->plan++;
            run->item = 0;
        }
        return true;
    }
    if (judge_step(target) && !run->hit) {
        run->hit = target;
    }
    run->member++;
    run->plan = run->item = 0;
    return true;
}

static void work_for(struct dump_group *group, double seconds)
{
    double end = seconds_now() + seconds;
    bool goes = true;

    while (goes && seconds_now() < end) {
        goes = group->run.arrived ? evaluate_next(group) : advance_step(group);
    }
}

void dump_work(struct gd_target *base, double seconds)
{
    struct dump_target *target = (struct dump_target *)base;

    if (target->group->run.lead == target) {
        work_for(target->group, seconds);
    }
}

static int begin_run(struct dump_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct dump_group *group = target->group;
    size_t count = step_count(target);

    if (count == 0 || (target->at + 1 == count && target->node == GD_NO_NODE &&
                       (group->walk.over || !gd_session_awaits_events(target->base.session)))) {
        return end_of_dump(target, err);
    }
    group->run = (struct dump_run){.lead = target,
                                   .alone = goes_alone(target, run->kind),
                                   .left = run->kind == GD_RUN_STEP ? run->count : INT64_MAX};
    for (size_t i = 0; i < group->count; i++) { /* their hits belong to the coming stop */
        if (takes_part(group, i, target, group->run.alone)) {
            gd_session_on_running(group->member[i]->base.session);
        }
    }
    if (is_watched(group)) {
        uint64_t steps = count - target->at;

        group->run.progress = gd_progress_begin(
            target->base.session->debugger, "searching the dump", "steps",
            (uint64_t)group->run.left < steps ? (uint64_t)group->run.left : steps);
    }
    work_for(group, AT_ONCE);
    return GD_OK;
}

static int begin_move(struct dump_target *target, const struct gd_run *run, struct gd_err *err)
{
    switch (run->kind) {
    case GD_RUN_BACK: return go_back(target, run->count, err);
    case GD_RUN_GOTO: return go_to_step(target, run->count, err);
    case GD_RUN_NEXT: return go_to_node(target, GD_NO_NODE, run->count, err);
    case GD_RUN_TO_NODE: return go_to_node(target, run->node, 1, err);
    default:
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a dump has no phases within a step: use step, next or run-to");
    }
}

int dump_resume(struct gd_target *base, const struct gd_run *run, struct gd_err *err)
{
    struct dump_target *target = (struct dump_target *)base;
    bool alone = goes_alone(target, run->kind);
    bool inside = run->kind == GD_RUN_NEXT || run->kind == GD_RUN_TO_NODE;
    int rc;

    if (target->group->run.lead) {
        return gd_fail(err, GD_ESTATE, "the dump is being searched: interrupt that first");
    }
    if (run->kind == GD_RUN_STEP || run->kind == GD_RUN_CONTINUE) {
        return begin_run(target, run, err);
    }
    rc = begin_move(target, run, err);
    if (rc == GD_OK) {
        dump_events_skip(target);
        bring_others(target, alone);
        tell_all(target, alone, inside ? GD_STOP_NODE : GD_STOP_STEP, "");
    }
    return rc;
}

int dump_interrupt(struct gd_target *base, struct gd_err *err)
{
    struct dump_target *target = (struct dump_target *)base;

    if (target->group->run.lead != target) {
        return gd_fail(err, GD_ESTATE, "the dump is already stopped");
    }
    target->group->run.interrupted = true;
    return GD_OK;
}

void dump_run_forget(struct dump_target *target)
{
    struct dump_group *group = target->group;

    if (group->run.lead) {
        gd_progress_end(group->run.progress);
        group->run = (struct dump_run){.lead = NULL};
    }
    for (size_t i = 0; i < target->plan_count; i++) {
        dump_free_plan(&target->plans[i]);
    }
    free(target->plans);
    free(target->breaks);
    free(target->values);
    free(target->figures);
}

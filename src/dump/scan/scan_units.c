// SPDX-License-Identifier: GPL-3.0-or-later
/* The units of a scan (one step of one rank each) and their values. */
#include <stdlib.h>
#include <string.h>

#include "dump/scan/scan_impl.h"
#include "engine/watch/watchpoint.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* ---- watchpoints ----------------------------------------------------------------------------- */

/* Copies the plan: the user may change watchpoints while the scan runs the event loop, but the scan
 * keeps the original ones. */
static int copy_plan(const struct dump_plan *from, struct dump_plan *to, struct gd_err *err)
{
    *to = (struct dump_plan){.id = from->id};
    to->item = calloc(from->count + 1, sizeof(*to->item));
    for (size_t i = 0; to->item && i < from->count; i++) {
        const struct dump_item *item = &from->item[i];
        struct dump_item *made = &to->item[to->count];
        size_t bytes = item->trigger_count * sizeof(*item->trigger);

        if (item->scalar) { /* scalars are judged when they are passed on */
            continue;
        }
        *made = *item;
        made->trigger = malloc(bytes + 1);
        to->count++;
        if (!made->trigger) {
            return gd_fail_nomem(err);
        }
        if (bytes > 0) {
            memcpy(made->trigger, item->trigger, bytes);
        }
    }
    return to->item ? GD_OK : gd_fail_nomem(err);
}

static int copy_plans(struct scan_plan *plan, struct dump_target *target, struct gd_err *err)
{
    int rc = GD_OK;

    plan->target = target;
    gd_session_hold(target->base.session);
    plan->plans = calloc(target->plan_count + 1, sizeof(*plan->plans));
    if (!plan->plans) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; rc == GD_OK && i < target->plan_count; i++) {
        rc = copy_plan(&target->plans[i], &plan->plans[plan->count++], err);
    }
    return rc;
}

int scan_watched(struct gd_debugger *debugger, char **ret, struct gd_err *err)
{
    struct gd_buf out = GD_BUF_INIT(1 << 22);
    const char *excluded;

    for (const struct gd_watchpoint *w = debugger->watchpoints; w; w = w->next) {
        if (w->enabled) {
            gd_watchpoint_command(w, &out);
            gd_buf_putc(&out, '\n');
        }
    }
    for (size_t i = 0; (excluded = gd_exclude_at(debugger, i)); i++) {
        gd_buf_printf(&out, "exclude %s\n", excluded);
    }
    if (!out.failed && out.len == 0) {
        gd_buf_putc(&out, '\n');
    }
    *ret = gd_buf_take(&out);
    gd_buf_deinit(&out);
    return *ret ? GD_OK : gd_fail_nomem(err);
}

/* ---- units ----------------------------------------------------------------------------------- */

static bool has_rank(const struct gd_scan_head *asked, int64_t rank)
{
    for (uint32_t i = 0; i < asked->range_count; i++) {
        if (rank >= asked->ranks[i].from && rank <= asked->ranks[i].to) {
            return true;
        }
    }
    return asked->range_count == 0;
}

static const struct gd_catalog_value *value_of(const struct scan_unit *unit,
                                               const struct dump_item *item)
{
    const struct gd_catalog_value *value =
        gd_catalog_find(unit->target->catalog, item->node, item->slot, unit->step);

    return value && value->step == unit->step ? value : NULL;
}

static const struct scan_plan *plan_of(const struct scan_list *list,
                                       const struct dump_target *target)
{
    for (size_t i = 0; i < list->plan_count; i++) {
        if (list->plan[i].target == target) {
            return &list->plan[i];
        }
    }
    return NULL;
}

static uint32_t count_items(const struct scan_list *list, const struct scan_unit *unit)
{
    const struct scan_plan *plan = plan_of(list, unit->target);
    uint32_t count = 0;

    for (size_t i = 0; plan && i < plan->count; i++) {
        for (size_t k = 0; k < plan->plans[i].count && count < UINT32_MAX; k++) {
            count += value_of(unit, &plan->plans[i].item[k]) != NULL;
        }
    }
    return count;
}

static void add_unit(struct scan_list *list, struct dump_target *target, size_t at, int64_t step)
{
    struct scan_unit *unit = &list->unit[list->count];

    *unit = (struct scan_unit){.target = target, .at = at, .step = step};
    unit->items = count_items(list, unit);
    list->items += unit->items;
    list->count++;
}

static void add_units(struct scan_list *list, struct dump_target *target,
                      const struct gd_scan_head *asked)
{
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(target->catalog, &count);

    if (asked->steps.from == INT64_MIN) {
        add_unit(list, target, SIZE_MAX, GD_EVERY_STEP);
    }
    for (size_t i = 0; i < count; i++) {
        if (steps[i].step >= asked->steps.from && steps[i].step <= asked->steps.to) {
            add_unit(list, target, i, steps[i].step);
        }
    }
}

static int by_step(const void *a, const void *b)
{
    const struct scan_unit *x = a, *y = b;
    int rank_x = gd_catalog_rank(x->target->catalog), rank_y = gd_catalog_rank(y->target->catalog);

    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    return (rank_x > rank_y) - (rank_x < rank_y);
}

/* Each part takes every Nth value, starting with another one in each unit, so that large values
 * spread evenly; if values are compared with the previous step, the start changes only every few
 * steps. */
#define TURN_STEPS 8

static void take_turns(struct scan_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct scan_unit *unit = &list->unit[i];

        unit->turn = (uint32_t)i;
        if (list->against && unit->at != SIZE_MAX) {
            unit->turn = (uint32_t)(unit->at / TURN_STEPS) +
                         (uint32_t)gd_catalog_rank(unit->target->catalog);
        }
    }
}

static void find_against(struct scan_list *list)
{
    for (size_t i = 0; i < list->plan_count; i++) {
        const struct scan_plan *plan = &list->plan[i];

        for (size_t k = 0; k < plan->count; k++) {
            for (size_t m = 0; m < plan->plans[k].count; m++) {
                list->against = list->against || plan->plans[k].item[m].against;
            }
        }
    }
}

static void count_steps(struct scan_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct scan_unit *unit = &list->unit[i];

        list->steps += unit->step != GD_EVERY_STEP && (i == 0 || unit[-1].step != unit->step);
    }
}

static size_t units_at_most(const struct dump_group *group)
{
    size_t all = 1, count;

    for (size_t i = 0; i < group->count; i++) {
        if (group->member[i]) {
            gd_catalog_steps(group->member[i]->catalog, &count);
            all += count + 1;
        }
    }
    return all;
}

int scan_list_make(const struct dump_group *group, const struct gd_scan_head *asked,
                   struct scan_list *ret, struct gd_err *err)
{
    int rc = GD_OK;

    *ret = (struct scan_list){.count = 0};
    ret->unit = calloc(units_at_most(group), sizeof(*ret->unit));
    ret->plan = calloc(group->count + 1, sizeof(*ret->plan));
    if (!ret->unit || !ret->plan) {
        rc = gd_fail_nomem(err);
    }
    for (size_t i = 0; rc == GD_OK && i < group->count; i++) {
        struct dump_target *target = group->member[i];

        if (target && has_rank(asked, gd_catalog_rank(target->catalog))) {
            rc = copy_plans(&ret->plan[ret->plan_count++], target, err);
        }
        if (rc == GD_OK && target && has_rank(asked, gd_catalog_rank(target->catalog))) {
            add_units(ret, target, asked);
            ret->ranks++;
        }
    }
    if (rc != GD_OK) {
        scan_list_free(ret);
        return rc;
    }
    if (ret->count > 0) {
        qsort(ret->unit, ret->count, sizeof(*ret->unit), by_step);
    }
    count_steps(ret);
    find_against(ret);
    take_turns(ret);
    return GD_OK;
}

void scan_list_free(struct scan_list *list)
{
    for (size_t i = 0; list->plan && i < list->plan_count; i++) {
        for (size_t k = 0; k < list->plan[i].count; k++) {
            dump_free_plan(&list->plan[i].plans[k]);
        }
        gd_session_release(list->plan[i].target->base.session);
        free(list->plan[i].plans);
    }
    free(list->plan);
    free(list->unit);
    *list = (struct scan_list){.count = 0};
}

/* ---- the values of a unit -------------------------------------------------------------------- */

static int by_execution(const void *a, const void *b)
{
    const struct scan_work *x = a, *y = b;

    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    if (x->item->node != y->item->node) {
        return x->item->node < y->item->node ? -1 : 1;
    }
    if (x->item->slot != y->item->slot) {
        return x->item->slot < y->item->slot ? -1 : 1;
    }
    return (x->plan > y->plan) - (x->plan < y->plan);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Includes what is asked of the value, since several plans may have the same tensor. */
static uint64_t hash_item(uint64_t hash, const struct dump_item *item)
{
    hash = hash_number(hash, item->slot);
    hash = hash_number(hash, (uint64_t)item->against << 1 | item->dead);
    hash = hash_number(hash, item->trigger_count);
    return hash_bytes(hash, item->options.range,
                      (size_t)item->options.range_count * sizeof(item->options.range[0]));
}

static void identify_unit(const struct scan_unit *unit, const struct scan_work *work, size_t count,
                          struct gd_scan_unit *ret)
{
    const struct gd_graph *graph = unit->target->base.session->graph;

    const struct dump_group *group = unit->target->group;
    uint32_t member = 0;

    while (member < group->count && group->member[member] != unit->target) {
        member++;
    }
    *ret = (struct gd_scan_unit){.member = member,
                                 .rank = gd_catalog_rank(unit->target->catalog),
                                 .step = unit->step,
                                 .items = (uint32_t)count,
                                 .names = HASH_START,
                                 .stamps = HASH_START};
    ret->names = hash_number(ret->names, (uint64_t)ret->rank);
    for (size_t i = 0; i < count; i++) {
        const char *name = gd_graph_name(graph, work[i].item->node);
        double time = work[i].value->time;
        uint64_t stamp;

        memcpy(&stamp, &time, 8);
        ret->names = hash_item(hash_bytes(ret->names, name, strlen(name) + 1), work[i].item);
        ret->stamps = hash_number(ret->stamps, stamp);
    }
}

/* Marks values that occur again; they are sorted, so equal ones are adjacent. */
static void find_again(struct scan_work *work, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        work[i].again = work[i].item->against || (i > 0 && work[i - 1].value == work[i].value) ||
                        (i + 1 < count && work[i + 1].value == work[i].value);
    }
}

int scan_unit_works(const struct scan_list *list, const struct scan_unit *unit,
                    struct scan_work **ret, struct gd_scan_unit *about, struct gd_err *err)
{
    const struct scan_plan *plan = plan_of(list, unit->target);
    struct scan_work *work = calloc((size_t)unit->items + 1, sizeof(*work));
    struct gd_node_info info;
    size_t count = 0;

    if (!work) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; plan && i < plan->count; i++) {
        for (size_t k = 0; k < plan->plans[i].count && count < unit->items; k++) {
            const struct dump_item *item = &plan->plans[i].item[k];
            const struct gd_catalog_value *value = value_of(unit, item);

            if (value) {
                work[count++] =
                    (struct scan_work){.plan = plan->plans[i].id, .item = item, .value = value};
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool known = gd_graph_node(unit->target->base.session->graph, work[i].item->node, &info) &&
                     info.order != GD_NO_ORDER;

        work[i].order = known ? info.order + 1 : 0;
    }
    if (count > 0) {
        qsort(work, count, sizeof(*work), by_execution);
    }
    find_again(work, count);
    identify_unit(unit, work, count, about);
    *ret = work;
    return GD_OK;
}

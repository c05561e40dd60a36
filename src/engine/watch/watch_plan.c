// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The plans of a session: every watched tensor, what to compute of it, and how much of that the
 * target already has.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "engine/watch/watch_impl.h"

struct build {
    struct gd_watching *w;
    struct watch_tensor *tensors;
    size_t tensor_count, tensor_cap;
    size_t memory_count, series_count;
    struct watch_plan *plans;
    size_t plan_count, plan_cap;
    uint32_t *covers; /* of one node */
    bool extends;     /* continues from the present state of the watching */
};

/* ---- tensors ------------------------------------------------------------------------------- */

static bool add_tensor(struct build *b, gd_node_id node, uint32_t slot, const char *scalar,
                       const struct watch_set *set)
{
    if (!gd_grow_list(&b->tensors, b->tensor_count, &b->tensor_cap, sizeof(*b->tensors))) {
        return false;
    }
    struct watch_tensor *tensor = &b->tensors[b->tensor_count++];
    *tensor = (struct watch_tensor){.node = node,
                                    .slot = slot,
                                    .scalar = scalar,
                                    .set = set,
                                    .memory = (uint32_t)b->memory_count,
                                    .series = UINT32_MAX};
    b->memory_count += set->cover_count;
    if (set->series) {
        tensor->series = (uint32_t)b->series_count++;
    }
    return b->memory_count < UINT32_MAX && b->tensor_count < UINT32_MAX;
}

static bool does_execute(const struct gd_node_info *info)
{
    return info->order != GD_NO_ORDER && info->kind != GD_NODE_WEIGHT &&
           info->kind != GD_NODE_PARAMETER && info->kind != GD_NODE_CONSTANT;
}

static bool add_node(struct build *b, gd_node_id node)
{
    struct gd_watching *w = b->w;
    const uint32_t *sites = NULL;
    uint32_t count = watching_covers_of(w, node, &sites), planned = 0;
    struct gd_node_info info;
    for (uint32_t i = 0; i < count; i++) {
        if (w->covers[sites[i]].mode == WATCH_MODE_PLAN) {
            b->covers[planned++] = sites[i];
        }
    }
    if (!planned || !gd_graph_node(w->session->graph, node, &info)) {
        return true;
    }
    const struct watch_set *set =
        watching_set(w, b->covers, planned, does_execute(&info), watching_is_excluded(w, node));
    if (!set) {
        return false;
    }
    for (uint32_t slot = 0; slot < info.output_count; slot++) {
        if (watching_slot_ok(w->session, node, slot) && !add_tensor(b, node, slot, NULL, set)) {
            return false;
        }
    }
    return true;
}

/* All covers of the metric `name`; those before `from` are already done. */
static bool add_scalar(struct build *b, size_t from)
{
    struct gd_watching *w = b->w;
    const char *name = w->covers[from].scalar;
    uint32_t count = 0;
    for (size_t i = 0; i < from; i++) {
        if (w->covers[i].mode == WATCH_MODE_PLAN && w->covers[i].scalar == name) {
            return true;
        }
    }
    for (size_t i = from; i < w->cover_count; i++) {
        if (w->covers[i].mode == WATCH_MODE_PLAN && w->covers[i].scalar == name) {
            b->covers[count++] = (uint32_t)i;
        }
    }
    const struct watch_set *set = watching_set(w, b->covers, count, false, false);
    return set && add_tensor(b, GD_NO_NODE, 0, name, set);
}

static bool add_tensors(struct build *b)
{
    struct gd_watching *w = b->w;
    b->covers = malloc((w->cover_count + 1) * sizeof(*b->covers));
    w->sets = calloc(WATCH_BUCKETS, sizeof(struct watch_set *));
    if (!b->covers || !w->sets) {
        return false;
    }
    for (gd_node_id node = 0; node < w->node_limit; node++) {
        if (w->first[node + 1] != w->first[node] && !add_node(b, node)) {
            return false;
        }
    }
    for (size_t i = 0; i < w->cover_count; i++) {
        if (w->covers[i].mode == WATCH_MODE_PLAN && w->covers[i].scalar && !add_scalar(b, i)) {
            return false;
        }
    }
    return true;
}

/* < 0, 0, > 0 in the order of tensors: by node and slot, scalars last and by name. */
static int compare_keys(gd_node_id node_a, uint32_t slot_a, const char *scalar_a, gd_node_id node_b,
                        uint32_t slot_b, const char *scalar_b)
{
    if (scalar_a || scalar_b) {
        return !scalar_a ? -1 : !scalar_b ? 1 : strcmp(scalar_a, scalar_b);
    }
    return GD_ORDER(node_a, node_b) ?: GD_ORDER(slot_a, slot_b);
}

static int compare_tensors(const void *x, const void *y)
{
    const struct watch_tensor *a = x, *b = y;

    return compare_keys(a->node, a->slot, a->scalar, b->node, b->slot, b->scalar);
}

/* Nodes came in order. */
static void order_scalars(struct build *b)
{
    size_t first = b->tensor_count;
    while (first > 0 && b->tensors[first - 1].scalar) {
        first--;
    }
    if (b->tensor_count - first > 1) {
        qsort(b->tensors + first, b->tensor_count - first, sizeof(*b->tensors), compare_tensors);
    }
}

/* ---- carry over what was learned ------------------------------------------------------------- */

struct carry {
    struct watch_memory *memory;
    struct gd_series *series;
    const int *old_number; /* by index of the previous covers */
    const uint32_t *old_revision;
};

static void carry_memory(const struct gd_watching *w, const struct carry *carry,
                         const struct watch_tensor *from, struct watch_tensor *to)
{
    to->intended_step = from->intended_step;
    to->intended_signs = from->intended_signs;
    for (uint32_t i = 0; i < to->set->cover_count; i++) {
        const struct watch_cover *cover = &w->covers[to->set->cover[i]];
        for (uint32_t k = 0; k < from->set->cover_count; k++) {
            uint32_t before = from->set->cover[k];
            if (carry->old_number[before] == cover->number &&
                carry->old_revision[before] == cover->revision) {
                carry->memory[to->memory + i] = w->memory[from->memory + k];
            }
        }
    }
    if (to->series != UINT32_MAX && from->series != UINT32_MAX) {
        carry->series[to->series] = w->series[from->series];
    }
}

static void carry_all(const struct gd_watching *w, const struct build *b, const struct carry *carry)
{
    size_t old = 0;
    for (size_t i = 0; i < b->tensor_count && old < w->tensor_count; i++) {
        while (old < w->tensor_count && compare_tensors(&w->tensors[old], &b->tensors[i]) < 0) {
            old++;
        }
        if (old < w->tensor_count && compare_tensors(&w->tensors[old], &b->tensors[i]) == 0) {
            carry_memory(w, carry, &w->tensors[old], &b->tensors[i]);
        }
    }
}

/* ---- plans --------------------------------------------------------------------------------- */

static bool is_class(const struct watch_plan *plan, bool exact, bool hold, uint32_t layer)
{
    return plan->exact == exact && plan->hold == hold && plan->layer == layer;
}

/* How many items the plan may have. While the graph grows, existing plans keep theirs: new items
 * come after them. */
static size_t room_of(const struct gd_watching *w, const struct watch_plan *plan)
{
    size_t room = WATCH_PLAN_ITEMS, plans = 0;
    if (!w->growing) {
        return room;
    }
    for (size_t i = 0; i < w->plan_count; i++) {
        const struct watch_plan *old = &w->plans[i];
        if (!is_class(old, plan->exact, plan->hold, plan->layer)) {
            continue;
        }
        plans++;
        if (old->chunk == plan->chunk && old->count >= WATCH_SEALED_ITEMS) {
            room = old->count;
        }
    }
    return plans < WATCH_SEALED_PLANS ? room : WATCH_PLAN_ITEMS;
}

/* The plan of that class that has room: the last one, if any. */
static struct watch_plan *plan_for(struct build *b, const struct watch_part *part)
{
    uint32_t chunk = 0;
    for (size_t i = b->plan_count; i-- > 0;) {
        struct watch_plan *plan = &b->plans[i];
        if (!is_class(plan, part->exact, part->hold, part->layer)) {
            continue;
        }
        if (plan->count < plan->room) {
            return plan;
        }
        chunk = plan->chunk + 1;
        break;
    }
    if (!gd_grow_list(&b->plans, b->plan_count, &b->plan_cap, sizeof(*b->plans))) {
        return NULL;
    }
    struct watch_plan *plan = &b->plans[b->plan_count++];
    *plan = (struct watch_plan){
        .exact = part->exact, .hold = part->hold, .layer = part->layer, .chunk = chunk};
    plan->room = b->extends ? WATCH_PLAN_ITEMS : room_of(b->w, plan);
    return plan;
}

static bool add_item(struct build *b, size_t index, const struct watch_part *part)
{
    const struct watch_tensor *tensor = &b->tensors[index];
    struct watch_plan *plan = plan_for(b, part);
    if (!plan) {
        return false;
    }
    if (!gd_grow_list(&plan->items, plan->count, &plan->cap, sizeof(*plan->items))) {
        return false;
    }
    plan->sent = false;
    plan->items[plan->count++] = (struct watch_item){.node = tensor->node,
                                                     .slot = tensor->slot,
                                                     .scalar = tensor->scalar,
                                                     .recipe = part->recipe,
                                                     .tensor = (uint32_t)index,
                                                     .part = part};
    return true;
}

static bool same_plan(const struct watch_plan *a, const struct watch_plan *b)
{
    if (a->count != b->count || a->record != b->record) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->items[i].recipe != b->items[i].recipe || a->items[i].node != b->items[i].node ||
            a->items[i].slot != b->items[i].slot || a->items[i].scalar != b->items[i].scalar) {
            return false;
        }
    }
    return true;
}

/* A plan of the same class and place keeps its number, and is not sent again if it is unchanged. */
static void number_plans(struct build *b)
{
    struct gd_watching *w = b->w;
    bool record = w->session->debugger->settings.history_bytes > 0;
    for (size_t i = 0; i < b->plan_count; i++) {
        struct watch_plan *plan = &b->plans[i];
        plan->record = record;
        for (size_t k = 0; k < w->plan_count; k++) {
            const struct watch_plan *old = &w->plans[k];
            if (is_class(old, plan->exact, plan->hold, plan->layer) && old->chunk == plan->chunk) {
                plan->id = old->id;
                plan->known = old->known;
                plan->sent = old->sent && same_plan(old, plan);
            }
        }
        if (!plan->id) {
            plan->id = ++w->next_plan;
        }
    }
}

static void free_plans(struct watch_plan *plans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(plans[i].items);
    }
    free(plans);
}

static void clear_tensors(struct gd_watching *w)
{
    watching_clear_sets(w->sets);
    free(w->tensors);
    free(w->memory);
    free(w->series);
    w->sets = NULL;
    w->tensors = NULL;
    w->memory = NULL;
    w->series = NULL;
    w->tensor_count = w->memory_count = w->series_count = 0;
    w->tensor_cap = w->memory_cap = w->series_cap = 0;
}

void watching_clear_plans(struct gd_watching *w)
{
    free_plans(w->plans, w->plan_count);
    w->plans = NULL;
    w->plan_count = 0;
    clear_tensors(w);
}

void watching_drop_plans(struct gd_watching *w)
{
    for (size_t i = 0; i < w->plan_count; i++) {
        struct watch_plan *plan = &w->plans[i];
        free(plan->items);
        plan->items = NULL;
        plan->count = plan->cap = 0;
        plan->sent = !plan->known;
    }
    clear_tensors(w);
}

/* Of the tensors from `first` on, up to `end`. */
static bool build_plans(struct build *b, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        for (uint32_t k = 0; k < b->tensors[i].set->part_count; k++) {
            if (!add_item(b, i, &b->tensors[i].set->part[k])) {
                return false;
            }
        }
    }
    return true;
}

/* Plans that the target should no longer have stay in the list, empty, until they are removed
 * there. */
static bool keep_removed(struct build *b)
{
    struct gd_watching *w = b->w;
    for (size_t k = 0; k < w->plan_count; k++) {
        const struct watch_plan *old = &w->plans[k];
        bool lives = false;
        for (size_t i = 0; i < b->plan_count; i++) {
            lives = lives || b->plans[i].id == old->id;
        }
        if (lives || !old->known) {
            continue;
        }
        if (!gd_grow_list(&b->plans, b->plan_count, &b->plan_cap, sizeof(*b->plans))) {
            return false;
        }
        b->plans[b->plan_count++] = (struct watch_plan){.id = old->id,
                                                        .known = true,
                                                        .exact = old->exact,
                                                        .hold = old->hold,
                                                        .layer = old->layer,
                                                        .chunk = old->chunk};
    }
    return true;
}

/* How many tensors each sum includes: those from `first` up to `end`. */
static void count_sums(struct gd_watching *w, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const struct watch_set *set = w->tensors[i].set;
        for (uint32_t k = 0; k < set->cover_count; k++) {
            w->covers[set->cover[k]].sum.expected++;
        }
    }
}

static int out_of_memory(struct gd_err *err)
{
    return gd_fail(err, GD_ENOMEM, "out of memory for watchpoints: they may not stop the run");
}

/* Replaces the present state by what was built. */
static int install_plans(struct build *b, const struct carry *carry, struct gd_err *err)
{
    struct gd_watching *w = b->w;
    struct carry made = *carry;
    made.memory = malloc((b->memory_count + 1) * sizeof(*made.memory));
    made.series = calloc(b->series_count + 1, sizeof(*made.series));
    if (!made.memory || !made.series || !keep_removed(b)) {
        free(made.memory);
        free(made.series);
        return out_of_memory(err);
    }
    for (size_t i = 0; i < b->memory_count; i++) {
        made.memory[i] = (struct watch_memory){.hit_step = INT64_MIN};
    }
    carry_all(w, b, &made);
    struct watch_set **sets = w->sets;
    w->sets = NULL;
    free_plans(w->plans, w->plan_count);
    free(w->tensors);
    free(w->memory);
    free(w->series);
    w->sets = sets;
    w->plans = b->plans;
    w->plan_count = b->plan_count;
    w->tensors = b->tensors;
    w->tensor_count = b->tensor_count;
    w->tensor_cap = b->tensor_cap;
    w->memory = made.memory;
    w->memory_count = b->memory_count;
    w->memory_cap = b->memory_count + 1;
    w->series = made.series;
    w->series_count = b->series_count;
    w->series_cap = b->series_count + 1;
    for (size_t i = 0; i < w->cover_count; i++) {
        w->covers[i].sum.expected = 0;
    }
    count_sums(w, 0, w->tensor_count);
    return GD_OK;
}

int watching_build(struct gd_watching *w, const int *old_number, const uint32_t *old_revision,
                   struct gd_err *err)
{
    struct build b = {.w = w};
    struct carry carry = {.old_number = old_number, .old_revision = old_revision};
    struct watch_set **old_sets = w->sets; /* the previous tensors still point into them */
    w->sets = NULL;
    bool ok = add_tensors(&b);
    if (ok) {
        order_scalars(&b);
    }
    ok = ok && build_plans(&b, 0, b.tensor_count);
    if (ok) {
        number_plans(&b);
    }
    int rc = ok ? install_plans(&b, &carry, err) : out_of_memory(err);
    free(b.covers);
    if (rc != GD_OK) {
        free_plans(b.plans, b.plan_count);
        free(b.tensors);
        watching_clear_sets(w->sets);
        w->sets = old_sets;
        return rc;
    }
    watching_clear_sets(old_sets);
    w->version++;
    return GD_OK;
}

/* ---- growing ------------------------------------------------------------------------------- */

/* Makes room for what `b` counted; new entries are empty. */
static bool grow_memory(struct gd_watching *w, const struct build *b)
{
    struct watch_memory *memory =
        gd_grow_to(w->memory, b->memory_count, &w->memory_cap, sizeof(*memory));
    if (!memory) {
        return false;
    }
    w->memory = memory;
    struct gd_series *series =
        gd_grow_to(w->series, b->series_count, &w->series_cap, sizeof(*series));
    if (!series) {
        return false;
    }
    w->series = series;
    for (size_t i = w->memory_count; i < b->memory_count; i++) {
        memory[i] = (struct watch_memory){.hit_step = INT64_MIN};
    }
    for (size_t i = w->series_count; i < b->series_count; i++) {
        memset(&series[i], 0, sizeof(*series));
    }
    w->memory_count = b->memory_count;
    w->series_count = b->series_count;
    return true;
}

/* Moves the tensors that were added after the scalars in front of them. */
static bool order_grown(struct gd_watching *w, size_t added)
{
    size_t scalars = 0;
    if (added == 0) {
        return true;
    }
    while (scalars < w->tensor_count && w->tensors[w->tensor_count - scalars - 1].scalar) {
        scalars++;
    }
    size_t nodes = w->tensor_count - scalars;
    struct watch_tensor *kept = malloc((scalars + 1) * sizeof(*kept));
    if (!kept) {
        return false;
    }
    memcpy(kept, w->tensors + nodes, scalars * sizeof(*kept));
    memmove(w->tensors + nodes, w->tensors + w->tensor_count, added * sizeof(*kept));
    memcpy(w->tensors + nodes + added, kept, scalars * sizeof(*kept));
    free(kept);
    for (size_t i = 0; scalars && i < w->plan_count; i++) {
        for (size_t k = w->plans[i].count; k-- > 0 && w->plans[i].items[k].scalar;) {
            w->plans[i].items[k].tensor += (uint32_t)added;
        }
    }
    w->tensor_count += added;
    return true;
}

/* Nothing may be added after scalars, or to a plan that is not to be sent again. */
static void seal_plans(struct gd_watching *w)
{
    for (size_t i = 0; i < w->plan_count; i++) {
        struct watch_plan *plan = &w->plans[i];
        bool open =
            plan->count && plan->count < WATCH_SEALED_ITEMS && !plan->items[plan->count - 1].scalar;
        plan->room = open ? WATCH_PLAN_ITEMS : plan->count;
    }
}

static bool add_grown_tensors(struct gd_watching *w, struct build *b, gd_node_id first)
{
    bool ok = true;
    for (gd_node_id node = first; ok && node < w->node_limit; node++) {
        ok = w->first[node + 1] == w->first[node] || add_node(b, node);
    }
    w->tensors = b->tensors; /* those after tensor_count have no owner yet */
    w->tensor_cap = b->tensor_cap;
    size_t added = b->tensor_count - w->tensor_count;
    return ok && grow_memory(w, b) && order_grown(w, added);
}

/* The numbers of new plans; false: their class now has too many. */
static bool number_grown(struct gd_watching *w)
{
    bool few = true;
    for (size_t i = 0; i < w->plan_count; i++) {
        struct watch_plan *plan = &w->plans[i];
        size_t alike = 0;
        if (plan->id) {
            continue;
        }
        plan->id = ++w->next_plan;
        plan->record = w->session->debugger->settings.history_bytes > 0;
        for (size_t k = 0; k < w->plan_count; k++) {
            alike += is_class(&w->plans[k], plan->exact, plan->hold, plan->layer);
        }
        few = few && alike < WATCH_SEALED_PLANS;
    }
    return few;
}

bool watching_extend(struct gd_watching *w, gd_node_id first)
{
    size_t before = w->tensor_count;
    struct build b = {.w = w,
                      .tensors = w->tensors,
                      .tensor_count = w->tensor_count,
                      .tensor_cap = w->tensor_cap,
                      .memory_count = w->memory_count,
                      .series_count = w->series_count,
                      .covers = malloc((w->cover_count + 1) * sizeof(*b.covers)),
                      .extends = true};
    bool ok = b.covers && w->sets && add_grown_tensors(w, &b, first);
    free(b.covers);
    if (!ok) {
        return false;
    }
    size_t added = w->tensor_count - before, end = w->tensor_count;
    while (end > added && w->tensors[end - 1].scalar) {
        end--;
    }
    seal_plans(w);
    b.plans = w->plans;
    b.plan_count = w->plan_count;
    b.tensors = w->tensors;
    ok = build_plans(&b, end - added, end);
    w->plans = b.plans;
    w->plan_count = b.plan_count;
    count_sums(w, end - added, end);
    w->version++;
    return number_grown(w) && ok;
}

/* ---- sending ------------------------------------------------------------------------------- */

static int push_plan(struct gd_watching *w, struct watch_plan *plan, bool more, struct gd_err *err)
{
    struct gd_watch_item *items = calloc(plan->count + 1, sizeof(*items));
    if (!items) {
        return out_of_memory(err);
    }
    for (size_t i = 0; i < plan->count; i++) {
        const struct watch_item *from = &plan->items[i];
        items[i] = (struct gd_watch_item){.node = from->node,
                                          .slot = from->slot,
                                          .scalar = from->scalar,
                                          .options = &from->recipe->options,
                                          .against_previous = from->recipe->against_previous,
                                          .dead_steps = from->recipe->dead_steps,
                                          .bins = from->recipe->bins,
                                          .triggers = from->recipe->trigger,
                                          .trigger_count = from->recipe->trigger_count};
    }
    struct gd_watch_plan told = {.id = plan->id,
                                 .exact = plan->exact,
                                 .hold = plan->hold,
                                 .record = plan->record,
                                 .more = more,
                                 .items = items,
                                 .item_count = plan->count};
    int rc = gd_target_watch_plan(w->session->target, &told, err);
    free(items);
    plan->sent = rc == GD_OK;
    if (plan->sent) {
        plan->known = plan->count > 0;
    }
    return rc;
}

/* How many from the start contain all that are not sent. */
static size_t unsent_end(const struct gd_watching *w)
{
    size_t end = w->session->target ? w->plan_count : 0;
    while (end > 0 && w->plans[end - 1].sent) {
        end--;
    }
    return end;
}

static void drop_removed(struct gd_watching *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->plan_count; i++) {
        if (w->plans[i].count || !w->plans[i].sent) {
            w->plans[kept++] = w->plans[i];
        } else {
            free(w->plans[i].items);
        }
    }
    w->plan_count = kept;
}

int watching_push(struct gd_watching *w, struct gd_err *err)
{
    int first = GD_OK, last = GD_OK;
    size_t end = unsent_end(w);
    for (size_t i = 0; i < end; i++) {
        struct gd_err why;
        if (!w->session->target || w->plans[i].sent) { /* it may be lost meanwhile */
            continue;
        }
        last = push_plan(w, &w->plans[i], i + 1 < end, &why);
        if (last != GD_OK && !first) {
            first = last;
            if (err) {
                *err = why;
            }
        }
    }
    if (last != GD_OK && w->session->target) { /* those before it wait for one that follows */
        gd_target_watch_plan(w->session->target, &(struct gd_watch_plan){.id = 0}, NULL);
    }
    drop_removed(w);
    return first;
}

/* ---- finding ------------------------------------------------------------------------------- */

struct watch_plan *watching_plan(const struct gd_watching *w, uint32_t id)
{
    for (size_t i = 0; i < w->plan_count; i++) {
        if (w->plans[i].id == id) {
            return &w->plans[i];
        }
    }
    return NULL;
}

static int compare_to_item(const void *key, const void *element)
{
    const struct watch_place *place = key;
    const struct watch_item *item = element;
    return compare_keys(place->node, place->slot, place->scalar, item->node, item->slot,
                        item->scalar);
}

size_t watching_item(const struct watch_plan *plan, gd_node_id node, uint32_t slot,
                     const char *scalar)
{
    const struct watch_place place = {node, slot, scalar};
    const struct watch_item *found = plan->count ? bsearch(&place, plan->items, plan->count,
                                                           sizeof(*plan->items), compare_to_item)
                                                 : NULL;
    return found ? (size_t)(found - plan->items) : SIZE_MAX;
}

static int compare_to_tensor(const void *key, const void *element)
{
    const struct watch_place *place = key;
    const struct watch_tensor *t = element;
    return compare_keys(place->node, place->slot, place->scalar, t->node, t->slot, t->scalar);
}

size_t watching_tensor(const struct gd_watching *w, gd_node_id node, uint32_t slot,
                       const char *scalar)
{
    const struct watch_place place = {node, slot, scalar};
    const struct watch_tensor *found =
        w->tensor_count
            ? bsearch(&place, w->tensors, w->tensor_count, sizeof(*w->tensors), compare_to_tensor)
            : NULL;
    return found ? (size_t)(found - w->tensors) : SIZE_MAX;
}

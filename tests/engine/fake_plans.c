// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_plans.h"

#include <stdlib.h>
#include <string.h>

static void free_items(struct fake_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free((void *)(uintptr_t)plan->items[i].options);
        free((void *)(uintptr_t)plan->items[i].triggers);
        free((void *)(uintptr_t)plan->items[i].scalar);
    }
    free(plan->items);
    plan->items = NULL;
    plan->count = 0;
}

static void *copy_bytes(const void *from, size_t size)
{
    void *to = malloc(size + 1);

    if (to && size) {
        memcpy(to, from, size);
    }
    return to;
}

/* False: no memory; what was copied is in `to`. */
static bool copy_items(struct fake_plan *to, const struct gd_watch_plan *from)
{
    bool ok = true;

    to->items = calloc(from->item_count, sizeof(*to->items));
    to->count = to->items ? from->item_count : 0;
    for (size_t i = 0; i < to->count; i++) {
        const struct gd_watch_item *item = &from->items[i];

        to->items[i] = *item;
        to->items[i].options = copy_bytes(item->options, sizeof(*item->options));
        to->items[i].triggers =
            copy_bytes(item->triggers, item->trigger_count * sizeof(*item->triggers));
        to->items[i].scalar = item->scalar ? strdup(item->scalar) : NULL;
        ok = ok && to->items[i].options && to->items[i].triggers &&
             !to->items[i].scalar == !item->scalar;
    }
    return ok && to->items;
}

struct fake_plan *fake_plans_find(struct fake_plan *plans, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (plans[i].id == id) {
            return &plans[i];
        }
    }
    return NULL;
}

static int remove_plan(struct fake_plan *plans, size_t *count, struct fake_plan *gone,
                       struct gd_err *err)
{
    if (!gone) {
        return gd_fail(err, GD_ENOTFOUND, "the fake has no such plan");
    }
    free_items(gone);
    *count -= 1;
    memmove(gone, gone + 1, (size_t)(plans + *count - gone) * sizeof(*gone));
    return GD_OK;
}

int fake_plans_set(struct fake_plan **plans, size_t *count, const struct gd_watch_plan *plan,
                   struct gd_err *err)
{
    struct fake_plan *kept = fake_plans_find(*plans, *count, plan->id);

    if (!plan->item_count) {
        return remove_plan(*plans, count, kept, err);
    }
    if (kept) {
        free_items(kept);
    } else {
        struct fake_plan *grown = realloc(*plans, (*count + 1) * sizeof(*grown));

        if (!grown) {
            return gd_fail(err, GD_ENOMEM, "the fake is out of memory");
        }
        *plans = grown;
        kept = &grown[(*count)++];
    }
    *kept = (struct fake_plan){
        .id = plan->id, .exact = plan->exact, .hold = plan->hold, .record = plan->record};
    return copy_items(kept, plan) ? GD_OK : gd_fail(err, GD_ENOMEM, "the fake is out of memory");
}

void fake_plans_free(struct fake_plan *plans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free_items(&plans[i]);
    }
    free(plans);
}

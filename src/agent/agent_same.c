// SPDX-License-Identifier: MIT
/*
 * Values that have the elements of others: a view, a transpose, a gradient that was handed on.
 * Programs say so when they tell of them, and none of the figures of an exact plan depends on the
 * shape, so those of the other value are taken. What was seen of a value is remembered for as long
 * as its node is not told of again, within the step; from when somebody is first said to be the
 * same on, so that values that nobody shares cost nothing.
 *
 * What is compared with the step before, or counted from step to step (dead units), belongs to the
 * one value alone and is never taken.
 */
#include <stdlib.h>

#include "agent/agent_source.h"

struct agent_seen {
    uint64_t begun;  /* agent.begun */
    uint64_t moment; /* at which its node was told of */
    enum gd_dtype dtype;
    int64_t count;
    bool asked; /* of a value that the source is asked for: it may mean something else by it */
    struct gd_stats stats;
};

static bool is_asked(const struct agent *a, const struct agent_watch_item *item)
{
    return agent_asks(a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT);
}

/* Its statistics are those of the elements and nothing else. */
static bool is_of_elements(const struct agent_watch_item *item)
{
    const Gradb__V1__StatsOptions *options = item->message->options;
    return !options || (!options->against_previous && options->dead_steps == 0);
}

/* The item that remembers for all that want the same of that slot; NULL: there is none. */
static struct agent_watch_item *find_twin(const struct agent *a, struct agent_watch_item *item,
                                          const gradb_same *same)
{
    struct agent_watch_item *twin = item->twin;
    if (twin && item->twin_of == a->plan_changes && twin->node == same->node &&
        twin->slot == same->slot) {
        return twin;
    }
    const struct agent_node *node = agent_node_at(a, same->node);
    twin = node ? node->watch : NULL;
    while (twin && (twin->slot != same->slot || !twin->plan->exact ||
                    !agent_options_equal(twin->message->options, item->message->options))) {
        twin = twin->next_of_node;
    }
    item->twin = twin && twin->leader ? twin->leader : twin;
    item->twin_of = a->plan_changes;
    return item->twin;
}

/* What was seen of the value that the item's is said to be the same as, when that was told of last;
 * NULL: nothing, or not enough. */
static const struct agent_seen *find_seen(const struct agent_moment *m,
                                          struct agent_watch_item *item)
{
    const gradb_same *same = item->slot < m->told.count ? &m->told.same[item->slot] : NULL;
    if (!same || same->node == 0 || !is_of_elements(item)) {
        return NULL;
    }
    struct agent_watch_item *twin = find_twin(m->a, item, same);
    if (!twin) {
        return NULL;
    }
    if (!twin->seen) {
        twin->seen = calloc(1, sizeof(*twin->seen)); /* it remembers from now on */
    }
    const struct agent_seen *seen = twin->seen;
    bool there = seen && seen->moment == m->a->nodes[same->node].told &&
                 seen->begun == atomic_load_explicit(&m->a->begun, memory_order_relaxed);
    bool enough = there && (!seen->stats.unknown || (item->only_not_finite && !item->leader));
    return enough ? seen : NULL;
}

bool agent_same_take(const struct agent_moment *m, struct agent_watch_item *item,
                     struct agent_look *ret)
{
    const struct agent_seen *seen = find_seen(m, item);
    const Gradb__V1__StatsOptions *options = item->message->options;
    if (!seen || seen->asked != is_asked(m->a, item) ||
        (seen->asked && options && options->histogram)) { /* which is made from the elements */
        return false;
    }
    ret->located = agent_as_told(m->a, item->node, item->slot, &ret->value);
    if (!ret->located || (!seen->asked && !ret->value.tensor.data && seen->count > 0) ||
        ret->value.tensor.dtype != seen->dtype ||
        gd_tensor_count(&ret->value.tensor) != seen->count) {
        return false;
    }
    ret->code = -1;
    ret->stats = seen->stats;
    ret->remote = seen->asked;
    ret->taken = true;
    return true;
}

void agent_same_keep(const struct agent_moment *m, const struct agent_watch_item *item,
                     const struct agent_look *look)
{
    struct agent_seen *seen = item->leader ? item->leader->seen : item->seen;
    if (!seen || !m->exact || look->code != -1 || !look->located) {
        return;
    }
    seen->begun = atomic_load_explicit(&m->a->begun, memory_order_relaxed);
    seen->moment = m->number;
    seen->dtype = look->value.tensor.dtype;
    seen->count = gd_tensor_count(&look->value.tensor);
    seen->asked = is_asked(m->a, item);
    seen->stats = look->stats;
}

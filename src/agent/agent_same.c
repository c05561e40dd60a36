// SPDX-License-Identifier: MIT
/*
 * Values that share their elements with others: a view, a transpose, a gradient passed through.
 * Programs declare this when they report them. No statistic of an exact plan, or of one that looks
 * early (agent_watch_early), depends on the shape, so the statistics of the other value are reused.
 * They are remembered until the node is reported again within the step, and only from the first
 * declaration on, so that values that nobody shares cost nothing.
 *
 * What is compared with the previous step, or counted from step to step (dead units), belongs to
 * one value alone and is never reused.
 */
#include <stdlib.h>

#include "agent/agent_core.h"
#include "agent/agent_source.h"
#include "agent/agent_tensor.h"
#include "agent/agent_watch.h"

struct agent_seen {
    uint64_t begun;  /* agent.begun */
    uint64_t moment; /* at which its node was reported */
    enum gd_dtype dtype;
    int64_t count;
    bool asked; /* the value came from the source, which may define it differently */
    struct gd_stats stats;
};

static bool is_asked(const struct agent *a, const struct agent_watch_item *item)
{
    return agent_asks(a, item->node, item->slot, GRADB__V1__ITERATION__CURRENT);
}

/* The item that remembers for all that want the same statistics of the slot; NULL: none. */
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
    while (twin && (twin->slot != same->slot || twin->plan->exact != item->plan->exact ||
                    !agent_options_equal(twin->message->options, item->message->options))) {
        twin = twin->next_of_node;
    }
    item->twin = twin && twin->leader ? twin->leader : twin;
    item->twin_of = a->plan_changes;
    return item->twin;
}

/* What was seen of the value declared to be the same, when it was last reported; NULL: nothing, or
 * not enough. */
static const struct agent_seen *find_seen(const struct agent_moment *m,
                                          struct agent_watch_item *item)
{
    const gradb_same *same = item->slot < m->told.count ? &m->told.same[item->slot] : NULL;
    if (!same || same->node == 0 || !agent_item_is_of_elements(item)) {
        return NULL;
    }
    struct agent_watch_item *twin = find_twin(m->a, item, same);
    if (!twin) {
        return NULL;
    }
    if (!twin->seen) {
        twin->seen = calloc(1, sizeof(*twin->seen)); /* remembers from now on */
    }
    const struct agent_seen *seen = twin->seen;
    bool there =
        seen && seen->moment == m->a->nodes[same->node].told && seen->begun == PEEK(m->a->begun);
    bool enough = there && (!seen->stats.unknown || (item->only_not_finite && !item->leader));
    return enough ? seen : NULL;
}

bool agent_same_take(const struct agent_moment *m, struct agent_watch_item *item,
                     struct agent_look *ret)
{
    const struct agent_seen *seen = find_seen(m, item);
    const Gradb__V1__StatsOptions *options = item->message->options;
    if (!seen || seen->asked != is_asked(m->a, item) ||
        (seen->asked && options && options->histogram)) { /* a histogram needs the elements */
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
    seen->begun = PEEK(m->a->begun);
    seen->moment = m->number;
    seen->dtype = look->value.tensor.dtype;
    seen->count = gd_tensor_count(&look->value.tensor);
    seen->asked = is_asked(m->a, item);
    seen->stats = look->stats;
}

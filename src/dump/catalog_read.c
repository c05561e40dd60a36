// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "dump/catalog_impl.h"

#define MAX_CONSUMERS 64 /* consumers of one operator that are searched for its output */

/* ---- sorting --------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const struct kept_value *x = a, *y = b;

    if (x->of.step != y->of.step) {
        return x->of.step < y->of.step ? -1 : 1;
    }
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    if (x->of.node != y->of.node) {
        return x->of.node < y->of.node ? -1 : 1;
    }
    if (x->of.slot != y->of.slot) {
        return x->of.slot < y->of.slot ? -1 : 1;
    }
    if (x->of.time != y->of.time) {
        return x->of.time < y->of.time ? -1 : 1;
    }
    return (x->number > y->number) - (x->number < y->number);
}

static int compare_steps(const void *a, const void *b)
{
    const struct gd_catalog_step *x = a, *y = b;

    return (x->step > y->step) - (x->step < y->step);
}

static int compare_reasons(const void *a, const void *b)
{
    const struct kept_reason *x = a, *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

static int compare_scalars(const void *a, const void *b)
{
    const struct gd_catalog_scalar *x = a, *y = b;

    return x->step != y->step ? x->step < y->step ? -1 : 1 : strcmp(x->name, y->name);
}

static int compare_events(const void *a, const void *b)
{
    const struct gd_catalog_event *x = a, *y = b;

    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    return x->node != y->node ? x->node < y->node ? -1 : 1 : strcmp(x->text, y->text);
}

static void sort_list(void *list, size_t count, size_t size,
                      int (*compare)(const void *, const void *))
{
    if (count > 1) {
        qsort(list, count, size, compare);
    }
}

static uint32_t order_of(const struct gd_graph *graph, gd_node_id node)
{
    struct gd_node_info info;

    /* nodes that do not run existed before the step */
    return gd_graph_node(graph, node, &info) && info.order != GD_NO_ORDER ? info.order + 1 : 0;
}

static int collect_steps(struct gd_catalog *catalog, struct gd_err *err)
{
    size_t kept = 0, at = 0;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < catalog->value_count; i++) {
        rc = gd_catalog_add_step(catalog, catalog->values[i].of.step, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    sort_list(catalog->steps, catalog->step_count, sizeof(*catalog->steps), compare_steps);
    for (size_t i = 0; i < catalog->step_count; i++) {
        if (kept == 0 || catalog->steps[kept - 1].step != catalog->steps[i].step) {
            catalog->steps[kept++] = catalog->steps[i];
        }
    }
    catalog->step_count = kept;
    for (size_t i = 0; i < catalog->value_count; i++) {
        while (at < kept && catalog->steps[at].step < catalog->values[i].of.step) {
            at++;
        }
        if (at < kept && catalog->steps[at].step == catalog->values[i].of.step) {
            catalog->steps[at].values++;
        }
    }
    return GD_OK;
}

static int compare_graph_steps(const void *a, const void *b)
{
    const struct graph_step *x = a, *y = b;

    if (x->subgraph != y->subgraph) {
        return x->subgraph < y->subgraph ? -1 : 1;
    }
    return (x->step > y->step) - (x->step < y->step);
}

static size_t unique_graph_steps(struct graph_step *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || compare_graph_steps(&list[kept - 1], &list[i]) != 0) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

/* Values are sorted by step, so consecutive values seldom change graph. */
static int collect_graph_steps(struct gd_catalog *catalog, struct gd_err *err)
{
    struct graph_step *list;
    size_t count = 0;

    if (!gd_graph_is_qualified(catalog->graph)) {
        return GD_OK;
    }
    list = malloc((catalog->value_count + 1) * sizeof(*list));
    if (!list) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < catalog->value_count; i++) {
        const struct gd_catalog_value *value = &catalog->values[i].of;
        struct gd_node_info info;
        struct graph_step one = {.step = value->step};

        if (value->step == GD_EVERY_STEP || !gd_graph_node(catalog->graph, value->node, &info)) {
            continue;
        }
        one.subgraph = info.subgraph;
        if (count == 0 || compare_graph_steps(&list[count - 1], &one) != 0) {
            list[count++] = one;
        }
    }
    sort_list(list, count, sizeof(*list), compare_graph_steps);
    catalog->graph_steps = list;
    catalog->graph_step_count = unique_graph_steps(list, count);
    return GD_OK;
}

void gd_catalog_sort_scalars(struct gd_catalog *catalog)
{
    sort_list(catalog->scalars, catalog->scalar_count, sizeof(*catalog->scalars), compare_scalars);
}

int gd_catalog_sort(struct gd_catalog *catalog, struct gd_err *err)
{
    int rc = gd_graph_commit(catalog->graph, err);

    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; i < catalog->value_count; i++) {
        catalog->values[i].order = order_of(catalog->graph, catalog->values[i].of.node);
    }
    sort_list(catalog->values, catalog->value_count, sizeof(*catalog->values), compare_values);
    sort_list(catalog->reasons, catalog->reason_count, sizeof(*catalog->reasons), compare_reasons);
    gd_catalog_sort_scalars(catalog);
    sort_list(catalog->events, catalog->event_count, sizeof(*catalog->events), compare_events);
    rc = collect_steps(catalog, err);
    return rc != GD_OK ? rc : collect_graph_steps(catalog, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

const struct gd_catalog_step *gd_catalog_steps(const struct gd_catalog *catalog, size_t *count)
{
    *count = catalog->step_count;
    return catalog->steps;
}

/* The first of the graph's steps that is not before `step`. */
static size_t graph_step_from(const struct gd_catalog *catalog, uint32_t subgraph, int64_t step)
{
    struct graph_step key = {subgraph, step};
    size_t low = 0, high = catalog->graph_step_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_graph_steps(&catalog->graph_steps[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool gd_catalog_has_graph(const struct gd_catalog *catalog, uint32_t subgraph, int64_t step)
{
    size_t at = graph_step_from(catalog, subgraph, step);

    return catalog->graph_step_count == 0 ||
           (at < catalog->graph_step_count && catalog->graph_steps[at].subgraph == subgraph &&
            catalog->graph_steps[at].step == step);
}

size_t gd_catalog_graph_steps(const struct gd_catalog *catalog, uint32_t subgraph, int64_t *first,
                              int64_t *last)
{
    size_t from = graph_step_from(catalog, subgraph, INT64_MIN);
    size_t end = graph_step_from(catalog, subgraph + 1, INT64_MIN);

    if (end > from) {
        *first = catalog->graph_steps[from].step;
        *last = catalog->graph_steps[end - 1].step;
    }
    return end - from;
}

int64_t gd_catalog_step_before(const struct gd_catalog *catalog, gd_node_id node, int64_t step)
{
    struct gd_node_info info;
    size_t low = 0, high = catalog->step_count;

    if (catalog->graph_step_count && gd_graph_node(catalog->graph, node, &info)) {
        size_t at = graph_step_from(catalog, info.subgraph, step);

        return at > 0 && catalog->graph_steps[at - 1].subgraph == info.subgraph
                   ? catalog->graph_steps[at - 1].step
                   : GD_EVERY_STEP;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (catalog->steps[middle].step < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? catalog->steps[low - 1].step : GD_EVERY_STEP;
}

/* The first value that is not less than the key. */
static size_t lower_bound(const struct gd_catalog *catalog, const struct kept_value *key)
{
    size_t low = 0, high = catalog->value_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_values(&catalog->values[middle], key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const struct gd_catalog_value *find_in(const struct gd_catalog *catalog,
                                              const struct kept_value *key)
{
    struct kept_value end = *key;
    const struct gd_catalog_value *last;
    size_t at;

    end.of.slot++;
    at = lower_bound(catalog, &end);
    last = at > 0 ? &catalog->values[at - 1].of : NULL;
    return last && last->step == key->of.step && last->node == key->of.node &&
                   last->slot == key->of.slot
               ? last
               : NULL;
}

const struct gd_catalog_value *gd_catalog_find(const struct gd_catalog *catalog, gd_node_id node,
                                               uint32_t slot, int64_t step)
{
    struct kept_value key = {.of = {.node = node, .slot = slot, .step = step, .time = -1e300},
                             .order = order_of(catalog->graph, node)};
    const struct gd_catalog_value *found;

    if (slot == UINT32_MAX) {
        return NULL;
    }
    found = find_in(catalog, &key);
    if (!found && step != GD_EVERY_STEP) {
        key.of.step = GD_EVERY_STEP;
        found = find_in(catalog, &key);
    }
    return found;
}

/* The dumped input that an edge from node:slot leads to; false: none. */
static bool input_of(const struct gd_node_info *consumer, gd_node_id node, uint32_t slot,
                     uint32_t *ret)
{
    uint32_t input = 0;

    for (uint32_t i = 0; i < consumer->input_count; i++) {
        const struct gd_edge *edge = &consumer->inputs[i];

        if (edge->control) {
            continue;
        }
        if (edge->node == node && edge->slot == slot && input < consumer->input_slots) {
            *ret = consumer->output_count - consumer->input_slots + input;
            return true;
        }
        input++;
    }
    return false;
}

const struct gd_catalog_value *gd_catalog_find_given(const struct gd_catalog *catalog,
                                                     const struct gd_graph *graph, gd_node_id node,
                                                     uint32_t slot, int64_t step)
{
    const struct gd_edge *consumers = NULL;
    uint32_t count = gd_graph_consumers(graph, node, &consumers);

    for (uint32_t i = 0; i < count && i < MAX_CONSUMERS; i++) {
        const struct gd_catalog_value *value;
        struct gd_node_info info;
        uint32_t input;

        if (consumers[i].control || !gd_graph_node(graph, consumers[i].node, &info) ||
            !input_of(&info, node, slot, &input)) {
            continue;
        }
        value = gd_catalog_find(catalog, consumers[i].node, input, step);
        if (value) {
            return value;
        }
    }
    return NULL;
}

int gd_catalog_each(const struct gd_catalog *catalog, int64_t step,
                    int (*fn)(void *ctx, const struct gd_catalog_value *value), void *ctx)
{
    struct kept_value key = {.of = {.step = step, .time = -1e300}};
    int rc = 0;

    for (size_t i = lower_bound(catalog, &key);
         rc == GD_OK && i < catalog->value_count && catalog->values[i].of.step == step; i++) {
        rc = fn(ctx, &catalog->values[i].of);
    }
    return rc;
}

const char *gd_catalog_why_not(const struct gd_catalog *catalog, gd_node_id node)
{
    struct kept_reason key = {.node = node};
    const struct kept_reason *found = catalog->reason_count
                                          ? bsearch(&key, catalog->reasons, catalog->reason_count,
                                                    sizeof(*catalog->reasons), compare_reasons)
                                          : NULL;

    return found ? found->why : NULL;
}

const struct gd_catalog_scalar *gd_catalog_scalars(const struct gd_catalog *catalog, size_t *count)
{
    *count = catalog->scalar_count;
    return catalog->scalars;
}

const struct gd_catalog_event *gd_catalog_events(const struct gd_catalog *catalog, size_t *count)
{
    *count = catalog->event_count;
    return catalog->events;
}

const struct gd_catalog_fact *gd_catalog_facts(const struct gd_catalog *catalog, size_t *count)
{
    *count = catalog->fact_count;
    return catalog->facts;
}

int gd_catalog_rank(const struct gd_catalog *catalog)
{
    return catalog->rank;
}

const char *gd_catalog_where(const struct gd_catalog *catalog)
{
    return catalog->where;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/tree_hits.h"

#include <stdlib.h>
#include <string.h>

#include "engine/watch/condition.h"
#include "repl/core/hits.h"

static void table_free(struct tree_hit_table *table)
{
    free(table->entry);
    *table = (struct tree_hit_table){0};
}

/* The entry of a number, or the free one where it belongs. */
static struct tree_hit *place_of(const struct tree_hit_table *table, uint32_t key)
{
    size_t at = (size_t)(key * 2654435761u) & (table->capacity - 1);

    while (table->entry[at].key != 0 && table->entry[at].key != key) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->entry[at];
}

static bool table_grow(struct tree_hit_table *table)
{
    struct tree_hit_table more = {.capacity = table->capacity > 0 ? 2 * table->capacity : 64,
                                  .count = table->count};

    more.entry = calloc(more.capacity, sizeof(*more.entry));
    if (!more.entry) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entry[i].key != 0) {
            *place_of(&more, table->entry[i].key) = table->entry[i];
        }
    }
    free(table->entry);
    *table = more;
    return true;
}

/* NULL: out of memory. */
static struct tree_hit *table_at(struct tree_hit_table *table, uint32_t number)
{
    if (2 * (table->count + 1) > table->capacity && !table_grow(table)) {
        return NULL;
    }
    struct tree_hit *hit = place_of(table, number + 1);
    if (hit->key == 0) {
        hit->key = number + 1;
        table->count++;
    }
    return hit;
}

static void add_word(struct tree_hit *at, struct gd_debugger *debugger, const struct gd_hit *hit)
{
    const char *word = hits_abbr(debugger, hit);
    bool unclear = hit->error != 0;

    for (int i = 0; i < TREE_HIT_WORDS; i++) {
        if (!at->word[i]) {
            at->word[i] = word;
            at->unclear[i] = unclear;
            return;
        }
        if (at->unclear[i] == unclear && strcmp(at->word[i], word) == 0) {
            return;
        }
    }
}

static void add_hit(struct tree_hits *hits, const struct gd_session *session,
                    const struct gd_hit *hit)
{
    struct gd_node_info info;
    struct gd_scope_info scope;

    if (hit->node == GD_NO_NODE || !gd_graph_node(session->graph, hit->node, &info)) {
        return;
    }
    struct tree_hit *at = table_at(&hits->node, hit->node);
    if (!at) {
        return;
    }
    at->count++;
    add_word(at, session->debugger, hit);
    for (gd_scope_id s = info.scope; s != 0 && gd_graph_scope(session->graph, s, &scope);
         s = scope.parent) {
        struct tree_hit *below = table_at(&hits->scope, s);
        if (!below) {
            return;
        }
        below->count++;
    }
}

/* The index of the stop's first hit among the kept ones. */
static size_t first_of_stop(const struct gd_session *session)
{
    size_t first = session->hit_count;

    while (first > 0 && session->hits[first - 1].stop_sequence >= session->stop.sequence) {
        first--;
    }
    return first;
}

void tree_hits_update(struct tree_hits *hits, struct gd_session *session)
{
    if (!session) {
        tree_hits_free(hits);
        return;
    }
    uint64_t all = session->hits_dropped + session->hit_count;
    size_t first =
        hits->seen > session->hits_dropped ? (size_t)(hits->seen - session->hits_dropped) : 0;
    if (hits->session != session || hits->sequence != session->stop.sequence ||
        hits->generation != session->graph_generation || hits->taken != session->hits_generation ||
        all < hits->seen) {
        tree_hits_free(hits);
        hits->session = session;
        hits->sequence = session->stop.sequence;
        hits->generation = session->graph_generation;
        hits->taken = session->hits_generation;
        first = first_of_stop(session);
    }
    for (size_t i = first; i < session->hit_count; i++) {
        if (session->hits[i].stop_sequence == session->stop.sequence) {
            add_hit(hits, session, &session->hits[i]);
        }
    }
    hits->seen = all;
}

void tree_hits_free(struct tree_hits *hits)
{
    table_free(&hits->node);
    table_free(&hits->scope);
    *hits = (struct tree_hits){0};
}

const struct tree_hit *tree_hits_of_node(const struct tree_hits *hits, gd_node_id node)
{
    const struct tree_hit *at = hits->node.capacity > 0 ? place_of(&hits->node, node + 1) : NULL;
    return at && at->key != 0 ? at : NULL;
}

uint32_t tree_hits_below(const struct tree_hits *hits, gd_scope_id scope)
{
    return hits->scope.capacity > 0 ? place_of(&hits->scope, scope + 1)->count : 0;
}

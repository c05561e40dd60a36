// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/hit_index.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 64 /* a power of two */

static uint64_t hash_of(const struct gd_hit *hit)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uint64_t parts[3] = {(uint64_t)hit->step, (uint64_t)hit->watchpoint << 32 | hit->slot,
                         hit->node};

    for (int i = 0; i < 3; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    for (const char *p = hit->node == GD_NO_NODE ? hit->node_name : ""; *p; p++) {
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

static bool is_same(const struct gd_hit *a, const struct gd_hit *b)
{
    return a->watchpoint == b->watchpoint && a->step == b->step && a->node == b->node &&
           a->slot == b->slot && (a->node != GD_NO_NODE || strcmp(a->node_name, b->node_name) == 0);
}

/* NULL: it was dropped. */
static struct gd_hit *hit_of(const struct gd_session *session, uint64_t number)
{
    uint64_t dropped = session->hits_dropped;

    return number > dropped && number <= dropped + session->hit_count
               ? &session->hits[number - dropped - 1]
               : NULL;
}

struct gd_hit *gd_hit_index_find(const struct gd_hit_index *index, const struct gd_session *session,
                                 const struct gd_hit *hit)
{
    size_t mask = index->cap - 1;

    for (size_t at = hash_of(hit) & mask; index->cap > 0 && index->number[at] > 0;
         at = (at + 1) & mask) {
        struct gd_hit *there = hit_of(session, index->number[at]);

        if (there && is_same(there, hit)) {
            return there;
        }
    }
    return NULL;
}

static void put_hit(struct gd_hit_index *index, const struct gd_hit *hit, uint64_t number)
{
    size_t mask = index->cap - 1, at = hash_of(hit) & mask;

    while (index->number[at] > 0) {
        at = (at + 1) & mask;
    }
    index->number[at] = number;
    index->used++;
}

/* Indexes the kept ones; dropped ones are gone. */
static bool refill_index(struct gd_hit_index *index, const struct gd_session *session,
                         uint64_t before)
{
    size_t cap = LEAST;

    while (cap < session->hit_count * 4) {
        cap *= 2;
    }
    uint64_t *number = calloc(cap, sizeof(*number));
    if (!number) {
        return false;
    }
    free(index->number);
    *index = (struct gd_hit_index){.number = number, .cap = cap};
    for (size_t i = 0; i < session->hit_count; i++) {
        if (session->hits_dropped + i + 1 < before) {
            put_hit(index, &session->hits[i], session->hits_dropped + i + 1);
        }
    }
    return true;
}

void gd_hit_index_add(struct gd_hit_index *index, const struct gd_session *session,
                      const struct gd_hit *hit)
{
    uint64_t number = session->hits_dropped + (uint64_t)(hit - session->hits) + 1;

    if (index->used * 2 < index->cap || refill_index(index, session, number)) {
        put_hit(index, hit, number);
    }
}

void gd_hit_index_rebuild(struct gd_hit_index *index, const struct gd_session *session)
{
    if (index->cap > 0 && !refill_index(index, session, UINT64_MAX)) {
        gd_hit_index_free(index);
    }
}

void gd_hit_index_free(struct gd_hit_index *index)
{
    free(index->number);
    *index = (struct gd_hit_index){.cap = 0};
}

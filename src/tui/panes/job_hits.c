// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/job_hits.h"
#include "base/grow.h"

#include <stdlib.h>

#include "engine/ranks.h"

/* A job with one process counts as a single session. */
static const struct gd_ranks *job_of(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);

    return ranks && gd_ranks_world_size(ranks) > 1 ? ranks : NULL;
}

static const struct gd_session *find_member(const struct job_hits *hits,
                                            const struct gd_session *current, int rank)
{
    return hits->ranks ? gd_ranks_member(hits->ranks, rank) : current;
}

bool job_hits_are_of(const struct job_hits *hits, const struct gd_session *current)
{
    const struct gd_ranks *ranks = job_of(current);

    if (hits->rank_count == 0 || ranks != hits->ranks) {
        return false;
    }
    return ranks || hits->order[0].session == current->number;
}

void job_hits_free(struct job_hits *hits)
{
    for (int i = 0; i < hits->rank_count; i++) {
        hits_order_free(&hits->order[i]);
    }
    free(hits->order);
    free(hits->place);
    *hits = (struct job_hits){.ranks = NULL};
}

/* Allocates one order per rank; false: out of memory. */
static bool begin_orders(struct job_hits *hits, const struct gd_session *session)
{
    const struct gd_ranks *ranks = job_of(session);
    int count = ranks ? gd_ranks_world_size(ranks) : 1;

    if (hits->ranks == ranks && hits->rank_count == count) {
        return true;
    }
    job_hits_free(hits);
    hits->order = calloc((size_t)count, sizeof(*hits->order));
    hits->rank_count = hits->order ? count : 0;
    hits->ranks = ranks;
    return hits->order != NULL;
}

/* The first step whose hits have changed. */
static int64_t changed_step(const struct hits_order *order, size_t from, int64_t least)
{
    int64_t step = from < order->count ? order->place[from].step : INT64_MAX;

    return step < least ? step : least;
}

static bool make_room(struct job_hits *hits)
{
    size_t count = 0;

    for (int rank = 0; rank < hits->rank_count; rank++) {
        count += hits->order[rank].count;
    }
    struct job_hits_place *places =
        gd_grow_to(hits->place, count, &hits->capacity, sizeof(*places));
    if (!places) {
        return false;
    }
    hits->place = places;
    return true;
}

static int by_step(const void *a, const void *b)
{
    const struct job_hits_place *x = a, *y = b;

    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Rebuilds the places of this step and later ones. Returns the first of them. */
static size_t merge_from(struct job_hits *hits, int64_t step)
{
    while (hits->count > 0 && hits->place[hits->count - 1].step >= step) {
        hits->count--;
    }
    size_t first = hits->count;
    for (int rank = 0; rank < hits->rank_count; rank++) {
        const struct hits_order *order = &hits->order[rank];
        size_t at = order->count;
        while (at > 0 && order->place[at - 1].step >= step) {
            at--;
        }
        for (; at < order->count; at++) {
            hits->place[hits->count++] = (struct job_hits_place){rank, at, order->place[at].step};
        }
    }
    if (hits->rank_count > 1 && hits->count > first) {
        qsort(hits->place + first, hits->count - first, sizeof(*hits->place), by_step);
    }
    return first;
}

bool job_hits_update(struct job_hits *hits, const struct gd_session *session, int watchpoint,
                     size_t *from)
{
    int64_t step = INT64_MAX;
    bool changed = false;

    if (!begin_orders(hits, session)) {
        return false;
    }
    for (int rank = 0; rank < hits->rank_count; rank++) {
        const struct gd_session *of = find_member(hits, session, rank);
        struct hits_order *order = &hits->order[rank];
        size_t before = order->count, first = 0;
        if (of && hits_order_update(order, of, watchpoint, &first)) {
            changed = true;
            step =
                order->count < before || first == 0 ? INT64_MIN : changed_step(order, first, step);
        }
    }
    if (!changed) {
        return false;
    }
    if (!make_room(hits)) {
        job_hits_free(hits); /* start over */
        return false;
    }
    *from = merge_from(hits, step);
    return true;
}

const struct gd_session *job_hits_session(const struct job_hits *hits,
                                          const struct gd_session *current, size_t place)
{
    if (!current || place >= hits->count || !job_hits_are_of(hits, current)) {
        return NULL;
    }
    int rank = hits->place[place].rank;
    const struct gd_session *session = find_member(hits, current, rank);

    return session && session->number == hits->order[rank].session ? session : NULL;
}

const struct gd_hit *job_hits_at(const struct job_hits *hits, const struct gd_session *current,
                                 size_t place)
{
    const struct gd_session *session = job_hits_session(hits, current, place);

    if (!session) {
        return NULL;
    }
    const struct hits_order *order = &hits->order[hits->place[place].rank];
    uint64_t number = order->place[hits->place[place].place].number;
    bool kept =
        number > session->hits_dropped && number <= session->hits_dropped + session->hit_count;

    return kept ? &session->hits[number - session->hits_dropped - 1] : NULL;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* A session's list of hits: bounded and, in a record that can go back, without duplicates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/session_impl.h"
#include "engine/watch/watchpoint.h"

#define LEAST_INDEX 64 /* entries; a smaller index is not cleaned up */

/* Makes room for one more hit; at the limit, the oldest eighth is dropped. */
static struct gd_hit *hit_slot(struct gd_session *session)
{
    uint64_t max = session->debugger->settings.max_hits;

    if (session->hit_count >= max) {
        size_t out = session->hit_count - (size_t)(max - max / 8);

        out = out ? out : 1;
        if (out > session->hit_count) {
            return NULL;
        }
        session->hits_dropped += out;
        session->hit_count -= out;
        memmove(session->hits, session->hits + out, session->hit_count * sizeof(*session->hits));
        if (max == 0) {
            return NULL;
        }
    }
    return gd_grow_list(&session->hits, session->hit_count, &session->impl->hit_cap,
                        sizeof(*session->hits))
               ? &session->hits[session->hit_count++]
               : NULL;
}

/* A process reports only the wire number, which several conditions share. */
static const struct gd_condition *kind_of(const struct gd_session *session,
                                          const struct gd_hit *hit)
{
    const struct gd_watchpoint *watch =
        hit->kind ? NULL : gd_watchpoint_at(session->debugger, hit->watchpoint);

    if (watch && watch->condition && watch->condition->wire == hit->condition) {
        return watch->condition;
    }
    return hit->kind;
}

/* Fills in the hit's place in this session. */
static void complete_hit(struct gd_session *session, struct gd_hit *hit)
{
    const struct gd_watchpoint *watch = gd_watchpoint_at(session->debugger, hit->watchpoint);
    struct gd_node_info info;

    hit->node_name[sizeof(hit->node_name) - 1] = '\0';
    hit->kind = kind_of(session, hit);
    hit->once = watch && watch->temporary && !hit->error;
    if (hit->param_count < 0 || hit->param_count > GD_MAX_HIT_PARAMS) {
        hit->param_count = 0;
    }
    if (hit->is_scalar) {
        hit->node = GD_NO_NODE; /* a node may have the name of a metric */
    } else if (hit->node == GD_NO_NODE && hit->node_name[0]) {
        hit->node = gd_graph_lookup_wire(session->graph, hit->node_name, strlen(hit->node_name));
    } else if (!hit->node_name[0]) {
        snprintf(hit->node_name, sizeof(hit->node_name), "%s",
                 gd_graph_name(session->graph, hit->node));
    }
    gd_graph_slot_name(session->graph, hit->node, hit->slot, hit->slot_name);
    hit->frozen = gd_graph_node(session->graph, hit->node, &info) && gd_node_attr(&info, "frozen");
    if (hit->stop_sequence == 0) { /* hits are reported before the stop that they cause */
        hit->stop_sequence = session->stop.sequence + (session->state != GD_STOPPED);
    }
}

/* ---- finding one again ----------------------------------------------------------------------- */

static uint64_t hash_hit(const struct gd_hit *hit)
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

static bool is_same_hit(const struct gd_hit *a, const struct gd_hit *b)
{
    return a->watchpoint == b->watchpoint && a->step == b->step && a->node == b->node &&
           a->slot == b->slot && (a->node != GD_NO_NODE || strcmp(a->node_name, b->node_name) == 0);
}

/* The hit of the same watchpoint, step and tensor; NULL: none is kept. */
static struct gd_hit *find_hit(const struct gd_session *session, const struct gd_hit *hit)
{
    uint64_t hash = hash_hit(hit);
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&session->impl->hit_index, hash, &at, &number);) {
        uint32_t i = number - (uint32_t)session->hits_dropped; /* large: it was dropped */

        if (i < session->hit_count && is_same_hit(&session->hits[i], hit)) {
            return &session->hits[i];
        }
    }
    return NULL;
}

/* Hits are numbered from the first one on. If out of memory a hit is not indexed, and may come
 * twice. */
static void index_hits(struct gd_session *session, size_t from)
{
    struct gd_hash_index *index = &session->impl->hit_index;

    if (index->used > 2 * session->hit_count + LEAST_INDEX) { /* half of them were dropped */
        from = 0;
    }
    if (from == 0) {
        gd_hash_index_deinit(index);
    }
    for (size_t i = from; i < session->hit_count; i++) {
        gd_hash_index_add(index, hash_hit(&session->hits[i]), (uint32_t)(session->hits_dropped + i),
                          NULL);
    }
}

void gd_session_on_hit(struct gd_session *session, const struct gd_hit *hit)
{
    bool goes_back = session->target && (session->target->capabilities & GD_CAN_GOTO) != 0;
    struct gd_hit made = *hit, *kept;

    complete_hit(session, &made);
    session_reach(session, made.step);
    kept = goes_back ? find_hit(session, &made) : NULL;
    if (kept) {
        *kept = made;
    } else {
        kept = hit_slot(session);
        if (!kept) {
            session->hits_dropped++;
            return;
        }
        *kept = made;
        if (goes_back) {
            index_hits(session, session->hit_count - 1);
        }
    }
    session_emit(session, GD_EV_HIT, NULL, kept);
}

struct gd_hit *session_take_hits(struct gd_session *session, size_t *count)
{
    size_t kept = 0;

    *count = 0;
    for (size_t i = 0; i < session->hit_count; i++) {
        *count += session->hits[i].step == session->stop.step;
    }
    struct gd_hit *taken = *count ? malloc(*count * sizeof(*taken)) : NULL;
    if (!taken) {
        return NULL;
    }
    *count = 0;
    for (size_t i = 0; i < session->hit_count; i++) {
        if (session->hits[i].step == session->stop.step) {
            taken[(*count)++] = session->hits[i];
        } else {
            session->hits[kept++] = session->hits[i];
        }
    }
    session->hit_count = kept;
    session->hits_generation++;
    if (session->impl->hit_index.cap > 0) {
        index_hits(session, 0);
    }
    return taken;
}

void session_put_back_hit(struct gd_session *session, const struct gd_hit *hit)
{
    struct gd_hit *slot = hit_slot(session);

    if (!slot) {
        session->hits_dropped++;
        return;
    }
    *slot = *hit;
    if (session->impl->hit_index.cap > 0) {
        index_hits(session, session->hit_count - 1);
    }
}

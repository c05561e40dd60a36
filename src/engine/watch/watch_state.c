// SPDX-License-Identifier: GPL-3.0-or-later
/* Which part of a graph is watched: nodes by their sites, scopes by one pass over the graph. */
#include <stdlib.h>

#include "engine/watch/watch_impl.h"

static bool can_watch(const struct gd_session *session, const struct gd_node_info *info,
                      gd_node_id node)
{
    if (info->kind == GD_NODE_CONSTANT) {
        return false;
    }
    for (uint32_t slot = 0; slot < info->output_count; slot++) {
        if (watching_slot_ok(session, node, slot)) {
            return true;
        }
    }
    return false;
}

enum gd_watch_state gd_watch_node_state(struct gd_session *session, gd_node_id node)
{
    const uint32_t *sites;
    struct gd_node_info info;
    if (!gd_graph_node(session->graph, node, &info) || !can_watch(session, &info, node)) {
        return GD_WATCHED_CANNOT;
    }
    return watching_covers_of(session->watching, node, &sites) ? GD_WATCHED_ALL : GD_WATCHED_NONE;
}

size_t gd_watch_of_node(struct gd_session *session, gd_node_id node, int *ret, size_t max)
{
    const uint32_t *sites = NULL;
    uint32_t count = watching_covers_of(session->watching, node, &sites);
    for (uint32_t i = 0; i < count && i < max; i++) {
        ret[i] = session->watching->covers[sites[i]].number;
    }
    return count;
}

struct tally { /* nodes below a scope */
    uint32_t can, watched;
};

static enum gd_watch_state state_of(const struct tally *tally)
{
    if (!tally->can) {
        return GD_WATCHED_CANNOT;
    }
    if (!tally->watched) {
        return GD_WATCHED_NONE;
    }
    return tally->watched < tally->can ? GD_WATCHED_PART : GD_WATCHED_ALL;
}

/* A scope is created after its parent, so a walk from the last one passes sums up. */
static void tally_scopes(struct gd_session *session, struct tally *tally, uint32_t scopes)
{
    const struct gd_graph *graph = session->graph;
    struct gd_scope_info scope;
    for (gd_node_id node = 0; node < gd_graph_node_limit(graph); node++) {
        struct gd_node_info info;
        const uint32_t *sites;
        if (!gd_graph_node(graph, node, &info) || info.scope >= scopes ||
            !can_watch(session, &info, node)) {
            continue;
        }
        tally[info.scope].can++;
        tally[info.scope].watched += watching_covers_of(session->watching, node, &sites) > 0;
    }
    for (gd_scope_id id = scopes; id-- > 1;) {
        if (!gd_graph_scope(graph, id, &scope) || scope.parent >= id) {
            continue;
        }
        tally[scope.parent].can += tally[id].can;
        tally[scope.parent].watched += tally[id].watched;
    }
}

static bool tally_up(struct gd_watching *w)
{
    struct gd_session *session = w->session;
    uint32_t scopes = gd_graph_scope_limit(session->graph);
    if (w->scope_state && w->state_version == w->version &&
        w->state_generation == session->graph_generation && w->scope_count == scopes) {
        return true;
    }
    struct tally *tally = calloc(scopes, sizeof(*tally));
    unsigned char *state = malloc(scopes);
    if (tally && state) {
        tally_scopes(session, tally, scopes);
        for (uint32_t i = 0; i < scopes; i++) {
            state[i] = (unsigned char)state_of(&tally[i]);
        }
        free(w->scope_state);
        w->scope_state = state;
        w->scope_count = scopes;
        w->state_version = w->version;
        w->state_generation = session->graph_generation;
        state = NULL;
    }
    free(tally);
    free(state);
    return w->scope_state && w->state_version == w->version;
}

enum gd_watch_state gd_watch_scope_state(struct gd_session *session, gd_scope_id scope)
{
    struct gd_watching *w = watching_of(session);
    if (!w || !tally_up(w) || scope >= w->scope_count) {
        return GD_WATCHED_CANNOT;
    }
    return (enum gd_watch_state)w->scope_state[scope];
}

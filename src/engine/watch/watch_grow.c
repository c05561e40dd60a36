// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A graph that grows while the training runs. The training waits for each part of it, and with a
 * watchpoint that is judged as each node runs, a part is one node: rebuilding everything each time
 * would take quadratic time (twenty thousand nodes are common). New nodes come last, in the graph
 * and in everything built from it, so they can simply be appended.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/graph/selector.h"
#include "engine/watch/watch_impl.h"

/* ---- what a watchpoint selects of it ------------------------------------------------------- */

static bool append_node(struct watch_cover *cover, gd_node_id node)
{
    if (!gd_grow_list(&cover->nodes, cover->node_count, &cover->node_cap, sizeof(node))) {
        return false;
    }
    cover->nodes[cover->node_count++] = node;
    return true;
}

/* All nodes that it selects now; those that it selected before must come first. */
static bool resolve_again(struct gd_watching *w, struct watch_cover *cover, gd_node_id first)
{
    gd_node_id *nodes = NULL;
    size_t count = 0, had = cover->node_count;
    struct gd_err err;
    int rc = gd_watchpoint_nodes(cover->watch, w->session, &nodes, &count, &err);
    if (rc == GD_ENOTFOUND && !had) {
        return true; /* it still waits */
    }
    bool ok = rc == GD_OK && count >= had &&
              (!had || memcmp(nodes, cover->nodes, had * sizeof(*nodes)) == 0);
    for (size_t i = had; ok && i < count; i++) {
        ok = nodes[i] >= first && append_node(cover, nodes[i]);
    }
    free(nodes);
    return ok;
}

/* A metric stays a metric, unless a node of that name may be meant. */
static bool grow_scalar(const struct gd_watching *w, const struct watch_cover *cover,
                        gd_node_id first)
{
    struct gd_node_info info;
    for (gd_node_id node = first; gd_graph_node(w->session->graph, node, &info); node++) {
        if (strcmp(info.wire_name, cover->scalar) == 0 ||
            gd_graph_name_holds(info.name, cover->scalar)) {
            return false;
        }
    }
    return true;
}

static bool grow_cover(struct gd_watching *w, struct watch_cover *cover, gd_node_id first)
{
    struct gd_graph *graph = w->session->graph;
    const struct gd_selector *selector = cover->watch->selector;
    struct gd_node_info info;
    if (!selector) {
        return cover->scalar && grow_scalar(w, cover, first);
    }
    bool resolved = cover->node_count > 0;
    for (gd_node_id node = first; node < gd_graph_node_limit(graph); node++) {
        if (!gd_selector_takes_alone(selector, graph, node, resolved)) {
            return resolve_again(w, cover, first);
        }
    }
    for (gd_node_id node = first; node < gd_graph_node_limit(graph); node++) {
        if (gd_selector_matches(selector, graph, node) && gd_graph_node(graph, node, &info) &&
            info.kind != GD_NODE_CONSTANT && info.kind != GD_NODE_COMPILED &&
            !append_node(cover, node)) {
            return false;
        }
    }
    return true;
}

/* ---- sites --------------------------------------------------------------------------------- */

/* Appends the covers of new nodes. `at`: how many nodes of each cover are already there. */
static bool grow_sites(struct gd_watching *w, const size_t *at, uint32_t limit)
{
    size_t total = w->first[w->node_limit];
    for (size_t i = 0; i < w->cover_count; i++) {
        if (watching_has_sites(&w->covers[i])) {
            total += w->covers[i].node_count - at[i];
        }
    }
    uint32_t *first = gd_grow_to(w->first, (size_t)limit + 2, &w->first_cap, sizeof(*first));
    if (!first) {
        return false;
    }
    w->first = first;
    uint32_t *site = gd_grow_to(w->site, total + 1, &w->site_cap, sizeof(*site));
    if (!site || total >= UINT32_MAX) {
        return false;
    }
    w->site = site;
    return true;
}

static void fill_sites(struct gd_watching *w, size_t *at, uint32_t limit)
{
    for (gd_node_id node = w->node_limit; node < limit; node++) {
        uint32_t end = w->first[node];
        for (size_t i = 0; i < w->cover_count; i++) {
            const struct watch_cover *cover = &w->covers[i];
            if (at[i] == cover->node_count || cover->nodes[at[i]] != node) {
                continue;
            }
            at[i]++;
            if (watching_has_sites(cover)) {
                w->site[end++] = (uint32_t)i;
            }
        }
        w->first[node + 1] = end;
    }
    w->node_limit = limit;
}

/* ---- whether it is that simple ------------------------------------------------------------- */

/* The covers are those of the list, and each is judged as values come. */
static bool are_settled(const struct gd_watching *w)
{
    size_t i = 0;
    for (const struct gd_watchpoint *p = w->session->debugger->watchpoints; p; p = p->next) {
        if (!watching_is_judged(p)) {
            continue;
        }
        const struct watch_cover *cover = &w->covers[i++];
        if (i > w->cover_count || cover->watch != p || cover->revision != p->revision ||
            cover->problem ||
            (cover->mode != WATCH_MODE_PLAN && cover->mode != WATCH_MODE_SCALAR)) {
            return false;
        }
    }
    return i == w->cover_count;
}

static bool is_growth(const struct gd_watching *w)
{
    const struct gd_session *session = w->session;
    return session->state == GD_RUNNING && session->target && w->generation && w->first &&
           w->sets && w->changes == gd_graph_changes(session->graph) &&
           w->node_limit <= gd_graph_node_limit(session->graph) && are_settled(w);
}

/* Which of the new nodes are excluded; false: exclusions of older nodes changed. */
static bool grow_excluded(struct gd_watching *w)
{
    unsigned char *now = NULL;
    struct gd_err err;
    uint32_t whole = w->node_limit / 8, rest = w->node_limit % 8;
    if (!w->excluded && !w->session->debugger->excludes) {
        return true;
    }
    if (!w->excluded ||
        excluded_nodes(w->session->debugger, w->session->graph, &now, &err) != GD_OK || !now) {
        return false;
    }
    bool same = memcmp(now, w->excluded, whole) == 0 &&
                ((now[whole] ^ w->excluded[whole]) & ((1U << rest) - 1)) == 0;
    free(w->excluded);
    w->excluded = now;
    return same;
}

bool watching_grow(struct gd_watching *w)
{
    gd_node_id first = w->node_limit;
    uint32_t limit = gd_graph_node_limit(w->session->graph);
    if (!is_growth(w) || !grow_excluded(w)) {
        return false;
    }
    size_t *at = malloc((w->cover_count + 1) * sizeof(*at));
    bool ok = at != NULL;
    for (size_t i = 0; ok && i < w->cover_count; i++) {
        at[i] = w->covers[i].node_count;
        ok = grow_cover(w, &w->covers[i], first);
    }
    ok = ok && grow_sites(w, at, limit);
    if (ok) {
        fill_sites(w, at, limit);
    }
    free(at);
    if (!ok || !watching_extend(w, first)) {
        return false;
    }
    w->generation = w->session->graph_generation;
    return true;
}

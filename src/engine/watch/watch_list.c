// SPDX-License-Identifier: GPL-3.0-or-later
/* Reading the lists: of watchpoints, and of nodes where non-finite values are normal. */
#include <stdlib.h>

#include "engine/graph/selector.h"
#include "engine/watch/watch_impl.h"

struct gd_watchpoint *gd_watchpoint_at(struct gd_debugger *debugger, int number)
{
    struct gd_watchpoint *watch = debugger->watchpoints;
    while (watch && watch->number != number) {
        watch = watch->next;
    }
    return watch;
}

int gd_watchpoint_nodes(const struct gd_watchpoint *watch, struct gd_session *session,
                        gd_node_id **ret, size_t *count, struct gd_err *err)
{
    gd_node_id *nodes = NULL;
    size_t all = 0, kept = 0;
    *ret = NULL;
    *count = 0;
    if (!watch->selector) {
        return GD_OK;
    }
    int rc = gd_selector_resolve(watch->selector, session->graph, &nodes, &all, err);
    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; i < all; i++) {
        struct gd_node_info info;
        if (gd_graph_node(session->graph, nodes[i], &info) && info.kind != GD_NODE_CONSTANT &&
            info.kind != GD_NODE_COMPILED) {
            nodes[kept++] = nodes[i];
        }
    }
    if (kept == 0 && all > 0 && gd_graph_is_compiled(session->graph, nodes[0], err)) {
        free(nodes);
        return GD_ENODATA;
    }
    *ret = nodes;
    *count = kept;
    return GD_OK;
}

void gd_watch_tally(const struct gd_debugger *debugger, struct gd_watch_tally *ret)
{
    *ret = (struct gd_watch_tally){.watchpoints = 0};
    for (const struct gd_watchpoint *w = debugger->watchpoints; w; w = w->next) {
        ret->watchpoints++;
        ret->checks += w->checks;
        ret->hits += w->hits;
        ret->unclear += w->unclear;
        ret->errors |= w->unclear_errors;
    }
}

struct gd_watch_tally gd_watch_tally_since(const struct gd_debugger *debugger,
                                           const struct gd_watch_tally *before)
{
    struct gd_watch_tally now;

    gd_watch_tally(debugger, &now);
    now.checks -= now.checks < before->checks ? now.checks : before->checks;
    now.hits -= now.hits < before->hits ? now.hits : before->hits;
    now.unclear -= now.unclear < before->unclear ? now.unclear : before->unclear;
    now.errors = now.unclear ? now.errors : 0;
    return now;
}

const char *gd_exclude_at(const struct gd_debugger *debugger, size_t index)
{
    const struct gd_exclude *exclude = debugger->excludes;
    while (exclude && index-- > 0) {
        exclude = exclude->next;
    }
    return exclude ? exclude->where : NULL;
}

int excluded_nodes(struct gd_debugger *debugger, struct gd_graph *graph, unsigned char **ret,
                   struct gd_err *err)
{
    size_t size = (size_t)gd_graph_node_limit(graph) / 8 + 1;
    *ret = NULL;
    if (!debugger->excludes) {
        return GD_OK;
    }
    unsigned char *bits = calloc(size, 1);
    if (!bits) {
        return gd_fail_nomem(err);
    }
    for (const struct gd_exclude *e = debugger->excludes; e; e = e->next) {
        gd_node_id *nodes = NULL;
        size_t count = 0;
        int rc = gd_selector_resolve(e->selector, graph, &nodes, &count, err);
        if (rc == GD_ENOMEM) {
            free(bits);
            return rc;
        }
        for (size_t i = 0; rc == GD_OK && i < count;
             i++) { /* others may come with the next graph */
            bits[nodes[i] / 8] |= (unsigned char)(1U << (nodes[i] % 8));
        }
        free(nodes);
    }
    *ret = bits;
    return GD_OK;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* lockstep: matching the nodes of two trainings. */
#include "repl/compare/lockstep_impl.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/watchpoint.h"

void lockstep_nodes_free(struct lockstep *l)
{
    free(l->nodes.of_b);
    free(l->nodes.of_a);
    free(l->nodes.chosen);
    free(l->nodes.seen);
    l->nodes = (struct lockstep_nodes){.of_b = NULL};
}

static int mark_node(struct lockstep *l, const struct gd_selector *selector, struct gd_err *err)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = gd_selector_resolve(selector, l->b->graph, &nodes, &count, err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        l->nodes.chosen[nodes[i]] = true;
    }
    free(nodes);
    return rc;
}

/* The requested nodes; else the watched ones; else all. */
static int choose_nodes(struct lockstep *l, struct gd_err *err)
{
    int rc = GD_OK;

    l->narrow = l->selector != NULL;
    if (l->selector) {
        return mark_node(l, l->selector, err);
    }
    for (const struct gd_watchpoint *w = l->call->debugger->watchpoints; rc == GD_OK && w;
         w = w->next) {
        if (w->selector && w->enabled && !w->event) {
            l->narrow = true;
            rc = mark_node(l, w->selector, NULL) == GD_ENOMEM ? gd_fail_nomem(err) : GD_OK;
        }
    }
    if (!l->narrow) {
        memset(l->nodes.chosen, true, l->nodes.limit_b);
    }
    return rc;
}

static void take_matches(struct lockstep *l, const struct gd_table *a, const struct gd_table *b,
                         const struct gd_matching *matching)
{
    for (size_t i = 0; i < matching->count; i++) {
        const struct gd_match *m = &matching->match[i];
        gd_node_id of_a, of_b;

        if (m->a == UINT32_MAX || m->b == UINT32_MAX) {
            continue;
        }
        of_a = a->unit[m->a].node;
        of_b = b->unit[m->b].node;
        if (of_a < l->nodes.limit_a && of_b < l->nodes.limit_b) {
            l->nodes.of_b[of_b] = of_a;
            l->nodes.of_a[of_a] = of_b;
        }
    }
}

static int match_graphs(struct lockstep *l, struct gd_err *err)
{
    struct gd_match_options options = {.map = l->options.map,
                                       .last = l->options.last < GD_HOW_RULES ? l->options.last
                                                                              : GD_HOW_RULES};
    struct side side_a = {.kind = SIDE_LIVE, .session = l->a, .label = l->label_a};
    struct side side_b = {.kind = SIDE_LIVE, .session = l->b, .label = l->label_b};
    struct gd_table a, b;
    struct gd_matching matching;
    int rc = side_load(l->call, &side_a, 0, -1, &a, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = side_load(l->call, &side_b, 0, -1, &b, err);
    if (rc == GD_OK) {
        rc = gd_match_tables(&a, &b, &options, &matching, err);
        if (rc == GD_OK) {
            take_matches(l, &a, &b, &matching);
            gd_matching_free(&matching);
        }
        gd_table_deinit(&b);
    }
    gd_table_deinit(&a);
    return rc;
}

static gd_node_id *no_nodes(uint32_t count)
{
    gd_node_id *ret = malloc(((size_t)count + 1) * sizeof(*ret));

    for (uint32_t i = 0; ret && i <= count; i++) {
        ret[i] = GD_NO_NODE;
    }
    return ret;
}

static int begin_nodes(struct lockstep *l, struct gd_err *err)
{
    struct lockstep_nodes *n = &l->nodes;

    n->limit_a = gd_graph_node_limit(l->a->graph);
    n->limit_b = gd_graph_node_limit(l->b->graph);
    n->generation_a = l->a->graph_generation;
    n->generation_b = l->b->graph_generation;
    n->of_b = no_nodes(n->limit_b);
    n->of_a = no_nodes(n->limit_a);
    n->chosen = calloc((size_t)n->limit_b + 1, sizeof(*n->chosen));
    n->seen = calloc((size_t)n->limit_b + 1, sizeof(*n->seen));
    if (!n->of_b || !n->of_a || !n->chosen || !n->seen) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the nodes of two graphs");
    }
    return GD_OK;
}

int lockstep_match(struct lockstep *l, bool new_step, struct gd_err *err)
{
    const struct lockstep_nodes *n = &l->nodes;
    uint32_t had = new_step ? 0 : n->limit_b;

    if (n->of_b && n->generation_a == l->a->graph_generation &&
        n->generation_b == l->b->graph_generation) {
        memset(l->nodes.seen, false, new_step ? n->limit_b : 0);
        return GD_OK;
    }
    bool *seen = l->nodes.seen;
    l->nodes.seen = NULL;
    lockstep_nodes_free(l);
    int rc = begin_nodes(l, err);
    if (rc == GD_OK && seen) {
        memcpy(l->nodes.seen, seen, had < n->limit_b ? had : n->limit_b);
    }
    free(seen);
    rc = rc == GD_OK ? choose_nodes(l, err) : rc;
    return rc == GD_OK ? match_graphs(l, err) : rc;
}

gd_node_id lockstep_partner_of_b(const struct lockstep *l, gd_node_id node)
{
    const char *name = gd_graph_name(l->b->graph, node);

    return node < l->nodes.limit_b ? l->nodes.of_b[node]
                                   : gd_graph_lookup(l->a->graph, name, strlen(name));
}

gd_node_id lockstep_partner_of_a(const struct lockstep *l, gd_node_id node)
{
    const char *name = gd_graph_name(l->a->graph, node);

    return node < l->nodes.limit_a ? l->nodes.of_a[node]
                                   : gd_graph_lookup(l->b->graph, name, strlen(name));
}

bool lockstep_is_chosen(const struct lockstep *l, gd_node_id node_b)
{
    return node_b < l->nodes.limit_b ? l->nodes.chosen[node_b] : !l->narrow;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/nearby.h"

#include <string.h>

#define MOST_AT_CENTRE 40    /* neighbours of the centre on each side */
#define MOST_ELSEWHERE 8     /* of any other node */
#define MOST_OPERANDS  4096  /* of one node that are examined */
#define MOST_INSIDE    20000 /* nodes in folded scopes whose edges are followed */

struct collect {
    struct gd_graph *graph;
    const struct gd_nearby_wish *wish;
    struct gd_nearby *ret;
    uint32_t inside; /* nodes of folded scopes looked at so far */
};

static bool is_around(const struct gd_graph *graph, gd_scope_id outer, gd_scope_id inner)
{
    struct gd_scope_info info;

    while (inner != outer && gd_graph_scope(graph, inner, &info) && info.parent != GD_NO_SCOPE) {
        inner = info.parent;
    }
    return inner == outer;
}

static bool is_open(const struct gd_graph *graph, const struct gd_nearby_wish *wish,
                    gd_scope_id scope)
{
    struct gd_node_info centre;
    int choice = wish->choice ? wish->choice(wish->ctx, scope) : 0;

    if (scope == 0 || wish->whole || choice != 0) {
        return scope == 0 || wish->whole || choice > 0;
    }
    gd_scope_id around = wish->node != GD_NO_NODE && gd_graph_node(graph, wish->node, &centre)
                             ? centre.scope
                             : wish->scope;
    return is_around(graph, scope, around);
}

/* The box of a node: the outermost folded scope around it, or else itself. */
static struct gd_nearby_box box_of(const struct gd_graph *graph, const struct gd_nearby_wish *wish,
                                   gd_node_id node)
{
    struct gd_nearby_box box = {.kind = GD_NEARBY_NODE, .node = node, .scope = GD_NO_SCOPE};
    struct gd_node_info info;
    struct gd_scope_info scope;

    if (!gd_graph_node(graph, node, &info)) {
        return box;
    }
    for (gd_scope_id at = info.scope; at != 0 && gd_graph_scope(graph, at, &scope);
         at = scope.parent) {
        if (!is_open(graph, wish, at)) {
            box = (struct gd_nearby_box){.kind = GD_NEARBY_SCOPE, .node = GD_NO_NODE, .scope = at};
        }
        if (scope.parent == GD_NO_SCOPE) {
            break;
        }
    }
    return box;
}

static int find_box(const struct gd_nearby *nearby, const struct gd_nearby_box *box)
{
    for (int i = 0; i < nearby->box_count; i++) {
        const struct gd_nearby_box *at = &nearby->box[i];
        if (at->kind == box->kind && at->node == box->node && at->scope == box->scope) {
            return i;
        }
    }
    return -1;
}

int gd_nearby_find(const struct gd_graph *graph, const struct gd_nearby_wish *wish,
                   const struct gd_nearby *nearby, gd_node_id node)
{
    struct gd_nearby_box box = box_of(graph, wish, node);
    return find_box(nearby, &box);
}

/* Its number; -1: there is no room. */
static int add_box(struct collect *collect, struct gd_nearby_box box, int distance)
{
    int known = find_box(collect->ret, &box);

    if (known >= 0) {
        return known;
    }
    if (collect->ret->box_count == GD_NEARBY_BOXES) {
        collect->ret->cut = true;
        return -1;
    }
    box.distance = distance;
    collect->ret->box[collect->ret->box_count] = box;
    return collect->ret->box_count++;
}

static void add_edge(struct collect *collect, int from, uint32_t slot, int to, bool control)
{
    struct gd_nearby *ret = collect->ret;
    bool folded = ret->box[from].kind != GD_NEARBY_NODE || ret->box[to].kind != GD_NEARBY_NODE;

    slot = ret->box[from].kind == GD_NEARBY_NODE ? slot : 0;
    for (int i = 0; i < ret->edge_count && folded; i++) {
        if (ret->edge[i].from == from && ret->edge[i].to == to && ret->edge[i].slot == slot) {
            return;
        }
    }
    if (ret->edge_count == GD_NEARBY_EDGES) {
        ret->cut = true;
        return;
    }
    ret->edge[ret->edge_count++] =
        (struct gd_nearby_edge){.from = from, .to = to, .slot = slot, .control = control};
}

/* ---- boxes --------------------------------------------------------------------------------- */

/* The neighbours on one side. Returns how many got no box. */
static uint32_t add_side(struct collect *collect, const struct gd_edge *edges, uint32_t count,
                         int distance)
{
    uint32_t most = distance == 1 ? MOST_AT_CENTRE : MOST_ELSEWHERE;
    uint32_t boxes = 0, missed = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct gd_nearby_box box = box_of(collect->graph, collect->wish, edges[i].node);
        if (edges[i].node == GD_NO_NODE || find_box(collect->ret, &box) >= 0) {
            continue;
        }
        if (i >= MOST_OPERANDS || boxes == most || add_box(collect, box, distance) < 0) {
            missed++;
            continue;
        }
        boxes++;
    }
    return missed;
}

static void add_more(struct collect *collect, int at, uint32_t missed, bool above)
{
    struct gd_nearby *ret = collect->ret;

    if (missed == 0 || ret->box_count == GD_NEARBY_BOXES) {
        ret->cut = ret->cut || missed > 0;
        return;
    }
    int more = ret->box_count++;
    ret->box[more] = (struct gd_nearby_box){.kind = GD_NEARBY_MORE,
                                            .node = GD_NO_NODE,
                                            .scope = GD_NO_SCOPE,
                                            .more = missed,
                                            .distance = ret->box[at].distance + 1};
    add_edge(collect, above ? more : at, 0, above ? at : more, false);
}

/* The neighbours of everything in a folded scope. */
static void add_around(struct collect *collect, gd_scope_id scope, int distance, uint32_t *missed)
{
    struct gd_scope_info info, child;
    struct gd_node_info node;
    const struct gd_edge *consumers = NULL;

    if (!gd_graph_scope(collect->graph, scope, &info)) {
        return;
    }
    for (gd_node_id at = info.first_node; at != GD_NO_NODE && collect->inside++ < MOST_INSIDE;
         at = gd_graph_next_in_scope(collect->graph, at)) {
        uint32_t count = gd_graph_consumers(collect->graph, at, &consumers);
        missed[1] += add_side(collect, consumers, count, distance);
        if (gd_graph_node(collect->graph, at, &node)) {
            missed[0] += add_side(collect, node.inputs, node.input_count, distance);
        }
    }
    for (gd_scope_id at = info.first_child; at != GD_NO_SCOPE && collect->inside < MOST_INSIDE &&
                                            gd_graph_scope(collect->graph, at, &child);
         at = child.next) {
        add_around(collect, at, distance, missed);
    }
}

static void spread_boxes(struct collect *collect)
{
    struct gd_nearby *ret = collect->ret;
    struct {
        int at;
        uint32_t missed[2];
    } more[GD_NEARBY_BOXES];
    int more_count = 0;

    for (int i = 0; i < ret->box_count; i++) {
        struct gd_node_info info;
        const struct gd_edge *consumers = NULL;
        int distance = ret->box[i].distance + 1;
        more[more_count].at = i;
        more[more_count].missed[0] = more[more_count].missed[1] = 0;
        if (ret->box[i].kind == GD_NEARBY_SCOPE && distance == 1) {
            add_around(collect, ret->box[i].scope, distance, more[more_count++].missed);
            collect->inside = 0;
            continue;
        }
        if (ret->box[i].kind != GD_NEARBY_NODE || distance > collect->wish->depth ||
            !gd_graph_node(collect->graph, ret->box[i].node, &info)) {
            continue;
        }
        uint32_t count = gd_graph_consumers(collect->graph, ret->box[i].node, &consumers);
        more[more_count].missed[0] = add_side(collect, info.inputs, info.input_count, distance);
        more[more_count].missed[1] = add_side(collect, consumers, count, distance);
        more_count++;
    }
    ret->cut = false; /* the boxes below say so */
    for (int i = 0; i < more_count; i++) {
        add_more(collect, more[i].at, more[i].missed[0], true);
        add_more(collect, more[i].at, more[i].missed[1], false);
    }
}

/* ---- edges --------------------------------------------------------------------------------- */

static void add_inputs(struct collect *collect, gd_node_id node, int to)
{
    struct gd_node_info info;

    if (!gd_graph_node(collect->graph, node, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.input_count && i < MOST_OPERANDS; i++) {
        if (info.inputs[i].node == GD_NO_NODE) {
            continue;
        }
        int from = gd_nearby_find(collect->graph, collect->wish, collect->ret, info.inputs[i].node);
        if (from >= 0 && from != to) {
            add_edge(collect, from, info.inputs[i].slot, to, info.inputs[i].control);
        }
    }
}

static void add_inputs_below(struct collect *collect, gd_scope_id scope, int to)
{
    struct gd_scope_info info, child;

    if (!gd_graph_scope(collect->graph, scope, &info)) {
        return;
    }
    for (gd_node_id node = info.first_node; node != GD_NO_NODE;
         node = gd_graph_next_in_scope(collect->graph, node)) {
        if (collect->inside++ >= MOST_INSIDE) {
            collect->ret->cut = true;
            return;
        }
        add_inputs(collect, node, to);
    }
    for (gd_scope_id at = info.first_child;
         at != GD_NO_SCOPE && gd_graph_scope(collect->graph, at, &child); at = child.next) {
        if (collect->inside >= MOST_INSIDE) {
            return;
        }
        add_inputs_below(collect, at, to);
    }
}

static void connect_boxes(struct collect *collect)
{
    for (int i = 0; i < collect->ret->box_count; i++) {
        const struct gd_nearby_box *box = &collect->ret->box[i];
        if (box->kind == GD_NEARBY_NODE) {
            add_inputs(collect, box->node, i);
        } else if (box->kind == GD_NEARBY_SCOPE) {
            add_inputs_below(collect, box->scope, i);
        }
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* What is directly in a scope: its scopes and nodes. */
static void add_contents(struct collect *collect, gd_scope_id scope)
{
    struct gd_scope_info info, child;

    if (!gd_graph_scope(collect->graph, scope, &info)) {
        return;
    }
    for (gd_scope_id at = info.first_child;
         at != GD_NO_SCOPE && gd_graph_scope(collect->graph, at, &child); at = child.next) {
        if (is_open(collect->graph, collect->wish, at)) {
            add_contents(collect, at);
        } else {
            add_box(
                collect,
                (struct gd_nearby_box){.kind = GD_NEARBY_SCOPE, .node = GD_NO_NODE, .scope = at},
                0);
        }
        if (collect->ret->cut) {
            return;
        }
    }
    for (gd_node_id node = info.first_node; node != GD_NO_NODE && !collect->ret->cut;
         node = gd_graph_next_in_scope(collect->graph, node)) {
        add_box(collect, box_of(collect->graph, collect->wish, node), 0);
    }
}

int gd_nearby_collect(struct gd_graph *graph, const struct gd_nearby_wish *wish,
                      struct gd_nearby *ret, struct gd_err *err)
{
    struct collect collect = {.graph = graph, .wish = wish, .ret = ret};
    struct gd_node_info info;

    memset(ret, 0, sizeof(*ret));
    if (wish->node != GD_NO_NODE && gd_graph_node(graph, wish->node, &info)) {
        add_box(&collect, box_of(graph, wish, wish->node), 0);
        spread_boxes(&collect);
    } else if (wish->node == GD_NO_NODE) {
        add_contents(&collect, wish->scope);
    }
    if (ret->box_count == 0) {
        return gd_fail(err, GD_ENOTFOUND, "the graph has no such node or scope any more");
    }
    connect_boxes(&collect);
    return GD_OK;
}

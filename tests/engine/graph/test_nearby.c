// SPDX-License-Identifier: GPL-3.0-or-later
/* What is around a node: folded scopes, bounds, cycles, a graph of a million nodes. */
#include "../../unit.h"
#include "engine/graph/nearby.h"

static struct gd_graph *graph;
static struct gd_nearby nearby;

static int set_up(void **state)
{
    return gd_graph_create(0, &graph, NULL);
}

static int tear_down(void **state)
{
    gd_graph_destroy(graph);
    return 0;
}

static gd_node_id add_node(const char *name, uint32_t outputs)
{
    struct gd_output output[4] = {{.dtype = GD_FLOAT32}};
    struct gd_node_desc desc = {.name = name,
                                .type = "Op",
                                .order = GD_NO_ORDER,
                                .outputs = output,
                                .output_count = outputs};
    gd_node_id node;

    assert_ok(gd_graph_add(graph, &desc, &node, NULL));
    return node;
}

static void feed_node(gd_node_id node, const struct gd_edge *edges, uint32_t count)
{
    assert_ok(gd_graph_connect(graph, node, edges, count, NULL));
}

static int choose_scope(const void *ctx, gd_scope_id scope)
{
    const int *choice = ctx; /* {scope, open or folded} */
    return (gd_scope_id)choice[0] == scope ? choice[1] : 0;
}

static void collect_around(gd_node_id node, int depth, const int *choice)
{
    struct gd_nearby_wish wish = {.node = node,
                                  .scope = 0,
                                  .depth = depth,
                                  .choice = choice ? choose_scope : NULL,
                                  .ctx = choice};

    assert_ok(gd_graph_commit(graph, NULL));
    assert_ok(gd_nearby_collect(graph, &wish, &nearby, NULL));
}

static int count_kind(enum gd_nearby_kind kind)
{
    int count = 0;
    for (int i = 0; i < nearby.box_count; i++) {
        count += nearby.box[i].kind == kind;
    }
    return count;
}

static void test_scopes_are_folded(void **state)
{
    gd_node_id x = add_node("other/deep/x", 1), a = add_node("net/a", 1),
               b = add_node("net/in/b", 1);

    feed_node(a, &(struct gd_edge){.node = x}, 1);
    feed_node(b, (struct gd_edge[]){{.node = a}, {.node = a}}, 2);
    collect_around(a, 2, NULL);
    assert_int_equal(nearby.box_count, 3);
    assert_int_equal(count_kind(GD_NEARBY_SCOPE), 2); /* other, not other/deep; net/in */
    assert_int_equal(nearby.edge_count, 2);           /* that into a folded scope once */
    int open[] = {(int)gd_graph_find_scope(graph, "net/in", 6), 1};
    collect_around(a, 2, open);
    assert_int_equal(count_kind(GD_NEARBY_NODE), 2);
    assert_int_equal(nearby.edge_count, 3); /* each operand */
    int folded[] = {(int)gd_graph_find_scope(graph, "net", 3), -1};
    collect_around(a, 2, folded); /* the centre's own scope: its neighbours are seen */
    assert_int_equal(nearby.box_count, 2);
    assert_int_equal(nearby.box[0].kind, GD_NEARBY_SCOPE);
    assert_int_equal(nearby.edge_count, 1);
}

static void test_scope_contents(void **state)
{
    gd_node_id a = add_node("net/a", 1), b = add_node("net/in/b", 1);

    feed_node(b, &(struct gd_edge){.node = a}, 1);
    collect_around(GD_NO_NODE, 1, (int[]){(int)gd_graph_find_scope(graph, "net", 3), 1});
    assert_int_equal(nearby.box_count, 2);
    assert_int_equal(nearby.edge_count, 1);
}

static void test_more_consumers_than_boxes(void **state)
{
    gd_node_id a = add_node("a", 1);
    char name[16];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        feed_node(add_node(name, 1), &(struct gd_edge){.node = a}, 1);
    }
    collect_around(a, 1, NULL);
    assert_int_equal(count_kind(GD_NEARBY_NODE), 41);
    assert_int_equal(count_kind(GD_NEARBY_MORE), 1);
    assert_int_equal(nearby.box[nearby.box_count - 1].more, 60);
    assert_int_equal(nearby.edge_count, 41);
    assert_false(nearby.cut);
}

static void test_cycle_and_itself(void **state)
{
    gd_node_id a = add_node("a", 1), b = add_node("b", 1);

    feed_node(a, (struct gd_edge[]){{.node = b}, {.node = a}, {.node = GD_NO_NODE}}, 3);
    feed_node(b, &(struct gd_edge){.node = a}, 1);
    collect_around(a, 10, NULL);
    assert_int_equal(nearby.box_count, 2);
    assert_int_equal(nearby.edge_count, 2);
}

static void test_large_graph_is_bounded(void **state)
{
    struct gd_edge edge[2];
    char name[48];

    for (uint32_t i = 0; i < 200000; i++) {
        snprintf(name, sizeof(name), "s%u/t%u/n%u", i % 10, i % 100, i);
        gd_node_id node = add_node(name, 1);
        edge[0].node = node > 0 ? node - 1 : GD_NO_NODE;
        edge[1].node = node / 2;
        edge[0].slot = edge[1].slot = 0;
        feed_node(node, edge, node > 0 ? 2 : 0);
    }
    collect_around(100, 10, NULL);
    assert_true(nearby.box_count > 5 && nearby.box_count <= GD_NEARBY_BOXES);
    assert_true(nearby.cut); /* not all nodes of the folded scopes were looked at */
}

static void test_gone(void **state)
{
    struct gd_nearby_wish wish = {.node = 7, .scope = GD_NO_SCOPE, .depth = 1};
    struct gd_err err;

    assert_int_equal(gd_nearby_collect(graph, &wish, &nearby, &err), GD_ENOTFOUND);
}

static const struct CMUnitTest tests[] = {
    TEST(test_scopes_are_folded),         TEST(test_scope_contents),
    TEST(test_more_consumers_than_boxes), TEST(test_cycle_and_itself),
    TEST(test_large_graph_is_bounded),    TEST(test_gone),
};

RUN_TESTS()

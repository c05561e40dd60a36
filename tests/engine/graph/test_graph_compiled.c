// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators inside compiled code. */
#include "../../unit.h"
#include "engine/graph/graph.h"

static void commit_graph(struct gd_graph *graph)
{
    assert_ok(gd_graph_commit(graph, NULL));
}

static int note_id(void *ctx, gd_node_id node)
{
    *(gd_node_id *)ctx = node;
    return GD_OK;
}

/* Compiled nodes are known by their names and to each other only. */
static void test_compiled(void **state)
{
    static const struct {
        const char *name, *type;
        enum gd_node_kind kind;
        uint32_t order;
        int input;
    } parts[] = {
        {"net/weight", "Parameter", GD_NODE_WEIGHT, GD_NO_ORDER, -1},
        {"compiled/f/MatMul", "MatMul", GD_NODE_COMPILED, GD_NO_ORDER, 0},
        {"compiled/f/ReLU", "ReLU", GD_NODE_COMPILED, GD_NO_ORDER, 1},
        {"net/MatMul", "MatMul", GD_NODE_OTHER, 1, 0},
    };
    enum { WEIGHT, MATMUL, RELU, RUNS, PARTS };
    struct gd_graph *graph;
    const struct gd_edge *edges;
    uint32_t count;
    gd_node_id found = GD_NO_NODE;

    assert_ok(gd_graph_create(0, &graph, NULL));
    for (size_t i = 0; i < PARTS; i++) {
        struct gd_attr attr = {GD_COUNTERPART, "unknown"};
        struct gd_node_desc desc = {.name = parts[i].name,
                                    .type = parts[i].type,
                                    .kind = parts[i].kind,
                                    .order = parts[i].order,
                                    .attrs = &attr,
                                    .attr_count = i == MATMUL,
                                    .wire_name = i == RELU ? "Default/ReLU-op0" : NULL};
        struct gd_edge edge = {.node = (gd_node_id)parts[i].input};
        assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
        assert_ok(gd_graph_connect(graph, (gd_node_id)i, &edge, parts[i].input >= 0, NULL));
        commit_graph(graph); /* each one is appended to the index */
    }
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(gd_graph_consumers(graph, WEIGHT, &edges), 1);
        assert_int_equal(edges[0].node, RUNS);
        assert_int_equal(gd_graph_consumers(graph, MATMUL, &edges), 1);
        assert_int_equal(edges[0].node, RELU);
        assert_ok(gd_graph_connect(graph, RUNS, NULL, 0, NULL)); /* the index is built again */
        commit_graph(graph);
        assert_ok(gd_graph_connect(graph, RUNS, &(struct gd_edge){.node = WEIGHT}, 1, NULL));
        commit_graph(graph);
    }
    const gd_node_id *order = gd_graph_execution(graph, &count);
    assert_int_equal(count, 2);
    assert_int_equal(order[0], RUNS);
    assert_int_equal(gd_graph_order(graph, MATMUL), GD_NO_ORDER);
    gd_graph_types(graph, &count);
    assert_int_equal(count, 2); /* Parameter, MatMul */
    gd_graph_search_type(graph, "MatMul", note_id, &found);
    assert_int_equal(found, RUNS);
    assert_ok(gd_graph_find(graph, "MatMul", &found, NULL));
    assert_int_equal(found, RUNS);
    assert_ok(gd_graph_find(graph, "ReLU", &found, NULL));
    assert_int_equal(found, RELU);
    assert_ok(gd_graph_find(graph, "Default/ReLU-op0", &found, NULL));
    assert_int_equal(found, RELU);
    gd_graph_destroy(graph);
}

static void test_set_attr(void **state)
{
    struct gd_graph *graph;
    struct gd_err err = {0};
    struct gd_node_info info;
    struct gd_node_desc desc = {
        .name = "compiled/f/ReLU", .type = "ReLU", .kind = GD_NODE_COMPILED};
    struct gd_attr attr = {GD_COUNTERPART, "net/ReLU"}, more = {"ir name", "Default/ReLU-op0"};

    assert_ok(gd_graph_create(0, &graph, NULL));
    assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    assert_true(gd_graph_is_compiled(graph, 0, &err));
    assert_string_equal(err.text, "compiled/f/ReLU is inside compiled code and has no values");
    assert_ok(gd_graph_set_attr(graph, 0, &attr, NULL));
    assert_ok(gd_graph_set_attr(graph, 0, &more, NULL));
    attr.value = "net/relu/ReLU";
    assert_ok(gd_graph_set_attr(graph, 0, &attr, NULL));
    assert_ok(gd_graph_set_attr(graph, 7, &attr, NULL)); /* there is no such node */
    assert_true(gd_graph_node(graph, 0, &info));
    assert_int_equal(info.attr_count, 2);
    assert_string_equal(gd_node_attr(&info, "ir name"), "Default/ReLU-op0");
    assert_true(gd_graph_is_compiled(graph, 0, &err));
    assert_string_equal(err.text, "compiled/f/ReLU is inside compiled code and has no values; its "
                                  "counterpart: net/relu/ReLU");
    gd_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_compiled),
    cmocka_unit_test(test_set_attr),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../unit.h"
#include "engine/graph/graph.h"
#include "engine/memory/memory_graph.h"

static void test_empty_report_knows_nothing(void **state)
{
    struct gd_memory report;

    gd_memory_init(&report);
    assert_int_equal(gd_memory_sum(&report).bytes, 0);
    assert_int_equal(report.rss, -1);
    assert_int_equal(report.growth_from, -1);
    assert_int_equal(report.peak.bytes, -1);
    gd_memory_sort(&report);
    gd_memory_deinit(&report);
}

static void test_rows_are_copied_and_sorted(void **state)
{
    struct gd_memory report;
    char name[] = "small";
    struct gd_memory_row row = {.name = name, .where = "", .detail = NULL, .bytes = 1, .count = 1};
    struct gd_memory_growth slow = {.name = "slow", .where = "", .holder = "", .per_step = 1};
    struct gd_memory_growth fast = {.name = "fast", .where = "", .holder = "", .per_step = 2};

    gd_memory_init(&report);
    assert_ok(gd_memory_add_node(&report, &row));
    name[0] = 'S';
    row.bytes = 5;
    assert_ok(gd_memory_add_node(&report, &row));
    name[0] = 'T';
    assert_ok(gd_memory_add_node(&report, &row));
    assert_ok(gd_memory_add_growth(&report, &slow));
    assert_ok(gd_memory_add_growth(&report, &fast));
    gd_memory_sort(&report);
    assert_string_equal(report.nodes[0].name, "Small");
    assert_string_equal(report.nodes[1].name, "Tmall");
    assert_string_equal(report.nodes[2].name, "small");
    assert_string_equal(report.nodes[0].detail, "");
    assert_string_equal(report.growth[0].name, "fast");
    gd_memory_deinit(&report);
}

static void test_too_many_rows_are_counted(void **state)
{
    struct gd_memory report;

    gd_memory_init(&report);
    for (int i = 0; i < GD_MEMORY_MAX_ROWS + 3; i++) {
        assert_ok(gd_memory_add_note(&report, ""));
    }
    assert_int_equal(report.note_count, GD_MEMORY_MAX_ROWS);
    assert_int_equal(report.left_out, 3);
    gd_memory_deinit(&report);
}

static void test_kinds_have_names(void **state)
{
    for (int kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        assert_int_equal(gd_memory_kind_of(gd_memory_kind_name((enum gd_memory_kind)kind)), kind);
    }
    assert_int_equal(gd_memory_kind_of("no such kind"), GD_MEMORY_OTHER);
}

static gd_node_id add_node(struct gd_graph *graph, const char *name, enum gd_node_kind kind,
                           enum gd_dtype dtype, int64_t length)
{
    struct gd_output output = {.dtype = dtype, .shape = {.rank = 2, .dim = {length, 3}}};
    struct gd_node_desc desc = {.name = name,
                                .type = "Op",
                                .kind = kind,
                                .outputs = &output,
                                .output_count = 1,
                                .order = GD_NO_ORDER};
    gd_node_id id = GD_NO_NODE;

    assert_ok(gd_graph_add(graph, &desc, &id, NULL));
    return id;
}

static void test_shapes_of_a_graph(void **state)
{
    struct gd_graph *graph = NULL;
    struct gd_memory report;

    assert_ok(gd_graph_create(0, &graph, NULL));
    gd_node_id weight = add_node(graph, "net/weight", GD_NODE_WEIGHT, GD_FLOAT32, 4);
    add_node(graph, "optimizer/m", GD_NODE_PARAMETER, GD_FLOAT16, 4);
    gd_node_id relu = add_node(graph, "net/relu", GD_NODE_ACTIVATION, GD_FLOAT64, 10);
    add_node(graph, "net/unknown", GD_NODE_ACTIVATION, GD_FLOAT32, -1);
    add_node(graph, "net/nothing", GD_NODE_ACTIVATION, GD_FLOAT32, 0);
    assert_ok(gd_graph_connect(graph, relu, &(struct gd_edge){.node = weight}, 1, NULL));
    assert_ok(gd_graph_commit(graph, NULL));
    gd_memory_init(&report);
    assert_ok(gd_memory_of_graph(&report, graph));
    assert_false(report.counted);
    assert_int_equal(report.kind[GD_MEMORY_WEIGHTS].bytes, 48);
    assert_int_equal(report.kind[GD_MEMORY_OPTIMIZER].bytes, 24);
    assert_int_equal(report.kind[GD_MEMORY_ACTIVATIONS].bytes, 240);
    assert_int_equal(gd_memory_sum(&report).count, 3);
    assert_string_equal(report.nodes[0].name, "net/relu");
    assert_string_equal(report.nodes[0].detail, "float64 (10, 3)");
    assert_int_equal(report.note_count, 1);
    assert_string_equal(report.notes[0], "nodes whose shape is unknown: 1");
    gd_memory_deinit(&report);
    gd_graph_destroy(graph);
}

/* Sums of what a graph claims stay in an int64_t. */
static void test_impossible_shapes(void **state)
{
    struct gd_graph *graph = NULL;
    struct gd_memory report;
    char name[16];

    assert_ok(gd_graph_create(0, &graph, NULL));
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "net/op%d", i);
        add_node(graph, name, GD_NODE_ACTIVATION, GD_FLOAT64, INT64_C(1) << 54);
    }
    assert_ok(gd_graph_commit(graph, NULL));
    gd_memory_init(&report);
    assert_ok(gd_memory_of_graph(&report, graph));
    assert_true(gd_memory_sum(&report).bytes > 0);
    assert_int_equal(gd_memory_sum(&report).count, 2);
    assert_string_equal(report.notes[0], "nodes whose shape is unknown: 38");
    gd_memory_deinit(&report);
    gd_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_empty_report_knows_nothing),
    cmocka_unit_test(test_rows_are_copied_and_sorted),
    cmocka_unit_test(test_too_many_rows_are_counted),
    cmocka_unit_test(test_kinds_have_names),
    cmocka_unit_test(test_shapes_of_a_graph),
    cmocka_unit_test(test_impossible_shapes),
};

RUN_TESTS()

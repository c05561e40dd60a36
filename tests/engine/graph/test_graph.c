// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../unit.h"
#include "engine/graph/graph.h"

#define F32(...)                                                                                   \
    {                                                                                              \
        .dtype = GD_FLOAT32, .shape = { __VA_ARGS__ }                                              \
    }

static struct gd_graph *make_graph(size_t max)
{
    struct gd_graph *graph = NULL;

    assert_ok(gd_graph_create(max, &graph, NULL));
    return graph;
}

static gd_node_id add_node(struct gd_graph *graph, const char *name, const char *type)
{
    static const struct gd_output out = F32(2, {3, 4});
    struct gd_node_desc desc = {
        .name = name, .type = type, .outputs = &out, .output_count = 1, .order = GD_NO_ORDER};
    gd_node_id id = GD_NO_NODE;
    struct gd_err err = {0};
    int rc = gd_graph_add(graph, &desc, &id, &err);

    if (rc != GD_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    return id;
}

static void connect_input(struct gd_graph *graph, gd_node_id node, gd_node_id from)
{
    struct gd_edge edge = {.node = from};

    assert_ok(gd_graph_connect(graph, node, &edge, 1, NULL));
}

static void commit_graph(struct gd_graph *graph)
{
    assert_ok(gd_graph_commit(graph, NULL));
}

static void add_subgraph(struct gd_graph *graph, const char *name, bool replace)
{
    assert_ok(gd_graph_subgraph(graph, name, replace, NULL, NULL));
}

/* ---- node classes ---------------------------------------------------------------------------- */

static void test_classes(void **state)
{
    static const struct {
        const char *name, *type;
        enum gd_node_kind kind;
    } cases[] = {
        {"Default/conv1.weight", "Parameter", GD_NODE_WEIGHT},
        {"Default/conv1.BIAS", "parameter", GD_NODE_WEIGHT},
        {"Default/bn1.gamma", "Parameter", GD_NODE_PARAMETER},
        {"Default/optimizer-Adam/moments.conv1.weight", "Parameter", GD_NODE_PARAMETER},
        {"Gradients/Default/conv1.weight", "Parameter", GD_NODE_PARAMETER},
        {"Gradients/Default/MatMul-op3", "MatMul", GD_NODE_GRADIENT},
        {"gradients", "X", GD_NODE_GRADIENT},
        {"gradientsx/a", "X", GD_NODE_OTHER},
        {"Gradients/c", "Const", GD_NODE_CONSTANT},
        {"Default/relu", "ReLU", GD_NODE_ACTIVATION},
        {"Gradients/relu", "ReLU", GD_NODE_GRADIENT},
        {"Default/relu", "ReLUV2", GD_NODE_ACTIVATION},
        {"Default/reluGrad", "ReluGrad", GD_NODE_OTHER},
        {"", "", GD_NODE_OTHER},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(gd_node_classify(cases[i].name, cases[i].type), cases[i].kind);
    }
    assert_string_equal(gd_node_kind_name(GD_NODE_WEIGHT), "weight");
    assert_string_equal(gd_node_kind_name((enum gd_node_kind)99), "unknown");
}

/* ---- building and reading -------------------------------------------------------------------- */

static void test_node_facts(void **state)
{
    struct gd_graph *graph = make_graph(0);
    struct gd_output outs[3] = {F32(0, {0}), F32(1, {-1}), F32(3, {1, 2, 3})};
    struct gd_attr attrs[2] = {{"kernel", "3"}, {"pad", NULL}};
    struct gd_frame frames[2] = {{.file = "net.c", .line = 7, .function = "f"}, {.file = NULL}};
    struct gd_node_desc desc = {.name = "Default/net/Conv-op1",
                                .wire_name = "conv1",
                                .type = "Conv",
                                .kind = GD_NODE_ACTIVATION,
                                .outputs = outs,
                                .output_count = 3,
                                .attrs = attrs,
                                .attr_count = 2,
                                .frames = frames,
                                .frame_count = 2,
                                .order = 5};
    struct gd_node_info info;
    struct gd_output out;
    const struct gd_frame *stack;
    uint32_t count;
    gd_node_id id;

    assert_ok(gd_graph_add(graph, &desc, &id, NULL));
    commit_graph(graph);
    assert_true(gd_graph_node(graph, id, &info));
    assert_string_equal(info.name, "Default/net/Conv-op1");
    assert_string_equal(info.wire_name, "conv1");
    assert_string_equal(info.type, "Conv");
    assert_int_equal(info.kind, GD_NODE_ACTIVATION);
    assert_int_equal(info.order, 5);
    assert_int_equal(info.output_count, 3);
    assert_int_equal(info.attr_count, 2);
    assert_string_equal(info.attrs[0].value, "3");
    assert_string_equal(info.attrs[1].value, "");
    assert_true(gd_graph_output(graph, id, 1, &out));
    assert_int_equal(out.shape.dim[0], -1);
    assert_true(gd_graph_output(graph, id, 2, &out));
    assert_int_equal(out.shape.rank, 3);
    assert_false(gd_graph_output(graph, id, 3, &out));
    stack = gd_graph_stack(graph, id, &count);
    assert_int_equal(count, 2);
    assert_string_equal(stack[0].file, "net.c");
    assert_string_equal(stack[1].file, "");
    assert_int_equal(gd_graph_lookup_wire(graph, "conv1", 5), id);
    assert_int_equal(gd_graph_lookup(graph, "conv1", 5), GD_NO_NODE);
    assert_string_equal(gd_graph_subgraph_name(graph, info.subgraph), "main");
    out = outs[0];
    out.dtype = GD_FLOAT16;
    gd_graph_set_output(graph, id, 1, &out);
    gd_graph_set_output(graph, id, 9, &out);
    assert_true(gd_graph_output(graph, id, 1, &out));
    assert_int_equal(out.dtype, GD_FLOAT16);
    gd_graph_destroy(graph);
}

static void test_refused(void **state)
{
    struct gd_graph *graph = make_graph(0);
    struct gd_output out = F32(GD_MAX_RANK + 1, {0});
    struct gd_node_desc desc = {.name = "", .type = "X", .order = GD_NO_ORDER};
    struct gd_err err;
    struct gd_graph_counts counts;
    char *longname = malloc(20000);

    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_EINVAL);
    desc.name = NULL;
    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_EINVAL);
    memset(longname, 'a', 19999);
    longname[19999] = '\0';
    desc.name = longname;
    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_ELIMIT);
    desc.name = "x";
    desc.outputs = &out;
    desc.output_count = 1;
    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_EINVAL);
    out.shape.rank = -1;
    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_EINVAL);
    /* A node that was refused for its shape can be sent again with a good one. */
    out.shape.rank = 2;
    out.shape.dim[0] = INT64_MAX;
    out.shape.dim[1] = INT64_MIN;
    assert_ok(gd_graph_add(graph, &desc, NULL, &err));
    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_EINVAL);
    assert_contains(err.text, "'x'");
    desc.name = "y";
    desc.output_count = UINT32_MAX;
    assert_int_equal(gd_graph_add(graph, &desc, NULL, &err), GD_ELIMIT);
    commit_graph(graph);
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.nodes, 1);
    free(longname);
    gd_graph_destroy(graph);
}

static void test_edges(void **state)
{
    struct gd_graph *graph = make_graph(0);
    gd_node_id a = add_node(graph, "a", "X"), b = add_node(graph, "b", "X"),
               c = add_node(graph, "c", "X");
    struct gd_edge in[4] = {{.node = a, .slot = 65535},
                            {.node = GD_NO_NODE},
                            {.node = 77},
                            {.node = b, .control = true}};
    struct gd_edge back = {.node = c};
    const struct gd_edge *edges;
    struct gd_node_info info;
    struct gd_graph_counts counts;

    assert_ok(gd_graph_connect(graph, c, in, 4, NULL));
    assert_ok(gd_graph_connect(graph, a, &back, 1, NULL)); /* a cycle */
    connect_input(graph, b, b);                            /* and a loop */
    assert_int_equal(gd_graph_connect(graph, 1000, in, 1, NULL), GD_EINVAL);
    commit_graph(graph);
    assert_true(gd_graph_node(graph, c, &info));
    assert_int_equal(info.input_count, 2);
    assert_int_equal(info.inputs[0].slot, 65535);
    assert_true(info.inputs[1].control);
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.edges, 4);
    assert_int_equal(counts.missing_inputs, 2);
    assert_int_equal(gd_graph_consumers(graph, a, &edges), 1);
    assert_int_equal(edges[0].node, c);
    assert_int_equal(edges[0].slot, 65535);
    assert_int_equal(gd_graph_consumers(graph, b, &edges), 2);
    assert_int_equal(gd_graph_consumers(graph, 1000, &edges), 0);
    assert_null(edges);
    gd_graph_destroy(graph);
}

/* The consumers of every node, counted the slow way. */
static void check_consumers(const struct gd_graph *graph)
{
    uint32_t limit = gd_graph_node_limit(graph);
    uint32_t *want = calloc(limit + 1, sizeof(*want));
    struct gd_node_info info;

    for (uint32_t i = 0; i < limit; i++) {
        if (gd_graph_node(graph, i, &info)) {
            for (uint32_t k = 0; k < info.input_count; k++) {
                want[info.inputs[k].node]++;
            }
        }
    }
    for (uint32_t i = 0; i < limit; i++) {
        const struct gd_edge *edges;
        uint32_t count = gd_graph_consumers(graph, i, &edges);

        if (!gd_graph_node(graph, i, &info)) {
            assert_int_equal(count, 0);
            continue;
        }
        assert_int_equal(count, want[i]);
        for (uint32_t k = 0; k < count; k++) {
            struct gd_node_info consumer;
            bool found = false;

            assert_true(gd_graph_node(graph, edges[k].node, &consumer));
            for (uint32_t j = 0; j < consumer.input_count; j++) {
                found = found || consumer.inputs[j].node == i;
            }
            assert_true(found);
        }
    }
    free(want);
}

static void test_growth(void **state)
{
    struct gd_graph *graph = make_graph(0);
    uint32_t seed = 1;
    char name[64];

    for (int i = 0; i < 3000; i++) {
        struct gd_edge in[3];
        gd_node_id id;

        snprintf(name, sizeof(name), "scope%d/node%d", i % 7, i);
        id = add_node(graph, name, "X");
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525 + 1013904223;
            in[k] = (struct gd_edge){.node = (seed >> 8) % (id + 1), .slot = (uint16_t)k};
        }
        assert_ok(gd_graph_connect(graph, id, in, 2, NULL));
        if (i % 3 == 0) {
            commit_graph(graph);
        }
        if (i % 11 == 0) { /* more inputs for a node that is indexed, or not yet */
            assert_ok(gd_graph_connect(graph, id, in, 3, NULL));
        }
        if (i % 500 == 499) { /* other inputs than before */
            assert_ok(gd_graph_connect(graph, id / 2, in + 1, 2, NULL));
            commit_graph(graph);
            check_consumers(graph);
        }
    }
    commit_graph(graph);
    check_consumers(graph);
    gd_graph_destroy(graph);
}

static void test_replace(void **state)
{
    struct gd_graph *graph = make_graph(0);
    struct gd_graph_counts counts;
    struct gd_scope_info scope;
    gd_node_id shared, first, id;
    uint32_t count;

    add_subgraph(graph, "g1", false);
    shared = add_node(graph, "s/shared", "X");
    add_subgraph(graph, "g2", false);
    first = add_node(graph, "s/a", "Y");
    connect_input(graph, first, shared);
    add_node(graph, "s/b", "Y");
    commit_graph(graph);
    add_subgraph(graph, "g2", true);
    assert_string_equal(gd_graph_name(graph, first), "");
    assert_int_equal(gd_graph_lookup(graph, "s/a", 3), GD_NO_NODE);
    id = add_node(graph, "s/a", "Z"); /* the name is free again */
    assert_int_not_equal(id, first);
    connect_input(graph, id, first); /* gone: missing */
    commit_graph(graph);
    check_consumers(graph);
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.nodes, 2);
    assert_int_equal(counts.subgraphs, 2);
    assert_int_equal(counts.edges, 0);
    assert_int_equal(counts.missing_inputs, 1);
    assert_int_equal(gd_graph_find_scope(graph, "s", 1), GD_NO_SCOPE); /* each graph has one */
    assert_true(gd_graph_scope(graph, gd_graph_find_scope(graph, "g2/s", 4), &scope));
    assert_string_equal(scope.name, "g2/s");
    assert_int_equal(scope.node_count, 1);
    assert_int_equal(scope.first_node, id);
    assert_int_equal(gd_graph_next_in_scope(graph, shared), GD_NO_NODE);
    assert_int_equal(gd_graph_next_in_scope(graph, id), GD_NO_NODE);
    gd_graph_types(graph, &count);
    assert_int_equal(count, 2);
    gd_graph_execution(graph, &count);
    assert_int_equal(count, 2);
    /* The same name in two subgraphs: the graph's name tells them apart, until one goes. */
    add_subgraph(graph, "g3", false);
    first = add_node(graph, "s/shared", "X");
    assert_int_equal(gd_graph_lookup(graph, "s/shared", 8), GD_NO_NODE);
    assert_int_equal(gd_graph_lookup(graph, "g3/s/shared", 11), first);
    add_subgraph(graph, "g3", true);
    assert_int_equal(gd_graph_lookup(graph, "s/shared", 8), shared);
    gd_graph_destroy(graph);
}

static void test_scopes(void **state)
{
    struct gd_graph *graph = make_graph(0);
    struct gd_scope_info info;
    gd_scope_id id;
    char deep[4000] = "";

    add_node(graph, "Default/net/a/x", "X");
    add_node(graph, "Default/net/b/x", "X");
    add_node(graph, "Default/net/y", "X");
    add_node(graph, "lone", "X");
    add_node(graph, "//odd//path/z", "X");
    commit_graph(graph);
    assert_true(gd_graph_scope(graph, 0, &info));
    assert_string_equal(info.name, "");
    assert_int_equal(info.parent, GD_NO_SCOPE);
    assert_int_equal(info.node_count, 1);
    assert_int_equal(info.total_count, 5);
    id = gd_graph_find_scope(graph, "Default/net/", 12);
    assert_true(gd_graph_scope(graph, id, &info));
    assert_string_equal(info.name, "Default/net");
    assert_string_equal(info.leaf, "net");
    assert_int_equal(info.total_count, 3);
    assert_int_equal(info.node_count, 1);
    assert_true(gd_graph_scope(graph, info.first_child, &info));
    assert_string_equal(info.leaf, "a");
    assert_true(gd_graph_scope(graph, info.next, &info));
    assert_string_equal(info.leaf, "b");
    assert_int_equal(info.next, GD_NO_SCOPE);
    assert_int_equal(gd_graph_find_scope(graph, "Default/ne", 10), GD_NO_SCOPE);
    assert_false(gd_graph_scope(graph, 12345, &info));
    for (int i = 0; i < 1000; i++) {
        memcpy(deep + strlen(deep), "d/", 3);
    }
    memcpy(deep + strlen(deep), "leaf", 5);
    add_node(graph, deep, "X");
    memcpy(deep + 1990, "e/f/leaf2", 10);
    add_node(graph, deep, "X");
    commit_graph(graph);
    assert_int_not_equal(gd_graph_lookup(graph, deep, strlen(deep)), GD_NO_NODE);
    gd_graph_destroy(graph);
}

static void test_execution(void **state)
{
    struct gd_graph *graph = make_graph(0);
    gd_node_id a = add_node(graph, "a", "X"), b = add_node(graph, "b", "X"),
               c = add_node(graph, "c", "X");
    const gd_node_id *order;
    uint32_t count;

    commit_graph(graph);
    order = gd_graph_execution(graph, &count);
    assert_int_equal(count, 3);
    assert_int_equal(order[0], a);
    gd_graph_set_order(graph, c, 1);
    gd_graph_set_order(graph, b, 2);
    gd_graph_set_order(graph, 100, 2);
    order = gd_graph_execution(graph, &count);
    assert_int_equal(order[0], c);
    assert_int_equal(order[1], b);
    assert_int_equal(order[2], a);
    gd_graph_destroy(graph);
}

/* ---- searching ------------------------------------------------------------------------------- */

struct found {
    gd_node_id node[64];
    int count;
    int stop_after;
};

static int collect_node(void *ctx, gd_node_id node)
{
    struct found *found = ctx;

    assert_true(found->count < 64);
    assert_true(found->count == 0 || found->node[found->count - 1] < node);
    found->node[found->count++] = node;
    return found->count == found->stop_after ? 42 : 0;
}

static int search_text(const struct gd_graph *graph, const char *text)
{
    struct found found = {0};

    assert_int_equal(gd_graph_search_name(graph, text, collect_node, &found), 0);
    return found.count;
}

static void test_search(void **state)
{
    struct gd_graph *graph = make_graph(0);
    struct found found = {.stop_after = 2};

    assert_int_equal(search_text(graph, "x"), 0);
    add_node(graph, "Default/Conv1/Conv2D-op1", "Conv2D");
    add_node(graph, "Default/conv2/Conv2D-op2", "Conv2D");
    add_node(graph, "Default/fc/MatMul-op3", "MatMul");
    add_node(graph, "aaaaab", "ReLU");
    add_node(graph, "\xc3\xa9t\xc3\xa9[1]", "ReLU");
    commit_graph(graph);
    assert_int_equal(search_text(graph, "CONV"), 2);
    assert_int_equal(search_text(graph, "conv1/"), 1);
    assert_int_equal(search_text(graph, "op3"), 1);
    assert_int_equal(search_text(graph, "op3Default"), 0);
    assert_int_equal(search_text(graph, "aab"), 1);
    assert_int_equal(search_text(graph, ""), 5);
    assert_int_equal(search_text(graph, "a"), 4);
    assert_int_equal(search_text(graph, "\xc3\xa9[1]"), 1);
    assert_int_equal(search_text(graph, "[1]x"), 0);
    assert_int_equal(gd_graph_search_name(graph, "o", collect_node, &found), 42);
    assert_int_equal(found.count, 2);
    found = (struct found){0};
    assert_int_equal(gd_graph_search_type(graph, "relu", collect_node, &found), 0);
    assert_int_equal(found.count, 2);
    found = (struct found){0};
    assert_int_equal(gd_graph_search_type(graph, "nothing", collect_node, &found), 0);
    assert_int_equal(gd_graph_search_kind(graph, GD_NODE_ACTIVATION, collect_node, &found), 0);
    assert_int_equal(found.count, 2);
    gd_graph_destroy(graph);
}

static int count_node(void *ctx, gd_node_id node)
{
    ++*(int *)ctx;
    return 0;
}

/* Every substring question gets the answer of a plain loop over all names. */
static void test_search_against_plain(void **state)
{
    static const char *const texts[] = {"a",   "A", "/b", "ab",  "ba/", "op1",
                                        "p19", "-", "zz", "b-O", "aab"};
    struct gd_graph *graph = make_graph(0);
    uint32_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        char name[64];
        int len = 0;

        for (int k = 0; k < 6; k++) {
            seed = seed * 1664525 + 1013904223;
            len += snprintf(name + len, sizeof(name) - (size_t)len, "%c%s",
                            "abAB"[(seed >> 20) % 4], (seed >> 25) % 3 ? "" : "/");
        }
        snprintf(name + len, sizeof(name) - (size_t)len, "-op%d", i);
        add_node(graph, name, "X");
    }
    commit_graph(graph);
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        int want = 0, got = 0;

        for (uint32_t i = 0; i < gd_graph_node_limit(graph); i++) {
            want += strcasestr(gd_graph_name(graph, i), texts[t]) != NULL;
        }
        assert_int_equal(gd_graph_search_name(graph, texts[t], count_node, &got), 0);
        assert_int_equal(got, want);
    }
    gd_graph_destroy(graph);
}

static void expect_find(const struct gd_graph *graph, const char *name, int code, const char *text)
{
    struct gd_err err = {0};
    gd_node_id id;

    assert_int_equal(gd_graph_find(graph, name, &id, &err), code);
    if (code != GD_OK) {
        assert_contains(err.text, text);
    } else {
        assert_string_equal(gd_graph_name(graph, id), text);
    }
}

static void test_find(void **state)
{
    struct gd_graph *graph = make_graph(0);
    struct gd_node_desc desc = {
        .name = "Default/fc/fc.weight", .wire_name = "fc.weight", .order = GD_NO_ORDER};
    gd_node_id id;

    expect_find(graph, "x", GD_ENOTFOUND, "the graph is empty");
    add_node(graph, "Default/block0/attn/MatMul-op7", "MatMul");
    add_node(graph, "Default/block1/attn/MatMul-op8", "MatMul");
    add_node(graph, "Default/block1/mlp/MatMul-op8", "MatMul");
    assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    commit_graph(graph);
    expect_find(graph, "Default/block0/attn/MatMul-op7", GD_OK, "Default/block0/attn/MatMul-op7");
    expect_find(graph, "MatMul-op7", GD_OK, "Default/block0/attn/MatMul-op7");
    expect_find(graph, "attn/MatMul-op8", GD_OK, "Default/block1/attn/MatMul-op8");
    expect_find(graph, "fc.weight", GD_OK, "Default/fc/fc.weight");
    expect_find(graph, "MatMul-op8", GD_EAMBIGUOUS, "write more of the name");
    expect_find(graph, "atMul-op7", GD_ENOTFOUND, "did you mean 'Default/block0/attn/MatMul-op7'");
    expect_find(graph, "MatMull-op7", GD_ENOTFOUND, "did you mean 'Default/block0");
    expect_find(graph, "Default/block0/atn/MatMul-op7", GD_ENOTFOUND,
                "did you mean 'Default/block0");
    expect_find(graph, "fc.wieght", GD_ENOTFOUND, "did you mean 'Default/fc/fc.weight'");
    expect_find(graph, "quite something else", GD_ENOTFOUND, "there is no node");
    expect_find(graph, "", GD_ENOTFOUND, "there is no node");
    assert_int_equal(gd_graph_find(graph, "fc.wieght", &id, NULL), GD_ENOTFOUND);
    gd_graph_destroy(graph);
}

static void test_source(void **state)
{
    struct gd_graph *graph = make_graph(1 << 20);
    struct gd_frame frame = {.file = "/home/u/net/model.c", .line = 42, .function = "forward"};
    struct gd_node_desc desc = {.name = "a", .type = "X", .order = GD_NO_ORDER};
    struct found found = {0};
    const struct gd_frame *frames;
    uint32_t count;

    desc.source = "      # In file /home/u/net/model.py(42)/x = self.fc(x)/\n"
                  "      # In file /home/u/train.py(7)/net(x)/\n";
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%d", i);
        desc.name = name;
        assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    }
    desc.name = "m";
    desc.source = NULL;
    desc.frames = &frame;
    desc.frame_count = 1;
    assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    commit_graph(graph);
    frames = gd_graph_stack(graph, 1, &count);
    assert_int_equal(count, 2);
    assert_string_equal(frames[0].code, "x = self.fc(x)");
    assert_ptr_equal(gd_graph_stack(graph, 2, &count), frames); /* kept once */
    assert_int_equal(gd_graph_search_source(graph, "model.py", 42, collect_node, &found), 0);
    assert_int_equal(found.count, 3);
    found.count = 0;
    assert_int_equal(gd_graph_search_source(graph, "net/model.c", 0, collect_node, &found), 0);
    assert_int_equal(found.count, 1);
    assert_int_equal(gd_graph_search_source(graph, "odel.py", 42, collect_node, &found), 0);
    assert_int_equal(gd_graph_search_source(graph, "model.py", 43, collect_node, &found), 0);
    assert_int_equal(gd_graph_search_source(graph, "", 0, collect_node, &found), 0);
    assert_int_equal(found.count, 1);
    gd_graph_destroy(graph);
}

/* ---- short of memory ------------------------------------------------------------------------- */

static int build_small(struct gd_graph *graph)
{
    struct gd_output outs[2] = {F32(2, {3, 4}), F32(1, {5})};
    struct gd_attr attr = {"name", "value"};
    struct gd_err err;
    char name[64], wire[64];
    int rc = gd_graph_subgraph(graph, "g", true, NULL, &err);

    for (int i = 0; rc == GD_OK && i < 300; i++) {
        struct gd_node_desc desc = {.name = name,
                                    .wire_name = i % 3 ? NULL : wire,
                                    .type = i % 2 ? "A" : "B",
                                    .outputs = outs,
                                    .output_count = (uint32_t)i % 3,
                                    .attrs = &attr,
                                    .attr_count = 1,
                                    .source = i % 5 ? NULL : "# In file a.py(1)/x/",
                                    .order = GD_NO_ORDER};
        struct gd_edge edge = {.node = (gd_node_id)i / 2};

        snprintf(name, sizeof(name), "scope%d/deeper%d/node%d", i % 5, i % 50, i);
        snprintf(wire, sizeof(wire), "wire%d", i);
        rc = gd_graph_add(graph, &desc, NULL, &err);
        if (rc == GD_OK) {
            rc = gd_graph_connect(graph, (gd_node_id)i, &edge, 1, &err);
        }
        if (rc == GD_OK && i % 100 == 0) {
            rc = gd_graph_commit(graph, &err);
        }
    }
    return rc != GD_OK ? rc : gd_graph_commit(graph, &err);
}

static void test_memory_limit(void **state)
{
    struct gd_graph_counts counts;
    size_t need, refused = 0;
    struct gd_graph *graph = make_graph(0);

    assert_ok(build_small(graph));
    gd_graph_counts(graph, &counts);
    need = counts.memory;
    gd_graph_destroy(graph);
    for (size_t max = 1024; max < need + 8192; max += need / 128) {
        int rc, found = 0;

        graph = NULL;
        if (gd_graph_create(max, &graph, NULL) != GD_OK) {
            assert_null(graph);
            continue;
        }
        rc = build_small(graph);
        refused += rc == GD_ELIMIT;
        assert_true(rc == GD_OK || rc == GD_ELIMIT);
        gd_graph_counts(graph, &counts);
        assert_true(counts.memory <= max);
        /* What is there can be read, found and, with whatever room is left, committed. */
        if (gd_graph_commit(graph, NULL) == GD_OK) {
            check_consumers(graph);
        }
        for (uint32_t i = 0; i < gd_graph_node_limit(graph); i++) {
            const char *name = gd_graph_name(graph, i);

            assert_int_equal(gd_graph_lookup(graph, name, strlen(name)), i);
        }
        assert_int_equal(gd_graph_search_name(graph, "NODE", count_node, &found), 0);
        assert_int_equal(found, (int)counts.nodes);
        gd_graph_destroy(graph);
    }
    assert_true(refused > 10);
}

/* ---- many nodes ------------------------------------------------------------------------------ */

static void test_stress(void **state)
{
    enum { NODES = 200000 };
    struct gd_graph *graph = make_graph(0);
    struct gd_graph_counts counts;
    char name[128];
    int count = 0;

    for (int i = 0; i < NODES; i++) {
        struct gd_edge in[2] = {{.node = (gd_node_id)(i > 0 ? i - 1 : 0)},
                                {.node = (gd_node_id)(i / 2), .slot = 1}};

        snprintf(name, sizeof(name), "Default/network/block%d/layer%d/Op%d-op%d", i / 2000, i / 20,
                 i % 13, i);
        add_node(graph, name, i % 2 ? "MatMul" : "ReLU");
        assert_ok(gd_graph_connect(graph, (gd_node_id)i, in, 2, NULL));
        if (i % 1000 == 0) {
            commit_graph(graph);
        }
    }
    commit_graph(graph);
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.nodes, NODES);
    assert_int_equal(counts.edges, 2 * NODES);
    assert_int_equal(counts.scopes, 2 + NODES / 2000 + NODES / 20);
    assert_int_equal(counts.by_kind[GD_NODE_ACTIVATION], NODES / 2);
    assert_true(counts.memory / NODES < 512);
    check_consumers(graph);
    for (int i = 0; i < NODES; i += 977) {
        snprintf(name, sizeof(name), "Default/network/block%d/layer%d/Op%d-op%d", i / 2000, i / 20,
                 i % 13, i);
        assert_int_equal(gd_graph_lookup(graph, name, strlen(name)), i);
    }
    assert_int_equal(gd_graph_search_name(graph, "BLOCK7/", count_node, &count), 0);
    assert_int_equal(count, 2000);
    assert_ok(gd_graph_subgraph(graph, "main", true, NULL, NULL));
    commit_graph(graph);
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.nodes, 0);
    assert_int_equal(counts.edges, 0);
    gd_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_classes),      cmocka_unit_test(test_node_facts),
    cmocka_unit_test(test_refused),      cmocka_unit_test(test_edges),
    cmocka_unit_test(test_growth),       cmocka_unit_test(test_replace),
    cmocka_unit_test(test_scopes),       cmocka_unit_test(test_execution),
    cmocka_unit_test(test_search),       cmocka_unit_test(test_search_against_plain),
    cmocka_unit_test(test_find),         cmocka_unit_test(test_source),
    cmocka_unit_test(test_memory_limit), cmocka_unit_test(test_stress),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
/* first-divergence over a graph: whether inputs agree, what was not dumped, in which order to dump
 * it; levels of the kernels against each other; alignment by order; many of the same name. */
#include <math.h>

#include "../unit.h"
#include "compare/divergence.h"
#include "compare/kernel.h"

#define NODES 5
#define SIZE  8

static const char *const names[NODES] = {"x", "conv", "norm", "relu", "fc"};

/* A chain of nodes. */
static struct gd_graph *make_chain(gd_node_id id[NODES])
{
    struct gd_graph *graph;
    struct gd_output output = {.dtype = GD_FLOAT32, .shape = {.rank = 1, .dim = {SIZE}}};

    assert_ok(gd_graph_create(0, &graph, NULL));
    for (uint32_t i = 0; i < NODES; i++) {
        struct gd_node_desc desc = {.name = names[i],
                                    .type = i == 3 ? "AllReduce" : names[i],
                                    .outputs = &output,
                                    .output_count = 1,
                                    .order = i};
        struct gd_edge edge = {.node = i ? id[i - 1] : GD_NO_NODE};

        assert_ok(gd_graph_add(graph, &desc, &id[i], NULL));
        if (i > 0) {
            assert_ok(gd_graph_connect(graph, id[i], &edge, 1, NULL));
        }
    }
    assert_ok(gd_graph_commit(graph, NULL));
    return graph;
}

static struct gd_source *make_values(float first)
{
    struct gd_shape shape = {.rank = 1, .dim = {SIZE}};
    struct gd_tensor *tensor;
    struct gd_source *source;
    float *at;

    assert_ok(gd_tensor_create(GD_FLOAT32, &shape, 0, &tensor, NULL));
    at = (float *)(void *)gd_tensor_bytes_mut(tensor);
    for (int i = 0; i < SIZE; i++) {
        at[i] = first + (float)i;
    }
    assert_ok(gd_source_of_tensor(tensor, &source, NULL));
    gd_tensor_unref(tensor);
    return source;
}

/* A dump of the nodes whose letter is not '-'; '!' has different values. */
static void fill_table(struct gd_table *table, const struct gd_graph *graph,
                       const gd_node_id id[NODES], const char *what)
{
    gd_table_init(table);
    table->graph = graph;
    for (int i = 0; i < NODES; i++) {
        struct gd_item item = {.name = names[i]};

        if (what[i] == '-') {
            continue;
        }
        item.source = make_values((float)i + (what[i] == '!' ? 0.5F : 0));
        assert_ok(gd_table_unit(table, names[i], i == 3 ? "AllReduce" : "", NULL));
        table->unit[table->unit_count - 1].node = id[i];
        assert_ok(gd_table_add(table, &item, NULL));
        gd_source_unref(item.source);
    }
}

static void find_divergence(const char *a, const char *b, struct gd_divergence *ret,
                            const char **at)
{
    struct gd_divergence_options options = {.profile = GD_PROFILE_CROSS};
    struct gd_match_options match = {.last = GD_HOW_NAME};
    struct gd_matching matching;
    struct gd_table left, right;
    gd_node_id id[NODES];
    struct gd_graph *graph = make_chain(id);

    fill_table(&left, graph, id, a);
    fill_table(&right, graph, id, b);
    assert_ok(gd_match_tables(&left, &right, &match, &matching, NULL));
    assert_ok(gd_divergence_find(&left, &right, &matching, &options, ret, NULL));
    *at = "";
    for (int i = 0; i < NODES && ret->at.b != UINT32_MAX; i++) {
        if (strcmp(right.unit[ret->at.b].name, names[i]) == 0) {
            *at = names[i];
        }
    }
    /* the table copies names: point them at the graph's */
    for (size_t i = 0; i < ret->between_count; i++) {
        for (int j = 0; j < NODES; j++) {
            if (strcmp(ret->between[i], names[j]) == 0) {
                ret->between[i] = names[j];
                break;
            }
        }
    }
    gd_matching_free(&matching);
    gd_table_deinit(&left);
    gd_table_deinit(&right);
    gd_graph_destroy(graph);
}

static void test_labels(void **state)
{
    struct gd_divergence d;
    const char *at;

    find_divergence("xcnrf", "xcnrf", &d, &at);
    assert_int_equal(d.origin, GD_ORIGIN_NONE);
    assert_int_equal(d.checked, NODES);
    gd_divergence_free(&d);

    find_divergence("xc!!!", "xcnrf", &d, &at);
    assert_string_equal(at, "norm");
    assert_int_equal(d.origin, GD_ORIGIN_HERE);
    assert_int_equal(d.inputs_agree, 1);
    assert_int_equal(d.between_count, 0);
    gd_divergence_free(&d);

    find_divergence("x--!!", "x--rf", &d, &at); /* the producer of its input was not dumped */
    assert_string_equal(at, "relu");
    assert_int_equal(d.origin, GD_ORIGIN_UNKNOWN);
    assert_true(d.collective);
    assert_int_equal(d.between_count, 2);
    assert_string_equal(d.between[0], "conv");
    assert_string_equal(d.between[1], "norm");
    gd_divergence_free(&d);

    find_divergence("xcnr!", "xcnrf", &d, &at);
    assert_int_equal(d.layer, 1);
    gd_divergence_free(&d);
}

static void test_middle_first(void **state)
{
    for (size_t count = 1; count < 20; count++) {
        size_t order[20], seen[20] = {0};

        gd_middle_first(count, order);
        for (size_t i = 0; i < count; i++) {
            assert_in_range(order[i], 0, count - 1);
            assert_int_equal(seen[order[i]]++, 0);
        }
        if (count == 7) {
            assert_int_equal(order[0], 3);
        }
    }
}

static void compare_levels(const struct gd_pair_level *level, const float *a, const float *b,
                           size_t n)
{
    struct gd_pair_rule rule = {1e-4, 1e-4, 0x1p-20};
    struct gd_pair_sums x, y;
    uint64_t ulp_x[GD_ULP_BUCKETS] = {0}, ulp_y[GD_ULP_BUCKETS] = {0};
    uint32_t key_a[64], key_b[64];

    level->float32(a, b, n, &rule, &x);
    gd_pair_portable.float32(a, b, n, &rule, &y);
    assert_true(x.equal == y.equal && x.close == y.close && x.r1k == y.r1k && x.r5k == y.r5k);
    assert_true(x.max_abs == y.max_abs && x.max_rel == y.max_rel && x.max_score == y.max_score);
    assert_true(fabs(x.sq - y.sq) <= 1e-12 * y.sq && fabs(x.abs - y.abs) <= 1e-12 * y.abs);
    memcpy(key_a, a, n * sizeof(*a));
    memcpy(key_b, b, n * sizeof(*b));
    level->ulp32(key_a, key_b, n, ulp_x);
    gd_pair_portable.ulp32(key_a, key_b, n, ulp_y);
    assert_memory_equal(ulp_x, ulp_y, sizeof(ulp_x));
}

static void test_levels_agree(void **state)
{
    float a[64], b[64];

    for (int i = 0; i < 64; i++) {
        a[i] = (float)(i - 20) * 1.37F;
        b[i] = i % 3 ? a[i] * (1 + 1e-4F * (float)(i % 7)) : i % 2 ? 0 : a[i];
    }
    for (int i = 0; gd_pair_levels[i]; i++) {
        if (gd_pair_levels[i]->runs_here()) {
            compare_levels(gd_pair_levels[i], a, b, 64);
        }
    }
}

static void check_common(const char *name, const char *want)
{
    char common[256];

    gd_name_common(name, common, sizeof(common));
    assert_string_equal(common, want);
}

static void test_common_names(void **state)
{
    check_common("bn1.gamma", "bn1.weight");
    check_common("block.bn2d.moving_variance", "block.running_var");
    check_common("gamma", "gamma"); /* on its own it is not a layer's parameter */
    check_common("Cell.fc1.Dense.forward.0", "Module.fc1.Linear.forward.0");
    check_common("NN_Dense_0", "NN_Linear_0");
    check_common("Default/network-Net/conv1-Conv2d/Conv2D-op12", "network.conv1.conv2d");
    check_common("Default_network-Net_conv1-Conv2d_Conv2D-op12", "network.conv1.conv2d");
    check_common("Gradients/Default/n_1-Net/gradConv2D/Conv2DInput-op5",
                 "Gradients.n_1.gradConv2D.conv2dinput");
    check_common("Gradients_Default_n_1-Net_gradConv2D_Conv2DInput-op5",
                 "Gradients.n_1.gradConv2D.conv2dinput");
    check_common("Default_Add-op7", "add");
    check_common("Default_weight", "Default_weight");
    check_common("17_conv1", "conv1");
    check_common("conv1_float32_17", "conv1");
    check_common("layer_2_1", "layer_2_1");
}

#define MANY 20000

static void add_many(struct gd_table *table, int first)
{
    struct gd_item item = {.name = "0"};
    char name[64];

    gd_table_init(table);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "Default/net/Add-op%d", first + i);
        assert_ok(gd_table_unit(table, name, "Add", NULL));
        assert_ok(gd_table_add(table, &item, NULL));
    }
}

/* Many operators of one scope get the same name by the rules: each has its partner, in order. */
static void test_same_names(void **state)
{
    struct gd_match_options options = {.last = GD_HOW_RULES};
    struct gd_matching matching;
    struct gd_table a, b;

    add_many(&a, 1);
    add_many(&b, MANY + 1);
    assert_ok(gd_match_tables(&a, &b, &options, &matching, NULL));
    assert_int_equal(matching.count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(matching.match[i].a, i);
        assert_int_equal(matching.match[i].b, i);
        assert_int_equal(matching.match[i].how, GD_HOW_RULES);
    }
    gd_matching_free(&matching);
    gd_table_deinit(&a);
    gd_table_deinit(&b);
}

struct op {
    const char *name, *type;
    int size; /* of its output */
};

static void add_operators(struct gd_table *table, const struct op *list, size_t count)
{
    gd_table_init(table);
    for (size_t i = 0; i < count; i++) {
        struct gd_item item = {.name = "0",
                               .dtype = GD_FLOAT32,
                               .has_shape = true,
                               .shape = {.rank = 1, .dim = {list[i].size}}};

        assert_ok(gd_table_unit(table, list[i].name, list[i].type, NULL));
        table->unit[i].ordered = true;
        assert_ok(gd_table_add(table, &item, NULL));
    }
}

/* Matching by layer: the partner of each, "" for none. */
static void check_layers(const struct op *a, size_t count_a, const struct op *b, size_t count_b,
                         const char *const *partners)
{
    struct gd_match_options options = {.last = GD_HOW_RULES};
    struct gd_matching matching;
    struct gd_table left, right;

    add_operators(&left, a, count_a);
    add_operators(&right, b, count_b);
    assert_ok(gd_match_tables(&left, &right, &options, &matching, NULL));
    for (size_t i = 0; i < matching.count; i++) {
        const struct gd_match *match = &matching.match[i];

        if (match->b != UINT32_MAX) {
            assert_string_equal(match->a == UINT32_MAX ? "" : a[match->a].name, partners[match->b]);
        }
    }
    gd_matching_free(&matching);
    gd_table_deinit(&left);
    gd_table_deinit(&right);
}

static void test_layers(void **state)
{
    static const struct op torch[] = {
        {"net/body/0/conv/conv2d", "conv2d", 4},
        {"net/body/1/conv/conv2d", "conv2d", 4},
        {"net/relu", "relu", 4},
        {"net/fc1/linear", "linear", 8},
        {"net/act/relu", "relu", 8},
        {"net/fc2/linear", "linear", 8},
        {"net/act/relu_1", "relu", 8},
        {"net/head/linear", "linear", 3},
    };
    static const struct op mindspore[] = {
        {"Default/n-Loss/_backbone-Net/body-Seq/0-Block/conv-Conv2d/Conv2D-op1", "Conv2D", 4},
        {"Default/n-Loss/_backbone-Net/body-Seq/1-Block/conv-Conv2d/Conv2D-op2", "Conv2D", 4},
        {"Default/n-Loss/_backbone-Net/ReLU-op1", "ReLU", 4},
        {"Default/n-Loss/_backbone-Net/fc1-Dense/MatMul-op1", "MatMul", 8},
        {"Default/n-Loss/_backbone-Net/fc1-Dense/BiasAdd-op1", "BiasAdd", 8},
        {"Default/n-Loss/_backbone-Net/act-ReLU/ReLU-op2", "ReLU", 8},
        {"Default/n-Loss/_backbone-Net/fc2-Dense/MatMul-op2", "MatMul", 8},
        {"Default/n-Loss/_backbone-Net/act-ReLU/ReLU-op3", "ReLU", 8},
        {"Default/n-Loss/_backbone-Net/head-Dense/MatMul-op3", "MatMul", 5},
    };
    static const char *const partners[] = {
        "net/body/0/conv/conv2d", "net/body/1/conv/conv2d", "net/relu",       "", "net/fc1/linear",
        "net/act/relu",           "net/fc2/linear",         "net/act/relu_1", "", /* of another
                                                                                     shape */
    };
    static const struct op calls[] = {
        {"fc1/Functional.linear.0.forward", "linear", 8},
        {"fc1/Linear.forward.0", "Linear", 8},
    };
    static const char *const modules[] = {"", "", "", "", "fc1/Linear.forward.0", "", "", "", ""};

    check_layers(torch, 8, mindspore, 9, partners);
    check_layers(calls, 2, mindspore, 9, modules);
}

static void test_operators(void **state)
{
    assert_true(gd_op_is_alike("conv2d", "Conv2D"));
    assert_true(gd_op_is_alike("linear", "MatMul"));
    assert_true(gd_op_is_alike("BiasAdd", "Conv2d"));
    assert_true(gd_op_is_alike("cross_entropy", "SparseSoftmaxCrossEntropyWithLogits"));
    assert_false(gd_op_is_alike("BiasAdd", "relu"));
    assert_false(gd_op_is_alike("add", "mul"));
    assert_false(gd_op_is_alike("", ""));
    assert_true(gd_op_changes_input("BatchNorm", 3));
    assert_true(gd_op_changes_input("batch_norm", 1));
    assert_false(gd_op_changes_input("batch_norm", 3));
    assert_false(gd_op_changes_input("LayerNorm", 3));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_labels),       cmocka_unit_test(test_middle_first),
    cmocka_unit_test(test_levels_agree), cmocka_unit_test(test_common_names),
    cmocka_unit_test(test_same_names),   cmocka_unit_test(test_layers),
    cmocka_unit_test(test_operators),
};

RUN_TESTS()

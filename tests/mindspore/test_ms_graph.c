// SPDX-License-Identifier: GPL-3.0-or-later
#include "../unit.h"
#include "mindspore/ms_graph.h"
#include "mindspore/ms_value.h"
#include "pb_write.h"

static struct gd_graph *graph;
static struct gd_ms_graph_info info;

static int set_up(void **state)
{
    return gd_graph_create(0, &graph, NULL);
}

static int tear_down(void **state)
{
    gd_graph_destroy(graph);
    return 0;
}

static int load_graph(struct gd_buf *bytes)
{
    struct gd_err err = {0};
    int rc =
        gd_ms_graph_load(graph, (const uint8_t *)gd_buf_text(bytes), bytes->len, NULL, &info, &err);
    gd_buf_deinit(bytes);
    if (rc != GD_OK) {
        assert_true(err.text[0]);
    }
    return rc;
}

static gd_node_id node_of(const char *name, struct gd_node_info *ret)
{
    gd_node_id node = gd_graph_lookup(graph, name, strlen(name));
    if (node == GD_NO_NODE) {
        print_error("no node %s\n", name);
    }
    assert_int_not_equal(node, GD_NO_NODE);
    assert_true(gd_graph_node(graph, node, ret));
    return node;
}

#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SCOPE       "Default/network/conv1-Conv2d"

static void add_node(struct gd_buf *out, struct gd_buf node)
{
    pb_message(out, 1, &node);
}

static struct gd_buf make_constant(const char *key, const char *full_name, int64_t value)
{
    struct gd_buf out = GD_BUF_INIT(4096), inner = GD_BUF_INIT(64);
    pb_text(&out, 1, key);
    pb_int(&inner, 1, 5);
    pb_int(&inner, 3, (uint64_t)value);
    pb_message(&out, 2, &inner);
    if (full_name) {
        pb_text(&out, 3, full_name);
    }
    return out;
}

/* x -> Conv2D(conv1.weight) -> ReLU -> TupleGetItem(.., 1); the optimizer comes first in the bytes.
 */
static struct gd_buf small_graph(const char *name)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    const int64_t dims[] = {6, 1, 5, 5};
    pb_text(&out, 2, name);
    add_node(&out, pb_node("1", "Momentum", "Default/optimizer-Momentum",
                           "Default/optimizer-Momentum/Momentum-op1",
                           INPUTS("conv1.weight", "moments.conv1.weight", "2")));
    struct gd_buf conv = pb_node("2", "Conv2D", SCOPE, SCOPE "/Conv2D-op89",
                                 INPUTS("x", "conv1.weight")),
                  type = pb_tensor_type(11, (int64_t[]){32, -1, 24}, 3);
    pb_message(&conv, 6, &type);
    pb_text(&conv, 9, "      # In file lenet.py(42)/        x = self.conv1(x)/\n");
    add_node(&out, conv);
    add_node(&out, pb_node("3", "ReLU", SCOPE, SCOPE "/ReLU-op90", INPUTS("2")));
    add_node(&out,
             pb_node("4", "TupleGetItem", SCOPE, SCOPE "/TupleGetItem-op91", INPUTS("3", "cst1")));
    struct gd_buf weight = pb_parameter("conv1.weight", 11, dims, 4),
                  moment = pb_parameter("moments.conv1.weight", 11, dims, 4),
                  x = pb_parameter("x", 10, dims, 4),
                  unused = pb_parameter("unused.weight", 11, dims, 4),
                  one = make_constant("cst1", "Default--data-5", 1);
    pb_message(&out, 3, &weight);
    pb_message(&out, 3, &moment);
    pb_message(&out, 3, &x);
    pb_message(&out, 3, &unused);
    pb_message(&out, 5, &one);
    pb_text(&out, 6, "1");
    return out;
}

/* A parameter is placed where the forward pass uses it, even if the optimizer comes first. */
static void expect_parameters(void)
{
    struct gd_node_info node;
    gd_node_id weight = node_of(SCOPE "/conv1.weight", &node), found;

    assert_int_equal(node.kind, GD_NODE_WEIGHT);
    assert_string_equal(node.wire_name, "conv1.weight");
    assert_string_equal(node.type, "Parameter");
    node_of("Default/optimizer-Momentum/moments.conv1.weight", &node);
    assert_int_equal(node.kind, GD_NODE_PARAMETER);
    node_of("unused.weight", &node);
    assert_int_equal(node.kind, GD_NODE_PARAMETER);
    assert_ok(gd_graph_find(graph, "conv1.weight", &found, NULL));
    assert_int_equal(found, weight);
}

static void test_small_graph(void **state)
{
    struct gd_buf bytes = small_graph("kernel_graph_1");
    struct gd_node_info node;
    struct gd_output output;
    assert_ok(load_graph(&bytes));
    assert_string_equal(info.name, "kernel_graph_1");
    assert_string_equal(info.root_name, "1");
    assert_int_equal(info.nodes, 4);
    assert_int_equal(info.parameters, 4);
    assert_int_equal(info.constants, 1);
    assert_int_equal(info.skipped + info.renamed + info.broken, 0);

    gd_node_id conv = node_of(SCOPE "/Conv2D-op89", &node);
    assert_string_equal(node.type, "Conv2D");
    assert_string_equal(node.wire_name, node.name);
    assert_int_equal(node.input_count, 2);
    assert_true(gd_graph_output(graph, conv, 0, &output));
    assert_int_equal(output.dtype, GD_FLOAT32);
    assert_int_equal(output.shape.rank, 3);
    assert_int_equal(output.shape.dim[1], -1);
    uint32_t frames;
    const struct gd_frame *stack = gd_graph_stack(graph, conv, &frames);
    assert_int_equal(frames, 1);
    assert_string_equal(stack[0].file, "lenet.py");
    assert_int_equal(stack[0].line, 42);

    expect_parameters();
    node_of(SCOPE "/Default--data-5", &node);
    assert_int_equal(node.kind, GD_NODE_CONSTANT);
    assert_string_equal(node.wire_name, "Default--data-5");
    assert_string_equal(node.attrs[0].value, "1");

    /* The slot that TupleGetItem takes is its constant. */
    node_of(SCOPE "/TupleGetItem-op91", &node);
    assert_int_equal(node.inputs[0].slot, 1);
    node_of("Default/optimizer-Momentum/Momentum-op1", &node);
    assert_int_equal(node.inputs[2].node, conv);
    gd_node_id weight = node.inputs[0].node;
    assert_int_equal(node_of(SCOPE "/conv1.weight", &node), weight);
}

static void test_same_name_replaces_other_names_stay(void **state)
{
    struct gd_graph_counts counts;
    struct gd_buf a = small_graph("kernel_graph_1"), b = small_graph("kernel_graph_2"),
                  c = small_graph("kernel_graph_1");
    assert_ok(load_graph(&a));
    assert_ok(load_graph(&b));
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.nodes, 18);
    assert_ok(load_graph(&c));
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.nodes, 18);
    assert_int_equal(counts.subgraphs, 2);
}

static void test_shown_names(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    struct gd_node_info node;
    add_node(&out, pb_node("1", "Load", "Default/a", "Default/a/Load-op1", NULL));
    add_node(&out, pb_node("x/op7", "TensorSummary", "Default", "loss[:tensor]", NULL));
    add_node(&out, pb_node("3", "ReLU", "Default", "", NULL));
    add_node(&out, pb_node("4", "ReLU", "Default", "Default/twice", NULL));
    add_node(&out, pb_node("5", "ReLU", "Default", "Default/twice", NULL));
    add_node(&out, pb_node("", "", "", "", NULL));
    assert_ok(load_graph(&out));
    node_of("Default/a/Load-op1", &node);
    node_of("Default/TensorSummary-op7", &node);
    assert_string_equal(node.wire_name, "loss[:tensor]");
    node_of("Default/ReLU-op3", &node);
    node_of("Default/twice", &node);
    node_of("Default/twice(2)", &node);
    assert_string_equal(node.wire_name, "Default/twice");
    assert_int_equal(info.skipped, 1);
    assert_int_equal(info.renamed, 1);
}

static void test_slashes_in_parameter_names(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20), odd = pb_parameter("a/b.weight", 11, NULL, 0);
    struct gd_node_info node;
    add_node(&out, pb_node("1", "ReLU", "Default", "Default/r", INPUTS("a/b.weight")));
    pb_message(&out, 3, &odd);
    assert_ok(load_graph(&out));
    node_of("Default/a--b.weight", &node);
    assert_string_equal(node.wire_name, "a--b.weight");
}

static void test_missing_and_cyclic(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    struct gd_node_info node;
    struct gd_graph_counts counts;
    add_node(&out,
             pb_node("1", "Add", "Default", "Default/a", INPUTS("2", "99", "cst7", "nowhere")));
    add_node(&out, pb_node("2", "Add", "Default", "Default/b", INPUTS("1", "2")));
    assert_ok(load_graph(&out));
    gd_node_id a = node_of("Default/a", &node);
    gd_node_id b = node_of("Default/b", &node);
    assert_int_equal(node.inputs[0].node, a);
    assert_int_equal(node.inputs[1].node, b);
    gd_graph_counts(graph, &counts);
    assert_int_equal(counts.missing_inputs, 3);
}

static void test_names_that_are_no_numbers(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    struct gd_node_info node;
    add_node(&out, pb_node("b", "Add", "Default", "Default/b", INPUTS("a", "p")));
    add_node(&out, pb_node("a", "Add", "Default", "Default/a", NULL));
    add_node(&out, pb_node("a", "Add", "Default", "Default/a2", NULL));
    struct gd_buf p = pb_parameter("p", 11, NULL, 0);
    pb_message(&out, 3, &p);
    assert_ok(load_graph(&out));
    gd_node_id a = node_of("Default/a", &node);
    gd_node_id param = node_of("Default/p", &node);
    node_of("Default/b", &node);
    assert_int_equal(node.inputs[0].node, a); /* the first of that name */
    assert_int_equal(node.inputs[1].node, param);
}

static void test_tuples_are_flattened(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    struct gd_buf node = pb_node("1", "Split", "Default", "Default/s", NULL);
    struct gd_buf outer = GD_BUF_INIT(1u << 16), seq = GD_BUF_INIT(1u << 16);
    for (int64_t i = 1; i <= 70; i++) { /* nested, and more than fit at first */
        struct gd_buf inner = GD_BUF_INIT(4096), inner_seq = GD_BUF_INIT(4096),
                      elem = pb_tensor_type(11, &i, 1);
        pb_message(&inner_seq, 1, &elem);
        pb_int(&inner, 1, 31);
        pb_message(&inner, 3, &inner_seq);
        pb_message(&seq, 1, &inner);
    }
    pb_int(&outer, 1, 31);
    pb_message(&outer, 3, &seq);
    pb_message(&node, 6, &outer);
    add_node(&out, node);
    struct gd_buf monad = pb_node("2", "UpdateState", "Default", "Default/u", NULL);
    struct gd_buf type = GD_BUF_INIT(64);
    pb_int(&type, 1, 43);
    pb_message(&monad, 6, &type);
    add_node(&out, monad);
    assert_ok(load_graph(&out));
    struct gd_node_info node_info;
    struct gd_output output;
    gd_node_id id = node_of("Default/s", &node_info);
    assert_int_equal(node_info.output_count, 70);
    assert_true(gd_graph_output(graph, id, 69, &output));
    assert_int_equal(output.shape.dim[0], 70);
    id = node_of("Default/u", &node_info);
    assert_int_equal(node_info.output_count, 1);
    assert_true(gd_graph_output(graph, id, 0, &output));
    assert_int_equal(output.dtype, GD_DT_NONE);
}

static struct gd_buf nest_messages(unsigned field, unsigned depth)
{
    struct gd_buf inner = GD_BUF_INIT(1u << 24);
    for (unsigned i = 0; i < depth; i++) {
        struct gd_buf outer = GD_BUF_INIT(1u << 24);
        pb_message(&outer, field, &inner);
        inner = outer;
    }
    return inner;
}

/* Deeply nested values, types and graphs must not be followed to the bottom. */
static void test_depth_bombs(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 26);
    struct gd_buf node = pb_node("1", "Bomb", "Default", "Default/bomb", NULL);
    const unsigned fields[] = {18, 9, 3};
    for (int i = 0; i < 3; i++) {
        struct gd_buf attr = GD_BUF_INIT(1u << 25), value = nest_messages(fields[i], 3000);
        pb_text(&attr, 1, "bomb");
        pb_message(&attr, 2, &value);
        pb_message(&node, 5, &attr);
    }
    struct gd_buf type = GD_BUF_INIT(1u << 24);
    for (unsigned i = 0; i < 3000; i++) {
        struct gd_buf seq = GD_BUF_INIT(1u << 24), outer = GD_BUF_INIT(1u << 24);
        pb_message(&seq, 1, &type);
        pb_message(&outer, 3, &seq);
        type = outer;
    }
    pb_message(&node, 6, &type);
    add_node(&out, node);
    assert_ok(load_graph(&out));
    struct gd_node_info node_info;
    node_of("Default/bomb", &node_info);
}

static void test_absurd_shapes(void **state)
{
    int64_t dims[GD_MAX_RANK + 8];
    for (int i = 0; i < GD_MAX_RANK + 8; i++) {
        dims[i] = INT64_MAX;
    }
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    struct gd_buf a = pb_node("1", "A", "Default", "Default/a", NULL),
                  b = pb_node("2", "B", "Default", "Default/b", NULL),
                  c = pb_node("3", "C", "Default", "Default/c", NULL);
    struct gd_buf type = pb_tensor_type(11, dims, GD_MAX_RANK + 8);
    pb_message(&a, 6, &type);
    type = pb_tensor_type(11, dims, 3);
    pb_message(&b, 6, &type);
    type = pb_tensor_type(11, (int64_t[]){INT64_MIN, -7}, 2);
    pb_message(&c, 6, &type);
    add_node(&out, a);
    add_node(&out, b);
    add_node(&out, c);
    assert_ok(load_graph(&out));
    struct gd_node_info node;
    struct gd_output output;
    assert_true(gd_graph_output(graph, node_of("Default/c", &node), 0, &output));
    assert_int_equal(output.shape.dim[0], -1);
    assert_true(gd_graph_output(graph, node_of("Default/b", &node), 0, &output));
    assert_int_equal(gd_shape_count(&output.shape), -1);
}

static void test_broken_bytes(void **state)
{
    struct gd_buf whole = small_graph("kernel_graph_1");
    struct gd_graph_counts counts;
    const uint8_t *data = (const uint8_t *)gd_buf_text(&whole);
    size_t refused = 0;
    for (size_t cut = 1; cut < whole.len; cut++) {
        uint8_t *copy = malloc(cut); /* so that a sanitizer detects a read beyond it */
        memcpy(copy, data, cut);
        struct gd_err err;
        int rc = gd_ms_graph_load(graph, copy, cut, NULL, &info, &err);
        assert_true(rc == GD_OK || rc == GD_EPROTO);
        refused += rc == GD_EPROTO;
        free(copy);
    }
    assert_true(refused > whole.len / 2);
    for (size_t at = 0; at < whole.len; at++) { /* one byte changed */
        uint8_t *copy = malloc(whole.len);
        memcpy(copy, data, whole.len);
        copy[at] ^= 0xff;
        gd_ms_graph_load(graph, copy, whole.len, NULL, &info, NULL);
        free(copy);
    }
    assert_ok(gd_ms_graph_load(graph, data, whole.len, NULL, &info, NULL));
    gd_graph_counts(graph, &counts);
    assert_true(counts.nodes >= 9);
    gd_buf_deinit(&whole);
}

static void test_is_whole(void **state)
{
    struct gd_buf bytes = small_graph("g");
    assert_true(gd_ms_graph_is_whole((const uint8_t *)bytes.data, bytes.len));
    assert_false(gd_ms_graph_is_whole((const uint8_t *)bytes.data, bytes.len - 1));
    gd_buf_deinit(&bytes);
}

static void expect_text(struct gd_buf *value, const char *want)
{
    struct gd_buf out = GD_BUF_INIT(1024);
    assert_true(gd_ms_value_text((const uint8_t *)gd_buf_text(value), value->len, &out));
    assert_string_equal(gd_buf_text(&out), want);
    gd_buf_deinit(&out);
    gd_buf_deinit(value);
}

static void test_values(void **state)
{
    struct gd_buf value = GD_BUF_INIT(1u << 20), inner = GD_BUF_INIT(4096);
    pb_int(&value, 1, 1);
    pb_int(&value, 2, 1);
    expect_text(&value, "True");
    pb_int(&value, 1, 5);
    pb_int(&value, 3, (uint64_t)-3);
    expect_text(&value, "-3");
    pb_int(&value, 1, 11);
    pb_float(&value, 5, 0.1f);
    expect_text(&value, "0.1");
    pb_double(&value, 6, 0.1);
    expect_text(&value, "0.1");
    pb_text(&value, 7, "NCHW");
    expect_text(&value, "NCHW");
    pb_int(&value, 1, 20);
    pb_int(&value, 11, 1);
    pb_int(&value, 11, 2);
    expect_text(&value, "[1, 2]");
    pb_int(&value, 1, 31);
    for (int i = 0; i < 2; i++) {
        pb_int(&inner, 1, 5);
        pb_int(&inner, 3, (uint64_t)i);
        pb_message(&value, 18, &inner);
    }
    expect_text(&value, "(0, 1)");
    pb_int(&value, 1, 31);
    expect_text(&value, "()");
    pb_bytes(&value, 11, "\x01\x02\x03", 3); /* packed */
    expect_text(&value, "[1, 2, 3]");
    for (int i = 0; i < 5000; i++) {
        pb_int(&value, 11, 12345678);
    }
    struct gd_buf out = GD_BUF_INIT(1024);
    assert_true(gd_ms_value_text((const uint8_t *)value.data, value.len, &out));
    assert_true(out.failed); /* too long: the caller leaves it out */
    gd_buf_deinit(&out);
    gd_buf_deinit(&value);
}

static void test_long_attributes_are_left_out(void **state)
{
    struct gd_buf out = GD_BUF_INIT(1u << 20);
    struct gd_buf node = pb_node("1", "A", "Default", "Default/a", NULL);
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        struct gd_buf attr = GD_BUF_INIT(4096), value = GD_BUF_INIT(4096);
        pb_text(&value, 7, i ? "short" : text);
        pb_text(&attr, 1, i ? "kept" : "dropped");
        pb_message(&attr, 2, &value);
        pb_message(&node, 5, &attr);
    }
    add_node(&out, node);
    assert_ok(load_graph(&out));
    struct gd_node_info node_info;
    node_of("Default/a", &node_info);
    assert_int_equal(node_info.attr_count, 1);
    assert_string_equal(node_info.attrs[0].name, "kept");
    assert_string_equal(node_info.attrs[0].value, "short");
}

/* ---- bytes that must not cost more than themselves ----------------------------------------- */

/* Many inputs that name one large item: searching it for each of them would take hours; the suite's
 * time limit would end the test. */
static void test_large_items_are_read_once(void **state)
{
    enum { PARTS = 1 << 20, USES = 1 << 18 };
    struct gd_buf bytes = GD_BUF_INIT(1u << 28), weight = GD_BUF_INIT(1u << 24),
                  chosen = make_constant("i", NULL, 1), node = GD_BUF_INIT(1u << 26);
    struct gd_node_info found;
    chosen.max = 1u << 24;
    pb_text(&weight, 1, "w");
    for (int i = 0; i < PARTS; i++) { /* of an unknown field */
        pb_int(&weight, 15, 0);
        pb_int(&chosen, 15, 0);
    }
    for (int i = 0; i < USES; i++) {
        gd_buf_add(&node, "\x0a\x03\x0a\x01w", 5);
    }
    pb_text(&node, 2, "1");
    pb_text(&node, 3, "AddN");
    pb_text(&node, 8, "Default/AddN-op1");
    pb_message(&bytes, 1, &node);
    for (int i = 2; i < 40000; i++) {
        char name[16], full_name[48];
        snprintf(name, sizeof(name), "%d", i);
        snprintf(full_name, sizeof(full_name), "Default/TupleGetItem-op%d", i);
        add_node(&bytes, pb_node(name, "TupleGetItem", "Default", full_name, INPUTS("1", "i")));
    }
    pb_message(&bytes, 3, &weight);
    pb_message(&bytes, 5, &chosen);
    assert_ok(load_graph(&bytes));
    node_of("Default/AddN-op1", &found);
    assert_int_equal(found.input_count, USES);
    node_of("Default/TupleGetItem-op39999", &found);
}

static void test_a_long_scope_is_looked_at_once(void **state)
{
    enum { USES = 1 << 18, LONG = 1 << 20 };
    struct gd_buf bytes = GD_BUF_INIT(1u << 28), node = GD_BUF_INIT(1u << 26),
                  weight = pb_parameter("w", 11, (int64_t[]){2}, 1);
    char *scope = malloc(LONG + 1);
    assert_non_null(scope);
    memset(scope, 'o', LONG);
    scope[LONG] = '\0';
    for (int i = 0; i < USES; i++) {
        gd_buf_add(&node, "\x0a\x03\x0a\x01w", 5);
    }
    pb_text(&node, 2, "1");
    pb_text(&node, 3, "AddN");
    pb_text(&node, 4, scope);
    pb_text(&node, 8, "Default/AddN-op1");
    free(scope);
    pb_message(&bytes, 1, &node);
    pb_message(&bytes, 3, &weight);
    assert_int_equal(load_graph(&bytes), GD_ELIMIT); /* a parameter cannot be shown there */
}

static const struct CMUnitTest tests[] = {
    TEST(test_small_graph),
    TEST(test_same_name_replaces_other_names_stay),
    TEST(test_shown_names),
    TEST(test_slashes_in_parameter_names),
    TEST(test_missing_and_cyclic),
    TEST(test_names_that_are_no_numbers),
    TEST(test_tuples_are_flattened),
    TEST(test_depth_bombs),
    TEST(test_absurd_shapes),
    TEST(test_broken_bytes),
    TEST(test_is_whole),
    TEST(test_values),
    TEST(test_long_attributes_are_left_out),
    TEST(test_large_items_are_read_once),
    TEST(test_a_long_scope_is_looked_at_once),
};

RUN_TESTS()

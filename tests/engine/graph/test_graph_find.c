// SPDX-License-Identifier: GPL-3.0-or-later
/* Nodes and scopes by what people type: dots or slashes, ends of names, the forward model first. */
#include "../../unit.h"
#include "engine/graph/selector.h"

static const struct {
    const char *name, *type;
    enum gd_node_kind kind;
} nodes[] = {
    {"eval/m/h/0/attn/linear", "linear", GD_NODE_OTHER},
    {"backward/m/h/0/attn", "x", GD_NODE_GRADIENT}, /* a node with the path of a module */
    {"backward/m/h/0/attn/linear", "x", GD_NODE_GRADIENT},
    {"optimizer/Adam/m/h/0/attn/weight", "Adam", GD_NODE_OTHER},
    {"m/h/0/attn/weight", "Parameter", GD_NODE_WEIGHT},
    {"m/h/0/attn/weight.grad", "Gradient", GD_NODE_GRADIENT},
    {"m/h/0/attn/linear", "linear", GD_NODE_OTHER},
    {"m/h/1/attn/weight", "Parameter", GD_NODE_WEIGHT},
    {"m/h/1/attn/linear", "linear", GD_NODE_OTHER},
    {"optimizer/Adam/m/head/state", "Adam", GD_NODE_OTHER},
    {"conv1.weight", "Parameter", GD_NODE_WEIGHT}, /* dots of its own */
    {"moments.conv1.weight", "Parameter", GD_NODE_PARAMETER},
    {"Default/net/fc.bias", "Parameter", GD_NODE_WEIGHT},
    {"layers[0].gain", "Parameter", GD_NODE_WEIGHT},
    {"m/1/5", "x", GD_NODE_OTHER},
    {"m/only.grad", "Gradient", GD_NODE_GRADIENT},
    {"optimizer/Adam/m/only.grad", "Adam", GD_NODE_OTHER},
};

static struct gd_graph *make_graph(void)
{
    struct gd_graph *graph;

    assert_ok(gd_graph_create(0, &graph, NULL));
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct gd_node_desc desc = {.name = nodes[i].name,
                                    .type = nodes[i].type,
                                    .kind = nodes[i].kind,
                                    .order = GD_NO_ORDER};

        assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    }
    assert_ok(gd_graph_commit(graph, NULL));
    return graph;
}

static void finds(const struct gd_graph *graph, const char *text, const char *expected)
{
    gd_node_id id = GD_NO_NODE;
    struct gd_err err = {.code = GD_OK};
    int rc = gd_graph_find(graph, text, &id, &err);

    if (rc != GD_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    assert_string_equal(gd_graph_name(graph, id), expected);
}

static void refuses(const struct gd_graph *graph, const char *text, int code, const char *says)
{
    gd_node_id id = GD_NO_NODE;
    struct gd_err err = {.code = GD_OK};

    assert_int_equal(gd_graph_find(graph, text, &id, &err), code);
    if (!strstr(err.text, says)) {
        fail_msg("%s: %s", text, err.text);
    }
}

static void test_nodes(void **state)
{
    struct gd_graph *graph = make_graph();

    finds(graph, "m.h.0.attn.weight", "m/h/0/attn/weight");
    finds(graph, "h.0.attn.weight", "m/h/0/attn/weight");
    finds(graph, "h[0].attn.weight", "m/h/0/attn/weight");
    finds(graph, "m.h[\"0\"].attn.weight", "m/h/0/attn/weight");
    finds(graph, "h.0.attn.weight.grad", "m/h/0/attn/weight.grad");
    finds(graph, "0/attn/weight.grad", "m/h/0/attn/weight.grad");
    finds(graph, "backward.m.h.0.attn.linear", "backward/m/h/0/attn/linear");
    finds(graph, "0/attn/weight", "m/h/0/attn/weight"); /* not the optimizer's */
    finds(graph, "0/attn/linear", "m/h/0/attn/linear"); /* not that of backward and evaluation */
    finds(graph, "head.state", "optimizer/Adam/m/head/state");
    finds(graph, "only.grad", "m/only.grad");
    finds(graph, "conv1.weight", "conv1.weight");
    finds(graph, "net.fc.bias", "Default/net/fc.bias");
    finds(graph, "fc/bias", "Default/net/fc.bias");
    finds(graph, "layers[0].gain", "layers[0].gain");
    finds(graph, "1/5", "m/1/5");
    refuses(graph, "1.5", GD_ENOTFOUND, "no node '1.5'"); /* a number */
    refuses(graph, "attn.weight", GD_EAMBIGUOUS,
            "'m/h/0/attn/weight' or 'm/h/1/attn/weight'"); /* only equals */
    refuses(graph, "m.h.0.attn.weigh", GD_ENOTFOUND, "did you mean 'm/h/0/attn/weight'");
    refuses(graph, "train.py", GD_ENOTFOUND, "no node 'train.py'");
    refuses(graph, ".", GD_ENOTFOUND, "no node");
    refuses(graph, "...", GD_ENOTFOUND, "no node");
    refuses(graph, "[0].", GD_ENOTFOUND, "no node");
    gd_graph_destroy(graph);
}

static void test_scopes(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *scope;
    } cases[] = {
        {"h.0.attn", GD_OK, "m/h/0/attn"}, {"m.h[0].attn", GD_OK, "m/h/0/attn"},
        {"0/attn", GD_OK, "m/h/0/attn"},   {"head", GD_OK, "optimizer/Adam/m/head"},
        {"attn", GD_EAMBIGUOUS, NULL},     {"eval.m.h", GD_OK, "eval/m/h"},
        {"tail", GD_ENOTFOUND, NULL},
    };
    struct gd_graph *graph = make_graph();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gd_scope_id scope = GD_NO_SCOPE;
        struct gd_scope_info info;
        struct gd_err err;

        assert_int_equal(gd_graph_find_scope_end(graph, cases[i].text, &scope, &err),
                         cases[i].code);
        if (cases[i].scope) {
            assert_true(gd_graph_scope(graph, scope, &info));
            assert_string_equal(info.name, cases[i].scope);
        }
    }
    gd_graph_destroy(graph);
}

/* How many nodes a selector takes, all at once and one after another. */
static void selects(struct gd_graph *graph, const char *text, size_t expected)
{
    struct gd_selector *selector;
    gd_node_id *found = NULL;
    size_t count = 0;
    struct gd_err err = {.code = GD_OK};

    assert_ok(gd_selector_parse(text, &selector, NULL));
    if (gd_selector_resolve(selector, graph, &found, &count, &err) != GD_OK || count != expected) {
        fail_msg("%s: %zu nodes, %s", text, count, err.text);
    }
    for (size_t i = 0; i < count; i++) { /* a graph that grows must not miss it */
        assert_true(!gd_selector_takes_alone(selector, graph, found[i], false) ||
                    gd_selector_matches(selector, graph, found[i]));
    }
    free(found);
    gd_selector_destroy(selector);
}

static void test_selectors(void **state)
{
    struct gd_graph *graph = make_graph();

    selects(graph, "h.0.attn", 3); /* the module, not the node of that name in backward */
    selects(graph, "m.h.0.attn.weight", 1);
    selects(graph, "h[0].attn.weight", 1);
    selects(graph, "h.*.attn.weight", 2);
    selects(graph, "m.h.*.weight", 2);
    selects(graph, "*.bias", 1);
    selects(graph, "*.weight", 5); /* of the optimizer, too */
    selects(graph, "conv1.*", 1);
    selects(graph, "backward.*", 2);
    gd_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nodes),
    cmocka_unit_test(test_scopes),
    cmocka_unit_test(test_selectors),
};

RUN_TESTS()

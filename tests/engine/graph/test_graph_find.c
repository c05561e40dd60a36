// SPDX-License-Identifier: GPL-3.0-or-later
/* Nodes and scopes by what people type: dots or slashes, ends of names, the forward model first. */
#include "../../unit.h"
#include "base/buf.h"
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

static void check_found(const struct gd_graph *graph, const char *text, const char *expected)
{
    gd_node_id id = GD_NO_NODE;
    struct gd_err err = {.code = GD_OK};
    int rc = gd_graph_find(graph, text, &id, &err);

    if (rc != GD_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    assert_string_equal(gd_graph_name(graph, id), expected);
}

static void check_refused(const struct gd_graph *graph, const char *text, int code,
                          const char *says)
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

    check_found(graph, "m.h.0.attn.weight", "m/h/0/attn/weight");
    check_found(graph, "h.0.attn.weight", "m/h/0/attn/weight");
    check_found(graph, "h[0].attn.weight", "m/h/0/attn/weight");
    check_found(graph, "m.h[\"0\"].attn.weight", "m/h/0/attn/weight");
    check_found(graph, "h.0.attn.weight.grad", "m/h/0/attn/weight.grad");
    check_found(graph, "0/attn/weight.grad", "m/h/0/attn/weight.grad");
    check_found(graph, "backward.m.h.0.attn.linear", "backward/m/h/0/attn/linear");
    check_found(graph, "0/attn/weight", "m/h/0/attn/weight"); /* not the optimizer's */
    check_found(graph, "0/attn/linear",
                "m/h/0/attn/linear"); /* not that of backward and evaluation */
    check_found(graph, "head.state", "optimizer/Adam/m/head/state");
    check_found(graph, "only.grad", "m/only.grad");
    check_found(graph, "conv1.weight", "conv1.weight");
    check_found(graph, "net.fc.bias", "Default/net/fc.bias");
    check_found(graph, "fc/bias", "Default/net/fc.bias");
    check_found(graph, "layers[0].gain", "layers[0].gain");
    check_found(graph, "1/5", "m/1/5");
    check_refused(graph, "1.5", GD_ENOTFOUND, "no node '1.5'"); /* a number */
    check_refused(graph, "attn.weight", GD_EAMBIGUOUS,
                  "'m/h/0/attn/weight' or 'm/h/1/attn/weight'"); /* only equals */
    check_refused(graph, "m.h.0.attn.weigh", GD_ENOTFOUND, "did you mean 'm/h/0/attn/weight'");
    check_refused(graph, "train.py", GD_ENOTFOUND, "no node 'train.py'");
    check_refused(graph, ".", GD_ENOTFOUND, "no node");
    check_refused(graph, "...", GD_ENOTFOUND, "no node");
    check_refused(graph, "[0].", GD_ENOTFOUND, "no node");
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
static void check_count(struct gd_graph *graph, const char *text, size_t expected)
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

    check_count(graph, "h.0.attn", 3); /* the module, not the node of that name in backward */
    check_count(graph, "m.h.0.attn.weight", 1);
    check_count(graph, "h[0].attn.weight", 1);
    check_count(graph, "h.*.attn.weight", 2);
    check_count(graph, "m.h.*.weight", 2);
    check_count(graph, "*.bias", 1);
    check_count(graph, "*.weight", 5); /* of the optimizer, too */
    check_count(graph, "conv1.*", 1);
    check_count(graph, "backward.*", 2);
    gd_graph_destroy(graph);
}

/* ---- modules, classes, tied parameters, words ------------------------------------------------ */

static gd_node_id add_node(struct gd_graph *graph, const char *name, enum gd_node_kind kind,
                           uint32_t order, const char *attr, const char *value)
{
    struct gd_attr said = {attr, value};
    struct gd_node_desc desc = {.name = name,
                                .type = "x",
                                .kind = kind,
                                .order = order,
                                .attrs = &said,
                                .attr_count = attr != NULL};
    gd_node_id id;

    assert_ok(gd_graph_add(graph, &desc, &id, NULL));
    return id;
}

static struct gd_graph *make_model(void)
{
    struct gd_graph *graph;

    assert_ok(gd_graph_create(0, &graph, NULL));
    add_node(graph, "m/emb/weight", GD_NODE_WEIGHT, GD_NO_ORDER, GD_ALIASES,
             "m/head/weight, m/x/w");
    add_node(graph, "m/h/0/attn/q/weight", GD_NODE_WEIGHT, GD_NO_ORDER, GD_CLASSES,
             "GPT/ModuleList/Block/Attn/Linear");
    add_node(graph, "m/h/0/attn/q/lora_A/weight", GD_NODE_WEIGHT, GD_NO_ORDER, NULL, NULL);
    add_node(graph, "m/h/1/attn/q/weight", GD_NODE_WEIGHT, GD_NO_ORDER, GD_FROZEN, "yes");
    add_node(graph, "m/h/0/attn/q/linear", GD_NODE_ACTIVATION, 1, NULL, NULL);
    add_node(graph, "m/h/0/attn/softmax", GD_NODE_ACTIVATION, 2, NULL, NULL);
    add_node(graph, "m/h/0/attn/q/weight.grad", GD_NODE_GRADIENT, 9, NULL, NULL);
    add_node(graph, "m/h/1/attn/softmax", GD_NODE_ACTIVATION, 4, GD_CLASSES,
             "GPT/ModuleList/Block/Attn");
    add_node(graph, "m/h/1/attn/q/linear", GD_NODE_ACTIVATION, 3, NULL, NULL);
    add_node(graph, "cross_entropy", GD_NODE_ACTIVATION, 5, NULL, NULL);
    add_node(graph, "backward/m/h/0/attn/softmax", GD_NODE_GRADIENT, 8, NULL, NULL);
    add_node(graph, "eval/m/h/0/attn/softmax", GD_NODE_ACTIVATION, 11, NULL, NULL);
    assert_ok(gd_graph_commit(graph, NULL));
    return graph;
}

/* What a selector takes, by name. */
static void check_taken(struct gd_graph *graph, enum gd_selector_extent extent, const char *text,
                        const char *expected)
{
    struct gd_selector *selector;
    gd_node_id *found = NULL;
    size_t count = 0;
    struct gd_err err = {.code = GD_OK};
    struct gd_buf names = GD_BUF_INIT(1 << 12);

    assert_ok(gd_selector_parse(text, &selector, NULL));
    gd_selector_set_extent(selector, extent);
    int rc = gd_selector_resolve(selector, graph, &found, &count, &err);
    for (size_t i = 0; i < count; i++) {
        gd_buf_printf(&names, "%s%s", i > 0 ? " " : "", gd_graph_name(graph, found[i]));
        /* a graph that grows must not miss it */
        if (extent == GD_EXTENT_WHOLE) {
            assert_true(!gd_selector_takes_alone(selector, graph, found[i], false) ||
                        gd_selector_matches(selector, graph, found[i]));
        }
    }
    assert_string_equal(rc == GD_OK ? gd_buf_text(&names) : err.text, expected);
    gd_buf_deinit(&names);
    free(found);
    gd_selector_destroy(selector);
}

static void test_modules(void **state)
{
    struct gd_graph *graph = make_model();

    check_taken(graph, GD_EXTENT_FIRST, "h.0.attn", "m/h/0/attn/q/linear");
    check_taken(graph, GD_EXTENT_LAST, "h.0.attn", "m/h/0/attn/softmax"); /* not the gradient */
    check_taken(graph, GD_EXTENT_FIRST, "Attn", "m/h/0/attn/q/linear m/h/1/attn/q/linear");
    check_taken(graph, GD_EXTENT_LAST, "Attn", "m/h/0/attn/softmax m/h/1/attn/softmax");
    check_taken(graph, GD_EXTENT_FIRST, "GPT", "m/h/0/attn/q/linear");
    check_taken(graph, GD_EXTENT_FIRST, "Linear", "m/h/0/attn/q/linear");
    check_taken(graph, GD_EXTENT_FIRST, "m/h/1/attn/", /* all of it */
                "m/h/1/attn/q/weight m/h/1/attn/softmax m/h/1/attn/q/linear");
    check_taken(graph, GD_EXTENT_FIRST, "m/emb", ""); /* nothing in it has run */
    check_taken(graph, GD_EXTENT_FIRST, "backward.m.h", "backward/m/h/0/attn/softmax");
    check_taken(graph, GD_EXTENT_WHOLE, "Block except gradients, weights, *0*",
                "m/h/1/attn/softmax m/h/1/attn/q/linear");
    check_taken(graph, GD_EXTENT_FIRST, "Nothing", "there is no node 'Nothing'");
    gd_graph_destroy(graph);
}

static void test_tied(void **state)
{
    struct gd_graph *graph = make_model();
    struct gd_attr fewer = {GD_ALIASES, "m/x/w"};

    check_found(graph, "m/head/weight", "m/emb/weight");
    check_found(graph, "head.weight", "m/emb/weight");
    check_found(graph, "x.w", "m/emb/weight");
    check_taken(graph, GD_EXTENT_WHOLE, "*head*", "m/emb/weight");
    check_taken(graph, GD_EXTENT_WHOLE, "head.weight", "m/emb/weight");
    assert_ok(gd_graph_set_attr(graph, 0, &fewer, NULL));
    check_refused(graph, "m/head/weight", GD_ENOTFOUND, "no node");
    check_found(graph, "m/x/w", "m/emb/weight");
    add_node(graph, "m/x/w", GD_NODE_WEIGHT, GD_NO_ORDER, NULL,
             NULL); /* a parameter of its own now */
    check_found(graph, "m/x/w", "m/x/w");
    gd_graph_destroy(graph);
}

static void test_words(void **state)
{
    struct gd_graph *graph = make_model();
    struct gd_attr again = {GD_FROZEN, ""};

    check_taken(graph, GD_EXTENT_WHOLE, "trainable",
                "m/emb/weight m/h/0/attn/q/weight m/h/0/attn/q/lora_A/weight");
    check_taken(graph, GD_EXTENT_WHOLE, "frozen", "m/h/1/attn/q/weight");
    check_taken(graph, GD_EXTENT_WHOLE, "lora", "m/h/0/attn/q/lora_A/weight");
    check_taken(graph, GD_EXTENT_WHOLE, "model except weights",
                "m/h/0/attn/q/linear m/h/0/attn/softmax m/h/1/attn/softmax m/h/1/attn/q/linear");
    check_taken(graph, GD_EXTENT_WHOLE, "eval", "eval/m/h/0/attn/softmax");
    add_node(graph, "train_step/relu", GD_NODE_ACTIVATION, 19, NULL, NULL);
    check_taken(graph, GD_EXTENT_WHOLE, "outside", "cross_entropy train_step/relu");
    assert_ok(gd_graph_set_attr(graph, 3, &again, NULL));
    check_taken(graph, GD_EXTENT_WHOLE, "frozen", "");
    add_node(graph, "model/fc/relu", GD_NODE_ACTIVATION, 20, NULL, NULL); /* a scope of that name */
    check_taken(graph, GD_EXTENT_WHOLE, "model", "model/fc/relu");
    gd_graph_destroy(graph);
}

static void test_dots(void **state)
{
    static const char *const cases[][2] = {
        {"m/h/0/attn/q/linear", "m.h.0.attn.q.linear"},
        {"$1 = m/emb/weight:0[0, :2]", "$1 = m.emb.weight:0[0, :2]"},
        {"'m/emb/weight' or 'm/head/weight': write", "'m.emb.weight' or 'm.head.weight': write"},
        {"m/h/0/attn/  6 nodes", "m.h.0.attn/  6 nodes"},
        {".../attn/softmax.", ".../attn.softmax."}, /* what stands for the beginning */
        {"/home/m/emb/weight 1/2 m/emb/wei", "/home/m/emb/weight 1/2 m/emb/wei"},
        {"a/", "a/"},
        {"//// m/emb/weight, x", "//// m.emb.weight, x"},
    };
    struct gd_graph *graph = make_model();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[100];

        snprintf(text, sizeof(text), "%s", cases[i][0]);
        gd_graph_put_dots(graph, text, strlen(text));
        assert_string_equal(text, cases[i][1]);
    }
    gd_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dots),      cmocka_unit_test(test_modules), cmocka_unit_test(test_tied),
    cmocka_unit_test(test_words),     cmocka_unit_test(test_nodes),   cmocka_unit_test(test_scopes),
    cmocka_unit_test(test_selectors),
};

RUN_TESTS()

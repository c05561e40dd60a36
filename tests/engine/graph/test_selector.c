// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../unit.h"
#include "engine/glob.h"
#include "engine/graph/selector.h"

static const struct {
    const char *name, *type, *source;
} nodes[] = {
    {"Default/net/conv1/Conv2D-op1", "Conv2D", "# In file model.py(42)/x/"},     /* a */
    {"Default/net/conv1/ReLU-op2", "ReLU", "# In file model.py(43)/x/"},         /* b */
    {"Default/net/conv2/Conv2D-op3", "Conv2D", "# In file lib/model.py(42)/x/"}, /* c */
    {"Default/conv1.weight", "Parameter", NULL},                                 /* d */
    {"Default/state", "Parameter", NULL},                                        /* e */
    {"Gradients/net/Conv2D-op4", "Conv2DBackprop", NULL},                        /* f */
    {"odd[0],name", "X", NULL},                                                  /* g */
    {"Default/net/conv2", "Tuple", NULL}, /* h: also a scope's path */
};
#define NODES (sizeof(nodes) / sizeof(nodes[0]))

static struct gd_graph *make_graph(void)
{
    struct gd_graph *graph;

    assert_ok(gd_graph_create(0, &graph, NULL));
    for (size_t i = 0; i < NODES; i++) {
        struct gd_node_desc desc = {.name = nodes[i].name,
                                    .type = nodes[i].type,
                                    .source = nodes[i].source,
                                    .order = GD_NO_ORDER};

        assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    }
    assert_ok(gd_graph_commit(graph, NULL));
    return graph;
}

static const struct {
    const char *text;
    int code;
    const char *result; /* letters of the nodes, or what the error says */
} cases[] = {
    {"all", GD_OK, "abcdefgh"},
    {"weights", GD_OK, "d"},
    {"parameters", GD_OK, "de"},
    {"gradients", GD_OK, "f"},
    {"activations", GD_OK, "b"},
    {"activations:relu", GD_OK, "b"},
    {"activations:RELU", GD_OK, "b"},
    {"activations:*lu", GD_OK, "b"},
    {"activations:gelu", GD_OK, ""},
    {"activations:conv2d", GD_OK, ""}, /* is none */
    {"weights, activations:relu", GD_OK, "bd"},
    {"all except activations:relu", GD_OK, "acdefgh"},
    {"type:conv2d", GD_OK, "ac"},
    {"type:conv2d*", GD_OK, "acf"},
    {"type:Nothing", GD_OK, ""},
    {"at:model.py:42", GD_OK, "ac"},
    {"at:lib/model.py", GD_OK, "c"},
    {"at:other.py", GD_OK, ""},
    {"Default/net/conv1/ReLU-op2", GD_OK, "b"},
    {"ReLU-op2", GD_OK, "b"},
    {"Default/net", GD_OK, "abch"},
    {"Default/net/", GD_OK, "abch"},
    {"conv1", GD_OK, "ab"}, /* a scope by the end of its path */
    {"net/conv1/", GD_OK, "ab"},
    {"Default/net/conv2", GD_OK, "h"}, /* the node before the scope */
    {"Default/net/conv2/", GD_OK, "c"},
    {"*Conv2D*", GD_OK, "acf"},
    {"Conv2D-op?", GD_OK, "acf"}, /* the last component */
    {"Default/*/ReLU*", GD_OK, "b"},
    {"*-op[1-2]", GD_OK, "ab"},
    {"*-op[!1-2]", GD_OK, "cf"},
    {"nothing*", GD_OK, ""},
    {"/op[13]$/", GD_OK, "ac"},
    {"/^Default/net.*(ReLU|op3)/", GD_OK, "bc"},
    {"/^Default\\/net/, weights", GD_OK, "abcdh"},
    {"ReLU-op2,weights", GD_OK, "bd"},
    {"ReLU-op2 | weights|Gradients", GD_OK, "bdf"},
    {"all except weights", GD_OK, "abcefgh"},
    {"all except weights, type:X", GD_OK, "abcefh"},
    {"all except Default with weights", GD_OK, "dfg"},
    {"all except Default, Gradients with weights, ReLU-op2 except type:ReLU", GD_OK, "dg"},
    {"\"odd[0],name\"", GD_OK, "g"},
    {"*[C]onv2D*", GD_OK, "acf"},
    {"*[!]]onv2D-op[!]1]", GD_OK, "cf"},
    {"*Conv2D\\-op1", GD_OK, "a"},
    {"?ef*con*/*", GD_OK, "abc"},
    {"  all  ", GD_OK, "abcdefgh"},
    {"missing", GD_ENOTFOUND, "there is no node 'missing'"},
    {"missing/", GD_ENOTFOUND, "there is no scope 'missing/'"},
    {"all except missing", GD_ENOTFOUND, "missing"},
    {"", GD_EINVAL, "missing at column 1"},
    {"a,", GD_EINVAL, "missing at column 3"},
    {",a", GD_EINVAL, "missing at column 1"},
    {"a b", GD_EINVAL, "',' or 'except' is missing at column 3"},
    {"all except", GD_EINVAL, "missing at column 11"},
    {"all except a except b", GD_EINVAL, "',' or 'with' is missing at column 14"},
    {"all with a", GD_EINVAL, "',' or 'except' is missing at column 5"},
    {"all except a with", GD_EINVAL, "missing at column 18"},
    {"/abc", GD_EINVAL, "not closed at column 1"},
    {"\"abc", GD_EINVAL, "not closed at column 1"},
    {"x,/a(/", GD_EINVAL, "at column 3"},
    {"/(a{999}){999}/", GD_EINVAL, "too large at column 1"},
    {"/a{,20000}/", GD_EINVAL, "too large at column 1"},
    {"/a++++++++++++++++++++++++/", GD_EINVAL, "too large at column 1"},
    {"/a************************/", GD_EINVAL, "too large at column 1"},
    {"/^(a*)*(b*)*(c*)*(d*)*(e*)*(f*)*(g*)*(h*)*(i*)*(j*)*(k*)*(l*)*(m*)*/", GD_EINVAL,
     "too large at column 1"},
    {"/((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+/", GD_EINVAL, "too large at column 1"},
    {"/a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+|^Default[/]net[+]?|state/", GD_OK, "abceh"},
    {"type:", GD_EINVAL, "needs an operator type"},
    {"activations:", GD_EINVAL, "needs a function"},
    {"at:", GD_EINVAL, "needs FILE"},
};

static void spell_ids(const gd_node_id *ids, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (char)('a' + (int)ids[i]);
    }
    out[count] = '\0';
}

/* One by one it selects the same, where each is taken alone: returns whether all are. */
static bool check_each(const struct gd_selector *selector, struct gd_graph *graph, const char *all)
{
    bool alone = true;

    for (gd_node_id i = 0; i < NODES; i++) {
        bool selected = strchr(all, 'a' + (int)i) != NULL;
        if (!gd_selector_takes_alone(selector, graph, i, true)) {
            alone = false;
        } else {
            assert_int_equal(gd_selector_matches(selector, graph, i), selected);
        }
    }
    return alone;
}

static void test_cases(void **state)
{
    struct gd_graph *graph = make_graph();
    int by_node = 0, by_name = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_selector *selector = NULL;
        struct gd_err err = {0};
        gd_node_id *ids = NULL;
        size_t count = 0;
        char have[NODES + 1];
        int rc = gd_selector_parse(cases[i].text, &selector, &err);

        if (rc == GD_OK) {
            rc = gd_selector_resolve(selector, graph, &ids, &count, &err);
        }
        if (rc != cases[i].code) {
            fail_msg("%s: code %d, %s", cases[i].text, rc, err.text);
        }
        if (rc != GD_OK) {
            if (!strstr(err.text, cases[i].result)) {
                fail_msg("%s: %s", cases[i].text, err.text);
            }
        } else {
            spell_ids(ids, count, have);
            if (strcmp(have, cases[i].result) != 0) {
                fail_msg("%s: %s, not %s", cases[i].text, have, cases[i].result);
            }
            if (check_each(selector, graph, have)) {
                by_node++;
            } else {
                by_name++;
            }
        }
        free(ids);
        gd_selector_destroy(selector);
    }
    assert_true(by_node > 10 && by_name > 10);
    gd_graph_destroy(graph);
}

static void test_ambiguous(void **state)
{
    struct gd_graph *graph = make_graph();
    struct gd_node_desc desc = {.name = "Other/ReLU-op2", .type = "X", .order = GD_NO_ORDER};
    struct gd_selector *selector;
    gd_node_id *ids;
    size_t count;
    struct gd_err err;

    assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    assert_ok(gd_selector_parse("ReLU-op2", &selector, &err));
    assert_int_equal(gd_selector_resolve(selector, graph, &ids, &count, &err), GD_EAMBIGUOUS);
    gd_selector_destroy(selector);
    gd_graph_destroy(graph);
}

static size_t resolve_text(struct gd_graph *graph, const char *text, gd_node_id *first)
{
    struct gd_selector *selector = NULL;
    gd_node_id *ids = NULL;
    size_t count = 0;

    assert_ok(gd_selector_parse(text, &selector, NULL));
    assert_ok(gd_selector_resolve(selector, graph, &ids, &count, NULL));
    *first = count ? ids[0] : GD_NO_NODE;
    free(ids);
    gd_selector_destroy(selector);
    return count;
}

static void enter_subgraph(struct gd_graph *graph, const char *name, bool replace)
{
    assert_ok(gd_graph_subgraph(graph, name, replace, NULL, NULL));
}

static gd_node_id add_wired(struct gd_graph *graph, const char *name, const char *wire)
{
    struct gd_node_desc desc = {
        .name = name, .wire_name = wire, .type = "Parameter", .order = GD_NO_ORDER};
    gd_node_id id;

    assert_ok(gd_graph_add(graph, &desc, &id, NULL));
    return id;
}

static int count_one(void *ctx, gd_node_id node)
{
    ++*(int *)ctx;
    return 0;
}

static int found_by_name(const struct gd_graph *graph, const char *text)
{
    int count = 0;

    gd_graph_search_name(graph, text, count_one, &count);
    return count;
}

static void check_qualified(struct gd_graph *graph, const gd_node_id weight[2], gd_node_id alone)
{
    struct gd_scope_info scope;
    struct gd_node_info info;
    struct gd_err err;
    gd_node_id id;

    assert_true(gd_graph_is_qualified(graph));
    assert_string_equal(gd_graph_name(graph, weight[0]), "g0/net/fc.weight");
    assert_string_equal(gd_graph_name(graph, weight[1]), "g1/net/fc.weight");
    assert_string_equal(gd_graph_name(graph, alone), "net/Alone"); /* unique: stays as it is */
    assert_true(gd_graph_node(graph, weight[1], &info));
    assert_string_equal(info.own_name, "net/fc.weight");
    assert_string_equal(info.wire_name, "fc.weight");
    for (int i = 0; i < 2; i++) {
        static const char *const names[2][3] = {
            {"g0/net/fc.weight", "g0/fc.weight", "g0/fc.weight"},
            {"g1/net/fc.weight", "g1/fc.weight", "g1/fc.weight"}};

        for (int k = 0; k < 3; k++) {
            assert_ok(gd_graph_find(graph, names[i][k], &id, &err));
            assert_int_equal(id, weight[i]);
        }
        assert_int_equal(gd_graph_lookup_in(graph, (uint32_t)i, "fc.weight", 9), weight[i]);
    }
    assert_ok(gd_graph_find(graph, "g1/net/Alone", &id, &err));
    assert_int_equal(id, alone);
    assert_int_equal(gd_graph_find(graph, "fc.weight", &id, &err), GD_EAMBIGUOUS);
    assert_contains(err.text, "'g0/net/fc.weight' or 'g1/net/fc.weight'");
    assert_int_equal(gd_graph_find(graph, "net/fc.weight", &id, &err), GD_EAMBIGUOUS);
    assert_int_equal(gd_graph_lookup_wire(graph, "fc.weight", 9), GD_NO_NODE);
    assert_int_equal(found_by_name(graph, "g1/net"), 2);
    assert_int_equal(found_by_name(graph, "fc.weight"), 2);
    assert_true(gd_graph_scope(graph, 0, &scope));
    assert_true(gd_graph_scope(graph, scope.first_child, &scope));
    assert_string_equal(scope.name, "g0"); /* a graph is a root */
    assert_true(gd_graph_scope(graph, scope.next, &scope));
    assert_string_equal(scope.name, "g1");
    assert_int_equal(scope.total_count, 2);
    assert_int_equal(gd_graph_find_scope(graph, "net", 3), GD_NO_SCOPE);
    assert_int_not_equal(gd_graph_find_scope(graph, "g1/net", 6), GD_NO_SCOPE);
}

static void check_selected(struct gd_graph *graph, const gd_node_id weight[2], gd_node_id alone)
{
    gd_node_id first;

    assert_int_equal(resolve_text(graph, "*.weight", &first), 2);
    assert_int_equal(resolve_text(graph, "g1/*.weight", &first), 1);
    assert_int_equal(first, weight[1]);
    assert_int_equal(resolve_text(graph, "/^g0.*weight$/", &first), 1);
    assert_int_equal(first, weight[0]);
    assert_int_equal(resolve_text(graph, "/^net.*weight$/", &first), 2);
    assert_int_equal(resolve_text(graph, "net", &first), 3); /* in all graphs that have the scope */
    assert_int_equal(resolve_text(graph, "g1/net/", &first), 2);
    assert_int_equal(resolve_text(graph, "g1", &first), 2);
    assert_int_equal(resolve_text(graph, "g1/fc.weight", &first), 1);
    assert_int_equal(first, weight[1]);
    assert_int_equal(resolve_text(graph, "net/Alone", &first), 1);
    assert_int_equal(first, alone);
}

static void test_names_of_two_graphs(void **state)
{
    struct gd_graph *graph;
    struct gd_scope_info scope;
    gd_node_id weight[2], alone;
    uint64_t changes;

    assert_ok(gd_graph_create(0, &graph, NULL));
    enter_subgraph(graph, "g0", false);
    weight[0] = add_wired(graph, "net/fc.weight", "fc.weight");
    assert_ok(gd_graph_commit(graph, NULL));
    assert_false(gd_graph_is_qualified(graph));
    assert_string_equal(gd_graph_name(graph, weight[0]), "net/fc.weight");
    assert_true(gd_graph_scope(graph, 0, &scope));
    assert_true(gd_graph_scope(graph, scope.first_child, &scope));
    assert_string_equal(scope.name, "net"); /* one graph is no row */
    assert_int_equal(scope.parent, 0);
    changes = gd_graph_changes(graph);
    enter_subgraph(graph, "g1", false);
    weight[1] = add_wired(graph, "net/fc.weight", "fc.weight");
    assert_true(gd_graph_changes(graph) > changes);
    alone = add_wired(graph, "net/Alone", NULL);
    assert_ok(gd_graph_commit(graph, NULL));
    check_qualified(graph, weight, alone);
    check_selected(graph, weight, alone);
    enter_subgraph(graph, "g0", true);
    assert_ok(gd_graph_commit(graph, NULL));
    assert_string_equal(gd_graph_name(graph, weight[1]), "net/fc.weight"); /* alone again */
    enter_subgraph(graph, "g0", false);
    weight[0] = add_wired(graph, "net/fc.weight", "fc.weight");
    assert_ok(gd_graph_commit(graph, NULL));
    check_qualified(graph, weight, alone);
    gd_graph_destroy(graph);
}

/* Whatever a name holds, quotes make it one term. */
static void test_odd_names(void **state)
{
    static const char *const names[] = {
        "/abs/x",          "p|q",  "a, b", "weights",  "type:X",
        "all except none", "x/y/", "*",    "in\"side", "back\\slash"};
    struct gd_graph *graph = NULL;
    char quoted[64];

    assert_ok(gd_graph_create(0, &graph, NULL));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct gd_node_desc desc = {.name = names[i], .type = "X", .order = GD_NO_ORDER};

        assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        gd_node_id first;

        snprintf(quoted, sizeof(quoted), "\"%s\"", names[i]);
        if (resolve_text(graph, quoted, &first) != 1 || first != i) {
            fail_msg("%s", quoted);
        }
    }
    gd_graph_destroy(graph);
}

static void test_except_at_end(void **state)
{
    static const struct {
        const char *text;
        bool has, ends;
    } selectors[] = {
        {"all", false, false},
        {"all except a", true, true},
        {"all except a, b", true, true},
        {"all except a with b", true, false},
        {"all except a with b except c", true, true},
        {"\"all except a\"", false, false},
    };

    for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
        struct gd_selector *selector;

        assert_ok(gd_selector_parse(selectors[i].text, &selector, NULL));
        assert_int_equal(gd_selector_has_except(selector), selectors[i].has);
        assert_int_equal(gd_selector_ends_in_except(selector), selectors[i].ends);
        gd_selector_destroy(selector);
    }
}

static void test_glob(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } globs[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"a*b*c", "axxbyyc", true},
        {"a*b*c", "axxbyy", false},
        {"?", "", false},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[a-c]x", "bx", true},
        {"[a-", "[a-", true},
        {"[", "[", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", true},
        {"*/x", "a/b/x", true},
        {"[^a]", "b", true},
        {"**", "abc", true},
        {"a*", "b", false},
    };
    char text[5001];

    for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
        if (gd_glob_match(globs[i].pattern, globs[i].text, false) != globs[i].match) {
            fail_msg("%s against %s", globs[i].pattern, globs[i].text);
        }
    }
    assert_true(gd_glob_match("rElU[A-B]", "ReluB", true));
    assert_false(gd_glob_match("rElU", "Relu", false));
    /* Many stars against a long text that does not match: done before anybody notices. */
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(gd_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text, false));
}

static void note_part(void *ctx, const char *part, bool is_name)
{
    char *text = ctx;

    snprintf(text + strlen(text), 200 - strlen(text), "%s%s;", part, is_name ? "!" : "");
}

/* What a name must have that is waited for. */
static void test_parts(void **state)
{
    static const struct {
        const char *text, *parts;
    } parts[] = {
        {"/relu_[0-9]+$/", "relu_;"},
        {"/^net.conv2d/", "conv2d;"},
        {"/abcd*xy/", "abc;"},
        {"/abc?/", "ab;"},
        {"/ab{2,30}cd/", "cd;"},
        {"/a+bc\\.d/", "bc;"},
        {"/ab|cd/", ";"},
        {"/(ab)?/", ";"},
        {"/[abc]d/", ";"},
        {"/.*/", ";"},
        {"/ab{/", "a;"},
        {"late*r, weights, type:X except early", "late!;;"},
    };
    struct gd_graph *graph = make_graph();

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct gd_selector *selector;
        char text[200] = "";

        if (gd_selector_parse(parts[i].text, &selector, NULL) != GD_OK) {
            continue; /* a library may refuse what another takes literally */
        }
        gd_selector_parts(selector, graph, note_part, text);
        assert_string_equal(text, parts[i].parts);
        gd_selector_destroy(selector);
    }
    gd_graph_destroy(graph);
}

static void test_compiled(void **state)
{
    static const struct {
        const char *text, *result;
    } named[] = {
        {"all", "abcdefgh"},         {"type:Conv2D", "ac"},
        {"*onv2D-op1", "a"},         {"/Conv2D-op1/", "a"},
        {"compiled", "i"},           {"compiled/f/Conv2D-op1", "i"},
        {"compiled/*Conv2D*", "i"},  {"\"compiled/f/Conv2D-op1\"", "i"},
        {"Default/net/conv1", "ab"}, {"all except weights with compiled", "abcefghi"},
    };
    struct gd_graph *graph = make_graph();
    struct gd_node_desc desc = {.name = "compiled/f/Conv2D-op1",
                                .type = "Conv2D",
                                .kind = GD_NODE_COMPILED,
                                .order = GD_NO_ORDER};

    assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    assert_ok(gd_graph_commit(graph, NULL));
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        struct gd_selector *selector;
        gd_node_id *found = NULL;
        size_t count = 0;
        char text[NODES + 2];

        assert_ok(gd_selector_parse(named[i].text, &selector, NULL));
        assert_ok(gd_selector_resolve(selector, graph, &found, &count, NULL));
        spell_ids(found, count, text);
        assert_string_equal(text, named[i].result);
        free(found);
        gd_selector_destroy(selector);
    }
    gd_graph_destroy(graph);
}

/* The end of a name waits for a node that runs. */
static void test_ending_of_compiled(void **state)
{
    struct gd_graph *graph;
    struct gd_selector *selector;
    gd_node_id *found = NULL;
    size_t count = 0;
    struct gd_node_desc desc = {.name = "compiled/f/ReLU",
                                .type = "ReLU",
                                .kind = GD_NODE_COMPILED,
                                .wire_name = "Default/ReLU-op0"};

    assert_ok(gd_graph_create(0, &graph, NULL));
    assert_ok(gd_graph_add(graph, &desc, NULL, NULL));
    assert_ok(gd_graph_commit(graph, NULL));
    assert_ok(gd_selector_parse("f/ReLU", &selector, NULL));
    assert_int_equal(gd_selector_resolve(selector, graph, &found, &count, NULL), GD_ENOTFOUND);
    gd_selector_destroy(selector);
    assert_ok(gd_selector_parse("Default/ReLU-op0", &selector, NULL));
    assert_ok(gd_selector_resolve(selector, graph, &found, &count, NULL));
    assert_int_equal(count, 1);
    free(found);
    gd_selector_destroy(selector);
    gd_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_compiled),
    cmocka_unit_test(test_ending_of_compiled),
    cmocka_unit_test(test_cases),
    cmocka_unit_test(test_ambiguous),
    cmocka_unit_test(test_odd_names),
    cmocka_unit_test(test_except_at_end),
    cmocka_unit_test(test_names_of_two_graphs),
    cmocka_unit_test(test_glob),
    cmocka_unit_test(test_parts),
};

RUN_TESTS()

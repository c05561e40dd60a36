// SPDX-License-Identifier: GPL-3.0-or-later
/* The tree's rows against a plain flattening of the same graph, through opening, folding, growing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../unit.h"
#include "tui/panes/tree.h"

static void add_node(struct gd_graph *graph, const char *name, const char *type)
{
    struct gd_node_desc desc = {.name = name, .type = type, .order = GD_NO_ORDER};
    gd_node_id id;
    struct gd_err err;
    if (gd_graph_add(graph, &desc, &id, &err) != GD_OK) {
        fail_msg("%s: %s", name, err.text);
    }
}

static struct gd_graph *graph_of(const char *const *names)
{
    struct gd_graph *graph;
    uint32_t subgraph;
    assert_int_equal(gd_graph_create(0, &graph, NULL), GD_OK);
    assert_int_equal(gd_graph_subgraph(graph, "main", false, &subgraph, NULL), GD_OK);
    for (; *names; names++) {
        add_node(graph, *names, "MatMul");
    }
    assert_int_equal(gd_graph_commit(graph, NULL), GD_OK);
    return graph;
}

static struct tui_tree *tree_of(const struct gd_graph *graph)
{
    struct tui_tree *tree;
    assert_int_equal(tui_tree_create(&tree, NULL), GD_OK);
    assert_int_equal(tui_tree_set_graph(tree, graph, false), GD_OK);
    return tree;
}

/* All rows from the first to the last, one a line: "  +label" for scopes, "  label" for nodes. */
static char *print_rows(const struct tui_tree *tree)
{
    static char out[65536];
    struct tui_tree_pos pos;
    struct tui_tree_row row;
    size_t used = 0;

    out[0] = '\0';
    for (bool more = tui_tree_first(tree, &pos); more; more = tui_tree_next(tree, &pos)) {
        assert_true(tui_tree_get(tree, &pos, &row));
        used += (size_t)snprintf(out + used, sizeof(out) - used, "%*s%s%s\n", 2 * row.depth, "",
                                 row.is_scope ? (row.open ? "-" : "+") : "", row.label);
        assert_true(used < sizeof(out));
    }
    return out;
}

/* Going back from the end visits the same rows. */
static void check_backwards(const struct tui_tree *tree)
{
    struct tui_tree_pos forward[1000], pos;
    int count = 0;

    for (bool more = tui_tree_first(tree, &pos); more; more = tui_tree_next(tree, &pos)) {
        assert_true(count < 1000);
        forward[count++] = pos;
    }
    if (count == 0) {
        assert_false(tui_tree_last(tree, &pos));
        return;
    }
    assert_true(tui_tree_last(tree, &pos));
    for (int i = count - 1; i >= 0; i--) {
        assert_int_equal(pos.in, forward[i].in);
        assert_int_equal(pos.index, forward[i].index);
        assert_int_equal(tui_tree_previous(tree, &pos), i > 0);
    }
}

static struct tui_tree_pos find_row(const struct tui_tree *tree, const char *label)
{
    struct tui_tree_pos pos;
    struct tui_tree_row row;
    for (bool more = tui_tree_first(tree, &pos); more; more = tui_tree_next(tree, &pos)) {
        if (tui_tree_get(tree, &pos, &row) && strcmp(row.label, label) == 0) {
            return pos;
        }
    }
    fail_msg("no row %s", label);
    return pos;
}

static void open_row(struct tui_tree *tree, const char *label, bool open)
{
    struct tui_tree_pos pos = find_row(tree, label);
    assert_int_equal(tui_tree_open(tree, &pos, open), GD_OK);
}

static const char *const small[] = {"a/b/x", "a/b/y", "a/z", "c/d/e/f", "top", "a/b2/w", NULL};

static void opening_and_folding(void **state)
{
    struct gd_graph *graph = graph_of(small);
    struct tui_tree *tree = tree_of(graph);

    assert_string_equal(print_rows(tree), "+a\n+c\ntop\n");
    open_row(tree, "a", true);
    assert_string_equal(print_rows(tree), "-a\n  +b\n  +b2\n  z\n+c\ntop\n");
    open_row(tree, "b", true);
    assert_string_equal(print_rows(tree), "-a\n  -b\n    x\n    y\n  +b2\n  z\n+c\ntop\n");
    check_backwards(tree);
    open_row(tree, "a", false);
    assert_string_equal(print_rows(tree), "+a\n+c\ntop\n");
    check_backwards(tree);
    open_row(tree, "a", true); /* what was open inside still is */
    assert_string_equal(print_rows(tree), "-a\n  -b\n    x\n    y\n  +b2\n  z\n+c\ntop\n");
    open_row(tree, "top", true); /* nothing happens to a node */
    struct tui_tree_pos pos = find_row(tree, "x");
    assert_true(tui_tree_up(tree, &pos));
    struct tui_tree_row row;
    assert_true(tui_tree_get(tree, &pos, &row));
    assert_string_equal(row.label, "b");
    assert_int_equal(row.count, 2);
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

static void test_revealing(void **state)
{
    struct gd_graph *graph = graph_of(small);
    struct tui_tree *tree = tree_of(graph);
    struct tui_tree_pos pos;
    struct tui_tree_row row;

    gd_node_id node = gd_graph_lookup(graph, "c/d/e/f", 7);
    assert_int_not_equal(node, GD_NO_NODE);
    assert_int_equal(tui_tree_reveal(tree, node, &pos), GD_OK);
    assert_true(tui_tree_get(tree, &pos, &row));
    assert_int_equal(row.node, node);
    assert_string_equal(row.label, "f");
    assert_string_equal(print_rows(tree), "+a\n-c\n  -d\n    -e\n      f\ntop\n");
    assert_int_equal(tui_tree_reveal(tree, 12345, &pos), GD_ENOTFOUND);
    assert_int_equal(tui_tree_reveal(tree, GD_NO_NODE, &pos), GD_ENOTFOUND);
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

/* A row that was shown before folds hid it. */
static void test_settling(void **state)
{
    struct gd_graph *graph = graph_of(small);
    struct tui_tree *tree = tree_of(graph);
    struct tui_tree_pos pos;
    struct tui_tree_row row;

    gd_node_id node = gd_graph_lookup(graph, "c/d/e/f", 7);
    assert_int_equal(tui_tree_reveal(tree, node, &pos), GD_OK);
    tui_tree_settle(tree, &pos);
    assert_true(tui_tree_get(tree, &pos, &row) && row.node == node);
    open_row(tree, "e", false);
    tui_tree_settle(tree, &pos);
    assert_true(tui_tree_get(tree, &pos, &row) && row.is_scope);
    assert_string_equal(row.label, "e");
    open_row(tree, "d", false);
    open_row(tree, "c", false);
    tui_tree_settle(tree, &pos);
    assert_true(tui_tree_get(tree, &pos, &row) && row.is_scope);
    assert_string_equal(row.label, "c");
    tui_tree_settle(tree, &pos); /* it stays */
    assert_true(tui_tree_get(tree, &pos, &row) && row.is_scope);
    assert_string_equal(row.label, "c");
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

static void test_growing(void **state)
{
    struct gd_graph *graph = graph_of(small);
    struct tui_tree *tree = tree_of(graph);

    open_row(tree, "a", true);
    open_row(tree, "b", true);
    add_node(graph, "a/b/new", "Add");
    add_node(graph, "n/o", "Add");
    assert_int_equal(gd_graph_commit(graph, NULL), GD_OK);
    assert_int_equal(tui_tree_set_graph(tree, graph, true), GD_OK);
    assert_string_equal(print_rows(tree),
                        "-a\n  -b\n    x\n    y\n    new\n  +b2\n  z\n+c\n+n\ntop\n");
    check_backwards(tree);
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

static struct tui_found *filter_of(const struct gd_graph *graph, const char *words)
{
    struct tui_found *found = NULL;
    struct gd_err err;
    if (tui_found_words(graph, words, NULL, &found, &err) != GD_OK) {
        fail_msg("%s: %s", words, err.text);
    }
    return found;
}

/* Only what is found, opened; afterwards everything is as it was. */
static void test_filtering(void **state)
{
    struct gd_graph *graph = graph_of(small);
    struct tui_tree *tree = tree_of(graph);
    struct tui_found *found = filter_of(graph, "A/B type:matmul");
    struct tui_found *none = filter_of(graph, "type:relu");
    struct tui_found *other = NULL;
    struct tui_tree_pos pos;
    struct gd_err err;

    open_row(tree, "c", true);
    assert_int_equal(tui_found_count(found), 3);
    assert_int_equal(tui_tree_filter(tree, found), GD_OK);
    assert_string_equal(print_rows(tree), "-a\n  -b\n    x\n    y\n  -b2\n    w\n");
    check_backwards(tree);
    open_row(tree, "b", false);
    assert_string_equal(print_rows(tree), "-a\n  +b\n  -b2\n    w\n");
    assert_int_equal(tui_tree_reveal(tree, gd_graph_lookup(graph, "top", 3), &pos), GD_ENOTFOUND);
    assert_int_equal(tui_tree_filter(tree, none), GD_OK);
    assert_string_equal(print_rows(tree), "");
    assert_int_equal(tui_tree_filter(tree, NULL), GD_OK);
    assert_string_equal(print_rows(tree), "+a\n-c\n  +d\ntop\n");
    assert_int_equal(tui_found_words(graph, "kind:nothing", NULL, &other, &err), GD_EINVAL);
    tui_found_free(found);
    tui_found_free(none);
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

/* Next and previous go through what is found in the order of the rows, and around. */
static void test_searching(void **state)
{
    static const char *const order[] = {"a/b/x", "a/b/y", "a/b2/w", "a/z", "c/d/e/f", "top"};
    struct gd_graph *graph = graph_of(small);
    struct tui_found *found = NULL;
    gd_node_id at = GD_NO_NODE;

    assert_int_equal(tui_found_words(graph, "", NULL, &found, NULL), GD_OK);
    for (int i = 0; i < 12; i++) {
        at = tui_found_next(found, 0, at);
        assert_string_equal(gd_graph_name(graph, at), order[i % 6]);
    }
    for (int i = 10; i >= 0; i--) {
        at = tui_found_previous(found, 0, at);
        assert_string_equal(gd_graph_name(graph, at), order[i % 6]);
    }
    tui_found_free(found);
    assert_int_equal(tui_found_words(graph, "no such", NULL, &found, NULL), GD_OK);
    assert_int_equal(tui_found_next(found, 0, GD_NO_NODE), GD_NO_NODE);
    assert_int_equal(tui_found_previous(found, 0, at), GD_NO_NODE);
    tui_found_free(found);
    gd_graph_destroy(graph);
}

static void no_graph(void **state)
{
    static const char *const none[] = {NULL};
    struct gd_graph *graph = graph_of(none);
    struct tui_tree *tree = tree_of(graph);
    struct tui_tree_pos pos = {7, 9};
    struct tui_tree_row row;

    assert_false(tui_tree_first(tree, &pos));
    assert_false(tui_tree_last(tree, &pos));
    assert_false(tui_tree_get(tree, &pos, &row));
    assert_int_equal(tui_tree_set_graph(tree, NULL, false), GD_OK);
    assert_false(tui_tree_first(tree, &pos));
    assert_int_equal(tui_tree_reveal(tree, 0, &pos), GD_ENOTFOUND);
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

/* A scope with very many nodes: only what is walked over costs. */
static void test_wide(void **state)
{
    enum { COUNT = 200000 };
    struct gd_graph *graph;
    uint32_t subgraph;
    struct tui_tree_pos pos;
    struct tui_tree_row row;
    char name[64];

    assert_int_equal(gd_graph_create(0, &graph, NULL), GD_OK);
    assert_int_equal(gd_graph_subgraph(graph, "main", false, &subgraph, NULL), GD_OK);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "wide/Add-op%d", i);
        add_node(graph, name, "Add");
    }
    assert_int_equal(gd_graph_commit(graph, NULL), GD_OK);
    struct tui_tree *tree = tree_of(graph);
    open_row(tree, "wide", true);
    assert_true(tui_tree_last(tree, &pos));
    assert_true(tui_tree_get(tree, &pos, &row));
    snprintf(name, sizeof(name), "Add-op%d", COUNT - 1);
    assert_string_equal(row.label, name);
    for (int i = 0; i < COUNT; i++) {
        assert_true(tui_tree_previous(tree, &pos));
    }
    assert_true(tui_tree_get(tree, &pos, &row) && row.is_scope);
    assert_int_equal(row.count, COUNT);
    tui_tree_destroy(tree);
    gd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_and_folding),
        cmocka_unit_test(test_revealing),
        cmocka_unit_test(test_settling),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_filtering),
        cmocka_unit_test(test_searching),
        cmocka_unit_test(no_graph),
        cmocka_unit_test(test_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

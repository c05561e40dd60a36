// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/tree.h"

#include <stdlib.h>
#include <string.h>

struct opened { /* a scope whose rows have been laid out */
    gd_scope_id *scopes;
    gd_node_id *nodes;
    uint32_t scope_count, node_count;
    uint32_t index; /* of its own row in the parent */
    gd_scope_id parent;
    int depth; /* of its rows */
    bool open; /* a folded scope keeps its layout until the graph changes */
};

struct tui_tree {
    const struct gd_graph *graph;
    struct opened **by_scope; /* NULL: never opened */
    uint32_t scope_limit;
    const struct tui_found *found; /* NULL: all rows */
    struct opened **unfiltered; /* the layout without the filter, kept while the filter is active */
};

static int lay_out(const struct tui_tree *tree, gd_scope_id scope, bool open);

/* With a filter, every scope that contains a match is open from the start. It is laid out when it
 * is first shown, so that a filter with very many matches costs only what is visible. */
static const struct opened *opened_at(const struct tui_tree *tree, gd_scope_id scope)
{
    if (scope >= tree->scope_limit) {
        return NULL;
    }
    if (!tree->by_scope[scope] && tree->found && tui_found_below(tree->found, scope) > 0) {
        lay_out(tree, scope, true);
    }
    return tree->by_scope[scope];
}

static bool is_open(const struct tui_tree *tree, gd_scope_id scope)
{
    const struct opened *opened = opened_at(tree, scope);
    return opened && opened->open;
}

static void opened_free(struct opened *opened)
{
    if (opened) {
        free(opened->scopes);
        free(opened->nodes);
        free(opened);
    }
}

int tui_tree_create(struct tui_tree **ret, struct gd_err *err)
{
    struct tui_tree *tree = calloc(1, sizeof(*tree));

    if (!tree) {
        return gd_fail_nomem(err);
    }
    *ret = tree;
    return GD_OK;
}

static void layout_free(struct opened **by_scope, uint32_t limit)
{
    for (uint32_t i = 0; by_scope && i < limit; i++) {
        opened_free(by_scope[i]);
    }
    free(by_scope);
}

static void forget_all(struct tui_tree *tree)
{
    tui_tree_filter(tree, NULL);
    layout_free(tree->by_scope, tree->scope_limit);
    tree->by_scope = NULL;
    tree->scope_limit = 0;
}

void tui_tree_destroy(struct tui_tree *tree)
{
    if (tree) {
        forget_all(tree);
        free(tree);
    }
}

/* ---- laying out ---- */

static int lists_fill(const struct tui_tree *tree, const struct gd_scope_info *info,
                      struct opened *opened)
{
    struct gd_scope_info child;
    uint32_t count = 0;

    for (gd_scope_id s = info->first_child; gd_graph_scope(tree->graph, s, &child);
         s = child.next) {
        count++;
    }
    opened->scopes = calloc((size_t)count + 1, sizeof(*opened->scopes));
    opened->nodes = calloc((size_t)info->node_count + 1, sizeof(*opened->nodes));
    if (!opened->scopes || !opened->nodes) {
        return GD_ENOMEM;
    }
    for (gd_scope_id s = info->first_child;
         opened->scope_count < count && gd_graph_scope(tree->graph, s, &child); s = child.next) {
        if (child.total_count > 0 && (!tree->found || tui_found_below(tree->found, s) > 0)) {
            opened->scopes[opened->scope_count++] = s;
        }
    }
    for (gd_node_id n = info->first_node; n != GD_NO_NODE && opened->node_count < info->node_count;
         n = gd_graph_next_in_scope(tree->graph, n)) {
        if (!tree->found || tui_found_node(tree->found, n)) {
            opened->nodes[opened->node_count++] = n;
        }
    }
    return GD_OK;
}

/* The row of `scope` within its parent. Children are usually ordered by number. */
static uint32_t index_in(const struct opened *parent, gd_scope_id scope)
{
    for (uint32_t i = 0; parent && i < parent->scope_count; i++) {
        if (parent->scopes[i] == scope) {
            return i;
        }
    }
    return 0;
}

/* Lays out a scope whose parent has already been laid out. */
static int lay_out(const struct tui_tree *tree, gd_scope_id scope, bool open)
{
    struct gd_scope_info info;

    if (scope >= tree->scope_limit || !gd_graph_scope(tree->graph, scope, &info)) {
        return GD_ENOTFOUND;
    }
    struct opened *opened = calloc(1, sizeof(*opened));
    if (!opened || lists_fill(tree, &info, opened) != GD_OK) {
        opened_free(opened);
        return GD_ENOMEM;
    }
    const struct opened *parent = opened_at(tree, info.parent);
    opened->open = open;
    opened->parent = info.parent;
    opened->depth = parent ? parent->depth + 1 : 0;
    opened->index = index_in(parent, scope);
    opened_free(tree->by_scope[scope]);
    tree->by_scope[scope] = opened;
    return GD_OK;
}

static int grow_tree(struct tui_tree *tree)
{
    struct gd_graph_counts counts;
    struct gd_scope_info info;

    gd_graph_counts(tree->graph, &counts);
    uint32_t limit = counts.scopes + 1;
    /* graphs differ in how they count the root */
    while (gd_graph_scope(tree->graph, limit, &info)) {
        limit++;
    }
    if (limit > tree->scope_limit) {
        struct opened **more = realloc(tree->by_scope, limit * sizeof(struct opened *));
        if (!more) {
            return GD_ENOMEM;
        }
        memset(more + tree->scope_limit, 0, (limit - tree->scope_limit) * sizeof(struct opened *));
        tree->by_scope = more;
        tree->scope_limit = limit;
    }
    return GD_OK;
}

/* Lays out again everything below `scope` that was laid out before, in the same order. */
static int lay_out_again(struct tui_tree *tree, gd_scope_id scope)
{
    int rc = lay_out(tree, scope, tree->by_scope[scope]->open);
    if (rc != GD_OK) {
        return rc;
    }
    for (uint32_t i = 0; rc == GD_OK && i < tree->by_scope[scope]->scope_count; i++) {
        gd_scope_id child = tree->by_scope[scope]->scopes[i];
        if (child < tree->scope_limit && tree->by_scope[child]) {
            rc = lay_out_again(tree, child);
        }
    }
    return rc;
}

int tui_tree_set_graph(struct tui_tree *tree, const struct gd_graph *graph, bool same)
{
    tui_tree_filter(tree, NULL);
    if (!same) {
        forget_all(tree);
    }
    tree->graph = graph;
    if (!graph) {
        return GD_OK;
    }
    int rc = grow_tree(tree);
    if (rc != GD_OK) {
        return rc;
    }
    return tree->by_scope[0] ? lay_out_again(tree, 0) : lay_out(tree, 0, true);
}

int tui_tree_filter(struct tui_tree *tree, const struct tui_found *found)
{
    if (tree->unfiltered) {
        layout_free(tree->by_scope, tree->scope_limit);
        tree->by_scope = tree->unfiltered;
        tree->unfiltered = NULL;
        tree->found = NULL;
    }
    if (!found || !tree->by_scope) {
        return GD_OK;
    }
    struct opened **layout = calloc((size_t)tree->scope_limit + 1, sizeof(struct opened *));
    if (!layout) {
        return GD_ENOMEM;
    }
    tree->unfiltered = tree->by_scope;
    tree->by_scope = layout;
    tree->found = found;
    return GD_OK;
}

/* ---- going about ---- */

static uint32_t rows_of(const struct opened *opened)
{
    return opened->scope_count + opened->node_count;
}

bool tui_tree_first(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    const struct opened *root = opened_at(tree, 0);

    if (!tree->graph || !root || rows_of(root) == 0) {
        return false;
    }
    *pos = (struct tui_tree_pos){0, 0};
    return true;
}

/* The scope row at pos when it is open and has rows, else GD_NO_SCOPE. */
static gd_scope_id open_at(const struct tui_tree *tree, const struct tui_tree_pos *pos)
{
    const struct opened *in = opened_at(tree, pos->in);

    if (!in || pos->index >= in->scope_count || !is_open(tree, in->scopes[pos->index]) ||
        rows_of(tree->by_scope[in->scopes[pos->index]]) == 0) {
        return GD_NO_SCOPE;
    }
    return in->scopes[pos->index];
}

/* Moves from a row to the last visible row below it. */
static void descend_to_end(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    for (gd_scope_id scope = open_at(tree, pos); scope != GD_NO_SCOPE; scope = open_at(tree, pos)) {
        *pos = (struct tui_tree_pos){scope, rows_of(tree->by_scope[scope]) - 1};
    }
}

bool tui_tree_last(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    if (!tui_tree_first(tree, pos)) {
        return false;
    }
    pos->index = rows_of(tree->by_scope[0]) - 1;
    descend_to_end(tree, pos);
    return true;
}

bool tui_tree_next(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    gd_scope_id scope = open_at(tree, pos);

    if (scope != GD_NO_SCOPE) {
        *pos = (struct tui_tree_pos){scope, 0};
        return true;
    }
    struct tui_tree_pos at = *pos;
    for (const struct opened *in = opened_at(tree, at.in); in; in = opened_at(tree, at.in)) {
        if (at.index + 1 < rows_of(in)) {
            *pos = (struct tui_tree_pos){at.in, at.index + 1};
            return true;
        }
        if (at.in == 0) {
            break;
        }
        at = (struct tui_tree_pos){in->parent, in->index};
    }
    return false;
}

bool tui_tree_up(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    const struct opened *in = opened_at(tree, pos->in);

    if (!in || pos->in == 0) {
        return false;
    }
    *pos = (struct tui_tree_pos){in->parent, in->index};
    return true;
}

void tui_tree_settle(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    struct tui_tree_pos at = *pos;

    for (const struct opened *in = opened_at(tree, at.in); in && at.in != 0;
         in = opened_at(tree, at.in)) {
        at = (struct tui_tree_pos){in->parent, in->index};
        if (!in->open) {
            *pos = at;
        }
    }
}

bool tui_tree_previous(const struct tui_tree *tree, struct tui_tree_pos *pos)
{
    if (pos->index == 0) {
        return tui_tree_up(tree, pos);
    }
    pos->index--;
    descend_to_end(tree, pos);
    return true;
}

bool tui_tree_get(const struct tui_tree *tree, const struct tui_tree_pos *pos,
                  struct tui_tree_row *ret)
{
    const struct opened *in = opened_at(tree, pos->in);

    if (!tree->graph || !in || pos->index >= rows_of(in)) {
        return false;
    }
    *ret = (struct tui_tree_row){.node = GD_NO_NODE, .scope = GD_NO_SCOPE, .depth = in->depth};
    if (pos->index < in->scope_count) {
        struct gd_scope_info info;
        ret->is_scope = true;
        ret->scope = in->scopes[pos->index];
        ret->open = is_open(tree, ret->scope);
        ret->label = "";
        if (gd_graph_scope(tree->graph, ret->scope, &info)) {
            ret->label = info.leaf;
            ret->count = tree->found ? tui_found_below(tree->found, ret->scope) : info.total_count;
        }
        return true;
    }
    ret->node = in->nodes[pos->index - in->scope_count];
    const char *name = gd_graph_name(tree->graph, ret->node);
    const char *slash = strrchr(name, '/');
    ret->label = slash && slash[1] != '\0' ? slash + 1 : name;
    return true;
}

/* ---- opening ---- */

int tui_tree_open(struct tui_tree *tree, const struct tui_tree_pos *pos, bool open)
{
    struct tui_tree_row row;

    if (!tui_tree_get(tree, pos, &row) || !row.is_scope) {
        return GD_OK;
    }
    if (opened_at(tree, row.scope)) {
        tree->by_scope[row.scope]->open = open;
        return GD_OK;
    }
    return open ? lay_out(tree, row.scope, true) : GD_OK;
}

/* Opens `scope` and its ancestors, outermost first. */
static int open_path(struct tui_tree *tree, gd_scope_id scope)
{
    struct gd_scope_info info;

    if (scope == 0) {
        return GD_OK;
    }
    if (!gd_graph_scope(tree->graph, scope, &info) || scope >= tree->scope_limit) {
        return GD_ENOTFOUND;
    }
    int rc = open_path(tree, info.parent);
    if (rc != GD_OK) {
        return rc;
    }
    if (tree->by_scope[scope]) {
        tree->by_scope[scope]->open = true;
        return GD_OK;
    }
    return lay_out(tree, scope, true);
}

int tui_tree_reveal(struct tui_tree *tree, gd_node_id node, struct tui_tree_pos *ret)
{
    struct gd_node_info info;

    if (!tree->graph || !gd_graph_node(tree->graph, node, &info) ||
        (tree->found && !tui_found_node(tree->found, node))) {
        return GD_ENOTFOUND;
    }
    int rc = open_path(tree, info.scope);
    if (rc != GD_OK) {
        return rc;
    }
    const struct opened *in = opened_at(tree, info.scope);
    for (uint32_t i = 0; in && i < in->node_count; i++) {
        if (in->nodes[i] == node) {
            *ret = (struct tui_tree_pos){info.scope, in->scope_count + i};
            return GD_OK;
        }
    }
    return GD_ENOTFOUND;
}

int tui_tree_reveal_scope(struct tui_tree *tree, gd_scope_id scope, struct tui_tree_pos *ret)
{
    struct gd_scope_info info;

    if (!tree->graph || scope == 0 || !gd_graph_scope(tree->graph, scope, &info) ||
        (tree->found && tui_found_below(tree->found, scope) == 0)) {
        return GD_ENOTFOUND;
    }
    int rc = open_path(tree, info.parent);
    if (rc == GD_OK) {
        *ret = (struct tui_tree_pos){info.parent, index_in(opened_at(tree, info.parent), scope)};
    }
    return rc;
}

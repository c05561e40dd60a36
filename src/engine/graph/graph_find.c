// SPDX-License-Identifier: GPL-3.0-or-later
/* One node or one scope by what somebody typed: the end of its name, with slashes or with dots. */
#include "engine/graph/graph_impl.h"
#include "engine/graph/similar.h"

#include <stdio.h>
#include <string.h>

/* ---- spelling -------------------------------------------------------------------------------- */

struct spelling {
    char text[GRAPH_MAX_NAME + 1]; /* without slashes at its end; not raw: "a[0].b" is "a/0.b" */
    size_t len;
    size_t rare, rare_len; /* its longest component */
    bool nested;           /* it has several */
};

static bool is_separator(char c)
{
    return c == '/' || c == '.';
}

/* "[0]", "['key']" or "[\"key\"]" inside a name: the length, and its content. 0: something else. */
static size_t index_at(const char *text, const char **key, size_t *len)
{
    char quote = text[1] == '\'' || text[1] == '"' ? text[1] : '\0';
    const char *from = text + 1 + (quote != '\0');
    size_t n = quote ? strcspn(from, "'\"]") : strspn(from, "0123456789");
    const char *end = from + n;

    if (text[0] != '[' || n == 0 || (quote && *end++ != quote) || *end++ != ']') {
        return 0;
    }
    *key = from;
    *len = n;
    return (size_t)(end - text);
}

static bool is_decimal(const char *text)
{
    size_t whole = strspn(text, "+-0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789eE+-") : 0;

    return text[whole] == '.' && text[whole + 1 + part] == '\0';
}

/* False: it is not a name but, for example, a decimal number. */
static bool make_spelling(const char *text, bool raw, struct spelling *ret)
{
    size_t longest = 0, from = 0, len = strlen(text);
    const char *key;
    size_t n;

    ret->len = 0;
    ret->nested = false;
    if (len >= sizeof(ret->text) || is_decimal(text)) {
        return false;
    }
    for (const char *at = text; *at;) {
        size_t used = raw ? 0 : index_at(at, &key, &n);
        if (used && ret->len > 0) { /* m.layers[0].weight */
            ret->text[ret->len++] = '/';
            memcpy(ret->text + ret->len, key, n);
            ret->len += n;
            at += used;
        } else {
            ret->text[ret->len++] = *at++;
        }
    }
    while (ret->len > 0 && ret->text[ret->len - 1] == '/') {
        ret->len--;
    }
    ret->text[ret->len] = '\0';
    for (size_t i = 0; i <= ret->len; i++) { /* the part of it to search for */
        if (i == ret->len || is_separator(ret->text[i])) {
            ret->nested = ret->nested || (i < ret->len && i > 0);
            if (i - from > longest) {
                longest = i - from;
                ret->rare = from;
            }
            from = i + 1;
        }
    }
    ret->rare_len = longest;
    return longest > 0;
}

static bool is_spelled_same(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (a[i] != b[i] && !(is_separator(a[i]) && is_separator(b[i]))) {
            return false;
        }
    }
    return true;
}

/* Whether the name ends in the text. Exact: after a slash, letter for letter; else dots and slashes
 * are the same, and *whole is set if nothing precedes it. */
static bool name_ends_in(const char *name, size_t name_len, const struct spelling *typed,
                         bool exact, bool *whole)
{
    if (name_len < typed->len || (exact && name_len == typed->len)) {
        return false;
    }
    const char *end = name + name_len - typed->len;

    *whole = end == name;
    if (exact) {
        return end[-1] == '/' && memcmp(end, typed->text, typed->len) == 0;
    }
    return (*whole || is_separator(end[-1])) && is_spelled_same(end, typed->text, typed->len);
}

bool gd_graph_name_holds(const char *name, const char *text)
{
    size_t len = strlen(text);

    for (size_t left = strlen(name); left >= len; name++, left--) {
        if (is_spelled_same(name, text, len)) {
            return true;
        }
    }
    return false;
}

/* ---- the search ------------------------------------------------------------------------------ */

struct suffix_search {
    const struct gd_graph *graph;
    struct spelling typed;
    uint32_t subgraph; /* GD_NO_SUBGRAPH: any */
    bool exact;        /* letter for letter */
    unsigned best;     /* how near the found ones are to what users mean first: less is nearer */
    gd_node_id found[2];
    int count;
    gd_node_id near; /* contains the text, case ignored */
};

/* The whole name, then the parts of the training in their order. What runs outside of modules is as
 * near as the model: a program need not have modules. */
static unsigned rank_of(enum gd_part part, bool whole)
{
    return whole ? 0 : part <= GD_PART_OUTSIDE ? 1 : 1 + (unsigned)part;
}

static void add_found(struct suffix_search *search, gd_node_id id, unsigned rank)
{
    if (search->count > 0 && rank > search->best) {
        return;
    }
    if (search->count == 0 || rank < search->best) {
        search->count = 0;
        search->best = rank;
    }
    if (search->count < 2 && !(search->count == 1 && search->found[0] == id)) {
        search->found[search->count++] = id;
    }
}

static bool alias_ends_in(const struct suffix_search *search, gd_node_id id, bool *whole)
{
    const struct gd_graph *graph = search->graph;
    bool found = false;

    for (uint32_t i = 0; !found && i < graph->alias_count; i++) {
        const struct graph_alias *alias = &graph->alias[i];

        found = alias->node == id &&
                name_ends_in(alias->name, alias->len, &search->typed, search->exact, whole);
    }
    return found;
}

static int match_suffix(void *ctx, gd_node_id id)
{
    struct suffix_search *search = ctx;
    const struct graph_node *node = &search->graph->node[id];
    bool whole = false;

    if (search->exact && search->near == GD_NO_NODE && node->kind != GD_NODE_COMPILED) {
        search->near = id;
    }
    if (search->subgraph != GD_NO_SUBGRAPH && node->subgraph != search->subgraph) {
        return 0;
    }
    if (name_ends_in(node->name, node->name_len, &search->typed, search->exact, &whole) ||
        alias_ends_in(search, id, &whole)) {
        add_found(search, id, rank_of(gd_graph_part(search->graph, id), whole));
    }
    return search->count == 2 && search->best <= rank_of(GD_PART_MODEL, false);
}

static void search_once(struct suffix_search *search, bool exact)
{
    char rare[GRAPH_MAX_NAME + 1];
    const struct spelling *typed = &search->typed;

    search->exact = exact;
    if (exact) {
        gd_graph_search_name(search->graph, typed->text, match_suffix, search);
    } else {
        snprintf(rare, sizeof(rare), "%.*s", (int)typed->rare_len, typed->text + typed->rare);
        gd_graph_search_name(search->graph, rare, match_suffix, search);
    }
}

/* Letter for letter first: names may contain dots. */
static void search_suffix(struct suffix_search *search, const char *text)
{
    if (make_spelling(text, true, &search->typed)) {
        search_once(search, true);
    }
    if (search->count == 0 && make_spelling(text, false, &search->typed) && search->typed.nested) {
        search_once(search, false);
    }
}

#define NEAR_NODES   200000 /* examined for a similar name */
#define NEAR_COMPARE 20000  /* compared letter by letter */

/* A node whose last component (or whole name, if NAME has slashes) is one typing error away. */
static gd_node_id near_name(const struct gd_graph *graph, const char *name, size_t len)
{
    bool whole = memchr(name, '/', len) != NULL;
    size_t limit = len < 4 ? 1 : len < 12 ? 2 : 3;
    gd_node_id best = GD_NO_NODE;
    int compared = 0;

    if (len == 0 || len > 127) {
        return GD_NO_NODE;
    }
    for (gd_node_id i = 0; i < graph->node_count && i < NEAR_NODES && compared < NEAR_COMPARE;
         i++) {
        const struct graph_node *node = &graph->node[i];
        size_t skip = whole ? 0 : graph->scope[node->scope].len;
        const char *leaf = node->name + skip + (skip && !whole ? 1 : 0);
        size_t leaf_len = node->name_len - (size_t)(leaf - node->name);

        if (node->gone || leaf_len > 127 || leaf_len > len + limit || len > leaf_len + limit ||
            (graph_fold_case(leaf[0]) != graph_fold_case(name[0]) && leaf_len &&
             graph_fold_case(leaf[leaf_len - 1]) != graph_fold_case(name[len - 1]))) {
            continue;
        }
        compared++;
        size_t found = gd_similar_suggestion(name, len, leaf, leaf_len, limit);
        if (found <= limit) {
            best = i;
            limit = found ? found - 1 : 0;
            if (found <= 1) {
                break;
            }
        }
    }
    return best;
}

/* The same for a name with dots, which may be that of a node with slashes. */
static gd_node_id near_dotted(const struct gd_graph *graph, const char *name, size_t len)
{
    char slashed[128];
    gd_node_id near = near_name(graph, name, len);

    if (near != GD_NO_NODE || len >= sizeof(slashed) || !strchr(name, '.') || strchr(name, '/')) {
        return near;
    }
    for (size_t i = 0; i <= len; i++) {
        slashed[i] = name[i] == '.' ? '/' : name[i];
    }
    return near_name(graph, slashed, len);
}

static int not_found(const struct gd_graph *graph, const char *name, size_t len, gd_node_id near,
                     struct gd_err *err)
{
    if (!err) {
        return GD_ENOTFOUND; /* no one would read the similar name */
    }
    if (graph->live_count == 0) {
        return gd_fail(err, GD_ENOTFOUND, "there is no node '%.150s': the graph is empty", name);
    }
    if (near == GD_NO_NODE) {
        near = near_dotted(graph, name, len);
    }
    if (near == GD_NO_NODE) {
        return gd_fail(err, GD_ENOTFOUND, "there is no node '%.150s'", name);
    }
    return gd_fail(err, GD_ENOTFOUND, "there is no node '%.150s' (did you mean '%.200s'?)", name,
                   graph_shown_name(&graph->node[near]));
}

static int fail_ambiguous(const char *text, const char *one, const char *other, struct gd_err *err)
{
    return gd_fail(err, GD_EAMBIGUOUS,
                   "'%.100s' could be '%.150s' or '%.150s': write more of the name", text, one,
                   other);
}

/* GRAPH/NAME: up to two nodes that NAME means within the graph. */
static int find_within(const struct gd_graph *graph, const char *name, size_t len,
                       gd_node_id found[2])
{
    int count = 0;

    for (uint32_t i = 0; !count && i < graph->subgraph_count; i++) {
        struct suffix_search search = {.graph = graph, .subgraph = i, .near = GD_NO_NODE};
        size_t left = len;
        const char *inside = graph_within(&graph->subgraph[i], name, &left);

        if (!inside) {
            continue;
        }
        found[0] = gd_graph_lookup_in(graph, i, inside, left);
        count = found[0] != GD_NO_NODE;
        if (!count) {
            search_suffix(&search, inside);
            memcpy(found, search.found, sizeof(search.found));
            count = search.count;
        }
    }
    return count;
}

/* Up to two nodes that have it as an alias. */
static int find_alias(const struct gd_graph *graph, const char *name, size_t len,
                      gd_node_id found[2])
{
    int count = 0;

    for (uint32_t i = 0; count < 2 && i < graph->alias_count; i++) {
        const struct graph_alias *alias = &graph->alias[i];

        if (alias->len == len && memcmp(alias->name, name, len) == 0 &&
            graph_live(graph, alias->node) && (count == 0 || found[0] != alias->node)) {
            found[count++] = alias->node;
        }
    }
    return count;
}

/* Up to two nodes that have the name in full, as spelled or on the wire. */
static int find_exact(const struct gd_graph *graph, const char *name, size_t len,
                      gd_node_id found[2])
{
    int count;

    found[0] = graph_find_first(graph, name, len, graph_hash(graph, name, len));
    if (found[0] == GD_NO_NODE) {
        count = (int)graph_find_wire(graph, name, len, found);
        count = count ? count : find_alias(graph, name, len, found);
        return count ? count : find_within(graph, name, len, found);
    }
    if (!graph->node[found[0]].shared) {
        return 1;
    }
    found[1] = graph->node[found[0]].extra->same;
    return 2;
}

int gd_graph_find(const struct gd_graph *graph, const char *name, gd_node_id *ret,
                  struct gd_err *err)
{
    size_t len = strlen(name);
    struct suffix_search search = {.graph = graph, .subgraph = GD_NO_SUBGRAPH, .near = GD_NO_NODE};

    search.count = find_exact(graph, name, len, search.found);
    if (search.count == 0 && len > 0) {
        search_suffix(&search, name);
    }
    if (search.count == 0) {
        return not_found(graph, name, len, search.near, err);
    }
    if (search.count > 1) {
        return fail_ambiguous(name, graph_shown_name(&graph->node[search.found[0]]),
                              graph_shown_name(&graph->node[search.found[1]]), err);
    }
    *ret = search.found[0];
    return GD_OK;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

/* The scopes that the text ends best: *count of them, at most two. */
static void search_scopes(const struct gd_graph *graph, const struct spelling *typed, bool exact,
                          gd_scope_id found[2], int *count)
{
    struct gd_scope_info info;
    unsigned best = UINT32_MAX;

    for (gd_scope_id i = 1; gd_graph_scope(graph, i, &info); i++) {
        bool whole = false;

        if (!info.total_count ||
            !name_ends_in(info.name, strlen(info.name), typed, exact, &whole)) {
            continue;
        }
        enum gd_part part = gd_graph_part_of_scope(graph, i);
        unsigned rank = rank_of(part, whole);
        if (part == GD_PART_COMPILED || rank > best) {
            continue;
        }
        *count = rank < best ? 0 : *count;
        best = rank;
        if (*count < 2) {
            found[(*count)++] = i;
        }
    }
}

int gd_graph_find_scope_end(const struct gd_graph *graph, const char *text, gd_scope_id *ret,
                            struct gd_err *err)
{
    struct gd_scope_info one, other;
    struct spelling typed;
    gd_scope_id found[2];
    int count = 0;

    if (make_spelling(text, true, &typed)) {
        search_scopes(graph, &typed, true, found, &count);
    }
    if (count == 0 && make_spelling(text, false, &typed)) {
        search_scopes(graph, &typed, false, found, &count);
    }
    if (count > 1) {
        gd_graph_scope(graph, found[0], &one);
        gd_graph_scope(graph, found[1], &other);
        return fail_ambiguous(text, one.name, other.name, err);
    }
    *ret = count ? found[0] : GD_NO_SCOPE;
    return count ? GD_OK : GD_ENOTFOUND;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* What ends nearer to one side: the first operator, or the last. Gradients count less. */
struct module_end {
    bool last;
    gd_node_id node;
    bool gradient;
    uint64_t place;
};

static void consider_end(struct module_end *end, const struct gd_graph *graph, gd_node_id id)
{
    const struct graph_node *node = &graph->node[id];
    uint32_t order = gd_graph_order(graph, id);
    bool gradient = node->kind == GD_NODE_GRADIENT;
    /* what has no place yet is new: it runs after the others */
    uint64_t place = order == GD_NO_ORDER ? UINT32_MAX + (uint64_t)id : order;

    if (node->gone || node->kind == GD_NODE_WEIGHT || node->kind == GD_NODE_PARAMETER ||
        node->kind == GD_NODE_CONSTANT || node->kind == GD_NODE_COMPILED) {
        return;
    }
    bool better =
        end->node == GD_NO_NODE || (end->gradient && !gradient) ||
        (end->gradient == gradient && (end->last ? place > end->place : place < end->place));
    if (better) {
        *end = (struct module_end){end->last, id, gradient, place};
    }
}

gd_node_id gd_graph_module_end(const struct gd_graph *graph, gd_scope_id top, bool last)
{
    struct module_end end = {.last = last, .node = GD_NO_NODE};
    struct gd_scope_info info;
    gd_scope_id scope = top;

    while (gd_graph_scope(graph, scope, &info)) { /* without recursion: the tree may be deep */
        for (gd_node_id node = info.first_node; node != GD_NO_NODE;
             node = gd_graph_next_in_scope(graph, node)) {
            consider_end(&end, graph, node);
        }
        if (info.first_child != GD_NO_SCOPE) {
            scope = info.first_child;
            continue;
        }
        while (scope != top && info.next == GD_NO_SCOPE) {
            scope = info.parent;
            gd_graph_scope(graph, scope, &info);
        }
        if (scope == top) {
            break;
        }
        scope = info.next;
    }
    return end.node;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool same_folded(const char *text, const char *folded, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (graph_fold_case(text[i]) != (unsigned char)folded[i]) {
            return false;
        }
    }
    return true;
}

/* ---- by name: memchr for the needle's rarest byte over all names at once --------------------- */

struct needle {
    char text[GRAPH_MAX_NAME]; /* lower case */
    size_t len;
    size_t rare; /* position of its rarest byte */
    unsigned char lower, upper;
};

static bool make_needle(const struct gd_graph *graph, const char *text, struct needle *needle)
{
    uint64_t best = UINT64_MAX;

    needle->len = strlen(text);
    needle->rare = 0;
    needle->lower = needle->upper = 0;
    if (needle->len > sizeof(needle->text)) {
        return false;
    }
    for (size_t i = 0; i < needle->len; i++) {
        unsigned char c = graph_fold_case(text[i]);
        unsigned char up = c >= 'a' && c <= 'z' ? (unsigned char)(c - ('a' - 'A')) : c;
        uint64_t often = (uint64_t)graph->letter[c] + (up != c ? graph->letter[up] : 0);

        needle->text[i] = (char)c;
        if (often < best) {
            best = often;
            needle->rare = i;
            needle->lower = c;
            needle->upper = up;
        }
    }
    return true;
}

static const char *next_byte(const char *from, const char *end, unsigned char byte)
{
    const char *found = from < end ? memchr(from, byte, (size_t)(end - from)) : NULL;

    return found ? found : end;
}

struct scan {
    const struct needle *needle;
    const char *end;
    const char *lower, *upper; /* next occurrences of the rare byte */
};

/* The first match at or after `from`, or NULL. */
static const char *scan_next(struct scan *scan, const char *from)
{
    const struct needle *needle = scan->needle;
    const char *at = from + needle->rare;

    for (;;) {
        if (scan->lower < at) {
            scan->lower = next_byte(at, scan->end, needle->lower);
        }
        if (scan->upper < at) {
            scan->upper = next_byte(at, scan->end, needle->upper);
        }
        const char *hit = scan->lower < scan->upper ? scan->lower : scan->upper;
        if (hit >= scan->end || (size_t)(scan->end - hit) < needle->len - needle->rare) {
            return NULL;
        }
        if (same_folded(hit - needle->rare, needle->text, needle->len)) {
            return hit - needle->rare;
        }
        at = hit + 1;
    }
}

/* The node whose name contains `at`: names are in node order, so step in growing strides, then
 * halve. */
static gd_node_id node_at(const struct gd_graph *graph, const char *at, gd_node_id from,
                          gd_node_id end)
{
    gd_node_id low = from, high;
    uint32_t stride = 1;

    while (stride < end - low && graph->node[low + stride].name <= at) {
        low += stride;
        stride *= 2;
    }
    high = stride < end - low ? low + stride : end;
    while (high - low > 1) {
        gd_node_id middle = low + (high - low) / 2;

        if (graph->node[middle].name <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static int search_chunk(const struct gd_graph *graph, uint32_t index, const struct needle *needle,
                        gd_node_fn fn, void *ctx)
{
    const struct graph_name_chunk *chunk = &graph->name_chunk[index];
    gd_node_id end = index + 1 < graph->name_chunk_count ? graph->name_chunk[index + 1].first
                                                         : graph->node_count;
    gd_node_id node = chunk->first;
    struct scan scan = {.needle = needle, .end = chunk->bytes + chunk->used};
    const char *at = chunk->bytes;

    if (node >= end) {
        return 0;
    }
    scan.lower = next_byte(at, scan.end, needle->lower);
    scan.upper = needle->upper == needle->lower ? scan.end : next_byte(at, scan.end, needle->upper);
    while ((at = scan_next(&scan, at))) {
        int rc = 0;

        node = node_at(graph, at, node, end);
        if (!graph->node[node].gone) {
            rc = fn(ctx, node);
        }
        if (rc != GD_OK) {
            return rc;
        }
        at = graph->node[node].name + graph->node[node].name_len + 1;
    }
    return 0;
}

/* ---- names with the name of their subgraph in front ------------------------------------------ */

struct qualified { /* GRAPH/NAME, or as much of it as fits */
    char text[2 * GRAPH_MAX_NAME];
    size_t word_len;
};

static void qualify_name(const struct gd_graph *graph, const struct graph_node *node,
                         struct qualified *ret)
{
    const struct graph_subgraph *sub = &graph->subgraph[node->subgraph];

    ret->word_len = (size_t)snprintf(ret->text, GRAPH_MAX_NAME, "%s", sub->word);
    if (ret->word_len >= GRAPH_MAX_NAME) {
        ret->word_len = GRAPH_MAX_NAME - 1;
    }
    snprintf(ret->text + ret->word_len, sizeof(ret->text) - ret->word_len, "/%s", node->name);
}

bool gd_graph_any_name(const struct gd_graph *graph, gd_node_id node,
                       bool (*fn)(const void *ctx, const char *name), const void *ctx)
{
    const struct graph_node *rec = &graph->node[node];
    struct qualified qualified;

    if (node >= graph->node_count || rec->gone) {
        return false;
    }
    if (fn(ctx, rec->name)) {
        return true;
    }
    for (uint32_t i = 0; i < graph->alias_count; i++) {
        if (graph->alias[i].node == node && fn(ctx, graph->alias[i].name)) {
            return true;
        }
    }
    if (!gd_graph_is_qualified(graph)) {
        return false;
    }
    qualify_name(graph, rec, &qualified);
    return fn(ctx, qualified.text);
}

/* Whether the text could contain the end of a graph's name or all of it. */
static bool may_hold_word(const struct gd_graph *graph, const char *text)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        const struct graph_subgraph *sub = &graph->subgraph[i];
        const char *slash = strchr(text, '/');
        size_t len = slash ? (size_t)(slash - text) : strlen(text);

        for (; sub->live && slash; slash = strchr(slash + 1, '/')) {
            len = (size_t)(slash - text);
            if (len <= sub->word_len &&
                strncasecmp(sub->word + sub->word_len - len, text, len) == 0) {
                return true;
            }
        }
        if (sub->live && !strchr(text, '/') && strcasestr(sub->word, text)) {
            return true;
        }
    }
    return false;
}

/* Slower than scanning all names at once: only if a graph's name may be meant. */
static int search_qualified(const struct gd_graph *graph, const char *text, gd_node_fn fn,
                            void *ctx)
{
    struct qualified qualified;
    size_t len = strlen(text);
    int rc = 0;

    for (gd_node_id i = 0; rc == GD_OK && i < graph->node_count; i++) {
        const struct graph_node *node = &graph->node[i];

        if (node->gone) {
            continue;
        }
        qualify_name(graph, node, &qualified);
        const char *found =
            qualified.text +
            (node->shared || len > qualified.word_len ? 0 : qualified.word_len + 1 - len);
        rc = strcasestr(found, text) ? fn(ctx, i) : 0;
    }
    return rc;
}

/* Nodes of which only an alias contains the text. */
static int search_aliases(const struct gd_graph *graph, const char *text, gd_node_fn fn, void *ctx)
{
    int rc = 0;

    for (uint32_t i = 0; rc == GD_OK && i < graph->alias_count; i++) {
        const struct graph_alias *alias = &graph->alias[i];
        bool again =
            !graph_live(graph, alias->node) || strcasestr(graph->node[alias->node].name, text);

        for (uint32_t j = 0; !again && j < i; j++) {
            again = graph->alias[j].node == alias->node && strcasestr(graph->alias[j].name, text);
        }
        rc = !again && strcasestr(alias->name, text) ? fn(ctx, alias->node) : 0;
    }
    return rc;
}

int gd_graph_search_name(const struct gd_graph *graph, const char *text, gd_node_fn fn, void *ctx)
{
    struct needle needle;
    int rc = 0;

    if (!make_needle(graph, text, &needle)) {
        return 0; /* longer than any name */
    }
    if (needle.len == 0) {
        for (gd_node_id i = 0; rc == GD_OK && i < graph->node_count; i++) {
            rc = graph->node[i].gone ? 0 : fn(ctx, i);
        }
        return rc;
    }
    if (gd_graph_is_qualified(graph) && may_hold_word(graph, text)) {
        return search_qualified(graph, text, fn, ctx);
    }
    for (uint32_t i = 0; rc == GD_OK && i < graph->name_chunk_count; i++) {
        rc = search_chunk(graph, i, &needle, fn, ctx);
    }
    return rc == GD_OK && graph->alias_count ? search_aliases(graph, text, fn, ctx) : rc;
}

int gd_graph_search_type(const struct gd_graph *graph, const char *type, gd_node_fn fn, void *ctx)
{
    unsigned char *wanted = calloc((size_t)graph->type_count + 1, 1);
    bool any = false;
    int rc = 0;

    if (!wanted) {
        return GD_ENOMEM;
    }
    for (uint32_t i = 0; i < graph->type_count; i++) {
        wanted[i] = graph->type[i].count && strcasecmp(graph->type[i].name, type) == 0;
        any = any || wanted[i];
    }
    for (gd_node_id i = 0; any && rc == GD_OK && i < graph->node_count; i++) {
        const struct graph_node *node = &graph->node[i];

        if (wanted[node->type] && !node->gone && node->kind != GD_NODE_COMPILED) {
            rc = fn(ctx, i);
        }
    }
    free(wanted);
    return rc;
}

int gd_graph_search_kind(const struct gd_graph *graph, enum gd_node_kind kind, gd_node_fn fn,
                         void *ctx)
{
    int rc = 0;

    if ((unsigned)kind >= GD_NODE_KIND_COUNT || graph->by_kind[kind] == 0) {
        return 0;
    }
    for (gd_node_id i = 0; rc == GD_OK && i < graph->node_count; i++) {
        if (graph->node[i].kind == (unsigned)kind && !graph->node[i].gone) {
            rc = fn(ctx, i);
        }
    }
    return rc;
}

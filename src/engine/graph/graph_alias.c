// SPDX-License-Identifier: GPL-3.0-or-later
/* What attributes say about names: aliases of nodes, and the classes of modules; and names as users
 * want to see them. */
#include "engine/graph/graph_impl.h"

#include <string.h>

#define MAX_ALIASES 65536

static void drop_aliases(struct gd_graph *graph, gd_node_id node)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < graph->alias_count; i++) {
        if (graph->alias[i].node != node) {
            graph->alias[kept++] = graph->alias[i];
        }
    }
    graph->alias_count = kept;
}

static void note_aliases(struct gd_graph *graph, gd_node_id node, const char *value)
{
    struct gd_err ignored;

    drop_aliases(graph, node);
    for (const char *end = value; *end; value = end) {
        end = strstr(value, ", ");
        size_t len = end ? (size_t)(end - value) : strlen(value);
        end = end ? end + 2 : value + len;
        if (len == 0 || len > GRAPH_MAX_NAME) {
            continue;
        }
        const char *name =
            graph->alias_count < MAX_ALIASES ? graph_text(graph, value, len, &ignored) : NULL;
        if (!name ||
            graph_grow(graph, &graph->alias, &graph->alias_cap, (uint64_t)graph->alias_count + 1,
                       sizeof(*graph->alias), &ignored) != GD_OK) {
            return;
        }
        graph->alias[graph->alias_count++] =
            (struct graph_alias){.name = name, .len = (uint32_t)len, .node = node};
    }
}

/* From the innermost scope outwards: the value has one class for each. */
static void note_classes(struct gd_graph *graph, gd_node_id node, const char *value)
{
    uint32_t scope = graph->node[node].scope;
    const char *end = value + strlen(value);
    char class[128];
    struct gd_err ignored;

    while (graph->scope[scope].len > 0) {
        const char *from = end;
        while (from > value && from[-1] != '/') {
            from--;
        }
        size_t len = (size_t)(end - from);
        if (len > 0 && len < sizeof(class) && !graph->scope[scope].class) {
            memcpy(class, from, len);
            class[len] = '\0';
            if (graph_intern_word(graph, class, &graph->scope[scope].class, &ignored) != GD_OK) {
                graph->scope[scope].class = NULL;
            }
        }
        if (from == value) {
            break;
        }
        scope = graph->scope[scope].parent;
        end = from - 1;
    }
}

void graph_note_attr(struct gd_graph *graph, gd_node_id node, const struct gd_attr *attr)
{
    if (strcmp(attr->name, GD_ALIASES) == 0) {
        note_aliases(graph, node, attr->value);
    } else if (strcmp(attr->name, GD_CLASSES) == 0) {
        note_classes(graph, node, attr->value);
        graph->has_classes = true;
    }
}

bool gd_graph_has_classes(const struct gd_graph *graph)
{
    return graph->has_classes;
}

/* ---- names with dots ------------------------------------------------------------------------- */

static bool is_alias(const struct gd_graph *graph, const char *name, size_t len)
{
    bool found = false;

    for (uint32_t i = 0; !found && i < graph->alias_count; i++) {
        found = graph->alias[i].len == len && memcmp(graph->alias[i].name, name, len) == 0;
    }
    return found;
}

/* The end of a name, of which narrow tables show no more. */
static bool is_end(const struct gd_graph *graph, const char *text, size_t len)
{
    char name[512];
    gd_node_id node;
    gd_scope_id scope;

    if (len >= sizeof(name)) {
        return false;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    return gd_graph_find(graph, name, &node, NULL) != GD_ENOTFOUND ||
           gd_graph_find_scope_end(graph, name, &scope, NULL) != GD_ENOTFOUND;
}

static bool is_name(const struct gd_graph *graph, const char *text, size_t len)
{
    uint32_t subgraph = 0;

    if (len > 4 && memcmp(text, ".../", 4) == 0) {
        return is_end(graph, text + 4, len - 4);
    }
    return graph_find_first(graph, text, len, graph_hash(graph, text, len)) != GD_NO_NODE ||
           gd_graph_lookup(graph, text, len) != GD_NO_NODE || is_alias(graph, text, len) ||
           gd_graph_next_scope(graph, text, len, &subgraph) != GD_NO_SCOPE;
}

/* The length of the name at the beginning of a word, which may have a slot, a slice or a sign of
 * punctuation after it. 0: it is not a name. */
static size_t name_in(const struct gd_graph *graph, const char *word, size_t len)
{
    static const char after[] = ":[.";

    while (len > 0) {
        size_t name = word[len - 1] == '/' ? len - 1 : len;
        if (memchr(word, '/', name) && is_name(graph, word, name)) {
            return name;
        }
        do {
            len--;
        } while (len > 0 && !strchr(after, word[len]));
    }
    return 0;
}

void gd_graph_put_dots(const struct gd_graph *graph, char *text, size_t len)
{
    static const char between[] = " \t\n'\"`(),;=<>|{}";

    for (size_t at = 0; at < len;) {
        size_t end = at;
        while (end < len && text[end] && !strchr(between, text[end])) {
            end++;
        }
        size_t name = text[at] != '/' && memchr(text + at, '/', end - at)
                          ? name_in(graph, text + at, end - at)
                          : 0;
        bool cut = name > 4 && memcmp(text + at, ".../", 4) == 0; /* ".../" stays */
        for (size_t i = cut ? 4 : 0; i < name; i++) {
            text[at + i] = text[at + i] == '/' ? '.' : text[at + i];
        }
        at = end + 1;
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* What attributes say about names: aliases of nodes, and the classes of modules. */
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_nodes.h"

#include <stdio.h>
#include <string.h>

#include "dump/mindspore/ms_name.h"

#define MAX_NAME 8192

int ms_nodes_begin(struct gd_graph *graph, const char *subgraph, struct ms_nodes *ret,
                   struct gd_err *err)
{
    *ret = (struct ms_nodes){.graph = graph};
    return gd_graph_subgraph(graph, subgraph, false, &ret->subgraph, err);
}

void ms_nodes_end(struct ms_nodes *nodes)
{
    gd_lookup_deinit(&nodes->lookup);
}

/* ---- spellings ------------------------------------------------------------------------------- */

enum spelling { FULL, ESCAPED, SHORT, WIRE, WIRE_ESCAPED, WIRE_SHORT, SPELLINGS };

/* What files may call a node; "" when it is the same as an earlier one. */
static const char *spell(const struct gd_node_info *info, enum spelling how, char *buffer)
{
    bool has_wire = info->wire_name != info->name;
    const char *name = how >= WIRE ? info->wire_name : info->name;

    if (how >= WIRE && !has_wire) {
        return "";
    }
    switch (how) {
    case ESCAPED:
    case WIRE_ESCAPED: gd_ms_escape(name, buffer, MAX_NAME + 1); return buffer;
    case SHORT:
    case WIRE_SHORT: return gd_ms_short_name(name);
    default: return name;
    }
}

int ms_nodes_add(struct ms_nodes *nodes, gd_node_id node, struct gd_err *err)
{
    char buffer[MAX_NAME + 1];
    struct gd_node_info info;

    if (!gd_graph_node(nodes->graph, node, &info)) {
        return GD_OK;
    }
    for (int how = 0; how < SPELLINGS; how++) {
        const char *name = spell(&info, (enum spelling)how, buffer);
        int rc = GD_OK;

        if (name[0]) {
            rc = gd_lookup_add(&nodes->lookup, gd_lookup_hash(&nodes->lookup, name, strlen(name)),
                               node, err);
        }
        if (rc) {
            return rc;
        }
    }
    return GD_OK;
}

static bool is_called(const struct gd_node_info *info, const char *name)
{
    char buffer[MAX_NAME + 1];

    for (int how = 0; how < SPELLINGS; how++) {
        if (strcmp(spell(info, (enum spelling)how, buffer), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Files call weights, inputs of the graph and constants "Parameter"; a kernel may have another name
 * than the operator. */
static bool is_of_type(const struct gd_node_info *info, const char *type)
{
    bool parameter = strcmp(info->type, "Parameter") == 0 || strcmp(info->type, "Const") == 0;

    return strcmp(type, "Parameter") == 0 ? parameter : strcmp(info->type, type) == 0;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* One of the right type; else the only one of that name, when it is no parameter for an operator or
 * the reverse. */
gd_node_id ms_nodes_find(struct ms_nodes *nodes, const char *type, const char *name)
{
    uint64_t hash = gd_lookup_hash(&nodes->lookup, name, strlen(name));
    gd_node_id other = GD_NO_NODE;
    uint32_t node, others = 0;
    size_t at = 0;

    while (gd_lookup_next(&nodes->lookup, hash, &at, &node)) {
        struct gd_node_info info;

        if (!gd_graph_node(nodes->graph, node, &info) || info.subgraph != nodes->subgraph ||
            !is_called(&info, name)) {
            continue;
        }
        if (is_of_type(&info, type)) {
            return node;
        }
        if (is_of_type(&info, "Parameter") == (strcmp(type, "Parameter") == 0)) {
            others += other != node;
            other = node;
        }
    }
    return others == 1 ? other : GD_NO_NODE;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* "Conv2D-op1" of a file that has no type in its name. */
static void type_of(const char *type, const char *name, char *out, size_t size)
{
    const char *last = gd_ms_short_name(name);
    const char *op = strstr(last, "-op");

    if (type[0]) {
        snprintf(out, size, "%s", type);
    } else {
        snprintf(out, size, "%.*s", op ? (int)(op - last) : (int)strlen(last), last);
    }
}

int ms_nodes_get(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                 struct gd_err *err)
{
    gd_node_id node = ms_nodes_find(nodes, type, name);
    char known[256], other[MAX_NAME + 1];
    struct gd_node_desc desc = {.name = name[0] ? name : type, .type = known, .order = GD_NO_ORDER};
    int rc;

    if (node != GD_NO_NODE) {
        *ret = node;
        return GD_OK;
    }
    type_of(type, name, known, sizeof(known));
    rc = gd_graph_add(nodes->graph, &desc, &node, err);
    if (rc == GD_EINVAL) { /* the name is another node's */
        snprintf(other, sizeof(other), "%.4000s(%.200s)", desc.name, known);
        desc.wire_name = desc.name;
        desc.name = other;
        rc = gd_graph_add(nodes->graph, &desc, &node, err);
    }
    if (!rc) {
        rc = ms_nodes_add(nodes, node, err);
    }
    if (!rc) {
        nodes->made++;
        *ret = node;
    }
    return rc;
}

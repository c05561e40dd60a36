// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/mindspore/ms_file_name.h"

#define MAX_NAME   8192
#define MAX_WANTED (UINT32_C(1) << 24)

int ms_nodes_begin(struct gd_graph *graph, const char *subgraph, struct ms_nodes *ret,
                   struct gd_err *err)
{
    *ret = (struct ms_nodes){.graph = graph};
    gd_arena_init(&ret->arena, 0);
    return gd_graph_subgraph(graph, subgraph, false, &ret->subgraph, err);
}

void ms_nodes_end(struct ms_nodes *nodes)
{
    if (nodes->graph) {
        gd_hash_index_deinit(&nodes->lookup);
        gd_hash_index_deinit(&nodes->without);
        gd_hash_index_deinit(&nodes->wanted_lookup);
        free(nodes->wanted);
        free(nodes->taken);
        gd_arena_deinit(&nodes->arena);
    }
    *nodes = (struct ms_nodes){.graph = NULL};
}

/* ---- spellings ------------------------------------------------------------------------------- */

enum spelling { FULL, ESCAPED, SHORT, WIRE, WIRE_ESCAPED, WIRE_SHORT, SPELLINGS };

/* A spelling that files may use for a node; "" if equal to an earlier one. */
static const char *spell_node(const struct gd_node_info *info, enum spelling how, char *buffer)
{
    bool has_wire = info->wire_name != info->own_name;
    const char *name = how >= WIRE ? info->wire_name : info->own_name;

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

/* The length of a name without the operator's number: "scope/Add-op" of "scope/Add-op3"; 0: no
 * number. */
static size_t without_number(const char *name)
{
    size_t len = strlen(name), end = len;

    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') {
        end--;
    }
    return end < len && end > 3 && memcmp(name + end - 3, "-op", 3) == 0 ? end : 0;
}

/* A short name may be from any scope: only its number identifies the operator. */
static bool has_scope(enum spelling how)
{
    return how != SHORT && how != WIRE_SHORT;
}

static int add_name(struct gd_hash_index *lookup, const char *name, size_t len, uint32_t number,
                    struct gd_err *err)
{
    return gd_hash_index_add(lookup, gd_hash_index_hash(lookup, name, len), number, err);
}

int ms_nodes_add(struct ms_nodes *nodes, gd_node_id node, struct gd_err *err)
{
    char buffer[MAX_NAME + 1];
    struct gd_node_info info;
    int rc = GD_OK;

    if (!gd_graph_node(nodes->graph, node, &info)) {
        return GD_OK;
    }
    for (int how = 0; rc == GD_OK && how < SPELLINGS; how++) {
        const char *name = spell_node(&info, (enum spelling)how, buffer);
        size_t stem = has_scope((enum spelling)how) ? without_number(name) : 0;

        if (name[0]) {
            rc = add_name(&nodes->lookup, name, strlen(name), node, err);
        }
        if (rc == GD_OK && stem > 0) {
            rc = add_name(&nodes->without, name, stem, node, err);
        }
    }
    return rc;
}

static bool is_called(const struct gd_node_info *info, const char *name)
{
    char buffer[MAX_NAME + 1];

    for (int how = 0; how < SPELLINGS; how++) {
        if (strcmp(spell_node(info, (enum spelling)how, buffer), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Files give weights, graph inputs and constants the type "Parameter"; a kernel's name may differ
 * from its operator's. */
static bool is_of_type(const struct gd_node_info *info, const char *type)
{
    bool parameter = strcmp(info->type, "Parameter") == 0 || strcmp(info->type, "Const") == 0;

    return strcmp(type, "Parameter") == 0 ? parameter : strcmp(info->type, type) == 0;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The node of the right type; otherwise the only one of that name, unless one of the two is a
 * parameter and the other an operator. */
gd_node_id ms_nodes_find(struct ms_nodes *nodes, const char *type, const char *name)
{
    uint64_t hash = gd_hash_index_hash(&nodes->lookup, name, strlen(name));
    gd_node_id other = GD_NO_NODE;
    uint32_t node, others = 0;
    size_t at = 0;

    while (gd_hash_index_next(&nodes->lookup, hash, &at, &node)) {
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

/* ---- adding ---------------------------------------------------------------------------------- */

/* "Conv2D-op1" of a file without a type in its name. */
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
    if (rc == GD_EINVAL) { /* the name belongs to another node */
        snprintf(other, sizeof(other), "%.4000s(%.200s)", desc.name, known);
        desc.wire_name = desc.name;
        desc.name = other;
        rc = gd_graph_add(nodes->graph, &desc, &node, err);
    }
    rc = rc != GD_OK ? rc : ms_nodes_add(nodes, node, err);
    if (rc == GD_OK) {
        *ret = node;
    }
    return rc;
}

/* ---- wanted names ---------------------------------------------------------------------------- */

static uint32_t find_wanted(struct ms_nodes *nodes, const char *type, const char *name)
{
    uint64_t hash = gd_hash_index_hash(&nodes->wanted_lookup, name, strlen(name));
    uint32_t number;
    size_t at = 0;

    while (gd_hash_index_next(&nodes->wanted_lookup, hash, &at, &number)) {
        if (strcmp(nodes->wanted[number].name, name) == 0 &&
            strcmp(nodes->wanted[number].type, type) == 0) {
            return number;
        }
    }
    return MS_WANTED;
}

static int add_wanted(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                      struct gd_err *err)
{
    struct ms_wanted wanted = {.type = gd_arena_strdup(&nodes->arena, type),
                               .name = gd_arena_strdup(&nodes->arena, name),
                               .node = GD_NO_NODE};

    if (nodes->wanted_count == MAX_WANTED) {
        return gd_fail(err, GD_ELIMIT, "a dump with more than %u operators", MAX_WANTED);
    }
    if (!wanted.type || !wanted.name ||
        !gd_grow_list(&nodes->wanted, nodes->wanted_count, &nodes->wanted_cap, sizeof(wanted))) {
        return gd_fail_nomem(err);
    }
    *ret = MS_WANTED | nodes->wanted_count;
    nodes->wanted[nodes->wanted_count++] = wanted;
    return add_name(&nodes->wanted_lookup, name, strlen(name), nodes->wanted_count - 1, err);
}

static int take_node(struct ms_nodes *nodes, gd_node_id node, struct gd_err *err)
{
    if (node >= nodes->taken_count) {
        uint32_t count = gd_graph_node_limit(nodes->graph);
        uint8_t *grown = realloc(nodes->taken, count);

        if (!grown) {
            return gd_fail_nomem(err);
        }
        memset(grown + nodes->taken_count, 0, count - nodes->taken_count);
        nodes->taken = grown;
        nodes->taken_count = count;
    }
    nodes->taken[node] = 1;
    return GD_OK;
}

int ms_nodes_want(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                  struct gd_err *err)
{
    gd_node_id node = ms_nodes_find(nodes, type, name);
    uint32_t number;

    if (node != GD_NO_NODE) {
        *ret = node;
        return take_node(nodes, node, err);
    }
    number = find_wanted(nodes, type, name);
    if (number != MS_WANTED) {
        *ret = MS_WANTED | number;
        return GD_OK;
    }
    return add_wanted(nodes, type, name, ret, err);
}

const struct ms_wanted *ms_nodes_wanted(const struct ms_nodes *nodes, gd_node_id node)
{
    return &nodes->wanted[node & ~MS_WANTED];
}

/* The only operator of that type and that name apart from its number; GD_NO_NODE: none, or several,
 * as in a scope whose files have their own numbers. */
static gd_node_id only_one(struct ms_nodes *nodes, const struct ms_wanted *wanted, size_t stem)
{
    uint64_t hash = gd_hash_index_hash(&nodes->without, wanted->name, stem);
    char buffer[MAX_NAME + 1];
    gd_node_id found = GD_NO_NODE;
    uint32_t node;
    size_t at = 0;

    while (gd_hash_index_next(&nodes->without, hash, &at, &node)) {
        struct gd_node_info info;
        bool same = false;

        if (!gd_graph_node(nodes->graph, node, &info) || info.subgraph != nodes->subgraph ||
            strcmp(info.type, wanted->type) != 0 || node == found) {
            continue;
        }
        for (int how = 0; !same && how < SPELLINGS; how++) {
            const char *name = spell_node(&info, (enum spelling)how, buffer);

            same = has_scope((enum spelling)how) && without_number(name) == stem &&
                   memcmp(name, wanted->name, stem) == 0;
        }
        if (same && found != GD_NO_NODE) {
            return GD_NO_NODE;
        }
        found = same ? node : found;
    }
    return found;
}

/* Resolves those whose node was added later: exact names take precedence. */
static int find_late(struct ms_nodes *nodes, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < nodes->wanted_count; i++) {
        struct ms_wanted *wanted = &nodes->wanted[i];

        wanted->node = ms_nodes_find(nodes, wanted->type, wanted->name);
        if (wanted->node != GD_NO_NODE) {
            rc = take_node(nodes, wanted->node, err);
        }
    }
    return rc;
}

/* Joins those that differ only in the number: if there are two, neither is certain. */
static int join_wanted(struct ms_nodes *nodes, struct gd_err *err)
{
    uint32_t *first = malloc((size_t)gd_graph_node_limit(nodes->graph) * sizeof(*first) + 1);

    if (!first) {
        return gd_fail_nomem(err);
    }
    memset(first, 0xff, (size_t)gd_graph_node_limit(nodes->graph) * sizeof(*first));
    for (uint32_t i = 0; i < nodes->wanted_count; i++) {
        struct ms_wanted *wanted = &nodes->wanted[i];
        size_t stem = without_number(wanted->name);
        gd_node_id node = stem ? only_one(nodes, wanted, stem) : GD_NO_NODE;

        if (wanted->node != GD_NO_NODE || node == GD_NO_NODE ||
            (node < nodes->taken_count && nodes->taken[node])) {
            continue;
        }
        if (first[node] == UINT32_MAX) {
            first[node] = i;
            wanted->node = node;
            wanted->joined = true;
        } else {
            nodes->wanted[first[node]].joined = false;
            nodes->wanted[first[node]].node = GD_NO_NODE;
        }
    }
    free(first);
    return GD_OK;
}

int ms_nodes_settle(struct ms_nodes *nodes, struct gd_err *err)
{
    int rc = find_late(nodes, err);

    if (rc == GD_OK && nodes->wanted_count) {
        rc = join_wanted(nodes, err);
    }
    for (uint32_t i = 0; rc == GD_OK && i < nodes->wanted_count; i++) {
        struct ms_wanted *wanted = &nodes->wanted[i];

        if (wanted->node == GD_NO_NODE) {
            rc = ms_nodes_get(nodes, wanted->type, wanted->name, &wanted->node, err);
        }
    }
    return rc;
}

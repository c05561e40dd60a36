// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/glob.h"
#include "engine/graph/selector.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

void node_list_deinit(struct node_list *list)
{
    free(list->node);
    *list = (struct node_list){0};
}

int node_list_add(void *ctx, gd_node_id node)
{
    struct node_list *list = ctx;
    gd_node_id *more = gd_grow(list->node, list->count, &list->room, sizeof(*more));

    if (!more) {
        list->failed = true;
        return GD_ENOMEM;
    }
    list->node = more;
    list->node[list->count++] = node;
    return 0;
}

int nodes_select(struct command_call *call, const char *text, struct node_list *ret,
                 struct gd_err *err)
{
    struct gd_selector *selector = NULL;
    int rc = gd_selector_parse(text, &selector, err);
    if (rc == GD_OK) {
        *ret = (struct node_list){0};
        rc = gd_selector_resolve(selector, call->session->graph, &ret->node, &ret->count, err);
        ret->room = ret->count;
    }
    gd_selector_destroy(selector);
    return rc;
}

/* A word without special characters is searched for inside names. */
static bool is_plain(const char *text)
{
    return text[0] != '/' && !strpbrk(text, "*?,|") && strncmp(text, "type:", 5) != 0 &&
           strncmp(text, "at:", 3) != 0;
}

struct search {
    const struct gd_graph *graph;
    struct node_list *list;
    bool compiled; /* which nodes are added: compiled ones come last */
};

static int add_found(void *ctx, gd_node_id node)
{
    const struct search *search = ctx;
    return gd_graph_is_compiled(search->graph, node, NULL) == search->compiled
               ? node_list_add(search->list, node)
               : 0;
}

static void search_names(struct search *search, const char *text)
{
    search->compiled = false;
    gd_graph_search_name(search->graph, text, add_found, search);
    search->compiled = true;
    gd_graph_search_name(search->graph, text, add_found, search);
}

int nodes_search(struct command_call *call, const char *text, struct node_list *ret,
                 struct gd_err *err)
{
    if (!is_plain(text)) {
        int rc = nodes_select(call, text, ret, err);
        if (rc == GD_ENOTFOUND) { /* an empty result is not an error */
            *ret = (struct node_list){0};
            rc = GD_OK;
        }
        return rc;
    }
    struct search search = {.graph = call->session->graph, .list = ret};
    *ret = (struct node_list){0};
    search_names(&search, text);
    if (ret->count == 0 && strchr(text, '.')) { /* h.0.attn for h/0/attn */
        char *slashed = gd_arena_strdup(call->arena, text);
        for (char *dot = slashed; dot && (dot = strchr(dot, '.'));) {
            *dot = '/';
        }
        search_names(&search, slashed ? slashed : text);
    }
    if (ret->failed) {
        node_list_deinit(ret);
        return gd_fail_nomem(err);
    }
    return GD_OK;
}

static void put_node(struct command_call *call, struct out_table *table, gd_node_id node)
{
    struct gd_output output;
    struct gd_node_info info;
    cJSON *item = out_row(table);
    inspect_add_node(call, item, node);
    if (gd_graph_output(call->session->graph, node, 0, &output)) {
        out_set(item, OUT_TEXT("dtype", gd_dtype_name(output.dtype)),
                OUT_JSON("shape", inspect_shape_json(&output.shape)));
    }
    out_set(item, OUT_IF(gd_graph_node(call->session->graph, node, &info),
                         OUT_INT("slots", info.output_count)));
    out_put_text(table, OUT_TEXT("output", inspect_outputs(call, node)),
                 OUT_TEXT("batch", inspect_micro_batch(call, call->session, node)),
                 OUT_BOOL("current", node == call->session->current));
}

/* ---- what runs ------------------------------------------------------------------------------ */

static bool never_runs(const struct gd_session *session, gd_node_id node)
{
    struct gd_node_info info;
    return gd_session_is_live(session) && gd_graph_node(session->graph, node, &info) &&
           (info.kind == GD_NODE_WEIGHT || info.kind == GD_NODE_PARAMETER ||
            info.kind == GD_NODE_CONSTANT || info.kind == GD_NODE_COMPILED) &&
           gd_graph_order(session->graph, node) == GD_NO_ORDER;
}

/* The first consumer in execution order; `updates`: the optimizer, else any other. */
static const char *find_consumer(struct command_call *call, gd_node_id node, bool updates)
{
    const struct gd_graph *graph = call->session->graph;
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(graph, node, &edges), first = GD_NO_ORDER;
    const char *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = gd_graph_name(graph, edges[i].node);
        uint32_t order = gd_graph_order(call->session->graph, edges[i].node);
        bool optimizer = strncmp(name, "optimizer/", strlen("optimizer/")) == 0;
        if (order != GD_NO_ORDER && optimizer == updates && order < first) {
            first = order;
            found = out_safe(call, name);
        }
    }
    return found;
}

int nodes_must_run(struct command_call *call, gd_node_id node, struct gd_err *err)
{
    if (!never_runs(call->session, node)) {
        return GD_OK;
    }
    if (gd_graph_is_compiled(call->session->graph, node, err)) {
        return GD_EINVAL;
    }
    const char *name = out_safe(call, gd_graph_name(call->session->graph, node));
    const char *reads = find_consumer(call, node, false),
               *updates = find_consumer(call, node, true);
    const char *hint = ": name an operator";
    if (reads && updates) {
        hint = inspect_printf(call, ": %s reads it, %s updates it", reads, updates);
    } else if (reads || updates) {
        hint = inspect_printf(call, ": %s %s it", reads ? reads : updates,
                              reads ? "reads" : "updates");
    }
    struct gd_node_info info;
    gd_graph_node(call->session->graph, node, &info);
    bool buffer = strcmp(info.type, "Buffer") == 0;
    return gd_fail(err, GD_EINVAL, "%.200s is a %s, which does not run%s", name,
                   buffer ? "buffer" : "parameter", hint);
}

/* The text is a scope whose operators are not known yet: no step of the training has run. */
static bool is_scope_to_come(struct command_call *call, const char *text)
{
    const struct gd_session *session = call->session;
    gd_node_id node = gd_graph_lookup(session->graph, text, strlen(text));

    return node == GD_NO_NODE && !gd_glob_is_pattern(text) && !strchr(text, ':') &&
           !gd_session_is_record(session) && gd_session_step(session) == 0 &&
           gd_graph_find(session->graph, text, &node, NULL) != GD_OK;
}

int nodes_must_run_any(struct command_call *call, const char *text, struct gd_err *err)
{
    struct node_list list = {.node = NULL};
    int rc = GD_OK;
    if (call->session && !is_scope_to_come(call, text) &&
        nodes_select(call, text, &list, NULL) == GD_OK) {
        for (size_t i = 0; i < list.count; i++) {
            rc = nodes_must_run(call, list.node[i], err);
            if (rc == GD_OK) {
                break;
            }
        }
    }
    node_list_deinit(&list);
    return rc;
}

/* Of some nodes the one that runs next: after the stop, else the first of the next step. */
static gd_node_id next_of(const struct gd_session *session, const gd_node_id *nodes, size_t count)
{
    const struct gd_graph *graph = session->graph;
    uint32_t now = session->stop.node == GD_NO_NODE ? 0 : gd_graph_order(graph, session->stop.node);
    gd_node_id best[2] = {GD_NO_NODE, GD_NO_NODE}; /* later in the step, and in the next one */

    now = now == GD_NO_ORDER ? 0 : now;
    for (size_t i = 0; i < count; i++) {
        uint32_t order = gd_graph_order(graph, nodes[i]);
        bool later = session->stop.node == GD_NO_NODE || order > now;
        gd_node_id *known = &best[later ? 0 : 1];
        if (*known == GD_NO_NODE || order < gd_graph_order(graph, *known)) {
            *known = nodes[i];
        }
    }
    return best[best[0] == GD_NO_NODE];
}

int nodes_find_module(struct command_call *call, const char *text, bool last, gd_node_id *ret,
                      struct gd_err *err)
{
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = gd_selector_parse(text, &selector, err);

    if (rc == GD_OK && !gd_selector_has_name(selector)) {
        rc = gd_fail(err, GD_ENOTFOUND, "\"%.200s\" is not a module", out_safe(call, text));
    }
    if (rc == GD_OK) {
        gd_selector_set_extent(selector, last ? GD_EXTENT_LAST : GD_EXTENT_FIRST);
        rc = gd_selector_resolve(selector, call->session->graph, &nodes, &count, err);
    }
    if (rc == GD_OK && count == 0) {
        rc = gd_fail(err, GD_ENODATA, "no operator of %.200s has run yet: run a step first",
                     out_safe(call, text));
    }
    if (rc == GD_OK) {
        *ret = next_of(call->session, nodes, count);
    }
    gd_selector_destroy(selector);
    free(nodes);
    return rc;
}

void nodes_show(struct command_call *call, const struct node_list *list, bool all,
                const char *again)
{
    /* Names come last: they are long, and whole names can be copied. */
    static const struct out_column columns[] = {
        {"order", "Order", true},
        {"node_type", "Type", false},
        {"kind", "Kind", false},
        {"output", "Output", false},
        {"node", "Node", false, "{node}[ {batch}][{?current}  <= current]"},
    };
    size_t shown = all || list->count <= NODES_SHOWN ? list->count : NODES_SHOWN;
    cJSON *record = out_record(call->out, "nodes");
    struct out_table *table = out_table_begin(call->out, "nodes", columns, 5);

    for (size_t i = 0; i < shown; i++) {
        put_node(call, table, list->node[i]);
    }
    out_table_end(table);
    out_set(record, OUT_INT("count", list->count), OUT_INT("more", list->count - shown));
    out_say(call->out, record, "[{!count}No nodes.\n][... {more:n} more ({again})\n]",
            OUT_TEXT("again", again));
}

int nodes_find_scope(struct command_call *call, const char *text, gd_scope_id *ret,
                     struct gd_err *err)
{
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '/') {
        len--;
    }
    if (len == 0) {
        *ret = 0;
        return GD_OK;
    }
    struct gd_graph *graph = call->session->graph;
    struct gd_scope_info one, other;
    uint32_t subgraph = 0;
    gd_scope_id scope = gd_graph_next_scope(graph, text, len, &subgraph);
    gd_scope_id next = gd_graph_next_scope(graph, text, len, &subgraph);
    if (scope != GD_NO_SCOPE && next != GD_NO_SCOPE && gd_graph_scope(graph, scope, &one) &&
        gd_graph_scope(graph, next, &other)) {
        return gd_fail(err, GD_EAMBIGUOUS,
                       "'%.100s' could be '%.150s' or '%.150s': write more of the name",
                       out_safe(call, text), out_safe(call, one.name), out_safe(call, other.name));
    }
    struct gd_err why = {.code = GD_OK};
    int rc = scope == GD_NO_SCOPE ? gd_graph_find_scope_end(graph, text, &scope, &why) : GD_OK;
    if (rc == GD_EAMBIGUOUS) {
        return gd_fail(err, rc, "%s", out_safe(call, why.text));
    }
    if (rc != GD_OK) {
        return gd_fail(err, GD_ENOTFOUND, "there is no scope %.200s; `info scopes` lists them",
                       out_safe(call, text));
    }
    *ret = scope;
    return GD_OK;
}

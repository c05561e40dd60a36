// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: scope */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/watch.h"

/* Lines left for the text, and how many did not get one; records have everything. */
struct line_limit {
    uint64_t left, hidden;
};

static bool take_line(struct line_limit *limit)
{
    if (limit->left == 0) {
        limit->hidden++;
        return false;
    }
    limit->left--;
    return true;
}

static void show_child(struct command_call *call, cJSON *list, gd_scope_id id,
                       const struct gd_scope_info *child, struct line_limit *limit)
{
    cJSON *item = out_push(list);

    out_set(item, OUT_TEXT("scope", child->name), OUT_INT("nodes", child->total_count),
            OUT_TEXT("watched", watch_state_name(gd_watch_scope_state(call->session, id))));
    if (take_line(limit)) {
        out_say(call->out, item, "  {leaf}/  {nodes|node}{mark}\n", OUT_TEXT("leaf", child->leaf),
                OUT_TEXT("mark", watch_scope_mark(call, id)));
    }
}

static void show_node(struct command_call *call, cJSON *list, gd_node_id node,
                      struct line_limit *limit)
{
    cJSON *item = out_push(list);
    struct gd_node_info info;

    inspect_add_node(call, item, node);
    out_set(item, OUT_JSON("watchpoints", watch_numbers_record(call, node)));
    if (gd_graph_node(call->session->graph, node, &info) && take_line(limit)) {
        const char *slash = strrchr(info.name, '/');
        out_say(call->out, item, "  {leaf}  ({type}) {outputs}[, watched by {numbers}]\n",
                OUT_TEXT("leaf", slash ? slash + 1 : info.name), OUT_TEXT("type", info.type),
                OUT_TEXT("outputs", inspect_outputs(call, node)),
                OUT_TEXT("numbers", watch_numbers_of(call, node)));
    }
}

int info_scope(struct command_call *call, gd_scope_id scope, bool all, struct gd_err *err)
{
    struct gd_graph *graph = call->session->graph;
    struct gd_scope_info info;
    if (!gd_graph_scope(graph, scope, &info)) {
        return gd_fail(err, GD_ENODATA, "the training process has not sent a graph yet");
    }
    cJSON *record = out_record(call->out, "scope");
    struct line_limit limit = {.left = all ? UINT64_MAX : NODES_SHOWN};
    struct gd_scope_info child;

    out_set(record, OUT_TEXT("scope", info.name), OUT_SOME("class", info.class),
            OUT_INT("total", info.total_count));
    out_say(call->out, record, "{scope}/  [{class}, ]{total|node}\n");
    cJSON *scopes = out_list(record, "scopes");
    for (gd_scope_id id = info.first_child; id != GD_NO_SCOPE && gd_graph_scope(graph, id, &child);
         id = child.next) {
        show_child(call, scopes, id, &child, &limit);
    }
    cJSON *nodes = out_list(record, "nodes");
    for (gd_node_id node = info.first_node; node != GD_NO_NODE;
         node = gd_graph_next_in_scope(graph, node)) {
        show_node(call, nodes, node, &limit);
    }
    out_say(call->out, record, "[  ... {hidden:n} more (scope {scope} -a)\n]",
            OUT_INT("hidden", limit.hidden));
    return GD_OK;
}

static int run_scope(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    gd_scope_id scope = 0;
    struct gd_node_info node;
    if (call->argc > 0) {
        int rc = nodes_find_scope(call, inspect_join(call, 0, call->argc), &scope, err);
        if (rc != GD_OK) {
            return rc;
        }
    } else if (call->session->current != GD_NO_NODE &&
               gd_graph_node(call->session->graph, call->session->current, &node)) {
        scope = node.scope;
    }
    return info_scope(call, scope, all, err);
}

const struct command cmd_scope = {
    .name = "scope",
    .group = "graph",
    .usage = "scope [SCOPE] [-a]",
    .summary = "List the direct contents of a scope: scopes, then nodes",
    .help = "Without an argument, list the scope of the current node. `scope /` is the root.\n"
            "`info scopes` shows the whole tree.",
    .examples = "scope model/block0",
    .args = {ARG_SCOPE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_scope,
};

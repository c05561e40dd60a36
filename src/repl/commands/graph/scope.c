// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: scope
 * List the contents of a scope.
 */
#include <string.h>

#include "repl/core/command.h"
#include "repl/core/watch.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"

static void scope_record(struct command_call *call, const struct gd_scope_info *info)
{
    struct gd_graph *graph = call->session->graph;
    cJSON *record = out_record(call->out, "scope");
    out_set(record, OUT_TEXT("scope", info->name), OUT_INT("total", info->total_count));
    cJSON *scopes = out_list(record, "scopes");
    struct gd_scope_info child;
    for (gd_scope_id id = info->first_child; id != GD_NO_SCOPE && gd_graph_scope(graph, id, &child);
         id = child.next) {
        cJSON *item = out_push(scopes);
        out_set(item, OUT_TEXT("scope", child.name), OUT_INT("nodes", child.total_count),
                OUT_TEXT("watched", watch_state_name(gd_watch_scope_state(call->session, id))));
    }
    cJSON *nodes = out_list(record, "nodes");
    for (gd_node_id node = info->first_node; node != GD_NO_NODE;
         node = gd_graph_next_in_scope(graph, node)) {
        cJSON *item = out_push(nodes);
        inspect_add_node(call, item, node);
        out_set(item, OUT_JSON("watchpoints", watch_numbers_record(call, node)));
    }
}

static void scope_text(struct command_call *call, const struct gd_scope_info *info, bool all)
{
    struct gd_graph *graph = call->session->graph;
    uint64_t lines = 0;
    uint64_t hidden = 0;
    out_printf(call->out, "%s/  %s\n", out_safe(call, info->name),
               inspect_plural(call, info->total_count, "node"));
    struct gd_scope_info child;
    for (gd_scope_id id = info->first_child; id != GD_NO_SCOPE && gd_graph_scope(graph, id, &child);
         id = child.next) {
        if (!all && lines++ >= NODES_SHOWN) {
            hidden++;
            continue;
        }
        out_printf(call->out, "  %s/  %s%s\n", out_safe(call, child.leaf),
                   inspect_plural(call, child.total_count, "node"), watch_scope_mark(call, id));
    }
    for (gd_node_id node = info->first_node; node != GD_NO_NODE;
         node = gd_graph_next_in_scope(graph, node)) {
        struct gd_node_info at;
        if ((!all && lines++ >= NODES_SHOWN) || !gd_graph_node(graph, node, &at)) {
            hidden++;
            continue;
        }
        const char *slash = strrchr(at.name, '/');
        const char *numbers = watch_numbers_of(call, node);
        out_printf(call->out, "  %s  (%s) %s%s%s\n", out_safe(call, slash ? slash + 1 : at.name),
                   out_safe(call, at.type), inspect_outputs(call, node),
                   numbers[0] != '\0' ? ", watched by " : "", numbers);
    }
    if (hidden > 0) {
        out_printf(call->out, "  ... %s more (scope %s -a)\n", inspect_number(call, hidden),
                   out_safe(call, info->name));
    }
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
    struct gd_scope_info info;
    if (!gd_graph_scope(call->session->graph, scope, &info)) {
        return gd_fail(err, GD_ENODATA, "the training process has not sent a graph yet");
    }
    if (out_is_json(call->out)) {
        scope_record(call, &info);
    } else {
        scope_text(call, &info, all);
    }
    return GD_OK;
}

const struct command cmd_scope = {
    .name = "scope",
    .group = "graph",
    .usage = "scope [SCOPE] [-a]",
    .summary = "List the direct contents of a scope: scopes, then nodes",
    .help = "Without an argument, list the scope of the current node. `scope /` is the root.\n"
            "`info scopes` shows the whole tree.\n\n"
            "  scope model/block0\n",
    .args = {ARG_SCOPE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_scope,
};

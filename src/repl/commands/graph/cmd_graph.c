// SPDX-License-Identifier: GPL-3.0-or-later
/* search, inputs, outputs, node, node-info, scope: finding one's way in the graph. */
#include <stdlib.h>
#include <string.h>

#include "repl/core/commands.h"
#include "repl/core/watch.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/tree.h"

/* ---- search -------------------------------------------------------------------------------- */

static bool in_scope(struct command_call *call, gd_node_id node, gd_scope_id scope)
{
    struct gd_node_info info;
    struct gd_scope_info at;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return false;
    }
    for (gd_scope_id id = info.scope; id != GD_NO_SCOPE; id = at.parent) {
        if (id == scope) {
            return true;
        }
        if (!gd_graph_scope(call->session->graph, id, &at)) {
            return false;
        }
    }
    return false;
}

static void keep_in_scope(struct command_call *call, struct node_list *list, gd_scope_id scope)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (in_scope(call, list->node[i], scope)) {
            list->node[kept++] = list->node[i];
        }
    }
    list->count = kept;
}

static int find_scope(struct command_call *call, const char *text, gd_scope_id *ret,
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
    if (scope == GD_NO_SCOPE) {
        return gd_fail(err, GD_ENOTFOUND, "there is no scope %.200s; `info scopes` shows them",
                       out_safe(call, text));
    }
    *ret = scope;
    return GD_OK;
}

static int run_search(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    gd_scope_id scope = GD_NO_SCOPE;
    int words = call->argc;
    if (words >= 3 && strcmp(call->argv[words - 2], "in") == 0) {
        int rc = find_scope(call, call->argv[words - 1], &scope, err);
        if (rc != GD_OK) {
            return rc;
        }
        words -= 2;
    }
    const char *text = inspect_join(call, 0, words);
    if (text[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "what to search for?");
    }
    if (call->command->name[0] == '/' && (text[1] == '\0' || text[strlen(text) - 1] != '/')) {
        text =
            inspect_printf(call, "%s/", text); /* as in less, the closing slash may be left out */
    }
    struct node_list list;
    int rc = nodes_search(call, text, &list, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (scope != GD_NO_SCOPE) {
        keep_in_scope(call, &list, scope);
    }
    if (list.count > 0 || out_is_json(call->out)) {
        nodes_show(call, &list, all,
                   inspect_printf(call, "search %s -a", out_safe(call, call->line)));
    } else {
        out_printf(call->out, "Nothing matches %s.\n", out_safe(call, text));
    }
    node_list_deinit(&list);
    return GD_OK;
}

/* ---- inputs, outputs ----------------------------------------------------------------------- */

static int run_edges(struct command_call *call, bool outputs, struct gd_err *err)
{
    struct tree_options options = {.outputs = outputs, .depth = 1};
    if (inspect_take_flag(call, "-r")) {
        options.depth = 20;
    }
    options.control = inspect_take_flag(call, "-c");
    options.all = inspect_take_flag(call, "-a");
    int rc = inspect_take_count(call, "-d", 1, TREE_MAX_DEPTH, &options.depth, err);
    if (rc == GD_OK) {
        rc = inspect_no_options(call, err);
    }
    gd_node_id node;
    if (rc == GD_OK) {
        rc = inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    }
    return rc == GD_OK ? tree_show_edges(call, node, &options, err) : rc;
}

static int run_inputs(struct command_call *call, struct gd_err *err)
{
    return run_edges(call, false, err);
}

static int run_outputs(struct command_call *call, struct gd_err *err)
{
    return run_edges(call, true, err);
}

/* ---- node ---------------------------------------------------------------------------------- */

static int run_node(struct command_call *call, struct gd_err *err)
{
    gd_node_id node;
    struct gd_node_info info;
    int rc = inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    call->session->current = node;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return gd_fail(err, GD_ENOTFOUND, "the node is gone");
    }
    if (out_is_json(call->out)) {
        inspect_add_node(call, out_record(call->out, "current"), node);
        return GD_OK;
    }
    out_printf(call->out, "%s (%s)", out_safe(call, info.name), out_safe(call, info.type));
    const char *output = inspect_outputs(call, node);
    out_printf(call->out, "%s%s\n", output[0] ? ", " : "", output);
    return GD_OK;
}

/* ---- scope --------------------------------------------------------------------------------- */

static void scope_record(struct command_call *call, const struct gd_scope_info *info)
{
    struct gd_graph *graph = call->session->graph;
    cJSON *record = out_record(call->out, "scope");
    inspect_add_text(call, record, "scope", info->name);
    cJSON_AddNumberToObject(record, "total", info->total_count);
    cJSON *scopes = cJSON_AddArrayToObject(record, "scopes");
    struct gd_scope_info child;
    for (gd_scope_id id = info->first_child; id != GD_NO_SCOPE && gd_graph_scope(graph, id, &child);
         id = child.next) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_text(call, item, "scope", child.name);
        cJSON_AddNumberToObject(item, "nodes", child.total_count);
        cJSON_AddStringToObject(item, "watched",
                                watch_state_name(gd_watch_scope_state(call->session, id)));
        cJSON_AddItemToArray(scopes, item);
    }
    cJSON *nodes = cJSON_AddArrayToObject(record, "nodes");
    for (gd_node_id node = info->first_node; node != GD_NO_NODE;
         node = gd_graph_next_in_scope(graph, node)) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_node(call, item, node);
        cJSON_AddItemToObject(item, "watchpoints", watch_numbers_record(call, node));
        cJSON_AddItemToArray(nodes, item);
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
        int rc = find_scope(call, inspect_join(call, 0, call->argc), &scope, err);
        if (rc != GD_OK) {
            return rc;
        }
    } else if (call->session->current != GD_NO_NODE &&
               gd_graph_node(call->session->graph, call->session->current, &node)) {
        scope = node.scope;
    }
    struct gd_scope_info info;
    if (!gd_graph_scope(call->session->graph, scope, &info)) {
        return gd_fail(err, GD_ENODATA, "the trainer has sent no graph yet");
    }
    if (out_is_json(call->out)) {
        scope_record(call, &info);
    } else {
        scope_text(call, &info, all);
    }
    return GD_OK;
}

int inspect_info_scopes(struct command_call *call, struct gd_err *err)
{
    int64_t depth = 3;
    bool all = inspect_take_flag(call, "-a");
    if (inspect_take_flag(call, "-r")) {
        depth = TREE_MAX_DEPTH;
    }
    int rc = inspect_take_count(call, "-d", 0, TREE_MAX_DEPTH, &depth, err);
    if (rc == GD_OK) {
        rc = inspect_no_options(call, err);
    }
    gd_scope_id scope = 0;
    if (rc == GD_OK && call->argc > 0) {
        rc = find_scope(call, inspect_join(call, 0, call->argc), &scope, err);
    }
    return rc == GD_OK ? tree_show_scopes(call, scope, depth, all, err) : rc;
}

/* ---- the table ----------------------------------------------------------------------------- */

const struct command cmd_graph_table[] = {
    {
        .name = "search",
        .group = "graph",
        .usage = "search TEXT|/REGEX/|GLOB|type:TYPE|at:FILE[:LINE] [in SCOPE] [-a]",
        .summary = "Find nodes by name, type or source line",
        .help = "TEXT is looked for anywhere in the full names; case does not matter. The\n"
                "other forms are selectors. `in SCOPE` keeps what is below a scope; -a\n"
                "shows more than 40.\n"
                "\n"
                "  search matmul\n"
                "  search type:MatMul in Default/network/block0\n"
                "  search /(fc|proj)\\.weight$/\n"
                "  search at:model.c:42\n",
        .args = {ARG_SELECTOR, ARG_WORD, ARG_SCOPE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_search,
    },
    {
        .name = "/",
        .group = "graph",
        .usage = "/REGEX[/] [in SCOPE]",
        .summary = "Find nodes whose names match a regular expression",
        .help = "The same as `search /REGEX/`.\n"
                "\n"
                "  /block[0-9]+.attn/\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_search,
    },
    {
        .name = "inputs",
        .aliases = "li",
        .group = "graph",
        .usage = "inputs [NODE] [-d DEPTH] [-r] [-c] [-a]",
        .summary = "Show what feeds a node, as a tree",
        .help = "  -d DEPTH  so many levels (default 1); -r is -d 20\n"
                "  -c        control edges, too\n"
                "  -a        every line, not only the first 200\n"
                "A node that was opened above is not opened again.\n"
                "\n"
                "  inputs Log-op49\n"
                "  inputs attn/MatMul-op4 -d 4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_inputs,
    },
    {
        .name = "outputs",
        .aliases = "lo",
        .group = "graph",
        .usage = "outputs [NODE] [-d DEPTH] [-r] [-c] [-a]",
        .summary = "Show what a node feeds, as a tree",
        .help = "Options as for `inputs`.\n"
                "\n"
                "  outputs head.weight\n"
                "  lo attn/MatMul-op4 -r\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_outputs,
    },
    {
        .name = "node",
        .group = "graph",
        .usage = "node [NODE]",
        .summary = "Select the node that commands without an argument look at, or show it",
        .help = "A stop selects the node that was executed last. In other commands `.` is the\n"
                "selected node.\n"
                "\n"
                "  node attn/MatMul-op4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION,
        .run = run_node,
    },
    {
        .name = "node-info",
        .aliases = "ni",
        .group = "graph",
        .usage = "node-info [NODE]",
        .summary = "Show everything known of a node (as info node)",
        .help = "  ni attn/MatMul-op4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = inspect_info_node,
    },
    {
        .name = "scope",
        .group = "graph",
        .usage = "scope [SCOPE] [-a]",
        .summary = "List what is directly in a scope: scopes, then nodes",
        .help = "Without an argument: the scope of the current node. `scope /` is the root.\n"
                "`info scopes` shows the whole tree.\n"
                "\n"
                "  scope Default/network/block0\n",
        .args = {ARG_SCOPE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_scope,
    },
    {.name = NULL},
};

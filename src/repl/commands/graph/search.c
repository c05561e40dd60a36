// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: search, / */
#include <string.h>

#include "engine/graph/part.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"

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

static int run_search(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    gd_scope_id scope = GD_NO_SCOPE;
    int words = call->argc;
    if (words >= 3 && strcmp(call->argv[words - 2], "in") == 0) {
        int rc = nodes_find_scope(call, call->argv[words - 1], &scope, err);
        if (rc != GD_OK) {
            return rc;
        }
        words -= 2;
    }
    const char *text = inspect_join(call, 0, words);
    if (text[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "search: specify what to search for");
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
    rc = gd_graph_sort_by_part(call->session->graph, list.node, list.count, err);
    if (rc != GD_OK) {
        node_list_deinit(&list);
        return rc;
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

const struct command cmd_search = {
    .name = "search",
    .group = "graph",
    .usage = "search TEXT|/REGEX/|GLOB|type:TYPE|at:FILE[:LINE] [in SCOPE] [-a]",
    .summary = "Find nodes by name, type or source line",
    .help = "TEXT matches anywhere in a full name, ignoring case. The other forms are selectors.\n"
            "`in SCOPE` keeps only nodes below a scope; -a shows more than 40.",
    .examples = "search linear\n"
                "search type:linear in model/block0\n"
                "search /(fc|proj).weight$/\n"
                "search at:model.py:42",
    .args = {ARG_SELECTOR, ARG_WORD, ARG_SCOPE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_search,
};

const struct command cmd_slash = {
    .name = "/",
    .group = "graph",
    .usage = "/REGEX[/] [in SCOPE]",
    .summary = "Find nodes whose names match a regular expression",
    .help = "The same as `search /REGEX/`.",
    .examples = "/block[0-9]+.attn/",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_search,
};

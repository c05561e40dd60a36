// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: node */
#include "repl/values/inspect.h"

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
        return gd_fail(err, GD_ENOTFOUND, "the node no longer exists");
    }
    cJSON *record = out_record(call->out, "current");
    inspect_add_node(call, record, node);
    const char *tied = gd_node_attr(&info, GD_ALIASES);
    out_set(record, OUT_IF(tied && tied[0], OUT_TEXT("tied_to", tied)));
    out_say(call->out, record, "{node} ({node_type})[, {output}][, tied to {tied_to}]\n",
            OUT_TEXT("output", inspect_outputs(call, node)));
    return GD_OK;
}

const struct command cmd_node = {
    .name = "node",
    .group = "graph",
    .usage = "node [NODE]",
    .summary = "Select the current node, or show it",
    .help = "Commands without an argument apply to the current node; `.` stands for it in other\n"
            "commands. A stop selects the node that was executed last.",
    .examples = "node model/block0/attn/linear",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION,
    .run = run_node,
};

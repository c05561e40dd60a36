// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: run-to */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/values/nodes.h"

static int run_run_to(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_TO_NODE, .node = GD_NO_NODE};
    struct gd_graph_counts counts;

    int rc = arg_node(call, call->argv[0], &run.node, err);
    rc = rc == GD_OK ? nodes_must_run(call, run.node, err) : rc;
    gd_graph_counts(call->session->graph, &counts);
    if (rc == GD_ENOTFOUND && counts.nodes == 0) {
        run.name = call->argv[0]; /* a process that sent no graph still knows its nodes */
        rc = GD_OK;
    }
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

const struct command cmd_run_to = {
    .name = "run-to",
    .aliases = "until u advance",
    .group = "running",
    .usage = "run-to NODE [&]",
    .summary = "Run until a node has executed",
    .examples = "run-to model/block0/attn/linear",
    .args = {ARG_NODE},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .words = {1, 1, "specify one node"},
    .run = run_run_to,
};

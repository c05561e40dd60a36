// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: inputs, outputs */
#include "repl/values/inspect.h"
#include "repl/values/tree.h"

enum variant { INPUTS, OUTPUTS };

static int run_edges(struct command_call *call, struct gd_err *err)
{
    struct tree_options options = {.outputs = call->command->variant == OUTPUTS, .depth = 1};
    if (inspect_take_flag(call, "-r")) {
        options.depth = 20;
    }
    options.control = inspect_take_flag(call, "-c");
    options.all = inspect_take_flag(call, "-a");
    int rc = inspect_take_count(call, "-d", 1, TREE_MAX_DEPTH, &options.depth, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    gd_node_id node;
    if (rc == GD_OK) {
        rc = inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    }
    return rc == GD_OK ? tree_show_edges(call, node, &options, err) : rc;
}

const struct command cmd_inputs = {
    .name = "inputs",
    .aliases = "li",
    .group = "graph",
    .usage = "inputs [NODE] [-d DEPTH] [-r] [-c] [-a]",
    .summary = "Show the inputs of a node as a tree",
    .help = "  -d DEPTH  number of levels (default 1); -r is -d 20\n"
            "  -c        include control edges\n"
            "  -a        show all lines, not only the first 200\n"
            "A node that was already shown is not expanded again.",
    .examples = "inputs model/loss/log\n"
                "inputs model/block0/attn/linear -d 4",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_edges,
};

const struct command cmd_outputs = {
    .name = "outputs",
    .aliases = "lo",
    .group = "graph",
    .usage = "outputs [NODE] [-d DEPTH] [-r] [-c] [-a]",
    .summary = "Show the consumers of a node as a tree",
    .help = "The options are those of `inputs`.",
    .examples = "outputs model/head/weight\n"
                "lo model/block0/attn/linear -r",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .variant = OUTPUTS,
    .run = run_edges,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: finish */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/values/nodes.h"

static int run_finish(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_FINISH, .node = GD_NO_NODE};
    int rc = GD_OK;

    if (call->argc == 1) {
        run.kind = GD_RUN_TO_NODE;
        rc = nodes_find_module(call, call->argv[0], true, &run.node, err);
    }
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

const struct command cmd_finish = {
    .name = "finish",
    .aliases = "fin",
    .group = "running",
    .usage = "finish [MODULE | CLASS] [&]",
    .summary = "Run to the end of the current phase, or of a module",
    .help =
        "The phases are forward, backward and optimizer; a training process that does not know\n"
        "them reports an error. A module ends with its last operator in the forward pass.",
    .examples = "finish\n"
                "finish model.block0.attn",
    .args = {ARG_NODE},
    .words = {0, 1, "specify one module, or nothing for the current phase"},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .run = run_finish,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: next
 * Run to the next operator.
 */
#include "repl/commands/running/running.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

static int run_next(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_NEXT, .node = GD_NO_NODE};
    int rc = run_take_count(call, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

const struct command cmd_next = {
    .name = "next",
    .aliases = "n",
    .group = "running",
    .usage = "next [N] [&]",
    .summary = "Run N nodes in execution order, then stop",
    .help =
        "Without N, run one node. A training process that cannot stop at nodes reports an error.",
    .args = {ARG_WORD},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .run = run_next,
};

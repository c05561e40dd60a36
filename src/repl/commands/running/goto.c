// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: goto */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

static int run_goto(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_GOTO, .node = GD_NO_NODE};
    int rc = arg_count(call->argv[0], INT64_MIN + 1, INT64_MAX, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

const struct command cmd_goto = {
    .name = "goto",
    .group = "running",
    .usage = "goto STEP",
    .summary = "Go to a step of a dump",
    .help =
        "\"info steps\" lists them. All ranks of the dump go there, unless rank-locking is on;\n"
        "one that lacks the step goes to the last that it has before it.",
    .examples = "goto 100",
    .args = {ARG_WORD},
    .flags = RUN_NEEDS,
    .words = {1, 1, "specify one step number"},
    .run = run_goto,
};

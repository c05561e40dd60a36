// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: finish */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

static int run_finish(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_FINISH, .node = GD_NO_NODE};
    int rc = call->argc == 0 ? GD_OK : gd_fail(err, GD_EUSAGE, "finish: takes no argument");
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

const struct command cmd_finish = {
    .name = "finish",
    .aliases = "fin",
    .group = "running",
    .usage = "finish [&]",
    .summary = "Run to the end of the current phase: forward, backward or optimizer",
    .help = "A training process that does not know its phases reports an error.",
    .flags = RUN_NEEDS | CMD_REPEATS,
    .run = run_finish,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: shell */
#include <signal.h>

#include "repl/commands/support/child.h"
#include "repl/core/repl_impl.h"

static int run_shell(struct command_call *call, struct gd_err *err)
{
    sigset_t mask;
    pid_t pid = 0;
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    out_flush(call->out);
    rc = child_lend_terminal(call->repl, &mask, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = child_run(call->line, -1, &pid, err);
    if (rc == GD_OK) {
        child_result(call, child_wait(call->repl, pid));
    }
    child_take_terminal(call->repl, &mask);
    return rc;
}

const struct command cmd_shell = {
    .name = "shell",
    .aliases = "!",
    .group = "support",
    .usage = "shell [COMMAND]",
    .summary = "Run a shell command, or a shell",
    .help = "A line that begins with ! does the same.",
    .examples = "!nvidia-smi",
    .args = {ARG_WORD},
    .flags = CMD_RAW,
    .run = run_shell,
};

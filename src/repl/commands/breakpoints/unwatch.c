// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: unwatch */
#include "repl/core/repl_impl.h"
#include "repl/values/watch.h"

static int run_unwatch(struct command_call *call, struct gd_err *err)
{
    for (int i = 0; i < call->argc; i++) {
        int number;
        int rc = watch_number(call, call->argv[i], &number, err);
        rc = rc != GD_OK ? rc : gd_watchpoint_delete(call->debugger, number, err);
        if (rc != GD_OK) {
            return rc;
        }
        repl_forget_number(call->repl, number);
    }
    return GD_OK;
}

const struct command cmd_unwatch = {
    .name = "unwatch",
    .group = "breakpoints",
    .usage = "unwatch N...",
    .summary = "Delete watchpoints",
    .help = "Like delete, for watchpoints only.",
    .args = {ARG_BREAKPOINT},
    .flags = CMD_CHANGES,
    .words = {1, 0, "specify a watchpoint number"},
    .run = run_unwatch,
};

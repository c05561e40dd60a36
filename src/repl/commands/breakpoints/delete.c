// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: delete */
#include <string.h>

#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/core/repl_impl.h"

static int delete_one(struct command_call *call, int number, void *ctx, struct gd_err *err)
{
    (void)ctx;
    int rc = gd_watchpoint_at(call->debugger, number)
                 ? gd_watchpoint_delete(call->debugger, number, err)
                 : gd_debugger_delete_breakpoint(call->debugger, number, err);
    if (rc == GD_OK) {
        repl_forget_number(call->repl, number);
    }
    return rc;
}

static int run_delete(struct command_call *call, struct gd_err *err)
{
    int from = call->argc > 0 && strcmp(call->argv[0], "breakpoints") == 0 ? 1 : 0;

    if (call->argc <= from && ((!call->debugger->breakpoints && !call->debugger->watchpoints) ||
                               !repl_confirm(call, "Delete all breakpoints and watchpoints?"))) {
        return GD_OK;
    }
    return stop_numbers_each(call, from, delete_one, NULL, err);
}

const struct command cmd_delete = {
    .name = "delete",
    .aliases = "d del",
    .group = "breakpoints",
    .usage = "delete [N | N-M]...",
    .summary = "Delete breakpoints and watchpoints",
    .help = "Without a number, delete all after a confirmation.",
    .args = {ARG_BREAKPOINT},
    .flags = CMD_CHANGES,
    .run = run_delete,
};

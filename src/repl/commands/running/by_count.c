// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs of N steps or nodes. */
#include "repl/commands/running/running.h"
#include "repl/core/stops.h"

int run_take_count(struct command_call *call, int64_t *ret, struct gd_err *err)
{
    *ret = 1;
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "%s: unexpected argument \"%.60s\"", call->command->name,
                       call->argv[1]);
    }
    return call->argc == 1 ? arg_count(call->argv[0], 1, INT64_MAX, ret, err) : GD_OK;
}

int run_by_count(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = (enum gd_run_kind)call->command->variant, .node = GD_NO_NODE};
    int rc = run_take_count(call, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}
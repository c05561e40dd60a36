// SPDX-License-Identifier: GPL-3.0-or-later
/* `info memory`. */
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/memory.h"

int info_memory(struct command_call *call, struct gd_err *err)
{
    struct gd_memory report;
    bool all = inspect_take_flag(call, "-a");
    int rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc > 0) {
        return gd_fail(err, GD_EUSAGE, "info memory: takes no argument but -a");
    }
    rc = memory_ask(call, &report, err);
    if (rc == GD_OK) {
        memory_show(call, &report, all);
    }
    gd_memory_deinit(&report);
    return rc;
}

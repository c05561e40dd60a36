// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: enable, disable */
#include <string.h>

#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/core/repl_impl.h"

struct enable_how {
    bool enable;
    bool then_delete;
    uint64_t count; /* stops until it is disabled again; 0: never */
};

static int enable_one(struct command_call *call, int number, void *ctx, struct gd_err *err)
{
    const struct enable_how *how = ctx;
    struct gd_watchpoint *watch = gd_watchpoint_at(call->debugger, number);
    int rc = watch ? gd_watchpoint_enable(call->debugger, number, how->enable, err)
                   : gd_debugger_enable_breakpoint(call->debugger, number, how->enable, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (how->then_delete && watch) {
        watch->temporary = true;
    } else if (how->then_delete) {
        gd_debugger_breakpoint(call->debugger, number)->temporary = true;
    }
    rc = repl_set_stop_count(call->repl, number, how->count);
    return rc == GD_OK ? rc : gd_fail_nomem(err);
}

static int run_enable(struct command_call *call, struct gd_err *err)
{
    struct enable_how how = {.enable = true};
    int from = 0;

    if (call->argc > 0 && strcmp(call->argv[0], "once") == 0) {
        how.count = 1;
        from = 1;
    } else if (call->argc > 0 && strcmp(call->argv[0], "delete") == 0) {
        how.then_delete = true;
        from = 1;
    } else if (call->argc > 0 && strcmp(call->argv[0], "count") == 0) {
        int64_t count = 0;
        int rc = call->argc > 1 ? arg_count(call->argv[1], 1, INT64_MAX, &count, err)
                                : gd_fail(err, GD_EUSAGE, "enable count: specify a count");
        if (rc != GD_OK) {
            return rc;
        }
        how.count = (uint64_t)count;
        from = 2;
    }
    if (from > 0 && call->argc <= from) {
        return gd_fail(err, GD_EUSAGE, "enable %s: specify a breakpoint number", call->argv[0]);
    }
    return stop_numbers_each(call, from, enable_one, &how, err);
}

static int run_disable(struct command_call *call, struct gd_err *err)
{
    struct enable_how how = {.enable = false};

    return stop_numbers_each(call, 0, enable_one, &how, err);
}

const struct command cmd_enable = {
    .name = "enable",
    .aliases = "en",
    .group = "breakpoints",
    .usage = "enable [once | delete | count K] [N | N-M]...",
    .summary = "Enable breakpoints and watchpoints",
    .help =
        "once: disable it after one stop. count K: disable it after K stops. delete: delete it\n"
        "after one stop. Without a number, enable all.",
    .args = {ARG_BREAKPOINT},
    .run = run_enable,
};

const struct command cmd_disable = {
    .name = "disable",
    .aliases = "dis disa",
    .group = "breakpoints",
    .usage = "disable [N | N-M]...",
    .summary = "Disable breakpoints and watchpoints",
    .help = "Without a number, disable all. \"enable\" enables them again.",
    .args = {ARG_BREAKPOINT},
    .run = run_disable,
};

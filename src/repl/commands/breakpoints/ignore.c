// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: ignore */
#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

static int run_ignore(struct command_call *call, struct gd_err *err)
{
    int64_t count = 0;
    struct stop_range range;

    int rc = stop_range_parse(call, call->argv[0], &range, err);
    rc = rc != GD_OK ? rc : arg_count(call->argv[1], 0, INT64_MAX, &count, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_breakpoint *at = gd_debugger_breakpoint(call->debugger, range.first);
    struct gd_watchpoint *watch = gd_watchpoint_at(call->debugger, range.first);
    if (!at && !watch) {
        return stop_number_missing(range.first, err);
    }
    if (at) {
        at->ignore = (uint64_t)count;
        breakpoint_record(call, out_record(call->out, "breakpoint"), at);
    } else {
        rc = gd_watchpoint_set_ignore(call->debugger, watch->number, (uint64_t)count, err);
        if (rc != GD_OK) {
            return rc;
        }
        watch_record(call, out_record(call->out, "watchpoint"), watch);
    }
    bool prints = at && at->print;
    const char *noun = prints ? "Dprintf" : at ? "Breakpoint" : watch_noun(watch);
    if (count == 0) {
        out_printf(call->out, "%s %d %s the next time.\n", noun, range.first,
                   prints                                     ? "prints"
                   : watch && watch->action == GD_WATCH_TRACE ? "reports"
                                                              : "stops");
    } else {
        out_printf(call->out, "%s %d will be passed %s.\n", noun, range.first,
                   inspect_plural(call, (uint64_t)count, "more time"));
    }
    return GD_OK;
}

const struct command cmd_ignore = {
    .name = "ignore",
    .group = "breakpoints",
    .usage = "ignore N COUNT",
    .summary = "Ignore the next COUNT hits of a breakpoint or watchpoint",
    .help = "The training does not stop the next COUNT times that breakpoint N is reached or\n"
            "watchpoint N fires.",
    .args = {ARG_BREAKPOINT, ARG_WORD},
    .words = {2, 2, "specify a number and a count"},
    .run = run_ignore,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: continue */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

/* Like gdb: continue N passes the breakpoint just hit N - 1 times. */
static void ignore_crossings(struct command_call *call, int64_t count)
{
    bool any = false;

    for (struct gd_breakpoint *b = call->debugger->breakpoints; b; b = b->next) {
        if (b->caused && call->session->stop.reason == GD_STOP_BREAKPOINT) {
            b->ignore = (uint64_t)(count - 1);
            any = true;
            out_printf(call->out, "Breakpoint %d will be passed %s. ", b->number,
                       inspect_plural(call, (uint64_t)(count - 1), "more time"));
        }
    }
    if (!any) {
        out_printf(call->out, "No breakpoint stopped the training: the count is ignored.\n");
    }
}

static int run_continue(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    int64_t count = 1;
    int rc = run_take_count(call, &count, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (count > 1) {
        ignore_crossings(call, count);
    }
    if (!call->repl->stop.in_body) { /* a silent breakpoint that continues prints nothing */
        out_printf(call->out, "Continuing.\n");
    }
    return repl_resume(call, &run, err);
}

const struct command cmd_continue = {
    .name = "continue",
    .aliases = "c cont fg",
    .group = "running",
    .usage = "continue [N] [&]",
    .summary = "Run the training until something stops it",
    .help =
        "With N, pass the breakpoint that stopped the training N - 1 more times first. With &,\n"
        "return to the prompt at once; values are unavailable while the training runs, and\n"
        "\"interrupt\" stops it. With --batch there is no prompt: & waits too, until a process\n"
        "stops or until all processes and the program started by run have ended. Ctrl-C stops\n"
        "the training. In a dump, go to the next step in which a watchpoint fires.",
    .args = {ARG_WORD},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .run = run_continue,
};

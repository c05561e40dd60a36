// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: commands */
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/core/repl_impl.h"

static int run_commands(struct command_call *call, struct gd_err *err)
{
    struct stop_range range;
    int rc = call->argc > 1
                 ? gd_fail(err, GD_EUSAGE, "commands: at most one number or range")
                 : stop_range_parse(call, call->argc == 1 ? call->argv[0] : "$bpnum", &range, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (range.last - range.first > 1000) {
        return gd_fail(err, GD_ELIMIT, "commands: a range may contain at most 1000 numbers");
    }
    if (range.first < 1 || range.last >= call->debugger->next_breakpoint) {
        return stop_number_missing(range.first < 1 ? 1 : range.last, err);
    }
    if (call->repl->options.interactive) {
        out_printf(call->out,
                   "Type the commands to run when %d stops, one per line; end with \"end\".\n",
                   range.first);
    }
    return repl_body_open(call->repl, BODY_COMMANDS, "", range.first, range.last, err);
}

const struct command cmd_commands = {
    .name = "commands",
    .group = "breakpoints",
    .usage = "commands [N | N-M]",
    .summary = "Set the commands to run when a breakpoint or watchpoint stops, up to \"end\"",
    .help =
        "Without a number, the one set last. If the first command is \"silent\", the stop is not\n"
        "reported. A command that resumes the training ends the list. An empty list removes\n"
        "the commands.",
    .examples = "commands 1\n"
                "  silent\n"
                "  print .\n"
                "  continue\n"
                "end",
    .args = {ARG_BREAKPOINT},
    .run = run_commands,
};

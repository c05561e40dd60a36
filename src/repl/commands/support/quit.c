// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: quit */
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

/* Asks first: quitting kills a program that `run` started, and MindSpore processes end with their
 * debugger. */
static bool may_quit(struct command_call *call)
{
    bool killed = launch_is_running(call->repl) && !launch_is_detached(call->repl);
    bool left = call->repl->end.left_behind;

    if (killed && !repl_confirm(call, "The program %s is running and will be killed. Quit anyway?",
                                launch_program(call->repl))) {
        return false;
    }
    for (size_t i = 0; i < call->debugger->session_count; i++) {
        const struct gd_session *session = call->debugger->sessions[i];
        left = left || (gd_session_is_live(session) && repl_ends_without_us(session));
    }
    if (!left || killed) {
        return true;
    }
    if (!call->repl->options.interactive) {
        out_printf(call->out,
                   "MindSpore processes that are still running will end about 15 s from now.\n");
    }
    return repl_confirm(
        call,
        "MindSpore processes that are still running will end about 15 s after gradb. Quit anyway?");
}

static int run_quit(struct command_call *call, struct gd_err *err)
{
    int64_t status = 0;
    int rc = call->argc == 1 ? arg_count(call->argv[0], 0, 255, &status, err) : GD_OK;

    if (rc == GD_OK && may_quit(call)) {
        repl_quit(call->repl, (int)status);
    }
    return rc;
}

const struct command cmd_quit = {
    .name = "quit",
    .aliases = "q exit",
    .group = "support",
    .usage = "quit [STATUS]",
    .summary = "Leave gradb",
    .help = "A program started by \"run\" is killed; other training processes are detached and\n"
            "continue, except for MindSpore 1.1 to 2.3, which ends about 15 s later.",
    .words = {0, 1, "expected at most an exit status"},
    .run = run_quit,
};

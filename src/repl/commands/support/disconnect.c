// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: disconnect */
#include "repl/core/repl_impl.h"

static int run_disconnect(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;

    return repl->front.residence
               ? repl->front.residence->disconnect(repl->front.residence_ctx, err)
               : gd_fail(err, GD_ESTATE, "disconnect: this gradb has no terminal to leave");
}

const struct command cmd_disconnect = {
    .name = "disconnect",
    .group = "support",
    .usage = "disconnect",
    .summary = "Leave this terminal; the session keeps running",
    .help =
        "Return the terminal to the shell while gradb keeps serving its training processes, which\n"
        "keep their state. \"gradb attach\" returns to the session from any terminal. When a\n"
        "terminal is lost, \"set on-hangup\" decides what happens.",
    .examples = "disconnect",
    .flags = CMD_IN_TUI,
    .run = run_disconnect,
};

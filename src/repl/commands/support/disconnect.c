// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: disconnect
 * Leave the terminal and let the session live on.
 */
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

static int run_disconnect(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;

    return repl->residence ? repl->residence->disconnect(repl->residence_ctx, err)
                           : gd_fail(err, GD_ESTATE, "only a gradb on a terminal can leave it");
}

const struct command cmd_disconnect = {
    .name = "disconnect",
    .group = "support",
    .usage = "disconnect",
    .summary = "Leave this terminal; the session stays, and so does what runs",
    .help = "The shell has the terminal again, and gradb goes on serving its trainers: what runs\n"
            "runs on. \"gradb attach\" comes back from any terminal. A terminal that is lost does\n"
            "as \"set on-hangup\" says.\n  disconnect\n",
    .flags = CMD_IN_TUI,
    .run = run_disconnect};

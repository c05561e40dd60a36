// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: document */
#include "repl/core/repl_impl.h"

static int run_document(struct command_call *call, struct gd_err *err)
{
    if (!repl_user_command(call->repl, call->argv[0], false)) {
        return gd_fail(err, GD_ENOTFOUND,
                       "\"%.80s\" is not user-defined: create it with \"define\"", call->argv[0]);
    }
    if (call->repl->options.interactive) {
        out_printf(call->out, "Type the help text of \"%s\"; end with \"end\".\n", call->argv[0]);
    }
    return repl_body_open(call->repl, BODY_DOCUMENT, call->argv[0], 0, 0, err);
}

const struct command cmd_document = {
    .name = "document",
    .group = "support",
    .usage = "document NAME",
    .summary = "Write the help of a user-defined command, up to \"end\"",
    .help = "\"help NAME\" prints the lines that follow.",
    .args = {ARG_COMMAND},
    .words = {1, 1, "specify one user-defined command"},
    .run = run_document,
};

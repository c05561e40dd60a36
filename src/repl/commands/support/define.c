// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: define */
#include "repl/commands/support/support.h"
#include "repl/core/repl_impl.h"

static int run_define(struct command_call *call, struct gd_err *err)
{
    int rc = user_name_check("define", call->argv[0], err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!user_name_is_free(call, call->argv[0])) {
        return GD_OK;
    }
    if (call->repl->options.interactive) {
        out_printf(call->out, "Type the commands of \"%s\", one per line; end with \"end\".\n",
                   call->argv[0]);
    }
    return repl_body_open(call->repl, BODY_DEFINE, call->argv[0], 0, 0, err);
}

const struct command cmd_define = {
    .name = "define",
    .group = "support",
    .usage = "define NAME",
    .summary = "Define a command from the lines that follow, up to \"end\"",
    .help =
        "In these lines, $argc is the number of arguments, $arg0, $arg1, ... are the arguments\n"
        "and $arg* is all of them.",
    .examples = "define look\n"
                "  step $arg0\n"
                "  print $arg1\n"
                "end",
    .args = {ARG_WORD},
    .words = {1, 1, "specify one name"},
    .run = run_define,
};

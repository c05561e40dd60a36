// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: source */
#include "repl/core/repl_impl.h"

static int run_source(struct command_call *call, struct gd_err *err)
{
    out_flush(call->out);
    int rc = repl_source(call->repl, call->argv[0]);
    if (rc != GD_OK && err) {
        *err = (struct gd_err){.code = rc}; /* already reported */
    }
    return rc;
}

const struct command cmd_source = {
    .name = "source",
    .group = "files",
    .usage = "source FILE",
    .summary = "Run the commands in a file",
    .help = "Stop at the first command that fails. Lines that start with # are comments.",
    .examples = "source check.gdb",
    .args = {ARG_FILE},
    .words = {1, 1, "specify one file"},
    .run = run_source,
};

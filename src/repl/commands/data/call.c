// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: call */
#include "repl/values/evaluate.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

static int run_call(struct command_call *call, struct gd_err *err)
{
    struct gd_format format;
    cJSON *reply = NULL;
    int rc = call->line[0] != '\0'
                 ? evaluate_need_python(call, "call", err)
                 : gd_fail(err, GD_EUSAGE, "call: specify Python code, such as call len(batch)");

    rc = rc != GD_OK ? rc : value_format(call, call->format, &format, err);
    rc = rc != GD_OK ? rc : evaluate_may(call, err);
    rc = rc != GD_OK ? rc : evaluate_run(call, "call", call->line, &reply, err);
    rc = rc != GD_OK ? rc : evaluate_show(call, call->line, reply, &format, err);
    cJSON_Delete(reply);
    return rc;
}

const struct command cmd_call = {
    .name = "call",
    .aliases = "python py",
    .group = "data",
    .usage = "call CODE",
    .summary = "Run Python code in the selected frame of the stopped program",
    .help =
        "CODE is an expression, whose value is shown, or a statement. It runs in the training\n"
        "process, in the innermost frame of your own code or in the one that `up`, `down` and\n"
        "`frame` select. Unlike with `print`, what it changes stays changed: tensors, variables,\n"
        "random generators. What was seen to change is listed, and kept in `info events`.\n"
        "gradb takes no note of the operators that it runs. Ctrl-C interrupts it.\n"
        "`set evaluate-code` says whether Python code is evaluated at all.",
    .examples = "call x.shape\n"
                "call model.eval()\n"
                "call opt.param_groups[0]['weight_decay'] = 0",
    .args = {ARG_WORD},
    .flags = CMD_RAW | CMD_CHANGES,
    .run = run_call,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: history */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"

static int run_history(struct command_call *call, struct gd_err *err)
{
    if (call->argc > 0 && call->argv[0][strspn(call->argv[0], "-0123456789")] != '\0') {
        int rc = repl_need_session(call, err); /* `history loss` means the metric's */
        return rc == GD_OK ? info_history(call, err) : rc;
    }
    const struct repl_lines *history = &call->repl->history;
    cJSON *list = out_list(out_record(call->out, "history"), "lines");
    int64_t count = 20;
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "history: expected at most a count, or a metric or tensor");
    }
    int rc = call->argc == 1 ? arg_count(call->argv[0], 1, INT32_MAX, &count, err) : GD_OK;
    size_t first = history->count > (size_t)count ? history->count - (size_t)count : 0;

    for (size_t i = first; rc == GD_OK && i < history->count; i++) {
        out_printf(call->out, "%5zu  %s\n", i + 1, out_safe(call, history->line[i]));
        out_push_text(list, history->line[i]);
    }
    return rc;
}

const struct command cmd_history = {
    .name = "history",
    .group = "support",
    .usage = "history [N | METRIC | TENSOR]",
    .summary = "Show the last lines typed",
    .help = "Without N, show twenty. With a metric or a tensor, do as \"info history\". Printed "
            "values\n"
            "have a history of their own: $1, $$.",
    .examples = "history 5\n"
                "history loss",
    .args = {ARG_TENSOR},
    .run = run_history,
};

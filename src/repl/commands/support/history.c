// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: history */
#include "repl/core/repl_impl.h"

static int run_history(struct command_call *call, struct gd_err *err)
{
    const struct repl_lines *history = &call->repl->history;
    cJSON *list = out_list(out_record(call->out, "history"), "lines");
    int64_t count = 20;
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
    .usage = "history [N]",
    .summary = "Show the last lines typed",
    .help = "Without N, show twenty. Printed values have a history of their own: $1, $$.",
    .args = {ARG_WORD},
    .words = {0, 1, "expected at most a count"},
    .run = run_history,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: tui */
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/line/line.h"

static int run_tui(struct command_call *call, struct gd_err *err)
{
    const char *what = call->argc == 1 ? call->argv[0] : "enable";

    if (call->argc > 1 || (strcmp(what, "enable") != 0 && strcmp(what, "disable") != 0)) {
        return gd_fail(err, GD_EUSAGE, "tui: expected enable or disable");
    }
    if (!call->repl->options.interactive) {
        return gd_fail(err, GD_EUNSUPPORTED, "the panes need a terminal");
    }
    if (strcmp(what, "enable") == 0) {
        line_leave(
            call->repl); /* the prompt's caller opens the panes; in the panes this does nothing */
    } else {
        call->repl->front.wants_prompt = true;
    }
    return GD_OK;
}

const struct command cmd_tui = {
    .name = "tui",
    .group = "support",
    .usage = "tui [enable | disable]",
    .summary = "Open the panes, or return to the prompt",
    .help =
        "C-x a switches between them. \"gradb --tui\" starts with the panes; F1 lists their keys.",
    .args = {ARG_CHOICE},
    .flags = CMD_IN_TUI,
    .run = run_tui,
};

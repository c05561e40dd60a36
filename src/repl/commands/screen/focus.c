// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: focus */
#include "repl/commands/screen/panes.h"
#include "repl/core/repl_impl.h"

static int run_focus(struct command_call *call, struct gd_err *err)
{
    int rc = panes_need(call, err);
    return rc == GD_OK
               ? call->repl->front.screen->focus(call->repl->front.screen_ctx, call->argv[0], err)
               : rc;
}

const struct command cmd_focus = {
    .name = "focus",
    .aliases = "fs",
    .group = "screen",
    .usage = "focus PANE | next | prev",
    .summary = "Show a pane and make it the target of C-x o",
    .help =
        "The panes: graph, node, console, watch, hits, stack, source, tensor, history, log,\n"
        "picture. "
        "A pane that the layout does not contain replaces another one. Input still goes to the\n"
        "prompt: C-x o moves the keyboard to the pane, \":\" moves it back. Bound to a key, the\n"
        "command moves it at once.",
    .examples = "focus graph\n"
                "focus next",
    .args = {ARG_PANE},
    .words = {1, 1, "specify a pane, next or prev"},
    .run = run_focus,
};

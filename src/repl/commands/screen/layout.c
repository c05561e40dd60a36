// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: layout */
#include <string.h>

#include "repl/commands/screen/panes.h"
#include "repl/core/repl_impl.h"

/* gdb's layouts. "src" is ours of another name; those of machine code do not exist. */
static int take_gdbs(const char **name, struct gd_err *err)
{
    if (strcmp(*name, "src") == 0) {
        *name = "stack";
    } else if (strcmp(*name, "asm") == 0 || strcmp(*name, "regs") == 0) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "there is no machine code to show: \"layout src\" shows source lines and "
                       "stacks, \"layout tensor\" values");
    }
    return GD_OK;
}

static int run_layout(struct command_call *call, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;
    int rc = panes_need(call, err);

    if (rc == GD_OK && call->argc == 1) {
        const char *name = call->argv[0];
        rc = take_gdbs(&name, err);
        return rc == GD_OK ? screen->layout(call->repl->front.screen_ctx, name, err) : rc;
    }
    if (rc == GD_OK) {
        cJSON *record = out_record(call->out, "layout");
        out_set(record, OUT_TEXT("layout", screen->layout_name(call->repl->front.screen_ctx)));
        out_say(call->out, record, "{layout}\n");
    }
    return rc;
}

const struct command cmd_layout = {
    .name = "layout",
    .group = "screen",
    .usage = "layout [graph | tensor | watch | stack | split | src | next | prev]",
    .summary = "Choose the panes on the screen",
    .help = "graph: the graph and a node; tensor: a value as a grid; watch: watchpoints and hits;\n"
            "stack: source lines and stacks; split: the graph, a node, watchpoints and hits. The\n"
            "console is part of each; src is gdb's name for stack. Large screens show more. Before "
            "the panes are open, choose\n"
            "the layout that they open with. Without a name, print the current one. Input still\n"
            "goes to the prompt.",
    .examples = "layout watch\n"
                "layout",
    .args = {ARG_CHOICE},
    .words = {0, 1, "specify one name"},
    .run = run_layout,
};

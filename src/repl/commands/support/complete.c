// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: complete */
#include <stdlib.h>
#include <string.h>

#include "repl/core/repl_impl.h"

static int run_complete(struct command_call *call, struct gd_err *err)
{
    size_t start = 0;
    size_t len = strlen(call->line);
    char **words = repl_complete(call->repl, call->line, len, &start);
    cJSON *list = out_list(out_record(call->out, "completions"), "lines");

    (void)err;
    for (char **w = words; w && *w; w++) {
        size_t size = start + strlen(*w) + 1;
        char *whole = gd_arena_alloc(call->arena, size);
        if (whole) {
            snprintf(whole, size, "%.*s%s", (int)start, call->line, *w);
            out_printf(call->out, "%s\n", out_safe(call, whole));
            out_push_text(list, whole);
        }
        free(*w);
    }
    free(words);
    return GD_OK;
}

const struct command cmd_complete = {
    .name = "complete",
    .group = "support",
    .usage = "complete LINE",
    .summary = "List the completions of a line",
    .help = "For other front ends: one completed line per possibility.",
    .examples = "complete info g",
    .args = {ARG_COMMAND},
    .flags = CMD_RAW,
    .run = run_complete,
};

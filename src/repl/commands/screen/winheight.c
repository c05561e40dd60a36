// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: winheight */
#include <string.h>
#include <strings.h>

#include "repl/commands/screen/panes.h"
#include "repl/core/repl_impl.h"

#define MAX_HEIGHT 1000

/* Parses "12", "+2", "-2", gdb's "console 12" and "cmd -2", and "0" or "usual". */
static int run_winheight(struct command_call *call, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;
    int at = call->argc == 2 && (strcmp(call->argv[0], "console") == 0 ||
                                 strcasecmp(call->argv[0], "cmd") == 0)
                 ? 1
                 : 0;
    int64_t rows = 0; /* the usual height */

    if (call->argc != at + 1) {
        return gd_fail(err, GD_EUSAGE, "winheight: specify the number of rows of the console");
    }
    int rc = panes_need(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *word = call->argv[at];
    char sign = word[0];
    bool by = sign == '+' || sign == '-';
    if (strcmp(word, "usual") != 0 &&
        arg_count(by ? word + 1 : word, 0, MAX_HEIGHT, &rows, NULL) != GD_OK) {
        return gd_fail(err, GD_EINVAL,
                       "\"%.40s\" is not a height: use a number up to %d, +N, -N or usual", word,
                       MAX_HEIGHT);
    }
    if (by) {
        int now = screen->height_now(call->repl->front.screen_ctx);
        rows = sign == '+' ? now + rows : now - rows;
        rows = rows < 1 ? 1 : rows;
    }
    screen->height(call->repl->front.screen_ctx, (int)rows);
    return GD_OK;
}

const struct command cmd_winheight = {
    .name = "winheight",
    .aliases = "wh",
    .group = "screen",
    .usage = "winheight [+|-]N | usual",
    .summary = "Set the height of the console in rows",
    .help = "+N and -N change the height by N rows; usual restores the default.",
    .examples = "winheight 8\n"
                "winheight +2\n"
                "winheight usual",
    .args = {ARG_CHOICE},
    .run = run_winheight,
};

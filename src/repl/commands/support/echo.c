// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: echo */
#include "repl/core/command.h"
#include "repl/core/parse.h"

static int run_echo(struct command_call *call, struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(PARSE_MAX_LINE);
    const char *p = call->line;

    (void)err;
    for (; *p != '\0'; p++) {
        if (*p != '\\') {
            gd_buf_putc(&text, *p);
            continue;
        }
        p++;
        if (*p == '\0') { /* a backslash at the end: no newline, like gdb */
            break;
        }
        gd_buf_putc(&text, (char)(*p == 'n' ? '\n' : *p == 't' ? '\t' : *p));
    }
    out_write(call->out, gd_buf_text(&text), text.len);
    out_set(out_record(call->out, "echo"), OUT_TEXT("text", gd_buf_text(&text)));
    gd_buf_deinit(&text);
    return GD_OK;
}

const struct command cmd_echo = {
    .name = "echo",
    .group = "support",
    .usage = "echo TEXT",
    .summary = "Print a text",
    .help = "No newline is added: write \\n. \\t is a tab; a backslash before any other character\n"
            "stands for that character.",
    .examples = "echo step done\\n",
    .args = {ARG_WORD},
    .flags = CMD_RAW | CMD_SHOWS,
    .run = run_echo,
};

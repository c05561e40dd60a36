// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: apropos */
#include <string.h>

#include "repl/commands/support/support.h"

static bool is_about(const struct command *command, const char *word)
{
    const char *const texts[] = {command->name, command->summary, command->help, command->examples,
                                 command->aliases};
    bool found = false;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        found = found || (texts[i] && strcasestr(texts[i], word));
    }
    return found;
}

static int run_apropos(struct command_call *call, struct gd_err *err)
{
    cJSON *list = out_list(out_record(call->out, "help_list"), "commands");

    (void)err;
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        if (is_about(c, call->line)) {
            help_list_row(call, list, c, "");
        }
        for (const struct command *s = c->sub; s && s->name; s++) {
            if (is_about(s, call->line)) {
                help_list_row(call, list, s, c->name);
            }
        }
    }
    for (const struct command *t = help_topics; t->name; t++) {
        if (is_about(t, call->line)) {
            help_list_row(call, list, t, "help");
        }
    }
    if (cJSON_GetArraySize(list) == 0) {
        out_printf(call->out, "No help mentions \"%s\".\n", out_safe(call, call->line));
    }
    return GD_OK;
}

const struct command cmd_apropos = {
    .name = "apropos",
    .group = "support",
    .usage = "apropos WORD",
    .summary = "List the commands whose help contains a word",
    .help = "Case is ignored.",
    .examples = "apropos watch",
    .args = {ARG_WORD},
    .words = {1, 0, "specify a word"},
    .run = run_apropos,
};

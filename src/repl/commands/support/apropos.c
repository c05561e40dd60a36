// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: apropos
 * Search the help.
 */
#include <string.h>

#include "repl/commands/support/help.h"
#include "repl/core/command.h"

static bool text_has(const char *text, const char *word)
{
    return text && strcasestr(text, word);
}

static int run_apropos(struct command_call *call, struct gd_err *err)
{
    cJSON *list = out_list(out_record(call->out, "help_list"), "commands");
    int found = 0;

    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "apropos: specify a word");
    }
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        if (text_has(c->name, call->line) || text_has(c->summary, call->line) ||
            text_has(c->help, call->line) || text_has(c->aliases, call->line)) {
            help_list_row(call, list, c, "");
            found++;
        }
        for (const struct command *s = c->sub; s && s->name; s++) {
            if (text_has(s->name, call->line) || text_has(s->summary, call->line) ||
                text_has(s->help, call->line)) {
                help_list_row(call, list, s, c->name);
                found++;
            }
        }
    }
    for (const struct command *t = help_topics; t->name; t++) {
        if (text_has(t->name, call->line) || text_has(t->summary, call->line) ||
            text_has(t->help, call->line)) {
            help_list_row(call, list, t, "help");
            found++;
        }
    }
    if (found == 0) {
        out_printf(call->out, "No help mentions \"%s\".\n", out_safe(call, call->line));
    }
    return GD_OK;
}

const struct command cmd_apropos = {
    .name = "apropos",
    .group = "support",
    .usage = "apropos WORD",
    .summary = "List the commands whose help contains a word",
    .help = "Case is ignored.\n"
            "Example:\n"
            "  apropos watch",
    .args = {ARG_WORD},
    .run = run_apropos,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: alias */
#include <stdlib.h>
#include <string.h>

#include "repl/commands/support/support.h"
#include "repl/core/repl_impl.h"

static int list_aliases(struct command_call *call)
{
    static const struct out_column columns[] = {{"name", "Alias", false},
                                                {"text", "Stands for", false}};
    struct out_table *table = out_table_begin(call->out, "aliases", columns, 2);

    for (const struct user_alias *a = call->repl->script.aliases; a; a = a->next) {
        out_put(table, OUT_TEXT("name", a->name), OUT_TEXT("text", a->text));
    }
    out_table_end(table);
    if (!call->repl->script.aliases) {
        out_printf(call->out, "No aliases.\n");
    }
    return GD_OK;
}

static int set_alias(struct repl *repl, const char *name, const char *text)
{
    struct user_alias *alias = repl_alias(repl, name);

    if (!alias) {
        alias = calloc(1, sizeof(*alias));
        if (!alias) {
            return GD_ENOMEM;
        }
        alias->name = strdup(name);
        alias->next = repl->script.aliases;
        repl->script.aliases = alias;
    }
    free(alias->text);
    alias->text = strdup(text);
    return alias->name && alias->text ? GD_OK : GD_ENOMEM;
}

static int run_alias(struct command_call *call, struct gd_err *err)
{
    const char *equals = strchr(call->line, '=');

    if (call->line[0] == '\0') {
        return list_aliases(call);
    }
    if (!equals) {
        return gd_fail(err, GD_EUSAGE, "alias: expected NAME = COMMAND");
    }
    char *name = gd_arena_strndup(call->arena, call->line, (size_t)(equals - call->line));
    const char *text = equals + 1 + strspn(equals + 1, " \t");
    if (!name) {
        return gd_fail_nomem(err);
    }
    name[strcspn(name, " \t")] = '\0';
    int rc = user_name_check("alias", name, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (*text == '\0') {
        return gd_fail(err, GD_EUSAGE, "alias: the command after \"=\" is missing");
    }
    size_t len = strcspn(text, " \t/");
    const struct command *command = NULL;
    if (!repl_user_command(call->repl, gd_arena_strndup(call->arena, text, len), false) &&
        !repl_alias(call->repl, gd_arena_strndup(call->arena, text, len))) {
        rc = command_find(NULL, text, len, &command, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (!user_name_is_free(call, name)) {
        return GD_OK;
    }
    rc = set_alias(call->repl, name, text);
    return rc == GD_OK ? rc : gd_fail_nomem(err);
}

const struct command cmd_alias = {
    .name = "alias",
    .group = "support",
    .usage = "alias [NAME = COMMAND [ARGUMENTS]]",
    .summary = "Define another name for a command, or list such names",
    .help = "Arguments that follow the alias are appended.",
    .examples = "alias gw = print model/head/weight",
    .args = {ARG_WORD, ARG_COMMAND},
    .flags = CMD_RAW,
    .run = run_alias,
};

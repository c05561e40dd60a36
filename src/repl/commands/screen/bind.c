// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: bind. Also "help keys". */
#include <string.h>

#include "repl/commands/screen/panes.h"
#include "repl/commands/support/support.h"
#include "repl/core/repl_impl.h"

struct key_list {
    struct command_call *call;
    cJSON *list;
    const char *group; /* of the row before */

    int count;
};

static cJSON *add_key(struct key_list *keys, const struct repl_key *key)
{
    cJSON *object = out_push(keys->list);

    out_set(object, OUT_TEXT("key", key->name), OUT_TEXT("panes", key->panes),
            OUT_TEXT("command", key->command));
    keys->count++;
    return object;
}

static void on_bound_key(void *ctx, const struct repl_key *key)
{
    struct key_list *keys = ctx;

    if (key->bound) {
        out_say(keys->call->out, add_key(keys, key),
                "  {key:-8} {panes:-18} [{command}][{!command}-]\n");
    }
}

static void on_key(void *ctx, const struct repl_key *key)
{
    struct key_list *keys = ctx;
    cJSON *object = add_key(keys, key);
    char what[256];

    out_set(object, OUT_TEXT("group", key->group), OUT_TEXT("help", key->help),
            OUT_BOOL("bound", key->bound));
    if (!keys->group || strcmp(keys->group, key->group) != 0) {
        out_printf(keys->call->out, "%s%s:\n", keys->group ? "\n" : "", key->group);
        keys->group = key->group;
    }
    if (key->same) {
        snprintf(what, sizeof(what), "the same");
    } else if (key->command[0] != '\0' && !key->bound) {
        snprintf(what, sizeof(what), "%s (%s)", key->help, key->command);
    } else {
        snprintf(what, sizeof(what), "%s", key->help);
    }
    out_say(keys->call->out, object, "  {key:-8} {what:-48} {panes}\n", OUT_TEXT("what", what));
}

static int list_keys(struct command_call *call, bool bound, struct gd_err *err)
{
    int rc = panes_need(call, err);

    if (rc != GD_OK) {
        return rc;
    }
    struct key_list keys = {.call = call};
    cJSON *record = out_record(call->out, bound ? "bindings" : "keys");
    keys.list = out_list(record, bound ? "bindings" : "keys");
    call->repl->front.screen->keys(call->repl->front.screen_ctx, bound ? on_bound_key : on_key,
                                   &keys);
    if (keys.count == 0) {
        out_printf(call->out, "No keys are bound; \"help keys\" lists all keys.\n");
    }
    return GD_OK;
}

int help_keys(struct command_call *call, struct gd_err *err)
{
    return list_keys(call, false, err);
}

/* Copies the next word of a line, quoted or not; "" at the end. Moves *line past it and the
 * blanks. */
static void take_word(const char **line, char *word, size_t size)
{
    const char *p = *line;
    char quote = *p == '"' || *p == '\'' ? *p : '\0';
    size_t used = 0;

    quote = quote != '\0' && p[1] != '\0' && p[1] != ' ' ? quote : '\0';
    p += quote != '\0' ? 1 : 0;
    while (*p != '\0' && (quote != '\0' ? *p != quote : *p != ' ' && *p != '\t')) {
        if (used + 1 < size) {
            word[used++] = *p;
        }
        p++;
    }
    word[used] = '\0';
    p += quote != '\0' && *p == quote ? 1 : 0;
    *line = p + strspn(p, " \t");
}

static int run_bind(struct command_call *call, struct gd_err *err)
{
    char pane[24] = "", key[40] = "", second[24];
    const char *rest = call->line;

    if (rest[0] == '\0') {
        return list_keys(call, true, err);
    }
    take_word(&rest, key, sizeof(key));
    if (strcmp(key, "-p") == 0) {
        take_word(&rest, pane, sizeof(pane));
        take_word(&rest, key, sizeof(key));
    }
    if (strcasecmp(key, "C-x") == 0) {
        take_word(&rest, second, sizeof(second));
        snprintf(key, sizeof(key), "C-x %s", second);
    }
    if (key[0] == '\0' || rest[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "bind: specify a key and the command that it runs");
    }
    int rc = panes_need(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    return call->repl->front.screen->bind(call->repl->front.screen_ctx,
                                          pane[0] != '\0' ? pane : NULL, key,
                                          strcmp(rest, "-") == 0 ? NULL : rest, err);
}

const struct command cmd_bind = {
    .name = "bind",
    .group = "screen",
    .usage = "bind [[-p PANE] KEY COMMAND | -]",
    .summary = "Bind a key of the panes to a command",
    .help =
        "The key works in all panes, or in the one after -p; a key that the prompt uses works in\n"
        "all but the console. KEY is a character, F5, C-t, Enter, PgUp, Space, or one of them\n"
        "after \"C-x \". A character whose command may resume or change something needs\n"
        "single-key mode, C-x s. In the command %n stands for the selected node, %t for its\n"
        "tensor, and %b, %w and %h for the number of the selected breakpoint, watchpoint and\n"
        "hit. \"-\" instead of a command disables the key. Without arguments, list the bound\n"
        "keys; \"help keys\" lists all. Put bindings into gradbrc to keep them.",
    .examples = "bind F5 continue\n"
                "bind C-x t layout tensor\n"
                "bind -p graph W watch NAN on %n\n"
                "bind",
    .args = {ARG_KEY},
    .flags = CMD_RAW,
    .run = run_bind,
};

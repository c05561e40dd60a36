// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: help */
#include <string.h>

#include "repl/commands/support/support.h"
#include "repl/core/repl_impl.h"
#include "repl/core/settings_table.h"
#include "repl/values/inspect.h"

static const char *const groups[][2] = {
    {"running", "Running and stopping the training"},
    {"breakpoints", "Setting breakpoints and watchpoints"},
    {"data", "Examining tensors"},
    {"graph", "Examining the graph and its source"},
    {"status", "Showing the state of the training"},
    {"files", "Opening, writing and checking files"},
    {"screen", "Panes and keys"},
    {"support", "Using the debugger itself"},
};

static void help_record(struct command_call *call, const struct command *command, const char *text)
{
    cJSON *record = out_record(call->out, "help");
    out_set(record, OUT_TEXT("name", command->name),
            OUT_TEXT("aliases", command->aliases ? command->aliases : ""),
            OUT_TEXT("group", command->group ? command->group : ""),
            OUT_TEXT("usage", command->usage), OUT_TEXT("summary", command->summary),
            OUT_TEXT("text", text));
    cJSON *subs = out_list(record, "sub");
    for (const struct command *s = command->sub; s && s->name; s++) {
        cJSON *sub = out_push(subs);
        out_set(sub, OUT_TEXT("name", s->name), OUT_TEXT("summary", s->summary));
    }
}

/* ---- lines of at most WIDTH columns ---------------------------------------------------------- */

#define WIDTH 80
#define LEFT  34 /* of a row's first column, at most */

/* Words, where `column` columns are used; further lines begin at `indent`. Ends the line. */
static void put_words(struct command_call *call, const char *text, size_t len, size_t column,
                      int indent)
{
    size_t at = 0;

    while (at < len) {
        size_t room = column < WIDTH ? WIDTH - column : 0, end = len - at;
        if (end > room) {
            end = room;
            while (end > 0 && text[at + end] != ' ' && text[at + end] != '\n') {
                end--;
            }
            end = end > 0 || column > (size_t)indent ? end : strcspn(text + at, " \n");
        }
        for (size_t i = 0; i < end && at + i < len; i++) {
            out_printf(call->out, "%c", text[at + i] == '\n' ? ' ' : text[at + i]);
        }
        at += end;
        while (at < len && (text[at] == ' ' || text[at] == '\n')) {
            at++;
        }
        if (at < len) {
            out_printf(call->out, "\n%*s", indent, "");
        }
        column = (size_t)indent;
    }
    out_printf(call->out, "\n");
}

/* Where the second column of an indented line begins; 0: it has one column. */
static size_t second_column(const char *line, size_t len)
{
    for (size_t at = strspn(line, " "); at + 2 < len; at++) {
        if (line[at] == ' ' && line[at + 1] == ' ') {
            at += strspn(line + at, " ");
            return at < len ? at : 0;
        }
    }
    return 0;
}

/* The lines of a paragraph, and whether one of them is too long. */
static size_t measure_paragraph(const char *text, bool *long_line)
{
    size_t len = 0;

    *long_line = false;
    while (text[len] != '\0' && text[len] != ' ' && text[len] != '\n') {
        size_t line = strcspn(text + len, "\n");
        *long_line = *long_line || line > WIDTH;
        len += line + (text[len + line] == '\n');
    }
    return len;
}

/* Only what is too long is broken again: a paragraph, or an indented line at its second column. */
static void print_text(struct command_call *call, const char *text)
{
    while (*text != '\0') {
        bool long_line;
        size_t len = measure_paragraph(text, &long_line);
        if (len > 0 && long_line) {
            put_words(call, text, len - (text[len - 1] == '\n'), 0, 0);
        } else if (len > 0) {
            out_printf(call->out, "%.*s%s", (int)len, text, text[len - 1] == '\n' ? "" : "\n");
        } else {
            size_t line = strcspn(text, "\n");
            size_t indent = second_column(text, line);
            indent = indent > 0 && indent < 40 ? indent : strspn(text, " ") + 4;
            put_words(call, text, line, 0, (int)indent);
            len = line + (text[line] == '\n');
        }
        text += len;
    }
}

static void print_sub_table(struct command_call *call, const struct command *command)
{
    size_t width = 0;

    for (const struct command *s = command->sub; s->name; s++) {
        size_t len = strlen(s->usage);
        width = len > width ? len : width;
    }
    width = width < LEFT ? width : LEFT;
    out_printf(call->out, "\n");
    for (const struct command *s = command->sub; s->name; s++) {
        size_t len = strlen(s->usage);
        out_printf(call->out, "  ");
        if (len > width) {
            put_words(call, s->usage, len, 2, 6);
            out_printf(call->out, "%*s", (int)width + 4, "");
        } else {
            out_printf(call->out, "%-*s  ", (int)width, s->usage);
        }
        put_words(call, s->summary, strlen(s->summary), width + 4, (int)width + 4);
    }
}

static void help_command(struct command_call *call, const struct command *command)
{
    const char *text = help_text(call, command);

    help_record(call, command, text);
    put_words(call, command->usage, strlen(command->usage), 0, 4);
    print_text(call, inspect_printf(call, "%s.", command->summary));
    if (command->aliases && command->aliases[0] != '\0') {
        out_printf(call->out, "Short forms: %s\n", command->aliases);
    }
    if (text[0] != '\0') {
        out_printf(call->out, "\n");
        print_text(call, text);
    }
    if (command->sub) {
        print_sub_table(call, command);
    }
}

void help_list_row(struct command_call *call, cJSON *list, const struct command *command,
                   const char *prefix)
{
    cJSON *row = out_push(list);
    char name[64];

    snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? " " : "", command->name);
    out_set(row, OUT_TEXT("name", name), OUT_TEXT("summary", command->summary));
    out_say(call->out, row, "  {name:-14}  {summary}\n");
}

static void help_group(struct command_call *call, cJSON *list, size_t group)
{
    bool any = false;

    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        if (strcmp(c->group, groups[group][0]) != 0) {
            continue;
        }
        if (!any) {
            out_printf(call->out, "%s:\n", groups[group][1]);
            any = true;
        }
        help_list_row(call, list, c, "");
    }
}

static int help_all(struct command_call *call)
{
    cJSON *list = out_list(out_record(call->out, "help_list"), "commands");

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (i > 0) {
            out_printf(call->out, "\n");
        }
        help_group(call, list, i);
    }
    for (const struct user_command *u = call->repl->script.user_commands; u; u = u->next) {
        out_printf(call->out, "%s  %-14s  user-defined\n",
                   u == call->repl->script.user_commands ? "\nUser-defined:\n" : "", u->name);
    }
    return GD_OK;
}

static int help_first(struct command_call *call)
{
    out_record(call->out, "help_list");
    out_printf(call->out,
               "gradb stops a training run at a step or an operator and shows its values.\n\n"
               "Groups of commands:\n");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        out_printf(call->out, "  %-14s  %s\n", groups[i][0], groups[i][1]);
    }
    out_printf(call->out, "\nTopics:\n  %-14s  %s\n  %-14s  %s\n", "connect",
               "How a training process finds gradb", "keys", "The keys of the panes");
    for (const struct command *t = help_topics; t->name; t++) {
        out_printf(call->out, "  %-14s  %s\n", t->name, t->summary);
    }
    out_printf(call->out,
               "\n"
               "\"help GROUP\" lists its commands, \"help COMMAND\" explains one, \"help all\" "
               "lists all, and\n"
               "\"apropos WORD\" searches. A command can be abbreviated as long as it is "
               "unambiguous. At\n"
               "the prompt, an empty line repeats a stepping command.\n");
    return GD_OK;
}

static int help_user(struct command_call *call, const struct user_command *user)
{
    cJSON *record = out_record(call->out, "help");
    out_set(record, OUT_TEXT("name", user->name), OUT_TEXT("group", "user-defined"),
            OUT_TEXT("text", user->help ? user->help : ""));
    out_printf(call->out, "%s\n", user->help ? user->help : "User-defined.");
    return GD_OK;
}

/* Of the command's name. "set lr" is explained with `set`: lr is not a setting. */
static int count_words(const struct command_call *call)
{
    bool lr =
        call->argc == 2 && strcmp(call->argv[0], "set") == 0 && set_lr_is_meant(call->argv[1]);

    return lr ? 1 : call->argc;
}

/* "set NAME", "show NAME" */
static bool is_setting(const struct command_call *call, const struct command *command)
{
    return count_words(call) > 1 &&
           (strcmp(command->name, "set") == 0 || strcmp(command->name, "show") == 0);
}

static int explain_setting(struct command_call *call, const char *name, struct gd_err *err)
{
    const struct setting *setting = NULL;
    const char *rest = NULL;
    struct gd_buf range = GD_BUF_INIT(4096);
    int rc = setting_find(name + strspn(name, " \t"), &setting, &rest, err);

    if (rc == GD_OK && *rest != '\0') {
        rc = gd_fail(err, GD_ENOTFOUND, "there is no setting \"%.80s\"", out_safe(call, name));
    }
    if (rc != GD_OK) {
        return rc;
    }
    setting_range(setting, &range);
    cJSON *record = out_record(call->out, "help");
    out_set(record, OUT_TEXT("name", setting->name), OUT_TEXT("group", "settings"),
            OUT_TEXT("text", setting->text), OUT_TEXT("range", gd_buf_text(&range)));
    out_printf(call->out, "set %s VALUE\n%s.\n\nVALUE: %s\n", setting->name, setting->text,
               gd_buf_text(&range));
    gd_buf_deinit(&range);
    return GD_OK;
}

static int run_help(struct command_call *call, struct gd_err *err)
{
    const struct command *table = NULL;
    const struct command *command = NULL;

    if (call->argc == 0) {
        return help_first(call);
    }
    if (strcmp(call->argv[0], "all") == 0) {
        return help_all(call);
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (strcmp(call->argv[0], groups[i][0]) == 0) {
            cJSON *list = out_list(out_record(call->out, "help_list"), "commands");
            help_group(call, list, i);
            return GD_OK;
        }
    }
    if (call->argc == 1 && strcmp(call->argv[0], "keys") == 0) {
        return help_keys(call, err);
    }
    if (call->argc == 1 && strcmp(call->argv[0], "connect") == 0) {
        return help_connect(call);
    }
    const struct user_command *user = repl_user_command(call->repl, call->argv[0], false);
    if (user) {
        return help_user(call, user);
    }
    if (call->argc == 1 && help_find_topic(call->argv[0])) {
        help_command(call, help_find_topic(call->argv[0]));
        return GD_OK;
    }
    for (int i = 0; i < count_words(call); i++) {
        if (i > 0 && !table) {
            return gd_fail(err, GD_ENOTFOUND, "\"%s\" has no subcommands", command->name);
        }
        int rc = command_find(table, call->argv[i], strlen(call->argv[i]), &command, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (i == 0 && is_setting(call, command)) {
            return explain_setting(call, call->line + strcspn(call->line, " \t"), err);
        }
        table = command->sub;
    }
    help_command(call, command);
    return GD_OK;
}

const struct command cmd_help = {
    .name = "help",
    .aliases = "h ?",
    .group = "support",
    .usage =
        "help [COMMAND | GROUP | all | keys | connect | selectors | conditions | batch | python]",
    .summary = "Explain a command, or list commands",
    .help = "Without an argument, list the groups. Topics: \"keys\" (the keys of the panes), "
            "\"connect\"\n"
            "(how a training process finds gradb), \"selectors\", \"conditions\", \"batch\", "
            "\"python\".",
    .examples = "help step\n"
                "help info graph\n"
                "help all\n"
                "help keys\n"
                "help conditions",
    .flags = CMD_SHOWS,
    .args = {ARG_COMMAND, ARG_CHOICE},
    .run = run_help,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* help, apropos, echo, source, define, document, alias, quit. */
#include "repl/core/commands.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- help ---- */

static const char *const groups[][2] = {
    {"running", "Running and stopping the training"},
    {"breakpoints", "Making the training stop"},
    {"data", "Looking at tensors"},
    {"graph", "Looking at the graph and its source"},
    {"status", "What is going on"},
    {"files", "Command files and dumps"},
    {"screen", "The panes and their keys"},
    {"support", "The debugger itself"},
};

static void help_record(struct command_call *call, const struct command *command)
{
    cJSON *record = out_record(call->out, "help");
    cJSON_AddStringToObject(record, "name", command->name);
    cJSON_AddStringToObject(record, "aliases", command->aliases ? command->aliases : "");
    cJSON_AddStringToObject(record, "group", command->group ? command->group : "");
    cJSON_AddStringToObject(record, "usage", command->usage);
    cJSON_AddStringToObject(record, "summary", command->summary);
    cJSON_AddStringToObject(record, "text", command->help ? command->help : "");
    cJSON *subs = cJSON_AddArrayToObject(record, "sub");
    for (const struct command *s = command->sub; s && s->name; s++) {
        cJSON *sub = cJSON_CreateObject();
        cJSON_AddStringToObject(sub, "name", s->name);
        cJSON_AddStringToObject(sub, "summary", s->summary);
        cJSON_AddItemToArray(subs, sub);
    }
}

static void print_sub_table(struct command_call *call, const struct command *command)
{
    int width = 0;

    for (const struct command *s = command->sub; s->name; s++) {
        int len = (int)strlen(s->usage);
        width = len > width ? len : width;
    }
    out_printf(call->out, "\n");
    for (const struct command *s = command->sub; s->name; s++) {
        out_printf(call->out, "  %-*s  %s\n", width, s->usage, s->summary);
    }
}

static void help_command(struct command_call *call, const struct command *command)
{
    help_record(call, command);
    out_printf(call->out, "%s\n%s.\n", command->usage, command->summary);
    if (command->aliases && command->aliases[0] != '\0') {
        out_printf(call->out, "Short forms: %s\n", command->aliases);
    }
    if (command->help && command->help[0] != '\0') {
        out_printf(call->out, "\n%s\n", command->help);
    }
    if (command->sub) {
        print_sub_table(call, command);
    }
}

static void list_row(struct command_call *call, cJSON *list, const struct command *command,
                     const char *prefix)
{
    if (!out_is_json(call->out)) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? " " : "", command->name);
        out_printf(call->out, "  %-14s  %s\n", name, command->summary);
        return;
    }
    cJSON *row = cJSON_CreateObject();
    char name[64];
    snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? " " : "", command->name);
    cJSON_AddStringToObject(row, "name", name);
    cJSON_AddStringToObject(row, "summary", command->summary);
    cJSON_AddItemToArray(list, row);
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
        list_row(call, list, c, "");
    }
}

static int help_all(struct command_call *call)
{
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "help_list"), "commands");

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (i > 0) {
            out_printf(call->out, "\n");
        }
        help_group(call, list, i);
    }
    for (const struct user_command *u = call->repl->user_commands; u; u = u->next) {
        out_printf(call->out, "%s  %-14s  user-defined\n",
                   u == call->repl->user_commands ? "\nUser-defined:\n" : "", u->name);
    }
    return GD_OK;
}

static int help_first(struct command_call *call)
{
    out_record(call->out, "help_list");
    out_printf(call->out,
               "gradb stops a training run at a step or an operator and looks inside.\n\n"
               "Groups of commands:\n");
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        out_printf(call->out, "  %-14s  %s\n", groups[i][0], groups[i][1]);
    }
    out_printf(call->out,
               "\n\"help GROUP\" lists its commands, \"help COMMAND\" explains one, \"help "
               "all\" lists all,\n\"apropos WORD\" searches; \"help connect\" says how a trainer "
               "finds gradb, "
               "\"help keys\"\nlists the keys of the panes. A command may be shortened as "
               "long as it is unique;\nat the prompt an empty line repeats stepping commands.\n");
    return GD_OK;
}

static int help_user(struct command_call *call, const struct user_command *user)
{
    cJSON *record = out_record(call->out, "help");
    cJSON_AddStringToObject(record, "name", user->name);
    cJSON_AddStringToObject(record, "group", "user-defined");
    cJSON_AddStringToObject(record, "text", user->help ? user->help : "");
    out_printf(call->out, "%s\n", user->help ? user->help : "User-defined.");
    return GD_OK;
}

/* What several commands take, explained once. */
static const struct command topics[] = {
    {.name = "selectors",
     .group = "data",
     .usage = "SELECTOR",
     .summary = "What a command applies to: nodes by name, kind, type or source line",
     .help =
         "One term, or several joined by ',' or '|'. \"except\" takes away what the terms after\n"
         "it select, \"with\" adds again: weights except *bias with fc2.bias\n"
         "\n"
         "  NAME             a node by its full name, or by the end of its name after a '/'\n"
         "  GRAPH/NAME       the same in one graph, where several have a node of that name\n"
         "  SCOPE            all nodes below a scope\n"
         "  GLOB             with * ? []; '*' also matches '/'\n"
         "  /REGEX/          a POSIX extended regular expression, anywhere in the name\n"
         "  weights, gradients, activations, parameters, all\n"
         "  activations:relu activations of one function\n"
         "  type:ReLU        operators of one type: a glob, in either case\n"
         "  at:FILE[:LINE]   operators that a source line called\n"
         "  \"NAME\"           a name in quotes, whatever characters it has"},
    {.name = NULL},
};

static const struct command *topic_of(const struct command_call *call)
{
    const struct command *topic = topics;

    while (topic->name && (call->argc != 1 || (strcmp(call->argv[0], topic->name) != 0 &&
                                               strcmp(call->argv[0], "selector") != 0))) {
        topic++;
    }
    return topic->name ? topic : NULL;
}

/* "set NAME", "show NAME" */
static bool is_setting(const struct command_call *call, const struct command *command)
{
    return call->argc > 1 &&
           (strcmp(command->name, "set") == 0 || strcmp(command->name, "show") == 0);
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
            cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "help_list"), "commands");
            help_group(call, list, i);
            return GD_OK;
        }
    }
    if (call->argc == 1 && strcmp(call->argv[0], "keys") == 0) {
        return cmd_help_keys(call, err);
    }
    if (call->argc == 1 && strcmp(call->argv[0], "connect") == 0) {
        return cmd_help_connect(call);
    }
    const struct user_command *user = repl_user_command(call->repl, call->argv[0], false);
    if (user) {
        return help_user(call, user);
    }
    if (topic_of(call)) {
        help_command(call, topic_of(call));
        return GD_OK;
    }
    for (int i = 0; i < call->argc; i++) {
        if (i > 0 && !table) {
            return gd_fail(err, GD_ENOTFOUND, "\"%s\" has no subcommands", command->name);
        }
        int rc = command_find(table, call->argv[i], strlen(call->argv[i]), &command, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (i == 0 && is_setting(call, command)) {
            return cmd_help_setting(call, call->line + strcspn(call->line, " \t"), err);
        }
        table = command->sub;
    }
    help_command(call, command);
    return GD_OK;
}

static bool text_has(const char *text, const char *word)
{
    return text && strcasestr(text, word);
}

static int run_apropos(struct command_call *call, struct gd_err *err)
{
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "help_list"), "commands");
    int found = 0;

    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "apropos: a word is missing");
    }
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        if (text_has(c->name, call->line) || text_has(c->summary, call->line) ||
            text_has(c->help, call->line) || text_has(c->aliases, call->line)) {
            list_row(call, list, c, "");
            found++;
        }
        for (const struct command *s = c->sub; s && s->name; s++) {
            if (text_has(s->name, call->line) || text_has(s->summary, call->line) ||
                text_has(s->help, call->line)) {
                list_row(call, list, s, c->name);
                found++;
            }
        }
    }
    for (const struct command *t = topics; t->name; t++) {
        if (text_has(t->name, call->line) || text_has(t->summary, call->line) ||
            text_has(t->help, call->line)) {
            list_row(call, list, t, "help");
            found++;
        }
    }
    if (found == 0) {
        out_printf(call->out, "Nothing is said about \"%s\".\n", out_safe(call, call->line));
    }
    return GD_OK;
}

/* ---- small ones ---- */

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
        if (*p == '\0') { /* a backslash at the end: no newline, as gdb */
            break;
        }
        gd_buf_putc(&text, (char)(*p == 'n' ? '\n' : *p == 't' ? '\t' : *p));
    }
    out_write(call->out, gd_buf_text(&text), text.len);
    if (out_is_json(call->out)) {
        cJSON_AddStringToObject(out_record(call->out, "echo"), "text", gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
    return GD_OK;
}

static int run_source(struct command_call *call, struct gd_err *err)
{
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "source: the name of one file is needed");
    }
    out_flush(call->out);
    int rc = repl_source(call->repl, call->argv[0]);
    if (rc != GD_OK && err) {
        *err = (struct gd_err){.code = rc}; /* said already */
    }
    return rc;
}

static int check_name(const char *what, const char *name, struct gd_err *err)
{
    if (!isalpha((unsigned char)name[0])) {
        return gd_fail(err, GD_EINVAL, "%s: a name starts with a letter, not \"%.40s\"", what,
                       name);
    }
    for (const char *p = name; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-') {
            return gd_fail(err, GD_EINVAL,
                           "%s: a name consists of letters, digits, '_' and '-': \"%.40s\"", what,
                           name);
        }
    }
    return GD_OK;
}

/* A name that belongs to a built-in command, in full, is taken only after a question. */
static bool may_take_name(struct command_call *call, const char *name)
{
    struct gd_err ignored;
    const struct command *built_in = NULL;

    return command_find(NULL, name, strlen(name), &built_in, &ignored) != GD_OK ||
           strcmp(built_in->name, name) != 0 ||
           repl_confirm(call, "Really redefine the built-in command \"%s\"?", name);
}

static int run_define(struct command_call *call, struct gd_err *err)
{
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "define: one name is needed");
    }
    int rc = check_name("define", call->argv[0], err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!may_take_name(call, call->argv[0])) {
        return GD_OK;
    }
    if (call->repl->options.interactive) {
        out_printf(call->out, "Type the commands of \"%s\", one a line; \"end\" ends them.\n",
                   call->argv[0]);
    }
    return repl_body_open(call->repl, BODY_DEFINE, call->argv[0], 0, 0, err);
}

static int run_document(struct command_call *call, struct gd_err *err)
{
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "document: the name of one user-defined command is needed");
    }
    if (!repl_user_command(call->repl, call->argv[0], false)) {
        return gd_fail(err, GD_ENOTFOUND, "\"%.80s\" is not user-defined: \"define\" makes one",
                       call->argv[0]);
    }
    if (call->repl->options.interactive) {
        out_printf(call->out, "Type the text of \"%s\"; \"end\" ends it.\n", call->argv[0]);
    }
    return repl_body_open(call->repl, BODY_DOCUMENT, call->argv[0], 0, 0, err);
}

static int list_aliases(struct command_call *call)
{
    static const struct out_column columns[] = {{"name", "Alias", false},
                                                {"text", "Stands for", false}};
    struct out_table *table = out_table_begin(call->out, "aliases", columns, 2);

    for (const struct user_alias *a = call->repl->aliases; a; a = a->next) {
        const char *cells[] = {a->name, out_safe(call, a->text)};
        out_table_row(table, cells);
    }
    out_table_end(table);
    if (!call->repl->aliases) {
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
        alias->next = repl->aliases;
        repl->aliases = alias;
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
        return gd_fail(err, GD_EUSAGE, "alias: NAME = COMMAND is needed");
    }
    char *name = gd_arena_strndup(call->arena, call->line, (size_t)(equals - call->line));
    const char *text = equals + 1 + strspn(equals + 1, " \t");
    if (!name) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    name[strcspn(name, " \t")] = '\0';
    int rc = check_name("alias", name, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (*text == '\0') {
        return gd_fail(err, GD_EUSAGE, "alias: the command behind \"=\" is missing");
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
    if (!may_take_name(call, name)) {
        return GD_OK;
    }
    rc = set_alias(call->repl, name, text);
    return rc == GD_OK ? rc : gd_fail(err, rc, "out of memory");
}

/* A program of ours is killed; a MindSpore process does not outlive its debugger. */
static bool may_quit(struct command_call *call)
{
    bool killed = launch_is_running(call->repl) && !launch_is_detached(call->repl);
    bool left = call->repl->left_behind;

    if (killed && !repl_confirm(call, "The program %s is running and will be killed. Quit anyway?",
                                launch_program(call->repl))) {
        return false;
    }
    for (size_t i = 0; i < call->debugger->session_count; i++) {
        const struct gd_session *session = call->debugger->sessions[i];
        left = left || (gd_session_is_live(session) && repl_ends_without_us(session));
    }
    if (!left || killed) {
        return true;
    }
    if (!call->repl->options.interactive) {
        out_printf(call->out,
                   "MindSpore processes that still run end themselves about 15 s from now.\n");
    }
    return repl_confirm(call, "MindSpore processes that still run end themselves about 15 s after "
                              "gradb. Quit anyway?");
}

static int run_quit(struct command_call *call, struct gd_err *err)
{
    int64_t status = 0;

    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "quit: at most an exit status");
    }
    if (call->argc == 1) {
        int rc = arg_count(call->argv[0], 0, 255, &status, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (may_quit(call)) {
        repl_quit(call->repl, (int)status);
    }
    return GD_OK;
}

const struct command cmd_support_table[] = {
    {.name = "help",
     .aliases = "h ?",
     .group = "support",
     .usage = "help [COMMAND | GROUP | all | keys | connect]",
     .summary = "Explain a command or list commands",
     .help = "Without an argument the groups are listed. \"keys\" lists the keys of the panes,\n"
             "\"connect\" what has to be typed so that a training process finds gradb.\n"
             "Examples:\n"
             "  help step\n"
             "  help info graph\n"
             "  help all\n"
             "  help keys\n"
             "  help connect",
     .args = {ARG_COMMAND, ARG_CHOICE},
     .run = run_help},
    {.name = "apropos",
     .group = "support",
     .usage = "apropos WORD",
     .summary = "List the commands whose help contains a word",
     .help = "Letter case does not matter.\n"
             "Example:\n"
             "  apropos watch",
     .args = {ARG_WORD},
     .run = run_apropos},
    {.name = "echo",
     .group = "support",
     .usage = "echo TEXT",
     .summary = "Print a text",
     .help = "No newline is added: write \\n. \\t is a tab; a backslash before any other letter\n"
             "stands for the letter.\n"
             "Example:\n"
             "  echo step done\\n",
     .args = {ARG_WORD},
     .flags = CMD_RAW,
     .run = run_echo},
    {.name = "source",
     .group = "files",
     .usage = "source FILE",
     .summary = "Run the commands in a file",
     .help = "Stops at the first command that fails. Lines that start with # are comments.\n"
             "Example:\n"
             "  source check.gdb",
     .args = {ARG_FILE},
     .run = run_source},
    {.name = "define",
     .group = "support",
     .usage = "define NAME",
     .summary = "Make a command out of the lines that follow, up to \"end\"",
     .help = "Inside, $argc is the number of arguments, $arg0, $arg1, ... are the arguments and\n"
             "$arg* is all of them.\n"
             "Example:\n"
             "  define look\n"
             "    step $arg0\n"
             "    print $arg1\n"
             "  end",
     .args = {ARG_WORD},
     .run = run_define},
    {.name = "document",
     .group = "support",
     .usage = "document NAME",
     .summary = "Give a user-defined command its help, up to \"end\"",
     .help = "The lines that follow are what \"help NAME\" prints.",
     .args = {ARG_COMMAND},
     .run = run_document},
    {.name = "alias",
     .group = "support",
     .usage = "alias [NAME = COMMAND [ARGUMENTS]]",
     .summary = "Give a command a name of your own, or list such names",
     .help = "What follows the name when it is used is added behind the arguments.\n"
             "Example:\n"
             "  alias gw = print head.weight",
     .args = {ARG_WORD, ARG_COMMAND},
     .flags = CMD_RAW,
     .run = run_alias},
    {.name = "quit",
     .aliases = "q exit",
     .group = "support",
     .usage = "quit [STATUS]",
     .summary = "Leave gradb",
     .help = "A program that \"run\" started is killed; other training processes are detached and\n"
             "run on, but for MindSpore's: they end themselves about 15 s later.",
     .args = {ARG_NONE},
     .run = run_quit},
    {.name = NULL},
};

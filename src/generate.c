// SPDX-License-Identifier: GPL-3.0-or-later
#include "generate.h"

#include "options.h"
#include "repl/core/command.h"
#include "repl/core/settings_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shells ---- */

static void each_option(void (*fn)(const struct program_option *option))
{
    for (const struct program_option *o = program_options; o->name; o++) {
        fn(o);
    }
}

static void bash_option(const struct program_option *option)
{
    printf(" %s%s", option->name, option->joined ? "=" : "");
}

/* For the three of them: the names that `attach` takes. */
#define NAMES "gradb sessions 2>/dev/null | awk '$2 ~ /^[0-9]+$/ {print $1}'"

static void make_bash(void)
{
    printf("# bash completion for gradb; made by gradb --generate bash\n"
           "_gradb() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        if [[ ${COMP_WORDS[i]} == run ]]; then\n"
           "            COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
           "            return\n"
           "        fi\n"
           "        if [[ ${COMP_WORDS[i]} == open ]]; then\n"
           "            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
           "            return\n"
           "        fi\n"
           "        if [[ ${COMP_WORDS[i]} == attach && $cur != -* ]]; then\n"
           "            COMPREPLY=($(compgen -W \"$(" NAMES ")\" -- \"$cur\"))\n"
           "            return\n"
           "        fi\n"
           "    done\n"
           "    case $prev in\n"
           "    -x) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
           "    -ex) COMPREPLY=($(compgen -W \"");
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        printf("%s ", c->name);
    }
    printf("\" -- \"$cur\")); return ;;\n"
           "    --listen) COMPREPLY=($(compgen -W \"127.0.0.1:50051 127.0.0.1:0\" -- \"$cur\")); "
           "return ;;\n"
           "    --color|=) COMPREPLY=($(compgen -W \"auto always never\" -- \"$cur\")); return ;;\n"
           "    esac\n"
           "    COMPREPLY=($(compgen -W \"run listen open demo sessions attach");
    each_option(bash_option);
    printf("\" -- \"$cur\"))\n"
           "}\n"
           "complete -F _gradb gradb\n");
}

/* Text inside single quotes of a shell. */
static void put_single_quoted(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void zsh_option(const struct program_option *option)
{
    bool repeats = strcmp(option->name, "-x") == 0 || strcmp(option->name, "-ex") == 0;

    printf("  '%s%s%s[", repeats ? "*" : "", option->name, option->joined ? "=" : "");
    put_single_quoted(option->text);
    printf("]");
    if (strcmp(option->name, "-x") == 0) {
        printf(":file:_files");
    } else if (strcmp(option->name, "--color") == 0) {
        printf(":when:(auto always never)");
    } else if (strcmp(option->name, "-ex") == 0) {
        printf(":command:_gradb_commands");
    } else if (option->argument) {
        printf(":address:");
    }
    printf("' \\\n");
}

static void make_zsh(void)
{
    printf("#compdef gradb\n"
           "# zsh completion for gradb; made by gradb --generate zsh\n"
           "_gradb_commands() {\n"
           "  local -a commands=(\n");
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        printf("    '%s:", c->name);
        put_single_quoted(c->summary);
        printf("'\n");
    }
    printf("  )\n"
           "  _describe command commands\n"
           "}\n"
           "_gradb_rest() {\n"
           "  if [[ $words[1] == run ]]; then\n"
           "    shift words; (( CURRENT-- ))\n"
           "    [[ $words[1] == -- ]] && { shift words; (( CURRENT-- )) }\n"
           "    _normal\n"
           "  elif [[ $words[1] == open ]]; then\n"
           "    _files\n"
           "  elif [[ $words[1] == attach ]]; then\n"
           "    local -a names=(${(f)\"$(" NAMES ")\"})\n"
           "    compadd -a names\n"
           "  fi\n"
           "}\n"
           "_arguments -S \\\n");
    each_option(zsh_option);
    printf(
        "  '1:mode:((run\\:\"start a training program\" listen\\:\"wait for training processes\" "
        "open\\:\"look at what a training left\" demo\\:\"debug the example\" sessions\\:\"list "
        "the gradbs that are there\" "
        "attach\\:\"take one of them over\"))' \\\n"
        "  '*::arguments:_gradb_rest'\n");
}

static void fish_option(const struct program_option *option)
{
    const char *name = option->name;

    printf("complete -c gradb -n 'not __fish_seen_subcommand_from run' ");
    if (name[1] == '-') {
        printf("-l %s", name + 2);
    } else {
        printf("-%c %s", name[2] == '\0' ? 's' : 'o', name + 1);
    }
    if (strcmp(name, "-x") == 0) {
        printf(" -r -F");
    } else if (strcmp(name, "--color") == 0) {
        printf(" -x -a 'auto always never'");
    } else if (option->argument) {
        printf(" -x");
    }
    printf(" -d '");
    put_single_quoted(option->text);
    printf("'\n");
}

static void make_fish(void)
{
    static const char *const modes[][2] = {{"run", "start a training program"},
                                           {"listen", "wait for training processes"},
                                           {"open", "look at what a training left"},
                                           {"demo", "debug the example"},
                                           {"sessions", "list the gradbs that are there"},
                                           {"attach", "take one of them over"}};

    printf("# fish completion for gradb; made by gradb --generate fish\n"
           "complete -c gradb -f\n");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        printf("complete -c gradb -n __fish_use_subcommand -a %s -d '%s'\n", modes[i][0],
               modes[i][1]);
    }
    printf("complete -c gradb -n '__fish_seen_subcommand_from run open' -F\n");
    printf("complete -c gradb -n '__fish_seen_subcommand_from attach' -a \"(");
    for (const char *p = NAMES; *p != '\0'; p++) { /* inside double quotes */
        printf("%s%c", *p == '$' ? "\\" : "", *p);
    }
    printf(")\"\n");
    each_option(fish_option);
}

/* ---- the manual page ---- */

/* Text in roff: no line may begin with a control character, backslashes and dashes are escaped. */
static void put_roff(const char *text)
{
    bool line_start = true;

    for (; *text != '\0'; text++) {
        if (line_start && (*text == '.' || *text == '\'')) {
            fputs("\\&", stdout);
        }
        line_start = *text == '\n';
        if (*text == '\\') {
            fputs("\\e", stdout);
        } else if (*text == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(*text);
        }
    }
}

/* Help texts: lines that are indented are examples and keep their line ends. */
static void put_help(const char *help)
{
    bool example = false;
    bool begun = false;

    while (help && *help != '\0') {
        size_t len = strcspn(help, "\n");
        bool indented = len > 2 && help[0] == ' ' && help[1] == ' ';
        char line[512];

        if (indented != example) {
            puts(indented ? ".PP\n.nf\n.RS" : ".RE\n.fi\n.PP");
            example = indented;
        }
        if (len == 0) {
            puts(".PP");
        } else {
            if (begun && strncmp(help, "Example", 7) == 0) {
                puts(".PP");
            }
            snprintf(line, sizeof(line), "%.*s", (int)(len - (indented ? 2 : 0)),
                     help + (indented ? 2 : 0));
            put_roff(line);
            putchar('\n');
        }
        begun = len > 0;
        help += len + (help[len] == '\n' ? 1 : 0);
    }
    if (example) {
        puts(".RE\n.fi");
    }
}

static void man_option(const struct program_option *option)
{
    printf(".TP\n.B ");
    put_roff(option->name);
    if (option->argument) {
        printf("%s\\fI", option->joined ? "=" : " ");
        put_roff(option->argument);
        printf("\\fR");
    }
    putchar('\n');
    put_roff(option->text);
    puts(".");
}

static void man_command(const struct command *command)
{
    printf(".SS \"");
    put_roff(command->usage);
    printf("\"\n");
    put_roff(command->summary);
    puts(".");
    if (command->aliases && command->aliases[0] != '\0') {
        printf("Short forms: ");
        put_roff(command->aliases);
        puts(".");
    }
    if (command->help && command->help[0] != '\0') {
        puts(".PP");
        put_help(command->help);
    }
    for (const struct command *s = command->sub; s && s->name; s++) {
        printf(".TP\n.B ");
        put_roff(s->usage);
        putchar('\n');
        put_roff(s->summary);
        puts(".");
    }
}

static void man_setting(const struct setting *setting)
{
    struct gd_settings defaults;
    struct gd_buf text = GD_BUF_INIT(4096);

    gd_settings_init(&defaults);
    printf(".TP\n.B ");
    put_roff(setting->name);
    putchar('\n');
    put_roff(setting->text);
    printf(". Takes ");
    setting_range(setting, &text);
    put_roff(gd_buf_text(&text));
    gd_buf_clear(&text);
    setting_print(setting, &defaults, &text);
    if (text.len > 0) {
        printf("; usually ");
        put_roff(gd_buf_text(&text));
    }
    puts(".");
    gd_buf_deinit(&text);
}

static void man_top(void)
{
    puts(
        ".TH GRADB 1 \"\" \"gradb " GRADB_VERSION "\" \"User Commands\"\n"
        ".SH NAME\n"
        "gradb \\- debugger for the training of neural networks\n"
        ".SH SYNOPSIS\n"
        ".B gradb\n"
        "[\\fIOPTION\\fR]... [\\fBrun \\-\\-\\fR \\fIPROGRAM\\fR [\\fIARGUMENT\\fR]... | "
        "\\fBlisten\\fR [\\fIADDRESS\\fR] | \\fBopen\\fR \\fIPATH\\fR... | \\fBdemo\\fR | "
        "\\fBsessions\\fR | \\fBattach\\fR [\\fINAME\\fR]]\n"
        ".SH DESCRIPTION\n"
        "gradb stops a live training run at a step or at a single operator and shows the graph, "
        "the tensors and the stacks.\n"
        "It starts a training program itself (\\fBrun\\fR), or waits for processes that connect by "
        "themselves (\\fBlisten\\fR): MindSpore 1.x processes with ENABLE_MS_DEBUGGER=1, and "
        "programs with a gradb agent.\n"
        "What a training left on the disk, a dump, a checkpoint or a record of gradb, is looked at "
        "in the same way (\\fBopen\\fR; its options, as those of the command, may follow).\n"
        ".PP\n"
        "A gradb on a terminal does not end when that terminal is lost: it goes on serving its "
        "trainers as the setting on\\-hangup says. \\fBsessions\\fR lists those that are there, "
        "\\fBattach\\fR takes one over to this terminal.\n"
        ".SH OPTIONS");
}

static void man_end(void)
{
    puts(".SH EXIT STATUS\n"
         ".TP\n.B 0\nGood.\n"
         ".TP\n.B 1\nA command failed in batch mode. What becomes of the training: on-error.\n"
         ".TP\n.B 2\nWrong usage.\n"
         ".TP\n.B 3\nNo training process was reached.\n"
         ".TP\n.B 4\nA watchpoint fired in batch mode, and no command failed, before it or after. "
         "What \\fBtrace\\fR reports does not count.\n"
         ".TP\n.B 5\nThe training failed in batch mode, and no command had failed before: it ended "
         "by an exception or stands at one, it was lost or killed, or its program ended with "
         "another status than 0. What gradb itself ends does not count.\n"
         ".TP\n.B 130\nInterrupted.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B NO_COLOR\nWhen not empty, no colour is used unless \\-\\-color asks for it.\n"
         ".TP\n.B GRADB_DEMO\nThe program that \\fBdemo\\fR starts.\n"
         ".TP\n.BR GRADB_ADDRESS \", \" GRADB_TOKEN \", \" GRADB_DISABLE\n"
         "Read by training processes: where the debugger listens (unix:PATH or HOST:PORT; unset: "
         "the socket where \\fBlisten\\fR waits), the token that both sides prove, and whether to "
         "stay apart.\n"
         ".TP\n.B XDG_RUNTIME_DIR\nWhere the directory gradb of the sockets is.\n"
         ".SH FILES\n"
         ".TP\n.I ~/.config/gradb/gradbrc\nCommands that are run at the start.\n"
         ".TP\n.I ~/.local/state/gradb/history\nThe lines typed.\n"
         ".TP\n.I ~/.local/state/gradb/history-*.gdhist\nStatistics of watched tensors over the "
         "last steps; the newest eight are kept.\n"
         ".TP\n.I $XDG_RUNTIME_DIR/gradb/*.sock\nWhere \\fBattach\\fR finds the gradbs that have "
         "a terminal or outlived it.\n"
         ".TP\n.I $XDG_RUNTIME_DIR/gradb/debugger\nWhere \\fBlisten\\fR waits for training "
         "processes of the same user. Without XDG_RUNTIME_DIR: /run/user/UID/gradb, else "
         "/tmp/gradb-UID.\n"
         ".SH SEE ALSO\n"
         ".BR gdb (1)");
}

static void make_man(void)
{
    man_top();
    each_option(man_option);
    puts(".SH COMMANDS\n"
         "Names may be shortened as long as they are unique.\n"
         "An empty line repeats stepping and listing commands.\n"
         "\\(dq> FILE\\(dq at the end sends the output to a file, \\(dq&\\(dq runs in the "
         "background, lines that begin with # are comments.");
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        man_command(c);
    }
    puts(".SH SETTINGS\n"
         "\\fBset\\fR \\fINAME VALUE\\fR changes one, \\fBshow\\fR \\fINAME\\fR shows it.");
    for (const struct setting *s = settings_table; s->name; s++) {
        man_setting(s);
    }
    man_end();
}

/* ---- JSON ---- */

static cJSON *command_json(const struct command *command)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "name", command->name);
    cJSON_AddStringToObject(object, "aliases", command->aliases ? command->aliases : "");
    cJSON_AddStringToObject(object, "group", command->group ? command->group : "");
    cJSON_AddStringToObject(object, "usage", command->usage);
    cJSON_AddStringToObject(object, "summary", command->summary);
    cJSON_AddStringToObject(object, "help", command->help ? command->help : "");
    if (command->sub) {
        cJSON *subs = cJSON_AddArrayToObject(object, "sub");
        for (const struct command *s = command->sub; s->name; s++) {
            cJSON_AddItemToArray(subs, command_json(s));
        }
    }
    return object;
}

static void make_json(void)
{
    cJSON *list = cJSON_CreateArray();

    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        cJSON_AddItemToArray(list, command_json(c));
    }
    char *text = cJSON_Print(list);
    if (text) {
        puts(text);
    }
    free(text);
    cJSON_Delete(list);
}

int generate_run(const char *what)
{
    static const struct {
        const char *name;
        void (*make)(void);
    } makers[] = {{"bash", make_bash},
                  {"zsh", make_zsh},
                  {"fish", make_fish},
                  {"man", make_man},
                  {"json-commands", make_json}};

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        if (strcmp(what, makers[i].name) == 0) {
            makers[i].make();
            return 0;
        }
    }
    fprintf(stderr, "error: --generate takes bash, zsh, fish, man or json-commands\n");
    return 2;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* The command line. */
#include "app.h"
#include "generate.h"
#include "options.h"
#include "repl/core/exit_status.h"
#include "repl/launch/launch_python.h"

#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(void)
{
    puts("Usage: gradb [OPTION]... [MODE]\n"
         "Debug neural-network training: stop it at a step or at an operator and look inside.\n"
         "\n"
         "Modes:");
    for (const struct program_mode *m = program_modes; m->name; m++) {
        printf("  %-17s  %s\n", m->usage, m->text);
    }
    puts("\nOptions:");
    for (const struct program_option *o = program_options; o->name; o++) {
        char left[64];
        const char *between = o->joined ? "=" : " ";
        snprintf(left, sizeof(left), "%s%s%s", o->name, o->argument ? between : "",
                 o->argument ? o->argument : "");
        printf("  %-17s  %s\n", left, o->text);
    }
    puts("\nExit status: 0 success, 2 usage error, 130 interrupted; in batch mode also 1 a command "
         "failed,\n"
         "3 no training process connected, 4 a watchpoint fired, 5 the training failed,\n"
         "6 a comparison found differences.");
}

enum option_code {
    OPT_EX = 256,
    OPT_NX,
    OPT_BATCH,
    OPT_TUI,
    OPT_NO_TUI,
    OPT_JSON,
    OPT_LISTEN,
    OPT_COLOR,
    OPT_VERSION,
    OPT_GENERATE,
    OPT_READ_ONLY,
    OPT_TAKE,
    OPT_ALLOW_RUN,
};

static const struct option long_options[] = {
    {"x", required_argument, NULL, 'x'},
    {"command", required_argument, NULL, 'x'},
    {"ex", required_argument, NULL, OPT_EX},
    {"eval-command", required_argument, NULL, OPT_EX},
    {"nx", no_argument, NULL, OPT_NX},
    {"n", no_argument, NULL, OPT_NX},
    {"batch", no_argument, NULL, OPT_BATCH},
    {"quiet", no_argument, NULL, 'q'},
    {"q", no_argument, NULL, 'q'},
    {"tui", no_argument, NULL, OPT_TUI},
    {"no-tui", no_argument, NULL, OPT_NO_TUI},
    {"json", no_argument, NULL, OPT_JSON},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"color", required_argument, NULL, OPT_COLOR},
    {"version", no_argument, NULL, OPT_VERSION},
    {"read-only", no_argument, NULL, OPT_READ_ONLY},
    {"take", no_argument, NULL, OPT_TAKE},
    {"allow-run", no_argument, NULL, OPT_ALLOW_RUN},
    {"generate", required_argument, NULL, OPT_GENERATE},
    {"help", no_argument, NULL, 'h'},
    {"h", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int report_usage(const char *what, const char *detail)
{
    fprintf(stderr, "error: %s%s; see \"gradb --help\"\n", what, detail);
    return STATUS_USAGE;
}

static int set_color(struct app_options *options, const char *when)
{
    static const char *const names[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(when, names[i]) == 0) {
            options->color = (enum app_when)i;
            return 0;
        }
    }
    return report_usage("--color takes auto, always or never, not ", when);
}

static void add_command(struct app_options *options, bool is_file, const char *text)
{
    options->commands[options->command_count++] =
        (struct app_command){.is_file = is_file, .text = text};
}

/* `word`: what getopt stopped at. -1: continue; otherwise the exit status. */
static int parse_option(struct app_options *options, int code, const char *word)
{
    switch (code) {
    case 'x': add_command(options, true, optarg); return -1;
    case OPT_EX: add_command(options, false, optarg); return -1;
    case OPT_NX: options->no_rc = true; return -1;
    case OPT_BATCH: options->batch = true; return -1;
    case 'q': options->quiet = true; return -1;
    case OPT_TUI: options->tui = true; return -1;
    case OPT_NO_TUI: options->tui = false; return -1;
    case OPT_JSON: options->json = true; return -1;
    case OPT_READ_ONLY: options->read_only = true; return -1;
    case OPT_TAKE: options->take = true; return -1;
    case OPT_ALLOW_RUN: options->allow_run = true; return -1;
    case OPT_LISTEN: options->listen_address = optarg; return -1;
    case OPT_COLOR: return set_color(options, optarg) == 0 ? -1 : STATUS_USAGE;
    case OPT_VERSION: puts("gradb " GRADB_VERSION); return 0;
    case OPT_GENERATE: return generate_run(optarg);
    case 'h': print_help(); return 0;
    default: return report_usage("unknown option, or missing argument: ", word);
    }
}

/* Most likely it is what `run` or `open` takes. */
static int report_unknown_mode(const char *word)
{
    size_t len = strlen(word);
    bool script = len > 3 && strcmp(word + len - 3, ".py") == 0;

    fprintf(stderr,
            "error: unknown mode: %s; to debug a program: gradb run -- %s%s, to look into a file: "
            "gradb open %s\n",
            word, script ? "python3 " : "", word, script ? "PATH" : word);
    return STATUS_USAGE;
}

/* `sessions` and `attach` also accept their options after the mode word. */
static int parse_session_mode(struct app_options *options, int at, int argc, char **argv)
{
    bool attach = options->mode == APP_ATTACH;

    for (; at < argc; at++) {
        if (attach && strcmp(argv[at], "--read-only") == 0) {
            options->read_only = true;
        } else if (attach && strcmp(argv[at], "--take") == 0) {
            options->take = true;
        } else if (!attach && strcmp(argv[at], "--json") == 0) {
            options->json = true;
        } else if (attach && !options->session && argv[at][0] != '-') {
            options->session = argv[at];
        } else {
            return report_usage("unexpected argument: ", argv[at]);
        }
    }
    return -1;
}

static int parse_mode(struct app_options *options, int at, int argc, char **argv);

/* `gradb mcp [--allow-run] [MODE...]`: the mode says what is served. */
static int parse_served_mode(struct app_options *options, enum app_serve serve, int at, int argc,
                             char **argv)
{
    options->serve = serve;
    options->mode = APP_PROMPT;
    if (at < argc && strcmp(argv[at], "--allow-run") == 0) {
        options->allow_run = true;
        at++;
    }
    int rc = parse_mode(options, at, argc, argv);
    bool can_serve = options->mode == APP_PROMPT || options->mode == APP_RUN ||
                     options->mode == APP_OPEN || options->mode == APP_LISTEN;
    if (rc < 0 && !can_serve) {
        return report_usage("mcp takes the modes run, open and listen, not ", argv[at]);
    }
    return rc;
}

/* The program of `run`; options and program of `diagnose`, which is a batch of its own. */
static int parse_program(struct app_options *options, int at, int argc, char **argv)
{
    bool diagnoses = options->mode == APP_DIAGNOSE;

    at += !diagnoses && at < argc && strcmp(argv[at], "--") == 0;
    if (at >= argc) {
        return report_usage(diagnoses ? "diagnose: missing program: gradb diagnose -- PROGRAM..."
                                      : "run: missing program: gradb run -- PROGRAM...",
                            "");
    }
    options->program = argv + at;
    options->batch = options->batch || diagnoses;
    return -1;
}

static int parse_mode(struct app_options *options, int at, int argc, char **argv)
{
    if (at >= argc) {
        return -1;
    }
    const struct program_mode *mode = find_program_mode(argv[at]);
    if (!mode) {
        return report_unknown_mode(argv[at]);
    }
    at++;
    if (at < argc && strcmp(argv[at], "--help") == 0) {
        print_help();
        return 0;
    }
    options->mode = mode->mode;
    switch (mode->mode) {
    case APP_RUN:
    case APP_DIAGNOSE: return parse_program(options, at, argc, argv);
    case APP_OPEN:
        options->opened = argv + at;
        return at < argc ? -1 : report_usage("open: missing path: gradb open PATH...", "");
    case APP_DAP:
        options->serve = SERVE_DAP;
        options->mode = APP_PROMPT;
        options->allow_run = true;
        break;
    case APP_MCP: return parse_served_mode(options, SERVE_MCP, at, argc, argv);
    case APP_SESSIONS:
    case APP_ATTACH: return parse_session_mode(options, at, argc, argv);
    case APP_LISTEN:
        if (at < argc && argv[at][0] != '-') {
            options->listen_address = argv[at++];
        }
        break;
    default: break;
    }
    return at < argc
               ? report_usage("unexpected argument (options come before the mode): ", argv[at])
               : -1;
}

/* A wheel brings descriptions of terminals, in terminfo/ next to the program's folder. An empty
 * part of the list means the system's own, which come first (ncurses, terminfo(5)). */
static void add_terminfo(void)
{
    char folder[PATH_MAX];
    char list[PATH_MAX + 32];

    if (getenv("TERMINFO_DIRS") || !launch_own_folder(folder)) {
        return;
    }
    snprintf(list, sizeof(list), ":%s/../terminfo", folder);
    if (access(list + 1, R_OK) == 0) {
        setenv("TERMINFO_DIRS", list, 0);
    }
}

int main(int argc, char **argv)
{
    struct app_options options = {.mode = APP_PROMPT};
    int status = -1;
    int code;

    setlocale(LC_CTYPE, "");
    setlocale(LC_COLLATE, "");
    add_terminfo();
    options.commands = calloc((size_t)argc + 1, sizeof(*options.commands));
    if (!options.commands) {
        return report_usage("out of memory", "");
    }
    opterr = 0;
    while (status < 0 && (code = getopt_long_only(argc, argv, "+", long_options, NULL)) != -1) {
        status = parse_option(&options, code, argv[optind - 1]);
    }
    if (status < 0) {
        status = parse_mode(&options, optind, argc, argv);
    }
    if (status < 0) {
        status = app_run(&options);
    }
    free(options.commands);
    return status;
}

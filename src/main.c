// SPDX-License-Identifier: GPL-3.0-or-later
/* Arguments, and nothing else. */
#include "app.h"
#include "generate.h"
#include "options.h"

#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_USAGE 2

static void print_help(void)
{
    puts("Usage: gradb [OPTION]... [run -- PROGRAM [ARGUMENT]... | listen [ADDRESS] | open PATH |\n"
         "             demo | sessions | attach [NAME]]\n"
         "Debug the training of a neural network: stop it at a step or an operator and look "
         "inside.\n"
         "\n"
         "  run -- PROGRAM    start a training program and stop it before its first step\n"
         "  listen [ADDRESS]  wait for training processes that connect by themselves\n"
         "  open PATH...      look at what a training left on the disk: dump, checkpoint, record\n"
         "  demo              debug the little transformer that comes with gradb\n"
         "  sessions          list the gradbs that have a terminal or outlived it\n"
         "  attach [NAME]     take one of them over to this terminal\n");
    for (const struct program_option *o = program_options; o->name; o++) {
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s", o->name,
                 !o->argument ? ""
                 : o->joined  ? "="
                              : " ",
                 o->argument ? o->argument : "");
        printf("  %-16s  %s\n", left, o->text);
    }
    puts("\nExit status: 0 good; in batch mode 1 a command failed, 3 no training process was "
         "reached,\n"
         "4 a watchpoint fired, 5 the training failed, 6 what was compared differs;\n"
         "2 wrong usage; 130 interrupted.");
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
    {"generate", required_argument, NULL, OPT_GENERATE},
    {"help", no_argument, NULL, 'h'},
    {"h", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int usage(const char *what, const char *detail)
{
    fprintf(stderr, "error: %s%s; \"gradb --help\" explains\n", what, detail);
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
    return usage("--color takes auto, always or never, not ", when);
}

static void add_command(struct app_options *options, bool is_file, const char *text)
{
    options->commands[options->command_count++] =
        (struct app_command){.is_file = is_file, .text = text};
}

/* -1: go on; otherwise the exit status. */
static int take_option(struct app_options *options, int code)
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
    case OPT_LISTEN: options->listen_address = optarg; return -1;
    case OPT_COLOR: return set_color(options, optarg) == 0 ? -1 : STATUS_USAGE;
    case OPT_VERSION: puts("gradb " GRADB_VERSION); return 0;
    case OPT_GENERATE: return generate_run(optarg);
    case 'h': print_help(); return 0;
    default: return usage("an option is unknown or lacks its argument", "");
    }
}

/* Their options may also come behind. */
static int take_session_mode(struct app_options *options, const char *mode, int at, int argc,
                             char **argv)
{
    bool attach = strcmp(mode, "attach") == 0;

    options->mode = attach ? APP_ATTACH : APP_SESSIONS;
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
            return usage("one argument too many: ", argv[at]);
        }
    }
    return -1;
}

static int take_mode(struct app_options *options, int argc, char **argv)
{
    int at = optind;

    if (at >= argc) {
        return -1;
    }
    const char *mode = argv[at++];
    if (strcmp(mode, "run") == 0) {
        at += at < argc && strcmp(argv[at], "--") == 0 ? 1 : 0;
        if (at >= argc) {
            return usage("run: the program is missing: gradb run -- PROGRAM", "");
        }
        options->mode = APP_RUN;
        options->program = argv + at;
        return -1;
    }
    if (strcmp(mode, "listen") == 0) {
        options->mode = APP_LISTEN;
        if (at < argc && argv[at][0] != '-') {
            options->listen_address = argv[at++];
        }
    } else if (strcmp(mode, "open") == 0) {
        if (at >= argc) {
            return usage("open: the path is missing: gradb open PATH...", "");
        }
        options->mode = APP_OPEN;
        options->opened = argv + at;
        return -1;
    } else if (strcmp(mode, "demo") == 0) {
        options->mode = APP_DEMO;
    } else if (strcmp(mode, "sessions") == 0 || strcmp(mode, "attach") == 0) {
        return take_session_mode(options, mode, at, argc, argv);
    } else {
        return usage("there is no mode ", mode);
    }
    return at < argc ? usage("one argument too many (options come first): ", argv[at]) : -1;
}

int main(int argc, char **argv)
{
    struct app_options options = {.mode = APP_PROMPT};
    int status = -1;
    int code;

    setlocale(LC_CTYPE, "");
    setlocale(LC_COLLATE, "");
    options.commands = calloc((size_t)argc + 1, sizeof(*options.commands));
    if (!options.commands) {
        return usage("out of memory", "");
    }
    opterr = 0;
    while (status < 0 && (code = getopt_long_only(argc, argv, "+", long_options, NULL)) != -1) {
        status = take_option(&options, code);
    }
    if (status < 0) {
        status = take_mode(&options, argc, argv);
    }
    if (status < 0) {
        status = app_run(&options);
    }
    free(options.commands);
    return status;
}

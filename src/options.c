// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <stddef.h>
#include <string.h>

const struct program_mode program_modes[] = {
    {"run", APP_RUN, WORDS_PROGRAM, "run -- PROGRAM...",
     "start a training script and stop before its first step"},
    {"diagnose", APP_DIAGNOSE, WORDS_PROGRAM, "diagnose [OPTION...] -- PROGRAM...",
     "follow a training script to its end and say what is wrong with it"},
    {"listen", APP_LISTEN, WORDS_NONE, "listen [ADDRESS]",
     "wait for training processes to connect"},
    {"open", APP_OPEN, WORDS_FILES, "open PATH...", "inspect a dump, a checkpoint or a recording"},
    {"demo", APP_DEMO, WORDS_NONE, "demo", "debug the example training that comes with gradb"},
    {"sessions", APP_SESSIONS, WORDS_NONE, "sessions",
     "list the running gradb sessions, including those without a terminal"},
    {"attach", APP_ATTACH, WORDS_SESSIONS, "attach [NAME]",
     "move a running gradb session to this terminal"},
    {"mcp", APP_MCP, WORDS_NONE, "mcp [MODE]",
     "serve a program (a language model) by the Model Context Protocol on stdin and stdout"},
    {"dap", APP_DAP, WORDS_NONE, "dap",
     "serve an editor by the Debug Adapter Protocol on stdin and stdout"},
    {NULL, APP_PROMPT, WORDS_NONE, NULL, NULL},
};

const struct program_option program_options[] = {
    {"-x", "FILE", .repeats = true, .words = WORDS_FILES,
     .text = "run the commands in FILE; can be repeated"},
    {"-ex", "COMMAND", .repeats = true, .words = WORDS_COMMANDS,
     .text = "run COMMAND; -x and -ex run in the order given"},
    {"--batch", .text = "exit after these commands; on failure, see \"help set on-error\""},
    {"-q", .text = "do not print the greeting"},
    {"-nx", .text = "do not read gradbrc"},
    {"--tui", .text = "start with the panes open"},
    {"--no-tui", .text = "start with the prompt (default)"},
    {"--json", .text = "print each result as one line of JSON"},
    {"--listen", "ADDRESS", .words = WORDS_ADDRESS,
     .text = "listen on [HOST:]PORT or unix:PATH instead of the default address"},
    {"--allow-run", .text = "mcp: let it change the training, start programs and write files"},
    {"--read-only", .text = "attach: watch the session without controlling it"},
    {"--take", .text = "attach: take the session from another terminal without asking"},
    {"--color", "WHEN", .joined = true, .words = WORDS_WHEN,
     .text = "use color: auto, always or never"},
    {"--version", .text = "print the version"},
    {"--help", .text = "print this help"},
    {.name = NULL},
};

const char *program_mode_name(enum app_mode mode)
{
    for (const struct program_mode *m = program_modes; m->name; m++) {
        if (m->mode == mode) {
            return m->name;
        }
    }
    return "prompt";
}

const struct program_mode *find_program_mode(const char *name)
{
    for (const struct program_mode *m = program_modes; m->name; m++) {
        if (strcmp(name, m->name) == 0) {
            return m;
        }
    }
    return NULL;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <stddef.h>
#include <string.h>

const struct program_mode program_modes[] = {
    {"run", APP_RUN, WORDS_PROGRAM, "run -- PROGRAM...",
     "start a training script and stop before its first step"},
    {"listen", APP_LISTEN, WORDS_NONE, "listen [ADDRESS]",
     "wait for training processes to connect"},
    {"open", APP_OPEN, WORDS_FILES, "open PATH...", "inspect a dump, a checkpoint or a recording"},
    {"demo", APP_DEMO, WORDS_NONE, "demo", "debug the example training that comes with gradb"},
    {"sessions", APP_SESSIONS, WORDS_NONE, "sessions",
     "list the running gradb sessions, including those without a terminal"},
    {"attach", APP_ATTACH, WORDS_SESSIONS, "attach [NAME]",
     "move a running gradb session to this terminal"},
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
    {"--read-only", .text = "attach: watch the session without controlling it"},
    {"--take", .text = "attach: take the session from another terminal without asking"},
    {"--color", "WHEN", .joined = true, .words = WORDS_WHEN,
     .text = "use color: auto, always or never"},
    {"--version", .text = "print the version"},
    {"--help", .text = "print this help"},
    {.name = NULL},
};

const struct program_mode *find_program_mode(const char *name)
{
    for (const struct program_mode *m = program_modes; m->name; m++) {
        if (strcmp(name, m->name) == 0) {
            return m;
        }
    }
    return NULL;
}

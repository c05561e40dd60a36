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
    {"-x", "FILE", false, "run the commands in FILE; can be repeated"},
    {"-ex", "COMMAND", false, "run COMMAND; -x and -ex run in the order given"},
    {"--batch", NULL, false, "exit after these commands; on failure, see \"help set on-error\""},
    {"-q", NULL, false, "do not print the greeting"},
    {"-nx", NULL, false, "do not read gradbrc"},
    {"--tui", NULL, false, "start with the panes open"},
    {"--no-tui", NULL, false, "start with the prompt (default)"},
    {"--json", NULL, false, "print each result as one line of JSON"},
    {"--listen", "ADDRESS", false,
     "listen on [HOST:]PORT or unix:PATH instead of the default address"},
    {"--read-only", NULL, false, "attach: watch the session without controlling it"},
    {"--take", NULL, false, "attach: take the session from another terminal without asking"},
    {"--color", "WHEN", true, "use color: auto, always or never"},
    {"--version", NULL, false, "print the version"},
    {"--help", NULL, false, "print this help"},
    {NULL, NULL, false, NULL},
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <stddef.h>

const struct program_option program_options[] = {
    {"-x", "FILE", false, "run the commands in FILE; may be given several times"},
    {"-ex", "COMMAND", false, "run COMMAND; -x and -ex run in the order given"},
    {"--batch", NULL, false, "leave after them; what a failure does: help set on-error"},
    {"-q", NULL, false, "no greeting"},
    {"-nx", NULL, false, "do not read gradbrc"},
    {"--tui", NULL, false, "open the panes"},
    {"--no-tui", NULL, false, "a prompt, as usual"},
    {"--json", NULL, false, "print every result as one JSON object a line"},
    {"--listen", "ADDRESS", false,
     "listen on [HOST:]PORT or unix:PATH instead of the usual places"},
    {"--read-only", NULL, false, "attach: look on, change nothing"},
    {"--take", NULL, false, "attach: without a question, also when it has a terminal"},
    {"--color", "WHEN", true, "auto, always or never"},
    {"--version", NULL, false, "print the version"},
    {"--help", NULL, false, "print this text"},
    {NULL, NULL, false, NULL},
};

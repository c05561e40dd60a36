// SPDX-License-Identifier: GPL-3.0-or-later
#include "demo.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a person would type to find the fault. */
static const char *const tour[] = {
    "# A transformer is being trained; it stands before its first step.",
    "info target",
    "info graph",
    "# One training step, then the loss.",
    "step",
    "print loss",
    NULL,
};

static const char hint[] =
    "\nThis training has a fault: after some steps its loss is no number any more. Try:\n"
    "  step            one training step (an empty line repeats it)\n"
    "  info graph      what is being trained\n"
    "  next            one operator\n"
    "  print .         the tensor it made\n"
    "  help            everything else\n\n";

/* GRADB_DEMO, or beside this program: in the build tree, then where it is installed. */
static bool find_program(char *out, size_t size)
{
    static const char *const places[] = {"../examples/charlm/charlm", "../libexec/gradb/charlm",
                                         "charlm"};
    const char *named = getenv("GRADB_DEMO");
    char self[PATH_MAX];

    if (named != NULL && named[0] != '\0') {
        return (size_t)snprintf(out, size, "%s", named) < size;
    }
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len <= 0) {
        return false;
    }
    self[len] = '\0';
    const char *dir = dirname(self);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int used = snprintf(out, size, "%s/%s", dir, places[i]);
        if (used > 0 && (size_t)used < size && access(out, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

static int play_tour(struct repl *repl)
{
    for (size_t i = 0; tour[i] != NULL; i++) {
        printf("(gradb) %s\n", tour[i]);
        fflush(stdout);
        int rc = repl_execute(repl, tour[i]);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

int demo_start(struct repl *repl, bool terminal)
{
    static char fault[] = "--fault";
    static char which[] = "nan-log";
    static char *arguments[] = {NULL, fault, which, NULL};
    char path[PATH_MAX];

    if (!find_program(path, sizeof(path))) {
        fprintf(stderr, "error: the demo's trainer is not here: GRADB_DEMO may name it\n");
        return GD_ENOTFOUND;
    }
    arguments[0] = path;
    int rc = repl_run_program(repl, arguments);
    if (rc != GD_OK) {
        return rc;
    }
    if (!terminal) {
        return play_tour(repl);
    }
    fputs(hint, stdout);
    fflush(stdout);
    return GD_OK;
}

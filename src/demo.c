// SPDX-License-Identifier: GPL-3.0-or-later
#include "demo.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char hint[] =
    "\nThis training has a fault: after some dozens of steps its loss is no number any more. Try:\n"
    "  step            one training step (an empty line repeats it); step 10 takes ten\n"
    "  info graph      what is being trained\n"
    "  watch TO on all stop at the first tensor with a NaN or an infinity; then continue\n"
    "  why             where it came from, once it stopped; print . shows the tensor itself\n"
    "  help            everything else\n\n";

/* GRADB_DEMO, or beside this program: in the build tree, then where it is installed. */
static bool find_program(char *out, size_t size)
{
    static const char *const places[] = {"../examples/charlm/charlm", "../libexec/gradb/charlm"};
    const char *named = getenv("GRADB_DEMO");
    char self[PATH_MAX];

    if (named && named[0] != '\0') {
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

/* ---- the tour: what a person would type, line by line ---- */

static const struct {
    const char *say; /* before the command; NULL: nothing */
    const char *command;
} tour[] = {
    {"A little transformer is being trained. It stands before its first step.", "info graph"},
    {"Ten steps: the loss falls.", "step 10"},
    {"Later it will be no number any more. Stop at the first tensor with a NaN or an infinity:",
     "watch TO on all"},
    {NULL, "continue"},
    {"There it is, in the middle of a step. What is wrong with it, and where did that come from?",
     "find nonfinite ."},
    {NULL, "why"},
    {"The line that takes the logarithm:", "list"},
    {"The loss on its way there:", "info history loss -n 5"},
    {"What did watching cost?", "info watchpoints"},
};

/* Every line, or up to the first that fails. */
static int play_tour(struct repl *repl)
{
    for (size_t i = 0; i < sizeof(tour) / sizeof(tour[0]); i++) {
        if (tour[i].say) {
            printf("\n# %s\n", tour[i].say);
        }
        printf("(gradb) %s\n", tour[i].command);
        fflush(stdout);
        int rc = repl_execute(repl, tour[i].command);
        if (rc != GD_OK) {
            return rc;
        }
    }
    const struct gd_session *session = repl_debugger(repl)->current;
    if (!session || session->stop.reason != GD_STOP_HIT) {
        fprintf(stderr, "error: the demo's training did not go wrong\n");
        return GD_ESTATE;
    }
    printf("\n# Found: the logarithm of a probability that underflowed to 0, with nothing to guard "
           "it.\n");
    fflush(stdout);
    repl_clear_status(repl); /* the watchpoint that fired is what was to be shown */
    return GD_OK;
}

int demo_start(struct repl *repl, bool terminal)
{
    static char fault[] = "--fault";
    static char which[] = "nan-log";
    static char *arguments[] = {NULL, fault, which, NULL};
    static char path[PATH_MAX];
    char found[PATH_MAX];

    if (!find_program(found, sizeof(found)) || !realpath(found, path)) {
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

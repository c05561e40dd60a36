// SPDX-License-Identifier: GPL-3.0-or-later
#include "demo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/launch/launch_python.h"

static const char hint[] =
    "\n"
    "This training has a bug: after a few dozen steps its loss becomes NaN. Try:\n"
    "  step            run one training step (Enter repeats it); step 10 runs ten\n"
    "  info graph      what is being trained\n"
    "  watch TO on all stop at the first tensor with a NaN or an infinity; then: continue\n"
    "  why             after the stop: where the NaN came from; print . shows the tensor\n"
    "  help            all commands\n\n";

/* GRADB_DEMO, or relative to this executable: in the build tree, then in the installation. */
static bool find_program(char *out, size_t size)
{
    static const char *const places[] = {"../examples/charlm/charlm", "../libexec/gradb/charlm"};
    const char *named = getenv("GRADB_DEMO");
    char folder[PATH_MAX];

    if (named && named[0] != '\0') {
        return (size_t)snprintf(out, size, "%s", named) < size;
    }
    if (!launch_own_folder(folder)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int used = snprintf(out, size, "%s/%s", folder, places[i]);
        if (used > 0 && (size_t)used < size && access(out, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the tour: commands, run one after the other ---- */

static const struct {
    const char *say; /* printed before the command; NULL: nothing */
    const char *command;
} tour[] = {
    {"A small transformer is about to train. It is stopped before its first step.", "info graph"},
    {"Run ten steps: the loss falls.", "step 10"},
    {"Later the loss becomes NaN. Stop at the first tensor with a NaN or an infinity:",
     "watch TO on all"},
    {NULL, "continue"},
    {"It stopped in the middle of a step. Which elements are bad, and where do they come from?",
     "find nonfinite ."},
    {NULL, "why"},
    {"The line that computes the logarithm:", "list"},
    {"The loss up to here:", "info history loss -n 5"},
    {"What did the watchpoint cost?", "info watchpoints"},
};

/* Runs the commands up to the first that fails. */
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
        fprintf(stderr, "error: the demo's training did not reach its bug\n");
        return GD_ESTATE;
    }
    printf("\n"
           "# Found: the logarithm of a probability that underflowed to 0, without an epsilon to "
           "guard it.\n");
    fflush(stdout);
    repl_clear_status(repl); /* the hit was intended and is not a failure */
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
        fprintf(stderr,
                "error: cannot find the demo's training program: set GRADB_DEMO to its path\n");
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "demo.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRIDE     10 /* steps taken at once while looking for the bad one */
#define MAX_STEPS  400
#define LINE_BYTES 1024

static const char hint[] =
    "\nThis training has a fault: after some dozens of steps its loss is no number any more. Try:\n"
    "  step            one training step (an empty line repeats it); step 10 takes ten\n"
    "  info graph      what is being trained\n"
    "  break type:Log  stop at every logarithm; then continue\n"
    "  print .         the tensor that the current node made; inputs shows what it came from\n"
    "  help            everything else\n\n";

/* GRADB_DEMO, or beside this program: in the build tree, then where it is installed. */
static bool find_program(char *out, size_t size)
{
    static const char *const places[] = {"../examples/charlm/charlm", "../libexec/gradb/charlm"};
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

/* ---- the tour: what a person would type, line by line ---- */

static void say(const char *text)
{
    printf("\n# %s\n", text);
    fflush(stdout);
}

static int type_line(struct repl *repl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int type_line(struct repl *repl, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    printf("(gradb) %s\n", line);
    fflush(stdout);
    return repl_execute(repl, line);
}

static struct gd_session *stopped_session(struct repl *repl)
{
    struct gd_session *session = repl_debugger(repl)->current;
    return session != NULL && session->state == GD_STOPPED ? session : NULL;
}

static bool loss_is_bad(const struct gd_session *session)
{
    for (int i = 0; i < session->scalar_count; i++) {
        if (strcmp(session->scalar[i].name, "loss") == 0) {
            return !isfinite(session->scalar[i].value);
        }
    }
    return false;
}

/* Strides through the training until the loss is no number. *good is the last step that was good.
 */
static int stride_to_bad_loss(struct repl *repl, int64_t *good)
{
    struct gd_session *session = stopped_session(repl);
    *good = 0;

    while (session != NULL && session->stop.step < MAX_STEPS) {
        int rc = type_line(repl, "step %d", STRIDE);
        session = stopped_session(repl);
        if (rc != GD_OK) {
            return rc;
        }
        if (session != NULL && loss_is_bad(session)) {
            return GD_OK;
        }
        *good = session != NULL ? session->stop.step : 0;
    }
    fprintf(stderr, "error: the demo's training did not go wrong\n");
    return GD_ESTATE;
}

struct verdict {
    bool done;
    bool bad;
};

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct verdict *verdict = ctx;

    (void)dtype;
    (void)shape;
    (void)step;
    verdict->done = true;
    verdict->bad = err == NULL && stats->nan + stats->pos_inf + stats->neg_inf > 0;
}

/* Whether the node that just executed made values that are not finite. */
static bool output_is_bad(struct repl *repl, struct gd_session *session)
{
    static struct verdict verdict; /* an answer that comes late still has a place to go */
    struct gd_debugger *debugger = repl_debugger(repl);
    struct gd_tensor_ref ref = {.node = session->stop.node};

    verdict = (struct verdict){.done = false};
    if (gd_session_stats(session, &ref, on_stats, &verdict, NULL) != GD_OK) {
        return false;
    }
    while (!verdict.done && !repl_wants_quit(repl)) {
        debugger->pump(debugger->pump_ctx, -1);
    }
    return verdict.bad;
}

/* From breakpoint to breakpoint until the output is bad. */
static int continue_to_bad_output(struct repl *repl)
{
    for (int i = 0; i < 2 * STRIDE; i++) {
        int rc = type_line(repl, "continue");
        struct gd_session *session = stopped_session(repl);
        if (rc == GD_OK && i == 0) {
            type_line(repl, "set print threshold 6");
            rc = type_line(repl, "display ."); /* from now on at every stop */
        }
        if (rc != GD_OK) {
            return rc;
        }
        if (session != NULL && output_is_bad(repl, session)) {
            return GD_OK;
        }
    }
    fprintf(stderr, "error: the demo's tour did not find the fault\n");
    return GD_ESTATE;
}

static int show_input(struct repl *repl)
{
    struct gd_session *session = stopped_session(repl);
    struct gd_node_info info;

    if (session == NULL || !gd_graph_node(session->graph, session->stop.node, &info) ||
        info.input_count == 0) {
        return GD_ESTATE;
    }
    return type_line(repl, "find zero %s", gd_graph_name(session->graph, info.inputs[0].node));
}

static int play_tour(struct repl *repl)
{
    int64_t good = 0;

    say("A little transformer is being trained. It stands before its first step.");
    type_line(repl, "info graph");
    say("Ten steps at a time: the loss falls, and then it is no number any more.");
    int rc = stride_to_bad_loss(repl, &good);
    if (rc != GD_OK) {
        return rc;
    }
    say("The run can be repeated: start again and stand before the bad steps.");
    rc = type_line(repl, "run");
    if (rc == GD_OK && good > 0) {
        rc = type_line(repl, "step %lld", (long long)good);
    }
    if (rc == GD_OK) {
        say("Look at the logarithm in the loss, once every step.");
        rc = type_line(repl, "break type:Log");
    }
    if (rc == GD_OK) {
        rc = continue_to_bad_output(repl);
    }
    if (rc != GD_OK) {
        return rc;
    }
    say("There it is: -Inf. Where, and what went in?");
    type_line(repl, "find nonfinite .");
    rc = show_input(repl);
    say("In the same place a probability that is 0, and this line takes its logarithm:");
    type_line(repl, "list");
    say("The next operators carry it into the loss.");
    type_line(repl, "next");
    say("Found: the logarithm of a probability that underflowed to 0, with nothing to guard it.");
    return rc;
}

int demo_start(struct repl *repl, bool terminal)
{
    static char fault[] = "--fault";
    static char which[] = "nan-log";
    static char *arguments[] = {NULL, fault, which, NULL};
    static char path[PATH_MAX];
    char found[PATH_MAX];

    if (!find_program(found, sizeof(found)) || realpath(found, path) == NULL) {
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

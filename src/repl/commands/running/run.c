// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: run */
#include <string.h>

#include "repl/commands/running/running.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/launch/launch_python.h"

static int last_number(const struct gd_debugger *debugger)
{
    size_t count = debugger->session_count;
    return count > 0 ? debugger->sessions[count - 1]->number : 0;
}

static bool connected_or_ended(void *ctx)
{
    const struct first_stop *first = ctx;
    return first_stop_session(first) || !launch_is_running(first->repl);
}

/* The line of the log that says why the program ended: the error that Python's last traceback ends
 * with, to which a library may have added more lines; else the last line that is not empty. */
static const char *last_words(struct repl *repl)
{
    static const char begins[] = "Traceback (most recent call last):";
    const char *last = "", *error = NULL;
    bool in_traceback = false;

    for (size_t i = 0; i < launch_log_count(repl); i++) {
        const char *line = launch_log_line(repl, i);
        bool is_text = line[0] != '\0' && line[0] != ' ';
        last = line[0] != '\0' ? line : last;
        error = in_traceback && is_text ? line : error;
        in_traceback = strcmp(line, begins) == 0 || (in_traceback && !is_text);
    }
    return error ? error : last;
}

/* Says why the program never connected, with its last output. */
static int never_connected(struct command_call *call, int rc, struct gd_err *err)
{
    struct repl *repl = call->repl;
    const char *program = launch_program(repl);
    const char *end = launch_end_text(repl);
    bool went_well = rc == GD_ETIMEOUT || strcmp(end, "exited with status 0") == 0;
    const char *refusal = launch_refusal(repl);
    const char *hint = launch_python_hint(call->arena, launch_argv(repl), went_well);
    const char *between = hint ? "; " : "";

    hint = hint ? hint : "";
    repl->end.fail_status = STATUS_NO_CONNECTION;
    if (rc == GD_EINTR) {
        repl->end.fail_status = STATUS_OK;
        return gd_fail(err, rc, "interrupted before %s connected", program);
    }
    if (rc == GD_ETIMEOUT) {
        return gd_fail(err, rc,
                       "%s did not connect within %g s (set start-timeout) and is still running: "
                       "does it use gradb?%s%s",
                       program, call->debugger->settings.start_timeout, between, hint);
    }
    if (refusal[0] != '\0') {
        return gd_fail(err, GD_ELOST, "%s %s before it connected: %s", program, end, refusal);
    }
    if (launch_log_count(repl) > 0) {
        return gd_fail(err, GD_ELOST, "%s %s before it connected; its last output: %.200s%s%s",
                       program, end, last_words(repl), between, hint);
    }
    return gd_fail(err, GD_ELOST, "%s %s before it connected%s%s", program, end, between, hint);
}

static void show_start(struct command_call *call)
{
    char *const *argv = launch_argv(call->repl);
    cJSON *record = out_record(call->out, "run");
    cJSON *words = out_list(record, "argv");

    for (size_t i = 0; argv[i]; i++) {
        out_push_text(words, argv[i]);
    }
    out_set(record, OUT_INT("pid", launch_pid(call->repl)));
    out_say(call->out, record, "Starting program: {argv: }\n");
    out_flush(call->out);
}

static int start_program(struct command_call *call, char *const argv[], struct gd_err *err)
{
    struct repl *repl = call->repl;
    struct first_stop first = {.debugger = call->debugger, .repl = repl};

    if (launch_is_running(repl)) {
        if (!repl_confirm(call, "The program is already running. End it and start it again?")) {
            return GD_OK;
        }
        launch_kill(repl);
    }
    int rc = listening_ensure(call, err);
    first.above = last_number(call->debugger);
    rc = rc != GD_OK ? rc : launch_start(repl, argv, listening_address(call), err);
    if (rc != GD_OK) {
        repl->end.fail_status = STATUS_NO_CONNECTION;
        return rc;
    }
    show_start(call);
    double timeout = call->debugger->settings.start_timeout;
    rc = repl_wait(repl, connected_or_ended, &first, timeout > 0 ? timeout : -1);
    struct gd_session *session = first_stop_session(&first);
    if (!session) {
        return never_connected(call, rc == GD_OK ? GD_ELOST : rc, err);
    }
    rc = first_stop_wait(call, session, err);
    if (rc == GD_OK && call->session && out_is_json(call->out)) {
        repl_state_record(call);
    }
    return rc;
}

static int run_run(struct command_call *call, struct gd_err *err)
{
    int argc = 0;
    char **argv = NULL;
    int rc = parse_words(call->line, call->arena, &argc, &argv, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argc--;
        argv++;
    }
    if (argc > 0) {
        return start_program(call, argv, err);
    }
    if (!launch_argv(call->repl)) {
        return gd_fail(err, GD_EUSAGE, "run: specify a program");
    }
    return start_program(call, launch_argv(call->repl), err);
}

/* Runs and frees the line. GD_ELIMIT: it is too long. */
static int execute_line(struct repl *repl, struct gd_buf *line, const char *what)
{
    int rc = line->failed ? GD_ELIMIT : repl_execute(repl, gd_buf_text(line));
    if (line->failed) {
        struct gd_err err;
        gd_fail(&err, GD_ELIMIT, "%s longer than %d bytes", what, PARSE_MAX_LINE);
        repl_print_error(repl, NULL, NULL, &err);
        repl_set_failed(repl, rc);
    }
    gd_buf_deinit(line);
    return rc;
}

static int execute_words(struct repl *repl, const char *command, char *const argv[],
                         const char *what)
{
    struct gd_buf line = GD_BUF_INIT(PARSE_MAX_LINE);

    gd_buf_puts(&line, command);
    for (size_t i = 0; argv[i]; i++) {
        gd_buf_putc(&line, ' ');
        gd_buf_put_quoted(&line, argv[i]);
    }
    return execute_line(repl, &line, what);
}

int repl_run_program(struct repl *repl, char *const argv[])
{
    return execute_words(repl, "run --", argv, "the program's arguments are");
}

int repl_diagnose(struct repl *repl, char *const argv[])
{
    return execute_words(repl, "diagnose", argv, "the program's arguments are");
}

int repl_open_files(struct repl *repl, char *const argv[])
{
    return execute_words(repl, "open", argv, "the names of the files are");
}

const struct command cmd_run = {
    .name = "run",
    .aliases = "r start",
    .group = "running",
    .usage = "run [--] [PROGRAM [ARGUMENT]...]",
    .summary = "Start a training program and stop it before its first step",
    .help = "The program's environment says where to connect: GRADB_ADDRESS and GRADB_TOKEN for\n"
            "gradb's agents; ENABLE_MS_DEBUGGER, MS_DEBUGGER_HOST and MS_DEBUGGER_PORT for\n"
            "MindSpore 1.1 to 2.3. For PyTorch and for MindSpore 2.7 and later, gradb puts a\n"
            "directory at the front of PYTHONPATH, and GRADB_LIBRARY names libgradb: the script\n"
            "needs no change, and may be started through torchrun, msrun, \"python -m\", a shell\n"
            "script or a virtual environment. An interpreter with -I, -E or -S ignores both\n"
            "variables: \"pip install ./python\", then \"run -- python -I -m gradb train.py\".\n"
            "\"info log\" shows the program's output. Without a program, start the last one again.",
    .examples = "run -- python train.py --epochs 3\n"
                "run -- torchrun --nproc-per-node 2 train.py",
    .args = {ARG_FILE},
    .flags = CMD_RAW | CMD_CHANGES,
    .run = run_run,
};

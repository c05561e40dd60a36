// SPDX-License-Identifier: GPL-3.0-or-later
/* How training processes come to us: run starts one, listen waits for others. */
#include "base/owner.h"
#include "engine/ranks.h"
#include "repl/core/commands.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/launch/launch_python.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#define STATUS_NO_CONNECTION 3

void repl_set_listen(struct repl *repl, const char *address)
{
    snprintf(repl->listen_address, sizeof(repl->listen_address), "%s", address);
    repl->listen_chosen = true;
}

/* ---- listening ---- */

#define DEFAULT_TCP "127.0.0.1:50051" /* MindSpore's, which knows no other address */

/* "127.0.0.1:50051", "localhost:1", "[::1]:1", ":1", "50051", "unix:/run/user/1000/x" */
static bool is_local(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;

    return gd_unix_path(address) || len == 0 || strncmp(address, "127.", 4) == 0 ||
           (len == 9 && strncasecmp(address, "localhost", 9) == 0) ||
           (len == 5 && strncmp(address, "[::1]", 5) == 0) ||
           (len == 3 && strncmp(address, "::1", 3) == 0);
}

/* Other hosts could reach us: a secret keeps strangers out. */
static int make_token(struct command_call *call, struct gd_err *err)
{
    char *token = call->debugger->settings.token;
    unsigned char random[16];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return gd_fail_errno(err, GD_EIO, "cannot make a random token");
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        snprintf(token + 2 * i, 3, "%02x", random[i]);
    }
    repl_printf(call->repl, false,
                "Trainers must show this token: GRADB_TOKEN=%s (\"set token\" changes it)\n",
                token);
    return GD_OK;
}

static int start_listening(struct command_call *call, const char *address, struct gd_err *err)
{
    struct gd_debugger *debugger = call->debugger;

    if (!debugger->server) {
        return gd_fail(err, GD_EUNSUPPORTED, "this gradb cannot listen");
    }
    int rc = debugger->server->listen(debugger->server_ctx, address, err);
    if (rc == GD_OK && !is_local(address) && debugger->settings.token[0] == '\0') {
        rc = make_token(call, err);
    }
    return rc;
}

static const char *listening_on(struct command_call *call)
{
    struct gd_debugger *debugger = call->debugger;
    return debugger->server ? debugger->server->address(debugger->server_ctx) : NULL;
}

static const char *socket_of(struct command_call *call)
{
    struct gd_debugger *debugger = call->debugger;
    return debugger->server ? debugger->server->socket(debugger->server_ctx) : NULL;
}

static void warn(struct command_call *call, const char *text, const char *hint)
{
    repl_printf(call->repl, false, "warning: %s%s\n", text, hint);
}

/* A socket in the user's own directory. A neighbour may have made that directory in /tmp: then TCP
 * is left, where the user of each end is checked as well. */
static int listen_at_home(struct command_call *call, const char *name, struct gd_err *err)
{
    char address[GD_SOCKET_PATH + sizeof(GD_UNIX_PREFIX)];
    char directory[GD_SOCKET_PATH - 30];
    int rc = gd_own_directory(directory, sizeof(directory), err);

    if (rc == GD_OK) {
        snprintf(address, sizeof(address), GD_UNIX_PREFIX "%s/%.28s", directory, name);
        rc = start_listening(call, address, err);
    }
    return rc;
}

/* Where training processes of this user look for a debugger, and MindSpore's port. */
static int listen_as_usual(struct command_call *call, struct gd_err *err)
{
    struct gd_err tcp_err = {.code = GD_OK};
    int rc = listen_at_home(call, GD_MEETING_POINT, err);

    if (rc == GD_ESTATE) {
        return rc; /* another gradb waits there */
    }
    int tcp = start_listening(call, DEFAULT_TCP, &tcp_err);
    if (rc != GD_OK && tcp == GD_OK) {
        warn(call, err->text, "; a training process finds gradb with GRADB_ADDRESS=" DEFAULT_TCP);
    } else if (rc == GD_OK && tcp != GD_OK) {
        warn(call, tcp_err.text, "; MindSpore processes cannot connect");
    } else if (rc != GD_OK) {
        warn(call, err->text, "");
        *err = tcp_err;
        return tcp;
    }
    return GD_OK;
}

/* What `run` starts finds us at a socket of this gradb's own; MindSpore at a port that is free. */
static int listen_for_run(struct command_call *call, struct gd_err *err)
{
    char name[32];
    unsigned short random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return gd_fail_errno(err, GD_EIO, "cannot get random bytes");
    }
    snprintf(name, sizeof(name), GD_RUN_PREFIX "%ld-%04x", (long)getpid(), random);
    int rc = listen_at_home(call, name, err);
    if (rc != GD_OK) {
        warn(call, err->text, "; listening on a TCP port of this host instead");
    }
    return start_listening(call, "127.0.0.1:0", err);
}

/* Waits until some session has stopped for the first time. */
struct first_stop {
    struct gd_debugger *debugger;
    int above; /* sessions with a greater number count */
    struct repl *repl;
};

static struct gd_session *new_session(const struct first_stop *first)
{
    for (size_t i = 0; i < first->debugger->session_count; i++) {
        if (first->debugger->sessions[i]->number > first->above) {
            return first->debugger->sessions[i];
        }
    }
    return NULL;
}

static int last_number(const struct gd_debugger *debugger)
{
    size_t count = debugger->session_count;
    return count > 0 ? debugger->sessions[count - 1]->number : 0;
}

static bool has_connected(void *ctx)
{
    return new_session(ctx) != NULL;
}

#define NOTICE_SECONDS 10.0 /* after which it is said which ranks are waited for */

static bool ranks_stand(void *ctx)
{
    const struct gd_ranks *ranks = ctx;
    return gd_ranks_settled(ranks) > 0 || gd_ranks_live(ranks) == 0;
}

static void tell_missing(struct command_call *call, const struct gd_ranks *ranks)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);

    if (gd_ranks_missing(ranks, &text)) {
        out_printf(call->out, "Waiting for rank %s of %d to connect (Ctrl-C: go on without)...\n",
                   gd_buf_text(&text), gd_ranks_world_size(ranks));
        out_flush(call->out);
    }
    gd_buf_deinit(&text);
}

/* All ranks of a job stand before the first step, or nobody waits for those that do not come. */
static int wait_ranks(struct command_call *call, struct gd_ranks *ranks, struct gd_err *err)
{
    int rc = GD_OK;

    out_flush(call->out);
    if (repl_wait(call->repl, ranks_stand, ranks, NOTICE_SECONDS) == GD_ETIMEOUT) {
        tell_missing(call, ranks);
        rc = repl_wait(call->repl, ranks_stand, ranks, -1);
    } else if (!ranks_stand(ranks)) {
        rc = GD_EINTR;
    }
    if (rc == GD_EINTR && call->repl->options.batch) {
        return gd_fail(err, rc, "interrupted before all ranks stood");
    }
    if (rc == GD_EINTR) {
        gd_ranks_give_up(ranks);
    }
    return GD_OK;
}

static int wait_first_stop(struct command_call *call, struct gd_session *session,
                           struct gd_err *err)
{
    struct gd_ranks *ranks = gd_ranks_of(session);
    int rc = GD_OK;

    gd_debugger_select(call->debugger, session->number, NULL);
    call->session = session;
    if (ranks && !call->background) {
        rc = wait_ranks(call, ranks, err);
        call->session = call->debugger->current;
    }
    if (rc == GD_OK && call->session) {
        rc = repl_wait_stop(call, 0, err);
    }
    call->session = call->debugger->current;
    if (rc == GD_ELOST || rc == GD_EINTR) {
        call->repl->fail_status = rc == GD_ELOST ? STATUS_NO_CONNECTION : 0;
    }
    return rc;
}

/* At the prompt a person wants to go on from here; the panes show it all as long as nobody came. */
static void tell_how_to_connect(struct command_call *call)
{
    const struct repl *repl = call->repl;
    struct gd_buf text = GD_BUF_INIT(16384);

    if (repl->options.interactive && !out_is_json(call->out) && !repl->lend) {
        repl_connect_short(call->debugger, out_width(call->out), &text);
        out_printf(call->out, "%s", gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
}

static void print_listening(struct command_call *call)
{
    const char *address = listening_on(call);
    const char *socket = socket_of(call);
    cJSON *record = out_record(call->out, "listen");
    bool both = address && socket && strcmp(address, socket) != 0;

    out_printf(call->out, "Listening on %s%s%s\n", address ? out_safe(call, address) : "?",
               both ? " and " : "", both ? out_safe(call, socket) : "");
    cJSON_AddStringToObject(record, "address", address ? address : "");
    if (socket) {
        cJSON_AddStringToObject(record, "socket", socket);
    }
}

static int run_listen(struct command_call *call, struct gd_err *err)
{
    const char *address = call->repl->listen_chosen ? call->repl->listen_address : NULL;
    struct first_stop first = {.debugger = call->debugger, .repl = call->repl};

    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "listen: one address is enough");
    }
    if (call->argc == 1) {
        address = call->argv[0];
    }
    int rc = address ? start_listening(call, address, err) : listen_as_usual(call, err);
    if (rc != GD_OK) {
        call->repl->fail_status = STATUS_NO_CONNECTION;
        return rc;
    }
    print_listening(call);
    if (!call->repl->options.batch) {
        tell_how_to_connect(call);
        return GD_OK;
    }
    out_flush(call->out);
    first.above = 0;
    rc = repl_wait(call->repl, has_connected, &first, -1);
    if (rc != GD_OK) {
        return gd_fail(err, rc, "interrupted before a training process connected");
    }
    return wait_first_stop(call, new_session(&first), err);
}

/* ---- starting a program ---- */

static bool connected_or_ended(void *ctx)
{
    const struct first_stop *first = ctx;
    return new_session(first) || !launch_is_running(first->repl);
}

/* Somewhere for the program to connect to. */
static int ensure_listening(struct command_call *call, struct gd_err *err)
{
    if (listening_on(call)) {
        return GD_OK;
    }
    return call->repl->listen_chosen ? start_listening(call, call->repl->listen_address, err)
                                     : listen_for_run(call, err);
}

/* Why it never connected, with the last thing that it said. */
static int never_connected(struct command_call *call, int rc, struct gd_err *err)
{
    struct repl *repl = call->repl;
    const char *program = launch_program(repl);
    const char *end = launch_end_text(repl);
    size_t lines = launch_log_count(repl);
    bool went_well = rc == GD_ETIMEOUT || strcmp(end, "exited with status 0") == 0;
    const char *hint = launch_python_hint(call->arena, launch_argv(repl), went_well);
    const char *between = hint ? "; " : "";

    hint = hint ? hint : "";
    repl->fail_status = STATUS_NO_CONNECTION;
    if (rc == GD_EINTR) {
        repl->fail_status = 0;
        return gd_fail(err, rc, "interrupted before %s connected", program);
    }
    if (rc == GD_ETIMEOUT) {
        return gd_fail(
            err, rc,
            "%s did not connect within %g s (set start-timeout); it is still running: does "
            "it use gradb?%s%s",
            program, call->debugger->settings.start_timeout, between, hint);
    }
    if (lines > 0) {
        return gd_fail(err, GD_ELOST, "%s %s before it connected; it said last: %.200s%s%s",
                       program, end, launch_log_line(repl, lines - 1), between, hint);
    }
    return gd_fail(err, GD_ELOST, "%s %s before it connected%s%s", program, end, between, hint);
}

static void print_start(struct command_call *call)
{
    char *const *argv = launch_argv(call->repl);
    cJSON *words = cJSON_AddArrayToObject(out_record(call->out, "run"), "argv");

    out_printf(call->out, "Starting program:");
    for (size_t i = 0; argv[i]; i++) {
        out_printf(call->out, " %s", out_safe(call, argv[i]));
        cJSON_AddItemToArray(words, cJSON_CreateString(argv[i]));
    }
    out_printf(call->out, "\n");
    cJSON_AddNumberToObject(out_record(call->out, "run"), "pid", (double)launch_pid(call->repl));
    out_flush(call->out);
}

static int start_program(struct command_call *call, char *const argv[], struct gd_err *err)
{
    struct repl *repl = call->repl;
    struct first_stop first = {.debugger = call->debugger, .repl = repl};

    if (launch_is_running(repl)) {
        if (!repl_confirm(call, "The program is running already. End it and start it again?")) {
            return GD_OK;
        }
        launch_kill(repl);
    }
    int rc = ensure_listening(call, err);
    first.above = last_number(call->debugger);
    if (rc == GD_OK) {
        rc = launch_start(repl, argv, listening_on(call), err);
    }
    if (rc != GD_OK) {
        repl->fail_status = STATUS_NO_CONNECTION;
        return rc;
    }
    print_start(call);
    double timeout = call->debugger->settings.start_timeout;
    rc = repl_wait(repl, connected_or_ended, &first, timeout > 0 ? timeout : -1);
    struct gd_session *session = new_session(&first);
    if (!session) {
        return never_connected(call, rc == GD_OK ? GD_ELOST : rc, err);
    }
    rc = wait_first_stop(call, session, err);
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
        return gd_fail(err, GD_EUSAGE, "run: the program is missing");
    }
    return start_program(call, launch_argv(call->repl), err);
}

/* One word as parse_words reads it back. */
static void add_quoted(struct gd_buf *line, const char *word)
{
    gd_buf_puts(line, " \"");
    for (const char *p = word; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            gd_buf_putc(line, '\\');
        }
        gd_buf_putc(line, *p);
    }
    gd_buf_putc(line, '"');
}

/* Runs the line, unless it grew too long. Frees it. */
static int execute(struct repl *repl, struct gd_buf *line, const char *what)
{
    int rc = line->failed ? GD_ELIMIT : repl_execute(repl, gd_buf_text(line));
    if (line->failed) {
        struct gd_err err;
        gd_fail(&err, GD_ELIMIT, "%s longer than %d bytes", what, PARSE_MAX_LINE);
        repl_print_error(repl, NULL, &err);
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
        add_quoted(&line, argv[i]);
    }
    return execute(repl, &line, what);
}

int repl_run_program(struct repl *repl, char *const argv[])
{
    return execute_words(repl, "run --", argv, "the program's arguments are");
}

int repl_open_files(struct repl *repl, char *const argv[])
{
    return execute_words(repl, "open", argv, "the names of the files are");
}

const struct command cmd_start_table[] = {
    {.name = "run",
     .aliases = "r start",
     .group = "running",
     .usage = "run [--] [PROGRAM [ARGUMENT]...]",
     .summary = "Start a training program and stop it before its first step",
     .help =
         "Its environment tells it where to connect: GRADB_ADDRESS and GRADB_TOKEN for gradb's\n"
         "agents, ENABLE_MS_DEBUGGER, MS_DEBUGGER_HOST and MS_DEBUGGER_PORT for MindSpore. For\n"
         "PyTorch a folder of gradb's stands in front of PYTHONPATH, and GRADB_LIBRARY names\n"
         "libgradb: the script is not changed, and torchrun, \"python -m\", a shell script or a\n"
         "virtual environment may stand in between. An interpreter with -I, -E or -S looks at\n"
         "neither: \"pip install ./python\", then \"run -- python -I -m gradb train.py\".\n"
         "Its output goes to \"info log\". Without a program the last one starts again.\n"
         "Examples:\n"
         "  run -- python train.py --epochs 3\n"
         "  run -- torchrun --nproc-per-node 2 train.py",
     .args = {ARG_FILE},
     .flags = CMD_RAW | CMD_CHANGES,
     .run = run_run},
    {.name = "listen",
     .group = "running",
     .usage = "listen [[ADDRESS:]PORT | unix:PATH]",
     .summary = "Wait for training processes that connect by themselves",
     .help =
         "Without an address gradb waits at a socket of yours, where your training processes\n"
         "look for a debugger, and on 127.0.0.1:50051 for MindSpore. A process of another user\n"
         "is refused. Port 0 takes a free one. From other hosts a token is needed.\n"
         "In batch mode the first process is waited for.\n"
         "A PyTorch script that is started by \"python -m gradb train.py\", or that calls\n"
         "gradb.torch.attach(), connects by itself, also in mid-run.\n"
         "Examples:\n"
         "  listen\n"
         "  listen 0.0.0.0:50051",
     .args = {ARG_WORD},
     .run = run_listen},
    {.name = NULL},
};

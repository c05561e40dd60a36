// SPDX-License-Identifier: GPL-3.0-or-later
#include "app.h"

#include <errno.h>
#include <ev.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "demo.h"
#include "drive/dap.h"
#include "drive/mcp.h"
#include "drive/serve_io.h"
#include "dump/dump.h"
#include "options.h"
#include "proto/server.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl.h"
#include "repl/line/line.h"
#include "repl/out/out_impl.h"
#include "repl/out/tty_out.h"
#include "resident/resident.h"
#include "tui/guard.h"
#include "tui/tui.h"

struct app {
    const struct app_options *options;
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_server *server;
    struct repl *repl;
    struct resident *resident; /* NULL: not interactive, or the socket could not be created */
    bool terminal;             /* stdin and stdout are a terminal */
    bool panes;                /* were opened */
    ev_signal interrupt, terminate, hangup;
    struct mcp *mcp;
    struct dap *dap;
    int served[2]; /* what the protocol reads and writes; of `serve` */
};

/* ---- signals ---- */

static void on_interrupt(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct app *app = watcher->data;

    (void)events;
    if (!app->options->batch) { /* in batch mode Ctrl-C ends gradb */
        tty_out_interrupted();
    }
    if (repl_interrupt(app->repl)) {
        return;
    }
    if (app->terminal && !app->options->batch) {
        line_interrupt(app->repl);
        return;
    }
    repl_quit_at_once(app->repl, STATUS_INTERRUPTED);
    ev_break(loop, EVBREAK_ALL);
}

static void on_terminate(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct app *app = watcher->data;

    (void)events;
    repl_quit_at_once(app->repl, STATUS_SIGNAL + watcher->signum);
    repl_interrupt(app->repl);
    ev_break(loop, EVBREAK_ALL);
}

static void on_hangup(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct app *app = watcher->data;

    if (app->resident) {
        resident_hangup(app->resident);
        return;
    }
    repl_let_go_at_end(app->repl); /* no session to attach to: as `on-hangup detach` */
    on_terminate(loop, watcher, events);
}

static volatile sig_atomic_t last_signal;

/* As libev's handler, and also interrupts output that is blocked on a slow reader: the loop cannot
 * do that. */
static void on_signal(int number)
{
    int saved = errno;

    last_signal = number;
    tty_out_interrupt();
    ev_feed_signal(number);
    errno = saved;
}

static void start_signal(struct app *app, ev_signal *watcher,
                         void (*fn)(struct ev_loop *, ev_signal *, int), int number)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    ev_signal_init(watcher, fn, number);
    watcher->data = app;
    ev_signal_start(app->loop, watcher);
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
    ev_unref(app->loop); /* signals alone do not keep the loop running */
}

/* Blocks signals during shutdown, so that a second Ctrl-C cannot interrupt it. */
static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void stop_signal(struct app *app, ev_signal *watcher)
{
    ev_ref(app->loop);
    ev_signal_stop(app->loop, watcher);
}

/* ---- terminal capabilities ---- */

static bool wants_color(const struct app_options *options)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (options->color != APP_AUTO) {
        return options->color == APP_ALWAYS;
    }
    return isatty(STDOUT_FILENO) && (!no_color || no_color[0] == '\0') && term && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

static bool has_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int get_terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

static struct repl_options make_repl_options(const struct app *app)
{
    return (struct repl_options){
        .batch = app->options->batch,
        .json = app->options->json || app->options->serve != SERVE_USER,
        .words = app->options->serve != SERVE_USER,
        .interactive = app->terminal && !app->options->batch,
        .color = wants_color(app->options),
        .utf8 = has_utf8(),
        .width = get_terminal_width(),
    };
}

/* ---- startup and shutdown ---- */

/* Runs $XDG_CONFIG_HOME/gradb/gradbrc or ~/.config/gradb/gradbrc. Errors in it are printed but do
 * not stop the startup. */
static void read_rc(struct app *app)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char path[4096];
    int len = -1;

    if (config && config[0] == '/') {
        len = snprintf(path, sizeof(path), "%s/gradb/gradbrc", config);
    } else if (home && home[0] == '/') {
        len = snprintf(path, sizeof(path), "%s/.config/gradb/gradbrc", home);
    }
    if (len < 0 || (size_t)len >= sizeof(path) || access(path, F_OK) != 0) {
        return;
    }
    repl_source(app->repl, path);
    repl_clear_status(app->repl);
}

static int run_mode(struct app *app)
{
    const struct app_options *options = app->options;

    switch (options->mode) {
    case APP_RUN: return repl_run_program(app->repl, options->program);
    case APP_DIAGNOSE: return repl_diagnose(app->repl, options->program);
    case APP_OPEN: return repl_open_files(app->repl, options->opened);
    case APP_LISTEN: return repl_execute(app->repl, "listen");
    case APP_DEMO: return demo_start(app->repl, app->terminal);
    default: return GD_OK;
    }
}

/* Runs -x and -ex in the order given. In batch mode a failure stops them, unless `on-error` is
 * "continue". */
static int run_commands(struct app *app)
{
    for (size_t i = 0; i < app->options->command_count && !repl_wants_quit(app->repl) &&
                       !repl_has_left(app->repl);
         i++) {
        const struct app_command *command = &app->options->commands[i];
        int rc = command->is_file ? repl_source(app->repl, command->text)
                                  : repl_execute(app->repl, command->text);
        if (app->options->batch && repl_batch_fails(app->repl, rc)) {
            return rc;
        }
    }
    return GD_OK;
}

static void print_greeting(const struct app *app)
{
    if (app->terminal && !app->options->quiet && !app->options->batch && !app->options->json) {
        tty_out_puts(STDOUT_FILENO, "gradb " GRADB_VERSION ". Type \"help\" for help.\n");
    }
}

/* The first line of --json. */
static void say_start(const struct app *app)
{
    const struct app_options *options = app->options;
    cJSON *record = options->json ? cJSON_CreateObject() : NULL;

    if (record) {
        out_set(record, OUT_TEXT("version", GRADB_VERSION), OUT_INT("protocol", OUT_JSON_VERSION),
                OUT_TEXT("mode", program_mode_name(options->mode)), OUT_INT("pid", getpid()));
        repl_write_json(app->repl, NULL, "start", record);
    }
}

static bool wait_for_terminal(struct app *app)
{
    if (!resident_wait(app->resident)) {
        return false;
    }
    repl_set_looks(app->repl, wants_color(app->options), has_utf8());
    repl_set_width(app->repl, get_terminal_width());
    return true;
}

static void print_problem(const char *what, const struct gd_err *err)
{
    char line[sizeof(err->text) + 80];

    snprintf(line, sizeof(line), "%s: %s\n", what, err->text);
    tty_out_puts(STDERR_FILENO, line);
}

/* Serves one terminal after the other, until gradb quits. */
static void run_terminals(struct app *app, bool panes)
{
    do {
        if (app->terminal) {
            tui_guard_begin();
        }
        if (!panes) {
            resident_replay(app->resident, wants_color(app->options));
            repl_run_prompt(app->repl); /* returns when gradb quits, or to open the panes */
        }
        if (!repl_wants_quit(app->repl) && !repl_has_left(app->repl)) {
            struct gd_err err = {.code = GD_OK};
            app->panes = panes = true;
            if (tui_run(app->loop, app->repl, &err) != GD_OK) {
                print_problem("error", &err);
                break;
            }
        }
        while (!repl_wants_quit(app->repl) && app->resident && !repl_has_left(app->repl)) {
            ev_run(app->loop, EVRUN_ONCE); /* wait for the SIGHUP of the lost terminal */
        }
    } while (!repl_wants_quit(app->repl) && app->resident && wait_for_terminal(app));
    tui_guard_end();
    tui_forget();
}

static int run_front_end(struct app *app)
{
    print_greeting(app);
    say_start(app);
    if (!app->options->no_rc) {
        read_rc(app);
    }
    int rc = run_mode(app);
    bool over = repl_batch_fails(app->repl, rc);
    if (over && !app->terminal) { /* no user can continue from here */
        int status = repl_exit_status(app->repl);
        return status != STATUS_OK ? status : STATUS_FAILED;
    }
    if (!over || !app->options->batch) {
        run_commands(app);
    }
    if (app->options->batch || (app->options->mode == APP_DEMO && !app->terminal)) {
        if (!repl_wants_quit(app->repl)) {
            repl_end_batch(app->repl);
        }
        return repl_exit_status(app->repl);
    }
    if (!repl_wants_quit(app->repl)) {
        run_terminals(app, app->options->tui);
    }
    repl_clear_status(app->repl); /* only batch mode reports failures by its status */
    return repl_exit_status(app->repl);
}

/* For programs: no greeting, no prompt; the client learns of a failure of the mode. */
static int run_mcp(struct app *app)
{
    struct gd_err err = {.code = GD_OK};

    if (mcp_create(app->repl, app->served[0], app->served[1], !app->options->allow_run, &app->mcp,
                   &err) != GD_OK) {
        print_problem("error", &err);
        return STATUS_FAILED;
    }
    mcp_begin(app->mcp);
    run_mode(app);
    run_commands(app);
    repl_set_read_only(app->repl, !app->options->allow_run); /* what the user typed may do more */
    mcp_serve(app->mcp);
    mcp_destroy(app->mcp);
    return STATUS_OK;
}

static int run_dap(struct app *app)
{
    struct gd_err err = {.code = GD_OK};

    if (dap_create(app->repl, app->served[0], app->served[1], &app->dap, &err) != GD_OK) {
        print_problem("error", &err);
        return STATUS_FAILED;
    }
    run_commands(app);
    dap_serve(app->dap);
    dap_destroy(app->dap);
    return STATUS_OK;
}

/* For programs: no greeting, no prompt. */
static int run_served(struct app *app)
{
    if (!app->options->no_rc) {
        read_rc(app);
    }
    int status = app->options->serve == SERVE_MCP ? run_mcp(app) : run_dap(app);
    repl_clear_status(app->repl);
    return status != STATUS_OK ? status : repl_exit_status(app->repl);
}

static int start_app(struct app *app, struct gd_err *err)
{
    int rc = gd_debugger_create(&app->debugger, err);
    if (rc != GD_OK) {
        return rc;
    }
    app->debugger->open_file = gd_dump_open;
    struct repl_options options = make_repl_options(app);
    rc = repl_create(app->loop, app->debugger, &options, &app->repl, err);
    if (rc == GD_OK) {
        tui_lend_screen(app->repl);
        rc = gd_server_create(app->loop, app->debugger, &app->server, err);
    }
    return rc;
}

/* `gradb sessions` and `gradb attach`: no debugger of its own. */
static int run_other(const struct app_options *options)
{
    struct gd_err err = {.code = GD_OK};
    int rc = options->mode == APP_SESSIONS
                 ? resident_list(options->json, &err)
                 : resident_attach(options->session, options->read_only, options->take, &err);

    if (rc != GD_OK) {
        fprintf(stderr, "error: %s\n", err.text);
    }
    return rc != GD_OK ? STATUS_FAILED : STATUS_OK;
}

/* Runs all commands and terminals; returns the exit status. */
static int run_session(struct app *app)
{
    const struct app_options *options = app->options;
    struct gd_err err = {.code = GD_OK};

    if (options->listen_address) {
        repl_set_listen(app->repl, options->listen_address);
    }
    start_signal(app, &app->interrupt, on_interrupt, SIGINT);
    start_signal(app, &app->terminate, on_terminate, SIGTERM);
    start_signal(app, &app->hangup, on_hangup, SIGHUP);
    if (app->terminal && !options->batch &&
        resident_create(app->loop, app->repl, NULL, &app->resident, &err) != GD_OK) {
        print_problem("warning: this session cannot survive the loss of its terminal", &err);
    }
    int status = options->serve == SERVE_USER ? run_front_end(app) : run_served(app);
    if (status == STATUS_OK && tty_out_gave_up()) { /* a signal arrived before the loop ran */
        status = STATUS_SIGNAL + last_signal;
    }
    repl_end(app->repl);
    if (!app->panes) { /* the panes already waited for the terminal */
        repl_out_wait(app->repl, 0);
    }
    tty_out_end(TTY_STUCK_MS);
    block_signals();
    stop_signal(app, &app->interrupt);
    stop_signal(app, &app->terminate);
    stop_signal(app, &app->hangup);
    return status;
}

int app_run(const struct app_options *options)
{
    if (options->mode == APP_SESSIONS || options->mode == APP_ATTACH) {
        return run_other(options);
    }
    struct app app = {.options = options};
    struct gd_err err = {.code = GD_OK};
    int status = STATUS_FAILED;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* report a file size limit as an error */
    if (options->serve != SERVE_USER && !serve_io_take(app.served)) {
        fprintf(stderr, "error: cannot use stdin and stdout\n");
        return STATUS_FAILED;
    }
    app.terminal = options->serve == SERVE_USER && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    app.loop = ev_default_loop(EVFLAG_AUTO);
    if (!app.loop) {
        fprintf(stderr, "error: cannot create the event loop\n");
        return STATUS_FAILED;
    }
    tty_out_begin(app.loop);
    if (start_app(&app, &err) == GD_OK) {
        status = run_session(&app);
    } else {
        fprintf(stderr, "error: %s\n", err.text);
    }
    tty_out_end(0);
    resident_destroy(app.resident);
    gd_server_destroy(app.server);
    repl_destroy(app.repl);
    gd_debugger_destroy(app.debugger);
    ev_loop_destroy(app.loop);
    return status;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/launch/launch.h"
#include "base/owner.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch_loss.h"
#include "repl/launch/launch_output.h"
#include "repl/launch/launch_python.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LOG_LINE  8192
#define KILL_PATIENCE 3.0 /* seconds between SIGTERM and SIGKILL */

extern char **environ;

struct repl_launch {
    pid_t pid;    /* 0 before the first start */
    bool alive;   /* not reaped */
    bool running; /* its end was not reported yet: its output comes first */
    bool detached;
    ev_child child;
    int status;   /* from waitpid */
    off_t end_at; /* size of its output when it ended */
    struct launch_output out;
    char **argv;
    char end_text[128];
    char refusal[512]; /* the first line of an agent that cannot attach, without "gradb: " */
    struct {           /* ring of lines */
        char **line;
        size_t room, first, count;
        uint64_t dropped;
    } log;
};

/* ---- the log ---- */

static struct repl_launch *get_launch(struct repl *repl)
{
    if (!repl->launch) {
        repl->launch = calloc(1, sizeof(*repl->launch));
        if (repl->launch) {
            repl->launch->out.fd = -1;
        }
    }
    return repl->launch;
}

static void log_drop_oldest(struct repl_launch *launch)
{
    free(launch->log.line[launch->log.first]);
    launch->log.first = (launch->log.first + 1) % launch->log.room;
    launch->log.count--;
    launch->log.dropped++;
}

/* Makes room for one more line. */
static bool log_reserve(struct repl_launch *launch, size_t max)
{
    while (launch->log.count > 0 && launch->log.count >= max) {
        log_drop_oldest(launch);
    }
    if (launch->log.count < launch->log.room) {
        return true;
    }
    size_t room = launch->log.room > 0 ? launch->log.room * 2 : 64;
    char **line = calloc(room, sizeof(*line));
    if (!line) {
        return false;
    }
    for (size_t i = 0; i < launch->log.count; i++) {
        line[i] = launch->log.line[(launch->log.first + i) % launch->log.room];
    }
    free(launch->log.line);
    launch->log.line = line;
    launch->log.room = room;
    launch->log.first = 0;
    return true;
}

void repl_launch_log(struct repl *repl, const char *text)
{
    struct repl_launch *launch = get_launch(repl);
    size_t max = (size_t)repl->debugger->settings.max_log_lines;

    if (!launch || max == 0 || !log_reserve(launch, max)) {
        return;
    }
    char *copy = strndup(text, MAX_LOG_LINE);
    if (copy) {
        launch->log.line[(launch->log.first + launch->log.count) % launch->log.room] = copy;
        launch->log.count++;
    }
}

size_t launch_log_count(const struct repl *repl)
{
    return repl->launch ? repl->launch->log.count : 0;
}

const char *launch_log_line(const struct repl *repl, size_t index)
{
    const struct repl_launch *launch = repl->launch;
    if (!launch || index >= launch->log.count) {
        return "";
    }
    return launch->log.line[(launch->log.first + index) % launch->log.room];
}

uint64_t launch_log_dropped(const struct repl *repl)
{
    return repl->launch ? repl->launch->log.dropped : 0;
}

/* ---- output ---- */

/* An agent that cannot attach writes why; the user should not wait for the end to read it. */
static void note_refusal(struct repl *repl, const char *text)
{
    static const char start[] = "gradb: ";
    static const char refuses[] = "gradb: cannot attach";
    struct repl_launch *launch = repl->launch;

    if (launch->refusal[0] != '\0' || strncmp(text, refuses, sizeof(refuses) - 1) != 0) {
        return;
    }
    snprintf(launch->refusal, sizeof(launch->refusal), "%s", text + sizeof(start) - 1);
    struct gd_event event = {.type = GD_EV_WARNING, .text = launch->refusal};
    gd_debugger_emit(repl->debugger, &event);
}

static void on_line(void *ctx, const char *text)
{
    struct repl *repl = ctx;
    struct gd_event event = {.type = GD_EV_LOG, .session = repl->debugger->current, .text = text};
    gd_debugger_emit(repl->debugger, &event);
    launch_take_loss(repl, repl->debugger->current, text);
    note_refusal(repl, text);
}

/* ---- the end ---- */

static void say_end(struct repl *repl, bool exited, int number)
{
    struct out_report report;
    struct repl_out *out = out_report_begin(&report, repl);
    cJSON *record = out_record(out, "exited");

    out_set(record, OUT_INT(exited ? "status" : "signal", number),
            OUT_INT("pid", repl->launch->pid));
    out_say(out, record, "The program {program} (pid {pid}) {end}.\n",
            OUT_TEXT("program", launch_program(repl)), OUT_TEXT("end", repl->launch->end_text));
    out_report_end(&report);
}

static void report_end(struct repl *repl, int status)
{
    struct repl_launch *launch = repl->launch;
    bool exited = WIFEXITED(status);
    int number = exited ? WEXITSTATUS(status) : WTERMSIG(status);

    if (exited) {
        snprintf(launch->end_text, sizeof(launch->end_text), "exited with status %d", number);
    } else {
        snprintf(launch->end_text, sizeof(launch->end_text), "was killed by signal %d (%s)", number,
                 strsignal(number));
    }
    if (status != 0 && repl->job.batch == BATCH_WHOLE_JOB) {
        repl->job.program_failed = true;
    } else if (status != 0) {
        repl_training_failed(repl);
    }
    bool quiet =
        repl->job.muted || (repl->job.batch != BATCH_ONE_STOP && status == 0); /* not of interest */
    if (!repl->end.closing && (!quiet || repl->options.json)) {
        say_end(repl, exited, number);
    }
}

/* Its last lines are reported before its end. Its own children may still write. */
static void on_read(void *ctx)
{
    struct repl *repl = ctx;
    struct repl_launch *launch = repl->launch;

    if (launch->alive || launch->out.reading) {
        return;
    }
    if (launch->running && (launch->out.at_end || launch->out.at >= launch->end_at)) {
        launch_output_end_line(&launch->out);
        launch->running = false;
        report_end(repl, launch->status);
    }
    if (!launch->running && launch->out.at_end && !launch_output_is_written(&launch->out)) {
        launch_output_end_line(&launch->out);
        launch_output_close(&launch->out);
    }
}

static void on_child(struct ev_loop *loop, ev_child *child, int events)
{
    struct repl *repl = child->data;
    struct repl_launch *launch = repl->launch;

    (void)events;
    ev_child_stop(loop, child);
    launch->alive = false;
    launch->status = child->rstatus;
    launch->end_at = launch_output_size(&launch->out);
    launch_output_read(&launch->out, (size_t)4 << 20);
    on_read(repl);
}

/* ---- the start ---- */

static char *make_variable(struct gd_arena *arena, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = gd_arena_alloc(arena, size);
    if (text) {
        snprintf(text, size, "%s=%s", name, value);
    }
    return text;
}

struct variable {
    const char *name;
    const char *value; /* NULL: not set */
};

/* These variables, then the rest of our own environment. */
static char **make_environment(struct gd_arena *arena, const struct variable *ours, size_t count)
{
    size_t have = 0;
    size_t used = 0;

    while (environ[have]) {
        have++;
    }
    char **list = gd_arena_alloc(arena, (have + count + 1) * sizeof(*list));
    for (size_t i = 0; list && i < count; i++) {
        if (!ours[i].value) {
            continue;
        }
        list[used] = make_variable(arena, ours[i].name, ours[i].value);
        if (!list[used++]) {
            return NULL;
        }
    }
    for (size_t i = 0; list && i < have; i++) {
        bool replaced = false;
        for (size_t k = 0; k < count; k++) {
            size_t len = strlen(ours[k].name);
            replaced =
                replaced || (strncmp(environ[i], ours[k].name, len) == 0 && environ[i][len] == '=');
        }
        if (!replaced) {
            list[used++] = environ[i];
        }
    }
    if (list) {
        list[used] = NULL;
    }
    return list;
}

/* Where gradb's agents connect: the socket, else the port. From this host, 127.0.0.1 reaches all
 * addresses and loopback names. */
static char *agent_address(struct repl *repl, const char *host, const char *port,
                           struct gd_arena *arena)
{
    const struct gd_server_ops *server = repl->debugger->server;
    const char *socket = server ? server->socket(repl->debugger->server_ctx) : NULL;
    char local[300];

    snprintf(local, sizeof(local), "%s:%s", host, port);
    return gd_arena_strdup(arena, socket ? socket : local);
}

/* The files of breakpoints at lines, and the functions of those without a file as ":FUNCTION", a
 * line each: a script with one attaches before it trains. NULL: there are none. */
static char *line_files(const struct repl *repl, struct gd_arena *arena)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    for (const struct gd_breakpoint *b = repl->debugger->breakpoints; b; b = b->next) {
        if (b->enabled && b->line) {
            bool any = b->line->file[0] == '\0';
            gd_buf_printf(&text, "%s%s%s", text.len > 0 ? "\n" : "", any ? ":" : "",
                          any ? b->line->function : b->line->file);
        }
    }
    char *copy = text.len > 0 ? gd_arena_strdup(arena, gd_buf_text(&text)) : NULL;
    gd_buf_deinit(&text);
    return copy;
}

static char **child_environment(struct repl *repl, const char *address, struct gd_arena *arena)
{
    bool tcp = gd_unix_path(address) == NULL;
    const char *colon = strrchr(address, ':');
    const char *port = colon ? colon + 1 : address;
    char *host = gd_arena_strndup(arena, address, colon ? (size_t)(colon - address) : 0);
    const char *token = repl->debugger->settings.token;
    const char *unbuffered = getenv("PYTHONUNBUFFERED");
    const char *job = getenv("GRADB_JOB");
    struct gd_buf level = GD_BUF_INIT(16), modules = GD_BUF_INIT(4096);
    struct launch_python python;
    char made[64];

    launch_python_find(arena, &python);
    if (host && (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0 ||
                 strcmp(host, "[::1]") == 0 || strcmp(host, "localhost") == 0)) {
        host = gd_arena_strdup(arena, "127.0.0.1");
    }
    char *here = host ? agent_address(repl, host, port, arena) : NULL;
    if (!here) {
        return NULL;
    }
    gd_log_levels_variables(&repl->debugger->settings.log_levels, &level, &modules);
    snprintf(made, sizeof(made), "run-%ld-%.0f", (long)getpid(), repl_now(repl) * 1000);
    struct variable ours[] = {
        {"GRADB_ADDRESS", here},
        {"GRADB_RUN", here}, /* a user waits for the agent */
        {"GRADB_TOKEN", token[0] != '\0' ? token : NULL},
        {"GRADB_JOB", job ? job : gd_arena_strdup(arena, made)},
        {"GRADB_DISABLE", NULL},
        {"GRADB_LINES", line_files(repl, arena)},
        {"ENABLE_MS_DEBUGGER", tcp ? "1" : NULL},
        {"MS_DEBUGGER_HOST", tcp ? host : NULL},
        {"MS_DEBUGGER_PORT", tcp ? port : NULL},
        {"PYTHONUNBUFFERED", unbuffered ? unbuffered : "1"},
        {"PYTHONPATH", python.path ? python.path : getenv("PYTHONPATH")},
        {"GRADB_LIBRARY", python.library ? python.library : getenv("GRADB_LIBRARY")},
        {"GLOG_v", level.len > 0 ? gd_buf_text(&level) : getenv("GLOG_v")},
        {"MS_SUBMODULE_LOG_v",
         modules.len > 0 ? gd_buf_text(&modules) : getenv("MS_SUBMODULE_LOG_v")},
    };
    char **list = make_environment(arena, ours, sizeof(ours) / sizeof(ours[0]));
    gd_buf_deinit(&level);
    gd_buf_deinit(&modules);
    return list;
}

/* In the child; never returns. In its own session no terminal signal reaches it, whatever happens
 * to gradb. `failed` carries the errno of a failed exec. */
static void exec_child(char *const argv[], char **env, int output, int failed)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);

    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    dup2(null, 0);
    dup2(output, 1);
    dup2(output, 2);
    execvpe(argv[0], argv, env);
    int code = errno;
    ssize_t written = write(failed, &code, sizeof(code));
    _exit(written == (ssize_t)sizeof(code) ? 127 : 126);
}

/* Waits until exec succeeds (the pipe closes) or reports its error. */
static int exec_error(int fd)
{
    int code = 0;
    ssize_t got;
    do {
        got = read(fd, &code, sizeof(code));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(code) ? code : 0;
}

static int fork_program(char *const argv[], char **env, int output, pid_t *ret, struct gd_err *err)
{
    int failed[2];

    if (pipe2(failed, O_CLOEXEC) != 0) {
        return gd_fail_errno(err, GD_EIO, "cannot start %s", argv[0]);
    }
    pid_t pid = fork();
    if (pid == 0) {
        exec_child(argv, env, output, failed[1]);
    }
    int why = pid < 0 ? errno : 0;
    close(failed[1]);
    why = pid > 0 ? exec_error(failed[0]) : why;
    close(failed[0]);
    errno = why;
    if (pid < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot start %s", argv[0]);
    }
    if (why != 0) {
        int rc = why == ENOENT ? GD_ENOTFOUND : GD_EIO;
        gd_fail_errno(err, rc, "cannot run %s", argv[0]);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        return rc;
    }
    *ret = pid;
    return GD_OK;
}

static void free_argv(struct repl_launch *launch)
{
    for (size_t i = 0; launch->argv && launch->argv[i]; i++) {
        free(launch->argv[i]);
    }
    free(launch->argv);
    launch->argv = NULL;
}

static int keep_argv(struct repl_launch *launch, char *const argv[])
{
    size_t count = 0;
    while (argv[count]) {
        count++;
    }
    char **copy = calloc(count + 1, sizeof(*copy));
    if (!copy) {
        return GD_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        copy[i] = strdup(argv[i]); /* argv may be the kept array: free it after copying */
    }
    free_argv(launch);
    launch->argv = copy;
    for (size_t i = 0; i < count; i++) {
        if (!copy[i]) {
            return GD_ENOMEM;
        }
    }
    return GD_OK;
}

static int may_start(struct repl *repl, const struct repl_launch *launch, struct gd_err *err)
{
    int rc = repl_check_seal(repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (launch->running) {
        return gd_fail(err, GD_ESTATE, "%s is already running: end it with \"kill\"",
                       launch_program(repl));
    }
    if (!ev_is_default_loop(repl->loop)) {
        return gd_fail(err, GD_EUNSUPPORTED, "programs can only be started from the default loop");
    }
    return GD_OK;
}

/* The previous program's children may still write to its file, so that file stays. */
static int open_output(struct repl *repl, const char *program, int *fd, struct gd_err *err)
{
    struct repl_launch *launch = repl->launch;

    launch_output_close(&launch->out);
    launch->out = (struct launch_output){.on_line = on_line, .on_read = on_read, .ctx = repl};
    return launch_output_open(&launch->out, program, fd, err);
}

static void begin_program(struct repl *repl, pid_t pid)
{
    struct repl_launch *launch = repl->launch;

    launch->pid = pid;
    launch->alive = launch->running = true;
    launch->detached = false;
    launch->end_text[0] = launch->refusal[0] = '\0';
    launch_output_watch(&launch->out, repl->loop, pid);
    ev_child_init(&launch->child, on_child, pid, 0);
    launch->child.data = repl;
    ev_child_start(repl->loop, &launch->child);
}

int launch_start(struct repl *repl, char *const argv[], const char *address, struct gd_err *err)
{
    struct repl_launch *launch = get_launch(repl);
    struct gd_arena arena;
    int fd = -1;
    pid_t pid = 0;

    if (!launch) {
        return gd_fail_nomem(err);
    }
    int rc = may_start(repl, launch, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_arena_init(&arena, (size_t)16 << 20);
    char **env = child_environment(repl, address, &arena);
    rc = env ? open_output(repl, argv[0], &fd, err) : gd_fail_nomem(err);
    if (rc == GD_OK) {
        rc = fork_program(argv, env, fd, &pid, err);
        close(fd);
    }
    gd_arena_deinit(&arena);
    if (rc == GD_OK) {
        begin_program(repl, pid);
        return keep_argv(launch, argv) == GD_OK ? GD_OK : gd_fail_nomem(err);
    }
    launch_output_close(&launch->out);
    return rc;
}

const char *launch_output_path(const struct repl *repl)
{
    return repl->launch && repl->launch->out.fd >= 0 ? repl->launch->out.path : "";
}

bool launch_is_running(const struct repl *repl)
{
    return repl->launch && repl->launch->running;
}

pid_t launch_pid(const struct repl *repl)
{
    return repl->launch ? repl->launch->pid : 0;
}

#define EXITING 0x4 /* the kernel's PF_EXITING: descriptors close before it is a zombie */

bool launch_has_process(const struct repl *repl, pid_t pid)
{
    char path[64], text[512];
    unsigned long flags = EXITING;

    if (!launch_is_running(repl) || pid <= 0 || getsid(pid) != repl->launch->pid) {
        return false;
    }
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[len] = '\0';
    const char *end = strrchr(text, ')'); /* of the name, which may contain anything */
    if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %lu", &flags) != 1) {
        return false;
    }
    return (flags & EXITING) == 0;
}

const char *launch_program(const struct repl *repl)
{
    bool known = repl->launch && repl->launch->argv && repl->launch->argv[0];
    return known ? repl->launch->argv[0] : "";
}

char *const *launch_argv(const struct repl *repl)
{
    return repl->launch ? repl->launch->argv : NULL;
}

const char *launch_refusal(const struct repl *repl)
{
    return repl->launch ? repl->launch->refusal : "";
}

const char *launch_end_text(const struct repl *repl)
{
    return repl->launch ? repl->launch->end_text : "";
}

static bool has_ended(void *ctx)
{
    return !((struct repl_launch *)ctx)->running;
}

void launch_wait(struct repl *repl, double seconds)
{
    if (launch_is_running(repl)) {
        repl_wait(repl, has_ended, repl->launch, seconds);
    }
}

static void signal_group(const struct repl_launch *launch, int number)
{
    if (launch->alive) { /* otherwise the pid may have been reused */
        kill(-launch->pid, number);
    }
}

void launch_kill(struct repl *repl)
{
    struct repl_launch *launch = repl->launch;
    enum repl_quit quit = repl->end.quit;
    bool muted = repl->job.muted;

    if (!launch_is_running(repl)) {
        return;
    }
    repl->end.quit = QUIT_NO; /* the waits below must continue while gradb quits */
    repl->job.muted = true;
    signal_group(launch, SIGTERM);
    signal_group(launch, SIGCONT);
    if (repl_wait(repl, has_ended, launch, KILL_PATIENCE) != GD_OK && launch->running) {
        signal_group(launch, SIGKILL);
        repl_wait(repl, has_ended, launch, KILL_PATIENCE);
    }
    repl->end.quit = quit;
    repl->job.muted = muted;
}

void launch_detach(struct repl *repl)
{
    if (launch_is_running(repl)) {
        repl->launch->detached = true;
    }
}

bool launch_is_detached(const struct repl *repl)
{
    return repl->launch && repl->launch->detached;
}

void repl_launch_free(struct repl *repl)
{
    struct repl_launch *launch = repl->launch;

    if (!launch) {
        return;
    }
    if (launch->alive) {
        ev_child_stop(repl->loop, &launch->child);
    }
    launch_output_close(&launch->out);
    while (launch->log.count > 0) {
        log_drop_oldest(launch);
    }
    free(launch->log.line);
    free_argv(launch);
    free(launch);
    repl->launch = NULL;
}

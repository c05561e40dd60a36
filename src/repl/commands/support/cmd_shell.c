// SPDX-License-Identifier: GPL-3.0-or-later
/* The world outside and the command line itself: shell, pipe, history, complete. */
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/line/line.h"
#include "repl/line/tty_out.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- shell ---- */

/* In the child: the user's shell runs the text. */
static void exec_shell(const char *text, int input)
{
    const char *shell = getenv("SHELL");
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
    }
    if (!shell || shell[0] != '/') {
        shell = "/bin/sh";
    }
    if (text[0] == '\0') {
        execl(shell, shell, (char *)NULL);
    } else {
        execl(shell, shell, "-c", text, (char *)NULL);
    }
    _exit(127);
}

/* A child that is waited for. */
struct child {
    ev_child watcher;
    bool ended;
};

static void on_child_end(struct ev_loop *loop, ev_child *watcher, int events)
{
    (void)events;
    ev_child_stop(loop, watcher);
    ((struct child *)watcher->data)->ended = true;
}

/* The loop runs meanwhile: a trainer that hears nothing for long gives its debugger up. */
static int wait_child(struct repl *repl, pid_t pid)
{
    struct child child = {.ended = false};

    ev_child_init(&child.watcher, on_child_end, pid, 0);
    child.watcher.data = &child;
    ev_child_start(repl->loop, &child.watcher);
    while (!child.ended && !repl->quit) {
        repl_pump(repl, -1);
    }
    ev_child_stop(repl->loop, &child.watcher);
    return child.watcher.rstatus;
}

/* Runs the text with `input` as its stdin (-1: ours), waits for its end. */
static int run_in_shell(const char *text, int input, pid_t *ret, struct gd_err *err)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        exec_shell(text, input);
    }
    if (pid < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot start a shell");
    }
    *ret = pid;
    return GD_OK;
}

/* The terminal and its Ctrl-C are the child's while it runs. */
static int lend_terminal(struct repl *repl, sigset_t *mask, struct gd_err *err)
{
    sigset_t block;

    if (!repl_out_wait(repl, 0)) { /* the child would write in front of it */
        return gd_fail(err, GD_EINTR, "interrupted before the program was started");
    }
    if (repl->lend) {
        repl->lend(repl->lend_ctx, true);
    }
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigprocmask(SIG_BLOCK, &block, mask);
    return GD_OK;
}

/* A Ctrl-C that was meant for the child is taken back. */
static void take_terminal(struct repl *repl, const sigset_t *mask)
{
    sigset_t interrupt;
    struct timespec now = {0, 0};

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    while (sigtimedwait(&interrupt, NULL, &now) == SIGINT) {
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (repl->lend) {
        repl->lend(repl->lend_ctx, false);
    }
}

static void shell_result(struct command_call *call, int status)
{
    cJSON *record = out_record(call->out, "shell");
    cJSON_AddNumberToObject(record, "status",
                            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int run_shell(struct command_call *call, struct gd_err *err)
{
    sigset_t mask;
    pid_t pid = 0;
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    out_flush(call->out);
    rc = lend_terminal(call->repl, &mask, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = run_in_shell(call->line, -1, &pid, err);
    if (rc == GD_OK) {
        shell_result(call, wait_child(call->repl, pid));
    }
    take_terminal(call->repl, &mask);
    return rc;
}

/* ---- pipe ---- */

/* What the command prints, as a temporary writer's context. */
struct capture {
    struct gd_buf text;
    repl_write_fn write;
    void *write_ctx;
};

static void capture_write(void *ctx, const char *text, size_t len, bool is_error)
{
    struct capture *capture = ctx;

    if (!is_error) {
        gd_buf_add(&capture->text, text, len);
    } else if (capture->write) {
        capture->write(capture->write_ctx, text, len, true);
    } else {
        tty_out_write(STDERR_FILENO, text, len);
    }
}

/* Text on its way to a child's stdin, as fast as the child takes it. */
struct feed {
    ev_io watcher;
    const struct gd_buf *text;
    size_t done;
    int fd; /* -1 once it is closed */
};

static void feed_end(struct ev_loop *loop, struct feed *feed)
{
    ev_io_stop(loop, &feed->watcher);
    if (feed->fd >= 0) {
        close(feed->fd);
    }
    feed->fd = -1;
}

static void on_feed(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct feed *feed = watcher->data;
    size_t left = feed->text->len - feed->done;
    ssize_t put = write(feed->fd, feed->text->data + feed->done, left);

    (void)events;
    if (put >= 0) {
        feed->done += (size_t)put;
    } else if (errno == EINTR || errno == EAGAIN) {
        return;
    }
    if (put < 0 || feed->done == feed->text->len) {
        feed_end(loop, feed); /* an error: it reads no more, as `head` does */
    }
}

static int feed_child(struct repl *repl, const struct gd_buf *text, int fd, pid_t pid)
{
    struct feed feed = {.text = text, .fd = fd};

    ev_io_init(&feed.watcher, on_feed, fd, EV_WRITE);
    feed.watcher.data = &feed;
    if (text->len > 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0) {
        ev_io_start(repl->loop, &feed.watcher);
    } else {
        feed_end(repl->loop, &feed);
    }
    int status = wait_child(repl, pid);
    feed_end(repl->loop, &feed);
    return status;
}

static int pipe_text(struct command_call *call, const struct gd_buf *text, const char *shell,
                     struct gd_err *err)
{
    sigset_t mask;
    pid_t pid = 0;
    int fds[2];
    int rc = repl_check_seal(call->repl, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = lend_terminal(call->repl, &mask, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (pipe2(fds, O_CLOEXEC) != 0) {
        take_terminal(call->repl, &mask);
        return gd_fail_errno(err, GD_EIO, "cannot make a pipe");
    }
    rc = run_in_shell(shell, fds[0], &pid, err);
    close(fds[0]);
    if (rc == GD_OK) {
        shell_result(call, feed_child(call->repl, text, fds[1], pid));
    } else {
        close(fds[1]);
    }
    take_terminal(call->repl, &mask);
    return rc;
}

/* Splits "COMMAND | SHELL" at the delimiter: "|", or what -d names. */
static int split_pipe(struct command_call *call, const char **command, const char **shell,
                      struct gd_err *err)
{
    const char *line = call->line;
    const char *delimiter = "|";

    if (strncmp(line, "-d ", 3) == 0) {
        const char *word = line + 3 + strspn(line + 3, " ");
        size_t len = strcspn(word, " ");
        delimiter = gd_arena_strndup(call->arena, word, len);
        line = word + len + strspn(word + len, " ");
    }
    const char *at = delimiter && delimiter[0] != '\0' ? strstr(line, delimiter) : NULL;
    if (!at) {
        return gd_fail(err, GD_EUSAGE, "pipe: \"%s\" and a shell command are missing",
                       delimiter ? delimiter : "|");
    }
    *command = gd_arena_strndup(call->arena, line, (size_t)(at - line));
    *shell = at + strlen(delimiter) + strspn(at + strlen(delimiter), " \t");
    if (!*command) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    if ((*command)[strspn(*command, " \t")] == '\0' || **shell == '\0') {
        return gd_fail(err, GD_EUSAGE, "pipe: a command is missing at one side of \"%s\"",
                       delimiter);
    }
    return GD_OK;
}

static int run_pipe(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;
    const char *command = NULL;
    const char *shell = NULL;
    struct capture capture = {.write = repl->write, .write_ctx = repl->write_ctx};
    int rc = split_pipe(call, &command, &shell, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_buf_init(&capture.text, (size_t)256 << 20);
    out_flush(call->out);
    repl->write = capture_write;
    repl->write_ctx = &capture;
    rc = repl_run_line(repl, command, LINE_SCRIPT);
    repl->write = capture.write;
    repl->write_ctx = capture.write_ctx;
    if (rc != GD_OK) {
        if (err) {
            *err = (struct gd_err){.code = rc}; /* said already */
        }
    } else {
        rc = pipe_text(call, &capture.text, shell, err);
    }
    gd_buf_deinit(&capture.text);
    return rc;
}

/* ---- history, complete ---- */

static int run_history(struct command_call *call, struct gd_err *err)
{
    const struct repl_lines *history = &call->repl->history;
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "history"), "lines");
    int64_t count = 20;

    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "history: at most a count");
    }
    if (call->argc == 1) {
        int rc = arg_count(call->argv[0], 1, INT32_MAX, &count, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    size_t first = history->count > (size_t)count ? history->count - (size_t)count : 0;
    for (size_t i = first; i < history->count; i++) {
        out_printf(call->out, "%5zu  %s\n", i + 1, out_safe(call, history->line[i]));
        if (out_is_json(call->out)) {
            cJSON_AddItemToArray(list, cJSON_CreateString(history->line[i]));
        }
    }
    return GD_OK;
}

static int run_complete(struct command_call *call, struct gd_err *err)
{
    size_t start = 0;
    size_t len = strlen(call->line);
    char **words = repl_complete(call->repl, call->line, len, &start);
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "completions"), "lines");

    (void)err;
    for (char **w = words; w && *w; w++) {
        size_t size = start + strlen(*w) + 1;
        char *whole = gd_arena_alloc(call->arena, size);
        if (whole) {
            snprintf(whole, size, "%.*s%s", (int)start, call->line, *w);
            out_printf(call->out, "%s\n", out_safe(call, whole));
            cJSON_AddItemToArray(list, cJSON_CreateString(whole));
        }
        free(*w);
    }
    free(words);
    return GD_OK;
}

/* ---- tui ---- */

static int run_tui(struct command_call *call, struct gd_err *err)
{
    const char *what = call->argc == 1 ? call->argv[0] : "enable";

    if (call->argc > 1 || (strcmp(what, "enable") != 0 && strcmp(what, "disable") != 0)) {
        return gd_fail(err, GD_EUSAGE, "tui: enable or disable is needed");
    }
    if (!call->repl->options.interactive) {
        return gd_fail(err, GD_EUNSUPPORTED, "panes need a terminal");
    }
    if (strcmp(what, "enable") == 0) {
        line_leave(
            call->repl); /* the prompt's caller opens the panes; in the panes it does nothing */
    } else {
        call->repl->prompt_wish = true;
    }
    return GD_OK;
}

const struct command cmd_shell_table[] = {
    {.name = "tui",
     .group = "support",
     .usage = "tui [enable | disable]",
     .summary = "Open the panes, or go back to the prompt",
     .help = "C-x a goes from one to the other. \"gradb --tui\" begins with the panes, F1 lists\n"
             "their keys.",
     .args = {ARG_CHOICE},
     .flags = CMD_IN_TUI,
     .run = run_tui},
    {.name = "disconnect",
     .group = "support",
     .usage = "disconnect",
     .summary = "Leave this terminal; the session stays, and so does what runs",
     .help =
         "The shell has the terminal again, and gradb goes on serving its trainers: what runs\n"
         "runs on. \"gradb attach\" comes back from any terminal. A terminal that is lost does\n"
         "as \"set on-hangup\" says.\n  disconnect\n",
     .flags = CMD_IN_TUI,
     .run = cmd_disconnect},
    {.name = "shell",
     .aliases = "!",
     .group = "support",
     .usage = "shell [COMMAND]",
     .summary = "Run a command of the operating system, or a shell",
     .help = "A line that begins with ! does the same.\n"
             "Example:\n"
             "  !nvidia-smi",
     .args = {ARG_WORD},
     .flags = CMD_RAW,
     .run = run_shell},
    {.name = "pipe",
     .aliases = "|",
     .group = "support",
     .usage = "pipe [-d DELIMITER] COMMAND | SHELL-COMMAND",
     .summary = "Send what a command prints to a shell command",
     .help =
         "A line that begins with | does the same. Where the command itself contains a |, name\n"
         "another delimiter.\n"
         "Examples:\n"
         "  pipe info nodes | grep MatMul\n"
         "  | info settings | less",
     .args = {ARG_COMMAND},
     .flags = CMD_RAW,
     .run = run_pipe},
    {.name = "history",
     .group = "support",
     .usage = "history [N]",
     .summary = "Show the last lines typed",
     .help = "Without N, twenty. Values that were printed are a history of their own: $1, $$.",
     .args = {ARG_WORD},
     .run = run_history},
    {.name = "complete",
     .group = "support",
     .usage = "complete LINE",
     .summary = "List what a line could be completed to",
     .help = "For other front ends: one completed line for each possibility.\n"
             "Example:\n"
             "  complete info g",
     .args = {ARG_COMMAND},
     .flags = CMD_RAW,
     .run = run_complete},
    {.name = NULL},
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: pipe */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "repl/commands/support/child.h"
#include "repl/core/repl_impl.h"
#include "repl/out/tty_out.h"
#include "repl/words/piped.h"

/* Collects what the command prints. */
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

/* Text for a child's stdin, written as fast as the child reads. */
struct feed {
    ev_io watcher;
    const struct gd_buf *text;
    size_t done;
    int fd; /* -1: closed */
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
        feed_end(loop, feed); /* error: the child stopped reading, as `head` does */
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
    int status = child_wait(repl, pid);
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
    rc = child_lend_terminal(call->repl, &mask, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (pipe2(fds, O_CLOEXEC) != 0) {
        child_take_terminal(call->repl, &mask);
        return gd_fail_errno(err, GD_EIO, "cannot make a pipe");
    }
    rc = child_run(shell, fds[0], &pid, err);
    close(fds[0]);
    if (rc == GD_OK) {
        child_result(call, feed_child(call->repl, text, fds[1], pid));
    } else {
        close(fds[1]);
    }
    child_take_terminal(call->repl, &mask);
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
    size_t bar = line == call->line ? piped_at(line) : 0;
    const char *at = bar > 0                             ? line + bar
                     : delimiter && delimiter[0] != '\0' ? strstr(line, delimiter)
                                                         : NULL;
    if (!at) {
        return gd_fail(err, GD_EUSAGE, "pipe: expected \"%s\" and a shell command",
                       delimiter ? delimiter : "|");
    }
    *command = gd_arena_strndup(call->arena, line, (size_t)(at - line));
    *shell = at + strlen(delimiter) + strspn(at + strlen(delimiter), " \t");
    if (!*command) {
        return gd_fail_nomem(err);
    }
    if ((*command)[strspn(*command, " \t")] == '\0' || **shell == '\0') {
        return gd_fail(err, GD_EUSAGE, "pipe: a command is missing on one side of \"%s\"",
                       delimiter);
    }
    return GD_OK;
}

static int run_pipe(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;
    const char *command = NULL;
    const char *shell = NULL;
    struct capture capture = {.write = repl->front.write, .write_ctx = repl->front.write_ctx};
    int rc = split_pipe(call, &command, &shell, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_buf_init(&capture.text, (size_t)256 << 20);
    out_flush(call->out);
    repl->front.write = capture_write;
    repl->front.write_ctx = &capture;
    bool before = repl->front.captured;
    repl->front.captured = true;
    rc = repl_run_line(repl, command, LINE_SCRIPT);
    repl->front.write = capture.write;
    repl->front.write_ctx = capture.write_ctx;
    repl->front.captured = before;
    if (rc != GD_OK) {
        if (err) {
            *err = (struct gd_err){.code = rc}; /* already reported */
        }
    } else {
        rc = pipe_text(call, &capture.text, shell, err);
    }
    gd_buf_deinit(&capture.text);
    return rc;
}

const struct command cmd_pipe = {
    .name = "pipe",
    .aliases = "|",
    .group = "support",
    .usage = "pipe [-d DELIMITER] COMMAND | SHELL-COMMAND",
    .summary = "Send the output of a command to a shell command",
    .help =
        "The word pipe can be left out: info nodes | head. Then the bar must have a blank before\n"
        "it and a program after it, outside of quotes, brackets and /regexes/; commands that\n"
        "take a whole line as it is (watch, break, set, echo, shell) need the word. A line that\n"
        "begins with | does the same. If the command itself contains a |, choose another\n"
        "delimiter.",
    .examples = "info nodes | grep linear\n"
                "pipe info nodes | head -5\n"
                "pipe -d @ search /a|b/ @ wc -l\n"
                "| info settings | less",
    .args = {ARG_COMMAND},
    .flags = CMD_RAW,
    .run = run_pipe,
};

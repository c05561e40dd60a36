// SPDX-License-Identifier: GPL-3.0-or-later
#define _GNU_SOURCE 1
#include "repl/out/tty_out.h"

#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "repl/out/tty.h"

#define MOST          ((size_t)4 << 20)  /* bytes that wait before text is left out */
#define TIDY          ((size_t)64 << 10) /* sent bytes kept before those that wait */
#define STREAMS       (STDERR_FILENO + 1)
#define LOOK_AGAIN_MS 200  /* for a signal that arrives between the check and the wait */
#define LAST_MS       1000 /* that a reader has after a signal */

static struct {
    struct ev_loop *loop; /* NULL: there is no terminal */
    bool leads[STREAMS];  /* the stream is that terminal */
    int fd;               /* to write to */
    bool own;             /* opened by us, non-blocking */
    ev_io writable;
    struct gd_buf text;
    size_t sent;     /* of it */
    size_t left_out; /* lines */
    void (*when_empty)(void *ctx);
    void *when_empty_ctx;
    FILE *file;
} out = {.fd = -1, .text = GD_BUF_INIT(SIZE_MAX)};

size_t tty_out_waiting(void)
{
    return out.text.len - out.sent;
}

/* ---- sending ---- */

/* Sends as much as the terminal takes now. A descriptor that is not ours may block: poll only
 * guarantees one byte. -1 with EAGAIN: nothing. */
static ssize_t send_some(const char *text, size_t len)
{
    struct pollfd look = {.fd = out.fd, .events = POLLOUT};

    if (out.own) {
        return write(out.fd, text, len);
    }
    if (poll(&look, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(out.fd, text, 1);
}

static void drop_sent(void)
{
    if (out.sent == out.text.len) {
        gd_buf_clear(&out.text);
        out.sent = 0;
    } else if (out.sent >= TIDY) {
        memmove(out.text.data, out.text.data + out.sent, out.text.len - out.sent);
        out.text.len -= out.sent;
        out.sent = 0;
    }
}

/* Marks the place of omitted text. */
static void add_note(void)
{
    if (out.left_out > 0) {
        gd_buf_printf(&out.text, "\n[%zu lines are left out: the terminal took nothing]\n",
                      out.left_out);
        out.left_out = 0;
    }
}

static void send_on(void)
{
    while (tty_out_waiting() > 0) {
        ssize_t done = send_some(out.text.data + out.sent, tty_out_waiting());
        if (done < 0 && errno == EAGAIN) {
            break;
        }
        if (done < 0 && errno != EINTR) {
            out.sent = out.text.len; /* it is gone: SIGHUP follows */
            out.left_out = 0;
        }
        out.sent += done > 0 ? (size_t)done : 0;
        if (tty_out_waiting() == 0) {
            drop_sent();
            add_note();
        }
    }
    drop_sent();
}

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    send_on();
    if (tty_out_waiting() > 0) {
        return;
    }
    ev_io_stop(loop, io);
    if (out.when_empty) {
        out.when_empty(out.when_empty_ctx);
    }
}

/* ---- the terminal ---- */

static bool same_file(int a, int b)
{
    struct stat one, other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

void tty_out_begin(struct ev_loop *loop)
{
    int shown = isatty(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO;

    tty_out_end(0);
    if (!isatty(shown)) {
        return;
    }
    for (int fd = 0; fd < STREAMS; fd++) {
        out.leads[fd] = fd == shown || (fd == STDERR_FILENO && same_file(fd, shown));
    }
    out.fd = tty_open_again(shown);
    out.own = out.fd >= 0;
    if (!out.own) {
        out.fd = shown;
    }
    out.loop = loop;
    ev_io_init(&out.writable, on_writable, out.fd, EV_WRITE);
}

void tty_out_end(int patience_ms)
{
    struct pollfd fd = {.fd = out.fd, .events = POLLOUT};

    if (!out.loop) {
        return;
    }
    if (out.file) {
        fflush(out.file);
    }
    send_on();
    while (tty_out_waiting() > 0 && poll(&fd, 1, patience_ms) != 0) {
        send_on();
    }
    ev_io_stop(out.loop, &out.writable);
    if (out.own) {
        close(out.fd);
    }
    gd_buf_deinit(&out.text);
    out.sent = out.left_out = 0;
    memset(out.leads, 0, sizeof(out.leads));
    out.own = false;
    out.fd = -1;
    out.loop = NULL;
}

/* ---- text ---- */

/* Set by a signal handler: stop waiting for the reader. */
static volatile sig_atomic_t interrupted;
static bool given_up; /* the reader has taken nothing since */

void tty_out_interrupt(void)
{
    interrupted = 1;
}

void tty_out_interrupted(void)
{
    interrupted = 0;
    given_up = false;
}

bool tty_out_gave_up(void)
{
    return given_up;
}

/* Whether the reader may be slow or missing. */
static bool may_wait(int fd)
{
    struct stat status;

    return fstat(fd, &status) != 0 || !S_ISREG(status.st_mode);
}

/* Waits until the reader takes more, perhaps for ever. False: a signal arrived and the reader takes
 * nothing. */
static bool wait_for_reader(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    int waited = 0;

    while (poll(&look, 1, given_up ? 0 : LOOK_AGAIN_MS) <= 0) {
        waited += interrupted ? LOOK_AGAIN_MS : 0;
        given_up = given_up || waited > LAST_MS;
        if (given_up) {
            return false;
        }
    }
    return true;
}

/* Writes all bytes; drops the rest after a signal if the reader takes nothing. For a pipe, poll
 * guarantees PIPE_BUF bytes. */
static bool write_all(int fd, const char *text, size_t len)
{
    size_t most = may_wait(fd) ? PIPE_BUF : SIZE_MAX;

    while (len > 0) {
        if (most < SIZE_MAX && !wait_for_reader(fd)) {
            return true;
        }
        ssize_t done = write(fd, text, len < most ? len : most);
        if (done < 0 && errno != EINTR && errno != EAGAIN) {
            return false;
        }
        text += done > 0 ? done : 0;
        len -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

static size_t count_lines(const char *text, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        count += text[i] == '\n';
    }
    return count;
}

static bool put_text(int fd, const char *text, size_t len)
{
    if (!out.loop || !out.leads[fd]) {
        return write_all(fd, text, len);
    }
    if (tty_out_waiting() >= MOST || gd_buf_add(&out.text, text, len) != GD_OK) {
        out.left_out += count_lines(text, len);
        return true;
    }
    send_on();
    if (tty_out_waiting() > 0) {
        ev_io_start(out.loop, &out.writable);
    }
    return true;
}

bool tty_out_write(int fd, const char *text, size_t len)
{
    if (out.file) {
        fflush(out.file);
    }
    return put_text(fd, text, len);
}

bool tty_out_puts(int fd, const char *text)
{
    return tty_out_write(fd, text, strlen(text));
}

void tty_out_drop(void)
{
    const char *rest = gd_buf_text(&out.text) + out.sent;
    const char *end = memchr(rest, '\n', tty_out_waiting());

    if (end) {
        out.text.len = (size_t)(end + 1 - gd_buf_text(&out.text));
    }
    out.left_out = 0;
}

void tty_out_when_empty(void (*fn)(void *ctx), void *ctx)
{
    out.when_empty = fn;
    out.when_empty_ctx = ctx;
}

/* ---- as a FILE ---- */

static ssize_t file_write(void *ctx, const char *bytes, size_t len)
{
    (void)ctx;
    put_text(STDOUT_FILENO, bytes, len);
    return (ssize_t)len; /* otherwise it is sent again */
}

FILE *tty_out_file(void)
{
    if (!out.file) {
        out.file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = file_write});
    }
    return out.file;
}

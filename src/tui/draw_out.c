// SPDX-License-Identifier: GPL-3.0-or-later
#define _GNU_SOURCE 1
#include "tui/draw_out.h"
#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "repl/out/tty.h"

struct draw_out {
    FILE *file; /* curses writes to it; its descriptor refers to the terminal or to `caught` */
    int caught; /* memory */
    /* opened again, because it must not block and stdout is shared; -1: could not be opened */
    int terminal;
    bool catches;
    char *waiting; /* caught earlier, not sent yet */
    size_t at, len, room;
};

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

int draw_out_open(struct draw_out **ret, struct gd_err *err)
{
    struct draw_out *out = calloc(1, sizeof(*out));
    int fd = out ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

    if (fd >= 0) {
        out->file = fdopen(fd, "w");
    }
    if (!out || !out->file) {
        int rc = gd_fail_errno(err, GD_EIO, "cannot open the terminal");
        close_fd(fd);
        free(out);
        return rc;
    }
    out->caught = memfd_create("gradb-screen", MFD_CLOEXEC);
    out->terminal = out->caught >= 0 ? tty_open_again(STDOUT_FILENO) : -1;
    *ret = out;
    return GD_OK;
}

void draw_out_close(struct draw_out *out)
{
    if (!out) {
        return;
    }
    fclose(out->file);
    close_fd(out->caught);
    close_fd(out->terminal);
    free(out->waiting);
    free(out);
}

FILE *draw_out_file(struct draw_out *out)
{
    return out->file;
}

void draw_out_catch(struct draw_out *out)
{
    if (out->terminal >= 0 && !out->catches) {
        out->catches = dup3(out->caught, fileno(out->file), O_CLOEXEC) >= 0;
    }
}

/* Takes what curses has written since the last call. */
static void collect_output(struct draw_out *out)
{
    off_t written = lseek(out->caught, 0, SEEK_CUR);

    if (written <= 0) {
        return;
    }
    char *waiting = gd_grow_to(out->waiting, out->len + (size_t)written, &out->room, 1);
    if (!waiting) {
        return; /* it stays in the file */
    }
    out->waiting = waiting;
    ssize_t got = pread(out->caught, out->waiting + out->len, (size_t)written, 0);
    out->len += got > 0 ? (size_t)got : 0;
    if (lseek(out->caught, 0, SEEK_SET) != 0 || ftruncate(out->caught, 0) != 0) {
        out->len = out->at; /* would be sent twice */
    }
}

bool draw_out_send(struct draw_out *out)
{
    if (!out->catches) {
        struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
        /* also true when the terminal is gone, so that nothing waits for it */
        return poll(&fd, 1, 0) != 0;
    }
    collect_output(out);
    while (out->at < out->len) {
        ssize_t sent = write(out->terminal, out->waiting + out->at, out->len - out->at);
        if (sent < 0 && errno == EAGAIN) {
            return false;
        }
        if (sent < 0 && errno != EINTR) {
            break; /* the terminal is gone */
        }
        out->at += sent > 0 ? (size_t)sent : 0;
    }
    out->at = out->len = 0;
    return true;
}

/* From now on, what curses writes is discarded. */
static void give_up(struct draw_out *out)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    out->at = out->len = 0;
    if (nowhere >= 0) {
        dup3(nowhere, fileno(out->file), O_CLOEXEC);
        close(nowhere);
    }
}

/* The timeout applies to the first byte of each write: a slow terminal gets all the time it
 * needs. */
bool draw_out_release(struct draw_out *out, int most_ms)
{
    struct pollfd fd = {.fd = out->catches ? out->terminal : STDOUT_FILENO, .events = POLLOUT};

    while (!draw_out_send(out)) {
        int ready = poll(&fd, 1, most_ms);
        if (ready == 0) {
            give_up(out);
            return false;
        }
        if (ready < 0 && errno != EINTR) {
            break;
        }
    }
    if (out->catches) {
        out->catches = dup3(STDOUT_FILENO, fileno(out->file), O_CLOEXEC) < 0;
    }
    return true;
}

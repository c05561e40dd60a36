// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The output of the program that `run` starts: a file that the program writes and gradb reads while
 * it grows. The program needs no reader: when gradb is killed, it keeps writing and the file stays.
 * Both streams share one open file, so their lines keep their order. Every process that still
 * writes holds a shared flock on it. gradb frees what it has read, except for the last megabytes.
 */
#ifndef GD_REPL_LAUNCH_OUTPUT_H
#define GD_REPL_LAUNCH_OUTPUT_H

#include <ev.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

struct launch_output {
    void (*on_line)(void *ctx, const char *text);
    void (*on_read)(void *ctx); /* after each read */
    void *ctx;
    struct ev_loop *loop;
    int fd;              /* -1: closed */
    int notify;          /* inotify; -1: only the timer */
    char path[PATH_MAX]; /* "": in memory */
    off_t at;            /* read so far */
    off_t freed, reserved;
    bool at_end;  /* the last read found nothing more */
    bool reading; /* inside on_line */
    struct gd_buf line;
    ev_io io;
    ev_timer timer;
};

/* Creates the file. *program_fd becomes the program's stdout and stderr; the caller closes it after
 * the fork. Set the callbacks first. GD_EIO: neither a file nor memory. */
int launch_output_open(struct launch_output *output, const char *program, int *program_fd,
                       struct gd_err *err);
/* After the fork: names the file after the process and reads it from the loop. */
void launch_output_watch(struct launch_output *output, struct ev_loop *loop, pid_t pid);
/* Reads at most `max` bytes and calls on_line, but not on_read. */
void launch_output_read(struct launch_output *output, size_t max);
off_t launch_output_size(const struct launch_output *output);
/* Ends a last line that has no newline. */
void launch_output_end_line(struct launch_output *output);
/* Whether a process still has it open for writing. */
bool launch_output_is_written(const struct launch_output *output);
/* Stops reading. Removes the file unless it is still written. */
void launch_output_close(struct launch_output *output);

/* Output files of programs that outlived their gradb. */
struct launch_left {
    const char *path;
    const char *program;
    long pid;
    bool running; /* it is still written */
};
/* Calls fn for each; removes those not written for a week. */
void launch_output_left(void (*fn)(void *ctx, const struct launch_left *left), void *ctx);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The output of a program that `run` starts: a file that the program writes and gradb reads as it
 * grows. The program needs no reader: when gradb is killed it writes on, and the file stays. Both
 * streams share one open file, so their lines keep their order. Everyone who still writes holds a
 * shared flock on it. gradb frees what it has read, except for the last megabytes.
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
    void (*on_read)(void *ctx); /* after each look at the file */
    void *ctx;
    struct ev_loop *loop;
    int fd;              /* -1: closed */
    int notify;          /* inotify; -1: the timer alone */
    char path[PATH_MAX]; /* "": no folder takes the file, it is in memory */
    off_t at;            /* read so far */
    off_t freed, reserved;
    bool at_end;  /* nothing was left at the last look */
    bool reading; /* inside on_line */
    struct gd_buf line;
    ev_io io;
    ev_timer timer;
};

/* Creates the file and returns in *program_fd what becomes the program's stdout and stderr; the
 * caller closes it after the fork. The callbacks must be set. GD_EIO: no file and no memory. */
int launch_output_open(struct launch_output *output, const char *program, int *program_fd,
                       struct gd_err *err);
/* After the fork: names the file after the process, and reads it from the loop. */
void launch_output_watch(struct launch_output *output, struct ev_loop *loop, pid_t pid);
/* Reads what is there, `max` bytes at most, and calls on_line; not on_read. */
void launch_output_read(struct launch_output *output, size_t max);
off_t launch_output_size(const struct launch_output *output);
/* A last line without a newline is a line. */
void launch_output_end_line(struct launch_output *output);
/* Whether a process still has it open for writing. */
bool launch_output_is_written(const struct launch_output *output);
/* Stops reading. The file is removed unless somebody still writes it. */
void launch_output_close(struct launch_output *output);

/* Files of programs whose gradb ended before them. */
struct launch_left {
    const char *path;
    const char *program;
    long pid;
    bool running; /* somebody still writes it */
};
/* Calls fn for each, and removes those that nobody has written for a week. */
void launch_output_left(void (*fn)(void *ctx, const struct launch_left *left), void *ctx);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The exit status of gradb, as docs and scripts know it. Without --batch only a status that `quit`
 * or a signal asked for is given, else 0.
 */
#ifndef GD_REPL_EXIT_STATUS_H
#define GD_REPL_EXIT_STATUS_H

struct repl;

enum exit_status {
    STATUS_OK = 0,
    STATUS_FAILED = 1, /* a command failed, or a breakpoint never matched */
    STATUS_USAGE = 2,  /* gradb's own options are wrong */
    STATUS_NO_CONNECTION = 3,
    STATUS_WATCHPOINT = 4,      /* one fired */
    STATUS_TRAINING_FAILED = 5, /* the script, by its status or an exception */
    STATUS_DIFFERS = 6,         /* what was compared, or a checked file has non-finite values */
    STATUS_SIGNAL = 128,        /* + the signal's number */
    STATUS_INTERRUPTED = 130,   /* SIGINT */
};

/* The one place that says which of two results counts. */
enum exit_status exit_status_after(enum exit_status so_far, enum exit_status next);
/* Something happened that counts. */
void repl_add_status(struct repl *repl, enum exit_status status);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The event loop inside a command: waiting, and the progress line meanwhile. What a command calls
 * is in command.h (repl_wait, repl_fetch, repl_stats, repl_command).
 */
#ifndef GD_REPL_WAIT_H
#define GD_REPL_WAIT_H

#include <stdbool.h>

#include "engine/progress.h"

struct repl;

/* Of the REPL: what it is doing right now. */
struct repl_busy {
    int depth;           /* commands within commands */
    bool pumping;        /* the loop runs inside a command */
    bool waiting;        /* a foreground command waits: Ctrl-C is for it */
    bool progress_shown; /* the progress line is on the terminal, since: */
    double progress_at;
    bool interrupted_known; /* Ctrl-C came while this work was in progress: */
    struct gd_progress_info interrupted_at;
};

/* Runs the loop once, for so many seconds at most; < 0: until something happens. */
void repl_pump(struct repl *repl, double max_seconds);
/* How long the loop may sleep so that the line keeps moving; negative: for ever. */
double repl_progress_patience(struct repl *repl, double seconds);
void repl_progress_show(struct repl *repl);
void repl_progress_clear(struct repl *repl);
double repl_now(struct repl *repl);

#endif

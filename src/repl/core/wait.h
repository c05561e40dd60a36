// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The event loop inside a command: waiting, and the progress line. Commands use repl_wait,
 * repl_fetch, repl_stats and repl_command in command.h.
 */
#ifndef GD_REPL_WAIT_H
#define GD_REPL_WAIT_H

#include <stdbool.h>

#include "engine/progress.h"

struct repl;

/* What the REPL is doing now. */
struct repl_busy {
    int depth;           /* nesting of commands */
    bool pumping;        /* the loop runs inside a command */
    bool waiting;        /* a foreground command waits: Ctrl-C interrupts it */
    bool progress_shown; /* the progress line is on the terminal, since: */
    double progress_at;
    bool interrupted_known; /* Ctrl-C came while this work was in progress: */
    struct gd_progress_info interrupted_at;
};

/* Runs the loop once, for at most max_seconds; < 0: until something happens. */
void repl_pump(struct repl *repl, double max_seconds);
/* How long the loop may sleep without delaying the progress line; negative: no limit. */
double repl_progress_patience(struct repl *repl, double seconds);
void repl_progress_show(struct repl *repl);
void repl_progress_clear(struct repl *repl);
double repl_now(struct repl *repl);

#endif

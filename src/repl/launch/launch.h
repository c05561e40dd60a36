// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The program that `run` starts: its environment, its process group, its output as a bounded log,
 * its end. One at a time; the log also takes lines that trainers send over the wire. Needs libev's
 * default loop, which owns SIGCHLD.
 */
#ifndef GD_REPL_LAUNCH_H
#define GD_REPL_LAUNCH_H

#include <sys/types.h>

#include "repl/core/repl.h"

/* Starts argv[0] (looked up in PATH) with the variables of both wire services pointing to us;
 * `address` is what the server listens on. GD_ENOTFOUND / GD_EIO: it could not be executed, and
 * why; GD_ESTATE: one is running. */
int launch_start(struct repl *repl, char *const argv[], const char *address, struct gd_err *err);
bool launch_is_running(const struct repl *repl);
pid_t launch_pid(const struct repl *repl); /* 0 when none was started */
/* Whether a process that the program is, or has started, lives and does not end right now. */
bool launch_has_process(const struct repl *repl, pid_t pid);
const char *launch_program(const struct repl *repl); /* "" when none was started */
char *const *launch_argv(const struct repl *repl);   /* of the last one; NULL when none */
/* How it ended ("exited with status 1", "was killed by signal 9 (Killed)"); "" while it runs. */
const char *launch_end_text(const struct repl *repl);
/* Waits for its end, so many seconds at most. */
void launch_wait(struct repl *repl, double seconds);
/* Asks its process group to end, then makes it; waits for the end. */
void launch_kill(struct repl *repl);
/* From now on it is not ours: it is not killed at the end. */
void launch_detach(struct repl *repl);
bool launch_is_detached(const struct repl *repl);
/* The file that it writes; "" when none was started, all have closed it, or it is in memory. */
const char *launch_output_path(const struct repl *repl);

/* The log: lines 0 (oldest kept) to count - 1. */
size_t launch_log_count(const struct repl *repl);
const char *launch_log_line(const struct repl *repl, size_t index);
uint64_t launch_log_dropped(const struct repl *repl); /* lines that gave way to newer ones */

#endif

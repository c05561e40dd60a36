// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The program that `run` starts: its environment, process group, end, and output as a bounded log.
 * One at a time. The log also takes lines that training processes send. Needs libev's default loop,
 * which handles SIGCHLD.
 */
#ifndef GD_REPL_LAUNCH_H
#define GD_REPL_LAUNCH_H

#include <sys/types.h>

#include "repl/core/repl.h"

/* Starts argv[0] (searched in PATH) with the variables that make both wire services connect to
 * gradb; `address` is where the server listens. GD_ENOTFOUND, GD_EIO: it could not be executed;
 * GD_ESTATE: one is running. */
int launch_start(struct repl *repl, char *const argv[], const char *address, struct gd_err *err);
bool launch_is_running(const struct repl *repl);
pid_t launch_pid(const struct repl *repl); /* 0 when none was started */
/* Whether pid is the program or one of its descendants, alive and not exiting. */
bool launch_has_process(const struct repl *repl, pid_t pid);
const char *launch_program(const struct repl *repl); /* "" when none was started */
char *const *launch_argv(const struct repl *repl);   /* of the last program; NULL: none */
/* What the agent in the program said when it could not attach; "": nothing. */
const char *launch_refusal(const struct repl *repl);
/* "exited with status 1" or "was killed by signal 9 (Killed)"; "" while it runs. */
const char *launch_end_text(const struct repl *repl);
/* Waits for its end, for at most `seconds`. */
void launch_wait(struct repl *repl, double seconds);
/* Ends its process group, by SIGTERM and then SIGKILL, and waits. */
void launch_kill(struct repl *repl);
/* It is no longer killed at the end. */
void launch_detach(struct repl *repl);
bool launch_is_detached(const struct repl *repl);
/* The file of its output; "": no program, closed by all writers, or in memory. */
const char *launch_output_path(const struct repl *repl);

/* The log: lines 0 (the oldest) to count - 1. */
size_t launch_log_count(const struct repl *repl);
const char *launch_log_line(const struct repl *repl, size_t index);
uint64_t launch_log_dropped(const struct repl *repl); /* lines replaced by newer ones */

#endif

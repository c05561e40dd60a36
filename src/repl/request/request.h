// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Input lines of --json: a plain line of the command language, or {"id":7,"command":"step"}. One
 * record has the id of a request: the result or error of its command, or, when the line runs
 * several commands or none, an "ok" after them. One thread; a request cannot begin inside another.
 */
#ifndef GD_REPL_REQUEST_H
#define GD_REPL_REQUEST_H

#include <cjson/cJSON.h>

struct repl;

/* As repl_execute, for a line that was typed or read from a pipe. Without --json there are only
 * plain lines. */
int repl_request_run(struct repl *repl, const char *line);
/* Adds the id to a record that answers the command that runs now, unless another command runs it.
 */
void repl_request_answer(struct repl *repl, cJSON *record);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Changes that the user makes by hand in a stopped Python program: `set NODE = VALUE`, `set
 * requires_grad`, `zero-grad`, `skip-update`, `undo`. The other side is python/gradb/changes.py.
 */
#ifndef GD_REPL_CHANGE_H
#define GD_REPL_CHANGE_H

#include "repl/core/command.h"

/* Sends the request to the process, or to all ranks of its job, which must be stopped; logs what
 * was changed as an event, and says it. Takes the request over. command: "change" or "undo". */
int change_send(struct command_call *call, const char *command, cJSON *request, struct gd_err *err);
/* A request for change_send. */
cJSON *change_request(const char *what);

#endif

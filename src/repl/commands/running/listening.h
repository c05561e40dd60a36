// SPDX-License-Identifier: GPL-3.0-or-later
/* The addresses that gradb listens on. */
#ifndef GD_REPL_LISTENING_H
#define GD_REPL_LISTENING_H

#include "repl/core/command.h"

/* Also listens on the address. Other hosts that can reach it need a token: one is made and shown
 * when none is set. GD_EUNSUPPORTED: there is no server; the server's own errors. */
int listening_start(struct command_call *call, const char *address, struct gd_err *err);
/* At the user's meeting point and at MindSpore's port; one of the two is enough (a warning). */
int listening_as_usual(struct command_call *call, struct gd_err *err);
/* Somewhere that a program started by `run` can connect to, unless gradb listens already. */
int listening_ensure(struct command_call *call, struct gd_err *err);
/* The TCP address, else the socket; NULL: not listening. */
const char *listening_address(struct command_call *call);
const char *listening_socket(struct command_call *call); /* NULL: none */

#endif

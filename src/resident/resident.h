// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A session that survives its terminal.
 *
 * Each gradb on a terminal listens on its own socket, $XDG_RUNTIME_DIR/gradb/NAME.sock (mode 0600
 * in a directory of mode 0700; SO_PEERCRED admits the same user only). When the terminal is lost
 * (SIGHUP, end of input) gradb does what `on-hangup` says and keeps serving its training processes.
 * `gradb attach` passes a new terminal as file descriptors, and the front end starts there in its
 * old state. Read-only viewers get an image of the panes, or the console's lines.
 */
#ifndef GD_RESIDENT_H
#define GD_RESIDENT_H

#include "repl/core/repl.h"

struct resident;

/* name: NULL for one made from the process id. Returns GD_EIO, or GD_ENOTFOUND when there is no
 * directory for the socket; then the session cannot be attached to, which deserves a warning
 * only. */
int resident_create(struct ev_loop *loop, struct repl *repl, const char *name,
                    struct resident **ret, struct gd_err *err);
void resident_destroy(struct resident *resident); /* removes the socket, drops all peers */

/* Called from the loop when the terminal is lost. The front end ends without output. */
void resident_hangup(struct resident *resident);
/* Called after the front end ended: does what `on-hangup` says and runs the loop until another
 * terminal was handed over (true: it is stdin, stdout and stderr, TERM etc. are set, a front end
 * may start) or until there is no reason to stay (false: gradb ends). */
bool resident_wait(struct resident *resident);
/* Prints the last lines of the console, as many as fit on the new terminal; nothing after
 * Ctrl-Z. */
void resident_replay(struct resident *resident, bool color);

/* `gradb sessions`: one line per session: name, pid, start time, program, state, step, terminal;
 * then the output files of programs whose gradb is gone. Removes sockets of dead processes and says
 * so on stderr. */
int resident_list(bool json, struct gd_err *err);
/* `gradb attach [NAME] [--read-only]`: hands this terminal over and returns when the session
 * releases it or ends. take: do not ask when the session has a terminal. Returns GD_ENOTFOUND,
 * GD_EAMBIGUOUS (lists the sessions), GD_EINVAL, GD_EIO or GD_ELOST. */
int resident_attach(const char *name, bool read_only, bool take, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A session that outlives its terminal. Each gradb with a terminal listens on a socket of its own,
 * $XDG_RUNTIME_DIR/gradb/NAME.sock (0600, in a 0700 directory; the same user alone, by
 * SO_PEERCRED). When the terminal goes (SIGHUP, end of input on it) gradb stays, as `set on-hangup`
 * says, and goes on serving its trainers; `gradb attach` hands a new terminal over as descriptors,
 * and the front end starts there, where it was. Others may look on, read-only: they get the
 * picture of the panes, or the lines of the console.
 */
#ifndef GD_RESIDENT_H
#define GD_RESIDENT_H

#include "repl/core/repl.h"

struct resident;

/* name NULL: one made of the process id. GD_EIO, GD_ENOTFOUND (no directory for the socket: then
 * the session cannot be taken over; a warning is enough). */
int resident_create(struct ev_loop *loop, struct repl *repl, const char *name,
                    struct resident **ret, struct gd_err *err);
void resident_destroy(struct resident *resident); /* removes the socket, lets go of all */

/* The terminal is gone: from the loop. The front end ends without a word to it. */
void resident_hangup(struct resident *resident);
/* After the front end: does as `on-hangup` says and serves the loop until another terminal was
 * handed over (true: stdin, stdout and stderr are it, TERM and its like are set, a front end may
 * start) or until there is nothing to stay for (false: gradb ends). */
bool resident_wait(struct resident *resident);
/* The console's last lines again, as many as the new terminal shows; none after a mere Ctrl-Z. */
void resident_replay(struct resident *resident, bool color);

/* `gradb sessions`: one line each: name, pid, since when, program, state, step, terminal; then the
 * output of programs whose gradb is gone. Removes the sockets of processes that are gone, a line
 * for each on stderr. */
int resident_list(bool json, struct gd_err *err);
/* `gradb attach [NAME] [--read-only]`: hands this terminal over and stays until the session lets go
 * of it or ends. take: without a question, also when it has a terminal. GD_ENOTFOUND,
 * GD_EAMBIGUOUS (lists them), GD_EINVAL, GD_EIO, GD_ELOST. */
int resident_attach(const char *name, bool read_only, bool take, struct gd_err *err);

#endif

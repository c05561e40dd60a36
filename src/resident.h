// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A session that outlives its terminal. Each gradb with a terminal listens on a socket of its own,
 * $XDG_RUNTIME_DIR/gradb/NAME.sock (0600, in a 0700 directory; the same user alone, by
 * SO_PEERCRED). When the terminal goes (SIGHUP, end of input on it) gradb stays, as `set on-hangup`
 * says, and goes on serving its trainers; `gradb attach` hands a new terminal over as descriptors,
 * and the front end starts there, where it was. A second one may look on, read-only: it gets the
 * lines that the console gets.
 */
#ifndef GD_RESIDENT_H
#define GD_RESIDENT_H

#include "repl/repl.h"

struct resident;

enum resident_hangup {
    RESIDENT_HOLD,     /* trainers that stand stay, those that run are stopped at the next step */
    RESIDENT_CONTINUE, /* trainers that stand go on, and run until a watchpoint fires */
    RESIDENT_DETACH,   /* trainers are let go, gradb ends (a MindSpore process would end itself: it
                          is held instead, and gradb stays) */
};

/* name NULL: one made of the program and the process id. GD_EIO, GD_EINVAL, GD_ENOTFOUND (no
 * runtime directory: then sessions cannot be taken over; a warning is enough). */
int resident_create(struct ev_loop *loop, struct repl *repl, const char *name,
                    struct resident **ret, struct gd_err *err);
void resident_destroy(struct resident *resident); /* removes the socket */
const char *resident_name(const struct resident *resident);

/* The terminal is gone: waits, serving the loop, until another one was handed over (GD_OK: stdin,
 * stdout and stderr are it, its size and TERM are set, a front end may start) or until there is
 * nothing to stay for (GD_ELOST: the last session ended, or a command said quit). */
int resident_wait(struct resident *resident, enum resident_hangup how, struct gd_err *err);

/* `gradb sessions`: one line each: name, pid, since when, program, state, step, terminal or none.
 */
int resident_list(bool json, struct gd_err *err);
/* `gradb attach [NAME] [--read-only]`: hands this terminal over and stays until the session lets go
 * of it (C-x d, detach of the terminal) or ends. The exit status, or a negative error.
 * GD_ENOTFOUND, GD_EAMBIGUOUS (lists them). */
int resident_attach(const char *name, bool read_only, struct gd_err *err);

#endif

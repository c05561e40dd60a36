// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private to the session's end: resident.c (life cycle), resident_peers.c (the processes on its
 * socket), resident_terminal.c (taking and releasing terminals), resident_console.c (the output
 * kept for the next terminal). All on the thread of the event loop.
 */
#ifndef GD_RESIDENT_IMPL_H
#define GD_RESIDENT_IMPL_H

#include <ev.h>
#include <sys/un.h>

#include "base/buf.h"
#include "resident/resident.h"
#include "resident/resident_wire.h"

#define RESIDENT_PEERS 16
#define RESIDENT_KEPT  ((size_t)64 << 10) /* bytes of console output kept for the next terminal */

enum peer_role { PEER_NEW, PEER_NEXT, PEER_OWNER, PEER_VIEWER };

struct peer {
    struct resident *resident;
    ev_io io;
    int fd; /* -1: unused */
    enum peer_role role;
    long pid;
    bool stale; /* a viewer that could not take the last image */
};

struct resident {
    struct ev_loop *loop;
    struct repl *repl;
    double since; /* start time */

    /* The socket. */
    char name[64];
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    int fd;
    ev_io io;
    struct peer peers[RESIDENT_PEERS];

    /* The terminal in use. */
    char terminal[64];  /* "": none */
    struct peer *owner; /* who handed it over; NULL: gradb was started on it, or there is none */
    bool suspended;     /* Ctrl-Z: the owner's shell has it */
    bool fresh;         /* it has not shown the console yet */

    /* The terminal that was handed over and is not in use yet. */
    struct peer *next_owner; /* NULL: none */
    struct resident_hello next_hello;
    int next[RESIDENT_FDS];

    /* Without a front end: resident_wait. */
    bool waiting;
    bool asked; /* left by `disconnect`: the training is not affected */

    /* For viewers and the next terminal. */
    struct gd_buf text;    /* the end of the console's output */
    struct gd_buf picture; /* image of the panes; empty: closed */
};

/* ---- resident_peers.c ---- */

/* Split into messages of at most RESIDENT_MESSAGE_MAX. A peer that does not read loses text; the
 * loop notices one that has closed. */
void resident_send(struct peer *peer, enum resident_reply reply, const char *text, size_t len);
/* Closes the descriptors of a terminal that was handed over but is not in use. */
void resident_drop_next(struct resident *resident);
void resident_drop_peer(struct peer *peer);
int resident_count_viewers(const struct resident *resident);
/* Callback for console output. */
void resident_on_lines(void *ctx, const char *text, size_t len);
void resident_on_connection(struct ev_loop *loop, ev_io *io, int events);

/* ---- resident_terminal.c ---- */

/* Afterwards stdin, stdout and stderr are /dev/null. */
void resident_release_terminal(struct resident *resident);
/* Makes next_owner's terminal ours. */
void resident_adopt_terminal(struct resident *resident);

/* ---- resident_console.c ---- */

void resident_keep_console(struct resident *resident, const char *text, size_t len);

#endif

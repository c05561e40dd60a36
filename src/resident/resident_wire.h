// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Messages between a gradb on a terminal and `gradb sessions` / `gradb attach`: datagrams
 * (SOCK_SEQPACKET) on a socket of the same user. Not a public format: both ends are the same
 * program, and a hello of another version is refused. Received data is never trusted.
 */
#ifndef GD_RESIDENT_WIRE_H
#define GD_RESIDENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RESIDENT_VERSION     2U
#define RESIDENT_MESSAGE_MAX 4096
#define RESIDENT_FDS         3 /* stdin, stdout, stderr */

enum resident_request { RESIDENT_STATUS = 1, RESIDENT_ATTACH, RESIDENT_VIEW };

struct resident_hello { /* the first message; ATTACH comes with three descriptors */
    uint32_t version;
    uint32_t request;
    uint32_t take;     /* even if the session has a terminal */
    char terminal[64]; /* "/dev/pts/3" */
    char term[64];     /* TERM */
    char locale[64];   /* LC_ALL, LC_CTYPE or LANG */
    char colorterm[32];
    char no_color[32];
};

/* First byte of each message from the session. */
enum resident_reply {
    RESIDENT_OK = 'o',       /* attached */
    RESIDENT_BUSY = 'b',     /* has a terminal: its name follows */
    RESIDENT_ERROR = 'e',    /* an error message follows */
    RESIDENT_FACTS = 's',    /* a JSON object follows */
    RESIDENT_RELEASED = 'x', /* the terminal is released: the reason follows; empty if requested */
    RESIDENT_STOPPED = 'z',  /* the screen is released: stop now */
    RESIDENT_LINES = 'v',    /* console output follows */
    RESIDENT_BEGIN = 'n',    /* an image of the panes begins: drop an incomplete one */
    RESIDENT_PICTURE = 'p',  /* a piece of the image, more follow */
    RESIDENT_SHOW = 'P',     /* the last piece; empty: the panes are closed */
};
/* One byte from the attached process. */
enum resident_news {
    RESIDENT_RESIZED = 'w',
    RESIDENT_INTERRUPTED = 'i',
    RESIDENT_STOPS = 's',     /* Ctrl-Z: the shell needs its terminal */
    RESIDENT_CONTINUED = 'c', /* continued after Ctrl-Z */
};

/* gd_own_directory, created if missing and checked. */
int resident_directory(char *path, size_t size, struct gd_err *err);

/* Whether the process at the other end of the socket belongs to our user; *pid is its process id.
 */
bool resident_peer_is_ours(int fd, long *pid);

/* Reads a hello. Its strings are terminated, its request is known, and `fds` are three terminals
 * owned by the caller for ATTACH, -1 otherwise. Returns GD_EPROTO (invalid; nothing is kept) or
 * GD_ELOST (the peer hung up). */
int resident_read_hello(int fd, struct resident_hello *hello, int fds[RESIDENT_FDS],
                        struct gd_err *err);
bool resident_send_hello(int fd, const struct resident_hello *hello, const int *fds, int count);

#endif

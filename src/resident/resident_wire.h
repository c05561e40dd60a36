// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a gradb with a terminal and `gradb sessions` / `gradb attach` say to each other: datagrams
 * in order (SOCK_SEQPACKET) on a socket of the same user. Not a format for others: both ends are
 * the same program, and a greeting of another version is refused. Nothing that comes in is trusted.
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

enum resident_wish { RESIDENT_STATUS = 1, RESIDENT_ATTACH, RESIDENT_VIEW };

struct resident_hello { /* the first message; ATTACH brings three descriptors */
    uint32_t version;
    uint32_t wish;
    uint32_t take;     /* also when it has a terminal */
    char terminal[64]; /* "/dev/pts/3" */
    char term[64];     /* TERM */
    char locale[64];   /* LC_ALL, LC_CTYPE or LANG */
    char colorterm[32];
    char no_color[32];
};

/* The first byte of what the session sends. */
enum resident_reply {
    RESIDENT_OK = 'o',      /* attached */
    RESIDENT_BUSY = 'b',    /* it has a terminal: its name follows */
    RESIDENT_ERROR = 'e',   /* a sentence follows */
    RESIDENT_FACTS = 's',   /* a JSON object follows */
    RESIDENT_LET_GO = 'x',  /* the terminal is free: why follows; nothing: it was asked for */
    RESIDENT_STOPPED = 'z', /* the screen is left: stop now */
    RESIDENT_LINES = 'v',   /* the console's text follows */
    RESIDENT_BEGIN = 'n',   /* a picture of the panes comes: what came of another one is void */
    RESIDENT_PICTURE = 'p', /* a piece of it, more to come */
    RESIDENT_SHOW = 'P',    /* its last piece; without a byte: the panes are closed */
};
/* One byte that the attached process sends. */
enum resident_news {
    RESIDENT_RESIZED = 'w',
    RESIDENT_INTERRUPTED = 'i',
    RESIDENT_STOPS = 's',     /* Ctrl-Z: wants its terminal back for a while */
    RESIDENT_CONTINUED = 'c', /* after that */
};

/* gd_own_directory, made when it is missing and checked. */
int resident_directory(char *path, size_t size, struct gd_err *err);

/* The process behind the socket is ours: its number in *pid. */
bool resident_peer_is_ours(int fd, long *pid);

/* Takes in a greeting that waits. Its texts end, its wish is known, and `fds` are three terminals
 * of the caller for ATTACH, -1 otherwise. GD_EPROTO: it is none, and nothing is kept of it;
 * GD_ELOST: the other end is gone. */
int resident_read_hello(int fd, struct resident_hello *hello, int fds[RESIDENT_FDS],
                        struct gd_err *err);
bool resident_send_hello(int fd, const struct resident_hello *hello, const int *fds, int count);

#endif

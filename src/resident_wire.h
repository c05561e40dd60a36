// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a gradb with a terminal and `gradb sessions` / `gradb attach` say to each other: datagrams
 * in order (SOCK_SEQPACKET) on a socket of the same user. Not a format for others: both ends are
 * the same program, and a greeting of another version is refused.
 */
#ifndef GD_RESIDENT_WIRE_H
#define GD_RESIDENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/error.h"

#define RESIDENT_VERSION     1U
#define RESIDENT_MESSAGE_MAX 4096

enum resident_wish { RESIDENT_STATUS = 1, RESIDENT_ATTACH, RESIDENT_VIEW };

struct resident_hello { /* the first message; ATTACH brings three descriptors */
    uint32_t version;
    uint32_t wish;
    uint32_t take; /* also when it has a terminal */
    char term[64];
    char terminal[64]; /* "/dev/pts/3" */
    char locale[64];   /* LC_ALL, LC_CTYPE or LANG */
};

/* The first byte of what the session sends. */
enum resident_reply {
    RESIDENT_OK = 'o',     /* attached */
    RESIDENT_BUSY = 'b',   /* it has a terminal: its name follows */
    RESIDENT_ERROR = 'e',  /* a sentence follows */
    RESIDENT_FACTS = 's',  /* a JSON object follows */
    RESIDENT_LET_GO = 'x', /* the terminal is free: why follows */
    RESIDENT_LINES = 'v',  /* the console's text follows */
};
/* One byte that the attached process sends. */
enum resident_news {
    RESIDENT_RESIZED = 'w',
    RESIDENT_INTERRUPTED = 'i',
    RESIDENT_CONTINUED = 'c', /* after a stop: the terminal is to be drawn anew */
};

/* The directory of the sockets, made (0700) when it is missing and checked to be ours alone. */
int resident_directory(char *path, size_t size, struct gd_err *err);

#endif

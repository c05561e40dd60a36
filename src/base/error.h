// SPDX-License-Identifier: MIT
/*
 * Errors as values: a code from one table, a sentence, and the facts behind it.
 *
 * A fallible function returns GD_OK (0) or a negative enum gd_status and, where it takes one, fills
 * its `err`. `err` may be NULL. Results go out through a last parameter named `ret`, which is
 * touched only on success. The library never prints; a front end prints `error: MESSAGE` once.
 * A message says in one line what is wrong, where, and what would be right.
 */
#ifndef GD_BASE_ERROR_H
#define GD_BASE_ERROR_H

#include <stddef.h>

enum gd_status {
    GD_OK = 0,
    GD_ENOMEM = -1,       /* out of memory */
    GD_EINVAL = -2,       /* an argument or its syntax is wrong */
    GD_ENOTFOUND = -3,    /* no such node, file, setting, ... */
    GD_EAMBIGUOUS = -4,   /* more than one thing has that name */
    GD_ESTATE = -5,       /* right request, wrong moment: no trainer, running, ... */
    GD_EUNSUPPORTED = -6, /* this target (or build) cannot do that */
    GD_ELIMIT = -7,       /* a stated limit would be passed */
    GD_EPROTO = -8,       /* the peer or the file broke its format */
    GD_EIO = -9,          /* the system refused: see saved_errno */
    GD_ELOST = -10,       /* the trainer vanished */
    GD_ETIMEOUT = -11,    /* a deadline passed */
    GD_EINTR = -12,       /* the user interrupted */
    GD_ENODATA = -13,     /* the thing exists but has no value (yet) */
    GD_EUSAGE = -14,      /* a command was typed wrongly: its usage line follows */
};

#define GD_ERR_TEXT_MAX 512

struct gd_err {
    int code;        /* enum gd_status */
    int saved_errno; /* errno at the failure, or 0 */
    size_t offset;   /* byte offset in the text or message at fault, where one is known */
    char text[GD_ERR_TEXT_MAX]; /* one line, no newline, no "error:" in front */
};

/* Fills *err (may be NULL) with `code` and a formatted sentence and returns `code`. */
int gd_fail(struct gd_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As gd_fail, and keeps errno: the text gets ": strerror(errno)" appended. Returns `code`. */
int gd_fail_errno(struct gd_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory". Returns GD_ENOMEM. */
int gd_fail_nomem(struct gd_err *err);

/* The stable machine name of a code ("not_found", "state", ...), for JSON. Never NULL. */
const char *gd_status_name(int code);

#endif

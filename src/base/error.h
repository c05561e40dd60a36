// SPDX-License-Identifier: MIT
/*
 * Errors as values: a code and a message.
 *
 * A function that can fail returns GD_OK (0) or a negative enum gd_status, and fills `err` if it
 * has that parameter (may be NULL). Results are returned in a last parameter named `ret`, which is
 * written only on success. The library never prints; a front end prints `error: MESSAGE` once. A
 * message is one line: what is wrong, where, and what to do.
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
    GD_ESTATE = -5,       /* valid, but not now: no training process, running, ... */
    GD_EUNSUPPORTED = -6, /* this target (or build) cannot do that */
    GD_ELIMIT = -7,       /* a limit would be exceeded */
    GD_EPROTO = -8,       /* the peer or the file violates its format */
    GD_EIO = -9,          /* a system call failed: the message has the reason */
    GD_ELOST = -10,       /* the connection to the training process was lost */
    GD_ETIMEOUT = -11,    /* a deadline expired */
    GD_EINTR = -12,       /* the user interrupted */
    GD_ENODATA = -13,     /* it exists but has no value (yet) */
    GD_EUSAGE = -14,      /* wrong usage of a command: its usage line is printed too */
};

#define GD_ERR_TEXT_MAX 512

struct gd_err {
    int code;      /* enum gd_status */
    size_t offset; /* byte offset of the error in the parsed text or message, where known */
    char text[GD_ERR_TEXT_MAX]; /* one line, without a newline and without "error:" */
};

/* Fills *err (may be NULL) and returns `code`. errno is preserved. */
int gd_fail(struct gd_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As gd_fail; appends ": " and strerror(errno) to the message. */
int gd_fail_errno(struct gd_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails with "out of memory". Returns GD_ENOMEM. */
int gd_fail_nomem(struct gd_err *err);

/* The name of a code in JSON ("not_found", "state", ...): stable, never NULL. */
const char *gd_status_name(int code);

#endif

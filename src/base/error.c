// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message is one line whatever went into it: names and paths come from peers and files. */
static void one_line(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

static void fill(struct gd_err *err, int code, int saved_errno, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

static void fill(struct gd_err *err, int code, int saved_errno, const char *format, va_list args)
{
    /* Formatted aside first: an argument may be the old text of the same err. */
    char text[GD_ERR_TEXT_MAX];
    int written = vsnprintf(text, sizeof(text), format, args);

    if (written < 0) {
        text[0] = '\0';
    }
    one_line(text);
    err->code = code;
    err->saved_errno = saved_errno;
    err->offset = 0;
    memcpy(err->text, text, strlen(text) + 1);
}

int gd_fail(struct gd_err *err, int code, const char *format, ...)
{
    int keep = errno;

    if (err) {
        va_list args;

        va_start(args, format);
        fill(err, code, 0, format, args);
        va_end(args);
    }
    errno = keep;
    return code;
}

int gd_fail_errno(struct gd_err *err, int code, const char *format, ...)
{
    int keep = errno;

    if (err) {
        va_list args;
        size_t len;
        char reason[128];

        va_start(args, format);
        fill(err, code, keep, format, args);
        va_end(args);
        len = strlen(err->text);
        snprintf(err->text + len, sizeof(err->text) - len, ": %s",
                 strerror_r(keep, reason, sizeof(reason)));
    }
    errno = keep;
    return code;
}

int gd_fail_nomem(struct gd_err *err)
{
    return gd_fail(err, GD_ENOMEM, "out of memory");
}

const char *gd_status_name(int code)
{
    static const char *const names[] = {
        "ok",    "no_memory",   "invalid",     "not_found", "ambiguous",
        "state", "unsupported", "limit",       "protocol",  "io",
        "lost",  "timeout",     "interrupted", "no_data",   "usage",
    };

    if (code > 0 || code <= -(int)(sizeof(names) / sizeof(names[0]))) {
        return "unknown";
    }
    return names[-code];
}

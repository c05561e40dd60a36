// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message stays one line: names and paths in it come from peers and files. */
static void make_one_line(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

static void fill_error(struct gd_err *err, int code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void fill_error(struct gd_err *err, int code, const char *format, va_list args)
{
    /* Formatted into a copy first: an argument may be err->text itself. */
    char text[GD_ERR_TEXT_MAX];
    int written = vsnprintf(text, sizeof(text), format, args);

    if (written < 0) {
        text[0] = '\0';
    }
    make_one_line(text);
    err->code = code;
    err->offset = 0;
    memcpy(err->text, text, strlen(text) + 1);
}

int gd_fail(struct gd_err *err, int code, const char *format, ...)
{
    int keep = errno;

    if (err) {
        va_list args;

        va_start(args, format);
        fill_error(err, code, format, args);
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
        char reason[128];

        va_start(args, format);
        fill_error(err, code, format, args);
        va_end(args);
        size_t len = strlen(err->text);
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

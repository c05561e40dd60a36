// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The settings as the user knows them: one table of name, type, range, unit and text. From it come
 * set, show, info settings, completion and the manual page. Defaults are gd_settings_init's.
 */
#ifndef GD_REPL_SETTINGS_TABLE_H
#define GD_REPL_SETTINGS_TABLE_H

#include "base/buf.h"
#include "base/error.h"
#include "engine/settings.h"

#include <stddef.h>

enum setting_type {
    SETTING_BOOL,
    SETTING_INT, /* int */
    SETTING_INT64,
    SETTING_COUNT,   /* uint64_t */
    SETTING_SIZE,    /* uint64_t, bytes: "64 MiB", "2G", "4096" */
    SETTING_SECONDS, /* double */
    SETTING_CHOICE,  /* int or enum: index into choices */
    SETTING_SWITCH,  /* bool: index into choices */
    SETTING_TEXT,    /* char[] */
};

struct setting {
    const char *name; /* "print precision"; a blank and '-' are the same when typed */
    const char *also; /* another name, or NULL */
    enum setting_type type;
    size_t offset;       /* in struct gd_settings */
    double min, max;     /* TEXT: max is the longest length */
    const char *choices; /* blank-separated */
    const char *unit;    /* "bytes", "seconds", "" */
    const char *text;    /* one line, no full stop */
};

extern const struct setting settings_table[]; /* ends with a NULL name */

/* The setting that text starts with, by exact name or unique prefix; *rest is what follows it.
 * GD_ENOTFOUND, GD_EAMBIGUOUS. */
int setting_find(const char *text, const struct setting **ret, const char **rest,
                 struct gd_err *err);
/* GD_EINVAL: not a value of its type or out of its range; the message says what would be right. */
int setting_parse(const struct setting *setting, const char *value, struct gd_settings *settings,
                  struct gd_err *err);
void setting_print(const struct setting *setting, const struct gd_settings *settings,
                   struct gd_buf *out);
/* What it takes: "on | off", "0 to 20", "auto | always | never". */
void setting_range(const struct setting *setting, struct gd_buf *out);

#endif

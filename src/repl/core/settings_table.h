// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The settings as the user sees them: one table of names, types, ranges, units and descriptions.
 * set, show, info settings, completion and the manual page use it. Defaults: gd_settings_init.
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
    SETTING_LEVELS,  /* struct gd_log_levels: what is named is changed */
};

struct setting {
    const char *name; /* "print precision"; when typed, a blank and '-' are equal */
    const char *also; /* another name, or NULL */
    enum setting_type type;
    size_t offset;       /* in struct gd_settings */
    double min, max;     /* TEXT: max is the greatest length */
    const char *choices; /* blank-separated */
    const char *unit;    /* "bytes", "seconds", "" */
    const char *text;    /* one line without a period */
};

extern const struct setting settings_table[]; /* ends with a NULL name */

/* The setting at the start of text, by exact name or unique prefix; *rest is what follows.
 * GD_ENOTFOUND, GD_EAMBIGUOUS. */
int setting_find(const char *text, const struct setting **ret, const char **rest,
                 struct gd_err *err);
/* GD_EINVAL: wrong type or out of range; the message says what is accepted. */
int setting_parse(const struct setting *setting, const char *value, struct gd_settings *settings,
                  struct gd_err *err);
void setting_print(const struct setting *setting, const struct gd_settings *settings,
                   struct gd_buf *out);
/* What it accepts: "on | off", "0 to 20", "auto | always | never". */
void setting_range(const struct setting *setting, struct gd_buf *out);

#endif

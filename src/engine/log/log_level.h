// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's log levels, of all messages and by submodule, as GLOG_v and MS_SUBMODULE_LOG_v take
 * them. Words may be written in any case; levels also as MindSpore's numbers, 0 to 4.
 */
#ifndef GD_ENGINE_LOG_LEVEL_H
#define GD_ENGINE_LOG_LEVEL_H

#include "base/buf.h"
#include "base/error.h"

enum gd_log_level {
    GD_LOG_UNSET = 0, /* as the environment or MindSpore says */
    GD_LOG_DEBUG,     /* 0 in GLOG_v */
    GD_LOG_INFO,
    GD_LOG_WARNING,
    GD_LOG_ERROR,
    GD_LOG_CRITICAL,
    GD_LOG_LEVELS
};

#define GD_LOG_MODULES 33

struct gd_log_levels {
    unsigned char all; /* enum gd_log_level */
    unsigned char module[GD_LOG_MODULES];
};

const char *gd_log_level_name(enum gd_log_level level); /* "DEBUG" */
const char *gd_log_module_name(int module);             /* "PARSER"; NULL: there are no more */
/* GD_EINVAL, with the nearest name. */
int gd_log_level_find(const char *text, enum gd_log_level *ret, struct gd_err *err);
int gd_log_module_find(const char *text, int *ret, struct gd_err *err);

/* "LEVEL", "MODULE LEVEL", "MODULE:LEVEL", several of them separated by blanks or commas, or
 * "default", which forgets all; changes only what is named. GD_EINVAL: nothing is changed. */
int gd_log_levels_parse(const char *text, struct gd_log_levels *levels, struct gd_err *err);
/* As gd_log_levels_parse reads it: "INFO PARSER:DEBUG"; "default" when nothing is set. */
void gd_log_levels_print(const struct gd_log_levels *levels, struct gd_buf *out);
/* The values of GLOG_v and MS_SUBMODULE_LOG_v; "": it is not set. */
void gd_log_levels_variables(const struct gd_log_levels *levels, struct gd_buf *all,
                             struct gd_buf *modules);

#endif

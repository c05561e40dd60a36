// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/dump.h"

#include <sys/stat.h>

int gd_dump_open(struct gd_debugger *debugger, const char *path, struct gd_session **ret,
                 struct gd_err *err)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.300s is a directory: what can be opened is a gradb history file", path);
    }
    return gd_recorder_open(debugger, path, ret, err);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/state_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int gd_state_directory(char *out, size_t size, struct gd_err *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int len = -1;

    if (state && state[0] == '/') {
        len = snprintf(out, size, "%s/gradb", state);
    } else if (home && home[0] == '/') {
        len = snprintf(out, size, "%s/.local/state/gradb", home);
    }
    if (len < 0 || (size_t)len >= size) {
        return gd_fail(err, GD_EIO, "there is no state directory: set HOME or XDG_STATE_HOME");
    }
    for (char *slash = strchr(out + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(out, 0700);
        *slash = '/';
    }
    if (mkdir(out, 0700) != 0 && errno != EEXIST) {
        return gd_fail_errno(err, GD_EIO, "cannot create %.400s", out);
    }
    return GD_OK;
}

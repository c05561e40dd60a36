// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/state_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/order.h"

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

/* ---- old files ------------------------------------------------------------------------------- */

struct old_file {
    char name[NAME_MAX + 1];
    double time;
};

static int newest_first(const void *a, const void *b)
{
    const struct old_file *x = a, *y = b;

    return GD_ORDER(y->time, x->time);
}

static bool is_named(const char *name, const char *prefix, const char *suffix)
{
    size_t len = strlen(name), tail = strlen(suffix);

    return len > tail && strncmp(name, prefix, strlen(prefix)) == 0 &&
           strcmp(name + len - tail, suffix) == 0;
}

/* Removes a file unless it is being written. */
static void remove_old(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            unlinkat(directory, name, 0);
        }
        close(fd);
    }
}

void gd_state_trim(const char *path, const char *prefix, const char *suffix, size_t keep,
                   double (*time_of)(int directory, const char *name))
{
    DIR *directory = opendir(path);
    struct old_file *files = NULL;
    size_t count = 0, cap = 0;

    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        double time =
            is_named(entry->d_name, prefix, suffix) ? time_of(dirfd(directory), entry->d_name) : -1;

        if (time >= 0 && gd_grow_list(&files, count, &cap, sizeof(*files))) {
            snprintf(files[count].name, sizeof(files[count].name), "%s", entry->d_name);
            files[count++].time = time;
        }
    }
    if (count > 0) {
        qsort(files, count, sizeof(*files), newest_first);
    }
    for (size_t i = keep; i < count; i++) {
        remove_old(dirfd(directory), files[i].name);
    }
    free(files);
    if (directory) {
        closedir(directory);
    }
}

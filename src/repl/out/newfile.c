// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/out/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAMES 1000 /* names that are tried */

/* The kernel applies umask and the folder's rules to a new file; a replacement gets the old file's
 * mode. */
static int open_part(struct newfile *new, const struct stat *there)
{
    const char *slash = strrchr(new->path, '/');
    int folder = slash ? (int)(slash - new->path) + 1 : 0;
    int fd = -1;

    for (int i = 0; fd < 0 && i < MAX_NAMES; i++) {
        int len = snprintf(new->part, sizeof(new->part), "%.*s.gradb-%ld-%d.part", folder,
                           new->path, (long)getpid(), i);
        if (len < 0 || (size_t)len >= sizeof(new->part)) {
            break;
        }
        fd = open(new->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd >= 0 && there && fchmod(fd, there->st_mode & 07777) != 0) {
        close(fd);
        unlink(new->part);
        fd = -1;
    }
    return fd;
}

/* Errors that would also prevent rewriting the old file. */
static bool is_full(int why)
{
    return why == ENOSPC || why == EDQUOT || why == EMFILE || why == ENFILE;
}

int newfile_open(struct newfile *ret, const char *path, bool append, struct gd_err *err)
{
    int how = append ? O_APPEND : O_TRUNC;
    struct stat there;
    bool exists = lstat(path, &there) == 0;
    bool replaceable =
        !append && (!exists || (S_ISREG(there.st_mode) && there.st_nlink == 1 &&
                                there.st_uid == geteuid() && access(path, W_OK) == 0));

    *ret = (struct newfile){.path = path, .size = -1};
    int fd = replaceable ? open_part(ret, exists ? &there : NULL) : -1;
    if (fd < 0) {
        ret->part[0] = '\0';
        fd = replaceable && is_full(errno) ? -1
                                           : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
        if (fd >= 0 && fstat(fd, &there) == 0 && S_ISREG(there.st_mode)) {
            ret->size = there.st_size;
        }
    }
    ret->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (ret->file) {
        return GD_OK;
    }
    int rc = gd_fail_errno(err, GD_EIO, "cannot write to %.300s", path);
    if (fd >= 0) {
        close(fd);
    }
    if (ret->part[0]) {
        unlink(ret->part);
    }
    return rc;
}

int newfile_close(struct newfile *file, bool keep, struct gd_err *err)
{
    bool bad = ferror(file->file) != 0; /* errno is the failed call's */
    int why = errno;

    if (fclose(file->file) != 0 && !bad) {
        bad = true;
        why = errno;
    }
    file->file = NULL;
    if (!bad && keep && file->part[0] && rename(file->part, file->path) != 0) {
        bad = true;
        why = errno;
    }
    if (file->part[0] && (bad || !keep)) {
        unlink(file->part);
    } else if (file->size >= 0 && (bad || !keep) && truncate(file->path, file->size) != 0 && !bad) {
        bad = true;
        why = errno;
    }
    errno = why;
    return bad ? gd_fail_errno(err, GD_EIO, "cannot write to %.300s", file->path) : GD_OK;
}

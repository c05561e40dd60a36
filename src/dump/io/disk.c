// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A dump has more files than a process may hold open. The files read last stay open; any other is
 * reopened by path when needed and must still be the same file.
 */
#include "dump/io/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_OPEN 256

struct gd_disk {
    int refs;
    struct gd_disk *whole; /* of a part, which has no descriptor of its own; otherwise NULL */
    uint64_t at;
    char *path; /* as given to gd_disk_open */
    char *full; /* absolute, for reopening */
    int flags;
    dev_t device;
    ino_t inode;
    uint64_t size;
    struct timespec modified;
    /* Guarded by the pool's mutex: */
    int fd;    /* -1: not open */
    int users; /* reads in progress */
    struct gd_disk *newer, *older;
};

/* The open files, in order of last use. */
static struct {
    pthread_mutex_t mutex;
    struct gd_disk *newest, *oldest;
    int open, max;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *kind_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFLNK: return "a link";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    case S_IFCHR:
    case S_IFBLK: return "a device";
    default: return "not a regular file";
    }
}

static void pool_remove(struct gd_disk *disk)
{
    *(disk->newer ? &disk->newer->older : &pool.newest) = disk->older;
    *(disk->older ? &disk->older->newer : &pool.oldest) = disk->newer;
    disk->newer = disk->older = NULL;
}

static void pool_add(struct gd_disk *disk)
{
    disk->older = pool.newest;
    *(pool.newest ? &pool.newest->newer : &pool.oldest) = disk;
    pool.newest = disk;
}

static void pool_close(struct gd_disk *disk)
{
    pool_remove(disk);
    close(disk->fd);
    disk->fd = -1;
    pool.open--;
}

/* Half of the process's limit; the rest is left for other uses. */
static int pool_max(void)
{
    struct rlimit limit;

    if (pool.max == 0) {
        pool.max = MAX_OPEN;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < MAX_OPEN) {
            pool.max = (int)(limit.rlim_cur / 2) + 1;
        }
    }
    return pool.max;
}

/* Counts an opened file, which is now in use, and may close another. */
static void pool_opened(struct gd_disk *disk, int fd)
{
    disk->fd = fd;
    pool_add(disk);
    pool.open++;
    for (struct gd_disk *at = pool.oldest; at && pool.open > pool_max();) {
        struct gd_disk *newer = at->newer;

        if (at->users == 0 && at != disk) {
            pool_close(at);
        }
        at = newer;
    }
}

static int reopen_file(struct gd_disk *disk, struct gd_err *err)
{
    struct stat st;
    int fd = open(disk->full, disk->flags);

    if (fd < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot reopen %.300s", disk->path);
    }
    if (fstat(fd, &st) != 0 || st.st_dev != disk->device || st.st_ino != disk->inode) {
        close(fd);
        return gd_fail(err, GD_EIO, "%.300s was replaced by another file while it was being read",
                       disk->path);
    }
    pool_opened(disk, fd);
    return GD_OK;
}

/* Returns a descriptor that stays open until it is released. */
static int acquire_fd(struct gd_disk *disk, int *ret, struct gd_err *err)
{
    int rc = GD_OK;

    pthread_mutex_lock(&pool.mutex);
    if (disk->fd < 0) {
        rc = reopen_file(disk, err);
    } else if (pool.newest != disk) {
        pool_remove(disk);
        pool_add(disk);
    }
    if (rc == GD_OK) {
        disk->users++;
        *ret = disk->fd;
    }
    pthread_mutex_unlock(&pool.mutex);
    return rc;
}

static void release_fd(struct gd_disk *disk)
{
    pthread_mutex_lock(&pool.mutex);
    disk->users--;
    pthread_mutex_unlock(&pool.mutex);
}

/* An absolute path, because the working directory may change. */
static char *full_path(int dir_fd, const char *path)
{
    char link[64], dir[4096], *full = NULL;
    ssize_t len;

    if (path[0] == '/') {
        return strdup(path);
    }
    if (dir_fd == AT_FDCWD) {
        snprintf(link, sizeof(link), "/proc/self/cwd");
    } else {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
    }
    len = readlink(link, dir, sizeof(dir) - 1);
    if (len <= 0 || len >= (ssize_t)sizeof(dir) - 1) {
        return strdup(path);
    }
    dir[len] = '\0';
    return asprintf(&full, "%s/%s", dir, path) < 0 ? NULL : full;
}

static int disk_create(int fd, const struct stat *st, int dir_fd, const char *path, int flags,
                       struct gd_disk **ret, struct gd_err *err)
{
    struct gd_disk *disk = calloc(1, sizeof(*disk));

    if (disk) {
        disk->path = strdup(path);
        disk->full = full_path(dir_fd, path);
    }
    if (!disk || !disk->path || !disk->full) {
        if (disk) {
            free(disk->path);
            free(disk->full);
        }
        free(disk);
        return gd_fail_nomem(err);
    }
    disk->refs = 1;
    disk->flags = flags;
    disk->device = st->st_dev;
    disk->inode = st->st_ino;
    disk->size = (uint64_t)st->st_size;
    disk->modified = st->st_mtim;
    pthread_mutex_lock(&pool.mutex);
    pool_opened(disk, fd);
    pthread_mutex_unlock(&pool.mutex);
    *ret = disk;
    return GD_OK;
}

int gd_disk_open(int dir_fd, const char *path, bool follow, struct gd_disk **ret,
                 struct gd_err *err)
{
    /* O_NONBLOCK: opening a pipe without a writer would block. */
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW);
    struct stat st;
    int fd = openat(dir_fd, path, flags), rc;

    if (fd < 0) {
        if (errno == ELOOP && !follow) {
            return gd_fail(err, GD_EIO, "%.300s is a symbolic link, which is not followed here",
                           path);
        }
        return gd_fail_errno(err, errno == ENOENT ? GD_ENOTFOUND : GD_EIO, "cannot open %.300s",
                             path);
    }
    if (fstat(fd, &st) != 0) {
        rc = gd_fail_errno(err, GD_EIO, "cannot read the attributes of %.300s", path);
    } else if (!S_ISREG(st.st_mode)) {
        rc = gd_fail(err, GD_EIO, "%.300s is %s, not a regular file", path, kind_name(st.st_mode));
    } else {
        rc = disk_create(fd, &st, dir_fd, path, flags, ret, err);
    }
    if (rc != GD_OK) {
        close(fd);
    }
    return rc;
}

int gd_disk_part(struct gd_disk *whole, uint64_t at, uint64_t size, struct gd_disk **ret,
                 struct gd_err *err)
{
    struct gd_disk *disk;

    if (at > whole->size || size > whole->size - at) {
        return gd_fail(err, GD_EPROTO, "%.300s ends at byte %llu: %llu bytes at %llu are missing",
                       whole->path, (unsigned long long)whole->size, (unsigned long long)size,
                       (unsigned long long)at);
    }
    disk = calloc(1, sizeof(*disk));
    if (!disk || !(disk->path = strdup(whole->path))) {
        free(disk);
        return gd_fail_nomem(err);
    }
    disk->refs = 1;
    disk->fd = -1;
    disk->whole = gd_disk_ref(whole);
    disk->at = at;
    disk->size = size;
    disk->modified = whole->modified;
    *ret = disk;
    return GD_OK;
}

struct gd_disk *gd_disk_ref(struct gd_disk *disk)
{
    __atomic_add_fetch(&disk->refs, 1, __ATOMIC_RELAXED);
    return disk;
}

void gd_disk_unref(struct gd_disk *disk)
{
    if (!disk || __atomic_sub_fetch(&disk->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    pthread_mutex_lock(&pool.mutex);
    if (disk->fd >= 0) {
        pool_close(disk);
    }
    pthread_mutex_unlock(&pool.mutex);
    gd_disk_unref(disk->whole);
    free(disk->path);
    free(disk->full);
    free(disk);
}

const char *gd_disk_path(const struct gd_disk *disk)
{
    return disk->path;
}

int gd_disk_set_path(struct gd_disk *disk, const char *path, struct gd_err *err)
{
    char *copy = strdup(path);

    if (!copy) {
        return gd_fail_nomem(err);
    }
    free(disk->path);
    disk->path = copy;
    return GD_OK;
}

uint64_t gd_disk_size(const struct gd_disk *disk)
{
    return disk->size;
}

static int read_all(struct gd_disk *disk, int fd, uint64_t at, unsigned char *to, size_t size,
                    struct gd_err *err)
{
    while (size > 0) {
        ssize_t got = pread(fd, to, size, (off_t)at);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return gd_fail_errno(err, GD_EIO, "cannot read %.300s at byte %llu", disk->path,
                                 (unsigned long long)at);
        }
        if (got == 0) {
            return gd_fail(err, GD_EPROTO,
                           "%.300s was truncated while it was being read: it now ends at byte %llu",
                           disk->path, (unsigned long long)at);
        }
        to += got;
        at += (uint64_t)got;
        size -= (size_t)got;
    }
    return GD_OK;
}

int gd_disk_read(struct gd_disk *disk, uint64_t at, void *ret, size_t size, struct gd_err *err)
{
    int fd, rc;

    if (at > disk->size || size > disk->size - at) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s ends at byte %llu: cannot read %zu bytes at byte %llu", disk->path,
                       (unsigned long long)disk->size, size, (unsigned long long)at);
    }
    if (size == 0) {
        return GD_OK;
    }
    if (disk->whole) {
        return gd_disk_read(disk->whole, disk->at + at, ret, size, err);
    }
    rc = acquire_fd(disk, &fd, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = read_all(disk, fd, at, ret, size, err);
    release_fd(disk);
    return rc;
}

int gd_disk_read_text(struct gd_disk *disk, uint64_t max, struct gd_file_text *ret,
                      struct gd_err *err)
{
    size_t size = (size_t)disk->size;
    char *data;
    int rc;

    if (disk->size > max) {
        return gd_fail(err, GD_ELIMIT, "%.300s has %zu bytes, more than the limit of %llu",
                       disk->path, size, (unsigned long long)max);
    }
    data = malloc(size + 1);
    if (!data) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %.300s", disk->path);
    }
    rc = size > 0 ? gd_disk_read(disk, 0, data, size, err) : GD_OK;
    if (rc != GD_OK) {
        free(data);
        return rc;
    }
    data[size] = '\0';
    *ret = (struct gd_file_text){.data = data, .size = size};
    return GD_OK;
}

int gd_file_text_read(const char *path, uint64_t max, struct gd_file_text *ret, struct gd_err *err)
{
    struct gd_disk *disk = NULL;
    int rc = gd_disk_open(AT_FDCWD, path, false, &disk, err);

    rc = rc != GD_OK ? rc : gd_disk_read_text(disk, max, ret, err);
    gd_disk_unref(disk);
    return rc;
}

bool gd_disk_is_changed(const struct gd_disk *disk)
{
    struct stat st;

    if (disk->whole) {
        return gd_disk_is_changed(disk->whole);
    }
    if (stat(disk->full, &st) != 0) {
        return true;
    }
    return st.st_dev != disk->device || st.st_ino != disk->inode ||
           (uint64_t)st.st_size != disk->size || st.st_mtim.tv_sec != disk->modified.tv_sec ||
           st.st_mtim.tv_nsec != disk->modified.tv_nsec;
}

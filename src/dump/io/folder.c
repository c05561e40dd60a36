// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dump/io/disk.h"

#define TRIES    100 /* attempts to find a free name */
#define MAX_NAME 255

struct gd_folder {
    int fd;
    char *path; /* for messages */
};

struct gd_folder_file {
    struct gd_folder *folder;
    char *name;
    char part[64]; /* temporary name, until the file is complete */
    FILE *file;
};

bool gd_folder_name_is_fine(const char *name)
{
    return name[0] != '\0' && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strlen(name) <= MAX_NAME;
}

static int make_directory(int fd, const char *path, struct gd_folder **ret, struct gd_err *err)
{
    struct gd_folder *folder = calloc(1, sizeof(*folder));

    if (folder) {
        folder->fd = fd;
        folder->path = strdup(path);
    }
    if (!folder || !folder->path) {
        close(fd);
        free(folder);
        return gd_fail_nomem(err);
    }
    *ret = folder;
    return GD_OK;
}

int gd_folder_open(const char *path, struct gd_folder **ret, struct gd_err *err)
{
    int fd;

    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return gd_fail_errno(err, GD_EIO, "cannot create the directory %.300s", path);
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? gd_fail_errno(err, GD_EIO, "cannot write to %.300s", path)
                  : make_directory(fd, path, ret, err);
}

int gd_folder_child(struct gd_folder *folder, const char *name, struct gd_folder **ret,
                    struct gd_err *err)
{
    char path[4096];
    int fd;

    if (!gd_folder_name_is_fine(name)) {
        return gd_fail(err, GD_EINVAL, "\"%.100s\" is not a valid directory name", name);
    }
    snprintf(path, sizeof(path), "%.3800s/%s", folder->path, name);
    if (mkdirat(folder->fd, name, 0777) != 0 && errno != EEXIST) {
        return gd_fail_errno(err, GD_EIO, "cannot create the directory %.300s", path);
    }
    fd = openat(folder->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? gd_fail_errno(err, GD_EIO, "cannot write to %.300s", path)
                  : make_directory(fd, path, ret, err);
}

void gd_folder_close(struct gd_folder *folder)
{
    if (folder) {
        close(folder->fd);
        free(folder->path);
        free(folder);
    }
}

bool gd_folder_is_empty(struct gd_folder *folder)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    bool empty = true;

    if (!dir) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    for (struct dirent *entry; empty && (entry = readdir(dir));) {
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    closedir(dir);
    return empty;
}

static int cannot_write(const struct gd_folder_file *file, struct gd_err *err)
{
    return gd_fail_errno(err, GD_EIO, "cannot write %.300s/%.200s", file->folder->path, file->name);
}

/* Creates the file under a temporary name that is free. */
static int open_part(struct gd_folder_file *file)
{
    static unsigned number;
    int fd = -1;

    for (int i = 0; i < TRIES && fd < 0; i++) {
        snprintf(file->part, sizeof(file->part), ".gradb-%ld-%u.part", (long)getpid(),
                 __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
        fd = openat(file->folder->fd, file->part,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    return fd;
}

int gd_folder_begin(struct gd_folder *folder, const char *name, struct gd_folder_file **ret,
                    struct gd_err *err)
{
    struct gd_folder_file *file;
    int fd, rc;

    if (!gd_folder_name_is_fine(name)) {
        return gd_fail(err, GD_EINVAL, "\"%.100s\" is not a valid file name", name);
    }
    file = calloc(1, sizeof(*file));
    if (!file || !(file->name = strdup(name))) {
        free(file);
        return gd_fail_nomem(err);
    }
    file->folder = folder;
    fd = open_part(file);
    file->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file->file) {
        rc = cannot_write(file, err);
        if (fd >= 0) {
            close(fd);
            unlinkat(folder->fd, file->part, 0);
        }
        free(file->name);
        free(file);
        return rc;
    }
    *ret = file;
    return GD_OK;
}

int gd_folder_write(struct gd_folder_file *file, const void *data, size_t size, struct gd_err *err)
{
    return fwrite(data, 1, size, file->file) == size ? GD_OK : cannot_write(file, err);
}

int gd_folder_end(struct gd_folder_file *file, bool keep, struct gd_err *err)
{
    int fd = file->folder->fd, rc = GD_OK;

    if (fclose(file->file) != 0 && keep) {
        rc = cannot_write(file, err);
    }
    if (keep && rc == GD_OK && renameat(fd, file->part, fd, file->name) != 0) {
        rc = cannot_write(file, err);
    }
    if (!keep || rc != GD_OK) {
        unlinkat(fd, file->part, 0);
    }
    free(file->name);
    free(file);
    return rc;
}

int gd_folder_put(struct gd_folder *folder, const char *name, const void *data, size_t size,
                  struct gd_err *err)
{
    struct gd_folder_file *file;
    int rc = gd_folder_begin(folder, name, &file, err), end;

    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_folder_write(file, data, size, err);
    end = gd_folder_end(file, rc == GD_OK, err);
    return rc != GD_OK ? rc : end;
}

int gd_folder_append(struct gd_folder *folder, const char *name, const void *data, size_t size,
                     struct gd_err *err)
{
    int fd = -1, rc = GD_OK;

    if (!gd_folder_name_is_fine(name)) {
        return gd_fail(err, GD_EINVAL, "\"%.100s\" is not a valid file name", name);
    }
    fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot write %.300s/%.200s", folder->path, name);
    }
    ssize_t written = write(fd, data, size);
    if (written < 0) {
        rc = gd_fail_errno(err, GD_EIO, "cannot write %.300s/%.200s", folder->path, name);
    } else if ((size_t)written != size) {
        rc = gd_fail(err, GD_EIO, "cannot write %.300s/%.200s: no space left on the device",
                     folder->path, name);
    }
    close(fd);
    return rc;
}

int gd_folder_get(struct gd_folder *folder, const char *name, size_t max, struct gd_buf *ret,
                  struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_file_text text;
    int rc = gd_disk_open(folder->fd, name, false, &disk, err);

    if (rc != GD_OK) {
        return rc == GD_ENOTFOUND ? GD_OK : rc;
    }
    rc = gd_disk_read_text(disk, max, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_buf_add(ret, text.data, text.size);
    free(text.data);
    return ret->failed ? gd_fail_nomem(err) : GD_OK;
}

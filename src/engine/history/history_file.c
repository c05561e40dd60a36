// SPDX-License-Identifier: GPL-3.0-or-later
/* The file of a history: how its size is divided, where it is stored, and which old ones are
 * removed. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/history/history_impl.h"
#include "engine/state_dir.h"

#define KEPT_FILES  8
#define NAME_PREFIX "history-"
#define NAME_SUFFIX ".gdhist"

static int history_plan(uint64_t bytes, struct history_layout *ret, struct gd_err *err)
{
    const uint64_t each = HISTORY_ENTRY + HISTORY_TEXT;
    struct history_layout l = {.bytes = bytes, .table = HISTORY_HEADER};

    if (bytes < HISTORY_MIN_BYTES || bytes > HISTORY_MAX_BYTES) {
        return gd_fail(err, GD_EINVAL, "a history takes 64 KiB to 4 GiB, not %llu bytes",
                       (unsigned long long)bytes);
    }
    uint64_t capacity = (bytes - HISTORY_HEADER) / (each + HISTORY_MIN_STEPS * HISTORY_RECORD);
    l.capacity = (uint32_t)capacity;
    l.text = l.table + capacity * HISTORY_ENTRY;
    l.text_bytes = capacity * HISTORY_TEXT;
    l.ring = l.text + l.text_bytes;
    l.records = (uint32_t)((bytes - l.ring) / HISTORY_RECORD);
    *ret = l;
    return GD_OK;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* When the history was begun, by its own header; < 0: not a history, or being written. */
static double time_of(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char *head = malloc(HISTORY_HEADER);
    struct gd_history *history = history_new();
    double started = -1;

    if (fd >= 0 && head && history && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        pread(fd, head, HISTORY_HEADER, 0) == (ssize_t)HISTORY_HEADER &&
        history_get_head(head, history, UINT64_MAX, NULL) == GD_OK) {
        started = history->started;
    }
    gd_history_close(history);
    free(head);
    if (fd >= 0) {
        close(fd);
    }
    return started;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int open_new(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* "train.py" from "/usr/bin/python3 lib/train.py --epochs 3", made safe for a file name. */
static void program_name(const char *line, char *out, size_t size)
{
    size_t len = 0;

    for (int word = 0; word < 2; word++) {
        size_t end = strcspn(line, " "), from = end;

        while (from > 0 && line[from - 1] != '/') {
            from--;
        }
        len = end - from < size - 1 ? end - from : size - 1;
        memcpy(out, line + from, len);
        line += end + strspn(line + end, " ");
        if (strncmp(out, "python", 6) != 0 || !line[0] || line[0] == '-') {
            break;
        }
    }
    out[len] = '\0';
    for (char *p = out; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("._-+", *p)) {
            *p = '_';
        }
    }
}

/* history-PROGRAM-PID-TIME.gdhist */
static int open_in_state(struct gd_history *history, char *path, size_t size, struct gd_err *err)
{
    char name[64], when[32];
    time_t started = (time_t)history->started;
    struct tm tm;
    int rc = gd_state_directory(path, size, err), fd;
    size_t len = strlen(path);

    if (rc != GD_OK) {
        return rc;
    }
    gd_state_trim(path, NAME_PREFIX, NAME_SUFFIX, KEPT_FILES - 1, time_of); /* room for one more */
    program_name(history->peer.program, name, sizeof(name));
    if (!localtime_r(&started, &tm) || !strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm)) {
        snprintf(when, sizeof(when), "0");
    }
    for (int i = 0; i < 100; i++) {
        char more[16] = "";

        if (i > 0) {
            snprintf(more, sizeof(more), "-%d", i);
        }
        if ((size_t)snprintf(path + len, size - len, "/" NAME_PREFIX "%s-%lld-%s%s" NAME_SUFFIX,
                             name[0] ? name : "trainer", (long long)history->peer.pid, when,
                             more) >= size - len) {
            return gd_fail(err, GD_EIO, "the path of the state directory is too long");
        }
        fd = open_new(path);
        if (fd >= 0 || errno != EEXIST) {
            history->fd = fd;
            return fd >= 0 ? GD_OK : gd_fail_errno(err, GD_EIO, "cannot create %.400s", path);
        }
    }
    return gd_fail(err, GD_EIO, "%.400s and a hundred similar names are taken", path);
}

/* Removes what is at the path if it is a history that no one is writing, or empty. */
static int make_way(const char *path, struct gd_err *err)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char magic[8];

    if (fd < 0) {
        return GD_OK; /* creating it reports the reason if it fails */
    }
    ssize_t got = pread(fd, magic, 8, 0);
    bool busy = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    if (got != 0 && (got != 8 || memcmp(magic, HISTORY_MAGIC, 8) != 0)) {
        return gd_fail(err, GD_EINVAL, "%.400s is not a gradb history and is not overwritten",
                       path);
    }
    if (busy) {
        return gd_fail(err, GD_ESTATE, "%.400s is being written: name another file", path);
    }
    unlink(path);
    return GD_OK;
}

static int open_at(struct gd_history *history, const char *path, struct gd_err *err)
{
    int rc = make_way(path, err);

    if (rc != GD_OK) {
        return rc;
    }
    history->fd = open_new(path);
    return history->fd >= 0 ? GD_OK : gd_fail_errno(err, GD_EIO, "cannot create %.400s", path);
}

/* Allocates all blocks now: a full disk is then an error here, not a signal when the map is
 * written. */
static int take_blocks(struct gd_history *history, const char *path, struct gd_err *err)
{
    uint64_t bytes = history->layout.bytes;
    struct rlimit limit;
    int failed;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
        failed = EFBIG; /* trying would raise the signal, too */
    } else {
        do {
            failed = posix_fallocate(history->fd, 0, (off_t)bytes);
        } while (failed == EINTR);
    }
    if (failed) {
        errno = failed;
        return gd_fail_errno(err, GD_EIO, "no room for %llu bytes in %.400s",
                             (unsigned long long)bytes, path);
    }
    history->map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, history->fd, 0);
    if (history->map == MAP_FAILED) {
        history->map = NULL;
        return gd_fail_errno(err, GD_EIO, "cannot map %.400s", path);
    }
    madvise(history->map, (size_t)bytes, MADV_DONTFORK);
    return GD_OK;
}

/* In memory only, with nothing on disk. */
static int make_memory(struct gd_history *history, struct gd_err *err)
{
    void *map = mmap(NULL, (size_t)history->layout.bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED) {
        return gd_fail_errno(err, GD_ENOMEM, "cannot allocate memory for a history");
    }
    history->map = map;
    history->path = strdup("memory");
    if (!history->path) {
        return gd_fail_nomem(err);
    }
    history_put_head(history->map, history);
    return GD_OK;
}

/* Creates and maps the file of history->layout. path NULL: in the state directory. Sets path, fd
 * and map. */
static int history_make_file(struct gd_history *history, const char *path, struct gd_err *err)
{
    char name[4096] = "";

    if (path && !path[0]) {
        return make_memory(history, err);
    }
    int rc = path ? open_at(history, path, err) : open_in_state(history, name, sizeof(name), err);

    if (rc != GD_OK) {
        return rc;
    }
    path = path ? path : name;
    flock(history->fd, LOCK_EX | LOCK_NB); /* kept while it is written: see gd_state_trim */
    history->path = strdup(path);
    rc = history->path ? take_blocks(history, path, err) : gd_fail_nomem(err);
    if (rc != GD_OK) {
        unlink(path);
        return rc;
    }
    history_put_head(history->map, history);
    return GD_OK;
}

int gd_history_create(const char *path, uint64_t bytes, const struct gd_peer *peer,
                      struct gd_history **ret, struct gd_err *err)
{
    struct gd_history *history = history_new();

    if (!history) {
        return gd_fail_nomem(err);
    }
    if (peer) {
        history->peer = *peer;
    }
    history->started = (double)time(NULL);
    int rc = history_plan(bytes, &history->layout, err);
    if (rc == GD_OK) {
        rc = history_reserve(history, history->layout.records, err);
    }
    if (rc == GD_OK) {
        rc = history_make_file(history, path, err);
    }
    if (rc != GD_OK) {
        gd_history_close(history);
        return rc;
    }
    *ret = history;
    return GD_OK;
}

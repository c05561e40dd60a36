// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/launch/launch_output.h"
#include "base/owner.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINE     8192
#define AT_ONCE      65536             /* bytes before keys and connections are served again */
#define KEPT         ((off_t)64 << 20) /* of what was read, for after a crash */
#define FREED_AT     ((off_t)16 << 20)
#define RESERVED     ((off_t)8 << 20)      /* so that a full disk does not stop the program */
#define LEAST_FREE   ((uint64_t)256 << 20) /* on a disk that can take the output */
#define LOOK_SECONDS 1.0
#define POLL_SECONDS 0.1 /* without inotify */
#define LEFT_SECONDS (7 * 24 * 3600.0)
#define PLACES       2
#define PREFIX       "gradb-"
#define SUFFIX       ".log"

/* ---- where ---- */

static bool make_directories(char *path)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* False: there is no place with that number, or it is not private to the user. The state directory
 * survives a logout; the runtime directory may not, and may be in memory. */
static bool find_place(int number, bool make, char *path, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char runtime[PATH_MAX];
    int len = -1;

    if (number == 0 && state && state[0] == '/') {
        len = snprintf(path, size, "%s/gradb/output", state);
    } else if (number == 0 && home && home[0] == '/') {
        len = snprintf(path, size, "%s/.local/state/gradb/output", home);
    } else if (number == 1 && gd_own_directory(runtime, sizeof(runtime), NULL) == GD_OK &&
               gd_own_directory_check(runtime, make, NULL) == GD_OK) {
        len = snprintf(path, size, "%s/output", runtime);
    }
    return len > 0 && (size_t)len < size && (!make || make_directories(path)) &&
           gd_own_directory_check(path, false, NULL) == GD_OK;
}

/* A program that writes faster than gradb reads must not fill the disk. */
static bool has_room(const char *path)
{
    struct statvfs disk;

    return statvfs(path, &disk) == 0 &&
           (disk.f_blocks == 0 || (uint64_t)disk.f_bavail * disk.f_frsize >= LEAST_FREE);
}

/* python3 for "/usr/bin/python3"; replaces characters unfit for a file name by "_". */
static void short_name(const char *program, char *out, size_t size)
{
    const char *slash = strrchr(program, '/');

    snprintf(out, size, "%s", slash && slash[1] != '\0' ? slash + 1 : program);
    for (char *p = out; *p != '\0'; p++) {
        *p = isalnum((unsigned char)*p) || *p == '.' || *p == '_' ? *p : '_';
    }
}

/* ---- the file ---- */

off_t launch_output_size(const struct launch_output *output)
{
    struct stat st;
    return output->fd >= 0 && fstat(output->fd, &st) == 0 ? st.st_size : 0;
}

/* Allocates blocks ahead of the writer. False: the disk is full. */
static bool reserve_blocks(struct launch_output *output, off_t from)
{
    output->reserved = from + RESERVED;
    return fallocate(output->fd, FALLOC_FL_KEEP_SIZE, from, RESERVED) == 0 ||
           (errno != ENOSPC && errno != EDQUOT);
}

static void free_until(struct launch_output *output, off_t end)
{
    end &= ~(off_t)4095;
    if (end > output->freed && fallocate(output->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                         output->freed, end - output->freed) == 0) {
        output->freed = end;
    }
}

/* Limits the file's size: keeps the last part of what was read, or nothing on a full disk. */
static void free_read(struct launch_output *output)
{
    if (output->at - KEPT - output->freed >= FREED_AT) {
        free_until(output, output->at - KEPT);
    }
    off_t size = launch_output_size(output);
    if (size + RESERVED / 2 > output->reserved && !reserve_blocks(output, size)) {
        free_until(output, output->at);
        reserve_blocks(output, size);
    }
}

static void drop_file(struct launch_output *output)
{
    if (output->fd >= 0) {
        close(output->fd);
        output->fd = -1;
    }
    if (output->path[0] != '\0') {
        unlink(output->path);
        output->path[0] = '\0';
    }
}

/* Returns a descriptor that appends to the new file; -1: not possible in this directory. */
static int open_in(struct launch_output *output, const char *directory, const char *name)
{
    int len = snprintf(output->path, sizeof(output->path), "%s/" PREFIX "%ld-%s-XXXXXX" SUFFIX,
                       directory, (long)getpid(), name);

    if (len < 0 || (size_t)len >= sizeof(output->path) - 32) {
        output->path[0] = '\0';
        return -1;
    }
    output->fd = mkostemps(output->path, (int)strlen(SUFFIX), O_CLOEXEC);
    if (output->fd < 0) {
        output->path[0] = '\0';
        return -1;
    }
    int fd = open(output->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || !reserve_blocks(output, 0)) {
        if (fd >= 0) {
            close(fd);
        }
        drop_file(output);
        return -1;
    }
    return fd;
}

static int open_in_memory(struct launch_output *output)
{
    char path[64];

    output->fd = memfd_create("gradb-output", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", output->fd);
    return output->fd >= 0 ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
}

int launch_output_open(struct launch_output *output, const char *program, int *program_fd,
                       struct gd_err *err)
{
    char directory[PATH_MAX], name[64];
    int fd = -1;

    output->fd = output->notify = -1;
    output->at = output->freed = output->reserved = 0;
    output->path[0] = '\0';
    output->at_end = false;
    short_name(program, name, sizeof(name));
    for (int place = 0; fd < 0 && place < PLACES; place++) {
        if (find_place(place, true, directory, sizeof(directory)) && has_room(directory)) {
            fd = open_in(output, directory, name);
        }
    }
    fd = fd >= 0 ? fd : open_in_memory(output);
    if (fd < 0) {
        int rc = gd_fail_errno(err, GD_EIO, "cannot create a file for the program's output");
        drop_file(output);
        return rc;
    }
    flock(fd, LOCK_SH); /* every process that inherits it holds the lock */
    gd_buf_init(&output->line, MAX_LINE);
    *program_fd = fd;
    return GD_OK;
}

/* ---- reading ---- */

void launch_output_end_line(struct launch_output *output)
{
    if (output->line.len > 0) {
        output->on_line(output->ctx, gd_buf_text(&output->line));
        gd_buf_clear(&output->line);
    }
}

static void take_bytes(struct launch_output *output, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (c == '\n' && output->line.len == 0) {
            output->on_line(output->ctx, "");
        } else if (c == '\n' || c == '\r') { /* rewrites of a progress bar count as lines */
            launch_output_end_line(output);
        } else if ((c == '\0' || gd_buf_putc(&output->line, c) != GD_OK) &&
                   output->line.len >= MAX_LINE) {
            launch_output_end_line(output);
            gd_buf_putc(&output->line, c);
        }
    }
}

void launch_output_read(struct launch_output *output, size_t max)
{
    char bytes[16384];

    if (output->reading) { /* on_line may run the loop */
        return;
    }
    output->reading = true;
    output->at_end = false;
    while (output->fd >= 0 && max > 0 && !output->at_end) {
        ssize_t got = pread(output->fd, bytes, sizeof(bytes), output->at);
        if (got > 0) {
            output->at += got;
            take_bytes(output, bytes, (size_t)got);
            free_read(output);
            max -= (size_t)got < max ? (size_t)got : max;
        } else if (got == 0 && launch_output_size(output) < output->at) {
            output->at = output->freed = 0; /* "> /dev/stderr" truncated it */
        } else {
            output->at_end = got == 0 || errno != EINTR;
        }
    }
    output->reading = false;
}

static void set_timer(struct launch_output *output)
{
    double patience = output->notify >= 0 ? LOOK_SECONDS : POLL_SECONDS;

    ev_timer_stop(output->loop, &output->timer);
    ev_timer_set(&output->timer, output->at_end ? patience : 0., 0.);
    ev_timer_start(output->loop, &output->timer);
}

static void check_file(struct launch_output *output)
{
    char events[4096];

    while (output->notify >= 0 && read(output->notify, events, sizeof(events)) > 0) {
    }
    launch_output_read(output, AT_ONCE);
    set_timer(output);
    output->on_read(output->ctx);
}

static void on_notify(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    check_file(io->data);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    check_file(timer->data);
}

/* Adds the pid to the file's name. */
static void name_after(struct launch_output *output, pid_t pid)
{
    char path[PATH_MAX + 32];
    char *dash = strrchr(output->path, '-');

    if (!dash) {
        return;
    }
    snprintf(path, sizeof(path), "%.*s-%ld" SUFFIX, (int)(dash - output->path), output->path,
             (long)pid);
    if (strlen(path) < sizeof(output->path) && rename(output->path, path) == 0) {
        snprintf(output->path, sizeof(output->path), "%.*s", (int)sizeof(output->path) - 1, path);
    }
}

void launch_output_watch(struct launch_output *output, struct ev_loop *loop, pid_t pid)
{
    char path[64];

    name_after(output, pid);
    output->loop = loop;
    output->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", output->fd);
    if (output->notify >= 0 &&
        inotify_add_watch(output->notify, path, IN_MODIFY | IN_CLOSE_WRITE) < 0) {
        close(output->notify);
        output->notify = -1;
    }
    ev_io_init(&output->io, on_notify, output->notify, EV_READ);
    output->io.data = output;
    if (output->notify >= 0) {
        ev_io_start(loop, &output->io);
    }
    ev_timer_init(&output->timer, on_timer, 0., 0.);
    output->timer.data = output;
    set_timer(output);
}

/* ---- the end ---- */

/* Every process that has the program's end open holds a shared lock. */
static bool is_locked(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK;
    }
    flock(fd, LOCK_UN);
    return false;
}

bool launch_output_is_written(const struct launch_output *output)
{
    return output->fd >= 0 && is_locked(output->fd);
}

void launch_output_close(struct launch_output *output)
{
    if (output->fd < 0) {
        return;
    }
    if (output->loop) {
        ev_io_stop(output->loop, &output->io);
        ev_timer_stop(output->loop, &output->timer);
    }
    if (output->notify >= 0) {
        close(output->notify);
        output->notify = -1;
    }
    if (launch_output_is_written(output)) {
        output->path[0] = '\0'; /* it belongs to them now */
    }
    drop_file(output);
    gd_buf_deinit(&output->line);
}

/* ---- what others left ---- */

/* Splits gradb-GRADB-PROGRAM-PID.log. */
static bool read_name(char *name, long *owner, struct launch_left *left)
{
    size_t len = strlen(name), end = strlen(SUFFIX);
    char *dash;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || len < end ||
        strcmp(name + len - end, SUFFIX) != 0) {
        return false;
    }
    name[len - end] = '\0';
    *owner = strtol(name + strlen(PREFIX), &dash, 10);
    char *last = strrchr(name, '-');
    if (*owner <= 0 || *dash != '-' || last == dash) {
        return false;
    }
    *last = '\0';
    left->program = dash + 1;
    left->pid = strtol(last + 1, NULL, 10);
    return true;
}

static bool is_alive(long pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static void tell_left(const char *directory, const char *entry,
                      void (*fn)(void *ctx, const struct launch_left *left), void *ctx)
{
    struct launch_left left;
    char name[NAME_MAX + 1], path[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    long owner = 0;

    snprintf(name, sizeof(name), "%s", entry);
    snprintf(path, sizeof(path), "%s/%s", directory, entry);
    if (!read_name(name, &owner, &left) || is_alive(owner)) {
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    left.path = path;
    left.running = is_locked(fd);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return;
    }
    if (!left.running && (st.st_size == 0 || difftime(time(NULL), st.st_mtime) > LEFT_SECONDS)) {
        unlink(path);
    } else {
        fn(ctx, &left);
    }
    close(fd);
}

void launch_output_left(void (*fn)(void *ctx, const struct launch_left *left), void *ctx)
{
    char directory[PATH_MAX];

    for (int place = 0; place < PLACES; place++) {
        DIR *dir =
            find_place(place, false, directory, sizeof(directory)) ? opendir(directory) : NULL;
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
            tell_left(directory, e->d_name, fn, ctx);
        }
        if (dir) {
            closedir(dir);
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* The Unix socket for training processes of the same user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/grpc/grpc_impl.h"

#define BACKLOG       512
#define LOCK_NAME     "lock" /* held while sockets in the directory are created and removed */
#define TOUCH_SECONDS (6 * 3600.0)

static void fill_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
}

/* GD_OK: nobody listens there, and the path is free. */
static int clear_path(const char *path, struct gd_err *err)
{
    struct sockaddr_un address;
    struct stat st;
    int code = 0;
    if (lstat(path, &st) != 0) {
        return GD_OK;
    }
    if (!S_ISSOCK(st.st_mode)) {
        return gd_fail(err, GD_EIO, "cannot listen on unix:%s: it is not a socket; remove it",
                       path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot listen on unix:%s", path);
    }
    fill_address(&address, path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        code = errno;
    }
    long pid = code == 0 ? gd_owner_of_peer(fd).pid : 0;
    close(fd);
    if (code == ECONNREFUSED) {
        return unlink(path) == 0 || errno == ENOENT
                   ? GD_OK
                   : gd_fail_errno(err, GD_EIO, "cannot remove unix:%s", path);
    }
    return gd_fail(err, GD_ESTATE,
                   "another gradb (pid %ld) is listening on unix:%s: use it, or listen elsewhere "
                   "(listen unix:PATH, listen PORT)",
                   pid, path);
}

/* Removes the sockets of killed gradbs. */
static void sweep_sockets(const char *directory, size_t len)
{
    char path[GD_SOCKET_PATH];
    DIR *dir;
    snprintf(path, sizeof(path), "%.*s", (int)len, directory);
    dir = opendir(path);
    if (!dir) {
        return;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        int used = snprintf(path, sizeof(path), "%.*s/%s", (int)len, directory, e->d_name);
        if (strncmp(e->d_name, GD_RUN_PREFIX, strlen(GD_RUN_PREFIX)) == 0 && used > 0 &&
            (size_t)used < sizeof(path)) {
            clear_path(path, NULL);
        }
    }
    closedir(dir);
}

/* The lock ends with the descriptor, which forked children do not inherit. */
static int lock_directory(const char *path, size_t len, struct gd_err *err)
{
    char name[GD_SOCKET_PATH + sizeof(LOCK_NAME)];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(name, sizeof(name), "%.*s/%s", (int)len, path, LOCK_NAME);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fcntl(fd, F_SETLKW, &lock) != 0) {
        gd_fail_errno(err, GD_EIO, "cannot lock %s", name);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static int open_listener(const char *path, struct gd_err *err)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    fill_address(&address, path);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        chmod(path, 0600) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    gd_fail_errno(err, GD_EIO, "cannot listen on unix:%s", path);
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static void on_touch(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct gd_grpc_server *server = timer->data;
    (void)loop;
    (void)events;
    utimensat(AT_FDCWD, gd_unix_path(server->socket), NULL, AT_SYMLINK_NOFOLLOW);
}

int grpc_unix_listen(struct gd_grpc_server *server, const char *path, struct gd_err *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st = {0};
    int fd = -1;
    int rc = gd_own_parent_check(path, true, err);
    if (rc != GD_OK) {
        return rc;
    }
    int lock = lock_directory(path, (size_t)(slash - path), err);
    if (lock < 0) {
        return GD_EIO;
    }
    sweep_sockets(path, (size_t)(slash - path));
    rc = clear_path(path, err);
    if (rc == GD_OK) {
        fd = open_listener(path, err);
        rc = fd < 0 ? GD_EIO : GD_OK;
    }
    close(lock);
    if (rc != GD_OK) {
        return rc;
    }
    lstat(path, &st);
    server->socket_file.device = st.st_dev;
    server->socket_file.inode = st.st_ino;
    snprintf(server->socket, sizeof(server->socket), GD_UNIX_PREFIX "%s", path);
    grpc_add_listener(server, fd);
    ev_timer_init(&server->socket_touch, on_touch, TOUCH_SECONDS, TOUCH_SECONDS);
    server->socket_touch.data = server;
    ev_timer_start(server->loop, &server->socket_touch);
    ev_unref(server->loop);
    return GD_OK;
}

void grpc_unix_close(struct gd_grpc_server *server)
{
    const char *path = gd_unix_path(server->socket);
    struct stat st;
    if (!path) {
        return;
    }
    if (lstat(path, &st) == 0 && st.st_dev == server->socket_file.device &&
        st.st_ino == server->socket_file.inode) {
        unlink(path);
    }
    ev_ref(server->loop);
    ev_timer_stop(server->loop, &server->socket_touch);
    server->socket[0] = '\0';
}

// SPDX-License-Identifier: MIT
/*
 * Whose process is at the other end of a socket, and the directory where the processes of one user
 * meet. The debugger and the training process both check, so that neither obeys a stranger.
 */
#ifndef GD_BASE_OWNER_H
#define GD_BASE_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define GD_UNIX_PREFIX   "unix:"    /* of an address: the path of a Unix socket follows */
#define GD_MEETING_POINT "debugger" /* the socket in that directory where `listen` waits */
#define GD_RUN_PREFIX    "run-"     /* sockets there of one gradb each, for what `run` starts */
#define GD_SOCKET_PATH   108        /* bytes of a Unix socket's path with its NUL */

enum gd_owner {
    GD_OWNER_OURS,   /* the same user */
    GD_OWNER_OTHER,  /* another user, or a process that closed its end already */
    GD_OWNER_HIDDEN, /* on this host, but the system does not tell whose */
    GD_OWNER_REMOTE, /* not a Unix socket and not loopback */
};

struct gd_peer_owner {
    enum gd_owner kind;
    long uid; /* -1 unknown */
    long pid; /* 0 unknown */
};

/* A connected stream socket's other end. Of TCP a server is known only once it has accepted: ask
 * after its first bytes came. */
struct gd_peer_owner gd_owner_of_peer(int fd);
/* Who listens where a TCP socket of this host is connected to; for a message, when the other end is
 * gone already. -1: unknown. */
long gd_uid_of_listener(int fd);

/* The path in an address, or NULL: it is not one of a Unix socket. */
const char *gd_unix_path(const char *address);

/* $XDG_RUNTIME_DIR/gradb, else /run/user/UID/gradb, else /tmp/gradb-UID: the first whose parent is
 * there and, but for /tmp, ours. Always the same for one user and environment. GD_ENOTFOUND. */
int gd_own_directory(char *path, size_t size, struct gd_err *err);
/* A directory, no link, ours, and of mode 0700. `make`: it is made when it is missing. GD_ENOTFOUND
 * (missing), GD_EIO. */
int gd_own_directory_check(const char *path, bool make, struct gd_err *err);
/* The same of the directory that the path lies in. GD_EINVAL: the path is too long for a socket. */
int gd_own_parent_check(const char *path, bool make, struct gd_err *err);
/* A socket, no link, of ours, in a directory of ours alone. */
int gd_own_socket_check(const char *path, struct gd_err *err);

#endif

// SPDX-License-Identifier: MIT
/*
 * Who owns the other end of a socket, and the directory where the processes of one user meet. The
 * debugger and the training process both check, so that neither obeys another user.
 */
#ifndef GD_BASE_OWNER_H
#define GD_BASE_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define GD_UNIX_PREFIX   "unix:"    /* address prefix; the path of a Unix socket follows */
#define GD_MEETING_POINT "debugger" /* socket of `listen`, in the user's directory */
#define GD_RUN_PREFIX    "run-"     /* sockets for processes started by `run`, one per gradb */
#define GD_SOCKET_PATH   108        /* maximum size of a Unix socket path, including the NUL */

enum gd_owner {
    GD_OWNER_OURS,   /* the same user */
    GD_OWNER_OTHER,  /* another user, or a process that has already closed its end */
    GD_OWNER_HIDDEN, /* on this host, owner unknown */
    GD_OWNER_REMOTE, /* not a Unix socket and not loopback */
};

struct gd_peer_owner {
    enum gd_owner kind;
    long uid; /* -1: unknown */
    long pid; /* 0: unknown */
};

/* Owner of the other end of a connected stream socket. A TCP server is known only once it has
 * accepted: call this after its first bytes arrived. */
struct gd_peer_owner gd_owner_of_peer(int fd);
/* User that listens on the port that a TCP socket of this host is connected to; for a message when
 * the peer is gone. -1: unknown. */
long gd_uid_of_listener(int fd);

/* The path in a "unix:" address; NULL for other addresses. */
const char *gd_unix_path(const char *address);

/* $XDG_RUNTIME_DIR/gradb, else /run/user/UID/gradb, else /tmp/gradb-UID: the first whose parent
 * exists and (except /tmp) belongs to the user. Always the same for one user and environment.
 * Returns GD_OK or GD_ENOTFOUND. */
int gd_own_directory(char *path, size_t size, struct gd_err *err);
/* Checks for a directory (not a link) of this user with mode 0700. make: create it if missing.
 * Returns GD_OK, GD_ENOTFOUND (missing) or GD_EIO. */
int gd_own_directory_check(const char *path, bool make, struct gd_err *err);
/* The same check for the parent directory of `path`; also GD_EINVAL: the path is too long for a
 * socket. */
int gd_own_parent_check(const char *path, bool make, struct gd_err *err);
/* Checks for a socket (not a link) of this user, in a directory as above. */
int gd_own_socket_check(const char *path, struct gd_err *err);

#endif

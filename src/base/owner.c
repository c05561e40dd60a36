// SPDX-License-Identifier: MIT
#include "base/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAX_DIRECTORY 72 /* bytes; leaves room for the name of a socket */

/* ---- peers ---- */

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

/* An address as /proc/net/tcp (v4) and /proc/net/tcp6 (v6) print it; IPv4 may be in both. */
struct end_text {
    char v4[16], v6[48]; /* "": not in this table */
};

static void add_words(char *out, size_t size, const struct in6_addr *address, unsigned port)
{
    uint32_t word[4];

    memcpy(word, address, sizeof(word));
    snprintf(out, size, "%08X%08X%08X%08X:%04X", word[0], word[1], word[2], word[3], port);
}

/* False when it is not a loopback address. */
static bool describe_address(const union any_address *address, struct end_text *ret)
{
    struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    struct in_addr v4 = address->v4.sin_addr;
    unsigned port = ntohs(address->v4.sin_port); /* same offset as sin6_port */

    ret->v4[0] = '\0';
    if (address->any.sa_family == AF_INET6) {
        const struct in6_addr *v6 = &address->v6.sin6_addr;
        add_words(ret->v6, sizeof(ret->v6), v6, port);
        if (!IN6_IS_ADDR_V4MAPPED(v6)) {
            return IN6_IS_ADDR_LOOPBACK(v6);
        }
        memcpy(&v4, &v6->s6_addr[12], sizeof(v4));
    }
    memcpy(&mapped.s6_addr[12], &v4, sizeof(v4));
    add_words(ret->v6, sizeof(ret->v6), &mapped, port);
    snprintf(ret->v4, sizeof(ret->v4), "%08X:%04X", v4.s_addr, port);
    return ntohl(v4.s_addr) >> 24 == 127;
}

/* Finds the user of the connection from `local` to `remote`; returns false when the table cannot be
 * read. A socket that no process holds (closed, or not accepted yet) has inode 0, and its user is
 * unknown. */
static bool find_owner(const char *table, const char *local, const char *remote, long *uid)
{
    char line[512], from[64], to[64];
    unsigned long user, inode;
    GD_CLEANUP(gd_cleanup_file) FILE *f = fopen(table, "re");

    if (!f) {
        return false;
    }
    while (*uid < 0 && fgets(line, sizeof(line), f)) {
        if (strstr(line, local) &&
            sscanf(line, " %*[^:]: %63s %63s %*s %*s %*s %*s %lu %*s %lu", from, to, &user,
                   &inode) == 4 &&
            strcmp(from, local) == 0 && strcmp(to, remote) == 0 && inode != 0) {
            *uid = (long)user;
        }
    }
    return true;
}

static struct gd_peer_owner find_tcp_owner(int fd)
{
    struct gd_peer_owner owner = {.kind = GD_OWNER_REMOTE, .uid = -1};
    union any_address ours = {.any = {.sa_family = AF_UNSPEC}}, theirs = ours;
    socklen_t our_size = sizeof(ours), their_size = sizeof(theirs);
    struct end_text here, there;

    if (getsockname(fd, &ours.any, &our_size) != 0 ||
        getpeername(fd, &theirs.any, &their_size) != 0 ||
        (theirs.any.sa_family != AF_INET && theirs.any.sa_family != AF_INET6)) {
        return owner;
    }
    describe_address(&ours, &here);
    if (!describe_address(&theirs, &there)) {
        return owner;
    }
    bool readable = here.v4[0] != '\0' && there.v4[0] != '\0' &&
                    find_owner("/proc/net/tcp", there.v4, here.v4, &owner.uid);
    if (owner.uid < 0) {
        readable = find_owner("/proc/net/tcp6", there.v6, here.v6, &owner.uid) || readable;
    }
    owner.kind = !readable                      ? GD_OWNER_HIDDEN
                 : owner.uid == (long)geteuid() ? GD_OWNER_OURS
                                                : GD_OWNER_OTHER;
    return owner;
}

/* The table lists a listening socket with an all-zero remote address. */
long gd_uid_of_listener(int fd)
{
    static const char none4[] = "00000000:0000", none6[] = "00000000000000000000000000000000:0000";
    union any_address theirs = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = sizeof(theirs);
    struct end_text end;
    char any4[sizeof(none4)], any6[sizeof(none6)];
    long uid = -1;

    if (getpeername(fd, &theirs.any, &size) != 0 ||
        (theirs.any.sa_family != AF_INET && theirs.any.sa_family != AF_INET6) ||
        !describe_address(&theirs, &end)) {
        return -1;
    }
    unsigned port = ntohs(theirs.v4.sin_port);
    snprintf(any4, sizeof(any4), "00000000:%04X", port & 0xffff);
    snprintf(any6, sizeof(any6), "00000000000000000000000000000000:%04X", port & 0xffff);
    if (end.v4[0] != '\0') {
        find_owner("/proc/net/tcp", end.v4, none4, &uid);
        find_owner("/proc/net/tcp", any4, none4, &uid);
    }
    find_owner("/proc/net/tcp6", end.v6, none6, &uid);
    find_owner("/proc/net/tcp6", any6, none6, &uid);
    return uid;
}

struct gd_peer_owner gd_owner_of_peer(int fd)
{
    struct ucred who = {.pid = 0};
    socklen_t size = sizeof(who);
    int domain = AF_UNSPEC;
    socklen_t domain_size = sizeof(domain);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) != 0 || domain != AF_UNIX) {
        return find_tcp_owner(fd);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
        return (struct gd_peer_owner){.kind = GD_OWNER_OTHER, .uid = -1};
    }
    return (struct gd_peer_owner){.kind = who.uid == geteuid() ? GD_OWNER_OURS : GD_OWNER_OTHER,
                                  .uid = (long)who.uid,
                                  .pid = (long)who.pid};
}

/* ---- places of sockets ---- */

const char *gd_unix_path(const char *address)
{
    size_t len = strlen(GD_UNIX_PREFIX);
    return address && strncmp(address, GD_UNIX_PREFIX, len) == 0 ? address + len : NULL;
}

static bool is_our_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

int gd_own_directory(char *path, size_t size, struct gd_err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char user[40];
    int len;

    snprintf(user, sizeof(user), "/run/user/%ld", (long)geteuid());
    if (runtime && runtime[0] == '/' && strlen(runtime) + 6 < MAX_DIRECTORY &&
        is_our_directory(runtime)) {
        len = snprintf(path, size, "%s/gradb", runtime);
    } else if (is_our_directory(user)) {
        len = snprintf(path, size, "%s/gradb", user);
    } else {
        len = snprintf(path, size, "/tmp/gradb-%ld", (long)geteuid());
    }
    return len > 0 && (size_t)len < size
               ? GD_OK
               : gd_fail(err, GD_ENOTFOUND, "no directory for sockets: set XDG_RUNTIME_DIR");
}

int gd_own_directory_check(const char *path, bool make, struct gd_err *err)
{
    struct stat st;

    if (make && mkdir(path, 0700) != 0 && errno != EEXIST) {
        return gd_fail_errno(err, GD_ENOTFOUND, "cannot create the directory %.300s", path);
    }
    if (lstat(path, &st) != 0) {
        return gd_fail_errno(err, GD_ENOTFOUND, "%.300s", path);
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return gd_fail(err, GD_EIO,
                       "%.300s must be a directory that belongs to you and has mode 0700", path);
    }
    return GD_OK;
}

int gd_own_parent_check(const char *path, bool make, struct gd_err *err)
{
    char parent[GD_SOCKET_PATH];
    const char *slash = strrchr(path, '/');

    if (strlen(path) >= GD_SOCKET_PATH) {
        return gd_fail(err, GD_EINVAL, "socket path too long: %.200s (at most %d bytes)", path,
                       GD_SOCKET_PATH - 1);
    }
    if (!slash || slash[1] == '\0') {
        return gd_fail(err, GD_EINVAL, "\"%.200s\" is not a socket path: write unix:/DIR/NAME",
                       path);
    }
    snprintf(parent, sizeof(parent), "%.*s", slash > path ? (int)(slash - path) : 1, path);
    return gd_own_directory_check(parent, make, err);
}

int gd_own_socket_check(const char *path, struct gd_err *err)
{
    struct stat st;
    int rc = gd_own_parent_check(path, false, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (lstat(path, &st) != 0) {
        return gd_fail_errno(err, GD_ENOTFOUND, "%.300s", path);
    }
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid()) {
        return gd_fail(err, GD_EIO, "%.300s must be a socket that belongs to you", path);
    }
    return GD_OK;
}

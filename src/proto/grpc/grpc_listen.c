// SPDX-License-Identifier: GPL-3.0-or-later
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/grpc/grpc_impl.h"

#define BACKLOG      512
#define ACCEPTS      64  /* new connections before other events get their turn */
#define ACCEPT_PAUSE 0.2 /* seconds without accepting after running out of descriptors */
#define FREE_PORTS   16  /* attempts to find a port that is free on both loopback addresses */

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->ss_family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
    }
    return false;
}

/* --- accepting --- */

static void pause_accepting(struct gd_grpc_server *server)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        ev_io_stop(server->loop, &server->listeners[i].io);
    }
    ev_timer_set(&server->accept_pause, ACCEPT_PAUSE, 0.);
    ev_timer_start(server->loop, &server->accept_pause);
}

static void on_accept_pause(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct gd_grpc_server *server = w->data;
    (void)revents;
    for (size_t i = 0; i < server->listener_count; i++) {
        ev_io_start(loop, &server->listeners[i].io);
    }
}

/* The peer's connection is closed, which a gRPC client reports as UNAVAILABLE. */
static void refuse_peer(struct gd_grpc_server *server, int fd, const struct gd_peer_owner *owner)
{
    char peer[80];
    grpc_peer_name(fd, owner, peer, sizeof(peer));
    close(fd);
    if (!server->refusing) {
        grpc_log(server, "refused %s: %zu connections are open (set max-connections)", peer,
                 server->conn_count);
    }
    server->refusing = true;
}

static void name_user(long uid, char *out, size_t size)
{
    char text[1024];
    struct passwd user, *found = NULL;
    if (getpwuid_r((uid_t)uid, &user, text, sizeof(text), &found) == 0 && found) {
        snprintf(out, size, "user %.32s (uid %ld)", found->pw_name, uid);
    } else {
        snprintf(out, size, "uid %ld", uid);
    }
}

/* Refuses another user's process. It may retry often, so repeated refusals are logged once. */
static void refuse_stranger(struct gd_grpc_server *server, int fd,
                            const struct gd_peer_owner *owner)
{
    char peer[80], theirs[64], ours[64];
    grpc_peer_name(fd, owner, peer, sizeof(peer));
    close(fd);
    if (owner->uid >= 0 && owner->uid != server->refused_uid) {
        server->refused_uid = owner->uid;
        name_user(owner->uid, theirs, sizeof(theirs));
        name_user((long)geteuid(), ours, sizeof(ours));
        grpc_log(server, "refused %s: it belongs to %s, and only processes of %s may connect", peer,
                 theirs, ours);
    }
}

/* A token, or the setting to trust the network, admits other users as well as other hosts. */
static bool is_welcome(const struct gd_grpc_server *server, const struct gd_peer_owner *owner)
{
    const struct gd_settings *settings = server->settings;
    return owner->kind != GD_OWNER_OTHER ||
           (owner->pid == 0 && (settings->token[0] != '\0' || settings->ms_shared_allow_remote));
}

static void take_connection(struct gd_grpc_server *server, int fd)
{
    int on = 1;
    struct gd_err err;
    struct gd_peer_owner owner = gd_owner_of_peer(fd);
    if (!is_welcome(server, &owner)) {
        refuse_stranger(server, fd, &owner);
        return;
    }
    if (server->conn_count >= server->settings->max_connections) {
        refuse_peer(server, fd, &owner);
        return;
    }
    server->refusing = false;
    if (owner.pid == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (grpc_conn_create(server, fd, &owner, &err) != GD_OK) {
        grpc_log(server, "%s", err.text);
    }
}

static void on_connect(struct ev_loop *loop, ev_io *w, int revents)
{
    struct gd_grpc_listener *listener = w->data;
    struct gd_grpc_server *server = listener->server;
    (void)loop;
    (void)revents;
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_connection(server, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            grpc_log(server, "cannot accept connections for now: %s", strerror(errno));
            pause_accepting(server);
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } /* otherwise only this connection failed */
    }
}

/* --- listening --- */

static int open_socket(const struct sockaddr_storage *address, bool both_families)
{
    int on = 1, v6_only = !both_families;
    socklen_t len =
        address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
    }
    if (bind(fd, (const struct sockaddr *)address, len) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

void grpc_add_listener(struct gd_grpc_server *server, int fd)
{
    struct gd_grpc_listener *listener = &server->listeners[server->listener_count++];
    listener->server = server;
    listener->fd = fd;
    ev_io_init(&listener->io, on_connect, fd, EV_READ);
    listener->io.data = listener;
    ev_io_start(server->loop, &listener->io);
}

static int is_refused(const struct sockaddr_storage *address, struct gd_err *err)
{
    char text[80];
    grpc_print_address(address, text, sizeof(text));
    if (errno == EADDRINUSE) {
        return gd_fail_errno(
            err, GD_EIO,
            "cannot listen on %s: another program uses this port; stop it or choose another port",
            text);
    }
    return gd_fail_errno(err, GD_EIO, "cannot listen on %s", text);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        return 0;
    }
    return address.ss_family == AF_INET ? ((struct sockaddr_in *)(void *)&address)->sin_port
                                        : ((struct sockaddr_in6 *)(void *)&address)->sin6_port;
}

/* Opens 127.0.0.1 and ::1 on the same port: clients that connect to localhost try ::1 first. `port`
 * is in network order. Returns the IPv4 descriptor; *ret6 is the other one (-1: no IPv6). */
static int open_loopback(uint16_t port, int *ret6, struct gd_err *err)
{
    struct sockaddr_storage v4 = {0}, v6 = {0};
    struct sockaddr_in *in4 = (void *)&v4;
    struct sockaddr_in6 *in6 = (void *)&v6;
    int tries = port == 0 ? FREE_PORTS : 1;
    in4->sin_family = AF_INET;
    in4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in4->sin_port = port;
    in6->sin6_family = AF_INET6;
    in6->sin6_addr = in6addr_loopback;
    for (int i = 0; i < tries; i++) {
        int fd = open_socket(&v4, false);
        if (fd < 0) {
            return is_refused(&v4, err);
        }
        in6->sin6_port = port_of(fd);
        *ret6 = open_socket(&v6, false);
        if (*ret6 >= 0 || errno != EADDRINUSE) {
            return fd;
        }
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return is_refused(&v6, err);
}

static int listen_loopback(struct gd_grpc_server *server, uint16_t port, struct gd_err *err)
{
    int fd6 = -1;
    int fd = open_loopback(port, &fd6, err);
    if (fd < 0) {
        return fd;
    }
    grpc_add_listener(server, fd);
    if (fd6 >= 0) {
        grpc_add_listener(server, fd6);
    }
    server->loopback = true;
    return GD_OK;
}

static int resolve_name(const struct gd_grpc_address *where, struct sockaddr_storage *ret,
                        struct gd_err *err)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(where->host, where->port, &hints, &found);
    if (rc != 0) {
        return gd_fail(err, GD_EINVAL, "cannot listen on %.200s: %s", where->host,
                       gai_strerror(rc));
    }
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return GD_OK;
}

static int listen_elsewhere(struct gd_grpc_server *server, const struct gd_grpc_address *where,
                            struct gd_err *err)
{
    struct sockaddr_storage address;
    int rc = resolve_name(where, &address, err);
    if (rc != GD_OK) {
        return rc;
    }
    int fd = open_socket(&address, true);
    if (fd < 0) {
        return is_refused(&address, err);
    }
    grpc_add_listener(server, fd);
    server->loopback = is_loopback(&address);
    return GD_OK;
}

static int listen_tcp(struct gd_grpc_server *server, const char *address, struct gd_err *err)
{
    struct gd_grpc_address where;
    int rc = gd_grpc_address_parse(address, &where, err);
    size_t first = server->listener_count;
    if (rc != GD_OK) {
        return rc;
    }
    bool loopback = where.host[0] == '\0' || strcmp(where.host, "localhost") == 0 ||
                    strcmp(where.host, "127.0.0.1") == 0 || strcmp(where.host, "::1") == 0;
    if (strcmp(where.host, "*") == 0) {
        snprintf(where.host, sizeof(where.host), "0.0.0.0");
    }
    unsigned port = (unsigned)strtoul(where.port, NULL, 10);
    rc = loopback ? listen_loopback(server, htons((uint16_t)port), err)
                  : listen_elsewhere(server, &where, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    getsockname(server->listeners[first].fd, (struct sockaddr *)&bound, &len);
    grpc_print_address(&bound, server->address, sizeof(server->address));
    return GD_OK;
}

int gd_grpc_server_listen(struct gd_grpc_server *server, const char *address, struct gd_err *err)
{
    const char *path = gd_unix_path(address);
    const char *already = path ? server->socket : server->address;
    if (already[0] != '\0') {
        return gd_fail(err, GD_ESTATE, "already listening on %s", already);
    }
    return path ? grpc_unix_listen(server, path, err) : listen_tcp(server, address, err);
}

void gd_grpc_server_close(struct gd_grpc_server *server)
{
    ev_timer_stop(server->loop, &server->accept_pause);
    for (size_t i = 0; i < server->listener_count; i++) {
        ev_io_stop(server->loop, &server->listeners[i].io);
        close(server->listeners[i].fd);
    }
    server->listener_count = 0;
    server->address[0] = '\0';
    server->loopback = false;
    grpc_unix_close(server);
}

void grpc_listen_init(struct gd_grpc_server *server)
{
    ev_init(&server->accept_pause, on_accept_pause);
    server->accept_pause.data = server;
    server->refused_uid = -1;
}

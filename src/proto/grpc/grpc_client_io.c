// SPDX-License-Identifier: MIT
/* Sockets for a gRPC client: connecting, reading, writing. Never blocks. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/owner.h"
#include "proto/grpc/grpc_client.h"
#include "proto/grpc/grpc_frame.h"

#define READ_SIZE 65536
#define READS     16 /* per call of gd_grpc_client_read */
#define MAX_IOV   64

static int dial_address(const struct sockaddr *address, socklen_t len, const char *text, int *ret,
                        struct gd_err *err)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot connect to %s", text);
    }
    if (address->sa_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    int rc;
    do {
        rc = connect(fd, address, len);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno != EINPROGRESS && errno != EALREADY && errno != EISCONN) {
        gd_fail_errno(err, GD_EIO, "cannot connect to %s", text);
        close(fd);
        return GD_EIO;
    }
    *ret = fd;
    return GD_OK;
}

/* localhost needs no resolver: its two addresses are known. */
static int dial_loopback(unsigned attempt, uint16_t port, const char *text, int *ret,
                         struct gd_err *err)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (attempt == 0) {
        return dial_address((const struct sockaddr *)&v4, sizeof(v4), text, ret, err);
    }
    if (attempt == 1) {
        return dial_address((const struct sockaddr *)&v6, sizeof(v6), text, ret, err);
    }
    return gd_fail(err, GD_ENOTFOUND, "%s has no more addresses", text);
}

static int dial_host(const char *address, unsigned attempt, int *ret, struct gd_err *err)
{
    struct gd_grpc_address where;
    struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc = gd_grpc_address_parse(address, &where, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (where.host[0] == '\0' || strcmp(where.host, "localhost") == 0) {
        uint16_t port = htons((uint16_t)strtoul(where.port, NULL, 10));
        return dial_loopback(attempt, port, address, ret, err);
    }
    int failed = getaddrinfo(where.host, where.port, &hints, &found);
    if (failed) {
        return gd_fail(err, GD_ENOTFOUND, "no address for %.200s: %s", where.host,
                       gai_strerror(failed));
    }
    struct addrinfo *one = found;
    for (unsigned i = 0; one && i < attempt; i++) {
        one = one->ai_next;
    }
    rc = one ? dial_address(one->ai_addr, one->ai_addrlen, address, ret, err)
             : gd_fail(err, GD_ENOTFOUND, "%s has no more addresses", address);
    freeaddrinfo(found);
    return rc;
}

static int dial_unix(const char *path, const char *text, int *ret, struct gd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int rc = gd_own_socket_check(path, err);
    if (rc != GD_OK) {
        return rc;
    }
    memcpy(address.sun_path, path, strlen(path)); /* the length was checked */
    return dial_address((const struct sockaddr *)&address, sizeof(address), text, ret, err);
}

int gd_grpc_connect(const char *address, unsigned attempt, int *ret, struct gd_err *err)
{
    const char *path = gd_unix_path(address);
    if (path) {
        return attempt == 0 ? dial_unix(path, address, ret, err)
                            : gd_fail(err, GD_ENOTFOUND, "%s has no more addresses", address);
    }
    return dial_host(address, attempt, ret, err);
}

int gd_grpc_connect_finish(int fd, struct gd_err *err)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        errno = error;
        return gd_fail_errno(err, GD_EIO, "cannot connect");
    }
    return GD_OK;
}

static int lose_connection(struct gd_grpc_client *client, int code, struct gd_err *err)
{
    struct gd_err local;
    err = err ? err : &local;
    if (code == GD_ELOST) {
        gd_fail(err, code, "the server closed the connection");
    } else {
        gd_fail_errno(err, code, "the connection broke");
    }
    gd_grpc_client_lost(client, err->text);
    return code;
}

int gd_grpc_client_read(struct gd_grpc_client *client, int fd, struct gd_err *err)
{
    uint8_t buffer[READ_SIZE];
    int rc = GD_OK;
    for (int i = 0; i < READS && rc == GD_OK; i++) {
        ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        if (n > 0) {
            rc = gd_grpc_client_feed(client, buffer, (size_t)n, err);
            if ((size_t)n < sizeof(buffer)) {
                break;
            }
        } else if (n == 0) {
            return lose_connection(client, GD_ELOST, err);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            return lose_connection(client, GD_EIO, err);
        }
    }
    return rc;
}

int gd_grpc_client_write(struct gd_grpc_client *client, int fd, struct gd_err *err)
{
    for (;;) {
        struct iovec iov[MAX_IOV];
        size_t count = gd_grpc_client_out(client, iov, MAX_IOV);
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
        if (count == 0) {
            return GD_OK;
        }
        ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            gd_grpc_client_sent(client, (size_t)n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return GD_OK;
        } else if (errno != EINTR) {
            return lose_connection(client, GD_EIO, err);
        }
    }
}

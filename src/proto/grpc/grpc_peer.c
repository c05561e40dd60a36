// SPDX-License-Identifier: GPL-3.0-or-later
/* What a peer is called, and what the log says about it. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/grpc/grpc_impl.h"

void grpc_log(struct gd_grpc_server *server, const char *format, ...)
{
    char line[512];
    va_list args;
    if (!server->log) {
        return;
    }
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    server->log(server->log_ctx, line);
}

void grpc_print_address(const struct sockaddr_storage *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(out, size, "%s:%u", host, ntohs(v4->sin_port));
    } else if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        if (mapped) {
            inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, sizeof(host));
        } else {
            inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        }
        snprintf(out, size, mapped ? "%s:%u" : "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        snprintf(out, size, "a local socket");
    }
}

void grpc_peer_name(int fd, const struct gd_peer_owner *owner, char *out, size_t size)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    if (owner->pid > 0) {
        snprintf(out, size, "pid %ld", owner->pid);
    } else if (getpeername(fd, (struct sockaddr *)&address, &len) != 0) {
        snprintf(out, size, "a peer that left");
    } else {
        grpc_print_address(&address, out, size);
    }
}

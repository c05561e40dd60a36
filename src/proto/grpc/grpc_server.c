// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "proto/grpc/grpc_impl.h"

static int set_up(struct gd_grpc_server *server)
{
    server->read_buffer = malloc(GRPC_READ_SIZE);
    if (!server->read_buffer || nghttp2_session_callbacks_new(&server->callbacks) ||
        nghttp2_option_new(&server->options)) {
        return GD_ENOMEM;
    }
    grpc_conn_set_callbacks(server->callbacks);
    /* Closed streams would be kept for a priority tree, which gRPC does not use. */
    nghttp2_option_set_no_closed_streams(server->options, 1);
    return GD_OK;
}

int gd_grpc_server_create(struct ev_loop *loop, const struct gd_settings *settings,
                          struct gd_grpc_server **ret, struct gd_err *err)
{
    struct gd_grpc_server *server = calloc(1, sizeof(*server));
    if (!server || set_up(server) != GD_OK) {
        gd_grpc_server_destroy(server);
        return gd_fail(err, GD_ENOMEM, "out of memory for the server");
    }
    server->loop = loop;
    server->settings = settings;
    server->peer_patience = GRPC_PEER_PATIENCE;
    server->idle_patience = GRPC_IDLE_PATIENCE;
    grpc_listen_init(server);
    *ret = server;
    return GD_OK;
}

void gd_grpc_server_destroy(struct gd_grpc_server *server)
{
    if (!server) {
        return;
    }
    if (server->loop) {
        gd_grpc_server_close(server);
    }
    while (server->conns) {
        grpc_conn_free(server->conns);
    }
    nghttp2_session_callbacks_del(server->callbacks);
    nghttp2_option_del(server->options);
    free(server->read_buffer);
    free(server->services);
    free(server);
}

void gd_grpc_server_set_log(struct gd_grpc_server *server, gd_grpc_log_fn log, void *ctx)
{
    server->log = log;
    server->log_ctx = ctx;
}

int gd_grpc_server_add(struct gd_grpc_server *server, const struct gd_grpc_service *service,
                       struct gd_err *err)
{
    const struct gd_grpc_service **more =
        gd_grow(server->services, server->service_count, &server->service_capacity, sizeof(*more));
    if (!more) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a service");
    }
    server->services = more;
    server->services[server->service_count++] = service;
    return GD_OK;
}

int gd_grpc_server_adopt(struct gd_grpc_server *server, int fd, struct gd_err *err)
{
    struct gd_peer_owner owner = gd_owner_of_peer(fd);
    return grpc_conn_create(server, fd, &owner, err);
}

size_t gd_grpc_server_connections(const struct gd_grpc_server *server)
{
    return server->conn_count;
}

const char *gd_grpc_server_address(const struct gd_grpc_server *server)
{
    return server->address[0] ? server->address : gd_grpc_server_socket(server);
}

const char *gd_grpc_server_socket(const struct gd_grpc_server *server)
{
    return server->socket[0] ? server->socket : NULL;
}

bool gd_grpc_server_is_loopback(const struct gd_grpc_server *server)
{
    return server->loopback || !server->address[0];
}

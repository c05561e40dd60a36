// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/server.h"

#include <stdlib.h>

#include "proto/grpc/grpc_server.h"
#include "proto/ms/ms_service.h"
#include "proto/v1/v1_service.h"

struct gd_server {
    struct gd_debugger *debugger;
    struct gd_grpc_server *grpc;
    struct gd_ms_service *ms;
    struct gd_v1_service *v1;
};

static int listen_on(void *ctx, const char *address, struct gd_err *err)
{
    struct gd_server *server = ctx;
    return gd_grpc_server_listen(server->grpc, address, err);
}

static void stop_listening(void *ctx)
{
    struct gd_server *server = ctx;
    gd_grpc_server_close(server->grpc);
}

static const char *address_of(void *ctx)
{
    struct gd_server *server = ctx;
    return gd_grpc_server_address(server->grpc);
}

static const char *socket_of(void *ctx)
{
    struct gd_server *server = ctx;
    return gd_grpc_server_socket(server->grpc);
}

static bool serves_detached(void *ctx)
{
    struct gd_server *server = ctx;
    return gd_ms_service_serves_detached(server->ms);
}

static const struct gd_server_ops ops = {listen_on, stop_listening, address_of, socket_of,
                                         serves_detached};

/* Connection errors from before the peer is known. */
static void on_log(void *ctx, const char *line)
{
    struct gd_server *server = ctx;
    struct gd_event event = {.type = GD_EV_WARNING, .text = line};
    gd_debugger_emit(server->debugger, &event);
}

int gd_server_create(struct ev_loop *loop, struct gd_debugger *debugger, struct gd_server **ret,
                     struct gd_err *err)
{
    struct gd_server *server = calloc(1, sizeof(*server));
    if (!server) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the server");
    }
    server->debugger = debugger;
    int rc = gd_grpc_server_create(loop, &debugger->settings, &server->grpc, err);
    if (rc == GD_OK) {
        rc = gd_ms_service_create(loop, debugger, server->grpc, &server->ms, err);
    }
    if (rc == GD_OK) {
        rc = gd_v1_service_create(loop, debugger, server->grpc, &server->v1, err);
    }
    if (rc != GD_OK) {
        gd_server_destroy(server);
        return rc;
    }
    gd_grpc_server_set_log(server->grpc, on_log, server);
    debugger->server = &ops;
    debugger->server_ctx = server;
    *ret = server;
    return GD_OK;
}

void gd_server_destroy(struct gd_server *server)
{
    if (!server) {
        return;
    }
    gd_grpc_server_destroy(server->grpc);
    gd_v1_service_destroy(server->v1);
    gd_ms_service_destroy(server->ms);
    if (server->debugger->server_ctx == server) {
        server->debugger->server = NULL;
        server->debugger->server_ctx = NULL;
    }
    free(server);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * gradb.v1: training processes that link libgradb (or speak docs/protocol.md) as targets.
 */
#ifndef GD_PROTO_V1_SERVICE_H
#define GD_PROTO_V1_SERVICE_H

#include "engine/debugger.h"
#include "proto/grpc/grpc_server.h"

struct gd_v1_service;

/* Adds its methods to the server. Destroy it after the server's connections are closed
 * (gd_grpc_server_destroy) and before the debugger. */
int gd_v1_service_create(struct ev_loop *loop, struct gd_debugger *debugger,
                         struct gd_grpc_server *server, struct gd_v1_service **ret,
                         struct gd_err *err);
void gd_v1_service_destroy(struct gd_v1_service *service);

#endif

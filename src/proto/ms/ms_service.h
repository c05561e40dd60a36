// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * debugger.EventListener: MindSpore 1.1 to 2.3 training processes as targets.
 */
#ifndef GD_PROTO_MS_SERVICE_H
#define GD_PROTO_MS_SERVICE_H

#include "engine/debugger.h"
#include "proto/grpc/grpc_server.h"

struct gd_ms_service;

/* Adds its methods to the server. Destroy it after the server's connections are closed
 * (gd_grpc_server_destroy) and before the debugger. */
int gd_ms_service_create(struct ev_loop *loop, struct gd_debugger *debugger,
                         struct gd_grpc_server *server, struct gd_ms_service **ret,
                         struct gd_err *err);
void gd_ms_service_destroy(struct gd_ms_service *service);
/* Whether a detached process exists: it still asks at each of its stops, and would exit without
 * us. */
bool gd_ms_service_serves_detached(const struct gd_ms_service *service);

#endif

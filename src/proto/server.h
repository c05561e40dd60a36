// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The network server, as main.c wires it up: one port that serves debugger.EventListener (MindSpore
 * 1.x) and gradb.v1. Each training process becomes a session of the debugger.
 */
#ifndef GD_PROTO_SERVER_H
#define GD_PROTO_SERVER_H

#include "engine/debugger.h"

struct ev_loop;
struct gd_server;

/* Registers itself as debugger->server. Destroy it before the debugger. */
int gd_server_create(struct ev_loop *loop, struct gd_debugger *debugger, struct gd_server **ret,
                     struct gd_err *err);
void gd_server_destroy(struct gd_server *server);

#endif

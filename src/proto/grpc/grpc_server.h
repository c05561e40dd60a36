// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A gRPC server on one libev loop: HTTP/2 through nghttp2 (prior knowledge, cleartext), several
 * listening sockets, any number of connections and streams. It knows paths and messages, but no
 * service.
 *
 * A service registers methods. Each call receives events in this order: open, message (or chunk)
 * any number of times, half_close, and finally closed, exactly once, also when the peer resets the
 * stream, the connection breaks or the server is destroyed. After `closed` the call is freed.
 * Everything runs on the loop's thread. Handlers may send and finish during any event except
 * closed, and at any later time until closed. A handler that runs the loop itself must not wait for
 * the connection that it was called for, which is suspended until the handler returns.
 */
#ifndef GD_PROTO_GRPC_SERVER_H
#define GD_PROTO_GRPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/settings.h"
#include "proto/grpc/grpc_code.h"

struct ev_loop;
struct gd_grpc_server;
struct gd_grpc_conn;
struct gd_grpc_call;

struct gd_grpc_method {
    const char *path;    /* "/debugger.EventListener/WaitCMD" */
    bool client_streams; /* false: exactly one message, otherwise INVALID_ARGUMENT */
    void (*open)(struct gd_grpc_call *call, void *service); /* may be NULL */
    /* One complete message, decompressed; valid during the call only. */
    void (*message)(struct gd_grpc_call *call, const uint8_t *data, size_t len);
    /* If set, receives uncompressed messages instead of `message`, as their bytes arrive. offset
     * counts from the start of the message, total is its length; an empty message gives one chunk
     * of 0 bytes; the last chunk has offset + len == total. Without `message`, a compressed message
     * arrives as one chunk. */
    void (*chunk)(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                  size_t total);
    void (*half_close)(struct gd_grpc_call *call); /* the client has sent everything; may be NULL */
    void (*closed)(struct gd_grpc_call *call);     /* may be NULL */
    /* May be NULL; used with `chunk`. The best place for the next bytes of the current message:
     * returns it, with its size in *room, or NULL. The bytes are then read from the socket into
     * that place, and arrive in `chunk` with `data` equal to it, so that they need not be copied.
     * Called between reads, without obligation: the place may be written to and then not be
     * used. */
    uint8_t *(*place)(struct gd_grpc_call *call, size_t *room);
};

struct gd_grpc_service {
    const struct gd_grpc_method *methods;
    size_t method_count;
    void *ctx; /* `service` of open; gd_grpc_call_service() */
    void (*conn_closed)(struct gd_grpc_conn *conn,
                        void *ctx); /* may be NULL; after its calls closed */
};

/* Limits and keepalive are read from *settings when they are used; it must outlive the server. */
int gd_grpc_server_create(struct ev_loop *loop, const struct gd_settings *settings,
                          struct gd_grpc_server **ret, struct gd_err *err);
/* Sends GOAWAY and closes everything. Not during an event. NULL is allowed. */
void gd_grpc_server_destroy(struct gd_grpc_server *server);
/* One line for every connection error that no call receives: not HTTP/2, a flood, an unanswered
 * PING, too many connections. The line has no newline. */
typedef void (*gd_grpc_log_fn)(void *ctx, const char *line);
void gd_grpc_server_set_log(struct gd_grpc_server *server, gd_grpc_log_fn log, void *ctx);
/* `service` must outlive the server. GD_ENOMEM. */
int gd_grpc_server_add(struct gd_grpc_server *server, const struct gd_grpc_service *service,
                       struct gd_err *err);

/* As gd_server_ops.listen. A loopback name listens on 127.0.0.1 and, if the machine has it, ::1, on
 * the same port. "unix:PATH": a socket in a directory of this user; a socket whose process is gone
 * is replaced. One of each kind is possible. */
int gd_grpc_server_listen(struct gd_grpc_server *server, const char *address, struct gd_err *err);
void gd_grpc_server_close(struct gd_grpc_server *server); /* stops listening; connections stay */
/* Of TCP, otherwise "unix:PATH"; NULL: not listening. */
const char *gd_grpc_server_address(const struct gd_grpc_server *server);
const char *gd_grpc_server_socket(const struct gd_grpc_server *server); /* "unix:PATH" or NULL */
bool gd_grpc_server_is_loopback(const struct gd_grpc_server *server);
/* Serves a connected stream socket; takes ownership of `fd`, also on failure. GD_ELIMIT, GD_ENOMEM,
 * GD_EIO. */
int gd_grpc_server_adopt(struct gd_grpc_server *server, int fd, struct gd_err *err);
size_t gd_grpc_server_connections(const struct gd_grpc_server *server);

/* Sends one message; the bytes are copied. GD_ELIMIT if the peer does not read (a connection's
 * queue is limited to 4 x max_message, or one message), GD_ELOST if the call is finished or
 * closed. */
int gd_grpc_send(struct gd_grpc_call *call, const void *data, size_t len);
/* Sends the trailers: nothing more is sent or delivered, only `closed` follows. message may be
 * NULL; it is percent-encoded. With GD_GRPC_OK a unary call must have sent its message. */
void gd_grpc_finish(struct gd_grpc_call *call, enum gd_grpc_code code, const char *message);
/* Send + finish OK. */
int gd_grpc_reply(struct gd_grpc_call *call, const void *data, size_t len);

void gd_grpc_call_set_data(struct gd_grpc_call *call, void *data);
void *gd_grpc_call_data(const struct gd_grpc_call *call);
void *gd_grpc_call_service(const struct gd_grpc_call *call);
struct gd_grpc_conn *gd_grpc_call_conn(const struct gd_grpc_call *call);
/* A request header (lower-case name), or NULL. */
const char *gd_grpc_call_header(const struct gd_grpc_call *call, const char *name);

void gd_grpc_conn_set_data(struct gd_grpc_conn *conn, const void *owner,
                           void *data); /* per owner */
void *gd_grpc_conn_data(const struct gd_grpc_conn *conn, const void *owner);
const char *gd_grpc_conn_peer(const struct gd_grpc_conn *conn); /* "127.0.0.1:41234" */
/* On this host and, where the system says so, of this user. */
bool gd_grpc_conn_is_local(const struct gd_grpc_conn *conn);
/* The peer has authenticated: its messages may be large. Until then, those of other hosts and users
 * must be small. */
void gd_grpc_conn_trust(struct gd_grpc_conn *conn);
/* Stops reading from it until it is resumed: the peer's messages wait, what was already read still
 * arrives. Until then, silence is not an error. */
void gd_grpc_conn_pause(struct gd_grpc_conn *conn, bool pause);
/* Sends GOAWAY and closes when its streams have ended; `now`: immediately. */
void gd_grpc_conn_close(struct gd_grpc_conn *conn, bool now);

#endif

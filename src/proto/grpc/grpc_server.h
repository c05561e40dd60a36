// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A gRPC server on one libev loop: HTTP/2 by nghttp2 (prior knowledge, cleartext), several
 * listening sockets, any number of connections and streams. It knows paths and messages, no
 * service.
 *
 * A service registers methods. For each call it gets events in this order: open, message (or chunk)
 * any number of times, half_close, and at the very end closed: exactly once, also when the peer
 * resets, the connection breaks or the server is destroyed. After `closed` the call is gone.
 * Everything runs on the loop's thread. Handlers may send and finish from any event but closed, and
 * at any later time until closed. A handler that runs the loop itself must not wait for the
 * connection that it was called for: that one stands still until the handler returns.
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
    bool client_streams; /* else exactly one message is accepted, INVALID_ARGUMENT otherwise */
    void (*open)(struct gd_grpc_call *call, void *service); /* may be NULL */
    /* One whole message, decompressed; valid during the call only. */
    void (*message)(struct gd_grpc_call *call, const uint8_t *data, size_t len);
    /* When set, used instead of `message` for uncompressed messages: the bytes as they arrive.
     * offset counts from the message's start, total is its length; a message of length 0 gives one
     * chunk of 0 bytes; the last chunk of a message has offset + len == total. Without `message` a
     * compressed message comes as one chunk. */
    void (*chunk)(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                  size_t total);
    void (*half_close)(struct gd_grpc_call *call); /* the client sent all; may be NULL */
    void (*closed)(struct gd_grpc_call *call);     /* may be NULL */
    /* May be NULL; goes with `chunk`. Where the next bytes of the message at hand would best lie:
     * returns the place, and in *room how many fit; or NULL. They are then read from the socket to
     * that place and come to `chunk` with `data` equal to it, so that no copy is left to do. It is
     * asked for between reads and promises nothing: the place may be written to and not be used. */
    uint8_t *(*place)(struct gd_grpc_call *call, size_t *room);
};

struct gd_grpc_service {
    const struct gd_grpc_method *methods;
    size_t method_count;
    void *ctx; /* `service` of open; gd_grpc_call_service() */
    void (*conn_closed)(struct gd_grpc_conn *conn,
                        void *ctx); /* may be NULL; after its calls closed */
};

/* Limits and keepalive are read from *settings at the time of use; it must outlive the server. */
int gd_grpc_server_create(struct ev_loop *loop, const struct gd_settings *settings,
                          struct gd_grpc_server **ret, struct gd_err *err);
/* Sends GOAWAY, closes everything. Not from inside an event. NULL is fine. */
void gd_grpc_server_destroy(struct gd_grpc_server *server);
/* One line for each thing that went wrong with a connection and that no call hears of: not HTTP/2,
 * a flood, no answer to a PING, too many connections. Never called with a newline. */
typedef void (*gd_grpc_log_fn)(void *ctx, const char *line);
void gd_grpc_server_set_log(struct gd_grpc_server *server, gd_grpc_log_fn log, void *ctx);
/* `service` must outlive the server. GD_ENOMEM. */
int gd_grpc_server_add(struct gd_grpc_server *server, const struct gd_grpc_service *service,
                       struct gd_err *err);

/* As gd_server_ops.listen. A loopback name listens on 127.0.0.1 and, when the machine has it, ::1,
 * on the same port. "unix:PATH": a socket in a directory of ours alone; one whose process is gone
 * is replaced. There may be one of each kind. */
int gd_grpc_server_listen(struct gd_grpc_server *server, const char *address, struct gd_err *err);
void gd_grpc_server_close(struct gd_grpc_server *server); /* stops listening; connections stay */
/* Of TCP, else "unix:PATH"; NULL: it does not listen. */
const char *gd_grpc_server_address(const struct gd_grpc_server *server);
const char *gd_grpc_server_socket(const struct gd_grpc_server *server); /* "unix:PATH" or NULL */
bool gd_grpc_server_is_loopback(const struct gd_grpc_server *server);
/* Serves a connected stream socket that came from elsewhere; takes `fd` over, also on failure.
 * GD_ELIMIT, GD_ENOMEM, GD_EIO. */
int gd_grpc_server_adopt(struct gd_grpc_server *server, int fd, struct gd_err *err);
size_t gd_grpc_server_connections(const struct gd_grpc_server *server);

/* One message out. The bytes are copied. GD_ELIMIT when the peer does not read (a connection's
 * queue is bound by max_message x 4, or one message), GD_ELOST when the call is finished or gone.
 */
int gd_grpc_send(struct gd_grpc_call *call, const void *data, size_t len);
/* Trailers: after this nothing more is sent or delivered, only `closed` follows. message may be
 * NULL; it is percent-encoded. With GD_GRPC_OK a unary call must have sent its message. */
void gd_grpc_finish(struct gd_grpc_call *call, enum gd_grpc_code code, const char *message);
/* Send + finish OK. */
int gd_grpc_reply(struct gd_grpc_call *call, const void *data, size_t len);

void gd_grpc_call_set_data(struct gd_grpc_call *call, void *data);
void *gd_grpc_call_data(const struct gd_grpc_call *call);
void *gd_grpc_call_service(const struct gd_grpc_call *call);
struct gd_grpc_conn *gd_grpc_call_conn(const struct gd_grpc_call *call);
/* A request header (lower case name), or NULL. */
const char *gd_grpc_call_header(const struct gd_grpc_call *call, const char *name);

void gd_grpc_conn_set_data(struct gd_grpc_conn *conn, const void *owner,
                           void *data); /* per owner */
void *gd_grpc_conn_data(const struct gd_grpc_conn *conn, const void *owner);
const char *gd_grpc_conn_peer(const struct gd_grpc_conn *conn); /* "127.0.0.1:41234" */
/* Of this host and, where the system tells, of this user. */
bool gd_grpc_conn_is_loopback(const struct gd_grpc_conn *conn);
/* The peer has proven who it is: its messages may be as large as any. Other hosts' and users' are
 * small until then. */
void gd_grpc_conn_trust(struct gd_grpc_conn *conn);
/* Nothing is read from it until it is let go on: the peer's messages wait, what was read already
 * still comes. Its silence meanwhile is no fault. */
void gd_grpc_conn_pause(struct gd_grpc_conn *conn, bool pause);
/* GOAWAY and close when its streams are done; at once when `now`. */
void gd_grpc_conn_close(struct gd_grpc_conn *conn, bool now);

#endif

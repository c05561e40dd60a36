// SPDX-License-Identifier: MIT
/*
 * A gRPC client connection without I/O: feed it what was received, ask it what to send. The caller
 * owns the socket, the clock and the thread; use a connection from one thread only.
 *
 *     connect                 gd_grpc_connect(), wait until writable, gd_grpc_connect_finish()
 *     after every wait        gd_grpc_client_read(), then gd_grpc_client_write()
 *     wait for                readable, and writable while gd_grpc_client_wants_write()
 *
 * Callers with other transports use gd_grpc_client_feed(), _out() and _sent() instead of the two
 * socket functions. Any number of calls may be open at a time; whether a call is unary, client
 * streaming or bidirectional depends only on how often the two sides send.
 *
 * Callbacks run inside gd_grpc_client_feed, _read, _out, _write, _sent, _wants_write, _lost and
 * _destroy. They may start, send, half-close and cancel calls, but must not call any of the
 * functions just named.
 */
#ifndef GD_PROTO_GRPC_CLIENT_H
#define GD_PROTO_GRPC_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "proto/grpc/grpc_code.h"

struct iovec;
struct gd_grpc_client;
struct gd_grpc_client_call;

struct gd_grpc_client_ops {
    /* One complete message, decompressed; valid during the call only. May be NULL. */
    void (*message)(struct gd_grpc_client_call *call, void *ctx, const uint8_t *data, size_t len);
    /* The end, exactly once per started call, also when the connection breaks (UNAVAILABLE) and in
     * gd_grpc_client_destroy (CANCELLED). The call is freed afterwards. `text` is never NULL. */
    void (*closed)(struct gd_grpc_client_call *call, void *ctx, enum gd_grpc_code code,
                   const char *text);
};

/* One extra request header: lower-case name, printable ASCII value ("gradb-token", "..."). */
struct gd_grpc_header {
    const char *name;
    const char *value;
};

/* A part of a message, sent from the caller's memory without copying. */
struct gd_grpc_piece {
    const void *data;
    size_t len;
};
/* The pieces of a message are no longer needed: sent, or (`sent` false) never to be sent
 * completely. May be called after the call's `closed`; at the latest in gd_grpc_client_destroy. */
typedef void (*gd_grpc_release_fn)(void *ctx, bool sent);

/* `authority` is the value of :authority ("127.0.0.1:50051"); max_message limits each received
 * message. */
int gd_grpc_client_create(const char *authority, size_t max_message, struct gd_grpc_client **ret,
                          struct gd_err *err);
/* Closes everything (runs each call's `closed` and each release function). NULL is allowed. */
void gd_grpc_client_destroy(struct gd_grpc_client *client);

/* Bytes from the peer, split anywhere. GD_EPROTO (not HTTP/2, or a violation of it), GD_ENOMEM.
 * After a failure, only gd_grpc_client_destroy may be called. */
int gd_grpc_client_feed(struct gd_grpc_client *client, const void *data, size_t len,
                        struct gd_err *err);
/* What to send now: fills at most `max` entries and returns their number; 0: nothing. They stay
 * valid until the next feed, out or sent. */
size_t gd_grpc_client_out(struct gd_grpc_client *client, struct iovec *ret, size_t max);
/* The transport accepted `len` bytes returned by gd_grpc_client_out. */
void gd_grpc_client_sent(struct gd_grpc_client *client, size_t len);
/* The transport broke: every open call ends with UNAVAILABLE and this text, and nothing more is
 * sent. gd_grpc_client_read and _write call this themselves. */
void gd_grpc_client_lost(struct gd_grpc_client *client, const char *why);
/* Whether there is something to send that flow control allows. */
bool gd_grpc_client_wants_write(struct gd_grpc_client *client);
/* The peer sent GOAWAY, or the session has ended: start no new calls; reconnect. */
bool gd_grpc_client_is_closing(const struct gd_grpc_client *client);
/* Queues an HTTP/2 PING. */
int gd_grpc_client_ping(struct gd_grpc_client *client);
/* Number of PINGs answered. */
uint64_t gd_grpc_client_pongs(const struct gd_grpc_client *client);

/* Opens a call. `headers` may be NULL. GD_ELOST if the connection is closing. `path` and the
 * headers are copied; ops must outlive the call. */
int gd_grpc_client_start(struct gd_grpc_client *client, const char *path,
                         const struct gd_grpc_header *headers, size_t header_count,
                         const struct gd_grpc_client_ops *ops, void *ctx,
                         struct gd_grpc_client_call **ret, struct gd_err *err);
/* Sends one message; the bytes are copied. GD_ELOST if the call was half-closed. GD_ENOMEM. */
int gd_grpc_client_send(struct gd_grpc_client_call *call, const void *data, size_t len);
/* Sends one message composed of `head` (copied; the small part) and the pieces (at most
 * GD_GRPC_MAX_PIECES, in order, sent from their place; must not change until `release`). On failure
 * nothing is kept and release is not called. `release` may be NULL. */
#define GD_GRPC_MAX_PIECES 8
int gd_grpc_client_send_pieces(struct gd_grpc_client_call *call, const void *head, size_t head_len,
                               const struct gd_grpc_piece *pieces, size_t piece_count,
                               gd_grpc_release_fn release, void *release_ctx);
/* Bytes queued by send that _out (or _write) has not reached yet. */
size_t gd_grpc_client_queued(const struct gd_grpc_client_call *call);
/* We have sent everything; the peer's answer and `closed` follow. */
int gd_grpc_client_half_close(struct gd_grpc_client_call *call);
/* Aborts the call: RST_STREAM, unsent pieces are released; `closed` follows with CANCELLED. */
void gd_grpc_client_cancel(struct gd_grpc_client_call *call);

/* The connection's socket: non-blocking, TCP_NODELAY, close-on-exec. `attempt` counts from 0
 * through the addresses of the name (localhost has two); GD_ENOTFOUND after the last one, GD_EINVAL
 * for an invalid address. The connection may still be in progress on return. A name other than
 * localhost or a number is resolved, which can block. */
int gd_grpc_connect(const char *address, unsigned attempt, int *ret, struct gd_err *err);
/* Call when the socket has become writable. GD_OK: connected; GD_EIO. */
int gd_grpc_connect_finish(int fd, struct gd_err *err);
/* Reads what has arrived and feeds it. GD_OK (also if nothing had arrived), GD_ELOST at the end of
 * the stream, GD_EIO, or the error of feed. Reads at most about 1 MiB per call, so that a loop
 * stays fair. */
int gd_grpc_client_read(struct gd_grpc_client *client, int fd, struct gd_err *err);
/* Writes until everything is sent or the socket is full. GD_OK or GD_EIO. */
int gd_grpc_client_write(struct gd_grpc_client *client, int fd, struct gd_err *err);

#endif

// SPDX-License-Identifier: MIT
/*
 * A gRPC client connection with no I/O inside: feed what was received, ask for what to send. The
 * caller owns the socket, the clock and the thread; one connection is used from one thread.
 *
 *     connect                 gd_grpc_connect(), wait until writable, gd_grpc_connect_finish()
 *     after every wait        gd_grpc_client_read(), then gd_grpc_client_write()
 *     wait for                readable, and writable while gd_grpc_client_wants_write()
 *
 * A caller with other transports uses gd_grpc_client_feed(), _out() and _sent() instead of the two
 * socket functions. Any number of calls may be open at once; a call is unary, client streaming or
 * bidirectional only by how often the two sides send.
 *
 * Callbacks run inside gd_grpc_client_feed, _read, _out, _write, _sent, _wants_write, _lost and
 * _destroy. They may start, send, half-close and cancel calls; they must not call one of the
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
    /* One whole message, decompressed; the bytes are valid during the call only. May be NULL. */
    void (*message)(struct gd_grpc_client_call *call, void *ctx, const uint8_t *data, size_t len);
    /* The end, exactly once per started call, also when the connection breaks (UNAVAILABLE) and in
     * gd_grpc_client_destroy (CANCELLED). The call is gone afterwards. `text` is never NULL. */
    void (*closed)(struct gd_grpc_client_call *call, void *ctx, enum gd_grpc_code code,
                   const char *text);
};

/* One extra request header: lower-case name, printable ASCII value ("gradb-token", "..."). */
struct gd_grpc_header {
    const char *name;
    const char *value;
};

/* A piece of a message that is sent from the caller's memory without a copy. */
struct gd_grpc_piece {
    const void *data;
    size_t len;
};
/* The pieces of a message are no longer needed: sent, or never to be sent in full (`sent` false).
 * May come after the call's `closed`, and comes at the latest in gd_grpc_client_destroy. */
typedef void (*gd_grpc_release_fn)(void *ctx, bool sent);

/* `authority` is what :authority says ("127.0.0.1:50051"); max_message bounds each received
 * message. */
int gd_grpc_client_create(const char *authority, size_t max_message, struct gd_grpc_client **ret,
                          struct gd_err *err);
/* Closes what is open (each call's `closed` runs, each release too). NULL is fine. */
void gd_grpc_client_destroy(struct gd_grpc_client *client);

/* Bytes from the peer; any split. GD_EPROTO (the peer does not speak HTTP/2, or broke it),
 * GD_ENOMEM. After a failure only destroy is useful. */
int gd_grpc_client_feed(struct gd_grpc_client *client, const void *data, size_t len,
                        struct gd_err *err);
/* What to send now: fills at most `max` entries and returns how many, 0 when there is nothing. They
 * stay valid until the next feed, out or sent. */
size_t gd_grpc_client_out(struct gd_grpc_client *client, struct iovec *ret, size_t max);
/* `len` bytes of what out() gave were taken by the transport. */
void gd_grpc_client_sent(struct gd_grpc_client *client, size_t len);
/* The transport broke: every open call ends with UNAVAILABLE and this text, and nothing more is
 * sent. gd_grpc_client_read and _write do this themselves. */
void gd_grpc_client_lost(struct gd_grpc_client *client, const char *why);
/* There is something to send that flow control allows. */
bool gd_grpc_client_wants_write(struct gd_grpc_client *client);
/* The peer said GOAWAY, or the session is over: start no new calls, connect again. */
bool gd_grpc_client_is_closing(const struct gd_grpc_client *client);
/* Queues an HTTP/2 PING. */
int gd_grpc_client_ping(struct gd_grpc_client *client);
/* PINGs answered so far. */
uint64_t gd_grpc_client_pongs(const struct gd_grpc_client *client);

/* Opens a call. `headers` may be NULL. GD_ELOST when the connection is closing. `path` and the
 * headers are copied; ops must outlive the call. */
int gd_grpc_client_start(struct gd_grpc_client *client, const char *path,
                         const struct gd_grpc_header *headers, size_t header_count,
                         const struct gd_grpc_client_ops *ops, void *ctx,
                         struct gd_grpc_client_call **ret, struct gd_err *err);
/* One message; the bytes are copied. GD_ELOST when the call was half-closed. GD_ENOMEM. */
int gd_grpc_client_send(struct gd_grpc_client_call *call, const void *data, size_t len);
/* One message put together from `head` (copied; the small part) and the pieces (at most
 * GD_GRPC_MAX_PIECES, in order, sent from where they lie; unchanged until `release`). On failure
 * nothing is kept and release is not called. `release` may be NULL. */
#define GD_GRPC_MAX_PIECES 8
int gd_grpc_client_send_pieces(struct gd_grpc_client_call *call, const void *head, size_t head_len,
                               const struct gd_grpc_piece *pieces, size_t piece_count,
                               gd_grpc_release_fn release, void *release_ctx);
/* Bytes of messages given to send that _out (or _write) did not get to yet. */
size_t gd_grpc_client_queued(const struct gd_grpc_client_call *call);
/* We sent all; the peer's answer and `closed` follow. */
int gd_grpc_client_half_close(struct gd_grpc_client_call *call);
/* Gives the call up: RST_STREAM, unsent pieces are released; `closed` follows with CANCELLED. */
void gd_grpc_client_cancel(struct gd_grpc_client_call *call);

/* The connection's socket, non-blocking, TCP_NODELAY, close-on-exec. `attempt` counts from 0
 * through the addresses of the name (localhost has two); GD_ENOTFOUND when there are no more,
 * GD_EINVAL for an address that does not parse. The connection may still be under way on return. A
 * name other than localhost or a number is looked up, which can block. */
int gd_grpc_connect(const char *address, unsigned attempt, int *ret, struct gd_err *err);
/* After the socket became writable: GD_OK connected, GD_EIO why not. */
int gd_grpc_connect_finish(int fd, struct gd_err *err);
/* Reads what is there and feeds it. GD_OK (also when nothing was there), GD_ELOST at the end of the
 * stream, GD_EIO, or what feed says. At most about 1 MiB a call, so that a loop stays fair. */
int gd_grpc_client_read(struct gd_grpc_client *client, int fd, struct gd_err *err);
/* Writes until everything is out or the socket is full. GD_OK or GD_EIO. */
int gd_grpc_client_write(struct gd_grpc_client *client, int fd, struct gd_err *err);

#endif

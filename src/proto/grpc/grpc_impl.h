// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private to the gRPC server: grpc_server.c (the object, services), grpc_listen.c (listening
 * sockets; Unix sockets: grpc_unix.c), grpc_conn.c (one connection), grpc_call.c (one stream).
 *
 * Two rules prevent use after free. A call is freed only when nghttp2 reports its stream as closed,
 * or with its connection; nghttp2 reports this only while bytes are fed or taken, which no function
 * of the public header does. A connection is freed only at the end of its own event, when none of
 * its functions is on the stack (`busy` is 0); until then it is only marked `dead`.
 */
#ifndef GD_PROTO_GRPC_IMPL_H
#define GD_PROTO_GRPC_IMPL_H

#include <ev.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/owner.h"
#include "proto/grpc/grpc_frame.h"
#include "proto/grpc/grpc_server.h"

#define GRPC_MAX_LISTENERS     3             /* IPv4, IPv6 and a Unix socket */
#define GRPC_MAX_OWNERS        8             /* services that keep data per connection */
#define GRPC_READ_SIZE         (1024 * 1024) /* one read of a socket */
/* reading directly to the final place pays off from here on */
#define GRPC_PLACE_MIN         (16 * 1024)
#define GRPC_READS_A_TURN      4 /* reads from one connection before others get their turn */
#define GRPC_OUT_SIZE          (256 * 1024) /* bytes taken from nghttp2 before a write */
#define GRPC_STREAM_WINDOW     (16 * 1024 * 1024)
#define GRPC_CONN_WINDOW       (64 * 1024 * 1024)
#define GRPC_MAX_FRAME         ((1 << 24) - 1)
#define GRPC_MAX_STREAMS       256   /* concurrent calls of a connection */
#define GRPC_MAX_HEADERS       16384 /* bytes of a call's headers, as HTTP/2 counts them */
#define GRPC_PEER_PATIENCE     20.0  /* seconds for the first bytes, and for the answer to a PING */
#define GRPC_IDLE_PATIENCE     10.0  /* seconds for a connection without a started call */
#define GRPC_IDLE_LOOKS        4     /* checks in that time */
#define GRPC_STRANGER_MESSAGE  65536 /* bytes of a message from an unauthenticated peer \ */
#define GRPC_MAX_QUEUED_FRAMES 8192  /* control frames queued for a peer that does not read */

struct gd_grpc_listener {
    struct gd_grpc_server *server;
    ev_io io;
    int fd;
};

struct gd_grpc_server {
    struct ev_loop *loop;
    const struct gd_settings *settings;
    const struct gd_grpc_service **services;
    size_t service_count, service_capacity;
    struct gd_grpc_listener listeners[GRPC_MAX_LISTENERS];
    size_t listener_count;
    ev_timer accept_pause; /* runs while the process is out of descriptors */
    char address[300];     /* of TCP; "": not listening */
    bool loopback;
    char socket[GD_SOCKET_PATH + sizeof(GD_UNIX_PREFIX)]; /* "unix:PATH", "" */
    struct { /* identifies the file: another gradb may have replaced it */
        dev_t device;
        ino_t inode;
    } socket_file;
    ev_timer socket_touch; /* keeps programs that clean /tmp by age from removing it */
    long refused_uid;      /* the stranger refused last; -1: none */
    struct gd_grpc_conn *conns;
    size_t conn_count;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    uint8_t *read_buffer; /* GRPC_READ_SIZE, shared: only one connection reads at a time */
    bool reading;         /* read_buffer is in use further up the stack */
    double peer_patience; /* GRPC_PEER_PATIENCE; shorter in tests */
    double idle_patience; /* GRPC_IDLE_PATIENCE */
    bool refusing;        /* connections are being refused, which has been reported */
    gd_grpc_log_fn log;
    void *log_ctx;
};

struct gd_grpc_conn {
    struct gd_grpc_server *server;
    struct gd_grpc_conn *next, *prev;
    nghttp2_session *session;
    struct gd_grpc_call *calls;
    size_t call_count;
    int fd;
    ev_io reader;
    ev_io writer;
    ev_timer patience; /* keepalive, and the wait for the first bytes */
    ev_timer idle;     /* runs until a call has started, and after the last one has ended */
    ev_tstamp idle_since;
    ev_prepare flusher; /* never started; fed to the loop when there is something to send */
    ev_tstamp last_heard;
    struct gd_buf out;   /* taken from nghttp2, not accepted by the socket yet */
    size_t out_done;     /* bytes of `out` already sent */
    int32_t data_stream; /* stream of the DATA frame being read; 0: none */
    size_t data_left;    /* bytes of it still to come */
    uint64_t queued;     /* bytes of queued outgoing messages */
    uint64_t held;       /* bytes of partially received messages */
    unsigned busy;       /* depth of this connection's functions on the stack */
    bool replied;        /* a call has submitted something since the last write */
    bool dead;           /* to be freed when busy is 0 */
    bool paused;         /* by a service: not read from */
    bool closing;        /* GOAWAY was sent: free it when the last call ends */
    bool heard;          /* the peer has spoken HTTP/2 */
    bool deaf;           /* accepts no more bytes; what it sent is still read */
    bool ping_out;       /* a PING is unanswered */
    bool trusted;        /* may send large messages: local, or has proven a token */
    bool is_local;       /* on this host and, where the system says so, of this user */
    char peer[80];
    struct {
        const void *owner;
        void *data;
    } data[GRPC_MAX_OWNERS];
};

/* An outgoing message. */
struct grpc_out {
    struct grpc_out *next;
    size_t len;
    uint8_t bytes[];
};

struct gd_grpc_call {
    struct gd_grpc_conn *conn;
    struct gd_grpc_call *next, *prev;
    int32_t stream;
    const struct gd_grpc_method *method; /* NULL until the headers have arrived and name one */
    const struct gd_grpc_service *service;
    void *data;
    struct gd_buf headers; /* name NUL value NUL ... */
    size_t header_bytes;   /* as HTTP/2 counts them */
    struct gd_grpc_deframer deframer;
    ev_timer deadline;
    struct grpc_out *out, **out_tail;
    size_t out_done;   /* bytes of the first one already sent */
    char *status_text; /* percent-encoded; may be NULL */
    enum gd_grpc_code code;
    uint64_t messages; /* messages that have begun to arrive */
    uint64_t held;     /* this call's share of the connection's */
    bool feeding;      /* the deframer is on the stack */
    bool opened;       /* `open` was called, so `closed` must follow */
    bool half_closed;  /* the peer has sent everything */
    bool responded;    /* the response headers are submitted */
    bool finished;     /* `code` is set: nothing more in or out except the trailers */
    bool deferred;     /* nghttp2 knows that there is nothing to send now */
};

/* grpc_peer.c */
void grpc_log(struct gd_grpc_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void grpc_peer_name(int fd, const struct gd_peer_owner *owner, char *out, size_t size);
/* "127.0.0.1:50051", "[::1]:50051"; an IPv4 peer of an IPv6 socket is printed as IPv4. */
void grpc_print_address(const struct sockaddr_storage *address, char *out, size_t size);

/* grpc_listen.c */
void grpc_listen_init(struct gd_grpc_server *server);
void grpc_add_listener(struct gd_grpc_server *server, int fd);

/* grpc_unix.c */
int grpc_unix_listen(struct gd_grpc_server *server, const char *path, struct gd_err *err);
void grpc_unix_close(struct gd_grpc_server *server); /* the listener is the caller's */

/* grpc_conn.c */
/* Takes ownership of fd. */
int grpc_conn_create(struct gd_grpc_server *server, int fd, const struct gd_peer_owner *owner,
                     struct gd_err *err);
/* Runs the calls' `closed`, then conn_closed, then frees it. Not while busy. */
void grpc_conn_free(struct gd_grpc_conn *conn);
/* A call was added or removed: checks from now on whether the connection is idle. */
void grpc_conn_watch_idle(struct gd_grpc_conn *conn);
uint64_t grpc_conn_max_message(const struct gd_grpc_conn *conn);
/* Something was submitted to the session: sends it before the loop sleeps. */
void grpc_conn_kick(struct gd_grpc_conn *conn);
void grpc_conn_set_callbacks(nghttp2_session_callbacks *callbacks);

/* grpc_call.c: what nghttp2 says about streams */
int grpc_call_create(struct gd_grpc_conn *conn, int32_t stream);
int grpc_call_on_header(struct gd_grpc_call *call, const uint8_t *name, size_t name_len,
                        const uint8_t *value, size_t value_len);
void grpc_call_on_headers_end(struct gd_grpc_call *call);
void grpc_call_on_data(struct gd_grpc_call *call, const uint8_t *data, size_t len);
/* The place for the next bytes of the call's data; NULL: none. */
uint8_t *grpc_call_place(struct gd_grpc_call *call, size_t *room);
/* Whether the peer has begun to send a message in it. */
bool grpc_call_has_begun(const struct gd_grpc_call *call);
void grpc_call_on_half_close(struct gd_grpc_call *call);
void grpc_call_free(struct gd_grpc_call *call); /* runs `closed` first */

#endif

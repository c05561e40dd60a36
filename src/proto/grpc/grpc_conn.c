// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proto/grpc/grpc_impl.h"

#define NESTED_READ_SIZE 65536
#define FEED_SIZE        4096 /* bytes processed before replies are sent */

/* Logs the reason and marks it dead. */
__attribute__((format(printf, 2, 3))) static void fail_conn(struct gd_grpc_conn *conn,
                                                            const char *format, ...)
{
    char text[256];
    va_list args;
    if (conn->dead) {
        return; /* only the first reason counts */
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    conn->dead = true;
    grpc_log(conn->server, "closed the connection from %s: %s", conn->peer, text);
}

static void set_patience(struct gd_grpc_conn *conn, ev_tstamp seconds)
{
    conn->patience.repeat = seconds > 0.01 ? seconds : 0.01;
    ev_timer_again(conn->server->loop, &conn->patience);
}

/* The peer has answered: checks again when the next PING is due. */
static void rest_of(struct gd_grpc_conn *conn)
{
    double interval = conn->server->settings->keepalive;
    set_patience(conn, interval > 0 ? interval : conn->server->peer_patience);
}

/* --- callbacks of nghttp2 --- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct gd_grpc_conn *conn = user;
    (void)session;
    if (conn->dead) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    if (grpc_call_create(conn, frame->hd.stream_id) != GD_OK) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return 0;
}

static struct gd_grpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    struct gd_grpc_call *call = call_of(session, frame->hd.stream_id);
    (void)flags;
    (void)user;
    if (call && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST &&
        grpc_call_on_header(call, name, name_len, value, value_len) != GD_OK) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return 0;
}

static void on_stream_frame(struct gd_grpc_call *call, const nghttp2_frame *frame)
{
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        grpc_call_on_headers_end(call);
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        grpc_call_on_half_close(call);
    }
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct gd_grpc_conn *conn = user;
    if (!conn->heard) {
        conn->heard = true;
        rest_of(conn);
    }
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        conn->ping_out = false;
        rest_of(conn);
    } else if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
        struct gd_grpc_call *call = call_of(session, frame->hd.stream_id);
        if (call) {
            on_stream_frame(call, frame);
        }
    }
    return conn->dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Tracks the position inside a DATA frame, for read_placed(). */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
    struct gd_grpc_conn *conn = user;
    bool plain = hd->type == NGHTTP2_DATA && !(hd->flags & NGHTTP2_FLAG_PADDED);
    (void)session;
    conn->data_stream = plain ? hd->stream_id : 0;
    conn->data_left = plain ? hd->length : 0;
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t len, void *user)
{
    struct gd_grpc_conn *conn = user;
    struct gd_grpc_call *call = call_of(session, stream);
    (void)flags;
    conn->data_left -= len < conn->data_left ? len : conn->data_left;
    if (call) {
        grpc_call_on_data(call, data, len);
    }
    return conn->dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
    struct gd_grpc_call *call = call_of(session, stream);
    (void)code;
    (void)user;
    if (call) {
        grpc_call_free(call);
    }
    return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct gd_grpc_conn *conn = user;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
        grpc_log(conn->server, "%s violated HTTP/2 (%s): closing the connection", conn->peer,
                 nghttp2_http2_strerror(frame->goaway.error_code));
    }
    if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        struct gd_grpc_call *call = call_of(session, frame->hd.stream_id);
        if (call && !call->half_closed) {
            /* The answer is complete although the peer is still sending: asks it to stop. */
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_NO_ERROR);
        }
    }
    return 0;
}

void grpc_conn_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
}

/* --- bytes out --- */

/* Takes frames from nghttp2 until there is enough for a write. */
static void fill_out(struct gd_grpc_conn *conn)
{
    gd_buf_clear(&conn->out);
    conn->out_done = 0;
    while (conn->out.len < GRPC_OUT_SIZE) {
        const uint8_t *data;
        ssize_t len = nghttp2_session_mem_send(conn->session, &data);
        if (len < 0) {
            fail_conn(conn, "%s", nghttp2_strerror((int)len));
            return;
        }
        if (len == 0) {
            return;
        }
        if (gd_buf_add(&conn->out, data, (size_t)len) != GD_OK) {
            fail_conn(conn, "out of memory");
            return;
        }
    }
}

/* False: the socket accepts no more now, or never again. */
static bool write_out(struct gd_grpc_conn *conn)
{
    while (conn->out_done < conn->out.len) {
        ssize_t n = send(conn->fd, conn->out.data + conn->out_done, conn->out.len - conn->out_done,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            conn->out_done += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return false;
        } else if (errno != EINTR) {
            /* The peer is gone, but what it sent earlier may still be unread. */
            conn->deaf = true;
            return false;
        }
    }
    return true;
}

static void flush_output(struct gd_grpc_conn *conn)
{
    conn->replied = false;
    while (!conn->dead && !conn->deaf) {
        if (!write_out(conn)) {
            break;
        }
        fill_out(conn);
        if (conn->out.len == 0) {
            break;
        }
    }
    bool blocked = !conn->dead && !conn->deaf && conn->out_done < conn->out.len;
    if (blocked != (bool)ev_is_active(&conn->writer)) {
        if (blocked) {
            ev_io_start(conn->server->loop, &conn->writer);
        } else {
            ev_io_stop(conn->server->loop, &conn->writer);
        }
    }
    if (!blocked && conn->out.cap > GRPC_OUT_SIZE / 4) {
        gd_buf_deinit(&conn->out); /* an idle connection keeps little */
        conn->out_done = 0;
    }
    bool over =
        !nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session);
    if (!blocked && (over || (conn->closing && conn->call_count == 0))) {
        conn->dead = true;
    }
}

/* --- bytes in --- */

static void feed_session(struct gd_grpc_conn *conn, const uint8_t *data, size_t len)
{
    ssize_t n = 0;
    if (len > 0 && !conn->dead) {
        n = nghttp2_session_mem_recv(conn->session, data, len);
    }
    if (n >= 0 || conn->dead) {
        return;
    }
    if (n == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        fail_conn(conn, "it does not speak HTTP/2 (expected gRPC without TLS)");
    } else {
        fail_conn(conn, "%s", nghttp2_strerror((int)n));
    }
}

/* A peer may wait for the reply to the first of many messages, so it is sent before the next are
 * processed. Answers to control frames wait, so that nghttp2 notices a flood of them. */
static void feed_in_parts(struct gd_grpc_conn *conn, const uint8_t *data, size_t len)
{
    while (len > 0 && !conn->dead) {
        size_t part = len < FEED_SIZE ? len : FEED_SIZE;
        feed_session(conn, data, part);
        data += part;
        len -= part;
        if (conn->replied) {
            flush_output(conn);
        }
    }
}

/* Reads at most `size` bytes into the buffer. Inside the payload of a DATA frame whose call has a
 * place for the next bytes, those are read there, and only what follows goes into the buffer;
 * *at_place is that place and *placed their number. */
static ssize_t read_placed(struct gd_grpc_conn *conn, uint8_t *buffer, size_t size,
                           uint8_t **at_place, size_t *placed)
{
    struct gd_grpc_call *call =
        conn->data_left >= GRPC_PLACE_MIN
            ? nghttp2_session_get_stream_user_data(conn->session, conn->data_stream)
            : NULL;
    size_t room = 0;
    uint8_t *place = call ? grpc_call_place(call, &room) : NULL;
    room = room < conn->data_left ? room : conn->data_left;
    *placed = 0;
    if (!place || room < GRPC_PLACE_MIN) {
        return recv(conn->fd, buffer, size, MSG_DONTWAIT);
    }
    struct iovec parts[] = {{place, room}, {buffer, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = recvmsg(conn->fd, &message, MSG_DONTWAIT);
    if (n > 0) {
        *at_place = place;
        *placed = (size_t)n < room ? (size_t)n : room;
    }
    return n;
}

/* Reads what has arrived, but only a bounded amount. */
static void read_some(struct gd_grpc_conn *conn, uint8_t *buffer, size_t size)
{
    for (int turn = 0; turn < GRPC_READS_A_TURN && !conn->dead && !conn->paused; turn++) {
        uint8_t *place = NULL;
        size_t placed;
        ssize_t n = read_placed(conn, buffer, size, &place, &placed);
        if (n > 0) {
            conn->last_heard = ev_now(conn->server->loop);
            feed_session(conn, place, placed);
            feed_in_parts(conn, buffer, (size_t)n - placed);
            if ((size_t)n < placed + size) {
                return;
            }
        } else if (n == 0) {
            flush_output(conn); /* the peer may only have closed its sending side */
            conn->dead = true;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            conn->dead = true; /* a broken connection is reported by its calls, not in the log */
        }
    }
}

/* Ends each event of a connection: the only place where the connection is freed. */
static void settle_calls(struct gd_grpc_conn *conn)
{
    if (conn->busy > 0) {
        return;
    }
    if (conn->dead) {
        grpc_conn_free(conn);
        return;
    }
    /* A peer that requests answers without reading them is not read from either. */
    bool pause = conn->paused ||
                 (ev_is_active(&conn->writer) &&
                  nghttp2_session_get_outbound_queue_size(conn->session) > GRPC_MAX_QUEUED_FRAMES);
    if (pause && ev_is_active(&conn->reader)) {
        ev_io_stop(conn->server->loop, &conn->reader);
    } else if (!pause && !ev_is_active(&conn->reader)) {
        ev_io_start(conn->server->loop, &conn->reader);
    }
}

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct gd_grpc_conn *conn = w->data;
    struct gd_grpc_server *server = conn->server;
    (void)revents;
    if (conn->busy > 0) {
        ev_io_stop(loop, w); /* a handler may run the loop; settle_calls() restarts the watcher */
        return;
    }
    conn->busy++;
    if (server->reading) {
        uint8_t *buffer = malloc(NESTED_READ_SIZE);
        if (buffer) {
            read_some(conn, buffer, NESTED_READ_SIZE);
        } else {
            fail_conn(conn, "out of memory");
        }
        free(buffer);
    } else {
        server->reading = true;
        read_some(conn, server->read_buffer, GRPC_READ_SIZE);
        server->reading = false;
    }
    flush_output(conn);
    conn->busy--;
    settle_calls(conn);
}

static void flush_and_settle(struct gd_grpc_conn *conn)
{
    if (conn->busy > 0) {
        return; /* the busy function flushes at its end */
    }
    conn->busy++;
    flush_output(conn);
    conn->busy--;
    settle_calls(conn);
}

static void on_writable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct gd_grpc_conn *conn = w->data;
    (void)revents;
    if (conn->busy > 0) {
        ev_io_stop(loop, w);
        return;
    }
    flush_and_settle(conn);
}

static void on_flush(struct ev_loop *loop, ev_prepare *w, int revents)
{
    (void)loop;
    (void)revents;
    flush_and_settle(w->data);
}

void grpc_conn_kick(struct gd_grpc_conn *conn)
{
    conn->replied = true;
    /* Fed events run before the loop sleeps, and only once however often they are fed. */
    if (!conn->dead && conn->busy == 0) {
        ev_feed_event(conn->server->loop, &conn->flusher, EV_CUSTOM);
    }
}

/* --- a peer that is silent --- */

/* If this process itself was suspended or busy, the peer's answer may be unread, because timers run
 * before sockets: then the peer is not at fault. */
static bool has_unread(const struct gd_grpc_conn *conn)
{
    char byte;
    return ev_is_active(&conn->reader) && recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void on_patience(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct gd_grpc_conn *conn = w->data;
    double patience = conn->server->peer_patience;
    double interval = conn->server->settings->keepalive;
    ev_tstamp silence = ev_now(loop) - conn->last_heard;
    (void)revents;
    if (has_unread(conn) || conn->paused) {
        set_patience(conn, conn->paused ? patience : 0);
    } else if (!conn->heard) {
        fail_conn(conn, "it did not speak HTTP/2 within %g s", patience);
    } else if (conn->ping_out && silence >= patience) {
        fail_conn(conn, "no answer to a PING for %g s", patience);
    } else if (conn->ping_out) {
        set_patience(conn, patience - silence);
    } else if (interval <= 0) {
        set_patience(conn, patience); /* disabled; the setting may change */
    } else if (silence < interval) {
        set_patience(conn, interval - silence);
    } else if (nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL) == 0) {
        conn->ping_out = true;
        conn->last_heard = ev_now(loop); /* the timeout begins now */
        set_patience(conn, patience);
    }
    flush_and_settle(conn);
}

/* --- an idle peer --- */

static bool is_idle(const struct gd_grpc_conn *conn)
{
    for (size_t i = 0; i < GRPC_MAX_OWNERS; i++) {
        if (conn->data[i].data) {
            return false; /* a service has data for it and decides when it ends */
        }
    }
    for (const struct gd_grpc_call *call = conn->calls; call; call = call->next) {
        if (grpc_call_has_begun(call)) {
            return false;
        }
    }
    return true;
}

static void on_idle(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct gd_grpc_conn *conn = w->data;
    (void)revents;
    if (!is_idle(conn)) {
        ev_timer_stop(loop, w);
    } else if (conn->paused || has_unread(conn)) {
        conn->idle_since = ev_now(loop);
    } else if (conn->heard && ev_now(loop) - conn->idle_since >= conn->server->idle_patience) {
        conn->dead = true; /* not worth a message: a client that needs the connection reconnects */
        settle_calls(conn);
    }
}

void grpc_conn_watch_idle(struct gd_grpc_conn *conn)
{
    conn->idle_since = ev_now(conn->server->loop);
    if (!conn->dead && !ev_is_active(&conn->idle)) {
        conn->idle.repeat = conn->server->idle_patience / GRPC_IDLE_LOOKS;
        ev_timer_again(conn->server->loop, &conn->idle);
    }
}

/* --- creation and destruction --- */

static int submit_greeting(struct gd_grpc_conn *conn)
{
    static const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_MAX_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, GRPC_MAX_FRAME},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_MAX_HEADERS},
    };
    int rc = nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, entries,
                                     sizeof(entries) / sizeof(entries[0]));
    return rc != 0 ? rc
                   : nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0,
                                                           GRPC_CONN_WINDOW);
}

static void init_watchers(struct gd_grpc_conn *conn)
{
    ev_io_init(&conn->reader, on_readable, conn->fd, EV_READ);
    ev_io_init(&conn->writer, on_writable, conn->fd, EV_WRITE);
    ev_init(&conn->patience, on_patience);
    ev_init(&conn->idle, on_idle);
    ev_prepare_init(&conn->flusher, on_flush);
    conn->reader.data = conn->writer.data = conn->patience.data = conn;
    conn->idle.data = conn->flusher.data = conn;
    conn->last_heard = ev_now(conn->server->loop);
    ev_io_start(conn->server->loop, &conn->reader);
    set_patience(conn, conn->server->peer_patience);
    grpc_conn_watch_idle(conn);
}

int grpc_conn_create(struct gd_grpc_server *server, int fd, const struct gd_peer_owner *owner,
                     struct gd_err *err)
{
    struct gd_grpc_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        close(fd);
        return gd_fail(err, GD_ENOMEM, "out of memory for a connection");
    }
    conn->server = server;
    conn->fd = fd;
    gd_buf_init(&conn->out, GRPC_OUT_SIZE + (2 << 20));
    grpc_peer_name(fd, owner, conn->peer, sizeof(conn->peer));
    conn->is_local = owner->kind == GD_OWNER_OURS || owner->kind == GD_OWNER_HIDDEN;
    conn->trusted = conn->is_local || server->settings->ms_shared_allow_remote;
    if (nghttp2_session_server_new2(&conn->session, server->callbacks, conn, server->options) ||
        submit_greeting(conn)) {
        nghttp2_session_del(conn->session);
        free(conn);
        close(fd);
        return gd_fail(err, GD_ENOMEM, "out of memory for a connection");
    }
    conn->next = server->conns;
    if (conn->next) {
        conn->next->prev = conn;
    }
    server->conns = conn;
    server->conn_count++;
    init_watchers(conn);
    grpc_conn_kick(conn);
    return GD_OK;
}

static void stop_watchers(struct gd_grpc_conn *conn)
{
    struct ev_loop *loop = conn->server->loop;
    ev_io_stop(loop, &conn->reader);
    ev_io_stop(loop, &conn->writer);
    ev_timer_stop(loop, &conn->patience);
    ev_timer_stop(loop, &conn->idle);
    ev_clear_pending(loop, &conn->flusher);
}

/* Sends GOAWAY and whatever the socket accepts immediately. */
static void say_goodbye(struct gd_grpc_conn *conn)
{
    if (conn->deaf || !conn->heard) {
        return;
    }
    nghttp2_session_terminate_session(conn->session, NGHTTP2_NO_ERROR);
    while (write_out(conn)) {
        fill_out(conn);
        if (conn->out.len == 0) {
            return;
        }
    }
}

void grpc_conn_free(struct gd_grpc_conn *conn)
{
    struct gd_grpc_server *server = conn->server;
    conn->dead = true;
    conn->busy++; /* handlers called from here may run the loop */
    stop_watchers(conn);
    say_goodbye(conn);
    while (conn->calls) {
        grpc_call_free(conn->calls);
    }
    for (size_t i = 0; i < server->service_count; i++) {
        if (server->services[i]->conn_closed) {
            server->services[i]->conn_closed(conn, server->services[i]->ctx);
        }
    }
    stop_watchers(conn);
    if (conn->prev) {
        conn->prev->next = conn->next;
    } else {
        server->conns = conn->next;
    }
    if (conn->next) {
        conn->next->prev = conn->prev;
    }
    server->conn_count--;
    close(conn->fd);
    nghttp2_session_del(conn->session);
    gd_buf_deinit(&conn->out);
    free(conn);
}

/* --- for services --- */

void gd_grpc_conn_close(struct gd_grpc_conn *conn, bool now)
{
    if (now) {
        conn->dead = true;
        settle_calls(conn);
        return;
    }
    if (!conn->closing && !conn->dead) {
        conn->closing = true;
        nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(conn->session),
                              NGHTTP2_NO_ERROR, NULL, 0);
        grpc_conn_kick(conn);
    }
}

void gd_grpc_conn_pause(struct gd_grpc_conn *conn, bool pause)
{
    conn->paused = pause;
    conn->last_heard = ev_now(conn->server->loop);
    if (conn->busy > 0 || conn->dead) {
        return; /* settle_calls() handles it */
    }
    if (pause) {
        ev_io_stop(conn->server->loop, &conn->reader);
    } else {
        ev_io_start(conn->server->loop, &conn->reader);
    }
}

void gd_grpc_conn_set_data(struct gd_grpc_conn *conn, const void *owner, void *data)
{
    for (size_t i = 0; i < GRPC_MAX_OWNERS; i++) {
        if (conn->data[i].owner == owner || !conn->data[i].owner) {
            conn->data[i].owner = owner;
            conn->data[i].data = data;
            return;
        }
    }
}

void *gd_grpc_conn_data(const struct gd_grpc_conn *conn, const void *owner)
{
    for (size_t i = 0; i < GRPC_MAX_OWNERS; i++) {
        if (conn->data[i].owner == owner) {
            return conn->data[i].data;
        }
    }
    return NULL;
}

const char *gd_grpc_conn_peer(const struct gd_grpc_conn *conn)
{
    return conn->peer;
}

bool gd_grpc_conn_is_local(const struct gd_grpc_conn *conn)
{
    return conn->is_local;
}

uint64_t grpc_conn_max_message(const struct gd_grpc_conn *conn)
{
    uint64_t max = conn->server->settings->max_message;
    return conn->trusted || max < GRPC_STRANGER_MESSAGE ? max : GRPC_STRANGER_MESSAGE;
}

void gd_grpc_conn_trust(struct gd_grpc_conn *conn)
{
    conn->trusted = true;
    for (struct gd_grpc_call *call = conn->calls; call; call = call->next) {
        call->deframer.max = grpc_conn_max_message(conn);
    }
}

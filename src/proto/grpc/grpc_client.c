// SPDX-License-Identifier: MIT
#include "proto/grpc/grpc_client.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "proto/grpc/grpc_frame.h"

#define STREAM_WINDOW  (4 * 1024 * 1024)
#define CONN_WINDOW    (16 * 1024 * 1024)
#define MAX_FRAME_IN   (1 << 20)
#define MAX_FRAME_OUT  (4 << 20) /* payload of one DATA frame, if the peer allows it */
#define MAX_BATCH      (4 << 20) /* payload handed out before the transport must accept it */
#define MAX_SEGMENTS   128
#define FRAME_SEGMENTS 48   /* of one DATA frame at most */
#define SMALL_SIZE     8192 /* room for frame headers and other short runs in a batch */
#define SMALL_PIECE    512  /* pieces up to this size are copied there */
#define MAX_HEADERS    16
#define MAX_TEXT       4096

/* An outgoing message. Kept until all its bytes are handed out and accepted. */
struct message {
    struct message *next;
    unsigned refs; /* segments that point into it, plus 1 while its call has it queued */
    bool whole;    /* every byte is handed out */
    gd_grpc_release_fn release;
    void *release_ctx;
    size_t piece_count;
    struct gd_grpc_piece pieces[GD_GRPC_MAX_PIECES + 1]; /* the first one is `head` */
    size_t piece;                                        /* where handing out continues */
    size_t piece_done;
    size_t left;    /* bytes not handed out yet */
    uint8_t head[]; /* prefix and the copied part */
};

/* A run of bytes for the transport. */
struct segment {
    const uint8_t *data;
    size_t len;
    struct message *message; /* holds a reference; NULL for bytes in `small` and `owned` */
    uint8_t *owned;          /* freed when sent; may be NULL */
};

struct gd_grpc_client_call {
    struct gd_grpc_client *client;
    struct gd_grpc_client_call *next, *prev;
    const struct gd_grpc_client_ops *ops;
    void *ctx;
    int32_t stream;
    struct message *first, **tail;
    size_t queued;
    struct gd_grpc_deframer deframer;
    enum gd_grpc_encoding encoding;
    int http_status;
    int grpc_status; /* -1 until it arrives */
    struct gd_buf text;
    bool half_closed;  /* by us */
    bool ended;        /* by the peer */
    bool deferred;     /* nghttp2 waits for more to send */
    bool given_up;     /* no further events except `closed` */
    bool local_status; /* grpc_status is ours; the peer's is ignored */
    bool headers_done; /* the deframer is set up */
};

struct gd_grpc_client {
    nghttp2_session *session;
    struct gd_grpc_client_call *calls;
    size_t max_message;
    char *authority;
    struct segment segments[MAX_SEGMENTS];
    size_t segment_count;
    size_t segment_first; /* the first one not sent */
    size_t segment_done;  /* bytes of it already sent */
    size_t batch;         /* payload bytes in the segments */
    uint8_t small[SMALL_SIZE];
    size_t small_len;
    uint64_t pongs;
    unsigned busy; /* inside nghttp2, which is not reentrant */
    bool closing;  /* the peer sent GOAWAY */
    bool broken;
};

/* --- messages out --- */

static void message_unref(struct message *message, bool sent)
{
    if (--message->refs > 0) {
        return;
    }
    if (message->release) {
        message->release(message->release_ctx, sent && message->whole);
    }
    free(message);
}

static void drop_queue(struct gd_grpc_client_call *call)
{
    while (call->first) {
        struct message *message = call->first;
        call->first = message->next;
        message_unref(message, false);
    }
    call->tail = &call->first;
    call->queued = 0;
}

/* Collects short runs, so that a frame header and a short message become one. */
static void add_small(struct gd_grpc_client *client, const uint8_t *data, size_t len)
{
    uint8_t *to = client->small + client->small_len;
    struct segment *last =
        client->segment_count > 0 ? &client->segments[client->segment_count - 1] : NULL;
    memcpy(to, data, len);
    client->small_len += len;
    if (last && last->data + last->len == to) {
        last->len += len;
        return;
    }
    client->segments[client->segment_count++] = (struct segment){.data = to, .len = len};
}

/* Hands out `len` bytes of a message, which has at least that many left. */
static void hand_out(struct gd_grpc_client *client, struct message *message, size_t len)
{
    while (len > 0) {
        const struct gd_grpc_piece *piece = &message->pieces[message->piece];
        const uint8_t *from = (const uint8_t *)piece->data + message->piece_done;
        size_t n = piece->len - message->piece_done;
        n = n < len ? n : len;
        if (n > 0 && n <= SMALL_PIECE && n <= SMALL_SIZE - client->small_len) {
            add_small(client, from, n);
        } else if (n > 0) {
            client->segments[client->segment_count++] =
                (struct segment){.data = from, .len = n, .message = message};
            message->refs++;
        }
        len -= n;
        message->left -= n;
        message->piece_done += n;
        if (message->piece_done == piece->len) {
            message->piece++;
            message->piece_done = 0;
        }
    }
    message->whole = message->left == 0;
}

/* How many queued bytes fit into one DATA frame of at most `size` bytes and FRAME_SEGMENTS runs. */
static size_t frame_size(const struct gd_grpc_client_call *call, size_t size)
{
    size_t total = 0, runs = 0;
    for (const struct message *m = call->first; m && total < size; m = m->next) {
        runs += m->piece_count - m->piece;
        if (runs > FRAME_SEGMENTS) {
            break;
        }
        total += m->left;
    }
    return total < size ? total : size;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct gd_grpc_client_call *call = source->ptr;
    size_t len = frame_size(call, size);
    (void)session;
    (void)stream;
    (void)to;
    (void)user;
    if (len == 0 && !call->half_closed) {
        call->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (len == call->queued && call->half_closed) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)len;
}

static bool batch_is_full(const struct gd_grpc_client *client)
{
    return client->batch >= MAX_BATCH ||
           client->segment_count + FRAME_SEGMENTS + 2 > MAX_SEGMENTS ||
           client->small_len + 64 > SMALL_SIZE;
}

static int send_frame(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                      size_t len, nghttp2_data_source *source, void *user)
{
    struct gd_grpc_client *client = user;
    struct gd_grpc_client_call *call = source->ptr;
    (void)session;
    (void)frame;
    if (batch_is_full(client)) {
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    add_small(client, header, 9);
    client->batch += len;
    call->queued -= len;
    while (len > 0) {
        struct message *message = call->first;
        size_t n = message->left < len ? message->left : len;
        hand_out(client, message, n);
        len -= n;
        if (message->left == 0) {
            call->first = message->next;
            call->tail = call->first ? call->tail : &call->first;
            message_unref(message, true);
        }
    }
    return 0;
}

static ssize_t frame_limit(nghttp2_session *session, uint8_t type, int32_t stream,
                           int32_t conn_window, int32_t stream_window, uint32_t max_frame,
                           void *user)
{
    int32_t limit = max_frame < MAX_FRAME_OUT ? (int32_t)max_frame : MAX_FRAME_OUT;
    (void)session;
    (void)type;
    (void)stream;
    (void)user;
    limit = limit < conn_window ? limit : conn_window;
    return limit < stream_window ? limit : stream_window;
}

/* Takes frames from nghttp2. DATA frames arrive through send_frame, others as bytes. */
static void fill_headers(struct gd_grpc_client *client)
{
    client->busy++;
    while (!batch_is_full(client)) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(client->session, &data);
        if (n < 0) {
            client->broken = true;
        }
        if (n <= 0) {
            break;
        }
        size_t len = (size_t)n;
        if (len <= SMALL_SIZE - client->small_len) {
            add_small(client, data, len);
            continue;
        }
        uint8_t *copy = malloc(len);
        if (!copy) {
            client->broken = true;
            break;
        }
        memcpy(copy, data, len);
        client->segments[client->segment_count++] =
            (struct segment){.data = copy, .len = len, .owned = copy};
    }
    client->busy--;
}

static void drop_segments(struct gd_grpc_client *client, bool sent)
{
    for (size_t i = client->segment_first; i < client->segment_count; i++) {
        free(client->segments[i].owned);
        if (client->segments[i].message) {
            message_unref(client->segments[i].message, sent);
        }
    }
    client->segment_count = client->segment_first = client->segment_done = 0;
    client->small_len = client->batch = 0;
}

size_t gd_grpc_client_out(struct gd_grpc_client *client, struct iovec *ret, size_t max)
{
    if (client->busy > 0 || client->broken) {
        return 0;
    }
    if (client->segment_first == client->segment_count) {
        drop_segments(client, true);
        fill_headers(client);
    }
    size_t n = 0;
    for (size_t i = client->segment_first; i < client->segment_count && n < max; i++, n++) {
        size_t done = n == 0 ? client->segment_done : 0;
        ret[n].iov_base = (void *)(uintptr_t)(client->segments[i].data + done);
        ret[n].iov_len = client->segments[i].len - done;
    }
    return n;
}

void gd_grpc_client_sent(struct gd_grpc_client *client, size_t len)
{
    client->busy++; /* release functions may ask to send more, which must not happen from here */
    while (len > 0 && client->segment_first < client->segment_count) {
        struct segment *segment = &client->segments[client->segment_first];
        size_t left = segment->len - client->segment_done;
        if (len < left) {
            client->segment_done += len;
            break;
        }
        len -= left;
        client->segment_first++;
        client->segment_done = 0;
        free(segment->owned);
        if (segment->message) {
            message_unref(segment->message, true);
        }
    }
    client->busy--;
}

bool gd_grpc_client_wants_write(struct gd_grpc_client *client)
{
    struct iovec one;
    return gd_grpc_client_out(client, &one, 1) > 0;
}

/* --- what comes in --- */

static struct gd_grpc_client_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static void end_with(struct gd_grpc_client_call *call, enum gd_grpc_code code, const char *text)
{
    if (call->given_up) {
        return;
    }
    call->given_up = true;
    call->local_status = true;
    call->grpc_status = (int)code;
    gd_buf_clear(&call->text);
    gd_buf_puts(&call->text, text);
}

static int on_message(void *ctx, const uint8_t *data, size_t len)
{
    struct gd_grpc_client_call *call = ctx;
    if (!call->given_up && call->ops->message) {
        call->ops->message(call, call->ctx, data, len);
    }
    return call->given_up ? GD_ELOST : GD_OK;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t len, void *user)
{
    static const struct gd_grpc_deframer_ops ops = {.message = on_message};
    struct gd_grpc_client_call *call = call_of(session, stream);
    struct gd_err err = {0};
    (void)flags;
    (void)user;
    if (!call || call->given_up || call->http_status != 200) {
        return 0;
    }
    if (!call->headers_done) {
        call->headers_done = true;
        gd_grpc_deframer_init(&call->deframer, call->encoding, call->client->max_message, &ops,
                              call);
    }
    int rc = gd_grpc_deframer_feed(&call->deframer, data, len, &err);
    if (rc != GD_OK && !call->given_up) {
        end_with(call, rc == GD_EPROTO ? GD_GRPC_INTERNAL : GD_GRPC_RESOURCE_EXHAUSTED, err.text);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    }
    return 0;
}

static bool is_named(const uint8_t *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && memcmp(name, wanted, len) == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    struct gd_grpc_client_call *call = call_of(session, frame->hd.stream_id);
    char text[32];
    (void)flags;
    (void)user;
    if (!call || call->local_status) {
        return 0;
    }
    snprintf(text, sizeof(text), "%.*s", (int)(value_len < 31 ? value_len : 31),
             (const char *)value);
    if (is_named(name, name_len, ":status")) {
        call->http_status = (int)strtol(text, NULL, 10);
    } else if (is_named(name, name_len, "grpc-status")) {
        call->grpc_status = (int)strtol(text, NULL, 10);
    } else if (is_named(name, name_len, "grpc-message")) {
        gd_buf_clear(&call->text);
        gd_grpc_percent_decode((const char *)value, value_len, &call->text);
    } else if (is_named(name, name_len, "grpc-encoding") &&
               gd_grpc_encoding_parse(text, &call->encoding) != GD_OK) {
        end_with(call, GD_GRPC_INTERNAL, "unknown grpc-encoding in the answer");
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_CANCEL);
    }
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct gd_grpc_client *client = user;
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        client->pongs++;
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->closing = true;
    } else if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
               (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        struct gd_grpc_client_call *call = call_of(session, frame->hd.stream_id);
        if (call && (!call->half_closed || call->first)) {
            /* The answer is complete: what we still had to send is not needed. */
            call->ended = true;
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_NO_ERROR);
        }
    }
    return 0;
}

/* --- how a call ends --- */

static enum gd_grpc_code code_of_http(int status)
{
    switch (status) {
    case 401: return GD_GRPC_UNAUTHENTICATED;
    case 403: return GD_GRPC_PERMISSION_DENIED;
    case 404: return GD_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return GD_GRPC_UNAVAILABLE;
    default: return GD_GRPC_UNKNOWN;
    }
}

static enum gd_grpc_code code_of_reset(uint32_t error)
{
    switch (error) {
    case NGHTTP2_CANCEL: return GD_GRPC_CANCELLED;
    case NGHTTP2_REFUSED_STREAM: return GD_GRPC_UNAVAILABLE;
    case NGHTTP2_ENHANCE_YOUR_CALM: return GD_GRPC_RESOURCE_EXHAUSTED;
    default: return GD_GRPC_INTERNAL;
    }
}

static void free_call(struct gd_grpc_client_call *call)
{
    if (call->prev) {
        call->prev->next = call->next;
    } else {
        call->client->calls = call->next;
    }
    if (call->next) {
        call->next->prev = call->prev;
    }
    drop_queue(call);
    gd_grpc_deframer_deinit(&call->deframer);
    gd_buf_deinit(&call->text);
    free(call);
}

static void close_call(struct gd_grpc_client_call *call, enum gd_grpc_code code, const char *text)
{
    call->given_up = true;
    call->half_closed = true;
    if (call->ops->closed) {
        call->ops->closed(call, call->ctx, code, text);
    }
    free_call(call);
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    struct gd_grpc_client_call *call = call_of(session, stream);
    char text[80];
    (void)user;
    if (!call) {
        return 0;
    }
    if (call->grpc_status >= 0) {
        close_call(call, (enum gd_grpc_code)call->grpc_status, gd_buf_text(&call->text));
    } else if (call->http_status != 0 && call->http_status != 200) {
        snprintf(text, sizeof(text), "the server answered HTTP status %d", call->http_status);
        close_call(call, code_of_http(call->http_status), text);
    } else {
        snprintf(text, sizeof(text), "the call ended without a status (%s)",
                 nghttp2_http2_strerror(error));
        close_call(call, code_of_reset(error), text);
    }
    return 0;
}

void gd_grpc_client_lost(struct gd_grpc_client *client, const char *why)
{
    client->broken = true;
    client->busy++;
    while (client->calls) {
        close_call(client->calls, GD_GRPC_UNAVAILABLE, why);
    }
    drop_segments(client, false);
    client->busy--;
}

int gd_grpc_client_feed(struct gd_grpc_client *client, const void *data, size_t len,
                        struct gd_err *err)
{
    if (client->broken) {
        return gd_fail(err, GD_EPROTO, "the connection is broken already");
    }
    client->busy++;
    ssize_t n = nghttp2_session_mem_recv(client->session, data, len);
    client->busy--;
    if (n >= 0) {
        return GD_OK;
    }
    int rc = n == NGHTTP2_ERR_NOMEM ? GD_ENOMEM : GD_EPROTO;
    gd_fail(err, rc, "the server does not speak HTTP/2: %s", nghttp2_strerror((int)n));
    gd_grpc_client_lost(client, nghttp2_strerror((int)n));
    return rc;
}

bool gd_grpc_client_is_closing(const struct gd_grpc_client *client)
{
    return client->closing || client->broken ||
           (!nghttp2_session_want_read(client->session) &&
            !nghttp2_session_want_write(client->session));
}

int gd_grpc_client_ping(struct gd_grpc_client *client)
{
    return nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, NULL) ? GD_ENOMEM : GD_OK;
}

uint64_t gd_grpc_client_pongs(const struct gd_grpc_client *client)
{
    return client->pongs;
}

/* --- the connection --- */

static int new_session(struct gd_grpc_client *client)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, MAX_FRAME_IN},
    };
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks)) {
        return GD_ENOMEM;
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_frame);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_limit);
    int rc = nghttp2_session_client_new(&client->session, callbacks, client);
    nghttp2_session_callbacks_del(callbacks);
    if (rc != 0 ||
        nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings,
                                sizeof(settings) / sizeof(settings[0])) ||
        nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW)) {
        return GD_ENOMEM;
    }
    return GD_OK;
}

int gd_grpc_client_create(const char *authority, size_t max_message, struct gd_grpc_client **ret,
                          struct gd_err *err)
{
    struct gd_grpc_client *client = calloc(1, sizeof(*client));
    if (client) {
        client->max_message = max_message;
        client->authority = strdup(authority);
    }
    if (!client || !client->authority || new_session(client) != GD_OK) {
        gd_grpc_client_destroy(client);
        return gd_fail(err, GD_ENOMEM, "out of memory for a connection");
    }
    *ret = client;
    return GD_OK;
}

void gd_grpc_client_destroy(struct gd_grpc_client *client)
{
    if (!client) {
        return;
    }
    client->broken = true;
    client->busy++;
    while (client->calls) {
        close_call(client->calls, GD_GRPC_CANCELLED, "the connection was given up");
    }
    drop_segments(client, false);
    nghttp2_session_del(client->session);
    free(client->authority);
    free(client);
}

/* --- calls --- */

static nghttp2_nv header_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int32_t submit_call(struct gd_grpc_client_call *call, const char *path,
                           const struct gd_grpc_header *headers, size_t header_count)
{
    nghttp2_nv all[8 + MAX_HEADERS] = {
        header_of(":method", "POST"),
        header_of(":scheme", "http"),
        header_of(":path", path),
        header_of(":authority", call->client->authority),
        header_of("te", "trailers"),
        header_of("content-type", "application/grpc"),
        header_of("user-agent", "gradb/" GRADB_VERSION),
        header_of("grpc-accept-encoding", GD_GRPC_ACCEPT_ENCODING),
    };
    nghttp2_data_provider body = {.source = {.ptr = call}, .read_callback = read_body};
    for (size_t i = 0; i < header_count; i++) {
        all[8 + i] = header_of(headers[i].name, headers[i].value);
    }
    return nghttp2_submit_request(call->client->session, NULL, all, 8 + header_count, &body, call);
}

int gd_grpc_client_start(struct gd_grpc_client *client, const char *path,
                         const struct gd_grpc_header *headers, size_t header_count,
                         const struct gd_grpc_client_ops *ops, void *ctx,
                         struct gd_grpc_client_call **ret, struct gd_err *err)
{
    if (gd_grpc_client_is_closing(client) ||
        !nghttp2_session_check_request_allowed(client->session)) {
        return gd_fail(err, GD_ELOST, "the connection accepts no new calls");
    }
    if (header_count > MAX_HEADERS) {
        return gd_fail(err, GD_EINVAL, "%zu extra headers, but at most %d are allowed",
                       header_count, MAX_HEADERS);
    }
    struct gd_grpc_client_call *call = calloc(1, sizeof(*call));
    if (!call) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a call");
    }
    call->client = client;
    call->ops = ops;
    call->ctx = ctx;
    call->tail = &call->first;
    call->grpc_status = -1;
    gd_buf_init(&call->text, MAX_TEXT);
    call->stream = submit_call(call, path, headers, header_count);
    if (call->stream < 0) {
        gd_fail(err, GD_ENOMEM, "cannot start a call: %s", nghttp2_strerror(call->stream));
        free(call);
        return GD_ENOMEM;
    }
    call->next = client->calls;
    if (call->next) {
        call->next->prev = call;
    }
    client->calls = call;
    *ret = call;
    return GD_OK;
}

static void resume_data(struct gd_grpc_client_call *call)
{
    if (call->deferred && !call->client->broken) {
        call->deferred = false;
        nghttp2_session_resume_data(call->client->session, call->stream);
    }
}

int gd_grpc_client_send_pieces(struct gd_grpc_client_call *call, const void *head, size_t head_len,
                               const struct gd_grpc_piece *pieces, size_t piece_count,
                               gd_grpc_release_fn release, void *release_ctx)
{
    size_t len = head_len;
    if (call->half_closed || call->given_up || call->ended || call->client->broken) {
        return GD_ELOST;
    }
    if (piece_count > GD_GRPC_MAX_PIECES) {
        return GD_EINVAL;
    }
    for (size_t i = 0; i < piece_count; i++) {
        if (pieces[i].len > UINT32_MAX || len > UINT32_MAX - pieces[i].len) {
            return GD_ELIMIT;
        }
        len += pieces[i].len;
    }
    if (len > UINT32_MAX) {
        return GD_ELIMIT;
    }
    struct message *message = calloc(1, sizeof(*message) + GD_GRPC_PREFIX_SIZE + head_len);
    if (!message) {
        return GD_ENOMEM;
    }
    gd_grpc_prefix(message->head, len);
    if (head_len > 0) {
        memcpy(message->head + GD_GRPC_PREFIX_SIZE, head, head_len);
    }
    message->pieces[0] = (struct gd_grpc_piece){message->head, GD_GRPC_PREFIX_SIZE + head_len};
    if (piece_count > 0) {
        memcpy(message->pieces + 1, pieces, piece_count * sizeof(*pieces));
    }
    message->piece_count = piece_count + 1;
    message->refs = 1;
    message->left = GD_GRPC_PREFIX_SIZE + len;
    message->release = release;
    message->release_ctx = release_ctx;
    *call->tail = message;
    call->tail = &message->next;
    call->queued += message->left;
    resume_data(call);
    return GD_OK;
}

int gd_grpc_client_send(struct gd_grpc_client_call *call, const void *data, size_t len)
{
    return gd_grpc_client_send_pieces(call, data, len, NULL, 0, NULL, NULL);
}

size_t gd_grpc_client_queued(const struct gd_grpc_client_call *call)
{
    return call->queued;
}

int gd_grpc_client_half_close(struct gd_grpc_client_call *call)
{
    if (call->half_closed || call->given_up || call->client->broken) {
        return GD_ELOST;
    }
    call->half_closed = true;
    resume_data(call);
    return GD_OK;
}

void gd_grpc_client_cancel(struct gd_grpc_client_call *call)
{
    if (call->given_up || call->client->broken) {
        return;
    }
    end_with(call, GD_GRPC_CANCELLED, "cancelled");
    nghttp2_submit_rst_stream(call->client->session, NGHTTP2_FLAG_NONE, call->stream,
                              NGHTTP2_CANCEL);
}

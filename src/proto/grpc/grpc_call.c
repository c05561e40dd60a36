// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/grpc/grpc_impl.h"

#define HEADER_OVERHEAD 32 /* overhead per header in HTTP/2's size limit */
#define MAX_STATUS_TEXT 4096

#define NV(NAME, VALUE, VALUE_LEN)                                                                 \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(NAME), (uint8_t *)(uintptr_t)(VALUE), sizeof(NAME) - 1, VALUE_LEN,  \
            NGHTTP2_NV_FLAG_NONE                                                                   \
    }

/* --- headers in --- */

static const char *find_header(const struct gd_grpc_call *call, const char *name)
{
    const char *p = gd_buf_text(&call->headers);
    const char *end = p + call->headers.len;
    while (p < end) {
        const char *value = p + strlen(p) + 1;
        if (strcmp(p, name) == 0) {
            return value;
        }
        p = value + strlen(value) + 1;
    }
    return NULL;
}

int grpc_call_on_header(struct gd_grpc_call *call, const uint8_t *name, size_t name_len,
                        const uint8_t *value, size_t value_len)
{
    call->header_bytes += name_len + value_len + HEADER_OVERHEAD;
    if (call->header_bytes > GRPC_MAX_HEADERS || memchr(value, '\0', value_len)) {
        return GD_OK; /* dropped: the call is refused once all headers have arrived */
    }
    gd_buf_add(&call->headers, name, name_len);
    gd_buf_putc(&call->headers, '\0');
    gd_buf_add(&call->headers, value, value_len);
    return gd_buf_putc(&call->headers, '\0');
}

/* --- messages out --- */

static void drop_first(struct gd_grpc_call *call)
{
    struct grpc_out *first = call->out;
    call->conn->queued -= first->len;
    call->out = first->next;
    call->out_done = 0;
    if (!call->out) {
        call->out_tail = &call->out;
    }
    free(first);
}

static void submit_trailers(struct gd_grpc_call *call)
{
    char code[12];
    int code_len = snprintf(code, sizeof(code), "%d", (int)call->code);
    const char *text = call->status_text;
    nghttp2_nv trailers[] = {
        NV("grpc-status", code, (size_t)code_len),
        NV("grpc-message", text, text ? strlen(text) : 0),
    };
    nghttp2_submit_trailer(call->conn->session, call->stream, trailers, text ? 2 : 1);
}

static ssize_t read_out(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                        uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct gd_grpc_call *call = source->ptr;
    size_t done = 0;
    (void)session;
    (void)stream;
    (void)user;
    while (done < size && call->out) {
        size_t n = call->out->len - call->out_done;
        n = n < size - done ? n : size - done;
        memcpy(to + done, call->out->bytes + call->out_done, n);
        done += n;
        call->out_done += n;
        if (call->out_done == call->out->len) {
            drop_first(call);
        }
    }
    if (!call->out && call->finished) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailers(call);
    } else if (done == 0) {
        call->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)done;
}

/* Starts the response, or continues it after a pause. */
static void push_out(struct gd_grpc_call *call)
{
    nghttp2_session *session = call->conn->session;
    if (!call->responded) {
        static const nghttp2_nv headers[] = {
            NV(":status", "200", 3),
            NV("content-type", "application/grpc", 16),
            NV("grpc-accept-encoding", GD_GRPC_ACCEPT_ENCODING,
               sizeof(GD_GRPC_ACCEPT_ENCODING) - 1),
        };
        nghttp2_data_provider provider = {.source = {.ptr = call}, .read_callback = read_out};
        call->responded = true;
        nghttp2_submit_response(session, call->stream, headers,
                                sizeof(headers) / sizeof(headers[0]), &provider);
    } else if (call->deferred) {
        call->deferred = false;
        nghttp2_session_resume_data(session, call->stream);
    }
    grpc_conn_kick(call->conn);
}

/* Nothing was sent yet: status and headers in one frame. */
static void respond_with_status_only(struct gd_grpc_call *call)
{
    char code[12];
    int code_len = snprintf(code, sizeof(code), "%d", (int)call->code);
    const char *text = call->status_text;
    nghttp2_nv headers[] = {
        NV(":status", "200", 3),
        NV("content-type", "application/grpc", 16),
        NV("grpc-accept-encoding", GD_GRPC_ACCEPT_ENCODING, sizeof(GD_GRPC_ACCEPT_ENCODING) - 1),
        NV("grpc-status", code, (size_t)code_len),
        NV("grpc-message", text, text ? strlen(text) : 0),
    };
    call->responded = true;
    nghttp2_submit_response(call->conn->session, call->stream, headers, text ? 5 : 4, NULL);
    grpc_conn_kick(call->conn);
}

/* Not a gRPC request: answers in plain HTTP. */
static void respond_http(struct gd_grpc_call *call, const char *status)
{
    nghttp2_nv headers[] = {NV(":status", status, strlen(status))};
    call->finished = true;
    call->responded = true;
    nghttp2_submit_response(call->conn->session, call->stream, headers, 1, NULL);
    grpc_conn_kick(call->conn);
}

int gd_grpc_send(struct gd_grpc_call *call, const void *data, size_t len)
{
    struct gd_grpc_conn *conn = call->conn;
    uint64_t limit = 4 * conn->server->settings->max_message;
    if (call->finished || conn->dead) {
        return GD_ELOST;
    }
    /* The limit is meant for peers that do not read; a first message is sent whatever its size. */
    bool crowded = conn->queued > 0 && (len > limit || conn->queued > limit - len);
    if (len > UINT32_MAX || crowded) {
        return GD_ELIMIT;
    }
    struct grpc_out *out = malloc(sizeof(*out) + GD_GRPC_PREFIX_SIZE + len);
    if (!out) {
        return GD_ENOMEM;
    }
    out->next = NULL;
    out->len = GD_GRPC_PREFIX_SIZE + len;
    gd_grpc_prefix(out->bytes, len);
    if (len > 0) {
        memcpy(out->bytes + GD_GRPC_PREFIX_SIZE, data, len);
    }
    conn->queued += out->len;
    *call->out_tail = out;
    call->out_tail = &out->next;
    push_out(call);
    return GD_OK;
}

/* Drops a partially received message. */
static void drop_input(struct gd_grpc_call *call)
{
    call->conn->held -= call->held;
    call->held = 0;
    if (!call->feeding) {
        gd_grpc_deframer_deinit(&call->deframer);
    }
}

void gd_grpc_finish(struct gd_grpc_call *call, enum gd_grpc_code code, const char *message)
{
    if (call->finished || call->conn->dead) {
        return;
    }
    call->finished = true;
    call->code = code;
    ev_timer_stop(call->conn->server->loop, &call->deadline);
    drop_input(call);
    if (message && *message) {
        struct gd_buf text;
        gd_buf_init(&text, MAX_STATUS_TEXT);
        gd_grpc_percent_encode(message, &text);
        call->status_text = gd_buf_take(&text);
        gd_buf_deinit(&text);
    }
    if (!call->responded && code != GD_GRPC_OK) {
        respond_with_status_only(call);
    } else {
        push_out(call);
    }
}

int gd_grpc_reply(struct gd_grpc_call *call, const void *data, size_t len)
{
    int rc = gd_grpc_send(call, data, len);
    if (rc == GD_OK) {
        gd_grpc_finish(call, GD_GRPC_OK, NULL);
    }
    return rc;
}

/* --- messages in --- */

/* A method that takes one message must not receive a second one. */
static bool takes_more(struct gd_grpc_call *call, bool first_bytes)
{
    if (call->finished) {
        return false;
    }
    if (first_bytes && call->messages++ > 0 && !call->method->client_streams) {
        gd_grpc_finish(call, GD_GRPC_INVALID_ARGUMENT,
                       "this method takes one message, but a second one arrived");
        return false;
    }
    return true;
}

static int on_message(void *ctx, const uint8_t *data, size_t len)
{
    struct gd_grpc_call *call = ctx;
    if (takes_more(call, true)) {
        if (call->method->message) {
            call->method->message(call, data, len);
        } else if (call->method->chunk) {
            call->method->chunk(call, data, len, 0, len);
        }
    }
    return call->finished || call->conn->dead ? GD_ELOST : GD_OK;
}

static int on_chunk(void *ctx, const uint8_t *data, size_t len, size_t offset, size_t total)
{
    struct gd_grpc_call *call = ctx;
    if (takes_more(call, offset == 0)) {
        call->method->chunk(call, data, len, offset, total);
    }
    return call->finished || call->conn->dead ? GD_ELOST : GD_OK;
}

static const struct gd_grpc_deframer_ops whole_messages = {.message = on_message};
static const struct gd_grpc_deframer_ops in_chunks = {.message = on_message, .chunk = on_chunk};

static void refuse_input(struct gd_grpc_call *call, int rc, const struct gd_err *err)
{
    bool limit = rc == GD_ELIMIT || rc == GD_ENOMEM;
    gd_grpc_finish(call, limit ? GD_GRPC_RESOURCE_EXHAUSTED : GD_GRPC_INTERNAL, err->text);
}

/* The partially received messages of all calls of a connection are bounded together. */
static void account_held(struct gd_grpc_call *call)
{
    struct gd_grpc_conn *conn = call->conn;
    uint64_t limit = 4 * grpc_conn_max_message(conn);
    uint64_t held = call->deframer.body.len;
    conn->held = conn->held - call->held + held;
    call->held = held;
    if (conn->held > limit) {
        struct gd_err err;
        gd_fail(&err, GD_ELIMIT,
                "partially received messages on this connection exceed %llu bytes: send fewer at a "
                "time",
                (unsigned long long)limit);
        refuse_input(call, GD_ELIMIT, &err);
    }
}

void grpc_call_on_data(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_err err = {0};
    if (call->finished || !call->method) {
        return;
    }
    call->feeding = true;
    int rc = gd_grpc_deframer_feed(&call->deframer, data, len, &err);
    call->feeding = false;
    if (call->finished) {
        drop_input(call);
    } else if (rc != GD_OK) {
        refuse_input(call, rc, &err);
    } else {
        account_held(call);
    }
}

uint8_t *grpc_call_place(struct gd_grpc_call *call, size_t *room)
{
    const struct gd_grpc_deframer *d = &call->deframer;
    uint8_t *place;
    if (call->finished || !call->method || !call->method->place || d->compressed ||
        d->prefix_len < GD_GRPC_PREFIX_SIZE || d->total - d->offset < GRPC_PLACE_MIN) {
        return NULL;
    }
    place = call->method->place(call, room);
    if (*room > d->total - d->offset) {
        *room = d->total - d->offset;
    }
    return place;
}

void grpc_call_on_half_close(struct gd_grpc_call *call)
{
    call->half_closed = true;
    if (call->finished || !call->method) {
        return;
    }
    if (!gd_grpc_deframer_at_end(&call->deframer)) {
        struct gd_err err;
        if (call->deframer.prefix_len < GD_GRPC_PREFIX_SIZE) {
            gd_fail(&err, GD_EPROTO, "the stream ended inside a message's prefix");
        } else {
            gd_fail(&err, GD_EPROTO,
                    "the stream ended inside a message, after %zu of its %zu bytes",
                    call->deframer.offset, call->deframer.total);
        }
        refuse_input(call, GD_EPROTO, &err);
    } else if (!call->method->client_streams && call->messages == 0) {
        gd_grpc_finish(call, GD_GRPC_INVALID_ARGUMENT,
                       "this method takes one message, but none arrived");
    } else if (call->method->half_close) {
        call->method->half_close(call);
    }
}

/* --- the call as a whole --- */

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct gd_grpc_call *call = w->data;
    bool stuck = call->out != NULL;
    (void)loop;
    (void)revents;
    gd_grpc_finish(call, GD_GRPC_DEADLINE_EXCEEDED, "the call's deadline passed");
    if (stuck) {
        /* Flow control could delay the trailers forever. */
        nghttp2_submit_rst_stream(call->conn->session, NGHTTP2_FLAG_NONE, call->stream,
                                  NGHTTP2_CANCEL);
    }
}

int grpc_call_create(struct gd_grpc_conn *conn, int32_t stream)
{
    struct gd_grpc_call *call = calloc(1, sizeof(*call));
    if (!call) {
        return GD_ENOMEM;
    }
    call->conn = conn;
    call->stream = stream;
    call->out_tail = &call->out;
    gd_buf_init(&call->headers, GRPC_MAX_HEADERS);
    ev_init(&call->deadline, on_deadline);
    call->deadline.data = call;
    if (nghttp2_session_set_stream_user_data(conn->session, stream, call)) {
        free(call);
        return GD_ENOMEM;
    }
    call->next = conn->calls;
    if (call->next) {
        call->next->prev = call;
    }
    conn->calls = call;
    conn->call_count++;
    grpc_conn_watch_idle(conn);
    return GD_OK;
}

bool grpc_call_has_begun(const struct gd_grpc_call *call)
{
    return call->method && (call->messages > 0 || call->deframer.prefix_len > 0);
}

void grpc_call_free(struct gd_grpc_call *call)
{
    struct gd_grpc_conn *conn = call->conn;
    ev_timer_stop(conn->server->loop, &call->deadline);
    call->finished = true;
    if (call->prev) {
        call->prev->next = call->next;
    } else {
        conn->calls = call->next;
    }
    if (call->next) {
        call->next->prev = call->prev;
    }
    conn->call_count--;
    grpc_conn_watch_idle(conn);
    if (call->opened && call->method->closed) {
        call->method->closed(call);
    }
    while (call->out) {
        drop_first(call);
    }
    drop_input(call);
    gd_buf_deinit(&call->headers);
    free(call->status_text);
    free(call);
}

static bool is_grpc_type(const char *type)
{
    static const char wanted[] = "application/grpc";
    size_t len = sizeof(wanted) - 1;
    return type && strncmp(type, wanted, len) == 0 &&
           (type[len] == '\0' || type[len] == '+' || type[len] == ';');
}

static const struct gd_grpc_method *find_method(const struct gd_grpc_server *server,
                                                const char *path,
                                                const struct gd_grpc_service **service)
{
    for (size_t i = 0; i < server->service_count; i++) {
        const struct gd_grpc_service *candidate = server->services[i];
        for (size_t j = 0; j < candidate->method_count; j++) {
            if (strcmp(candidate->methods[j].path, path) == 0) {
                *service = candidate;
                return &candidate->methods[j];
            }
        }
    }
    return NULL;
}

static void refuse_method(struct gd_grpc_call *call, const char *path)
{
    struct gd_err err;
    gd_fail(&err, GD_EUNSUPPORTED, "unknown method %.200s", path ? path : "(none)");
    gd_grpc_finish(call, GD_GRPC_UNIMPLEMENTED, err.text);
}

/* The headers that control the call. False: it was refused. */
static bool read_options(struct gd_grpc_call *call, enum gd_grpc_encoding *encoding)
{
    const char *name = find_header(call, "grpc-encoding");
    const char *timeout = find_header(call, "grpc-timeout");
    double seconds;
    struct gd_err err;
    *encoding = GD_GRPC_IDENTITY;
    if (name && gd_grpc_encoding_parse(name, encoding) != GD_OK) {
        gd_fail(&err, GD_EUNSUPPORTED, "unknown grpc-encoding %.60s: use one of %s", name,
                GD_GRPC_ACCEPT_ENCODING);
        gd_grpc_finish(call, GD_GRPC_UNIMPLEMENTED, err.text);
        return false;
    }
    if (!timeout) {
        return true;
    }
    if (gd_grpc_timeout_parse(timeout, &seconds) != GD_OK) {
        gd_fail(&err, GD_EINVAL,
                "grpc-timeout %.60s is not a duration; write, for example, 20S or 1500m", timeout);
        gd_grpc_finish(call, GD_GRPC_INVALID_ARGUMENT, err.text);
        return false;
    }
    ev_timer_set(&call->deadline, seconds, 0.);
    ev_timer_start(call->conn->server->loop, &call->deadline);
    return true;
}

void grpc_call_on_headers_end(struct gd_grpc_call *call)
{
    const struct gd_grpc_server *server = call->conn->server;
    const char *path = find_header(call, ":path");
    const char *verb = find_header(call, ":method");
    enum gd_grpc_encoding encoding;
    if (call->header_bytes > GRPC_MAX_HEADERS) {
        struct gd_err err;
        gd_fail(&err, GD_ELIMIT, "the request's headers take %zu bytes, at most %d are accepted",
                call->header_bytes, GRPC_MAX_HEADERS);
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, err.text);
        return;
    }
    if (!is_grpc_type(find_header(call, "content-type"))) {
        respond_http(call, "415");
        return;
    }
    if (!verb || strcmp(verb, "POST") != 0) {
        respond_http(call, "405");
        return;
    }
    const struct gd_grpc_service *service = NULL;
    const struct gd_grpc_method *method = path ? find_method(server, path, &service) : NULL;
    if (!method) {
        refuse_method(call, path);
        return;
    }
    if (!read_options(call, &encoding)) {
        return;
    }
    call->method = method;
    call->service = service;
    gd_grpc_deframer_init(&call->deframer, encoding, grpc_conn_max_message(call->conn),
                          method->chunk ? &in_chunks : &whole_messages, call);
    call->opened = true;
    if (method->open) {
        method->open(call, service->ctx);
    }
}

/* --- for services --- */

void gd_grpc_call_set_data(struct gd_grpc_call *call, void *data)
{
    call->data = data;
}

void *gd_grpc_call_data(const struct gd_grpc_call *call)
{
    return call->data;
}

void *gd_grpc_call_service(const struct gd_grpc_call *call)
{
    return call->service->ctx;
}

struct gd_grpc_conn *gd_grpc_call_conn(const struct gd_grpc_call *call)
{
    return call->conn;
}

const char *gd_grpc_call_header(const struct gd_grpc_call *call, const char *name)
{
    return find_header(call, name);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The gRPC server against peers that do not keep to the rules: raw bytes over a socket.
 */
#include "grpc_world.h"

#include <errno.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define PREFACE     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define END_STREAM  1
#define ACK         1
#define END_HEADERS 4

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };

/* A socket and what came out of it. */
struct raw {
    struct world *w;
    int fd;
    ev_io io;
    struct gd_buf in;
    bool ended;
};

static void on_raw(struct ev_loop *loop, ev_io *io, int revents)
{
    struct raw *raw = io->data;
    char bytes[4096];
    ssize_t n = recv(raw->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n > 0) {
        gd_buf_add(&raw->in, bytes, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        raw->ended = true;
        ev_io_stop(loop, io);
    }
}

static void raw_init(struct raw *raw, struct world *w)
{
    *raw = (struct raw){.w = w};
    gd_buf_init(&raw->in, 16 << 20);
    assert_ok(gd_grpc_connect(gd_grpc_server_address(w->server), 0, &raw->fd, NULL));
    ev_io_init(&raw->io, on_raw, raw->fd, EV_READ);
    raw->io.data = raw;
    ev_io_start(w->loop, &raw->io);
}

static void raw_deinit(struct raw *raw)
{
    ev_io_stop(raw->w->loop, &raw->io);
    close(raw->fd);
    gd_buf_deinit(&raw->in);
}

/* Gives up quietly when the server hung up. */
static void raw_send(struct raw *raw, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0 && !raw->ended) {
        ssize_t n = send(raw->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return;
        }
        ev_run(raw->w->loop, EVRUN_NOWAIT);
    }
}

static void add_frame(struct gd_buf *buf, int type, int flags, uint32_t stream, const void *data,
                      size_t len)
{
    uint8_t head[9] = {(uint8_t)(len >> 16),    (uint8_t)(len >> 8),    (uint8_t)len,
                       (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
                       (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

    gd_buf_add(buf, head, sizeof(head));
    gd_buf_add(buf, data, len);
}

static void add_header(struct gd_buf *buf, const char *name, const char *value)
{
    assert_true(strlen(name) < 127 && strlen(value) < 127); /* one length byte each */
    gd_buf_putc(buf, 0);
    gd_buf_putc(buf, (char)strlen(name));
    gd_buf_puts(buf, name);
    gd_buf_putc(buf, (char)strlen(value));
    gd_buf_puts(buf, value);
}

struct request {
    const char *method, *path, *type, *encoding;
};

static void add_request(struct gd_buf *buf, uint32_t stream, int flags, const struct request *r)
{
    struct gd_buf block = GD_BUF_INIT(4096);

    add_header(&block, ":method", r->method ? r->method : "POST");
    add_header(&block, ":scheme", "http");
    add_header(&block, ":path", r->path);
    add_header(&block, ":authority", "localhost");
    add_header(&block, "te", "trailers");
    add_header(&block, "content-type", r->type ? r->type : "application/grpc");
    if (r->encoding) {
        add_header(&block, "grpc-encoding", r->encoding);
    }
    add_frame(buf, HEADERS, END_HEADERS | flags, stream, block.data, block.len);
    gd_buf_deinit(&block);
}

static void add_start(struct gd_buf *buf)
{
    gd_buf_puts(buf, PREFACE);
    add_frame(buf, SETTINGS, 0, 0, "", 0);
}

static void add_message(struct gd_buf *buf, uint32_t stream, int flags, int compressed,
                        const void *data, size_t len)
{
    struct gd_buf body = GD_BUF_INIT(1 << 20);
    uint8_t prefix[GD_GRPC_PREFIX_SIZE];

    gd_grpc_prefix(prefix, len);
    prefix[0] = (uint8_t)compressed;
    gd_buf_add(&body, prefix, sizeof(prefix));
    gd_buf_add(&body, data, len);
    add_frame(buf, DATA, flags, stream, body.data, body.len);
    gd_buf_deinit(&body);
}

/* Walks the frames that came: how many of that type (and stream, unless 0) are complete. */
static int frames_of(const struct raw *raw, int type, uint32_t stream)
{
    const uint8_t *p = (const uint8_t *)gd_buf_text(&raw->in);
    size_t left = raw->in.len;
    int count = 0;

    while (left >= 9) {
        size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        uint32_t id = (uint32_t)p[5] << 24 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 8 | p[8];
        if (left < 9 + len) {
            break;
        }
        count += p[3] == type && (stream == 0 || id == stream);
        p += 9 + len;
        left -= 9 + len;
    }
    return count;
}

static bool has_received(const struct raw *raw, const char *text)
{
    return memmem(gd_buf_text(&raw->in), raw->in.len, text, strlen(text)) != NULL;
}

/* The response headers of a stream, decoded: "name=value\n" each. One HPACK context for the
 * connection, so every HEADERS frame is decoded in order. */
static void headers_of(const struct raw *raw, uint32_t stream, struct gd_buf *ret)
{
    const uint8_t *p = (const uint8_t *)gd_buf_text(&raw->in), *end = p + raw->in.len;
    nghttp2_hd_inflater *inflater;

    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    while (end - p >= 9) {
        size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        uint32_t id = (uint32_t)p[5] << 24 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 8 | p[8];
        const uint8_t *block = p + 9;
        bool is_headers = p[3] == HEADERS;
        p += 9 + len;
        while (is_headers) {
            nghttp2_nv nv;
            int flags = 0;
            ssize_t n =
                nghttp2_hd_inflate_hd2(inflater, &nv, &flags, block, (size_t)(p - block), 1);
            assert_true(n >= 0);
            block += n;
            if ((flags & NGHTTP2_HD_INFLATE_EMIT) && id == stream) {
                gd_buf_printf(ret, "%s=%s\n", (const char *)nv.name, (const char *)nv.value);
            }
            if (flags & NGHTTP2_HD_INFLATE_FINAL) {
                nghttp2_hd_inflate_end_headers(inflater);
                break;
            }
        }
    }
    nghttp2_hd_inflate_del(inflater);
}

static void expect_header(const struct raw *raw, uint32_t stream, const char *text)
{
    struct gd_buf headers = GD_BUF_INIT(10000);

    headers_of(raw, stream, &headers);
    if (!strstr(gd_buf_text(&headers), text)) {
        fail_msg("no %s in\n%s", text, gd_buf_text(&headers));
    }
    gd_buf_deinit(&headers);
}

/* Log lines so far. */
static int count_lines(const struct world *w)
{
    int count = 0;

    for (const char *p = gd_buf_text(&w->log); *p; p++) {
        count += *p == '\n';
    }
    return count;
}

/* Sends it all, expects the connection to end with one log line that holds `sentence`. */
static void expect_hang_up(struct world *w, const void *data, size_t len, const char *sentence)
{
    struct raw raw;
    int before = count_lines(w), gone = w->conns_closed;

    raw_init(&raw, w);
    raw_send(&raw, data, len);
    RUN_UNTIL(w, w->conns_closed == gone + 1);
    assert_int_equal(count_lines(w), before + 1);
    assert_contains(gd_buf_text(&w->log), sentence);
    raw_deinit(&raw);
    expect_alive(w);
    RUN_UNTIL(w, w->conns_closed == gone + 2);
}

static void test_garbage(void **state)
{
    static const char http1[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char tls[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on and so on";
    struct world *w = *state;
    uint8_t noise[5000];

    for (size_t i = 0; i < sizeof(noise); i++) {
        noise[i] = (uint8_t)(i * i + i / 3);
    }
    expect_hang_up(w, http1, sizeof(http1) - 1, "does not speak HTTP/2");
    expect_hang_up(w, tls, sizeof(tls) - 1, "does not speak HTTP/2");
    expect_hang_up(w, noise, sizeof(noise), "does not speak HTTP/2");
}

static void test_garbage_after_preface(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(4096);

    gd_buf_puts(&bytes, PREFACE);
    add_frame(&bytes, DATA, 0, 1, "not settings", 12);
    expect_hang_up(w, bytes.data, bytes.len, "violated HTTP/2");

    gd_buf_clear(&bytes);
    add_start(&bytes);
    add_frame(&bytes, DATA, 0, 77, "a stream that is not open", 25);
    expect_hang_up(w, bytes.data, bytes.len, "PROTOCOL_ERROR");

    gd_buf_clear(&bytes);
    add_start(&bytes);
    add_frame(&bytes, HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    expect_hang_up(w, bytes.data, bytes.len, "COMPRESSION_ERROR");

    gd_buf_clear(&bytes);
    add_start(&bytes);
    gd_buf_add(&bytes, "\xff\xff\xff\x04\x00\x00\x00\x00\x00", 9); /* SETTINGS of 16 MiB */
    expect_hang_up(w, bytes.data, bytes.len, "FRAME_SIZE_ERROR");
    gd_buf_deinit(&bytes);
}

static void test_byte_at_a_time(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(4096);
    struct raw raw;

    add_start(&bytes);
    add_request(&bytes, 1, 0, &(struct request){.path = "/t/Echo"});
    add_message(&bytes, 1, END_STREAM, 0, "slowly", 6);
    raw_init(&raw, w);
    for (size_t i = 0; i < bytes.len; i++) {
        raw_send(&raw, bytes.data + i, 1);
        ev_run(w->loop, EVRUN_NOWAIT);
    }
    RUN_UNTIL(w, frames_of(&raw, HEADERS, 1) == 2); /* headers and trailers */
    assert_int_equal(frames_of(&raw, DATA, 1), 1);
    assert_true(has_received(&raw, "slowly"));
    raw_deinit(&raw);
    gd_buf_deinit(&bytes);
}

/* Sends one request; waits for the answer's last frame and checks that the bytes hold `text`. */
static void expect_answer(struct world *w, const struct request *r, int compressed,
                          const void *data, size_t len, const char *text)
{
    struct gd_buf bytes = GD_BUF_INIT(1 << 20);
    struct raw raw;
    int before = w->closed;

    add_start(&bytes);
    add_request(&bytes, 1, 0, r);
    add_message(&bytes, 1, END_STREAM, compressed, data, len);
    raw_init(&raw, w);
    raw_send(&raw, bytes.data, bytes.len);
    RUN_UNTIL(w, has_received(&raw, text) || raw.ended);
    assert_true(has_received(&raw, text));
    assert_false(raw.ended);
    RUN_UNTIL(w, w->closed == w->opened);
    assert_true(w->closed - before <= 1);
    raw_deinit(&raw);
    gd_buf_deinit(&bytes);
}

static size_t gzip_data(const void *data, size_t len, uint8_t *to, size_t size)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)data;
    z.avail_in = (uInt)len;
    z.next_out = to;
    z.avail_out = (uInt)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return size - z.avail_out;
}

static void test_compression(void **state)
{
    struct world *w = *state;
    uint8_t packed[4000];
    static uint8_t zeros[2 << 20];
    struct request echo = {.path = "/t/Echo", .encoding = "gzip"};
    size_t len = gzip_data("tensor tensor tensor tensor tensor", 34, packed, sizeof(packed));

    expect_answer(w, &echo, 1, packed, len, "tensor tensor tensor tensor tensor");
    expect_answer(w, &echo, 0, "plain", 5, "plain"); /* the flag decides for each message */
    assert_int_equal(w->opened, 2);
    static const struct {
        const char *encoding;
        bool bomb;
        const char *status;
    } refused[] = {{NULL, false, "grpc-status=13\n"},
                   {"snappy", false, "grpc-status=12\n"},
                   {"deflate", false, "grpc-status=13\n"},
                   {"gzip", true, "grpc-status=8\n"}};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct gd_buf bytes = GD_BUF_INIT(1 << 20);
        struct raw raw;
        if (refused[i].bomb) {
            len = gzip_data(zeros, sizeof(zeros), packed, sizeof(packed));
        }
        add_start(&bytes);
        add_request(&bytes, 1, 0,
                    &(struct request){.path = "/t/Echo", .encoding = refused[i].encoding});
        add_message(&bytes, 1, END_STREAM, 1, packed, len);
        raw_init(&raw, w);
        raw_send(&raw, bytes.data, bytes.len);
        RUN_UNTIL(w, frames_of(&raw, HEADERS, 1) == 1);
        assert_int_equal(frames_of(&raw, DATA, 1), 0);
        expect_header(&raw, 1, refused[i].status);
        expect_header(&raw, 1, "grpc-accept-encoding=identity,deflate,gzip\n");
        raw_deinit(&raw);
        gd_buf_deinit(&bytes);
    }
}

static void test_not_grpc(void **state)
{
    static const struct request requests[] = {
        {.path = "/t/Echo", .type = "application/json"},
        {.path = "/t/Echo", .type = "application/grpcx"},
        {.path = "/t/Echo", .method = "GET"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct gd_buf bytes = GD_BUF_INIT(4096);
        struct raw raw;
        add_start(&bytes);
        add_request(&bytes, 1, END_STREAM, &requests[i]);
        raw_init(&raw, w);
        raw_send(&raw, bytes.data, bytes.len);
        RUN_UNTIL(w, frames_of(&raw, HEADERS, 1) == 1);
        expect_header(&raw, 1, i < 2 ? ":status=415\n" : ":status=405\n");
        raw_deinit(&raw);
        gd_buf_deinit(&bytes);
    }
    assert_int_equal(w->opened, 0);
    expect_answer(w, &(struct request){.path = "/t/Echo", .type = "application/grpc+proto"}, 0,
                  "fine", 4, "fine");
}

static void test_truncated_message(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(4096);
    struct raw raw;

    add_start(&bytes);
    add_request(&bytes, 1, 0, &(struct request){.path = "/t/Chat"});
    add_frame(&bytes, DATA, END_STREAM, 1,
              "\0\0\0\0\x0a"
              "half",
              9);
    add_request(&bytes, 3, 0, &(struct request){.path = "/t/Chat"});
    add_frame(&bytes, DATA, END_STREAM, 3, "\0\0\0", 3);
    raw_init(&raw, w);
    raw_send(&raw, bytes.data, bytes.len);
    RUN_UNTIL(w, frames_of(&raw, HEADERS, 1) == 1 && frames_of(&raw, HEADERS, 3) == 1);
    assert_int_equal(frames_of(&raw, DATA, 0), 0);
    expect_header(&raw, 1,
                  "grpc-status=13\ngrpc-message=the stream ended inside a message, after 4");
    expect_header(&raw, 3, "grpc-status=13\n");
    RUN_UNTIL(w, w->closed == 2);
    raw_deinit(&raw);
    gd_buf_deinit(&bytes);
}

/* Five calls that each hold nearly a whole message: together they pass four times the limit. */
static void test_half_messages(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(8 << 20);
    struct raw raw;
    char *body = calloc(1, 16000);

    w->settings.max_message = 10000;
    gd_grpc_prefix((uint8_t *)body, 10000);
    add_start(&bytes);
    for (uint32_t id = 1; id <= 9; id += 2) {
        add_request(&bytes, id, 0, &(struct request){.path = "/t/Chat"});
        add_frame(&bytes, DATA, 0, id, body, 9005);
    }
    raw_init(&raw, w);
    raw_send(&raw, bytes.data, bytes.len);
    RUN_UNTIL(w, frames_of(&raw, HEADERS, 9) == 1);
    expect_header(&raw, 9, "grpc-status=8\n");
    for (uint32_t id = 1; id <= 7; id += 2) {
        assert_int_equal(frames_of(&raw, HEADERS, id), 0);
    }
    assert_int_equal(w->server->conns->held, 4 * 9000);
    raw_deinit(&raw);
    gd_buf_deinit(&bytes);
    free(body);
}

static void test_big_headers(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(1 << 20), block = GD_BUF_INIT(1 << 20);
    struct raw raw;

    add_header(&block, ":method", "POST");
    add_header(&block, ":scheme", "http");
    add_header(&block, ":path", "/t/Echo");
    add_header(&block, ":authority", "localhost");
    add_header(&block, "content-type", "application/grpc");
    for (int i = 0; i < 280; i++) { /* under HPACK's own bound, over ours */
        add_header(&block, "x-padding", "0123456789012345678901234567");
    }
    assert_true(block.len < 16384);
    add_start(&bytes);
    add_frame(&bytes, HEADERS, END_HEADERS | END_STREAM, 1, block.data, block.len);
    add_request(&bytes, 3, 0, &(struct request){.path = "/t/Echo"});
    add_message(&bytes, 3, END_STREAM, 0, "next", 4);
    raw_init(&raw, w);
    raw_send(&raw, bytes.data, bytes.len);
    RUN_UNTIL(w, frames_of(&raw, HEADERS, 3) == 2);
    expect_header(&raw, 1, "grpc-status=8\n");
    expect_header(&raw, 3, "grpc-status=0\n");
    assert_int_equal(w->opened, 1);
    raw_deinit(&raw);
    gd_buf_deinit(&block);
    gd_buf_deinit(&bytes);
}

static void test_floods(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(32 << 20);

    add_start(&bytes);
    for (int i = 0; i < 100000; i++) {
        add_frame(&bytes, PING, 0, 0, "12345678", 8);
    }
    expect_hang_up(w, bytes.data, bytes.len, "lood");

    gd_buf_clear(&bytes);
    add_start(&bytes);
    for (int i = 0; i < 100000; i++) {
        add_frame(&bytes, SETTINGS, 0, 0, "", 0);
    }
    expect_hang_up(w, bytes.data, bytes.len, "lood");

    gd_buf_clear(&bytes);
    add_start(&bytes);
    for (uint32_t id = 1; id < 20000; id += 2) { /* calls that are given up at once */
        add_request(&bytes, id, 0, &(struct request){.path = "/t/Hold"});
        add_frame(&bytes, RST_STREAM, 0, id, "\0\0\0\x08", 4);
    }
    int before = w->opened;
    expect_hang_up(w, bytes.data, bytes.len, "violated HTTP/2");
    assert_true(w->opened - before < 2000);
    gd_buf_deinit(&bytes);
}

/* Asks and asks and never reads: what waits for it stays bounded, others are served. */
static void test_deaf_peer(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(32 << 20);
    struct raw raw;
    char body[5005] = {0};

    w->settings.max_message = 10000;
    gd_grpc_prefix((uint8_t *)body, 5000);
    raw_init(&raw, w);
    ev_io_stop(w->loop, &raw.io);
    add_start(&bytes);
    add_request(&bytes, 1, 0, &(struct request){.path = "/t/Chat"});
    raw_send(&raw, bytes.data, bytes.len);
    for (int i = 0; i < 1000; i++) {
        gd_buf_clear(&bytes);
        add_frame(&bytes, DATA, 0, 1, body, sizeof(body));
        raw_send(&raw, bytes.data, bytes.len);
        assert_true(!w->server->conns || w->server->conns->queued <= 40000);
    }
    expect_alive(w);
    raw_deinit(&raw);
    gd_buf_deinit(&bytes);
}

/* The peer sends its last request and closes its sending half: the answer still comes. */
static void test_half_open(void **state)
{
    struct world *w = *state;
    struct gd_buf bytes = GD_BUF_INIT(4096);
    struct raw raw;

    add_start(&bytes);
    add_request(&bytes, 1, 0, &(struct request){.path = "/t/Echo"});
    add_message(&bytes, 1, END_STREAM, 0, "last words", 10);
    raw_init(&raw, w);
    raw_send(&raw, bytes.data, bytes.len);
    shutdown(raw.fd, SHUT_WR);
    RUN_UNTIL(w, raw.ended);
    assert_true(has_received(&raw, "last words"));
    raw_deinit(&raw);
    gd_buf_deinit(&bytes);
}

static void test_out_of_descriptors(void **state)
{
    struct world *w = *state;
    struct rlimit old, tight;
    int first = dup(0);
    struct raw raw;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    raw_init(&raw, w); /* connects; not accepted yet */
    tight = old;
    tight.rlim_cur = (rlim_t)first + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    RUN_UNTIL(w, count_lines(w) == 1);
    assert_contains(gd_buf_text(&w->log), "cannot accept connections");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    RUN_UNTIL(w, gd_grpc_server_connections(w->server) == 1);
    close(first);
    raw_deinit(&raw);
    expect_alive(w);
}

/* --- listening --- */

static void test_port_in_use(void **state)
{
    struct world *w = *state;
    struct gd_grpc_server *second;
    struct gd_err err;
    const char *address = gd_grpc_server_address(w->server);

    assert_ok(gd_grpc_server_create(w->loop, &w->settings, &second, &err));
    assert_int_equal(gd_grpc_server_listen(second, address, &err), GD_EIO);
    assert_contains(err.text, address);
    assert_contains(err.text, "another program uses this port");
    assert_null(gd_grpc_server_address(second));
    assert_int_equal(gd_grpc_server_listen(second, "no port here", &err), GD_EINVAL);
    assert_int_equal(gd_grpc_server_listen(second, "host.invalid:0", &err), GD_EINVAL);
    assert_ok(gd_grpc_server_listen(second, ":0", &err));
    assert_int_equal(gd_grpc_server_listen(second, ":0", &err), GD_ESTATE);
    gd_grpc_server_destroy(second);
}

static void test_loopback_is_both(void **state)
{
    struct world *w = *state;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    bool has_v6 = probe >= 0 && bind(probe, (struct sockaddr *)&v6, sizeof(v6)) == 0;

    close(probe);
    assert_true(gd_grpc_server_is_loopback(w->server));
    assert_int_equal(w->server->listener_count, has_v6 ? 2 : 1);
    if (has_v6) {
        struct peer peer;
        struct gd_buf address = GD_BUF_INIT(100);
        gd_buf_printf(&address, "localhost%s", strchr(gd_grpc_server_address(w->server), ':'));
        peer_init(&peer, w);
        close(peer.fd); /* the same client over the second address of localhost */
        ev_io_stop(w->loop, &peer.reader);
        assert_ok(gd_grpc_connect(gd_buf_text(&address), 1, &peer.fd, NULL));
        ev_io_set(&peer.reader, peer.fd, EV_READ);
        ev_io_set(&peer.writer, peer.fd, EV_WRITE);
        ev_io_start(w->loop, &peer.reader);
        expect_echo(w, &peer, "over IPv6");
        peer_deinit(&peer);
        int fd;
        struct gd_err err;
        assert_int_equal(gd_grpc_connect(gd_buf_text(&address), 2, &fd, &err), GD_ENOTFOUND);
        gd_buf_deinit(&address);
    }
    struct gd_err err;
    gd_grpc_server_close(w->server);
    assert_null(gd_grpc_server_address(w->server));
    assert_ok(gd_grpc_server_listen(w->server, "0.0.0.0:0", &err));
    assert_false(gd_grpc_server_is_loopback(w->server));
}

static const struct CMUnitTest tests[] = {
    WORLD_TEST(test_garbage),        WORLD_TEST(test_garbage_after_preface),
    WORLD_TEST(test_byte_at_a_time), WORLD_TEST(test_compression),
    WORLD_TEST(test_not_grpc),       WORLD_TEST(test_truncated_message),
    WORLD_TEST(test_half_messages),  WORLD_TEST(test_big_headers),
    WORLD_TEST(test_floods),         WORLD_TEST(test_deaf_peer),
    WORLD_TEST(test_half_open),      WORLD_TEST(test_out_of_descriptors),
    WORLD_TEST(test_port_in_use),    WORLD_TEST(test_loopback_is_both),
};

RUN_TESTS()

// SPDX-License-Identifier: GPL-3.0-or-later
#include "grpc_world.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct world *world_of(struct gd_grpc_call *call)
{
    return gd_grpc_call_service(call);
}

static void on_opened(struct gd_grpc_call *call, void *service)
{
    ((struct world *)service)->opened++;
}

static void on_closed(struct gd_grpc_call *call)
{
    world_of(call)->closed++;
    if (world_of(call)->held == call) {
        world_of(call)->held = NULL;
    }
}

static void echo_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_reply(call, data, len);
}

static void chat_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct world *w = world_of(call);
    if (w->client_fd) {
        assert_int_equal(ioctl(w->client_fd, FIONREAD, &w->unread), 0);
    }
    gd_grpc_send(call, data, len);
}

static void finish_ok(struct gd_grpc_call *call)
{
    gd_grpc_finish(call, GD_GRPC_OK, NULL);
}

static void hold_call(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    world_of(call)->held = call;
}

static void trace_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                        size_t total)
{
    if (offset + len == total) {
        gd_buf_printf(&world_of(call)->trace, "%zu:%u ", total, len > 0 ? data[len - 1] : 0u);
    }
}

static void trace_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_buf_printf(&world_of(call)->trace, "m%zu:%u ", len, len > 0 ? data[len - 1] : 0u);
}

static uint8_t *place_of(struct gd_grpc_call *call, size_t *room)
{
    struct world *w = world_of(call);

    *room = sizeof(w->place) - w->place_filled;
    return w->place + w->place_filled;
}

/* Gathers each message in w->place and traces its sum. */
static void place_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                        size_t total)
{
    struct world *w = world_of(call);
    unsigned sum = 0;

    if (offset == 0) {
        w->place_filled = 0;
    }
    assert_true(len <= sizeof(w->place) - w->place_filled);
    if (data == w->place + w->place_filled) {
        w->placed += len;
    } else {
        memmove(w->place + w->place_filled, data, len);
    }
    w->place_filled += len;
    if (offset + len == total) {
        for (size_t i = 0; i < total; i++) {
            sum = sum * 31 + w->place[i];
        }
        gd_buf_printf(&w->trace, "%zu:%u ", total, sum);
    }
}

static void answer_trace(struct gd_grpc_call *call)
{
    gd_grpc_reply(call, gd_buf_text(&world_of(call)->trace), world_of(call)->trace.len);
}

static void quit_early(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_finish(call, GD_GRPC_FAILED_PRECONDITION, "enough");
    gd_grpc_finish(call, GD_GRPC_INTERNAL, "a second verdict does not count");
    assert_int_equal(gd_grpc_send(call, "x", 1), GD_ELOST);
}

static void hang_up(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_reply(call, data, len);
    gd_grpc_conn_close(gd_grpc_call_conn(call), true);
}

static void show_token(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    const char *token = gd_grpc_call_header(call, "gradb-token");

    assert_null(gd_grpc_call_header(call, "no-such-header"));
    gd_grpc_reply(call, token ? token : "none", token ? strlen(token) : 4);
}

static void conn_closed(struct gd_grpc_conn *conn, void *ctx)
{
    struct world *w = ctx;

    assert_null(conn->calls); /* they went first */
    w->conns_closed++;
}

static const struct gd_grpc_method methods[] = {
    {.path = "/t/Echo", .open = on_opened, .message = echo_message, .closed = on_closed},
    {.path = "/t/Chat",
     .client_streams = true,
     .open = on_opened,
     .message = chat_message,
     .half_close = finish_ok,
     .closed = on_closed},
    {.path = "/t/Hold",
     .client_streams = true,
     .open = on_opened,
     .message = hold_call,
     .closed = on_closed},
    {.path = "/t/Trace",
     .client_streams = true,
     .open = on_opened,
     .message = trace_message,
     .chunk = trace_chunk,
     .half_close = answer_trace,
     .closed = on_closed},
    {.path = "/t/Place",
     .client_streams = true,
     .open = on_opened,
     .chunk = place_chunk,
     .place = place_of,
     .half_close = answer_trace,
     .closed = on_closed},
    {.path = "/t/Quit",
     .client_streams = true,
     .open = on_opened,
     .message = quit_early,
     .closed = on_closed},
    {.path = "/t/HangUp", .open = on_opened, .message = hang_up, .closed = on_closed},
    {.path = "/t/Token", .open = on_opened, .message = show_token, .closed = on_closed},
};

static void keep_log(void *ctx, const char *line)
{
    gd_buf_printf(&((struct world *)ctx)->log, "%s\n", line);
}

static struct gd_grpc_service service;

static void add_server(struct world *w, const char *address)
{
    service = (struct gd_grpc_service){.methods = methods,
                                       .method_count = sizeof(methods) / sizeof(methods[0]),
                                       .ctx = w,
                                       .conn_closed = conn_closed};
    assert_ok(gd_grpc_server_create(w->loop, &w->settings, &w->server, NULL));
    gd_grpc_server_set_log(w->server, keep_log, w);
    assert_ok(gd_grpc_server_add(w->server, &service, NULL));
    assert_ok(gd_grpc_server_listen(w->server, address, NULL));
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->loop = ev_loop_new(EVFLAG_AUTO);
    w->settings =
        (struct gd_settings){.max_message = 1 << 20, .max_connections = 100, .keepalive = 20};
    gd_buf_init(&w->log, 1 << 20);
    gd_buf_init(&w->trace, 1 << 20);
    add_server(w, "127.0.0.1:0");
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;

    gd_grpc_server_destroy(w->server);
    int missing = w->opened - w->closed; /* `closed` comes exactly once for each call */
    gd_buf_deinit(&w->log);
    gd_buf_deinit(&w->trace);
    ev_loop_destroy(w->loop);
    free(w);
    return missing;
}

void world_on_watchdog(struct ev_loop *loop, ev_timer *timer, int revents)
{
    ((struct world *)timer->data)->late = true;
    ev_break(loop, EVBREAK_ALL);
}

static unsigned answers; /* events of calls so far */

static void got_message(struct gd_grpc_client_call *call, void *ctx, const uint8_t *data,
                        size_t len)
{
    struct answer *answer = ctx;

    answers++;
    answer->messages++;
    gd_buf_deinit(&answer->last);
    gd_buf_init(&answer->last, SIZE_MAX);
    gd_buf_add(&answer->last, data, len);
}

static void got_closed(struct gd_grpc_client_call *call, void *ctx, enum gd_grpc_code code,
                       const char *text)
{
    struct answer *answer = ctx;

    answers++;
    assert_false(answer->closed);
    answer->closed = true;
    answer->code = code;
    snprintf(answer->text, sizeof(answer->text), "%s", text);
}

const struct gd_grpc_client_ops answer_ops = {got_message, got_closed};

static void peer_write(struct peer *peer)
{
    if (!peer->over && gd_grpc_client_write(peer->client, peer->fd, NULL) != GD_OK) {
        peer->over = true;
    }
    if (!peer->over && gd_grpc_client_wants_write(peer->client)) {
        ev_io_start(peer->w->loop, &peer->writer);
    } else {
        ev_io_stop(peer->w->loop, &peer->writer);
    }
}

static void on_peer(struct ev_loop *loop, ev_io *io, int revents)
{
    struct peer *peer = io->data;

    if ((revents & EV_READ) && gd_grpc_client_read(peer->client, peer->fd, NULL) != GD_OK) {
        peer->over = true;
        ev_io_stop(loop, &peer->reader);
    }
    peer_write(peer);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int revents)
{
    unsigned before = answers;

    peer_write(prepare->data);
    if (answers != before) {
        ev_break(loop, EVBREAK_ONE); /* what the test waits for may be there: do not go to sleep */
    }
}

void peer_init(struct peer *peer, struct world *w)
{
    memset(peer, 0, sizeof(*peer));
    peer->w = w;
    const char *address = gd_grpc_server_address(w->server);
    assert_ok(gd_grpc_connect(address, 0, &peer->fd, NULL));
    assert_ok(gd_grpc_client_create(address, 8 << 20, &peer->client, NULL));
    ev_io_init(&peer->reader, on_peer, peer->fd, EV_READ);
    ev_io_init(&peer->writer, on_peer, peer->fd, EV_WRITE);
    ev_prepare_init(&peer->flusher, on_prepare);
    peer->reader.data = peer->writer.data = peer->flusher.data = peer;
    ev_io_start(w->loop, &peer->reader);
    ev_prepare_start(w->loop, &peer->flusher);
}

void peer_deinit(struct peer *peer)
{
    ev_io_stop(peer->w->loop, &peer->reader);
    ev_io_stop(peer->w->loop, &peer->writer);
    ev_prepare_stop(peer->w->loop, &peer->flusher);
    gd_grpc_client_destroy(peer->client);
    close(peer->fd);
}

struct gd_grpc_client_call *start(struct peer *peer, const char *path, struct answer *answer)
{
    struct gd_grpc_client_call *call = NULL;

    memset(answer, 0, sizeof(*answer));
    gd_buf_init(&answer->last, SIZE_MAX);
    assert_ok(gd_grpc_client_start(peer->client, path, NULL, 0, &answer_ops, answer, &call, NULL));
    return call;
}

struct gd_grpc_client_call *unary(struct peer *peer, const char *path, const void *data, size_t len,
                                  struct answer *answer)
{
    struct gd_grpc_client_call *call = start(peer, path, answer);

    assert_ok(gd_grpc_client_send(call, data, len));
    assert_ok(gd_grpc_client_half_close(call));
    return call;
}

void expect_end(struct world *w, struct answer *answer, enum gd_grpc_code code, const char *text)
{
    RUN_UNTIL(w, answer->closed);
    assert_int_equal(answer->code, code);
    assert_contains(answer->text, text);
    gd_buf_deinit(&answer->last);
}

void expect_echo(struct world *w, struct peer *peer, const char *text)
{
    struct answer answer;

    unary(peer, "/t/Echo", text, strlen(text), &answer);
    RUN_UNTIL(w, answer.closed);
    assert_int_equal(answer.messages, 1);
    assert_string_equal(gd_buf_text(&answer.last), text);
    expect_end(w, &answer, GD_GRPC_OK, "");
}

void expect_alive(struct world *w)
{
    struct peer peer;

    peer_init(&peer, w);
    expect_echo(w, &peer, "still here");
    peer_deinit(&peer);
}

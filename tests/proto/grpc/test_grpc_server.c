// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The gRPC server and the client against each other on one loop.
 */
#include "grpc_world.h"

#include <sys/uio.h>
#include <unistd.h>

/* --- calls --- */

static void test_unary(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer;

    peer_init(&peer, w);
    expect_echo(w, &peer, "hello");
    expect_echo(w, &peer, "");
    unary(&peer, "/t/Nothing", "x", 1, &answer);
    expect_end(w, &answer, GD_GRPC_UNIMPLEMENTED, "/t/Nothing");
    struct gd_grpc_client_call *call = start(&peer, "/t/Echo", &answer);
    gd_grpc_client_half_close(call);
    expect_end(w, &answer, GD_GRPC_INVALID_ARGUMENT, "none arrived");
    call = start(&peer, "/t/Chat", &answer);
    gd_grpc_client_half_close(call);
    expect_end(w, &answer, GD_GRPC_OK, "");
    peer_deinit(&peer);
    RUN_UNTIL(w, w->conns_closed == 1);
}

static void test_headers(void **state)
{
    static const struct gd_grpc_header headers[] = {{"gradb-token", "s3cret"}};
    struct world *w = *state;
    struct peer peer;
    struct answer answer = {.last = GD_BUF_INIT(100)};
    struct gd_grpc_client_call *call;

    peer_init(&peer, w);
    assert_ok(gd_grpc_client_start(peer.client, "/t/Token", headers, 1, &answer_ops, &answer, &call,
                                   NULL));
    gd_grpc_client_send(call, "", 0);
    gd_grpc_client_half_close(call);
    RUN_UNTIL(w, answer.closed);
    assert_string_equal(gd_buf_text(&answer.last), "s3cret");
    gd_buf_deinit(&answer.last);
    peer_deinit(&peer);
}

static void test_chat(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer, other;

    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Chat", &answer);
    struct gd_grpc_client_call *second = start(&peer, "/t/Chat", &other);
    for (int i = 1; i <= 20; i++) {
        assert_ok(gd_grpc_client_send(call, "ping", 4));
        assert_ok(gd_grpc_client_send(second, "pong!", 5));
        RUN_UNTIL(w, answer.messages == i && other.messages == i);
    }
    assert_string_equal(gd_buf_text(&answer.last), "ping");
    assert_string_equal(gd_buf_text(&other.last), "pong!");
    gd_grpc_client_half_close(call);
    gd_grpc_client_cancel(second);
    expect_end(w, &answer, GD_GRPC_OK, "");
    expect_end(w, &other, GD_GRPC_CANCELLED, "");
    RUN_UNTIL(w, w->closed == 2);
    peer_deinit(&peer);
}

/* A reply leaves before the server processes messages that arrived together with the first. */
static void test_prompt_reply(void **state)
{
    static uint8_t big[20000];
    struct world *w = *state;
    struct peer peer;
    struct answer answer;

    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Chat", &answer);
    assert_ok(gd_grpc_client_send(call, "ping", 4));
    RUN_UNTIL(w, answer.messages == 1);
    w->client_fd = peer.fd;
    assert_ok(gd_grpc_client_send(call, "ping", 4));
    assert_ok(gd_grpc_client_send(call, big, sizeof(big)));
    RUN_UNTIL(w, answer.messages == 3);
    assert_true(w->unread >= GD_GRPC_PREFIX_SIZE + 4);
    gd_grpc_client_half_close(call);
    expect_end(w, &answer, GD_GRPC_OK, "");
    peer_deinit(&peer);
}

static void test_early_end(void **state)
{
    static uint8_t big[1 << 20];
    struct world *w = *state;
    struct peer peer;
    struct answer answer;

    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Quit", &answer);
    for (int i = 0; i < 64; i++) {
        gd_grpc_client_send(call, big, sizeof(big));
    }
    expect_end(w, &answer, GD_GRPC_FAILED_PRECONDITION, "enough");
    unary(&peer, "/t/HangUp", "x", 1, &answer);
    RUN_UNTIL(w, answer.closed && peer.over);
    gd_buf_deinit(&answer.last);
    peer_deinit(&peer);
    expect_alive(w);
}

static int releases;

static void on_release(void *ctx, bool sent)
{
    *(bool *)ctx = sent;
    releases++;
}

static void test_pieces(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer;
    bool sent[3] = {false, false, false};
    uint8_t *big = malloc(500000);

    memset(big, 'b', 500000);
    big[499999] = 7;
    releases = 0;
    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Trace", &answer);
    struct gd_grpc_piece pieces[] = {{big, 500000}, {"", 0}, {big + 250000, 250000}};
    assert_ok(gd_grpc_client_send_pieces(call, "head", 4, pieces, 3, on_release, &sent[0]));
    assert_ok(gd_grpc_client_send_pieces(call, NULL, 0, pieces + 1, 1, on_release, &sent[1]));
    assert_ok(gd_grpc_client_send_pieces(call, "ab", 2, NULL, 0, on_release, &sent[2]));
    gd_grpc_client_half_close(call);
    RUN_UNTIL(w, answer.closed);
    assert_string_equal(gd_buf_text(&answer.last), "750004:7 0:0 2:98 ");
    assert_int_equal(releases, 3);
    assert_true(sent[0] && sent[1] && sent[2]);
    expect_end(w, &answer, GD_GRPC_OK, "");

    call = start(&peer, "/t/Trace", &answer);
    gd_grpc_client_send_pieces(call, "head", 4, pieces, 3, on_release, &sent[0]);
    gd_grpc_client_cancel(call);
    expect_end(w, &answer, GD_GRPC_CANCELLED, "");
    peer_deinit(&peer);
    assert_int_equal(releases, 4);
    assert_false(sent[0]);
    free(big);
}

/* Many messages of all sizes through one stream arrive in order and unharmed. */
static void test_stream_of_sizes(void **state)
{
    static uint8_t bytes[300000];
    struct world *w = *state;
    struct gd_buf wanted = GD_BUF_INIT(1 << 20);
    struct peer peer;
    struct answer answer;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Trace", &answer);
    for (size_t i = 0; i < 300; i++) {
        size_t len = i * i * 3;
        struct gd_grpc_piece piece = {bytes, len};
        gd_grpc_client_send_pieces(call, NULL, 0, &piece, 1, NULL, NULL);
        gd_buf_printf(&wanted, "%zu:%u ", len, len > 0 ? bytes[len - 1] : 0u);
    }
    gd_grpc_client_half_close(call);
    RUN_UNTIL(w, answer.closed);
    assert_string_equal(gd_buf_text(&answer.last), gd_buf_text(&wanted));
    gd_buf_deinit(&wanted);
    gd_buf_deinit(&answer.last);
    peer_deinit(&peer);
}

/* Bytes that are read to their final place are the right ones, next to calls that have none. */
static void test_placed(void **state)
{
    static uint8_t bytes[900000];
    struct world *w = *state;
    struct gd_buf wanted = GD_BUF_INIT(1 << 20);
    struct peer peer;
    struct answer answer, other;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 11 + i / 300);
    }
    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Place", &answer);
    struct gd_grpc_client_call *chatting = start(&peer, "/t/Chat", &other);
    for (size_t i = 0; i < 60; i++) {
        size_t len = i * i * 250;
        unsigned sum = 0;
        struct gd_grpc_piece piece = {bytes, len};
        gd_grpc_client_send_pieces(call, "he", 2, &piece, 1, NULL, NULL);
        gd_grpc_client_send(chatting, bytes, i * 1000);
        sum = 'h' * 31 + 'e';
        for (size_t k = 0; k < len; k++) {
            sum = sum * 31 + bytes[k];
        }
        gd_buf_printf(&wanted, "%zu:%u ", len + 2, sum);
    }
    gd_grpc_client_half_close(call);
    gd_grpc_client_half_close(chatting);
    RUN_UNTIL(w, answer.closed && other.closed);
    assert_string_equal(gd_buf_text(&answer.last), gd_buf_text(&wanted));
    assert_int_equal(other.messages, 60);
    assert_int_equal(other.last.len, 59000);
    assert_true(w->placed > 0);
    gd_buf_deinit(&wanted);
    gd_buf_deinit(&answer.last);
    gd_buf_deinit(&other.last);
    peer_deinit(&peer);
}

static void test_oversized(void **state)
{
    struct world *w = *state;
    uint8_t *big = calloc(1, (1 << 20) + 1);
    struct peer peer;
    struct answer answer;

    peer_init(&peer, w);
    unary(&peer, "/t/Echo", big, (1 << 20) + 1, &answer);
    expect_end(w, &answer, GD_GRPC_RESOURCE_EXHAUSTED, "limit of 1048576 bytes");
    unary(&peer, "/t/Echo", big, 1 << 20, &answer);
    expect_end(w, &answer, GD_GRPC_OK, "");
    peer_deinit(&peer);
    free(big);
}

/* A peer that does not read makes send fail, not memory grow. */
static void test_slow_reader(void **state)
{
    struct world *w = *state;
    uint8_t *big = calloc(1, 1 << 20);
    struct peer peer;
    struct answer answer;
    int sent = 0;

    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Hold", &answer);
    gd_grpc_client_send(call, "x", 1);
    RUN_UNTIL(w, w->held);
    int rc = GD_OK;
    while (rc == GD_OK && sent < 1000) {
        rc = gd_grpc_send(w->held, big, 1 << 20);
        sent += rc == GD_OK;
    }
    assert_int_equal(rc, GD_ELIMIT);
    assert_true(sent >= 3);
    gd_grpc_finish(w->held, GD_GRPC_OK, NULL);
    expect_end(w, &answer, GD_GRPC_OK, "");
    assert_int_equal(answer.messages, sent);
    peer_deinit(&peer);
    free(big);
}

/* max-message is what peers may send: what we have to say to one that reads goes out. */
static void test_an_answer_larger_than_the_limit(void **state)
{
    struct world *w = *state;
    static const char big[100000];
    struct peer peer;
    struct answer answer;

    w->settings.max_message = 4096;
    peer_init(&peer, w);
    unary(&peer, "/t/Hold", "", 0, &answer);
    RUN_UNTIL(w, w->held);
    assert_ok(gd_grpc_reply(w->held, big, sizeof(big)));
    RUN_UNTIL(w, answer.closed);
    assert_int_equal(answer.last.len, sizeof(big));
    expect_end(w, &answer, GD_GRPC_OK, "");
    peer_deinit(&peer);
}

static void test_64_at_once(void **state)
{
    struct world *w = *state;
    struct peer peers[64];
    struct answer answers[64];
    int done = 0;

    for (int i = 0; i < 64; i++) {
        peer_init(&peers[i], w);
        unary(&peers[i], "/t/Echo", "many", 4, &answers[i]);
    }
    for (int i = 0; i < 64; i++) {
        expect_end(w, &answers[i], GD_GRPC_OK, "");
        done += answers[i].messages;
    }
    assert_int_equal(done, 64);
    assert_int_equal(gd_grpc_server_connections(w->server), 64);
    for (int i = 0; i < 64; i++) {
        peer_deinit(&peers[i]);
    }
    RUN_UNTIL(w, w->conns_closed == 64);
}

static void test_too_many_connections(void **state)
{
    struct world *w = *state;
    struct peer first, second;
    struct answer answer;

    w->settings.max_connections = 1;
    peer_init(&first, w);
    expect_echo(w, &first, "in");
    peer_init(&second, w);
    unary(&second, "/t/Echo", "x", 1, &answer);
    expect_end(w, &answer, GD_GRPC_UNAVAILABLE, "");
    assert_contains(gd_buf_text(&w->log), "max-connections");
    expect_echo(w, &first, "still in");
    peer_deinit(&second);
    peer_deinit(&first);
}

static void test_too_many_streams(void **state)
{
    struct world *w = *state;
    struct peer peer;
    static struct answer answers[GRPC_MAX_STREAMS + 10];

    peer_init(&peer, w);
    expect_echo(w, &peer, "settings are known now");
    for (int i = 0; i < GRPC_MAX_STREAMS + 10; i++) {
        struct gd_grpc_client_call *call = start(&peer, "/t/Hold", &answers[i]);
        gd_grpc_client_send(call, "x", 1);
    }
    RUN_UNTIL(w, w->opened == GRPC_MAX_STREAMS + 1);
    expect_alive(w);
    assert_int_equal(w->opened, GRPC_MAX_STREAMS + 2);
    peer_deinit(&peer);
    RUN_UNTIL(w, w->closed == w->opened);
}

/* --- ends --- */

static void test_goaway(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer, held;

    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Hold", &held);
    gd_grpc_client_send(call, "x", 1);
    RUN_UNTIL(w, w->held);
    gd_grpc_conn_close(gd_grpc_call_conn(w->held), false);
    RUN_UNTIL(w, gd_grpc_client_is_closing(peer.client));
    assert_int_equal(
        gd_grpc_client_start(peer.client, "/t/Echo", NULL, 0, &answer_ops, &answer, &call, NULL),
        GD_ELOST);
    assert_false(held.closed); /* what runs may end in peace */
    gd_grpc_reply(w->held, "bye", 3);
    expect_end(w, &held, GD_GRPC_OK, "");
    RUN_UNTIL(w, w->conns_closed == 1);
    peer_deinit(&peer);
}

static void test_server_destroyed(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer;

    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Hold", &answer);
    gd_grpc_client_send(call, "x", 1);
    RUN_UNTIL(w, w->held);
    gd_grpc_server_destroy(w->server);
    w->server = NULL;
    assert_int_equal(w->closed, 1);
    RUN_UNTIL(w, answer.closed && peer.over);
    assert_int_not_equal(answer.code, GD_GRPC_OK);
    gd_buf_deinit(&answer.last);
    peer_deinit(&peer);
}

static void test_deadline_of_a_call(void **state)
{
    static const struct gd_grpc_header headers[] = {{"grpc-timeout", "10m"}};
    static const struct gd_grpc_header wrong[] = {{"grpc-timeout", "soon"}};
    struct world *w = *state;
    struct peer peer;
    struct answer answer = {0};
    struct gd_grpc_client_call *call;

    peer_init(&peer, w);
    gd_grpc_client_start(peer.client, "/t/Hold", headers, 1, &answer_ops, &answer, &call, NULL);
    gd_grpc_client_send(call, "x", 1);
    expect_end(w, &answer, GD_GRPC_DEADLINE_EXCEEDED, "deadline");
    RUN_UNTIL(w, w->closed == 1);
    memset(&answer, 0, sizeof(answer));
    gd_grpc_client_start(peer.client, "/t/Hold", wrong, 1, &answer_ops, &answer, &call, NULL);
    expect_end(w, &answer, GD_GRPC_INVALID_ARGUMENT, "soon");
    peer_deinit(&peer);
}

static void test_vanish_mid_message(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer;
    uint8_t *big = calloc(1, 900000);
    struct gd_grpc_piece piece = {big, 900000};
    struct iovec iov[8];

    peer_init(&peer, w);
    expect_echo(w, &peer, "hello");
    ev_prepare_stop(w->loop, &peer.flusher); /* from here on we write by hand */
    struct gd_grpc_client_call *call = start(&peer, "/t/Echo", &answer);
    gd_grpc_client_send_pieces(call, NULL, 0, &piece, 1, NULL, NULL);
    size_t n = gd_grpc_client_out(peer.client, iov, 8);
    assert_true(n > 1);
    assert_true(write(peer.fd, iov[0].iov_base, iov[0].iov_len) == (ssize_t)iov[0].iov_len);
    assert_true(write(peer.fd, iov[1].iov_base, 1000) == 1000);
    RUN_UNTIL(w, w->opened == 2);
    peer_deinit(&peer);
    RUN_UNTIL(w, w->conns_closed == 1);
    assert_int_equal(w->closed, 2);
    expect_alive(w);
    gd_buf_deinit(&answer.last);
    free(big);
}

static void test_silent_peers(void **state)
{
    struct world *w = *state;
    struct peer peer;

    w->server->peer_patience = 0.5;
    w->settings.keepalive = 0.1;
    peer_init(&peer, w);
    expect_echo(w, &peer, "one"); /* answers PINGs while the loop runs */
    ev_io_stop(w->loop, &peer.reader);
    RUN_UNTIL(w, w->conns_closed == 1);
    assert_contains(gd_buf_text(&w->log), "no answer to a PING");
    peer_deinit(&peer);

    int fd;
    assert_ok(gd_grpc_connect(gd_grpc_server_address(w->server), 0, &fd, NULL));
    RUN_UNTIL(w, w->conns_closed == 2);
    assert_contains(gd_buf_text(&w->log), "did not speak HTTP/2 within");
    close(fd);
}

static void test_keepalive_keeps(void **state)
{
    struct world *w = *state;
    struct peer peer;
    struct answer answer;

    w->server->peer_patience = 5;
    w->settings.keepalive = 0.02;
    peer_init(&peer, w);
    struct gd_grpc_client_call *call = start(&peer, "/t/Hold", &answer);
    gd_grpc_client_send(call, "x", 1);
    RUN_UNTIL(w, w->held);
    struct gd_grpc_conn *conn = gd_grpc_call_conn(w->held);
    for (int i = 0; i < 3; i++) {
        RUN_UNTIL(w, conn->ping_out);
        RUN_UNTIL(w, !conn->ping_out);
    }
    assert_ok(gd_grpc_client_ping(peer.client));
    RUN_UNTIL(w, gd_grpc_client_pongs(peer.client) == 1);
    gd_grpc_reply(w->held, "", 0);
    expect_end(w, &answer, GD_GRPC_OK, "");
    peer_deinit(&peer);
}
static const struct CMUnitTest tests[] = {
    WORLD_TEST(test_an_answer_larger_than_the_limit),
    WORLD_TEST(test_unary),
    WORLD_TEST(test_headers),
    WORLD_TEST(test_chat),
    WORLD_TEST(test_prompt_reply),
    WORLD_TEST(test_early_end),
    WORLD_TEST(test_pieces),
    WORLD_TEST(test_stream_of_sizes),
    WORLD_TEST(test_placed),
    WORLD_TEST(test_oversized),
    WORLD_TEST(test_slow_reader),
    WORLD_TEST(test_64_at_once),
    WORLD_TEST(test_too_many_connections),
    WORLD_TEST(test_too_many_streams),
    WORLD_TEST(test_goaway),
    WORLD_TEST(test_server_destroyed),
    WORLD_TEST(test_deadline_of_a_call),
    WORLD_TEST(test_vanish_mid_message),
    WORLD_TEST(test_silent_peers),
    WORLD_TEST(test_keepalive_keeps),
};

RUN_TESTS()

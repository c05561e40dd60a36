// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A connection of the gRPC server fed with anything. The first byte says how the bytes are split
 * and whether a good HTTP/2 start goes before them. Every call that opens must close, once.
 */
#include "fuzz.h"

#include <ev.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/grpc/grpc_server.h"

struct count {
    int open;
    int conns_closed;
};

static void on_opened(struct gd_grpc_call *call, void *service)
{
    ((struct count *)service)->open++;
}

static void on_closed(struct gd_grpc_call *call)
{
    struct count *count = gd_grpc_call_service(call);

    FUZZ_CHECK(count->open > 0);
    count->open--;
}

static void echo_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_reply(call, data, len);
}

static void chat_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_send(call, data, len);
    if (len > 0 && data[0] == 'q') {
        gd_grpc_finish(call, GD_GRPC_CANCELLED, "quit");
    }
    if (len > 0 && data[0] == 'c') {
        gd_grpc_conn_close(gd_grpc_call_conn(call), data[len - 1] == 'n');
    }
}

static void count_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                        size_t total)
{
    FUZZ_CHECK(offset <= total && len <= total - offset);
    if (total == 13) {
        gd_grpc_finish(call, GD_GRPC_INTERNAL, "unlucky");
    }
}

static void half_close(struct gd_grpc_call *call)
{
    gd_grpc_finish(call, GD_GRPC_OK, NULL);
}

static void conn_closed(struct gd_grpc_conn *conn, void *ctx)
{
    struct count *count = ctx;

    FUZZ_CHECK(count->open == 0);
    count->conns_closed++;
}

static void feed_chunks(struct ev_loop *loop, int fd, const void *data, size_t size, size_t step)
{
    const uint8_t *p = data;
    char sink[65536];

    for (size_t i = 0; i < size; i += step) {
        if (send(fd, p + i, size - i < step ? size - i : step, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            break;
        }
        ev_run(loop, EVRUN_NOWAIT);
        while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0) {
            continue;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gd_grpc_method methods[] = {
        {.path = "/e",
         .open = on_opened,
         .message = echo_message,
         .half_close = half_close,
         .closed = on_closed},
        {.path = "/c",
         .client_streams = true,
         .open = on_opened,
         .message = chat_message,
         .half_close = half_close,
         .closed = on_closed},
        {.path = "/k",
         .client_streams = true,
         .open = on_opened,
         .chunk = count_chunk,
         .closed = on_closed},
    };
    static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    const struct gd_settings settings = {.max_message = 5000, .max_connections = 2};
    struct count count = {0};
    const struct gd_grpc_service service = {
        .methods = methods, .method_count = 3, .ctx = &count, .conn_closed = conn_closed};
    struct ev_loop *loop = ev_loop_new(EVBACKEND_POLL);
    struct gd_grpc_server *server = NULL;
    int pair[2];

    FUZZ_CHECK(loop && gd_grpc_server_create(loop, &settings, &server, NULL) == GD_OK);
    FUZZ_CHECK(gd_grpc_server_add(server, &service, NULL) == GD_OK);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    FUZZ_CHECK(gd_grpc_server_adopt(server, pair[0], NULL) == GD_OK);
    if (size > 0) {
        size_t step = data[0] & 1 ? size : 1u + (data[0] >> 2);
        if (data[0] & 2) {
            feed_chunks(loop, pair[1], start, sizeof(start) - 1, sizeof(start));
        }
        feed_chunks(loop, pair[1], data + 1, size - 1, step);
    }
    close(pair[1]);
    ev_run(loop, EVRUN_NOWAIT);
    gd_grpc_server_destroy(server);
    FUZZ_CHECK(count.open == 0 && count.conns_closed == 1);
    ev_loop_destroy(loop);
    return 0;
}

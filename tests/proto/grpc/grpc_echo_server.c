// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A gRPC server for tests: each way of calling, with bytes for messages.
 *
 *     /test.Echo/Unary    one message, sent back
 *     /test.Echo/Count    a stream of messages; the reply is "MESSAGES BYTES SUM" in decimal
 *     /test.Echo/Chunks   as Count, taken in chunks
 *     /test.Echo/Chat     each message is sent back at once; ends when the client has ended
 *     /test.Echo/Fail     one message "CODE TEXT", which becomes the status
 *     /test.Echo/Hold     never answered
 *     /test.Echo/Held     how many Hold calls are open, in decimal
 *     /test.Echo/Big      one message, a decimal number: that many bytes back
 *     /test.Echo/Bye      answers, then closes the connection in good order
 *
 * Prints "listening on ADDRESS"; log lines of the server go to stdout. Ends when stdin ends.
 * Options: address, max-message, keepalive, max-connections as NAME=VALUE.
 */
#include <ev.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/grpc/grpc_server.h"

/* Callbacks get more than they need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct tally {
    uint64_t messages;
    uint64_t bytes;
    uint64_t sum;
};

static int held;

static void echo_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_reply(call, data, len);
}

static void count_open(struct gd_grpc_call *call, void *service)
{
    gd_grpc_call_set_data(call, calloc(1, sizeof(struct tally)));
}

static void count_bytes(struct tally *tally, const uint8_t *data, size_t len)
{
    tally->bytes += len;
    for (size_t i = 0; i < len; i++) {
        tally->sum += data[i];
    }
}

static void count_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct tally *tally = gd_grpc_call_data(call);

    tally->messages++;
    count_bytes(tally, data, len);
}

static void count_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                        size_t total)
{
    struct tally *tally = gd_grpc_call_data(call);

    count_bytes(tally, data, len);
    if (offset + len == total) {
        tally->messages++;
    }
}

static void count_half_close(struct gd_grpc_call *call)
{
    const struct tally *tally = gd_grpc_call_data(call);
    char text[80];
    int len = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64, tally->messages,
                       tally->bytes, tally->sum);

    gd_grpc_reply(call, text, (size_t)len);
}

static void count_closed(struct gd_grpc_call *call)
{
    free(gd_grpc_call_data(call));
}

static void chat_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    int rc = gd_grpc_send(call, data, len);

    if (rc != GD_OK) {
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, "the peer does not read");
    }
}

static void chat_half_close(struct gd_grpc_call *call)
{
    gd_grpc_finish(call, GD_GRPC_OK, NULL);
}

static void fail_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    char text[200] = "";
    char *end;

    memcpy(text, data, len < sizeof(text) ? len : sizeof(text) - 1);
    long code = strtol(text, &end, 10);
    gd_grpc_finish(call, (enum gd_grpc_code)code, *end ? end + 1 : NULL);
}

static void hold_open(struct gd_grpc_call *call, void *service)
{
    held++;
}

static void hold_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
}

static void hold_closed(struct gd_grpc_call *call)
{
    held--;
}

static void held_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    char text[20];
    int n = snprintf(text, sizeof(text), "%d", held);

    gd_grpc_reply(call, text, (size_t)n);
}

static void big_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    char text[20] = "";

    memcpy(text, data, len < sizeof(text) ? len : sizeof(text) - 1);
    size_t size = strtoul(text, NULL, 10);
    char *bytes = calloc(1, size ? size : 1);
    if (!bytes || gd_grpc_reply(call, bytes, size) != GD_OK) {
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, "too big");
    }
    free(bytes);
}

static void bye_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    gd_grpc_reply(call, data, len);
    gd_grpc_conn_close(gd_grpc_call_conn(call), false);
}

static const struct gd_grpc_method methods[] = {
    {.path = "/test.Echo/Unary", .message = echo_message},
    {.path = "/test.Echo/Count",
     .client_streams = true,
     .open = count_open,
     .message = count_message,
     .half_close = count_half_close,
     .closed = count_closed},
    {.path = "/test.Echo/Chunks",
     .client_streams = true,
     .open = count_open,
     .message = count_message,
     .chunk = count_chunk,
     .half_close = count_half_close,
     .closed = count_closed},
    {.path = "/test.Echo/Chat",
     .client_streams = true,
     .message = chat_message,
     .half_close = chat_half_close},
    {.path = "/test.Echo/Fail", .message = fail_message},
    {.path = "/test.Echo/Hold", .open = hold_open, .message = hold_message, .closed = hold_closed},
    {.path = "/test.Echo/Held", .message = held_message},
    {.path = "/test.Echo/Big", .message = big_message},
    {.path = "/test.Echo/Bye", .message = bye_message},
};

static void print_log(void *ctx, const char *line)
{
    printf("log: %s\n", line);
    fflush(stdout);
}

static void on_stdin(struct ev_loop *loop, ev_io *w, int revents)
{
    char bytes[64];

    if (read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0) {
        ev_break(loop, EVBREAK_ALL);
    }
}

static bool take_option(const char *arg, const char *name, const char **value)
{
    size_t len = strlen(name);

    if (strncmp(arg, name, len) != 0 || arg[len] != '=') {
        return false;
    }
    *value = arg + len + 1;
    return true;
}

static int serve_calls(const char *address, const struct gd_settings *settings)
{
    static const struct gd_grpc_service service = {
        .methods = methods, .method_count = sizeof(methods) / sizeof(methods[0])};
    struct ev_loop *loop = ev_default_loop(0);
    struct gd_grpc_server *server = NULL;
    struct gd_err err;
    ev_io input;

    if (gd_grpc_server_create(loop, settings, &server, &err) != GD_OK ||
        gd_grpc_server_add(server, &service, &err) != GD_OK ||
        gd_grpc_server_listen(server, address, &err) != GD_OK) {
        printf("error: %s\n", err.text);
        gd_grpc_server_destroy(server);
        return 1;
    }
    gd_grpc_server_set_log(server, print_log, NULL);
    printf("listening on %s\n", gd_grpc_server_address(server));
    fflush(stdout);
    ev_io_init(&input, on_stdin, STDIN_FILENO, EV_READ);
    ev_io_start(loop, &input);
    ev_run(loop, 0);
    gd_grpc_server_destroy(server);
    printf("held at the end: %d\n", held);
    ev_loop_destroy(loop);
    return 0;
}

int main(int argc, char **argv)
{
    struct gd_settings settings = {
        .max_message = 64 << 20, .max_connections = 512, .keepalive = 20};
    const char *address = "127.0.0.1:0";
    const char *value;

    for (int i = 1; i < argc; i++) {
        if (take_option(argv[i], "address", &value)) {
            address = value;
        } else if (take_option(argv[i], "max-message", &value)) {
            settings.max_message = strtoull(value, NULL, 10);
        } else if (take_option(argv[i], "max-connections", &value)) {
            settings.max_connections = strtoull(value, NULL, 10);
        } else if (take_option(argv[i], "keepalive", &value)) {
            settings.keepalive = strtod(value, NULL);
        } else {
            fprintf(stderr, "unknown option %s\n", argv[i]);
            return 2;
        }
    }
    return serve_calls(address, &settings);
}

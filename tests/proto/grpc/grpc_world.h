// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The world of the gRPC tests: a server with a few methods, and clients, all on one loop. Nothing
 * waits but RUN_UNTIL, which has a deadline.
 *
 *     /t/Echo    one message, sent back             /t/Chat    each message sent back
 *     /t/Hold    remembered in world.held           /t/Trace   the reply lists "LENGTH:LAST-BYTE "
 *     /t/Quit    ended at the first message         /t/HangUp  answered, then the connection closed
 *     /t/Place   the reply lists "LENGTH:SUM " of messages gathered in world.place
 *     /t/Token   the reply is the header gradb-token
 */
#ifndef GD_TESTS_GRPC_WORLD_H
#define GD_TESTS_GRPC_WORLD_H

#include <ev.h>

#include "../../unit.h"
#include "proto/grpc/grpc_client.h"
#include "proto/grpc/grpc_frame.h"
#include "proto/grpc/grpc_impl.h"
#include "proto/grpc/grpc_server.h"

#define WORLD_DEADLINE   60.0
#define WORLD_TEST(NAME) cmocka_unit_test_setup_teardown(NAME, world_setup, world_teardown)

struct world {
    struct ev_loop *loop;
    struct gd_settings settings;
    struct gd_grpc_server *server;
    struct gd_buf log;
    int opened, closed, conns_closed;
    bool late; /* the watchdog barked */
    struct gd_grpc_call *held;
    uint8_t place[1 << 20]; /* where /t/Place gathers a message */
    size_t place_filled;
    size_t placed;       /* bytes that came to their place without a copy */
    struct gd_buf trace; /* what the tracing methods saw */
    int client_fd;       /* 0: none */
    int unread;          /* bytes waiting there when /t/Chat got its last message */
};

/* For cmocka; *state is the struct world. teardown fails when a call missed its `closed`. */
int world_setup(void **state);
int world_teardown(void **state);
void world_on_watchdog(struct ev_loop *loop, ev_timer *timer, int revents);

/* Runs the loop until the condition holds; the test fails when it never does. */
#define RUN_UNTIL(W, CONDITION)                                                                    \
    do {                                                                                           \
        ev_timer dog;                                                                              \
        ev_timer_init(&dog, world_on_watchdog, WORLD_DEADLINE, 0.);                                \
        dog.data = (W);                                                                            \
        ev_timer_start((W)->loop, &dog);                                                           \
        while (!(CONDITION) && !(W)->late) {                                                       \
            ev_run((W)->loop, EVRUN_ONCE);                                                         \
        }                                                                                          \
        ev_timer_stop((W)->loop, &dog);                                                            \
        assert_true(CONDITION);                                                                    \
    } while (0)

/* A client on the world's loop. */
struct peer {
    struct world *w;
    int fd;
    struct gd_grpc_client *client;
    ev_io reader, writer;
    ev_prepare flusher;
    bool over; /* the connection ended */
};

struct answer { /* what a call got */
    int messages;
    size_t last_len;
    struct gd_buf last;
    bool closed;
    enum gd_grpc_code code;
    char text[256];
};

extern const struct gd_grpc_client_ops answer_ops; /* ctx is a struct answer */

void peer_init(struct peer *peer, struct world *w);
void peer_deinit(struct peer *peer);

/* A call whose events go to *answer. */
struct gd_grpc_client_call *start(struct peer *peer, const char *path, struct answer *answer);
/* ... with one message, and half-closed. */
struct gd_grpc_client_call *unary(struct peer *peer, const char *path, const void *data, size_t len,
                                  struct answer *answer);
/* Waits for the call's end, checks it, frees what the answer holds. */
void expect_end(struct world *w, struct answer *answer, enum gd_grpc_code code, const char *text);
void expect_echo(struct world *w, struct peer *peer, const char *text);
/* The server still serves others. */
void expect_alive(struct world *w);

#endif

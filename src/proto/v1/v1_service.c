// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/v1/v1_impl.h"

#define HELLO_SECONDS 10.0
#define LOST_BEATS    3.0
#define TICK_SECONDS  1.0
#define TICK_LEAST    0.02

/* ---- sending ------------------------------------------------------------------------- */

/* Stops accepting messages from the training process. */
static void give_up(struct v1_conn *conn, enum gd_grpc_code code, const char *text)
{
    struct v1_target *target = conn->target;
    conn->target = NULL;
    v1_conn_finish(conn, code, text);
    if (target) {
        v1_target_lost(target, text);
    }
}

/* ---- hello --------------------------------------------------------------------------- */

#define SAME_TOKEN "set GRADB_TOKEN to the output of `show token` in gradb"

static const char *token_of(const struct v1_conn *conn)
{
    return conn->service->debugger->settings.token;
}

/* The training process must prove first that it knows the token, and only then sees our proof: a
 * stranger who connects gets nothing to test tokens with. */
static void on_authenticate(struct v1_conn *conn, const Gradb__V1__Authenticate *m)
{
    Gradb__V1__Challenge challenge = GRADB__V1__CHALLENGE__INIT;
    if (conn->stage != V1_MEETS || m->nonce.len != GD_PROOF_BYTES ||
        !gd_proof_nonce(conn->nonces.debugger)) {
        v1_conn_finish(conn, GD_GRPC_INVALID_ARGUMENT,
                       "Authenticate must come first, with a nonce of 32 bytes");
        return;
    }
    memcpy(conn->nonces.trainer, m->nonce.data, GD_PROOF_BYTES);
    conn->stage = V1_CHALLENGED;
    challenge.nonce.data = conn->nonces.debugger;
    challenge.nonce.len = GD_PROOF_BYTES;
    challenge.token = token_of(conn)[0] != '\0';
    v1_conn_send(conn, &challenge.base);
}

static void on_proof(struct v1_conn *conn, const Gradb__V1__Proof *m)
{
    uint8_t mac[GD_PROOF_BYTES];
    Gradb__V1__Proof proof = GRADB__V1__PROOF__INIT;
    const char *token = token_of(conn);
    if (conn->stage != V1_CHALLENGED || token[0] == '\0') {
        v1_conn_finish(conn, GD_GRPC_INVALID_ARGUMENT, "Proof is only valid after a Challenge");
        return;
    }
    if (!gd_proof_check(&conn->nonces, GD_PROOF_TRAINER, token, m->mac.data, m->mac.len)) {
        v1_conn_finish(conn, GD_GRPC_UNAUTHENTICATED, "the token is wrong: " SAME_TOKEN);
        return;
    }
    conn->stage = V1_PROVEN;
    if (conn->wire->trust) {
        conn->wire->trust(conn->wire_ctx);
    }
    gd_proof_make(&conn->nonces, GD_PROOF_DEBUGGER, token, mac);
    proof.mac.data = mac;
    proof.mac.len = sizeof(mac);
    v1_conn_send(conn, &proof.base);
}

/* GD_GRPC_OK, or why Hello is not allowed. */
static enum gd_grpc_code require_proof(const struct v1_conn *conn, const Gradb__V1__Hello *hello,
                                       char *text, size_t size)
{
    const char *token = token_of(conn);
    if (hello->token[0] != '\0') {
        snprintf(text, size,
                 "the training process sent its token in plain text, as old agents do: update its "
                 "libgradb, and choose another token");
    } else if (token[0] == '\0' && !conn->is_local) {
        snprintf(text, size,
                 "a training process on another host, or of another user, needs a token: `set "
                 "token` in gradb, GRADB_TOKEN in its environment");
    } else if (token[0] != '\0' && conn->stage != V1_PROVEN) {
        snprintf(text, size, "the token is missing: " SAME_TOKEN);
    } else {
        return GD_GRPC_OK;
    }
    return GD_GRPC_UNAUTHENTICATED;
}

/* GD_GRPC_OK, or why the training process is refused. */
static enum gd_grpc_code check_hello(struct v1_conn *conn, const Gradb__V1__Hello *hello,
                                     char *text, size_t size)
{
    enum gd_grpc_code code = require_proof(conn, hello, text, size);
    if (code != GD_GRPC_OK) {
        return code;
    }
    if (hello->version_min > V1_VERSION || hello->version_max < V1_VERSION ||
        hello->version_min > hello->version_max) {
        snprintf(
            text, size,
            "the training process has libgradb for versions %u to %u of the protocol, and this "
            "gradb has version %u: install the same release of both",
            hello->version_min, hello->version_max, V1_VERSION);
        return GD_GRPC_FAILED_PRECONDITION;
    }
    if (hello->detached_from.len == V1_ID_BYTES &&
        memcmp(hello->detached_from.data, conn->service->id, V1_ID_BYTES) == 0) {
        snprintf(text, size, "this debugger has detached the process");
        return GD_GRPC_FAILED_PRECONDITION;
    }
    return GD_GRPC_OK;
}

static size_t max_message(const struct gd_v1_service *service)
{
    uint64_t max = service->debugger->settings.max_message;
    return max < V1_MAX_MESSAGE ? (size_t)max : V1_MAX_MESSAGE;
}

static int send_welcome(struct v1_conn *conn)
{
    static char name[] = "gradb " GRADB_VERSION;
    const struct gd_settings *settings = &conn->service->debugger->settings;
    struct v1_target *target = conn->target;
    Gradb__V1__Welcome m = GRADB__V1__WELCOME__INIT;
    m.version = V1_VERSION;
    m.debugger = name;
    m.debugger_id.data = conn->service->id;
    m.debugger_id.len = V1_ID_BYTES;
    m.session = (uint32_t)target->base.session->number;
    m.on_loss = settings->on_loss == GD_ON_LOSS_HOLD ? GRADB__V1__ON_LOSS__ON_LOSS_HOLD
                                                     : GRADB__V1__ON_LOSS__ON_LOSS_CONTINUE;
    m.keepalive = conn->keepalive = settings->keepalive;
    m.shm = target->shm != NULL;
    m.max_message = max_message(conn->service);
    m.max_tensor = settings->max_tensor;
    m.stop = true;
    m.graph_seen = true;
    return v1_conn_send(conn, &m.base);
}

static void on_hello(struct v1_conn *conn, const Gradb__V1__Hello *hello)
{
    char text[256];
    enum gd_grpc_code code = check_hello(conn, hello, text, sizeof(text));
    if (code != GD_GRPC_OK) {
        v1_conn_finish(conn, code, text);
        return;
    }
    struct gd_err err;
    if (v1_target_create(conn, hello, &err) != GD_OK) {
        v1_conn_finish(conn, GD_GRPC_RESOURCE_EXHAUSTED, err.text);
        return;
    }
    if (send_welcome(conn) != GD_OK) {
        give_up(conn, GD_GRPC_INTERNAL, "cannot send Welcome to the training process");
    }
}

/* ---- receiving ----------------------------------------------------------------------- */

/* Messages are unpacked into an arena that is freed right after. */
static void *unpack_alloc(void *arena, size_t size)
{
    return gd_arena_alloc(arena, size ? size : 1);
}

static void unpack_free(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

/* bytes that a message may take in memory, in addition to twice its length */
#define UNPACK_BASE    ((size_t)64 << 20)
#define UNPACK_FACTOR  2
#define MOST_ELEMENTS  ((size_t)1 << 20)
#define FIRST_BASE     ((size_t)1 << 20) /* the same before Welcome */
#define FIRST_ELEMENTS ((size_t)4096)

/* Limits the memory of one message: small until the peer is authenticated. */
static bool is_affordable(const struct v1_conn *conn, const uint8_t *data, size_t len)
{
    struct v1_budget budget = {.elements = conn->target ? MOST_ELEMENTS : FIRST_ELEMENTS,
                               .bytes =
                                   (conn->target ? UNPACK_BASE : FIRST_BASE) + UNPACK_FACTOR * len};
    return v1_budget_suffices(budget, &gradb__v1__from_trainer__descriptor, data, len);
}

static enum gd_grpc_code code_of(int status)
{
    switch (status) {
    case GD_ELIMIT:
    case GD_ENOMEM: return GD_GRPC_RESOURCE_EXHAUSTED;
    default: return GD_GRPC_INVALID_ARGUMENT;
    }
}

static void on_first(struct v1_conn *conn, const v1_from *message)
{
    switch (message->msg_case) {
    case GRADB__V1__FROM_TRAINER__MSG_AUTHENTICATE:
        on_authenticate(conn, message->authenticate);
        break;
    case GRADB__V1__FROM_TRAINER__MSG_PROOF: on_proof(conn, message->proof); break;
    case GRADB__V1__FROM_TRAINER__MSG_HELLO: on_hello(conn, message->hello); break;
    default: v1_conn_finish(conn, GD_GRPC_INVALID_ARGUMENT, "the first message must be a Hello");
    }
}

static void on_message(struct v1_conn *conn, const v1_from *message, size_t len)
{
    struct gd_err err = {0};
    if (!conn->target) {
        on_first(conn, message);
        return;
    }
    int rc = v1_target_message(conn->target, message, len, &err);
    if (rc != GD_OK) {
        char text[GD_ERR_TEXT_MAX];
        snprintf(text, sizeof(text), "%s", err.text);
        give_up(conn, code_of(rc), text);
    }
}

static void deliver_message(struct v1_conn *conn, const uint8_t *data, size_t len)
{
    if (len > (conn->target ? max_message(conn->service) : V1_MAX_FIRST)) {
        give_up(conn, GD_GRPC_RESOURCE_EXHAUSTED,
                conn->target
                    ? "the training process sent a message larger than Welcome.max_message"
                    : "the training process sent a message of more than 1 MiB before Welcome");
        return;
    }
    if (!is_affordable(conn, data, len)) {
        give_up(conn, GD_GRPC_RESOURCE_EXHAUSTED,
                "the training process sent a message with too many elements: send it in parts");
        return;
    }
    struct gd_arena arena;
    gd_arena_init(&arena, 2 * UNPACK_BASE + 4 * len);
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &arena};
    v1_from *message = gradb__v1__from_trainer__unpack(&allocator, len, data);
    if (message) {
        on_message(conn, message, len);
    } else {
        give_up(conn, GD_GRPC_INVALID_ARGUMENT,
                "the training process sent a message that is not a FromTrainer");
    }
    gd_arena_deinit(&arena);
}

/* ---- messages that wait while a graph is loaded -------------------------------------- */

static void keep_message(struct v1_conn *conn, const uint8_t *data, size_t len)
{
    struct v1_held *held = malloc(sizeof(*held) + len);
    if (!held) {
        give_up(conn, GD_GRPC_RESOURCE_EXHAUSTED, "out of memory for a message");
        return;
    }
    held->next = NULL;
    held->len = len;
    memcpy(held->data, data, len);
    *conn->held_end = held;
    conn->held_end = &held->next;
}

static struct v1_held *take_held(struct v1_conn *conn)
{
    struct v1_held *held = conn->held;
    conn->held = held->next;
    if (!conn->held) {
        conn->held_end = &conn->held;
    }
    return held;
}

static void half_close(struct v1_conn *conn)
{
    if (conn->holding || conn->draining) {
        conn->half_closed = true;
    } else if (!conn->finished) {
        give_up(conn, GD_GRPC_OK, "the training process closed the connection without a Goodbye");
    }
}

/* If one of them begins the next graph, the others continue to wait. */
static void drain_messages(struct v1_conn *conn)
{
    conn->draining = true;
    while (conn->held && !conn->finished && !conn->holding) {
        struct v1_held *held = take_held(conn);
        deliver_message(conn, held->data, held->len);
        free(held);
    }
    conn->draining = false;
    if (conn->closed) {
        free(conn);
    } else if (!conn->holding) {
        if (conn->wire->pause) {
            conn->wire->pause(conn->wire_ctx, false);
        }
        if (conn->half_closed) {
            half_close(conn);
        }
    }
}

void v1_conn_hold(struct v1_conn *conn, bool hold)
{
    conn->holding = hold;
    if (hold && conn->wire->pause) {
        conn->wire->pause(conn->wire_ctx, true);
    } else if (!hold && !conn->draining) {
        drain_messages(conn);
    }
}

void v1_conn_message(struct v1_conn *conn, const uint8_t *data, size_t len)
{
    if (conn->finished) {
        return;
    }
    conn->last_heard = ev_now(conn->service->loop);
    if (conn->holding || conn->draining) {
        keep_message(conn, data, len);
    } else {
        deliver_message(conn, data, len);
    }
}

/* ---- time ---------------------------------------------------------------------------- */

static void send_heartbeat(struct v1_conn *conn)
{
    Gradb__V1__Heartbeat m = GRADB__V1__HEARTBEAT__INIT;
    m.sequence = ++conn->beats;
    v1_conn_send(conn, &m.base);
}

static void check_time(struct v1_conn *conn, double now)
{
    double keepalive = conn->keepalive;
    if (conn->finished) {
        return;
    }
    if (!conn->target) {
        if (now - conn->since > HELLO_SECONDS) {
            v1_conn_finish(conn, GD_GRPC_DEADLINE_EXCEEDED, "no Hello arrived");
        }
        return;
    }
    if (conn->holding) {
        conn->last_heard = now; /* we are the ones not listening */
    }
    if (keepalive > 0 && now - conn->last_heard > LOST_BEATS * keepalive) {
        give_up(conn, GD_GRPC_UNAVAILABLE, "the training process stopped responding");
        return;
    }
    if (keepalive > 0 && now - conn->last_beat >= keepalive) {
        conn->last_beat = now;
        send_heartbeat(conn);
    }
    v1_target_flush(conn->target);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct gd_v1_service *service = timer->data;
    double now = ev_now(loop);
    for (struct v1_conn *conn = service->conns, *next = NULL; conn; conn = next) {
        next = conn->next;
        check_time(conn, now);
    }
}

/* ---- connections --------------------------------------------------------------------- */

/* Ticks at least twice per heartbeat. */
static void start_timer(struct gd_v1_service *service)
{
    double keepalive = service->debugger->settings.keepalive;
    double tick = keepalive > 0 && keepalive / 2 < TICK_SECONDS ? keepalive / 2 : TICK_SECONDS;
    if (!ev_is_active(&service->timer) || tick < service->timer.repeat) {
        service->timer.repeat = tick > TICK_LEAST ? tick : TICK_LEAST;
        ev_timer_again(service->loop, &service->timer);
    }
}

struct v1_conn *v1_conn_open(struct gd_v1_service *service, const struct v1_wire *wire,
                             void *wire_ctx, const char *peer, bool is_local)
{
    struct v1_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        return NULL;
    }
    conn->service = service;
    conn->wire = wire;
    conn->wire_ctx = wire_ctx;
    conn->is_local = is_local;
    snprintf(conn->peer, sizeof(conn->peer), "%s", peer ? peer : "");
    conn->since = conn->last_heard = conn->last_beat = ev_now(service->loop);
    conn->held_end = &conn->held;
    conn->next = service->conns;
    if (conn->next) {
        conn->next->link = &conn->next;
    }
    conn->link = &service->conns;
    service->conns = conn;
    start_timer(service);
    return conn;
}

void v1_conn_closed(struct v1_conn *conn)
{
    struct gd_v1_service *service = conn->service;
    struct v1_target *target = conn->target;
    conn->finished = true;
    conn->target = NULL;
    *conn->link = conn->next;
    if (conn->next) {
        conn->next->link = conn->link;
    }
    if (!service->conns) {
        ev_timer_stop(service->loop, &service->timer);
    }
    while (conn->held) {
        free(take_held(conn));
    }
    conn->closed = true;
    if (!conn->draining) {
        free(conn);
    }
    if (target) {
        v1_target_lost(target, "the connection broke");
    }
}

/* ---- gRPC ---------------------------------------------------------------------------- */

static int grpc_send(void *ctx, const void *data, size_t len)
{
    return gd_grpc_send(ctx, data, len);
}

static void grpc_finish(void *ctx, enum gd_grpc_code code, const char *text)
{
    gd_grpc_finish(ctx, code, text);
}

static void grpc_pause(void *ctx, bool pause)
{
    gd_grpc_conn_pause(gd_grpc_call_conn(ctx), pause);
}

static void grpc_trust(void *ctx)
{
    gd_grpc_conn_trust(gd_grpc_call_conn(ctx));
}

static const struct v1_wire grpc_wire = {
    .send = grpc_send, .finish = grpc_finish, .pause = grpc_pause, .trust = grpc_trust};

static void on_open(struct gd_grpc_call *call, void *ctx)
{
    struct gd_grpc_conn *peer = gd_grpc_call_conn(call);
    struct v1_conn *conn =
        v1_conn_open(ctx, &grpc_wire, call, gd_grpc_conn_peer(peer), gd_grpc_conn_is_local(peer));
    gd_grpc_call_set_data(call, conn);
    if (!conn) {
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, "out of memory");
    }
}

static void on_grpc_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct v1_conn *conn = gd_grpc_call_data(call);
    if (conn) {
        v1_conn_message(conn, data, len);
    }
}

static void on_half_close(struct gd_grpc_call *call)
{
    struct v1_conn *conn = gd_grpc_call_data(call);
    if (conn) {
        half_close(conn);
    }
}

static void on_closed(struct gd_grpc_call *call)
{
    struct v1_conn *conn = gd_grpc_call_data(call);
    if (conn) {
        gd_grpc_call_set_data(call, NULL);
        v1_conn_closed(conn);
    }
}

static const struct gd_grpc_method methods[] = {{
    .path = "/gradb.v1.Trainer/Attach",
    .client_streams = true,
    .open = on_open,
    .message = on_grpc_message,
    .half_close = on_half_close,
    .closed = on_closed,
}};

/* ---- the service --------------------------------------------------------------------- */

int v1_service_create(struct ev_loop *loop, struct gd_debugger *debugger,
                      struct gd_v1_service **ret, struct gd_err *err)
{
    struct gd_v1_service *service = calloc(1, sizeof(*service));
    if (!service) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the gradb.v1 service");
    }
    service->loop = loop;
    service->debugger = debugger;
    if (getrandom(service->id, sizeof(service->id), 0) != (ssize_t)sizeof(service->id)) {
        free(service);
        return gd_fail_errno(err, GD_EIO, "cannot get random bytes");
    }
    ev_timer_init(&service->timer, on_timer, TICK_SECONDS, TICK_SECONDS);
    service->timer.data = service;
    service->grpc = (struct gd_grpc_service){.methods = methods, .method_count = 1, .ctx = service};
    *ret = service;
    return GD_OK;
}

int gd_v1_service_create(struct ev_loop *loop, struct gd_debugger *debugger,
                         struct gd_grpc_server *server, struct gd_v1_service **ret,
                         struct gd_err *err)
{
    struct gd_v1_service *service = NULL;
    int rc = v1_service_create(loop, debugger, &service, err);
    if (rc == GD_OK) {
        rc = gd_grpc_server_add(server, &service->grpc, err);
    }
    if (rc != GD_OK) {
        gd_v1_service_destroy(service);
        return rc;
    }
    *ret = service;
    return GD_OK;
}

void gd_v1_service_destroy(struct gd_v1_service *service)
{
    if (service) {
        while (service->conns) {
            v1_conn_closed(service->conns);
        }
        ev_timer_stop(service->loop, &service->timer);
        free(service);
    }
}

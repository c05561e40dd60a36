// SPDX-License-Identifier: MIT
/*
 * What libgradb sends and receives, message by message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_digest.h"
#include "agent/agent_graph.h"
#include "agent/agent_io.h"
#include "agent/agent_mark.h"
#include "agent/agent_shm.h"
#include "agent/agent_source.h"
#include "agent/agent_watch.h"
#include "agent/agent_words.h"
#include "agent/line/agent_line.h"

#define STEP_SECONDS  1.0               /* between two heartbeats that only carry the step */
#define SMALL_SECONDS 0.1               /* scalars and log lines are collected for this long */
#define MAX_COSTS     ((size_t)8 << 20) /* bytes of a WatchCosts */
#define MAX_FIRST     ((size_t)4096)    /* bytes accepted before the link is up */

/* ---- sending ------------------------------------------------------------------------- */

static char version[] = "libgradb " GRADB_VERSION;

/* Our identity, which does not change during the life of the process. */
static void fill_hello(const struct agent *a, Gradb__V1__Hello *m)
{
    m->version_min = m->version_max = AGENT_PROTOCOL;
    m->framework = a->framework;
    m->framework_version = a->framework_version;
    m->agent = version;
    m->device = a->device;
    m->program = a->program;
    m->pid = getpid();
    m->rank = (uint32_t)a->rank;
    m->world_size = (uint32_t)a->world_size;
    m->local_rank = (uint32_t)a->local_rank;
    m->job = a->job;
}

static int say_hello(struct agent_io *io)
{
    struct agent *a = io->agent;
    Gradb__V1__Capability can[25] = {
        GRADB__V1__CAPABILITY__CAPABILITY_NEXT,
        GRADB__V1__CAPABILITY__CAPABILITY_FINISH,
        GRADB__V1__CAPABILITY__CAPABILITY_STATS,
        GRADB__V1__CAPABILITY__CAPABILITY_PREVIOUS,
        GRADB__V1__CAPABILITY__CAPABILITY_SLICE,
        GRADB__V1__CAPABILITY__CAPABILITY_WATCH,
        GRADB__V1__CAPABILITY__CAPABILITY_WATCH_EXACT,
        GRADB__V1__CAPABILITY__CAPABILITY_CHECKPOINT,
        GRADB__V1__CAPABILITY__CAPABILITY_STOP,
        GRADB__V1__CAPABILITY__CAPABILITY_HISTOGRAM,
        GRADB__V1__CAPABILITY__CAPABILITY_WATCH_COST,
        GRADB__V1__CAPABILITY__CAPABILITY_WATCH_RECORD,
        GRADB__V1__CAPABILITY__CAPABILITY_WATCH_SCALAR,
        GRADB__V1__CAPABILITY__CAPABILITY_DEAD_UNITS,
        GRADB__V1__CAPABILITY__CAPABILITY_STEP_END,
        GRADB__V1__CAPABILITY__CAPABILITY_CAPTURE_STEPS,
        GRADB__V1__CAPABILITY__CAPABILITY_EVENTS,
        GRADB__V1__CAPABILITY__CAPABILITY_EVENT_TERMS,
        agent_has_values(a) ? GRADB__V1__CAPABILITY__CAPABILITY_GROWS
                            : GRADB__V1__CAPABILITY__CAPABILITY_DIGEST,
        GRADB__V1__CAPABILITY__CAPABILITY_METRIC,
        GRADB__V1__CAPABILITY__CAPABILITY_METRIC_COUNTS,
        GRADB__V1__CAPABILITY__CAPABILITY_OWN_BINS,
    };
    size_t count = 0;
    while (can[count] != GRADB__V1__CAPABILITY__CAPABILITY_NONE) {
        count++;
    }
    if (a->source.command) {
        can[count++] = GRADB__V1__CAPABILITY__CAPABILITY_COMMAND;
    }
    if (a->source.lines) {
        can[count++] = GRADB__V1__CAPABILITY__CAPABILITY_LINES;
    }
    char host[128] = "";
    gethostname(host, sizeof(host) - 1);
    Gradb__V1__Hello m = GRADB__V1__HELLO__INIT;
    fill_hello(a, &m);
    m.host = host;
    m.capabilities = can;
    m.n_capabilities = count;
    m.step = PEEK(a->step);
    m.detached_from.data = io->detached_from;
    m.detached_from.len = io->detached_from_len;
    pthread_mutex_lock(&a->lock);
    m.stopped = a->stopped;
    pthread_mutex_unlock(&a->lock);
    Gradb__V1__ShmProbe probe;
    if (!io->shm) {
        io->shm = agent_shm_create();
    }
    if (io->shm && agent_shm_probe(io->shm, &probe)) {
        m.shm_probe = &probe;
    }
    return agent_wire_send(io, &m.base);
}

/* With a token, neither side sends more before the other has proven it. */
int agent_wire_greet(struct agent_io *io)
{
    Gradb__V1__Authenticate m = GRADB__V1__AUTHENTICATE__INIT;

    io->proof = PROOF_NONE;
    if (io->agent->token[0] == '\0') {
        return say_hello(io);
    }
    if (!gd_proof_nonce(io->nonces.trainer)) {
        return GD_EIO;
    }
    io->proof = PROOF_ASKED;
    m.nonce.data = io->nonces.trainer;
    m.nonce.len = GD_PROOF_BYTES;
    return agent_wire_send(io, &m.base);
}

static int say_goodbye(struct agent_io *io, Gradb__V1__Goodbye__Reason reason, const char *text)
{
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", text);
    Gradb__V1__Goodbye m = GRADB__V1__GOODBYE__INIT;
    m.reason = reason;
    m.text = copy;
    m.step = reason == GRADB__V1__GOODBYE__REASON__FAILED ? PEEK(io->agent->step)
                                                          : PEEK(io->agent->ended);
    int rc = agent_wire_send(io, &m.base);
    io->leaving = true;
    io->goodbye_at = agent_now();
    return rc != GD_OK ? rc : gd_grpc_client_half_close(io->call);
}

static void send_running(struct agent_io *io)
{
    Gradb__V1__Running m = GRADB__V1__RUNNING__INIT;
    m.step = PEEK(io->agent->step);
    agent_wire_send(io, &m.base);
}

static int send_stopped(struct agent_io *io)
{
    struct agent_stop *stop = &io->agent->stop;
    Gradb__V1__Stopped m = GRADB__V1__STOPPED__INIT;
    m.reason = stop->reason;
    m.step = stop->step;
    m.at_step_end = stop->at_step_end;
    m.node = stop->node;
    m.phase = (Gradb__V1__Phase)stop->phase;
    m.text = stop->text;
    m.watch_report = stop->report;
    Gradb__V1__LineStop line;
    m.line = agent_line_fill(io->agent, &line) ? &line : NULL;
    int rc = agent_wire_send(io, &m.base);
    if (m.line) {
        agent_line_unfill(&line);
    }
    return rc;
}

static int send_heartbeat(struct agent_io *io)
{
    Gradb__V1__Heartbeat m = GRADB__V1__HEARTBEAT__INIT;
    m.sequence = ++io->beats;
    m.step = io->beat_step = PEEK(io->agent->step);
    io->last_beat = agent_now();
    return agent_wire_send(io, &m.base);
}

static int send_forgotten(struct agent_io *io)
{
    uint32_t segments[64];
    Gradb__V1__ShmForget m = GRADB__V1__SHM_FORGET__INIT;
    m.segments = segments;
    m.n_segments = io->shm ? agent_shm_forgotten(io->shm, segments, 64) : 0;
    if (m.n_segments == 0) {
        return GD_OK;
    }
    return agent_wire_send(io, &m.base);
}

/* The number of queued scalars that were reported in steps up to this one. */
static size_t scalars_up_to(const struct agent *a, int64_t step)
{
    size_t count = 0;
    while (count < a->scalar_count && a->scalars[count].when <= step) {
        count++;
    }
    return count;
}

/* Sends the first `count` of them. With the lock. */
static int send_scalars(struct agent_io *io, size_t count)
{
    struct agent *a = io->agent;
    Gradb__V1__Scalar *values = calloc(count, sizeof(*values));
    Gradb__V1__Scalar **list = calloc(count, sizeof(Gradb__V1__Scalar *));
    int rc = GD_ENOMEM;
    if (values && list) {
        for (size_t i = 0; i < count; i++) {
            gradb__v1__scalar__init(&values[i]);
            values[i].name = a->scalars[i].name;
            values[i].value = a->scalars[i].value;
            values[i].step = a->scalars[i].step;
            values[i].late = a->scalars[i].late;
            list[i] = &values[i];
        }
        Gradb__V1__Scalars m = GRADB__V1__SCALARS__INIT;
        m.values = list;
        m.n_values = count;
        rc = agent_wire_send(io, &m.base);
        a->scalar_count -= count;
        memmove(a->scalars, a->scalars + count, a->scalar_count * sizeof(*a->scalars));
    }
    free(list);
    free(values);
    return rc;
}

/* The oldest ones. With the lock. */
static int send_times(struct agent_io *io, size_t count)
{
    struct agent *a = io->agent;
    int rc = GD_OK;
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        Gradb__V1__Timing m = GRADB__V1__TIMING__INIT;
        agent_fill_timing(&m, &a->times[i]);
        rc = agent_wire_send(io, &m.base);
    }
    a->times_count -= count;
    memmove(a->times, a->times + count, a->times_count * sizeof(*a->times));
    return rc;
}

/* How many times are of steps up to this one: the debugger receives all in the order of steps. */
static size_t times_up_to(const struct agent *a, int64_t step)
{
    size_t count = 0;
    while (count < a->times_count && a->times[count].step <= step) {
        count++;
    }
    return count;
}

/* With the lock. */
static int send_log(struct agent_io *io)
{
    struct agent *a = io->agent;
    Gradb__V1__Log m = GRADB__V1__LOG__INIT;
    m.lines = a->log;
    m.n_lines = a->log_count;
    m.dropped = a->log_dropped;
    int rc = agent_wire_send(io, &m.base);
    for (size_t i = 0; i < a->log_count; i++) {
        free(a->log[i]);
    }
    a->log_count = 0;
    a->log_dropped = 0;
    return rc;
}

/* With the lock. The scalars of many short steps are sent together, but never after a stop or a
 * report of watched values. */
static int pump_small(struct agent_io *io)
{
    struct agent *a = io->agent;
    bool now = (a->stopped && !a->stop_sent) || a->closing;
    if (!now && agent_now() - io->last_small < SMALL_SECONDS) {
        return GD_OK;
    }
    int rc = GD_OK;
    if (a->scalar_count > 0) {
        rc = send_scalars(io, a->scalar_count);
    }
    if (rc == GD_OK && a->times_count > 0) {
        rc = send_times(io, a->times_count);
    }
    if (rc == GD_OK && a->log_count > 0) {
        rc = send_log(io);
    }
    io->last_small = agent_now();
    return rc;
}

/* With the lock: graph, reports, scalars and logs, then the stop that they belong to. */
static int pump_shared(struct agent_io *io, bool *more)
{
    struct agent *a = io->agent;
    while (gd_grpc_client_queued(io->call) < AGENT_QUEUE) {
        unsigned char *data = NULL;
        size_t len = 0;
        int rc = agent_graph_chunk(a, &io->graph, &data, &len);
        if (rc == GD_OK && data) {
            rc = gd_grpc_client_send(io->call, data, len);
            free(data);
        } else if (rc == GD_OK && a->reports && scalars_up_to(a, a->reports->step) > 0) {
            /* the evaluation of the report may use them, but no later ones */
            rc = send_scalars(io, scalars_up_to(a, a->reports->step));
        } else if (rc == GD_OK && a->reports && times_up_to(a, a->reports->step) > 0) {
            rc = send_times(io, times_up_to(a, a->reports->step));
        } else if (rc == GD_OK && a->reports) {
            struct agent_packet *packet = a->reports;
            rc = gd_grpc_client_send(io->call, packet->data, packet->len);
            a->reports = packet->next;
            a->reports_bytes -= packet->len;
            if (!a->reports) {
                a->reports_end = &a->reports;
            }
            free(packet);
        } else if (rc == GD_OK) {
            rc = pump_small(io);
            if (rc == GD_OK && a->stopped && !a->stop_sent) {
                a->stop_sent = true;
                rc = send_stopped(io);
            }
            return rc;
        }
        if (rc != GD_OK) {
            return rc;
        }
    }
    *more = true;
    return GD_OK;
}

/* The debugger shows the progress of a run that sends nothing else. */
static bool is_beat_due(const struct agent_io *io)
{
    double since = agent_now() - io->last_beat;
    bool moved = PEEK(io->agent->step) != io->beat_step;
    return io->keepalive > 0 && (since >= io->keepalive || (moved && since >= STEP_SECONDS));
}

int agent_wire_pump(struct agent_io *io, bool *more)
{
    struct agent *a = io->agent;
    *more = false;
    if (!io->call || io->leaving) {
        return GD_OK;
    }
    pthread_mutex_lock(&a->lock);
    bool up = a->link == LINK_UP;
    if (up) {
        agent_tell_late(a);
    }
    int rc = up ? pump_shared(io, more) : GD_OK;
    bool stopped = up && a->stopped && a->stop_sent;
    bool bye = up && a->closing && !*more;
    char why[sizeof(a->close_text)];
    memcpy(why, a->close_text, sizeof(why));
    pthread_mutex_unlock(&a->lock);
    if (!up || rc != GD_OK) {
        return rc;
    }
    if (bye) {
        return say_goodbye(
            io, why[0] ? GRADB__V1__GOODBYE__REASON__FAILED : GRADB__V1__GOODBYE__REASON__FINISHED,
            why);
    }
    if (is_beat_due(io)) {
        rc = send_heartbeat(io);
    }
    while (stopped && rc == GD_OK) {
        if (gd_grpc_client_queued(io->call) >= AGENT_QUEUE) {
            *more = true;
            break;
        }
        if (!agent_values_pump(io, &rc)) {
            break;
        }
        if (io->digest.active) { /* incoming messages and heartbeats get their turn */
            *more = true;
            break;
        }
    }
    return rc != GD_OK ? rc : send_forgotten(io);
}

/* ---- receiving ----------------------------------------------------------------------- */

static void request_free(struct agent_request *request)
{
    gradb__v1__to_trainer__free_unpacked(request->message, NULL);
    free(request);
}

void agent_wire_drop_requests(struct agent_io *io)
{
    while (io->requests) {
        struct agent_request *next = io->requests->next;
        request_free(io->requests);
        io->requests = next;
    }
    io->requests_end = &io->requests;
    io->request_count = 0;
    io->transfer.active = false;
    agent_digest_end(io);
    uint64_t ignored;
    agent_ask_drop(io->agent, &ignored);
}

/* The training has resumed: unanswered requests can no longer be answered. */
static void refuse_all(struct agent_io *io)
{
    static const char text[] = "the training resumed before this was answered";
    int running = CODE(RUNNING);
    uint64_t asked;
    if (agent_ask_drop(io->agent, &asked)) {
        agent_values_refuse(io, asked, running, text);
    } else if (io->transfer.active) {
        agent_values_refuse(io, io->transfer.request, running, text);
    } else if (io->digest.active) {
        agent_values_refuse(io, io->digest.request, running, text);
    }
    for (struct agent_request *r = io->requests; r; r = r->next) {
        agent_values_refuse(io, agent_request_id(r->message), running, text);
    }
    agent_wire_drop_requests(io);
}

/* With the lock. */
static void let_go(struct agent *a)
{
    agent_arm(a);
    a->stopped = false;
    pthread_cond_broadcast(&a->go);
}

/* Refuses this debugger: ends the call and thereby the connection. */
static void turn_away(struct agent_io *io, const char *why)
{
    snprintf(io->refusal, sizeof(io->refusal), "%s", why);
    agent_refused(io->agent, why);
    gd_grpc_client_cancel(io->call);
}

static void on_challenge(struct agent_io *io, const Gradb__V1__Challenge *m)
{
    uint8_t mac[GD_PROOF_BYTES];
    Gradb__V1__Proof proof = GRADB__V1__PROOF__INIT;
    if (io->proof != PROOF_ASKED || m->nonce.len != GD_PROOF_BYTES) {
        gd_grpc_client_cancel(io->call);
    } else if (m->token) {
        memcpy(io->nonces.debugger, m->nonce.data, GD_PROOF_BYTES);
        gd_proof_make(&io->nonces, GD_PROOF_TRAINER, io->agent->token, mac);
        proof.mac.data = mac;
        proof.mac.len = sizeof(mac);
        io->proof = PROOF_GIVEN;
        agent_wire_send(io, &proof.base);
    } else if (io->owner.kind == GD_OWNER_OURS) { /* its uid is sufficient proof */
        io->proof = PROOF_NONE;
        say_hello(io);
    } else {
        turn_away(io, "the debugger there has no token: enter `set token` in gradb");
    }
}

static void on_proof(struct agent_io *io, const Gradb__V1__Proof *m)
{
    if (io->proof != PROOF_GIVEN || !gd_proof_check(&io->nonces, GD_PROOF_DEBUGGER,
                                                    io->agent->token, m->mac.data, m->mac.len)) {
        turn_away(io, "the debugger there did not prove that it knows the token");
        return;
    }
    io->proof = PROOF_NONE;
    say_hello(io);
}

/* With the lock. At the first stop the program reports who stopped it, once per debugger: it is not
 * the debugger that started the program, and may not be the one its user expects. */
static void prepare_notice(struct agent_io *io, const Gradb__V1__Welcome *m)
{
    struct agent *a = io->agent;
    char who[80] = "";
    bool known = m->debugger_id.len > 0 && m->debugger_id.len == io->debugger_id_len &&
                 memcmp(m->debugger_id.data, io->debugger_id, io->debugger_id_len) == 0;
    if (known || a->started_by_gradb) {
        return;
    }
    if (io->owner.pid > 0) {
        snprintf(who, sizeof(who), " (pid %ld, uid %ld)", io->owner.pid, io->owner.uid);
    } else if (io->owner.uid >= 0) {
        snprintf(who, sizeof(who), " (uid %ld)", io->owner.uid);
    }
    snprintf(a->stopped_by, sizeof(a->stopped_by), "%.230s%s", a->address, who);
}

static void on_welcome(struct agent_io *io, const Gradb__V1__Welcome *m)
{
    struct agent *a = io->agent;
    pthread_mutex_lock(&a->lock);
    if (a->link != LINK_HELLO || io->proof != PROOF_NONE || m->version != AGENT_PROTOCOL) {
        if (a->link == LINK_HELLO && io->proof == PROOF_NONE) {
            agent_set_error(a, "the debugger selected gradb.v1 version %u, but this is version %u",
                            m->version, AGENT_PROTOCOL);
            gd_grpc_client_cancel(io->call);
        }
        pthread_mutex_unlock(&a->lock);
        return;
    }
    a->link = LINK_UP;
    a->sync.supported = m->graph_seen;
    a->sync.nodes = 0;
    a->sync.late = 0;
    a->hold = m->on_loss == GRADB__V1__ON_LOSS__ON_LOSS_HOLD;
    a->hold_pending = false;
    a->stop_pending = m->stop && !a->stopped;
    a->stop_sent = false;
    a->error[0] = '\0';
    prepare_notice(io, m);
    POKE(a->connected, 1);
    agent_arm(a);
    pthread_cond_broadcast(&a->go);
    pthread_mutex_unlock(&a->lock);
    io->keepalive = m->keepalive > 0 && m->keepalive < 1e6 ? m->keepalive : 0;
    io->max_tensor = m->max_tensor;
    io->debugger_id_len = m->debugger_id.len <= sizeof(io->debugger_id) ? m->debugger_id.len : 0;
    if (io->debugger_id_len) {
        memcpy(io->debugger_id, m->debugger_id.data, io->debugger_id_len);
    }
    io->shm_ok = m->shm && io->shm;
    if (io->shm) {
        agent_shm_probe_done(io->shm);
    }
    io->graph = (struct agent_graph_cursor){.next_node = 1};
    io->last_beat = agent_now();
}

static void on_run(struct agent_io *io, const Gradb__V1__Run *m)
{
    struct agent *a = io->agent;
    pthread_mutex_lock(&a->lock);
    bool may = a->stopped && a->stop_sent;
    pthread_mutex_unlock(&a->lock);
    if (!may) {
        return;
    }
    refuse_all(io);
    send_running(io);
    pthread_mutex_lock(&a->lock);
    a->run = (struct agent_run){.left = m->count > 0 ? m->count : 1, .node = m->node};
    switch (m->kind) {
    case GRADB__V1__RUN__KIND__STEP:
        a->run.kind = RUN_STEP;
        a->run.due = PEEK(a->begun) - (PEEK(a->in_step) ? 1 : 0) + (uint64_t)a->run.left;
        break;
    case GRADB__V1__RUN__KIND__NEXT: a->run.kind = RUN_NEXT; break;
    case GRADB__V1__RUN__KIND__TO_NODE: a->run.kind = RUN_TO; break;
    case GRADB__V1__RUN__KIND__FINISH:
        a->run.kind = RUN_FINISH;
        a->run.phase = a->stop.phase;
        break;
    default: a->run.kind = RUN_FREE; break;
    }
    let_go(a);
    pthread_mutex_unlock(&a->lock);
}

static void on_request(struct agent_io *io, agent_to *m)
{
    struct agent *a = io->agent;
    pthread_mutex_lock(&a->lock);
    bool stopped = a->stopped && a->stop_sent;
    pthread_mutex_unlock(&a->lock);
    struct agent_request *request = NULL;
    if (!stopped) {
        agent_values_refuse(io, agent_request_id(m), CODE(RUNNING),
                            "the training is running: interrupt it first");
    } else if (io->request_count >= AGENT_MAX_REQUESTS) {
        agent_values_refuse(io, agent_request_id(m), CODE(TOO_LARGE),
                            "too many requests are waiting");
    } else if (!(request = calloc(1, sizeof(*request)))) {
        agent_values_refuse(io, agent_request_id(m), CODE(NO_MEMORY),
                            "out of memory in the training process");
    } else {
        request->message = m;
        *io->requests_end = request;
        io->requests_end = &request->next;
        io->request_count++;
        return;
    }
    gradb__v1__to_trainer__free_unpacked(m, NULL);
}

static void on_cancel(struct agent_io *io, uint64_t id)
{
    if (io->transfer.active && io->transfer.request == id) {
        io->transfer.active = false;
    }
    if (io->digest.active && io->digest.request == id) {
        agent_digest_end(io);
    }
    agent_ask_cancel(io->agent, id);
    struct agent_request **p = &io->requests;
    while (*p) {
        struct agent_request *request = *p;
        if (agent_request_id(request->message) == id) {
            *p = request->next;
            request_free(request);
            io->request_count--;
        } else {
            p = &request->next;
        }
    }
    io->requests_end = p;
}

static void on_cost_request(struct agent_io *io, uint64_t request)
{
    struct agent *a = io->agent;
    Gradb__V1__WatchCosts m = GRADB__V1__WATCH_COSTS__INIT;
    m.request = request;
    pthread_mutex_lock(&a->lock);
    bool ok = agent_watch_costs(a, &m);
    pthread_mutex_unlock(&a->lock);
    if (!ok) {
        agent_values_refuse(io, request, CODE(NO_MEMORY), "out of memory in the training process");
        return;
    }
    if (gradb__v1__watch_costs__get_packed_size(&m) > MAX_COSTS) {
        agent_values_refuse(io, request, CODE(TOO_LARGE),
                            "the costs of this many items do not fit into one message");
    } else {
        agent_wire_send(io, &m.base);
    }
    agent_watch_costs_free(&m);
}

static void on_stop_training(struct agent_io *io, const Gradb__V1__StopTraining *m)
{
    struct agent *a = io->agent;
    if (m->stays) {
        POKE(a->wants_stop, 1);
        return;
    }
    refuse_all(io);
    pthread_mutex_lock(&a->lock);
    bool stood = a->stopped && a->stop_sent;
    pthread_mutex_unlock(&a->lock);
    if (stood) {
        send_running(io);
    }
    pthread_mutex_lock(&a->lock);
    POKE(a->wants_stop, 1);
    agent_disarm(a);
    let_go(a);
    pthread_mutex_unlock(&a->lock);
}

static void on_detach(struct agent_io *io)
{
    struct agent *a = io->agent;
    memcpy(io->detached_from, io->debugger_id, io->debugger_id_len);
    io->detached_from_len = io->debugger_id_len;
    io->backoff = 60; /* no hurry to find the next debugger */
    agent_wire_drop_requests(io);
    pthread_mutex_lock(&a->lock);
    POKE(a->connected, 0);
    a->link = LINK_DOWN;
    a->hold = a->hold_pending = false;
    agent_disarm(a);
    let_go(a);
    pthread_mutex_unlock(&a->lock);
    say_goodbye(io, GRADB__V1__GOODBYE__REASON__DETACHED, "detached by the debugger");
}

static void on_shared_memory(struct agent_io *io, const agent_to *m)
{
    if (io->shm && m->msg_case == GRADB__V1__TO_TRAINER__MSG_SHM_MAPPED) {
        agent_shm_mapped(io->shm, m->shm_mapped->segment);
    } else if (io->shm) {
        for (size_t i = 0; i < m->shm_release->n_segments; i++) {
            agent_shm_release(io->shm, m->shm_release->segments[i]);
        }
    }
}

/* True: took ownership of the message. */
static bool dispatch_message(struct agent_io *io, agent_to *m)
{
    struct agent *a = io->agent;
    switch (m->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_FETCH:
    case GRADB__V1__TO_TRAINER__MSG_STATS:
    case GRADB__V1__TO_TRAINER__MSG_COMMAND: on_request(io, m); return true;
    case GRADB__V1__TO_TRAINER__MSG_WATCH_COST:
        on_cost_request(io, m->watch_cost->request);
        return false;
    case GRADB__V1__TO_TRAINER__MSG_RUN: on_run(io, m->run); return false;
    case GRADB__V1__TO_TRAINER__MSG_CANCEL: on_cancel(io, m->cancel->request); return false;
    case GRADB__V1__TO_TRAINER__MSG_STOP_TRAINING:
        on_stop_training(io, m->stop_training);
        return false;
    case GRADB__V1__TO_TRAINER__MSG_DETACH: on_detach(io); return false;
    case GRADB__V1__TO_TRAINER__MSG_SHM_MAPPED:
    case GRADB__V1__TO_TRAINER__MSG_SHM_RELEASE: on_shared_memory(io, m); return false;
    default: {
        pthread_mutex_lock(&a->lock);
        bool kept = agent_control(a, m);
        pthread_mutex_unlock(&a->lock);
        return kept;
    }
    }
}

static void on_message(struct gd_grpc_client_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct agent_io *io = ctx;
    io->last_heard = agent_now();
    if (io->leaving) {
        return;
    }
    pthread_mutex_lock(&io->agent->lock);
    bool up = io->agent->link == LINK_UP;
    pthread_mutex_unlock(&io->agent->lock);
    /* An empty list element takes a hundred bytes of memory: an unauthenticated peer gets little of
     * ours. */
    agent_to *m = up || len <= MAX_FIRST ? gradb__v1__to_trainer__unpack(NULL, len, data) : NULL;
    if (!m && !up) {
        turn_away(io, "it does not speak gradb.v1");
        return;
    }
    if (!m) {
        gd_grpc_client_cancel(call); /* invalid message or out of memory: start over */
        return;
    }
    bool kept = false;
    if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_WELCOME) {
        on_welcome(io, m->welcome);
    } else if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_CHALLENGE) {
        on_challenge(io, m->challenge);
    } else if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_PROOF) {
        on_proof(io, m->proof);
    } else if (up) {
        kept = dispatch_message(io, m);
    }
    if (!kept) {
        gradb__v1__to_trainer__free_unpacked(m, NULL);
    }
}

static void on_closed(struct gd_grpc_client_call *call, void *ctx, enum gd_grpc_code code,
                      const char *text)
{
    (void)call;
    struct agent_io *io = ctx;
    io->call = NULL;
    io->closed = true;
    if (code == GD_GRPC_INVALID_ARGUMENT || code == GD_GRPC_RESOURCE_EXHAUSTED) {
        /* It does not accept our identity, so the next attempt would end in the same way: this
         * debugger is not for us. */
        memcpy(io->detached_from, io->debugger_id, io->debugger_id_len);
        io->detached_from_len = io->debugger_id_len;
    }
    if (io->refusal[0] != '\0') {
        snprintf(io->close_text, sizeof(io->close_text), "%s", io->refusal);
        return;
    }
    if (code == GD_GRPC_UNAUTHENTICATED) {
        agent_refused(io->agent, "the debugger there requires its token: set GRADB_TOKEN to the "
                                 "output of `show token` there");
    } else if (io->proof == PROOF_ASKED && code == GD_GRPC_INVALID_ARGUMENT) {
        text = "the debugger cannot prove a token: update gradb";
    }
    snprintf(io->close_text, sizeof(io->close_text), "%.150s (gRPC status %d)",
             text[0] ? text : "the debugger closed the connection", (int)code);
}

const struct gd_grpc_client_ops agent_wire_ops = {.message = on_message, .closed = on_closed};

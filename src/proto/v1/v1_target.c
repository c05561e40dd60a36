// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/v1/v1_impl.h"

#define CAN(name) GRADB__V1__CAPABILITY__CAPABILITY_##name

static struct v1_target *target_of(struct gd_target *base)
{
    return (struct v1_target *)base;
}

/* ---- operations ---------------------------------------------------------------------- */

static int run_message(struct v1_target *t, const struct gd_run *run, Gradb__V1__Run *m,
                       struct gd_err *err)
{
    static const Gradb__V1__Run__Kind kinds[] = {
        [GD_RUN_CONTINUE] = GRADB__V1__RUN__KIND__CONTINUE,
        [GD_RUN_STEP] = GRADB__V1__RUN__KIND__STEP,
        [GD_RUN_NEXT] = GRADB__V1__RUN__KIND__NEXT,
        [GD_RUN_TO_NODE] = GRADB__V1__RUN__KIND__TO_NODE,
        [GD_RUN_FINISH] = GRADB__V1__RUN__KIND__FINISH,
    };
    bool nodes = run->kind == GD_RUN_NEXT || run->kind == GD_RUN_TO_NODE;
    if (run->kind == GD_RUN_RECHECK) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this training process does not evaluate watchpoints: gradb does");
    }
    if ((nodes && !v1_target_can(t, CAN(NEXT))) ||
        (run->kind == GD_RUN_FINISH && !v1_target_can(t, CAN(FINISH)))) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process cannot stop inside a step");
    }
    m->kind = kinds[run->kind];
    m->count = run->count;
    if (run->kind == GD_RUN_TO_NODE) {
        m->node = run->node == GD_NO_NODE ? 0 : v1_target_wire(t, run->node);
        if (m->node == 0) {
            return gd_fail(err, GD_ENOTFOUND, "the training process has no node '%.200s'",
                           run->name ? run->name : "");
        }
    }
    return GD_OK;
}

static int resume_run(struct gd_target *base, const struct gd_run *run, struct gd_err *err)
{
    Gradb__V1__Run m = GRADB__V1__RUN__INIT;
    int rc = run_message(target_of(base), run, &m, err);
    if (rc != GD_OK) {
        return rc;
    }
    return v1_target_send(target_of(base), &m.base, err);
}

static int interrupt_run(struct gd_target *base, struct gd_err *err)
{
    Gradb__V1__Interrupt m = GRADB__V1__INTERRUPT__INIT;
    return v1_target_send(target_of(base), &m.base, err);
}

static int interrupt_at(struct gd_target *base, int64_t step, struct gd_err *err)
{
    Gradb__V1__Interrupt m = GRADB__V1__INTERRUPT__INIT;
    m.step = step > 0 ? step : -1;
    return v1_target_send(target_of(base), &m.base, err);
}

/* Sends a message about nodes after filling its list of them; nodes unknown to the training process
 * are left out. */
static int send_nodes(struct v1_target *t, const gd_node_id *nodes, size_t count,
                      const ProtobufCMessage *message, uint32_t **list, size_t *list_count,
                      struct gd_err *err)
{
    uint32_t *wire = malloc((count + 1) * sizeof(*wire));
    if (!wire) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu nodes", count);
    }
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = v1_target_wire(t, nodes[i]);
        if (number) {
            wire[n++] = number;
        }
    }
    *list = wire;
    *list_count = n;
    int rc = v1_target_send(t, message, err);
    free(wire);
    return rc;
}

static int set_breakpoints(struct gd_target *base, const gd_node_id *nodes, size_t count,
                           struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    Gradb__V1__Breakpoints m = GRADB__V1__BREAKPOINTS__INIT;
    if (count > 0 && !v1_target_can(t, CAN(NEXT))) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process cannot stop inside a step");
    }
    return send_nodes(t, nodes, count, &m.base, &m.nodes, &m.n_nodes, err);
}

/* Sent only if changed: the engine repeats it for each piece of the graph. */
static int expect_nodes(struct gd_target *base, const struct gd_expected *expected,
                        struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    Gradb__V1__Expected m = GRADB__V1__EXPECTED__INIT;
    m.parts = (char **)expected->parts;
    m.n_parts = expected->count;
    m.not_finite = expected->not_finite;
    m.at_end = expected->at_end;
    size_t size = gradb__v1__expected__get_packed_size(&m);
    uint8_t *packed = malloc(size + 1);
    if (!packed) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the expected nodes");
    }
    gradb__v1__expected__pack(&m, packed);
    if (size == t->expected_size && (size == 0 || memcmp(packed, t->expected, size) == 0)) {
        free(packed);
        return GD_OK;
    }
    int rc = v1_target_send(t, &m.base, err);
    if (rc != GD_OK) {
        free(packed);
        return rc;
    }
    free(t->expected);
    t->expected = packed;
    t->expected_size = size;
    return GD_OK;
}

static int keep_previous(struct gd_target *base, const gd_node_id *nodes, size_t count,
                         struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    Gradb__V1__KeepPrevious m = GRADB__V1__KEEP_PREVIOUS__INIT;
    if (!v1_target_can(t, CAN(PREVIOUS))) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process cannot keep previous values");
    }
    return send_nodes(t, nodes, count, &m.base, &m.nodes, &m.n_nodes, err);
}

/* A training process that understands steps and "all" needs no complete list. */
static int capture_values(struct gd_target *base, const struct gd_capture *capture,
                          struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    Gradb__V1__Capture m = GRADB__V1__CAPTURE__INIT;
    bool knows = v1_target_can(t, CAN(CAPTURE_STEPS));
    size_t count = capture && !(knows && capture->all) ? capture->count : 0;
    if (capture && knows) {
        m.all = capture->all;
        m.first_step = capture->first_step;
        m.last_step = capture->last_step;
        m.max_bytes = capture->max_bytes;
    }
    return send_nodes(t, capture ? capture->nodes : NULL, count, &m.base, &m.nodes, &m.n_nodes,
                      err);
}

static int request_checkpoint(struct gd_target *base, struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    if (!v1_target_can(t, CAN(CHECKPOINT))) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this training process cannot save checkpoints on request");
    }
    Gradb__V1__CheckpointRequest m = GRADB__V1__CHECKPOINT_REQUEST__INIT;
    m.request = ++t->next_request;
    return v1_target_send(t, &m.base, err);
}

static void drop_requests(struct v1_target *t, int code, const char *why)
{
    v1_value_drop_all(t, code, why);
    v1_watch_drop_all(t, code, why);
}

static int take_graphs(struct gd_target *base, struct gd_err *err)
{
    return v1_ingest_again(target_of(base), err);
}

/* From here on the training process is on its own: the call ends cleanly. */
static int detach_target(struct gd_target *base, struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    Gradb__V1__Detach m = GRADB__V1__DETACH__INIT;
    int rc = v1_target_send(t, &m.base, err);
    if (rc != GD_OK) {
        return rc;
    }
    v1_ingest_finish(t);
    struct v1_conn *conn = t->conn;
    t->conn = NULL;
    conn->target = NULL;
    v1_conn_finish(conn, GD_GRPC_OK, "detached");
    drop_requests(t, GD_ESTATE, "the training process was detached");
    gd_session_on_finished(base->session, "detached");
    return GD_OK;
}

static int ask_to_end(struct gd_target *base, bool stays, struct gd_err *err)
{
    struct v1_target *t = target_of(base);
    if (!v1_target_can(t, CAN(STOP))) {
        return gd_fail(err, GD_EUNSUPPORTED, "this training process cannot be asked to end");
    }
    Gradb__V1__StopTraining m = GRADB__V1__STOP_TRAINING__INIT;
    m.stays = stays;
    return v1_target_send(t, &m.base, err);
}

static int kill_training(struct gd_target *base, struct gd_err *err)
{
    return ask_to_end(base, false, err);
}

static int end_training(struct gd_target *base, struct gd_err *err)
{
    return ask_to_end(base, true, err);
}

static void describe_target(struct gd_target *base,
                            void (*fact)(void *ctx, const char *name, const char *value), void *ctx)
{
    struct v1_target *t = target_of(base);
    char text[128];
    snprintf(text, sizeof(text), "gradb.v1, version %u", V1_VERSION);
    fact(ctx, "protocol", text);
    fact(ctx, "agent", t->agent);
    if (base->session && base->session->peer.job[0]) {
        fact(ctx, "job", base->session->peer.job);
    }
    if (!t->shm) {
        fact(ctx, "tensors", "through the socket");
        return;
    }
    size_t segments = 0, bytes = 0;
    v1_shm_usage(t->shm, &segments, &bytes);
    snprintf(text, sizeof(text), "through shared memory (%zu segments, %zu bytes)", segments,
             bytes);
    fact(ctx, "tensors", text);
}

static void destroy_target(struct gd_target *base)
{
    struct v1_target *t = target_of(base);
    struct v1_conn *conn = t->conn;
    t->conn = NULL;
    if (conn) {
        conn->target = NULL;
        v1_conn_finish(conn, GD_GRPC_UNAVAILABLE, "the debugger ended the session");
    }
    drop_requests(t, GD_ELOST, "the training process is gone");
    v1_graph_free(t);
    v1_shm_destroy(t->shm);
    free(t->expected);
    free(t);
}

static const struct gd_target_ops v1_ops = {
    .kind = "gradb.v1",
    .resume = resume_run,
    .interrupt = interrupt_run,
    .interrupt_at = interrupt_at,
    .command = v1_value_command,
    .set_breakpoints = set_breakpoints,
    .set_events = v1_event_wishes,
    .event_verdict = v1_event_verdict,
    .set_lines = v1_line_breaks,
    .expect = expect_nodes,
    .fetch = v1_value_fetch,
    .stats = v1_value_stats,
    .keep_previous = keep_previous,
    .capture = capture_values,
    .watch_plan = v1_watch_plan,
    .watch_costs = v1_watch_costs,
    .checkpoint = request_checkpoint,
    .take_graphs = take_graphs,
    .detach = detach_target,
    .kill = kill_training,
    .end_training = end_training,
    .describe = describe_target,
    .destroy = destroy_target,
};

/* ---- making -------------------------------------------------------------------------- */

static unsigned engine_capabilities(const struct v1_target *t)
{
    unsigned can = GD_CAN_STEP | GD_CAN_INTERRUPT | GD_CAN_FETCH | GD_CAN_DETACH;
    can |= v1_target_can(t, CAN(NEXT)) ? GD_CAN_NEXT : 0U;
    can |= v1_target_can(t, CAN(FINISH)) ? GD_CAN_FINISH : 0U;
    can |= v1_target_can(t, CAN(STATS)) ? GD_CAN_STATS : 0U;
    can |= v1_target_can(t, CAN(PREVIOUS)) ? GD_CAN_PREVIOUS : 0U;
    can |= v1_target_can(t, CAN(CHECKPOINT)) ? GD_CAN_CHECKPOINT : 0U;
    can |= v1_target_can(t, CAN(STOP)) ? GD_CAN_KILL : 0U;
    can |= v1_target_can(t, CAN(WATCH)) ? GD_CAN_WATCH : 0U;
    can |= v1_target_can(t, CAN(WATCH_EXACT)) ? GD_CAN_WATCH_EXACT : 0U;
    can |= v1_target_can(t, CAN(WATCH_SCALAR)) ? GD_CAN_WATCH_SCALAR : 0U;
    can |= v1_target_can(t, CAN(OWN_BINS)) ? GD_CAN_WATCH_BINS : 0U;
    can |= v1_target_can(t, CAN(COMMAND)) ? GD_CAN_COMMAND : 0U;
    can |= v1_target_can(t, CAN(METRIC)) ? GD_CAN_METRIC : 0U;
    can |= v1_target_can(t, CAN(METRIC_COUNTS)) ? GD_CAN_METRIC_RANKS : 0U;
    can |= v1_target_can(t, CAN(STEP_END)) ? GD_CAN_INTERRUPT_AT : 0U;
    can |= v1_target_can(t, CAN(EVENTS)) ? GD_CAN_EVENTS : 0U;
    can |= v1_target_can(t, CAN(EVENT_TERMS)) ? GD_CAN_EVENT_TERMS : 0U;
    can |= v1_target_can(t, CAN(LINES)) ? GD_CAN_LINES : 0U;
    can |= v1_target_can(t, CAN(GROWS)) ? GD_CAN_GROW : 0U;
    can |= v1_target_can(t, CAN(DIGEST)) ? GD_CAN_DIGEST : 0U;
    can |= v1_target_can(t, CAN(CAPTURE)) || v1_target_can(t, CAN(CAPTURE_STEPS)) ? GD_CAN_CAPTURE
                                                                                  : 0U;
    return can;
}

static void fill_peer(const struct v1_conn *conn, const Gradb__V1__Hello *hello,
                      struct gd_peer *peer)
{
    snprintf(peer->framework, sizeof(peer->framework), "%s", hello->framework);
    snprintf(peer->version, sizeof(peer->version), "%s", hello->framework_version);
    snprintf(peer->device, sizeof(peer->device), "%s", hello->device);
    snprintf(peer->host, sizeof(peer->host), "%s", hello->host);
    snprintf(peer->program, sizeof(peer->program), "%s", hello->program);
    snprintf(peer->address, sizeof(peer->address), "%s", conn->peer);
    snprintf(peer->job, sizeof(peer->job), "%s", hello->job);
    peer->remote = !conn->is_local;
    peer->pid = hello->pid > 0 ? hello->pid : 0;
    peer->rank = hello->rank <= INT32_MAX ? (int)hello->rank : 0;
    peer->world_size =
        hello->world_size > 0 && hello->world_size <= INT32_MAX ? (int)hello->world_size : 1;
}

int v1_target_create(struct v1_conn *conn, const Gradb__V1__Hello *hello, struct gd_err *err)
{
    struct gd_debugger *debugger = conn->service->debugger;
    struct v1_target *t = calloc(1, sizeof(*t));
    if (!t) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a new session");
    }
    t->service = conn->service;
    t->requests_end = &t->requests;
    v1_ingest_init(t);
    for (size_t i = 0; i < hello->n_capabilities; i++) {
        uint32_t bit = (uint32_t)hello->capabilities[i];
        t->capabilities |= bit < 64 ? UINT64_C(1) << bit : 0;
    }
    t->ops = v1_ops;
    if (!v1_target_can(t, CAN(STATS))) {
        t->ops.stats = NULL; /* the session fetches the values and computes them */
    }
    t->base.ops = &t->ops;
    t->base.capabilities = engine_capabilities(t);
    snprintf(t->agent, sizeof(t->agent), "%s", hello->agent);
    t->local_rank = hello->local_rank;
    if (hello->shm_probe && conn->is_local && debugger->settings.shared_memory) {
        t->shm = v1_shm_create(hello->shm_probe, NULL); /* if this fails, values use the socket */
    }
    struct gd_peer peer = {0};
    fill_peer(conn, hello, &peer);
    struct gd_session *session = NULL;
    int rc = gd_session_create(debugger, &t->base, &peer, &session, err);
    if (rc == GD_OK) {
        t->conn = conn;
        conn->target = t;
    }
    return rc;
}

void v1_target_lost(struct v1_target *t, const char *why)
{
    t->conn = NULL;
    v1_ingest_finish(t);
    drop_requests(t, GD_ELOST, "the training process is gone");
    gd_session_on_lost(t->base.session, why);
}

/* ---- messages of the training process ------------------------------------------------ */

static void on_stopped(struct v1_target *t, const Gradb__V1__Stopped *m)
{
    static const enum gd_stop_reason reasons[] = {
        [GRADB__V1__STOP_REASON__STOP_UNKNOWN] = GD_STOP_PROGRAM,
        [GRADB__V1__STOP_REASON__STOP_CONNECTED] = GD_STOP_CONNECTED,
        [GRADB__V1__STOP_REASON__STOP_STEP] = GD_STOP_STEP,
        [GRADB__V1__STOP_REASON__STOP_NODE] = GD_STOP_NODE,
        [GRADB__V1__STOP_REASON__STOP_BREAKPOINT] = GD_STOP_BREAKPOINT,
        [GRADB__V1__STOP_REASON__STOP_INTERRUPT] = GD_STOP_INTERRUPT,
        [GRADB__V1__STOP_REASON__STOP_WATCH] = GD_STOP_HIT,
        [GRADB__V1__STOP_REASON__STOP_PHASE] = GD_STOP_PHASE,
        [GRADB__V1__STOP_REASON__STOP_PROGRAM] = GD_STOP_PROGRAM,
        [GRADB__V1__STOP_REASON__STOP_EXCEPTION] = GD_STOP_EXCEPTION,
    };
    size_t reason = (size_t)m->reason;
    struct gd_stop stop = {.reason = GD_STOP_PROGRAM, .node = v1_graph_node(t, m->node)};
    if (reason < sizeof(reasons) / sizeof(reasons[0])) {
        stop.reason = reasons[reason];
    } else if (m->reason == GRADB__V1__STOP_REASON__STOP_EVENT) {
        stop.reason = GD_STOP_EVENT;
    } else if (m->reason == GRADB__V1__STOP_REASON__STOP_LINE && m->line) {
        v1_line_stopped(t, m->line);
        stop.reason = GD_STOP_BREAKPOINT;
        stop.at_line = true;
    }
    stop.step = m->step > 0 ? m->step : 0;
    stop.at_step_end = m->at_step_end;
    snprintf(stop.phase, sizeof(stop.phase), "%s", v1_phase_name(m->phase));
    snprintf(stop.text, sizeof(stop.text), "%s", m->text);
    v1_watch_stopped(t);
    gd_session_on_stopped(t->base.session, &stop);
}

static void on_running(struct v1_target *t, const Gradb__V1__Running *m)
{
    gd_session_on_running(t->base.session);
    gd_session_on_step(t->base.session, m->step);
}

static void on_goodbye(struct v1_target *t, const Gradb__V1__Goodbye *m)
{
    static const char *const words[] = {"the training ended", "the training failed",
                                        "the training process detached"};
    char text[320];
    size_t reason = (size_t)m->reason < 3 ? (size_t)m->reason : 0;
    if (m->text[0] && reason != 2) {
        snprintf(text, sizeof(text), "%s: %.255s", words[reason], m->text);
    } else {
        snprintf(text, sizeof(text), "%s", words[reason]);
    }
    struct v1_conn *conn = t->conn;
    t->conn = NULL;
    conn->target = NULL;
    drop_requests(t, GD_ELOST, "the training has ended");
    gd_session_on_step(t->base.session, m->step);
    if (reason == 1) {
        gd_session_on_failed(t->base.session, text);
    } else {
        gd_session_on_finished(t->base.session, text);
    }
    v1_conn_finish(conn, GD_GRPC_OK, "");
}

int v1_target_message(struct v1_target *t, const v1_from *m, size_t len, struct gd_err *err)
{
    switch (m->msg_case) {
    case GRADB__V1__FROM_TRAINER__MSG_HELLO:
        return gd_fail(err, GD_EPROTO, "a second Hello on the same call");
    case GRADB__V1__FROM_TRAINER__MSG_GRAPH: return v1_graph_chunk(t, m->graph, len, err);
    case GRADB__V1__FROM_TRAINER__MSG_STATS: return v1_value_statistics(t, m->stats, err);
    case GRADB__V1__FROM_TRAINER__MSG_WATCH_REPORT: return v1_watch_report(t, m->watch_report, err);
    case GRADB__V1__FROM_TRAINER__MSG_STOPPED: on_stopped(t, m->stopped); break;
    case GRADB__V1__FROM_TRAINER__MSG_RUNNING: on_running(t, m->running); break;
    case GRADB__V1__FROM_TRAINER__MSG_HEARTBEAT:
        gd_session_on_step(t->base.session, m->heartbeat->step);
        break;
    case GRADB__V1__FROM_TRAINER__MSG_TENSOR_BEGIN: v1_value_begin(t, m->tensor_begin); break;
    case GRADB__V1__FROM_TRAINER__MSG_TENSOR_DATA: v1_value_data(t, m->tensor_data); break;
    case GRADB__V1__FROM_TRAINER__MSG_ERROR: v1_value_error(t, m->error); break;
    case GRADB__V1__FROM_TRAINER__MSG_COMMAND_REPLY: v1_value_reply(t, m->command_reply); break;
    case GRADB__V1__FROM_TRAINER__MSG_WATCH_COSTS: v1_watch_costs_told(t, m->watch_costs); break;
    case GRADB__V1__FROM_TRAINER__MSG_GOODBYE: on_goodbye(t, m->goodbye); break;
    case GRADB__V1__FROM_TRAINER__MSG_SHM_FORGET:
        for (size_t i = 0; t->shm && i < m->shm_forget->n_segments; i++) {
            v1_shm_forget(t->shm, m->shm_forget->segments[i]);
        }
        break;
    default: v1_words(t, m);
    }
    return GD_OK;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The methods of debugger.EventListener. A training process is identified by its connection and the
 * device in Metadata.device_name; other messages carry no name and belong to the process of their
 * connection that spoke last.
 *
 * A client treats a reply other than OK as a failure, and six failed WaitCMDs end the training: so
 * calls fail only for invalid messages, for strangers, and at a stated limit.
 */
#include "proto/ms/ms_service.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "mindspore/ms_graph.h"
#include "proto/ms/ms_ingest.h"
#include "proto/ms/ms_target.h"
#include "proto/ms/ms_tensor.h"

#define TICK        1.0               /* seconds between checks of keep-alive and heartbeats */
#define LONG_FETCH  ((size_t)1 << 20) /* bytes; smaller tensors show no progress */
#define PIECE_BYTES 3145728u          /* clients cut graphs into pieces of this size */

#define MAX_PROCESSES 64 /* per connection */

struct ms_conn;

struct ms_process { /* one training process on a connection */
    struct ms_process *next;
    struct ms_conn *conn;
    char device[64];             /* device_name up to the colon; "": unknown yet */
    struct gd_ms_target *target; /* NULL: ended or detached */
    struct ms_ingest *ingest;    /* of its graphs; NULL before the first */
    struct ms_call *late;        /* calls waiting until its graphs are loaded; oldest first */
    bool detached;               /* continues training; its WaitCMDs are answered immediately */
    int32_t delete_next, delete_last; /* watchpoints of a detached process, still to be deleted */
};

struct ms_conn {
    struct ms_conn *next;
    struct gd_ms_service *service;
    struct gd_grpc_conn *conn;
    struct ms_process *processes; /* most recently heard first */
    int32_t heartbeat_period;     /* received before the process introduced itself */
    bool refused;                 /* the user has been told */
};

struct ms_call {
    struct gd_grpc_call *call;
    struct ms_call *next_late;
    struct ms_process *late_at;           /* whose `late` list contains it; NULL: none */
    struct gd_ms_metadata *late_metadata; /* of a WaitCMD that had to wait */
    struct gd_ms_service *service;
    struct ms_conn *conn;
    struct gd_ms_target *waiting;         /* for WaitCMD: the target that holds it */
    struct gd_buf graph;                  /* SendGraph, SendMultiGraphs: the graph so far */
    size_t last_piece;                    /* length of an unfinished last piece; 0: none */
    struct gd_ms_tensor_decoder *decoder; /* SendTensors */
    struct gd_progress *progress;         /* of the graph, or of a large tensor */
    uint64_t received;                    /* bytes of that tensor */
};

struct gd_ms_service {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_grpc_service grpc;
    struct ms_conn *conns;
    ev_timer timer;
    struct gd_block_pool *pool; /* memory of tensors */
};

/* ---- connections and processes ------------------------------------------------------------- */

static void warn_once(struct gd_ms_service *service, const char *peer, const char *text)
{
    char line[GD_ERR_TEXT_MAX + 160];
    snprintf(line, sizeof(line), "%s: %s", peer, text);
    struct gd_event event = {.type = GD_EV_WARNING, .text = line};
    gd_debugger_emit(service->debugger, &event);
}

static struct ms_conn *conn_of(struct gd_ms_service *service, struct gd_grpc_conn *conn)
{
    struct ms_conn *mine = gd_grpc_conn_data(conn, service);
    if (mine) {
        return mine;
    }
    mine = calloc(1, sizeof(*mine));
    if (!mine) {
        return NULL;
    }
    mine->service = service;
    mine->conn = conn;
    mine->next = service->conns;
    service->conns = mine;
    gd_grpc_conn_set_data(conn, service, mine);
    return mine;
}

static void drop_ingest(struct ms_process *process)
{
    ms_ingest_destroy(process->ingest);
    process->ingest = NULL;
}

/* What a process sent before it died is worth keeping. */
static void free_processes(struct ms_conn *conn)
{
    while (conn->processes) {
        struct ms_process *process = conn->processes;
        ms_ingest_finish(process->ingest);
        drop_ingest(process);
        conn->processes = process->next;
        if (process->target) {
            gd_ms_target_on_closed(process->target);
        }
        free(process);
    }
}

static void conn_closed(struct gd_grpc_conn *conn, void *ctx)
{
    struct gd_ms_service *service = ctx;
    struct ms_conn *mine = gd_grpc_conn_data(conn, service);
    if (!mine) {
        return;
    }
    struct ms_conn **link = &service->conns;
    while (*link != mine) {
        link = &(*link)->next;
    }
    *link = mine->next;
    free_processes(mine);
    free(mine);
}

static void answer_late(struct ms_process *process);

static void target_gone(void *owner, bool detached, int32_t last_id)
{
    struct ms_process *process = owner;
    process->target = NULL;
    drop_ingest(process);
    process->detached = detached;
    process->delete_next = 1;
    process->delete_last = last_id;
    if (detached) {
        answer_late(process);
    }
}

static void reply_to_wait(void *call, const void *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    if (mine) {
        mine->waiting = NULL;
    }
    /* A call without an answer would block the training forever. */
    if (gd_grpc_reply(call, len ? data : "", len) != GD_OK) {
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, "the answer could not be sent");
    }
}

static int take_graphs(void *owner, struct gd_err *err)
{
    struct ms_process *process = owner;
    return ms_ingest_again(process->ingest, err);
}

static const struct gd_ms_io target_io = {reply_to_wait, target_gone, take_graphs};

/* Moves the process with that device to the front, or adds it. NULL: out of memory, or too many. */
static struct ms_process *process_of(struct ms_conn *conn, const char *device_name)
{
    char device[sizeof(conn->processes->device)] = "";
    size_t len = strcspn(device_name, ":"), count = 0;
    memcpy(device, device_name, len < sizeof(device) ? len : sizeof(device) - 1);
    struct ms_process **link = &conn->processes;
    for (; *link && (*link)->device[0] && strcmp((*link)->device, device) != 0; count++) {
        link = &(*link)->next;
    }
    struct ms_process *process = *link;
    if (process) {
        *link = process->next;
    } else if (count < MAX_PROCESSES) {
        process = calloc(1, sizeof(*process));
    }
    if (!process) {
        return NULL;
    }
    process->conn = conn;
    process->next = conn->processes;
    conn->processes = process;
    memcpy(process->device, device, sizeof(device));
    return process;
}

static bool make_target(struct ms_process *process, const struct gd_ms_metadata *metadata,
                        struct gd_err *err)
{
    struct gd_ms_service *service = process->conn->service;
    const char *peer = gd_grpc_conn_peer(process->conn->conn);
    struct gd_ms_target *target;
    if (gd_ms_target_create(service->debugger, &target_io, process, peer, metadata, &target, err) !=
        GD_OK) {
        if (!process->conn->refused) {
            warn_once(service, peer, err->text);
        }
        process->conn->refused = true;
        return false;
    }
    process->target = target;
    process->detached = false;
    if (process->conn->heartbeat_period) {
        gd_ms_target_on_heartbeat(target, process->conn->heartbeat_period);
    }
    return true;
}

/* The process that messages without a name belong to. */
static struct gd_ms_target *target_of(const struct ms_call *call)
{
    return call->conn->processes ? call->conn->processes->target : NULL;
}

/* The process that was asked for a tensor, if several share the connection. */
static struct gd_ms_target *asked_target(const struct ms_call *call, size_t *bytes)
{
    for (struct ms_process *process = call->conn->processes; process; process = process->next) {
        if (process->target && gd_ms_target_expects(process->target, bytes)) {
            return process->target;
        }
    }
    return NULL;
}

/* ---- calls --------------------------------------------------------------------------------- */

static struct ms_call *make_call(struct gd_ms_service *service, struct ms_conn *conn,
                                 struct gd_grpc_call *call)
{
    struct ms_call *mine = conn ? calloc(1, sizeof(*mine)) : NULL;
    if (!mine) {
        return NULL;
    }
    mine->call = call;
    mine->service = service;
    mine->conn = conn;
    uint64_t max = service->debugger->settings.max_graph;
    gd_buf_init(&mine->graph, max && max < SIZE_MAX / 2 ? (size_t)max : SIZE_MAX / 2);
    return mine;
}

static void open_call(struct gd_grpc_call *call, void *ctx)
{
    struct gd_ms_service *service = ctx;
    struct gd_grpc_conn *conn = gd_grpc_call_conn(call);
    struct ms_conn *mine = conn_of(service, conn);
    if (!gd_grpc_conn_is_loopback(conn) && !service->debugger->settings.ms_shared_allow_remote) {
        if (mine && !mine->refused) {
            warn_once(service, gd_grpc_conn_peer(conn),
                      "refused a MindSpore process on another host, because such processes cannot "
                      "present a token: set ms-remote on, or forward the port through ssh");
        }
        if (mine) {
            mine->refused = true;
        }
        gd_grpc_finish(call, GD_GRPC_PERMISSION_DENIED,
                       "gradb accepts MindSpore processes on its own host only");
        return;
    }
    struct ms_call *data = make_call(service, mine, call);
    gd_grpc_call_set_data(call, data);
    if (!data) {
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, "gradb is out of memory");
    }
}

static void end_progress(struct ms_call *mine)
{
    gd_progress_end(mine->progress);
    mine->progress = NULL;
}

/* A call of a process whose graphs are still being loaded: answered when they are. */
static void come_late(struct ms_call *mine, struct ms_process *process)
{
    struct ms_call **link = &process->late;
    while (*link) {
        link = &(*link)->next_late;
    }
    *link = mine;
    mine->late_at = process;
}

static void leave_late(struct ms_call *mine)
{
    if (mine->late_at) {
        struct ms_call **link = &mine->late_at->late;
        while (*link != mine) {
            link = &(*link)->next_late;
        }
        *link = mine->next_late;
    }
    mine->next_late = NULL;
    mine->late_at = NULL;
    free(mine->late_metadata);
    mine->late_metadata = NULL;
}

static void closed_call(struct gd_grpc_call *call)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    if (!mine) {
        return;
    }
    if (mine->waiting) {
        gd_ms_target_on_wait_closed(mine->waiting, call);
    }
    leave_late(mine);
    end_progress(mine);
    gd_ms_tensor_decoder_destroy(mine->decoder);
    gd_buf_deinit(&mine->graph);
    free(mine);
    gd_grpc_call_set_data(call, NULL);
}

static void refuse_call(struct gd_grpc_call *call, enum gd_grpc_code code, const char *text)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    warn_once(mine->service, gd_grpc_conn_peer(gd_grpc_call_conn(call)), text);
    gd_grpc_finish(call, code, text);
}

static const char no_process[] = "too many processes on one connection, or out of memory";

static void reply_ok(struct gd_grpc_call *call)
{
    gd_grpc_reply(call, "", 0);
}

/* ---- SendMetadata, WaitCMD, SendHeartbeat -------------------------------------------------- */

static bool check_version(struct ms_process *process, const struct gd_ms_metadata *metadata)
{
    char text[256];
    struct gd_debugger *debugger = process->conn->service->debugger;
    struct gd_ms_version version;
    gd_ms_version_parse(metadata->ms_version, &version);
    enum gd_ms_match match =
        gd_ms_version_match(&version, metadata->ms_version,
                            debugger->settings.ms_version_check_strict, text, sizeof(text));
    if (match != GD_MS_MATCH) {
        gd_session_on_warning(gd_ms_target_session(process->target), text);
    }
    if (match == GD_MS_MISMATCH) {
        gd_ms_target_on_mismatch(process->target);
    }
    return match != GD_MS_MISMATCH;
}

/* Removes the process, which is the first of its connection, from the list. */
static void end_process(struct ms_process *process, const struct gd_ms_metadata *metadata)
{
    ms_ingest_finish(process->ingest);
    struct gd_ms_target *target = process->target;
    process->conn->processes = process->next;
    while (process->late) { /* they belong to nobody now */
        leave_late(process->late);
    }
    drop_ingest(process);
    free(process);
    if (target) {
        gd_ms_target_on_done(target, metadata);
    }
}

static void metadata_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    struct gd_ms_metadata metadata;
    struct gd_err err;
    if (!gd_ms_read_metadata(data, len, &metadata)) {
        refuse_call(call, GD_GRPC_INVALID_ARGUMENT,
                    "SendMetadata: the bytes are not a Metadata message");
        return;
    }
    struct ms_process *process = process_of(mine->conn, metadata.device_name);
    if (!process && !metadata.training_done) {
        refuse_call(call, GD_GRPC_RESOURCE_EXHAUSTED, no_process);
        return;
    }
    if (metadata.training_done) {
        if (process) {
            end_process(process, &metadata);
        }
        reply_ok(call);
        return;
    }
    bool matched = true;
    if (!process->detached) {
        if (!process->target && !make_target(process, &metadata, &err)) {
            gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, err.text);
            return;
        }
        gd_ms_target_on_metadata(process->target, &metadata);
        matched = check_version(process, &metadata);
    }
    struct gd_buf reply = GD_BUF_INIT(64);
    gd_ms_write_version_matched(&reply, matched);
    gd_grpc_reply(call, gd_buf_text(&reply), reply.len);
    gd_buf_deinit(&reply);
}

/* A detached process is resumed at each of its stops, after its watchpoints are deleted. */
static void let_go_on(struct gd_grpc_call *call, struct ms_process *process)
{
    struct gd_buf reply = GD_BUF_INIT(64);
    if (process->delete_next <= process->delete_last) {
        gd_ms_write_delete(&reply, process->delete_next++);
    } else {
        gd_ms_write_step(&reply);
    }
    gd_grpc_reply(call, gd_buf_text(&reply), reply.len);
    gd_buf_deinit(&reply);
}

static void take_wait(struct ms_call *mine, struct ms_process *process,
                      const struct gd_ms_metadata *metadata)
{
    struct gd_err err;
    if (process->detached) {
        let_go_on(mine->call, process);
        return;
    }
    if (!process->target && !make_target(process, metadata, &err)) {
        gd_grpc_finish(mine->call, GD_GRPC_RESOURCE_EXHAUSTED, err.text);
        return;
    }
    mine->waiting = process->target;
    gd_ms_target_on_wait(process->target, mine->call, metadata);
}

static void answer_late(struct ms_process *process)
{
    while (process->late && !ms_ingest_is_busy(process->ingest)) {
        struct ms_call *mine = process->late;
        struct gd_ms_metadata *metadata = mine->late_metadata;
        mine->late_metadata = NULL;
        leave_late(mine);
        if (metadata) {
            take_wait(mine, process, metadata);
        } else {
            reply_ok(mine->call);
        }
        free(metadata);
    }
}

static void graphs_are_in(void *ctx)
{
    answer_late(ctx);
}

static void wait_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    struct gd_ms_metadata metadata;
    if (!gd_ms_read_metadata(data, len, &metadata)) {
        refuse_call(call, GD_GRPC_INVALID_ARGUMENT,
                    "WaitCMD: the bytes are not a Metadata message");
        return;
    }
    struct ms_process *process = process_of(mine->conn, metadata.device_name);
    if (!process) {
        refuse_call(call, GD_GRPC_RESOURCE_EXHAUSTED, no_process);
        return;
    }
    if (!ms_ingest_is_busy(process->ingest)) {
        take_wait(mine, process, &metadata);
        return;
    }
    mine->late_metadata = malloc(sizeof(metadata));
    if (!mine->late_metadata) {
        gd_grpc_finish(call, GD_GRPC_RESOURCE_EXHAUSTED, "gradb is out of memory");
        return;
    }
    *mine->late_metadata = metadata;
    come_late(mine, process);
}

static void heartbeat_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    struct gd_ms_heartbeat heartbeat;
    if (!gd_ms_read_heartbeat(data, len, &heartbeat)) {
        refuse_call(call, GD_GRPC_INVALID_ARGUMENT,
                    "SendHeartbeat: the bytes are not a Heartbeat message");
        return;
    }
    mine->conn->heartbeat_period = heartbeat.period;
    for (struct ms_process *process = mine->conn->processes; process; process = process->next) {
        if (process->target) {
            gd_ms_target_on_heartbeat(process->target, heartbeat.period);
        }
    }
    reply_ok(call);
}

/* ---- graphs -------------------------------------------------------------------------------- */

/* The process that a graph belongs to; it may not have introduced itself. */
static struct ms_process *graph_process(struct ms_call *call)
{
    if (!call->conn->processes) {
        struct gd_ms_metadata nobody = {.graph_num = 1};
        struct gd_err err;
        struct ms_process *process = process_of(call->conn, "");
        if (!process || !make_target(process, &nobody, &err)) {
            return NULL;
        }
    }
    return call->conn->processes;
}

static void take_graph(struct ms_call *call)
{
    struct ms_process *process = graph_process(call);
    bool unwanted = gd_progress_is_stopped(call->progress);
    struct gd_err err;
    end_progress(call);
    call->last_piece = 0;
    if (process && process->target && call->graph.len) {
        struct gd_ms_service *service = call->service;
        if (!process->ingest) {
            process->ingest = ms_ingest_create(service->loop, service->debugger, process->target,
                                               graphs_are_in, process);
        }
        if (!process->ingest ||
            ms_ingest_add(process->ingest, &call->graph, unwanted, &err) != GD_OK) {
            warn_once(service, gd_grpc_conn_peer(call->conn->conn), "out of memory for a graph");
        }
    }
    gd_buf_deinit(&call->graph);
}

static bool read_piece(struct gd_grpc_call *call, const uint8_t *data, size_t len,
                       const uint8_t **piece, size_t *piece_len, bool *finished)
{
    if (gd_ms_read_chunk(data, len, piece, piece_len, finished)) {
        return true;
    }
    refuse_call(call, GD_GRPC_INVALID_ARGUMENT, "a graph: the bytes are not a Chunk message");
    return false;
}

static bool add_piece(struct gd_grpc_call *call, const uint8_t *piece, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    if (!mine->progress) {
        mine->progress = gd_progress_begin(mine->service->debugger, "receiving a graph", "B", 0);
    }
    if (gd_buf_add(&mine->graph, piece, len) == GD_OK) {
        gd_progress_at(mine->progress, mine->graph.len);
        return true;
    }
    end_progress(mine);
    char text[160];
    snprintf(text, sizeof(text), "refused a graph larger than max-graph (%zu bytes)",
             mine->graph.max);
    gd_buf_deinit(&mine->graph);
    refuse_call(call, GD_GRPC_RESOURCE_EXHAUSTED, text);
    return false;
}

static void graph_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    const uint8_t *piece;
    size_t piece_len;
    bool finished; /* never set by any release */
    if (read_piece(call, data, len, &piece, &piece_len, &finished)) {
        add_piece(call, piece, piece_len);
    }
}

static void graph_end(struct gd_grpc_call *call)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    take_graph(mine);
    struct ms_process *process = mine->conn->processes;
    if (process && ms_ingest_is_busy(process->ingest)) {
        come_late(mine, process);
    } else {
        reply_ok(call);
    }
}

static bool repeats_chunks(const struct ms_call *call)
{
    const struct gd_ms_target *target = target_of(call);
    return !target || gd_ms_target_version(target)->repeats_chunks;
}

/* 1.1 and 1.2 mark the first piece of a large graph as its last if another graph was sent before,
 * and send the last piece twice: unfinished, then finished. */
static void multi_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    const uint8_t *piece;
    size_t piece_len;
    bool finished;
    if (!read_piece(call, data, len, &piece, &piece_len, &finished)) {
        return;
    }
    bool odd = finished && repeats_chunks(mine);
    bool repeated = odd && mine->last_piece && mine->last_piece == piece_len &&
                    memcmp(mine->graph.data + mine->graph.len - piece_len, piece, piece_len) == 0;
    if (odd && !mine->graph.len && piece_len == PIECE_BYTES &&
        !gd_ms_graph_is_whole(piece, piece_len)) {
        finished = false;
    }
    if (!repeated && !add_piece(call, piece, piece_len)) {
        return;
    }
    mine->last_piece = piece_len;
    if (finished) {
        take_graph(mine);
    }
}

/* ---- tensors ------------------------------------------------------------------------------- */

static void on_tensor(void *ctx, const struct gd_ms_tensor_head *head, struct gd_tensor *tensor,
                      const struct gd_err *err)
{
    struct ms_call *mine = ctx;
    size_t bytes;
    end_progress(mine);
    struct gd_ms_target *target = asked_target(mine, &bytes);
    if (target) {
        gd_ms_target_on_tensor(target, head->node_name, head->slot, head->iter, tensor, err);
    }
}

static int begin_tensors(struct ms_call *mine, struct gd_err *err)
{
    size_t bytes;
    uint64_t max = mine->service->debugger->settings.max_tensor;
    if (mine->decoder || !asked_target(mine, &bytes)) {
        return GD_OK; /* nobody asked: skip the bytes */
    }
    int rc = gd_ms_tensor_decoder_create(max < SIZE_MAX ? (size_t)max : SIZE_MAX, on_tensor, mine,
                                         &mine->decoder, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_ms_tensor_use_pool(mine->decoder, mine->service->pool);
    if (bytes) {
        gd_ms_tensor_expect(mine->decoder, bytes);
    }
    return GD_OK;
}

/* A client treats a tensor refused halfway as its own error, so nothing stops the transfer: Ctrl-C
 * only ends the wait. */
static void note_tensor(struct ms_call *mine, size_t len)
{
    size_t bytes = 0;
    if (!mine->progress && asked_target(mine, &bytes) && bytes >= LONG_FETCH) {
        mine->received = 0;
        mine->progress =
            gd_progress_begin(mine->service->debugger, "receiving a tensor", "B", bytes);
    }
    mine->received += len;
    gd_progress_at(mine->progress, mine->received);
}

static uint8_t *tensor_place(struct gd_grpc_call *call, size_t *room)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    return mine && mine->decoder ? gd_ms_tensor_place(mine->decoder, room) : NULL;
}

static void tensor_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                         size_t total)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    struct gd_err err;
    int rc = offset == 0 ? begin_tensors(mine, &err) : GD_OK;
    if (rc == GD_OK && mine->decoder) {
        note_tensor(mine, len);
    }
    if (rc == GD_OK && mine->decoder) {
        rc = gd_ms_tensor_feed(mine->decoder, data, len, offset, total, &err);
    }
    if (rc != GD_OK) {
        refuse_call(call, rc == GD_EPROTO ? GD_GRPC_INVALID_ARGUMENT : GD_GRPC_RESOURCE_EXHAUSTED,
                    err.text);
    }
}

static void tensor_end(struct gd_grpc_call *call)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    if (mine->decoder) {
        gd_ms_tensor_end(mine->decoder);
    }
    reply_ok(call);
}

static void base_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_ms_base base;
    size_t bytes;
    if (!gd_ms_read_base(data, len, &base)) {
        refuse_call(call, GD_GRPC_INVALID_ARGUMENT,
                    "SendTensorBase: the bytes are not a TensorBase message");
        return;
    }
    struct gd_ms_target *target = asked_target(gd_grpc_call_data(call), &bytes);
    if (target) {
        gd_ms_target_on_base(target, &base);
    }
}

static void summary_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_ms_summary summary;
    size_t bytes;
    if (!gd_ms_read_summary(data, len, &summary)) {
        refuse_call(call, GD_GRPC_INVALID_ARGUMENT,
                    "SendTensorStats: the bytes are not a TensorSummary message");
        return;
    }
    struct gd_ms_target *target = asked_target(gd_grpc_call_data(call), &bytes);
    if (target) {
        gd_ms_target_on_summary(target, &summary);
    }
}

static void hit_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_ms_hit hit;
    if (!gd_ms_read_hit(data, len, &hit)) {
        refuse_call(call, GD_GRPC_INVALID_ARGUMENT,
                    "SendWatchpointHits: the bytes are not a WatchpointHit message");
        return;
    }
    struct gd_ms_target *target = target_of(gd_grpc_call_data(call));
    if (target) {
        gd_ms_target_on_hit(target, &hit);
    }
}

static void hits_end(struct gd_grpc_call *call)
{
    struct gd_ms_target *target = target_of(gd_grpc_call_data(call));
    if (target) {
        gd_ms_target_on_hits_end(target);
    }
    reply_ok(call);
}

/* ---- the service --------------------------------------------------------------------------- */

#define PATH(name) "/debugger.EventListener/" name

static const struct gd_grpc_method methods[] = {
    {PATH("WaitCMD"), false, open_call, wait_message, NULL, NULL, closed_call, NULL},
    {PATH("SendMetadata"), false, open_call, metadata_message, NULL, NULL, closed_call, NULL},
    {PATH("SendHeartbeat"), false, open_call, heartbeat_message, NULL, NULL, closed_call, NULL},
    {PATH("SendGraph"), true, open_call, graph_message, NULL, graph_end, closed_call, NULL},
    {PATH("SendMultiGraphs"), true, open_call, multi_message, NULL, graph_end, closed_call, NULL},
    {PATH("SendTensors"), true, open_call, NULL, tensor_chunk, tensor_end, closed_call,
     tensor_place},
    {PATH("SendTensorBase"), true, open_call, base_message, NULL, reply_ok, closed_call, NULL},
    {PATH("SendTensorStats"), true, open_call, summary_message, NULL, reply_ok, closed_call, NULL},
    {PATH("SendWatchpointHits"), true, open_call, hit_message, NULL, hits_end, closed_call, NULL},
};

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct gd_ms_service *service = timer->data;
    (void)loop;
    (void)events;
    for (struct ms_conn *conn = service->conns; conn; conn = conn->next) {
        for (struct ms_process *process = conn->processes; process; process = process->next) {
            if (process->target) {
                gd_ms_target_tick(process->target);
            }
        }
    }
    gd_block_pool_tick(service->pool);
}

int gd_ms_service_create(struct ev_loop *loop, struct gd_debugger *debugger,
                         struct gd_grpc_server *server, struct gd_ms_service **ret,
                         struct gd_err *err)
{
    struct gd_ms_service *service = calloc(1, sizeof(*service));
    if (!service) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the MindSpore service");
    }
    service->loop = loop;
    service->debugger = debugger;
    service->grpc.methods = methods;
    service->grpc.method_count = sizeof(methods) / sizeof(*methods);
    service->grpc.ctx = service;
    service->grpc.conn_closed = conn_closed;
    int rc = gd_block_pool_create(&service->pool, err);
    if (rc == GD_OK) {
        rc = gd_grpc_server_add(server, &service->grpc, err);
    }
    if (rc != GD_OK) {
        gd_block_pool_release(service->pool);
        free(service);
        return rc;
    }
    ev_timer_init(&service->timer, on_tick, TICK, TICK);
    service->timer.data = service;
    ev_timer_start(loop, &service->timer);
    ev_unref(loop); /* the timer alone does not keep the loop running */
    *ret = service;
    return GD_OK;
}

bool gd_ms_service_serves_detached(const struct gd_ms_service *service)
{
    for (const struct ms_conn *conn = service->conns; conn; conn = conn->next) {
        for (const struct ms_process *process = conn->processes; process; process = process->next) {
            if (process->detached) {
                return true;
            }
        }
    }
    return false;
}

void gd_ms_service_destroy(struct gd_ms_service *service)
{
    if (!service) {
        return;
    }
    ev_ref(service->loop);
    ev_timer_stop(service->loop, &service->timer);
    while (service->conns) {
        struct ms_conn *conn = service->conns;
        service->conns = conn->next;
        free_processes(conn);
        free(conn);
    }
    gd_block_pool_release(service->pool);
    free(service);
}

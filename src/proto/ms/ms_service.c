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

#include "proto/ms/ms_service_impl.h"

#define TICK          1.0 /* seconds between checks of keep-alive and heartbeats */
#define MAX_PROCESSES 64  /* per connection */

/* ---- connections and processes ------------------------------------------------------------- */

void ms_service_warn_once(struct gd_ms_service *service, const char *peer, const char *text)
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
struct ms_process *ms_service_process(struct ms_conn *conn, const char *device_name)
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

bool ms_service_make_target(struct ms_process *process, const struct gd_ms_metadata *metadata,
                            struct gd_err *err)
{
    struct gd_ms_service *service = process->conn->service;
    const char *peer = gd_grpc_conn_peer(process->conn->conn);
    struct gd_ms_target *target;
    if (gd_ms_target_create(service->debugger, &target_io, process, peer, metadata, &target, err) !=
        GD_OK) {
        if (!process->conn->refused) {
            ms_service_warn_once(service, peer, err->text);
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
struct gd_ms_target *ms_call_target(const struct ms_call *call)
{
    return call->conn->processes ? call->conn->processes->target : NULL;
}

/* The process that was asked for a tensor, if several share the connection. */
struct gd_ms_target *ms_call_asked_target(const struct ms_call *call, size_t *bytes)
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
            ms_service_warn_once(
                service, gd_grpc_conn_peer(conn),
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

void ms_call_end_progress(struct ms_call *mine)
{
    gd_progress_end(mine->progress);
    mine->progress = NULL;
}

/* A call of a process whose graphs are still being loaded: answered when they are. */
void ms_call_come_late(struct ms_call *mine, struct ms_process *process)
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
    ms_call_end_progress(mine);
    gd_ms_tensor_decoder_destroy(mine->decoder);
    gd_buf_deinit(&mine->graph);
    free(mine);
    gd_grpc_call_set_data(call, NULL);
}

void ms_call_refuse(struct gd_grpc_call *call, enum gd_grpc_code code, const char *text)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    ms_service_warn_once(mine->service, gd_grpc_conn_peer(gd_grpc_call_conn(call)), text);
    gd_grpc_finish(call, code, text);
}

static const char no_process[] = "too many processes on one connection, or out of memory";

void ms_call_reply_ok(struct gd_grpc_call *call)
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
        ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT,
                       "SendMetadata: the bytes are not a Metadata message");
        return;
    }
    struct ms_process *process = ms_service_process(mine->conn, metadata.device_name);
    if (!process && !metadata.training_done) {
        ms_call_refuse(call, GD_GRPC_RESOURCE_EXHAUSTED, no_process);
        return;
    }
    if (metadata.training_done) {
        if (process) {
            end_process(process, &metadata);
        }
        ms_call_reply_ok(call);
        return;
    }
    bool matched = true;
    if (!process->detached) {
        if (!process->target && !ms_service_make_target(process, &metadata, &err)) {
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
    if (!process->target && !ms_service_make_target(process, metadata, &err)) {
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
            ms_call_reply_ok(mine->call);
        }
        free(metadata);
    }
}

void ms_service_graphs_are_in(void *ctx)
{
    answer_late(ctx);
}

static void wait_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    struct gd_ms_metadata metadata;
    if (!gd_ms_read_metadata(data, len, &metadata)) {
        ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT,
                       "WaitCMD: the bytes are not a Metadata message");
        return;
    }
    struct ms_process *process = ms_service_process(mine->conn, metadata.device_name);
    if (!process) {
        ms_call_refuse(call, GD_GRPC_RESOURCE_EXHAUSTED, no_process);
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
    ms_call_come_late(mine, process);
}

static void heartbeat_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    struct gd_ms_heartbeat heartbeat;
    if (!gd_ms_read_heartbeat(data, len, &heartbeat)) {
        ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT,
                       "SendHeartbeat: the bytes are not a Heartbeat message");
        return;
    }
    mine->conn->heartbeat_period = heartbeat.period;
    for (struct ms_process *process = mine->conn->processes; process; process = process->next) {
        if (process->target) {
            gd_ms_target_on_heartbeat(process->target, heartbeat.period);
        }
    }
    ms_call_reply_ok(call);
}

/* ---- the service --------------------------------------------------------------------------- */

#define PATH(name) "/debugger.EventListener/" name

static const struct gd_grpc_method methods[] = {
    {PATH("WaitCMD"), false, open_call, wait_message, NULL, NULL, closed_call, NULL},
    {PATH("SendMetadata"), false, open_call, metadata_message, NULL, NULL, closed_call, NULL},
    {PATH("SendHeartbeat"), false, open_call, heartbeat_message, NULL, NULL, closed_call, NULL},
    {PATH("SendGraph"), true, open_call, ms_graph_message, NULL, ms_graph_end, closed_call, NULL},
    {PATH("SendMultiGraphs"), true, open_call, ms_multi_message, NULL, ms_graph_end, closed_call,
     NULL},
    {PATH("SendTensors"), true, open_call, NULL, ms_tensor_chunk, ms_tensor_end, closed_call,
     ms_tensor_place},
    {PATH("SendTensorBase"), true, open_call, ms_base_message, NULL, ms_call_reply_ok, closed_call,
     NULL},
    {PATH("SendTensorStats"), true, open_call, ms_summary_message, NULL, ms_call_reply_ok,
     closed_call, NULL},
    {PATH("SendWatchpointHits"), true, open_call, ms_hit_message, NULL, ms_hits_end, closed_call,
     NULL},
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

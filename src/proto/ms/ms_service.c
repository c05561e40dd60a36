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

#define TICK 1.0 /* seconds between checks of keep-alive and heartbeats */

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
        ms_call_leave_late(process->late);
    }
    ms_process_drop_ingest(process);
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
        ms_call_refuse(call, GD_GRPC_RESOURCE_EXHAUSTED, ms_no_process);
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
        ms_call_refuse(call, GD_GRPC_RESOURCE_EXHAUSTED, ms_no_process);
        return;
    }
    if (!ms_ingest_is_busy(process->ingest)) {
        ms_call_take_wait(mine, process, &metadata);
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
    {PATH("WaitCMD"), false, ms_call_open, wait_message, NULL, NULL, ms_call_closed, NULL},
    {PATH("SendMetadata"), false, ms_call_open, metadata_message, NULL, NULL, ms_call_closed, NULL},
    {PATH("SendHeartbeat"), false, ms_call_open, heartbeat_message, NULL, NULL, ms_call_closed,
     NULL},
    {PATH("SendGraph"), true, ms_call_open, ms_graph_message, NULL, ms_graph_end, ms_call_closed,
     NULL},
    {PATH("SendMultiGraphs"), true, ms_call_open, ms_multi_message, NULL, ms_graph_end,
     ms_call_closed, NULL},
    {PATH("SendTensors"), true, ms_call_open, NULL, ms_tensor_chunk, ms_tensor_end, ms_call_closed,
     ms_tensor_place},
    {PATH("SendTensorBase"), true, ms_call_open, ms_base_message, NULL, ms_call_reply_ok,
     ms_call_closed, NULL},
    {PATH("SendTensorStats"), true, ms_call_open, ms_summary_message, NULL, ms_call_reply_ok,
     ms_call_closed, NULL},
    {PATH("SendWatchpointHits"), true, ms_call_open, ms_hit_message, NULL, ms_hits_end,
     ms_call_closed, NULL},
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
    service->grpc.conn_closed = ms_conn_closed;
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
        ms_conn_free_processes(conn);
        free(conn);
    }
    gd_block_pool_release(service->pool);
    free(service);
}

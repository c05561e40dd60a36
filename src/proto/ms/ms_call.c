// SPDX-License-Identifier: GPL-3.0-or-later
/* The connections, processes and calls of the service debugger.EventListener. */
#include "proto/ms/ms_service_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "mindspore/ms_graph.h"

#define MAX_PROCESSES 64 /* per connection */

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

void ms_process_drop_ingest(struct ms_process *process)
{
    ms_ingest_destroy(process->ingest);
    process->ingest = NULL;
}

/* What a process sent before it died is worth keeping. */
void ms_conn_free_processes(struct ms_conn *conn)
{
    while (conn->processes) {
        struct ms_process *process = conn->processes;
        ms_ingest_finish(process->ingest);
        ms_process_drop_ingest(process);
        conn->processes = process->next;
        if (process->target) {
            gd_ms_target_on_closed(process->target);
        }
        free(process);
    }
}

void ms_conn_closed(struct gd_grpc_conn *conn, void *ctx)
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
    ms_conn_free_processes(mine);
    free(mine);
}

static void answer_late(struct ms_process *process);

static void target_gone(void *owner, bool detached, int32_t last_id)
{
    struct ms_process *process = owner;
    process->target = NULL;
    ms_process_drop_ingest(process);
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

void ms_call_open(struct gd_grpc_call *call, void *ctx)
{
    struct gd_ms_service *service = ctx;
    struct gd_grpc_conn *conn = gd_grpc_call_conn(call);
    struct ms_conn *mine = conn_of(service, conn);
    if (!gd_grpc_conn_is_local(conn) && !service->debugger->settings.ms_shared_allow_remote) {
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

void ms_call_leave_late(struct ms_call *mine)
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

void ms_call_closed(struct gd_grpc_call *call)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    if (!mine) {
        return;
    }
    if (mine->waiting) {
        gd_ms_target_on_wait_closed(mine->waiting, call);
    }
    ms_call_leave_late(mine);
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

const char ms_no_process[] = "too many processes on one connection, or out of memory";

void ms_call_reply_ok(struct gd_grpc_call *call)
{
    gd_grpc_reply(call, "", 0);
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

void ms_call_take_wait(struct ms_call *mine, struct ms_process *process,
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
        ms_call_leave_late(mine);
        if (metadata) {
            ms_call_take_wait(mine, process, metadata);
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

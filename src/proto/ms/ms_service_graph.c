// SPDX-License-Identifier: GPL-3.0-or-later
/* The graphs of a MindSpore process: SendGraph, SendMultiGraphs. */
#include "proto/ms/ms_service_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "mindspore/ms_graph.h"

#define PIECE_BYTES 3145728u /* clients cut graphs into pieces of this size */

/* The process that a graph belongs to; it may not have introduced itself. */
static struct ms_process *graph_process(struct ms_call *call)
{
    if (!call->conn->processes) {
        struct gd_ms_metadata nobody = {.graph_num = 1};
        struct gd_err err;
        struct ms_process *process = ms_service_process(call->conn, "");
        if (!process || !ms_service_make_target(process, &nobody, &err)) {
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
    ms_call_end_progress(call);
    call->last_piece = 0;
    if (process && process->target && call->graph.len) {
        struct gd_ms_service *service = call->service;
        if (!process->ingest) {
            process->ingest = ms_ingest_create(service->loop, service->debugger, process->target,
                                               ms_service_graphs_are_in, process);
        }
        if (!process->ingest ||
            ms_ingest_add(process->ingest, &call->graph, unwanted, &err) != GD_OK) {
            ms_service_warn_once(service, gd_grpc_conn_peer(call->conn->conn),
                                 "out of memory for a graph");
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
    ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT, "a graph: the bytes are not a Chunk message");
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
    ms_call_end_progress(mine);
    char text[160];
    snprintf(text, sizeof(text), "refused a graph larger than max-graph (%zu bytes)",
             mine->graph.max);
    gd_buf_deinit(&mine->graph);
    ms_call_refuse(call, GD_GRPC_RESOURCE_EXHAUSTED, text);
    return false;
}

void ms_graph_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    const uint8_t *piece;
    size_t piece_len;
    bool finished; /* never set by any release */
    if (read_piece(call, data, len, &piece, &piece_len, &finished)) {
        add_piece(call, piece, piece_len);
    }
}

void ms_graph_end(struct gd_grpc_call *call)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    take_graph(mine);
    struct ms_process *process = mine->conn->processes;
    if (process && ms_ingest_is_busy(process->ingest)) {
        ms_call_come_late(mine, process);
    } else {
        ms_call_reply_ok(call);
    }
}

static bool repeats_chunks(const struct ms_call *call)
{
    const struct gd_ms_target *target = ms_call_target(call);
    return !target || gd_ms_target_version(target)->repeats_chunks;
}

/* 1.1 and 1.2 mark the first piece of a large graph as its last if another graph was sent before,
 * and send the last piece twice: unfinished, then finished. */
void ms_multi_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
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

// SPDX-License-Identifier: GPL-3.0-or-later
/* Values and hits of a MindSpore process: SendTensors and its relatives, SendWatchpointHits. */
#include "proto/ms/ms_service_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"

#define LONG_FETCH ((size_t)1 << 20) /* bytes; smaller tensors show no progress */

static void on_tensor(void *ctx, const struct gd_ms_tensor_head *head, struct gd_tensor *tensor,
                      const struct gd_err *err)
{
    struct ms_call *mine = ctx;
    size_t bytes;
    ms_call_end_progress(mine);
    struct gd_ms_target *target = ms_call_asked_target(mine, &bytes);
    if (target) {
        gd_ms_target_on_tensor(target, head->node_name, head->slot, head->iter, tensor, err);
    }
}

static int begin_tensors(struct ms_call *mine, struct gd_err *err)
{
    size_t bytes;
    uint64_t max = mine->service->debugger->settings.max_tensor;
    if (mine->decoder || !ms_call_asked_target(mine, &bytes)) {
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
    if (!mine->progress && ms_call_asked_target(mine, &bytes) && bytes >= LONG_FETCH) {
        mine->received = 0;
        mine->progress =
            gd_progress_begin(mine->service->debugger, "receiving a tensor", "B", bytes);
    }
    mine->received += len;
    gd_progress_at(mine->progress, mine->received);
}

uint8_t *ms_tensor_place(struct gd_grpc_call *call, size_t *room)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    return mine && mine->decoder ? gd_ms_tensor_place(mine->decoder, room) : NULL;
}

void ms_tensor_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
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
        ms_call_refuse(call,
                       rc == GD_EPROTO ? GD_GRPC_INVALID_ARGUMENT : GD_GRPC_RESOURCE_EXHAUSTED,
                       err.text);
    }
}

void ms_tensor_end(struct gd_grpc_call *call)
{
    struct ms_call *mine = gd_grpc_call_data(call);
    if (mine->decoder) {
        gd_ms_tensor_end(mine->decoder);
    }
    ms_call_reply_ok(call);
}

void ms_base_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_ms_base base;
    size_t bytes;
    if (!gd_ms_read_base(data, len, &base)) {
        ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT,
                       "SendTensorBase: the bytes are not a TensorBase message");
        return;
    }
    struct gd_ms_target *target = ms_call_asked_target(gd_grpc_call_data(call), &bytes);
    if (target) {
        gd_ms_target_on_base(target, &base);
    }
}

void ms_summary_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_ms_summary summary;
    size_t bytes;
    if (!gd_ms_read_summary(data, len, &summary)) {
        ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT,
                       "SendTensorStats: the bytes are not a TensorSummary message");
        return;
    }
    struct gd_ms_target *target = ms_call_asked_target(gd_grpc_call_data(call), &bytes);
    if (target) {
        gd_ms_target_on_summary(target, &summary);
    }
}

void ms_hit_message(struct gd_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gd_ms_hit hit;
    if (!gd_ms_read_hit(data, len, &hit)) {
        ms_call_refuse(call, GD_GRPC_INVALID_ARGUMENT,
                       "SendWatchpointHits: the bytes are not a WatchpointHit message");
        return;
    }
    struct gd_ms_target *target = ms_call_target(gd_grpc_call_data(call));
    if (target) {
        gd_ms_target_on_hit(target, &hit);
    }
}

void ms_hits_end(struct gd_grpc_call *call)
{
    struct gd_ms_target *target = ms_call_target(gd_grpc_call_data(call));
    if (target) {
        gd_ms_target_on_hits_end(target);
    }
    ms_call_reply_ok(call);
}

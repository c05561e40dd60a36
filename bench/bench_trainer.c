// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench_trainer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"
#include "debug_graph.pb-c.h"
#include "proto/grpc/grpc_client.h"

#define PATH(METHOD) "/debugger.EventListener/" METHOD
#define MAX_IOV      64

struct bench_trainer {
    int fd;
    struct gd_grpc_client *client;
    uint64_t out, in;
    bool answered; /* the current call */
    Debugger__EventReply *reply;
};

/* --- one call at a time --- */

static void on_message(struct gd_grpc_client_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct bench_trainer *trainer = ctx;

    (void)call;
    trainer->reply = debugger__event_reply__unpack(NULL, len, data);
}

static void on_closed(struct gd_grpc_client_call *call, void *ctx, enum gd_grpc_code code,
                      const char *text)
{
    struct bench_trainer *trainer = ctx;

    (void)call;
    trainer->answered = true;
    if (code != GD_GRPC_OK) {
        errno = 0;
        bench_fail("a call ended with status %d: %s", (int)code, text);
    }
}

static const struct gd_grpc_client_ops ops = {on_message, on_closed};

static bool flush_output(struct bench_trainer *trainer)
{
    for (;;) {
        struct iovec iov[MAX_IOV];
        struct msghdr message = {.msg_iov = iov,
                                 .msg_iovlen = gd_grpc_client_out(trainer->client, iov, MAX_IOV)};
        if (message.msg_iovlen == 0) {
            return true;
        }
        ssize_t n = sendmsg(trainer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            return false;
        }
        if (n < 0) {
            bench_fail("the training process cannot write");
        }
        gd_grpc_client_sent(trainer->client, (size_t)n);
        trainer->out += (uint64_t)n;
    }
}

static void read_some(struct bench_trainer *trainer)
{
    uint8_t buffer[65536];
    ssize_t n = recv(trainer->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0 || gd_grpc_client_feed(trainer->client, buffer, (size_t)n, NULL) != GD_OK) {
        bench_fail("the debugger closed the connection");
    }
    trainer->in += (uint64_t)n;
}

static Debugger__EventReply *run_call(struct bench_trainer *trainer)
{
    trainer->answered = false;
    trainer->reply = NULL;
    while (!trainer->answered) {
        bool all = flush_output(trainer);
        struct pollfd fd = {trainer->fd, (short)(all ? POLLIN : POLLIN | POLLOUT), 0};
        if (poll(&fd, 1, -1) > 0 && (fd.revents & ~POLLOUT)) {
            read_some(trainer);
        }
    }
    if (!trainer->reply || trainer->reply->status != DEBUGGER__EVENT_REPLY__STATUS__OK) {
        errno = 0;
        bench_fail("invalid reply from the debugger");
    }
    return trainer->reply;
}

static struct gd_grpc_client_call *start_call(struct bench_trainer *trainer, const char *path)
{
    struct gd_grpc_client_call *call;

    if (gd_grpc_client_start(trainer->client, path, NULL, 0, &ops, trainer, &call, NULL) != GD_OK) {
        bench_fail("cannot start a call");
    }
    return call;
}

static Debugger__EventReply *send_one(struct bench_trainer *trainer, const char *path,
                                      const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(len + 1);
    struct gd_grpc_client_call *call = start_call(trainer, path);

    if (!bytes) {
        bench_fail("out of memory");
    }
    protobuf_c_message_pack(message, bytes);
    gd_grpc_client_send(call, bytes, len);
    gd_grpc_client_half_close(call);
    free(bytes);
    return run_call(trainer);
}

/* --- the session --- */

static Debugger__Metadata metadata_at(int32_t step)
{
    Debugger__Metadata metadata = DEBUGGER__METADATA__INIT;

    metadata.device_name = (char *)(uintptr_t) "0:1";
    metadata.backend = (char *)(uintptr_t) "Ascend";
    metadata.cur_step = step;
    return metadata;
}

static void send_metadata(struct bench_trainer *trainer)
{
    Debugger__Metadata metadata = metadata_at(0);

    metadata.graph_num = 1;
    metadata.ms_version = (char *)(uintptr_t) "1.5.0";
    Debugger__EventReply *reply = send_one(trainer, PATH("SendMetadata"), &metadata.base);
    if (reply->cmd_case != DEBUGGER__EVENT_REPLY__CMD_VERSION_MATCHED || !reply->version_matched) {
        bench_fail("the debugger rejected the version");
    }
    debugger__event_reply__free_unpacked(reply, NULL);
}

static void send_graph(struct bench_trainer *trainer, size_t elements)
{
    Debugger__TensorShapeProto__Dimension dim = DEBUGGER__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    Debugger__TensorShapeProto__Dimension *dims[] = {&dim};
    Debugger__TensorShapeProto shape = DEBUGGER__TENSOR_SHAPE_PROTO__INIT;
    Debugger__TypeProto__Tensor tensor = DEBUGGER__TYPE_PROTO__TENSOR__INIT;
    Debugger__TypeProto type = DEBUGGER__TYPE_PROTO__INIT;
    Debugger__ParameterProto parameter = DEBUGGER__PARAMETER_PROTO__INIT;
    Debugger__ParameterProto *parameters[] = {&parameter};
    Debugger__GraphProto graph = DEBUGGER__GRAPH_PROTO__INIT;
    Debugger__Chunk chunk = DEBUGGER__CHUNK__INIT;
    uint8_t bytes[512];

    dim.has_size = true;
    dim.size = (int64_t)elements;
    shape.n_dim = 1;
    shape.dim = dims;
    tensor.has_elem_type = true;
    tensor.elem_type = DEBUGGER__DATA_TYPE__DT_FLOAT32;
    tensor.shape = &shape;
    type.has_data_type = true;
    type.data_type = DEBUGGER__DATA_TYPE__DT_TENSOR;
    type.value_case = DEBUGGER__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type.tensor_type = &tensor;
    parameter.name = (char *)(uintptr_t)BENCH_NODE;
    parameter.type = &type;
    graph.name = (char *)(uintptr_t) "kernel_graph_0";
    graph.n_parameters = 1;
    graph.parameters = parameters;
    if (debugger__graph_proto__get_packed_size(&graph) > sizeof(bytes)) {
        bench_fail("the graph exceeds its buffer");
    }
    chunk.buffer.data = bytes;
    chunk.buffer.len = debugger__graph_proto__pack(&graph, bytes);
    debugger__event_reply__free_unpacked(send_one(trainer, PATH("SendGraph"), &chunk.base), NULL);
}

struct bench_trainer *bench_trainer_start(const char *address, size_t elements)
{
    struct bench_trainer *trainer = calloc(1, sizeof(*trainer));

    if (!trainer || gd_grpc_connect(address, 0, &trainer->fd, NULL) != GD_OK ||
        gd_grpc_client_create(address, 4 << 20, &trainer->client, NULL) != GD_OK) {
        bench_fail("the training process cannot connect to %s", address);
    }
    send_metadata(trainer);
    send_graph(trainer, elements);
    return trainer;
}

void bench_trainer_end(struct bench_trainer *trainer)
{
    gd_grpc_client_destroy(trainer->client);
    close(trainer->fd);
    free(trainer);
}

Debugger__EventReply *bench_trainer_wait(struct bench_trainer *trainer, int32_t step)
{
    Debugger__Metadata metadata = metadata_at(step);

    return send_one(trainer, PATH("WaitCMD"), &metadata.base);
}

static void free_tail(void *tail, bool sent)
{
    (void)sent;
    free(tail);
}

/* Sends a TensorProto in three pieces, fields in the order of a real client: before the content,
 * the content without copying it, after the content. */
static void send_piece(struct gd_grpc_client_call *call, const uint8_t *data, size_t len,
                       size_t elements, bool last)
{
    Debugger__TensorProto tensor = DEBUGGER__TENSOR_PROTO__INIT;
    int64_t dims[] = {(int64_t)elements};
    uint8_t before[256], after[64], *p = before;

    tensor.node_name = (char *)(uintptr_t)BENCH_NODE;
    tensor.slot = (char *)(uintptr_t) "0";
    p += debugger__tensor_proto__pack(&tensor, before);
    *p++ = 0x1a; /* tensor_content */
    for (size_t left = len; left > 0; left >>= 7) {
        *p++ = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    }
    tensor = (Debugger__TensorProto)DEBUGGER__TENSOR_PROTO__INIT;
    tensor.n_dims = 1;
    tensor.dims = dims;
    tensor.has_data_type = true;
    tensor.data_type = DEBUGGER__DATA_TYPE__DT_FLOAT32;
    tensor.has_finished = true;
    tensor.finished = last;
    size_t after_len = debugger__tensor_proto__pack(&tensor, after);
    uint8_t *tail = malloc(after_len);
    if (!tail) {
        bench_fail("out of memory");
    }
    memcpy(tail, after, after_len);
    const struct gd_grpc_piece pieces[] = {{data, len}, {tail, after_len}};
    if (gd_grpc_client_send_pieces(call, before, (size_t)(p - before), pieces, 2, free_tail,
                                   tail) != GD_OK) {
        bench_fail("cannot queue a piece");
    }
}

void bench_trainer_send_base(struct bench_trainer *trainer, size_t elements)
{
    Debugger__TensorBase base = DEBUGGER__TENSOR_BASE__INIT;
    int64_t shape[] = {(int64_t)elements};

    base.data_type = DEBUGGER__DATA_TYPE__DT_FLOAT32;
    base.n_shape = 1;
    base.shape = shape;
    base.data_size = (int64_t)elements * 4;
    debugger__event_reply__free_unpacked(send_one(trainer, PATH("SendTensorBase"), &base.base),
                                         NULL);
}

void bench_trainer_send_tensor(struct bench_trainer *trainer, const void *data, size_t elements)
{
    struct gd_grpc_client_call *call = start_call(trainer, PATH("SendTensors"));
    size_t bytes = elements * 4;

    for (size_t at = 0; at < bytes; at += BENCH_PIECE) {
        size_t len = bytes - at < BENCH_PIECE ? bytes - at : BENCH_PIECE;
        send_piece(call, (const uint8_t *)data + at, len, elements, at + len == bytes);
    }
    gd_grpc_client_half_close(call);
    debugger__event_reply__free_unpacked(run_call(trainer), NULL);
}

void bench_trainer_traffic(const struct bench_trainer *trainer, uint64_t *out, uint64_t *in)
{
    *out = trainer->out;
    *in = trainer->in;
}

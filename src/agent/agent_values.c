// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_digest.h"
#include "agent/agent_io.h"
#include "agent/agent_metric.h"
#include "agent/agent_shm.h"
#include "agent/agent_source.h"
#include "agent/agent_tensor.h"
#include "agent/agent_varint.h"
#include "agent/agent_watch.h"

#define SHM_FROM  ((size_t)64 * 1024) /* smaller values are faster through the socket */
#define HEAD_SIZE 64

/* ---- values through the socket ------------------------------------------------------- */

/* Encodes FromTrainer{tensor_data{request, offset, data}} up to the data bytes, which are then sent
 * without another copy. */
static size_t data_head(unsigned char *head, uint64_t request, uint64_t offset, size_t len)
{
    unsigned char inner[HEAD_SIZE / 2], *end = inner, *at = head;
    *end++ = 1 << 3;
    end = agent_put_varint(end, request);
    *end++ = 2 << 3;
    end = agent_put_varint(end, offset);
    *end++ = 3 << 3 | 2;
    end = agent_put_varint(end, len);
    size_t inner_len = (size_t)(end - inner);
    *at++ = 6 << 3 | 2;
    at = agent_put_varint(at, inner_len + len);
    memcpy(at, inner, inner_len);
    return (size_t)(at - head) + inner_len;
}

static void release_piece(void *ctx, bool sent)
{
    (void)sent;
    free(ctx);
}

/* Takes the data over. */
static int send_data(struct agent_io *io, uint64_t request, uint64_t offset, unsigned char *data,
                     size_t len)
{
    unsigned char head[HEAD_SIZE];
    size_t head_len = data_head(head, request, offset, len);
    struct gd_grpc_piece piece = {data, len};
    int rc = gd_grpc_client_send_pieces(io->call, head, head_len, &piece, 1, release_piece, data);
    if (rc != GD_OK) {
        free(data);
    }
    return rc;
}

static int send_piece(struct agent_io *io)
{
    struct agent_transfer *t = &io->transfer;
    size_t item = gd_dtype_size(t->value.tensor.dtype);
    int64_t count = (int64_t)(AGENT_CHUNK / item);
    count = count < t->count - t->done ? count : t->count - t->done;
    size_t len = (size_t)count * item;
    unsigned char *data = malloc(len);
    if (!data) {
        t->active = false;
        return agent_values_refuse(io, t->request, CODE(NO_MEMORY),
                                   "out of memory in the training process");
    }
    agent_gather(&t->value.tensor, t->done, count, data);
    int rc = send_data(io, t->request, (uint64_t)t->done * item, data, len);
    if (rc != GD_OK) {
        return rc;
    }
    t->done += count;
    t->active = t->done < t->count;
    return GD_OK;
}

/* ---- requests ------------------------------------------------------------------------ */

/* whole: NULL, or the shape that the value abridges. */
static int send_begin(struct agent_io *io, uint64_t request, struct agent_value *value,
                      size_t bytes, Gradb__V1__ShmPlace *place, struct gd_shape *whole)
{
    Gradb__V1__TensorBegin m = GRADB__V1__TENSOR_BEGIN__INIT;
    if (whole) {
        m.whole = whole->dim;
        m.n_whole = (size_t)whole->rank;
    }
    m.request = request;
    m.dtype = (Gradb__V1__DataType)value->tensor.dtype;
    m.shape = value->tensor.shape.dim;
    m.n_shape = (size_t)value->tensor.shape.rank;
    m.bytes = bytes;
    m.step = agent_said_step(io->agent, value->step);
    m.shm = place;
    return agent_wire_send(io, &m.base);
}

static int send_value(struct agent_io *io, const Gradb__V1__Fetch *fetch, struct agent_value *value,
                      size_t bytes)
{
    int64_t count = gd_shape_count(&value->tensor.shape);
    if (fetch->allow_shm && io->shm_ok && bytes >= SHM_FROM) {
        Gradb__V1__ShmPlace place;
        void *to = agent_shm_take(io->shm, bytes, &place);
        if (to) {
            agent_gather(&value->tensor, 0, count, to);
            return send_begin(io, fetch->request, value, bytes, &place, NULL);
        }
    }
    int rc = send_begin(io, fetch->request, value, bytes, NULL, NULL);
    if (rc == GD_OK && count > 0) {
        io->transfer = (struct agent_transfer){
            .active = true, .request = fetch->request, .value = *value, .count = count};
    }
    return rc;
}

/* What a print leaves of it, if that is less and not too much for one message. */
static bool abridge_value(const struct agent_value *value, struct agent_value *ret, size_t *bytes)
{
    *ret = *value;
    return gd_shape_count(&value->tensor.shape) > 0 &&
           gd_shape_abridge(&value->tensor.shape, &ret->tensor.shape) &&
           gd_shape_bytes(&ret->tensor.shape, value->tensor.dtype, bytes, NULL) == GD_OK &&
           *bytes <= AGENT_CHUNK;
}

static int send_abridged(struct agent_io *io, uint64_t request, struct agent_value *value,
                         struct agent_value *part, size_t bytes)
{
    unsigned char *data = malloc(bytes);
    if (!data) {
        return agent_values_refuse(io, request, CODE(NO_MEMORY),
                                   "out of memory in the training process");
    }
    gd_abridged_copy(data, &value->tensor, &part->tensor.shape);
    int rc = send_begin(io, request, part, bytes, NULL, &value->tensor.shape);
    if (rc != GD_OK) {
        free(data);
        return rc;
    }
    return send_data(io, request, 0, data, bytes);
}

/* `error` and `text` say why there is no value, -1: there is one; `cut`: it is already sliced. */
static int answer_fetch(struct agent_io *io, const Gradb__V1__Fetch *fetch, int error,
                        struct agent_value *value, bool cut, char text[160])
{
    if (error == -1 && !cut) {
        error = agent_cut(value, fetch->n_slice, fetch->slice, text);
    }
    size_t bytes = 0;
    struct agent_value part;
    if (error == -1 && fetch->abridge && abridge_value(value, &part, &bytes)) {
        return send_abridged(io, fetch->request, value, &part, bytes);
    }
    if (error == -1 &&
        gd_shape_bytes(&value->tensor.shape, value->tensor.dtype, &bytes, NULL) != GD_OK) {
        error = CODE(INVALID);
        snprintf(text, 160, "the slice's shape is invalid");
    }
    if (error == -1 && io->max_tensor && bytes > io->max_tensor) {
        error = CODE(TOO_LARGE);
        snprintf(text, 160,
                 "the value has %zu bytes, the debugger accepts %llu: ask for a slice, or set "
                 "max-tensor",
                 bytes, (unsigned long long)io->max_tensor);
    }
    if (error != -1) {
        return agent_values_refuse(io, fetch->request, error, text);
    }
    return send_value(io, fetch, value, bytes);
}

static int answer_stats(struct agent_io *io, const Gradb__V1__StatsRequest *request,
                        struct agent_look *look)
{
    struct agent_stats_message m;
    look->value.step = agent_said_step(io->agent, look->value.step);
    agent_stats_message(look, request->options, &m);
    int rc;
    if (look->code == -1) {
        m.value.node = request->node;
        m.value.slot = request->slot;
        Gradb__V1__StatsReply reply = GRADB__V1__STATS_REPLY__INIT;
        reply.request = request->request;
        reply.value = &m.value;
        rc = agent_wire_send(io, &reply.base);
    } else {
        rc = agent_values_refuse(io, request->request, look->code, look->text);
    }
    agent_stats_message_free(&m);
    return rc;
}

static int answer_command(struct agent_io *io, uint64_t request, struct agent_ask *ask)
{
    if (ask->code != -1) {
        return agent_values_refuse(io, request, ask->code, ask->text);
    }
    Gradb__V1__CommandReply m = GRADB__V1__COMMAND_REPLY__INIT;
    m.request = request;
    m.text = ask->reply;
    return agent_wire_send(io, &m.base);
}

/* ---- answering ------------------------------------------------------------------------------- */

/* Answers on this thread, because all addresses are known and the training thread is stopped. */
static int answer_request(struct agent_io *io, const agent_to *m)
{
    struct agent *a = io->agent;
    char text[160];
    if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_FETCH) {
        struct agent_value value;
        const Gradb__V1__Fetch *f = m->fetch;
        int error = agent_locate(a, f->node, f->slot, f->iteration, &value, text);
        return answer_fetch(io, f, error, &value, false, text);
    }
    if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_STATS) {
        struct agent_look look = {.code = -1};
        const Gradb__V1__StatsRequest *s = m->stats;
        uint64_t start = agent_now_ns();
        agent_stats_look(a, s->node, s->slot, s->iteration, s->options, &look);
        look.cost_ns = agent_now_ns() - start;
        return answer_stats(io, s, &look);
    }
    if (strcmp(m->command->name, AGENT_METRIC) == 0) {
        struct agent_ask ask = {.code = -1};
        pthread_mutex_lock(&a->lock);
        ask.code = agent_metric_request(a, m->command->args, &ask.reply, ask.text);
        pthread_mutex_unlock(&a->lock);
        int rc = answer_command(io, agent_request_id(m), &ask);
        free(ask.reply);
        return rc;
    }
    int error = agent_digest_begin(io, m->command, text);
    return error == -1 ? GD_OK : agent_values_refuse(io, agent_request_id(m), error, text);
}

/* Sends what the stopped thread has found. Nobody else touches the request in this state. */
static int answer_asked(struct agent_io *io, struct agent_ask *ask)
{
    const agent_to *m = ask->message;
    int rc;
    if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_FETCH) {
        rc = answer_fetch(io, m->fetch, ask->code, &ask->value, ask->cut, ask->text);
    } else if (m->msg_case == GRADB__V1__TO_TRAINER__MSG_STATS) {
        rc = answer_stats(io, m->stats, &ask->look);
    } else {
        rc = answer_command(io, agent_request_id(m), ask);
    }
    if (!io->transfer.active) {
        agent_ask_end(io->agent);
    }
    return rc;
}

/* NULL: none. The caller frees it. */
static agent_to *next_request(struct agent_io *io)
{
    struct agent_request *request = io->requests;
    if (!request) {
        return NULL;
    }
    io->requests = request->next;
    if (!io->requests) {
        io->requests_end = &io->requests;
    }
    io->request_count--;
    agent_to *message = request->message;
    free(request);
    return message;
}

/* Requests about bound values, where the source only offers commands. */
static bool needs_no_source(const struct agent *a, const agent_to *m)
{
    return !agent_has_values(a) && (m->msg_case != GRADB__V1__TO_TRAINER__MSG_COMMAND ||
                                    strcmp(m->command->name, "digest") == 0);
}

/* With a source: posts one request at a time to the stopped thread. */
static bool pump_asked(struct agent_io *io, int *code)
{
    enum agent_ask_state state = agent_ask_state(io->agent);
    if (state == ASK_DONE) {
        *code = answer_asked(io, io->agent->ask);
        return true;
    }
    agent_to *message = state == ASK_NONE ? next_request(io) : NULL;
    if (message && needs_no_source(io->agent, message)) {
        *code = answer_request(io, message);
        gradb__v1__to_trainer__free_unpacked(message, NULL);
        return true;
    }
    if (message) {
        agent_ask_post(io->agent, message);
    }
    return false; /* the stopped thread wakes us when it is done */
}

bool agent_values_pump(struct agent_io *io, int *code)
{
    if (io->transfer.active) {
        *code = send_piece(io);
        if (!io->transfer.active) {
            agent_ask_end(io->agent);
        }
        return true;
    }
    if (io->digest.active) {
        *code = agent_digest_go_on(io);
        return true;
    }
    if (io->agent->ask) {
        return pump_asked(io, code);
    }
    agent_to *message = next_request(io);
    if (!message) {
        return false;
    }
    *code = answer_request(io, message);
    gradb__v1__to_trainer__free_unpacked(message, NULL);
    return true;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Requests for values and statistics, and their answers. An inconsistent answer ends its request
 * with an error and does not affect the session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "proto/envelope.h"
#include "proto/v1/v1_impl.h"

#define LONG_FETCH  ((size_t)1 << 20) /* bytes; smaller ones show no progress */
#define MAX_COMMAND 65536             /* bytes of name and arguments */
#define MAX_REPLY   (1 << 20)         /* bytes of the answer */

/* ---- the list ------------------------------------------------------------------------ */

static int new_request(struct v1_target *t, enum v1_request_kind kind,
                       const struct gd_tensor_ref *ref, struct v1_request **ret, struct gd_err *err)
{
    if (!t->conn) {
        return gd_fail(err, GD_ELOST, "the training process is gone");
    }
    bool no_node = kind == V1_COMMAND && ref->node == GD_NO_NODE;
    if (!no_node && v1_target_wire(t, ref->node) == 0) {
        return gd_fail(err, GD_ENOTFOUND, "the training process does not know this node");
    }
    if (t->request_count >= V1_MAX_REQUESTS) {
        return gd_fail(err, GD_ELIMIT, "%d requests are already waiting for the training process",
                       V1_MAX_REQUESTS);
    }
    struct v1_request *request = calloc(1, sizeof(*request));
    if (!request) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a request");
    }
    request->id = ++t->next_request;
    request->kind = kind;
    request->ref = *ref;
    *ret = request;
    return GD_OK;
}

static void request_free(struct v1_request *request)
{
    gd_progress_end(request->progress);
    gd_tensor_unref(request->tensor);
    free(request->slice);
    free(request);
}

/* Takes over the request: it waits for its answer, or is freed. */
static int send_request(struct v1_target *t, struct v1_request *request,
                        const ProtobufCMessage *message, struct gd_err *err)
{
    int rc = v1_target_send(t, message, err);
    if (rc != GD_OK) {
        request_free(request);
        return rc;
    }
    *t->requests_end = request;
    t->requests_end = &request->next;
    t->request_count++;
    return GD_OK;
}

/* Answers arrive in the order of the requests, so the first is nearly always the one. The list is
 * ordered by id, so that an unknown id does not cost a walk through all of it. */
static struct v1_request **find_request(struct v1_target *t, uint64_t id)
{
    struct v1_request **p = &t->requests;
    while (*p && (*p)->id < id) {
        p = &(*p)->next;
    }
    return *p && (*p)->id == id ? p : NULL;
}

static struct v1_request **find_kind(struct v1_target *t, uint64_t id, enum v1_request_kind kind)
{
    struct v1_request **p = find_request(t, id);
    return p && (*p)->kind == kind ? p : NULL;
}

static struct v1_request *unlink_request(struct v1_target *t, struct v1_request **p)
{
    struct v1_request *request = *p;
    *p = request->next;
    if (!request->next) {
        t->requests_end = p;
    }
    t->request_count--;
    return request;
}

/* The request is no longer in the list: its callback may add others. */
static void answer_error(struct v1_request *request, const struct gd_err *err)
{
    if (request->kind == V1_FETCH) {
        request->tensor_fn(request->ctx, NULL, -1, err);
    } else if (request->kind == V1_COMMAND) {
        request->command_fn(request->ctx, NULL, err);
    } else {
        request->stats_fn(request->ctx, GD_DT_NONE, NULL, NULL, -1, err);
    }
    request_free(request);
}

void v1_value_drop_all(struct v1_target *t, int code, const char *why)
{
    struct gd_err err;
    gd_fail(&err, code, "%s", why);
    while (t->requests) {
        answer_error(unlink_request(t, &t->requests), &err);
    }
}

static void cancel_request(struct v1_target *t, uint64_t id)
{
    Gradb__V1__Cancel m = GRADB__V1__CANCEL__INIT;
    m.request = id;
    v1_target_send(t, &m.base, NULL);
}

/* ---- asking -------------------------------------------------------------------------- */

static void encode_slice(const struct gd_slice *slice, Gradb__V1__SliceItem *items,
                         Gradb__V1__SliceItem **list)
{
    static const Gradb__V1__SliceItem__Kind kinds[] = {
        [GD_SLICE_INDEX] = GRADB__V1__SLICE_ITEM__KIND__INDEX,
        [GD_SLICE_RANGE] = GRADB__V1__SLICE_ITEM__KIND__RANGE,
        [GD_SLICE_ELLIPSIS] = GRADB__V1__SLICE_ITEM__KIND__ELLIPSIS,
        [GD_SLICE_NEWAXIS] = GRADB__V1__SLICE_ITEM__KIND__NEWAXIS,
    };
    for (int i = 0; i < slice->count; i++) {
        const struct gd_slice_item *from = &slice->item[i];
        Gradb__V1__SliceItem *m = &items[i];
        gradb__v1__slice_item__init(m);
        m->kind = kinds[from->kind];
        m->start = from->start;
        m->stop = from->stop;
        m->step = from->step;
        m->has_start = from->has_start;
        m->has_stop = from->has_stop;
        m->has_step = from->has_step;
        list[i] = m;
    }
}

static int send_fetch(struct v1_target *t, struct v1_request *request, const struct gd_slice *slice,
                      struct gd_err *err)
{
    Gradb__V1__SliceItem items[GD_MAX_SLICE_ITEMS], *list[GD_MAX_SLICE_ITEMS];
    Gradb__V1__Fetch m = GRADB__V1__FETCH__INIT;
    v1_target_flush(t); /* so that the training process can reuse what we have released */
    m.request = request->id;
    m.node = v1_target_wire(t, request->ref.node);
    m.slot = request->ref.slot;
    m.iteration = request->ref.iter == GD_PREVIOUS ? GRADB__V1__ITERATION__PREVIOUS
                                                   : GRADB__V1__ITERATION__CURRENT;
    m.allow_shm = t->shm && t->service->debugger->settings.shared_memory;
    m.abridge = request->abridge;
    if (slice) {
        encode_slice(slice, items, list);
        m.slice = list;
        m.n_slice = (size_t)slice->count;
    }
    return send_request(t, request, &m.base, err);
}

int v1_value_fetch(struct gd_target *base, const struct gd_tensor_ref *ref,
                   const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    struct v1_target *t = (struct v1_target *)base;
    struct v1_request *request = NULL;
    int rc = new_request(t, V1_FETCH, ref, &request, err);
    if (rc != GD_OK) {
        return rc;
    }
    request->tensor_fn = fn;
    request->ctx = ctx;
    bool cut = slice && slice->count > 0;
    request->whole = !cut;
    if (cut && !v1_target_can(t, GRADB__V1__CAPABILITY__CAPABILITY_SLICE)) {
        request->slice = malloc(sizeof(*slice));
        if (!request->slice) {
            request_free(request);
            return gd_fail(err, GD_ENOMEM, "out of memory for a request");
        }
        *request->slice = *slice;
        request->whole = true;
        cut = false;
    }
    request->abridge = slice && slice->abridge && !request->slice;
    return send_fetch(t, request, cut ? slice : NULL, err);
}

int v1_value_stats(struct gd_target *base, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                   void *ctx, struct gd_err *err)
{
    struct v1_target *t = (struct v1_target *)base;
    struct v1_request *request = NULL;
    int rc = new_request(t, V1_STATS, ref, &request, err);
    if (rc != GD_OK) {
        return rc;
    }
    request->stats_fn = fn;
    request->ctx = ctx;
    Gradb__V1__StatsOptions options = GRADB__V1__STATS_OPTIONS__INIT;
    options.against_previous =
        ref->iter == GD_CURRENT && v1_target_can(t, GRADB__V1__CAPABILITY__CAPABILITY_PREVIOUS);
    Gradb__V1__StatsRequest m = GRADB__V1__STATS_REQUEST__INIT;
    m.request = request->id;
    m.node = v1_target_wire(t, ref->node);
    m.slot = ref->slot;
    m.iteration =
        ref->iter == GD_PREVIOUS ? GRADB__V1__ITERATION__PREVIOUS : GRADB__V1__ITERATION__CURRENT;
    m.options = &options;
    return send_request(t, request, &m.base, err);
}

int v1_value_command(struct gd_target *base, const char *name, const char *args, gd_node_id node,
                     gd_command_fn fn, void *ctx, struct gd_err *err)
{
    struct v1_target *t = (struct v1_target *)base;
    struct gd_tensor_ref ref = {.node = node};
    struct v1_request *request = NULL;
    if (strlen(name) + strlen(args) > MAX_COMMAND) {
        return gd_fail(err, GD_ELIMIT, "a command of more than %d bytes", MAX_COMMAND);
    }
    int rc = new_request(t, V1_COMMAND, &ref, &request, err);
    if (rc != GD_OK) {
        return rc;
    }
    request->command_fn = fn;
    request->ctx = ctx;
    Gradb__V1__Command m = GRADB__V1__COMMAND__INIT;
    m.request = request->id;
    m.name = gd_envelope_text(name);
    m.args = gd_envelope_text(args);
    m.node = node == GD_NO_NODE ? 0 : v1_target_wire(t, node);
    return send_request(t, request, &m.base, err);
}

/* ---- tensors ------------------------------------------------------------------------- */

static void finish_tensor(struct v1_target *t, struct v1_request **p)
{
    struct v1_request *request = unlink_request(t, p);
    struct gd_tensor *tensor = request->tensor;
    struct gd_err err;
    request->tensor = NULL;
    if (request->slice) {
        struct gd_tensor *part = NULL;
        int rc = gd_tensor_slice(tensor, request->slice, &part, &err);
        gd_tensor_unref(tensor);
        if (rc != GD_OK) {
            answer_error(request, &err);
            return;
        }
        tensor = part;
    }
    request->tensor_fn(request->ctx, tensor, request->step, NULL);
    gd_tensor_unref(tensor);
    request_free(request);
}

static void fail_tensor(struct v1_target *t, struct v1_request **p, const struct gd_err *err)
{
    cancel_request(t, (*p)->id);
    answer_error(unlink_request(t, p), err);
}

/* Records a shape that the graph did not know, or that has changed. */
static void learn_output(struct v1_target *t, const struct gd_tensor_ref *ref, enum gd_dtype dtype,
                         const struct gd_shape *shape)
{
    struct gd_graph *graph = t->base.session->graph;
    struct gd_output known;
    if (gd_graph_output(graph, ref->node, ref->slot, &known) &&
        (known.dtype != dtype || !gd_shape_equal(&known.shape, shape))) {
        struct gd_output output = {.dtype = dtype, .shape = *shape};
        gd_graph_set_output(graph, ref->node, ref->slot, &output);
    }
}

static void say_mapped(struct v1_target *t, uint32_t segment)
{
    Gradb__V1__ShmMapped m = GRADB__V1__SHM_MAPPED__INIT;
    m.segment = segment;
    v1_target_send(t, &m.base, NULL);
}

static void begin_progress(struct v1_target *t, struct v1_request *request)
{
    struct gd_node_info info;
    char what[160] = "fetching a value";
    if (request->bytes < LONG_FETCH) {
        return;
    }
    if (gd_graph_node(t->base.session->graph, request->ref.node, &info)) {
        const char *slash = strrchr(info.name, '/');
        snprintf(what, sizeof(what), "fetching %.120s:%u", slash ? slash + 1 : info.name,
                 (unsigned)request->ref.slot);
    }
    request->progress = gd_progress_begin(t->service->debugger, what, "B", request->bytes);
}

static int check_size(const struct v1_target *t, uint64_t announced, enum gd_dtype dtype,
                      const struct gd_shape *shape, size_t bytes, struct gd_err *err)
{
    uint64_t max = t->service->debugger->settings.max_tensor;
    if (announced != bytes) {
        char text[160];
        return gd_fail(err, GD_EPROTO,
                       "the training process announced %llu bytes for a %s tensor of shape %s, "
                       "which takes %zu",
                       (unsigned long long)announced, gd_dtype_name(dtype),
                       gd_shape_text(shape, text, sizeof(text)), bytes);
    }
    if (bytes > max) {
        return gd_fail(err, GD_ELIMIT,
                       "the tensor has %zu bytes, which exceeds max-tensor (%llu): request a "
                       "slice, or `set max-tensor`",
                       bytes, (unsigned long long)max);
    }
    return GD_OK;
}

/* The shape before it was abridged, if it was. */
static int read_whole(const struct v1_request *request, const Gradb__V1__TensorBegin *m,
                      const struct gd_shape *shape, struct gd_shape *ret, struct gd_err *err)
{
    struct gd_shape left;

    *ret = *shape;
    int rc = m->n_whole ? v1_shape(m->n_whole, m->whole, false, ret, err) : GD_OK;
    if (rc == GD_OK && m->n_whole &&
        (!request->abridge || !gd_shape_abridge(ret, &left) || !gd_shape_equal(&left, shape))) {
        char text[160];
        rc = gd_fail(err, GD_EPROTO, "the training process abridged a tensor to the shape %s",
                     gd_shape_text(shape, text, sizeof(text)));
    }
    return rc;
}

static int make_tensor(struct v1_target *t, struct v1_request *request,
                       const Gradb__V1__TensorBegin *m, enum gd_dtype dtype,
                       const struct gd_shape *shape, struct gd_err *err)
{
    if (!m->shm) {
        begin_progress(t, request);
        return gd_tensor_create(dtype, shape, request->bytes, &request->tensor, err);
    }
    if (!t->shm) {
        return gd_fail(err, GD_EPROTO, "a tensor in shared memory, which was not negotiated");
    }
    bool mapped = false;
    int rc =
        v1_shm_tensor(t->shm, m->shm, dtype, shape, request->bytes, &request->tensor, &mapped, err);
    if (mapped) {
        say_mapped(t, m->shm->segment);
    }
    request->received = request->bytes;
    return rc;
}

static int begin_value(struct v1_target *t, struct v1_request *request,
                       const Gradb__V1__TensorBegin *m, struct gd_err *err)
{
    enum gd_dtype dtype = v1_dtype(m->dtype);
    struct gd_shape shape, whole;
    size_t bytes = 0;
    int rc = v1_shape(m->n_shape, m->shape, false, &shape, err);
    if (rc == GD_OK) {
        rc = read_whole(request, m, &shape, &whole, err);
    }
    if (rc == GD_OK) {
        rc = gd_shape_bytes(&shape, dtype, &bytes, err);
    }
    if (rc == GD_OK) {
        rc = check_size(t, m->bytes, dtype, &shape, bytes, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    request->step = m->step;
    request->bytes = bytes;
    if (request->whole) {
        learn_output(t, &request->ref, dtype, &whole);
    }
    rc = make_tensor(t, request, m, dtype, &shape, err);
    if (rc == GD_OK && m->n_whole) {
        request->tensor->abridged = true;
        request->tensor->whole = whole;
    }
    return rc;
}

void v1_value_begin(struct v1_target *t, const Gradb__V1__TensorBegin *m)
{
    struct v1_request **p = find_kind(t, m->request, V1_FETCH);
    struct gd_err why;
    if (!p) {
        return; /* cancelled */
    }
    if ((*p)->tensor) {
        gd_fail(&why, GD_EPROTO, "the training process began to send the same value twice");
        fail_tensor(t, p, &why);
    } else if (begin_value(t, *p, m, &why) != GD_OK) {
        fail_tensor(t, p, &why);
    } else if ((*p)->received == (*p)->bytes) {
        finish_tensor(t, p);
    }
}

void v1_value_data(struct v1_target *t, const Gradb__V1__TensorData *m)
{
    struct v1_request **p = find_kind(t, m->request, V1_FETCH);
    struct gd_err why;
    if (!p) {
        return;
    }
    struct v1_request *request = *p;
    if (gd_progress_is_stopped(request->progress)) {
        gd_fail(&why, GD_EINTR, "stopped after %zu of %zu bytes", request->received,
                request->bytes);
        fail_tensor(t, p, &why);
        return;
    }
    unsigned char *to = request->tensor ? gd_tensor_bytes_mut(request->tensor) : NULL;
    if (!to || m->offset != request->received || m->data.len > request->bytes - request->received) {
        gd_fail(
            &why, GD_EPROTO,
            "the training process sent %zu bytes at %llu of a value of %zu, where %zu was expected",
            m->data.len, (unsigned long long)m->offset, request->bytes, request->received);
        fail_tensor(t, p, &why);
        return;
    }
    if (m->data.len) {
        memcpy(to + request->received, m->data.data, m->data.len);
        request->received += m->data.len;
        gd_progress_at(request->progress, request->received);
    }
    if (request->received == request->bytes) {
        finish_tensor(t, p);
    }
}

/* ---- statistics and errors ----------------------------------------------------------- */

int v1_value_statistics(struct v1_target *t, const Gradb__V1__StatsReply *m, struct gd_err *err)
{
    struct v1_request **p = find_kind(t, m->request, V1_STATS);
    if (!p) {
        return GD_OK;
    }
    if (!m->value || !m->value->stats) {
        return gd_fail(err, GD_EPROTO, "a StatsReply without statistics");
    }
    enum gd_dtype dtype = v1_dtype(m->value->dtype);
    struct gd_shape shape;
    int rc = v1_shape(m->value->n_shape, m->value->shape, false, &shape, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_stats stats;
    v1_value_decode(m->value->stats, &stats);
    struct v1_request *request = unlink_request(t, p);
    learn_output(t, &request->ref, dtype, &shape);
    request->stats_fn(request->ctx, dtype, &shape, &stats, m->value->step, NULL);
    request_free(request);
    return GD_OK;
}

void v1_value_reply(struct v1_target *t, const Gradb__V1__CommandReply *m)
{
    struct v1_request **p = find_kind(t, m->request, V1_COMMAND);
    struct gd_err why;
    if (!p) {
        return; /* cancelled */
    }
    struct v1_request *request = unlink_request(t, p);
    if (strlen(m->text) > MAX_REPLY) {
        gd_fail(&why, GD_ELIMIT,
                "the training process answered with %zu bytes: at most %d are allowed",
                strlen(m->text), MAX_REPLY);
        answer_error(request, &why);
        return;
    }
    request->command_fn(request->ctx, m->text, NULL);
    request_free(request);
}

void v1_value_error(struct v1_target *t, const Gradb__V1__RequestError *m)
{
    static const int codes[] = {
        [GRADB__V1__REQUEST_ERROR__CODE__FAILED] = GD_EIO,
        [GRADB__V1__REQUEST_ERROR__CODE__INVALID] = GD_EINVAL,
        [GRADB__V1__REQUEST_ERROR__CODE__NOT_FOUND] = GD_ENOTFOUND,
        [GRADB__V1__REQUEST_ERROR__CODE__NO_VALUE] = GD_ENODATA,
        [GRADB__V1__REQUEST_ERROR__CODE__RUNNING] = GD_ESTATE,
        [GRADB__V1__REQUEST_ERROR__CODE__UNSUPPORTED] = GD_EUNSUPPORTED,
        [GRADB__V1__REQUEST_ERROR__CODE__TOO_LARGE] = GD_ELIMIT,
        [GRADB__V1__REQUEST_ERROR__CODE__NO_MEMORY] = GD_ENOMEM,
        [GRADB__V1__REQUEST_ERROR__CODE__NOT_RUN] = GD_ENODATA,
        [GRADB__V1__REQUEST_ERROR__CODE__GONE] = GD_ENODATA,
    };
    struct v1_request **p = find_request(t, m->request);
    size_t code = (size_t)m->code;
    struct gd_err why;
    gd_fail(&why, code < sizeof(codes) / sizeof(codes[0]) ? codes[code] : GD_EIO, "%.300s",
            m->text[0] ? m->text : "the training process gave no reason");
    if (p) {
        answer_error(unlink_request(t, p), &why);
    } else {
        v1_watch_error(t, m->request, &why);
    }
}

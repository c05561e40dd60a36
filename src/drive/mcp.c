// SPDX-License-Identifier: GPL-3.0-or-later
/* Messages in and out. */
#include "drive/mcp_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drive/serve_io.h"
#include "repl/core/repl_impl.h"

#define MOST_QUEUED       1000
#define MOST_QUEUED_BYTES ((size_t)64 << 20)
#define MOST_BATCH        100

/* ---- out ---- */

void mcp_send(struct mcp *mcp, cJSON *message)
{
    struct gd_buf line = GD_BUF_INIT(SIZE_MAX);

    rpc_write(&line, message);
    if (!mcp->broken && !serve_io_write(mcp->out, gd_buf_text(&line), line.len)) {
        mcp->broken = true; /* the client is gone */
        repl_quit(mcp->repl, STATUS_OK);
    }
    gd_buf_deinit(&line);
}

void mcp_answer(struct mcp *mcp, struct mcp_request *request, cJSON *message)
{
    struct mcp_batch *batch = request->batch;

    if (!batch) {
        if (message) {
            mcp_send(mcp, message);
        }
        return;
    }
    if (message) {
        cJSON_AddItemToArray(batch->answers, message);
    }
    request->batch = NULL;
    if (--batch->left > 0) {
        return;
    }
    if (batch->answers->child) {
        mcp_send(mcp, batch->answers);
    } else {
        cJSON_Delete(batch->answers);
    }
    free(batch);
}

static void free_request(struct mcp_request *request)
{
    if (request->batch && --request->batch->left == 0) {
        cJSON_Delete(request->batch->answers);
        free(request->batch);
    }
    rpc_free(&request->message);
    free(request);
}

/* ---- notifications ---- */

static bool same_id(const cJSON *a, const cJSON *b)
{
    return a && b && a->type == b->type && a->valuestring && b->valuestring &&
           strcmp(a->valuestring, b->valuestring) == 0;
}

static void cancel_request(struct mcp *mcp, const cJSON *id)
{
    if (mcp->current && same_id(mcp->current->message.id, id)) {
        mcp->current->cancelled = true;
        drive_cancel(mcp->drive);
        return;
    }
    for (struct mcp_request **at = &mcp->queue; *at; at = &(*at)->next) {
        struct mcp_request *request = *at;
        if (same_id(request->message.id, id)) {
            *at = request->next;
            mcp->queue_end = request->next ? mcp->queue_end : at;
            mcp->queued -= request->bytes;
            mcp->queue_count--;
            mcp_answer(mcp, request, NULL);
            free_request(request);
            return;
        }
    }
}

static void take_notification(struct mcp *mcp, const struct rpc_message *message)
{
    if (message->method && strcmp(message->method, "notifications/cancelled") == 0) {
        cancel_request(mcp, cJSON_GetObjectItemCaseSensitive(message->params, "requestId"));
    }
}

/* ---- requests ---- */

static cJSON *answer_ping(struct mcp *mcp, const struct mcp_request *request)
{
    (void)mcp;
    return rpc_result(request->message.id, mcp_finish(request, cJSON_CreateObject(), false));
}

static const struct method {
    const char *name;
    cJSON *(*serve)(struct mcp *mcp, const struct mcp_request *request);
    bool runs; /* a command: not while another one runs */
} methods[] = {
    {"initialize", mcp_initialize, false},
    {"ping", answer_ping, false},
    {"server/discover", mcp_discover, false},
    {"tools/list", mcp_list_tools, false},
    {"tools/call", mcp_call_tool, true},
    {"resources/list", mcp_list_resources, false},
    {"resources/templates/list", mcp_list_templates, false},
    {"resources/read", mcp_read_resource, true},
    {"logging/setLevel", mcp_set_level, false},
};

/* NULL: there is no such method. */
static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(methods[i].name, name) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

/* Answers a request. A command that it runs may take long; then input is read meanwhile. */
static void serve_request(struct mcp *mcp, struct mcp_request *request)
{
    const struct method *method = find_method(request->message.method);
    struct mcp_request *outer = mcp->current;
    cJSON *answer = NULL;

    mcp->current = request;
    if (mcp_admit(mcp, request, &answer)) {
        answer = method ? method->serve(mcp, request)
                        : rpc_error(request->message.id, RPC_NO_METHOD,
                                    "there is no method \"%.100s\"", request->message.method);
    }
    mcp->current = outer;
    if (request->cancelled) { /* nobody waits for it */
        cJSON_Delete(answer);
        answer = NULL;
    }
    mcp_answer(mcp, request, answer);
    free_request(request);
}

static void add_request(struct mcp *mcp, struct mcp_request *request)
{
    if (mcp->queue_count >= MOST_QUEUED || mcp->queued + request->bytes > MOST_QUEUED_BYTES) {
        mcp_answer(mcp, request,
                   rpc_error(request->message.id, RPC_INTERNAL,
                             "too many requests wait: send more when one is answered"));
        free_request(request);
        return;
    }
    *mcp->queue_end = request;
    mcp->queue_end = &request->next;
    mcp->queued += request->bytes;
    mcp->queue_count++;
}

/* While a command runs, only what does not need the REPL is answered. */
static void take_request(struct mcp *mcp, struct mcp_request *request)
{
    const struct method *method = find_method(request->message.method);

    if (!method || !method->runs) {
        serve_request(mcp, request);
        return;
    }
    if (drive_is_busy(mcp->drive) && mcp_is_interrupt(request)) {
        drive_cancel(mcp->drive); /* both answers come when the training has stopped */
    }
    add_request(mcp, request);
}

static void take_message(struct mcp *mcp, cJSON *root, struct mcp_batch *batch, size_t bytes)
{
    struct rpc_message message;
    cJSON *answer = NULL;
    struct mcp_request *request = calloc(1, sizeof(*request));

    if (!request) {
        cJSON_Delete(root);
        return;
    }
    request->batch = batch;
    request->bytes = bytes;
    if (!rpc_read(root, &message, &answer)) {
        mcp_answer(mcp, request, answer);
        free_request(request);
        return;
    }
    request->message = message;
    if (!message.id || !message.method) {
        take_notification(mcp, &message);
        mcp_answer(mcp, request, NULL);
        free_request(request);
        return;
    }
    take_request(mcp, request);
}

static void take_batch(struct mcp *mcp, cJSON *list, size_t bytes)
{
    int count = cJSON_GetArraySize(list);
    struct mcp_batch *batch = NULL;

    if (!mcp_takes_batches(mcp) || count == 0 || count > MOST_BATCH) {
        mcp_send(mcp, rpc_error(NULL, RPC_INVALID,
                                !mcp_takes_batches(mcp)
                                    ? "this protocol revision has no batches: send one message per "
                                      "line"
                                    : "a batch has 1 to %d messages",
                                MOST_BATCH));
        cJSON_Delete(list);
        return;
    }
    batch = calloc(1, sizeof(*batch));
    if (batch) {
        *batch = (struct mcp_batch){.left = count, .answers = cJSON_CreateArray()};
        for (int i = 0; i < count; i++) {
            take_message(mcp, cJSON_DetachItemFromArray(list, 0), batch, bytes / (size_t)count);
        }
    }
    cJSON_Delete(list);
}

static void take_line(struct mcp *mcp, const char *text, size_t len)
{
    cJSON *root = NULL, *answer = NULL;

    if (strspn(text, " \t\r") == len) {
        return;
    }
    if (!rpc_parse(text, len, &root, &answer)) {
        mcp_send(mcp, answer);
    } else if (cJSON_IsArray(root)) {
        take_batch(mcp, root, len);
    } else {
        take_message(mcp, root, NULL, len);
    }
}

/* ---- in ---- */

static void take_lines(struct mcp *mcp)
{
    size_t at = 0;
    char *end;

    while (at < mcp->input.len && (end = memchr(mcp->input.data + at, '\n', mcp->input.len - at))) {
        *end = '\0';
        if (!mcp->skipping) {
            take_line(mcp, mcp->input.data + at, (size_t)(end - mcp->input.data) - at);
        }
        mcp->skipping = false;
        at = (size_t)(end - mcp->input.data) + 1;
    }
    if (at > 0) {
        memmove(mcp->input.data, mcp->input.data + at, mcp->input.len - at + 1);
        mcp->input.len -= at;
    }
    if (mcp->input.len > RPC_MOST_BYTES) {
        if (!mcp->skipping) {
            mcp_send(mcp, rpc_error(NULL, RPC_PARSE, "a message is longer than %zu MiB",
                                    RPC_MOST_BYTES >> 20));
        }
        mcp->skipping = true;
        gd_buf_clear(&mcp->input);
    }
}

static void on_input(struct ev_loop *loop, ev_io *io, int events)
{
    struct mcp *mcp = io->data;
    char bytes[65536];
    ssize_t got = read(mcp->in, bytes, sizeof(bytes));

    (void)events;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got <= 0) {
        mcp->ended = true;
        ev_io_stop(loop, io);
        if (mcp->input.len > 0 && !mcp->skipping) {
            take_line(mcp, gd_buf_text(&mcp->input), mcp->input.len);
        }
        return;
    }
    gd_buf_add(&mcp->input, bytes, (size_t)got);
    take_lines(mcp);
}

/* ---- the whole ---- */

static void on_log(void *ctx, const char *text)
{
    struct mcp *mcp = ctx;

    if (mcp_level_of(mcp) <= mcp_level_named("info")) {
        cJSON *params = cJSON_CreateObject();
        out_set(params, OUT_TEXT("level", "info"), OUT_TEXT("logger", "training"),
                OUT_TEXT("data", text));
        mcp_send(mcp, rpc_notification("notifications/message", params));
    }
}

int mcp_create(struct repl *repl, int in, int out, bool read_only, struct mcp **ret,
               struct gd_err *err)
{
    static const struct drive_ops ops = {.tick = mcp_on_tick, .log = on_log};
    struct mcp *mcp = calloc(1, sizeof(*mcp));

    if (!mcp) {
        return gd_fail_nomem(err);
    }
    *mcp = (struct mcp){.repl = repl,
                        .in = in,
                        .out = out,
                        .log_level = LOG_NONE,
                        .read_only = read_only,
                        .offered_all = !read_only};
    mcp->queue_end = &mcp->queue;
    gd_buf_init(&mcp->input, SIZE_MAX);
    int rc = drive_create(repl, &ops, mcp, &mcp->drive, err);
    rc = rc == GD_OK ? pages_create(&mcp->pages, err) : rc;
    if (rc != GD_OK) {
        mcp_destroy(mcp);
        return rc;
    }
    ev_io_init(&mcp->io, on_input, in, EV_READ);
    mcp->io.data = mcp;
    *ret = mcp;
    return GD_OK;
}

void mcp_destroy(struct mcp *mcp)
{
    struct mcp_request *next;

    for (struct mcp_request *request = mcp ? mcp->queue : NULL; request; request = next) {
        next = request->next;
        free_request(request);
    }
    if (mcp) {
        drive_destroy(mcp->drive);
        pages_destroy(mcp->pages);
        gd_buf_deinit(&mcp->input);
        free(mcp);
    }
}

void mcp_begin(struct mcp *mcp)
{
    ev_io_start(mcp->repl->loop, &mcp->io);
}

void mcp_serve(struct mcp *mcp)
{
    struct ev_loop *loop = mcp->repl->loop;

    while (!mcp->repl->end.quit && (mcp->queue || !mcp->ended)) {
        struct mcp_request *request = mcp->queue;
        if (request) {
            mcp->queue = request->next;
            mcp->queue_end = mcp->queue ? mcp->queue_end : &mcp->queue;
            mcp->queued -= request->bytes;
            mcp->queue_count--;
            serve_request(mcp, request);
        } else {
            ev_run(loop, EVRUN_ONCE);
        }
        gd_debugger_reap(mcp->repl->debugger);
    }
    ev_io_stop(loop, &mcp->io);
}

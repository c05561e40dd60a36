// SPDX-License-Identifier: GPL-3.0-or-later
/* Messages in and out. */
#include "drive/dap_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drive/serve_io.h"
#include "dump/io/json.h"
#include "engine/utf8.h"
#include "repl/core/repl_impl.h"

#define MOST_QUEUED 1000

/* ---- out ---- */

static void send_message(struct dap *dap, cJSON *message)
{
    struct gd_buf body = GD_BUF_INIT(SIZE_MAX), whole = GD_BUF_INIT(SIZE_MAX);
    char *text = cJSON_PrintUnformatted(message);

    gd_utf8_add_json(&body, text ? text : "{}");
    gd_buf_printf(&whole, "Content-Length: %zu\r\n\r\n", body.len);
    gd_buf_add(&whole, gd_buf_text(&body), body.len);
    if (!dap->broken && !serve_io_write(dap->out, gd_buf_text(&whole), whole.len)) {
        dap->broken = true; /* the client is gone */
        repl_quit(dap->repl, STATUS_OK);
    }
    free(text);
    gd_buf_deinit(&body);
    gd_buf_deinit(&whole);
    cJSON_Delete(message);
}

static cJSON *begin_message(struct dap *dap, const char *type)
{
    cJSON *message = cJSON_CreateObject();

    out_set(message, OUT_INT("seq", ++dap->seq), OUT_TEXT("type", type));
    return message;
}

void dap_event(struct dap *dap, const char *event, cJSON *body)
{
    cJSON *message = begin_message(dap, "event");

    out_set(message, OUT_TEXT("event", event), OUT_IF(body, OUT_JSON("body", body)));
    send_message(dap, message);
}

static cJSON *begin_response(struct dap *dap, const struct dap_request *request, bool success)
{
    cJSON *message = begin_message(dap, "response");

    out_set(message, OUT_JSON("request_seq", cJSON_CreateRaw(request->seq->valuestring)),
            OUT_BOOL("success", success), OUT_TEXT("command", request->command));
    return message;
}

void dap_answer(struct dap *dap, const struct dap_request *request, cJSON *body)
{
    cJSON *message = begin_response(dap, request, true);

    out_set(message, OUT_IF(body, OUT_JSON("body", body)));
    send_message(dap, message);
}

void dap_refuse(struct dap *dap, const struct dap_request *request, const char *text)
{
    cJSON *message = begin_response(dap, request, false);
    cJSON *error = out_object(out_object(message, "body"), "error");

    out_set(message, OUT_TEXT("message", text));
    out_set(error, OUT_INT("id", 1), OUT_TEXT("format", text), OUT_BOOL("showUser", true));
    send_message(dap, message);
}

bool dap_run(struct dap *dap, const struct dap_request *request, const char *line,
             struct drive_answer *answer)
{
    drive_run(dap->drive, line, DAP_SECONDS, answer);
    if (answer->rc == GD_OK) {
        return true;
    }
    const char *message = out_text_of(answer->record, "message");
    dap_refuse(dap, request, message[0] != '\0' ? message : "the command failed");
    drive_answer_free(answer);
    return false;
}

/* ---- requests ---- */

static void add_filter(cJSON *list, const char *filter, const char *label, bool on)
{
    out_set(out_push(list), OUT_TEXT("filter", filter), OUT_TEXT("label", label),
            OUT_BOOL("default", on));
}

static void answer_initialize(struct dap *dap, struct dap_request *request)
{
    static const char *const can[] = {
        "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints",
        "supportsConditionalBreakpoints",   "supportsEvaluateForHovers",
        "supportTerminateDebuggee",         "supportsTerminateRequest"};
    cJSON *body = cJSON_CreateObject();

    for (size_t i = 0; i < sizeof(can) / sizeof(can[0]); i++) {
        out_set(body, OUT_BOOL(can[i], true));
    }
    cJSON *list = out_list(body, "exceptionBreakpointFilters");
    add_filter(list, "nonfinite", "A tensor becomes NaN or infinite", false);
    add_filter(list, "uncaught", "Uncaught exceptions of Python", false);
    add_filter(list, "all", "All exceptions of Python", false);
    dap_answer(dap, request, body);
    dap_event(dap, "initialized", NULL);
}

static const struct {
    const char *command;
    dap_fn serve;
} requests[] = {
    {"initialize", answer_initialize},
    {"launch", dap_launch},
    {"attach", dap_launch},
    {"configurationDone", dap_configured},
    {"setBreakpoints", dap_break_lines},
    {"setFunctionBreakpoints", dap_break_functions},
    {"setExceptionBreakpoints", dap_break_exceptions},
    {"threads", dap_threads},
    {"stackTrace", dap_stack},
    {"scopes", dap_scopes},
    {"variables", dap_variables},
    {"evaluate", dap_evaluate},
    {"continue", dap_continue},
    {"next", dap_next},
    {"stepIn", dap_step_in},
    {"stepOut", dap_step_out},
    {"pause", dap_pause},
    {"disconnect", dap_disconnect},
    {"terminate", dap_disconnect},
};

int dap_thread_of(const struct dap_request *request)
{
    double number = out_number_of(request->arguments, "threadId");

    return number > 0 && number < 1e9 ? (int)number : 0;
}

void dap_free_request(struct dap_request *request)
{
    if (request) {
        cJSON_Delete(request->root);
        free(request);
    }
}

static void serve_request(struct dap *dap, struct dap_request *request)
{
    dap_fn serve = NULL;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        serve = strcmp(requests[i].command, request->command) == 0 ? requests[i].serve : serve;
    }
    if (serve) {
        serve(dap, request);
    } else {
        dap_refuse(dap, request, "gradb does not have this request");
    }
    if (dap->start != request) {
        dap_free_request(request);
    }
}

static void tell_client(struct dap *dap, const char *text)
{
    cJSON *body = cJSON_CreateObject();

    out_set(body, OUT_TEXT("category", "important"), OUT_TEXT("output", text));
    dap_event(dap, "output", body);
}

/* ---- in ---- */

/* NULL: not a request; the client knows why. */
static struct dap_request *read_request(struct dap *dap, const char *text, size_t len)
{
    static const struct gd_json_options limits = {
        .max_depth = 64, .max_nodes = 200000, .what = "message"};
    struct dap_request *request = calloc(1, sizeof(*request));
    struct gd_err err = {.code = GD_OK};

    if (!request || gd_json_parse(text, len, &limits, &request->root, &err) != GD_OK) {
        tell_client(dap, request ? err.text : "out of memory");
        dap_free_request(request);
        return NULL;
    }
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(request->root, "arguments");
    request->command =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request->root, "command"));
    request->seq = cJSON_GetObjectItemCaseSensitive(request->root, "seq");
    request->arguments = cJSON_IsObject(arguments) ? arguments : NULL;
    if (!cJSON_IsObject(request->root) || !cJSON_IsNumber(request->seq) || !request->command) {
        tell_client(dap, "a message is an object with \"seq\", \"type\" and \"command\"");
        dap_free_request(request);
        return NULL;
    }
    return request;
}

static void take_request(struct dap *dap, struct dap_request *request)
{
    if (dap->queue_count >= MOST_QUEUED) {
        dap_refuse(dap, request, "too many requests wait");
        dap_free_request(request);
        return;
    }
    bool ends = strcmp(request->command, "disconnect") == 0 ||
                strcmp(request->command, "terminate") == 0 ||
                strcmp(request->command, "pause") == 0;
    if (ends && drive_is_busy(dap->drive)) {
        drive_cancel(dap->drive);
    }
    *dap->queue_end = request;
    dap->queue_end = &request->next;
    dap->queue_count++;
}

static void take_messages(struct dap *dap)
{
    struct gd_err err = {.code = GD_OK};
    const char *text = NULL;
    size_t len = 0;
    int rc;

    while ((rc = frames_next(&dap->frames, &text, &len, &err)) == GD_OK && text) {
        struct dap_request *request = read_request(dap, text, len);
        if (request) {
            take_request(dap, request);
        }
    }
    if (rc != GD_OK) { /* the next message cannot be found */
        tell_client(dap, err.text);
        dap->ended = true;
    }
}

static void on_input(struct ev_loop *loop, ev_io *io, int events)
{
    struct dap *dap = io->data;
    char bytes[65536];
    ssize_t got = read(dap->in, bytes, sizeof(bytes));

    (void)events;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (got > 0 && frames_add(&dap->frames, bytes, (size_t)got) == GD_OK) {
        take_messages(dap);
    } else {
        dap->ended = true;
    }
    if (dap->ended) {
        ev_io_stop(loop, io);
    }
}

/* ---- the whole ---- */

static void on_log(void *ctx, const char *text)
{
    struct gd_buf line = GD_BUF_INIT(SIZE_MAX);
    cJSON *body = cJSON_CreateObject();

    gd_buf_printf(&line, "%s\n", text);
    out_set(body, OUT_TEXT("category", "stdout"),
            OUT_JSON("output", cJSON_CreateString(gd_buf_text(&line))));
    gd_buf_deinit(&line);
    dap_event(ctx, "output", body);
}

int dap_create(struct repl *repl, int in, int out, struct dap **ret, struct gd_err *err)
{
    static const struct drive_ops ops = {.log = on_log, .event = dap_on_event};
    struct dap *dap = calloc(1, sizeof(*dap));

    if (!dap) {
        return gd_fail_nomem(err);
    }
    *dap = (struct dap){.repl = repl, .in = in, .out = out};
    dap->queue_end = &dap->queue;
    frames_init(&dap->frames);
    int rc = drive_create(repl, &ops, dap, &dap->drive, err);
    if (rc != GD_OK) {
        dap_destroy(dap);
        return rc;
    }
    if (gd_debugger_observe(repl->debugger, dap_on_breakpoints, dap) != GD_OK) {
        dap_destroy(dap);
        return gd_fail_nomem(err);
    }
    ev_io_init(&dap->io, on_input, in, EV_READ);
    dap->io.data = dap;
    *ret = dap;
    return GD_OK;
}

void dap_destroy(struct dap *dap)
{
    struct dap_request *next;

    if (!dap) {
        return;
    }
    for (struct dap_request *request = dap->queue; request; request = next) {
        next = request->next;
        dap_free_request(request);
    }
    gd_debugger_unobserve(dap->repl->debugger, dap_on_breakpoints, dap);
    dap_free_request(dap->start);
    drive_destroy(dap->drive);
    dap_forget_breaks(dap);
    dap_forget_places(dap);
    free(dap->breaks);
    free(dap->places);
    frames_deinit(&dap->frames);
    free(dap);
}

void dap_serve(struct dap *dap)
{
    struct ev_loop *loop = dap->repl->loop;

    ev_io_start(loop, &dap->io);
    while (!dap->repl->end.quit && !dap->over && (dap->queue || !dap->ended)) {
        struct dap_request *request = dap->queue;
        if (request) {
            dap->queue = request->next;
            dap->queue_end = dap->queue ? dap->queue_end : &dap->queue;
            dap->queue_count--;
            request->next = NULL;
            serve_request(dap, request);
        } else {
            ev_run(loop, EVRUN_ONCE);
        }
        gd_debugger_reap(dap->repl->debugger);
    }
    ev_io_stop(loop, &dap->io);
}

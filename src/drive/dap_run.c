// SPDX-License-Identifier: GPL-3.0-or-later
/* Starting, moving and ending the training, and its stops. */
#include "drive/dap_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

#define START_SECONDS 3600. /* `set start-timeout` ends it before */

/* ---- stops ---- */

static void tell_stop(struct dap *dap, const cJSON *record)
{
    static const char *const words[][2] = {
        {"connected", "entry"},
        {"step", "step"},
        {"node", "step"},
        {"phase", "step"},
        {"breakpoint", "breakpoint"},
        {"interrupt", "pause"},
        {"hit", "data breakpoint"},
        {"exception", "exception"},
        {"program", "breakpoint"},
        {"event", "data breakpoint"},
    };
    const char *reason = out_text_of(record, "reason"), *name = "pause";
    struct gd_buf text = GD_BUF_INIT(4096);
    cJSON *body = cJSON_CreateObject();

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        name = strcmp(words[i][0], reason) == 0 ? words[i][1] : name;
    }
    gd_buf_printf(&text, "%s, step %.0f%s%s", reason, out_number_of(record, "step"),
                  cJSON_HasObjectItem(record, "node") ? ", " : "", out_text_of(record, "node"));
    out_set(body, OUT_TEXT("reason", name), OUT_TEXT("description", gd_buf_text(&text)),
            OUT_SOME("text", out_text_of(record, "text")),
            OUT_INT("threadId", out_number_of(record, "session")),
            OUT_BOOL("allThreadsStopped", true));
    cJSON *numbers = cJSON_GetObjectItemCaseSensitive(record, "numbers");
    if (numbers && numbers->child) {
        out_set(body, OUT_JSON("hitBreakpointIds", cJSON_Duplicate(numbers, true)));
    }
    gd_buf_deinit(&text);
    dap_event(dap, "stopped", body);
}

static void tell_exit(struct dap *dap, const cJSON *record)
{
    cJSON *body = cJSON_CreateObject();

    out_set(body, OUT_INT("exitCode", cJSON_HasObjectItem(record, "signal")
                                          ? 128 + (int)out_number_of(record, "signal")
                                          : (int)out_number_of(record, "status")));
    dap_event(dap, "exited", body);
}

/* No training process is left, and none is coming. */
static void tell_end(struct dap *dap)
{
    const struct gd_debugger *debugger = dap->repl->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        if (gd_session_is_live(debugger->sessions[i])) {
            return;
        }
    }
    if (!dap->told_end && !launch_is_running(dap->repl)) {
        dap->told_end = true;
        dap_event(dap, "terminated", NULL);
    }
}

void dap_on_event(void *ctx, const char *type, const cJSON *record)
{
    struct dap *dap = ctx;

    if (strcmp(type, "stopped") == 0) {
        dap_forget_places(dap);
        if (!dap->quiet && dap->started) {
            tell_stop(dap, record);
        }
        dap->quiet = false;
    } else if (strcmp(type, "exited") == 0) {
        tell_exit(dap, record);
        tell_end(dap);
    } else if (strcmp(type, "finished") == 0 || strcmp(type, "lost") == 0) {
        tell_end(dap);
    } else if (strcmp(type, "warning") == 0) {
        cJSON *body = cJSON_CreateObject();
        struct gd_buf text = GD_BUF_INIT(65536);
        gd_buf_printf(&text, "warning: %s\n", out_text_of(record, "text"));
        out_set(body, OUT_TEXT("category", "console"),
                OUT_JSON("output", cJSON_CreateString(gd_buf_text(&text))));
        gd_buf_deinit(&text);
        dap_event(dap, "output", body);
    }
}

/* ---- starting ---- */

static const char *text_of(const struct dap_request *request, const char *name)
{
    return out_text_of(request->arguments, name);
}

static void add_words(struct gd_buf *line, const cJSON *list)
{
    const cJSON *word;

    cJSON_ArrayForEach(word, list)
    {
        if (cJSON_IsString(word)) {
            gd_buf_putc(line, ' ');
            gd_buf_put_quoted(line, word->valuestring);
        }
    }
}

static int take_surroundings(const struct dap_request *request, struct gd_err *err)
{
    const char *folder = text_of(request, "cwd");
    const cJSON *variable;

    cJSON_ArrayForEach(variable, cJSON_GetObjectItemCaseSensitive(request->arguments, "env"))
    {
        if (cJSON_IsString(variable)) {
            setenv(variable->string, variable->valuestring, 1);
        } else if (cJSON_IsNull(variable)) {
            unsetenv(variable->string);
        }
    }
    return folder[0] == '\0' || chdir(folder) == 0
               ? GD_OK
               : gd_fail(err, GD_ENOTFOUND, "cwd %.500s: %s", folder, strerror(errno));
}

/* The command that a launch or attach request stands for. */
static int make_start(const struct dap_request *request, struct gd_buf *line, struct gd_err *err)
{
    const char *program = text_of(request, "program"), *listen = text_of(request, "listen");
    size_t len = strlen(program);
    bool python = len > 3 && strcmp(program + len - 3, ".py") == 0;

    if (strcmp(request->command, "attach") == 0) {
        gd_buf_printf(line, "listen %.200s", listen);
        return GD_OK;
    }
    if (len == 0) {
        return gd_fail(err, GD_EINVAL, "launch needs \"program\": a script or a program");
    }
    gd_buf_puts(line, "run --");
    if (python) {
        const char *with = text_of(request, "python");
        gd_buf_putc(line, ' ');
        gd_buf_put_quoted(line, with[0] != '\0' ? with : "python3");
    }
    gd_buf_putc(line, ' ');
    gd_buf_put_quoted(line, program);
    add_words(line, cJSON_GetObjectItemCaseSensitive(request->arguments, "args"));
    return take_surroundings(request, err);
}

static bool has_connected(void *ctx)
{
    const struct dap *dap = ctx;

    return dap->over || dap->ended || dap->repl->debugger->current;
}

static bool is_stopped(const struct dap *dap)
{
    const struct gd_session *session = dap->repl->debugger->current;

    return session && session->state == GD_STOPPED;
}

/* Announces the first stop, or continues from it. */
static void begin_session(struct dap *dap, const struct dap_request *request)
{
    struct drive_answer answer;
    bool stop = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request->arguments, "stopOnEntry"));

    dap->started = true;
    if (!is_stopped(dap)) {
        return;
    }
    dap_apply_exceptions(dap);
    if (stop) {
        cJSON *record = cJSON_CreateObject();
        out_set(record, OUT_TEXT("reason", "connected"),
                OUT_INT("session", dap->repl->debugger->current->number));
        tell_stop(dap, record);
        cJSON_Delete(record);
        return;
    }
    drive_run(dap->drive, "continue &", DAP_SECONDS, &answer);
    drive_answer_free(&answer);
}

static void start_training(struct dap *dap, struct dap_request *request)
{
    struct gd_buf line = GD_BUF_INIT(65536);
    struct gd_err err = {.code = GD_OK};
    struct drive_answer answer;
    int rc = make_start(request, &line, &err);

    rc = rc == GD_OK && line.failed ? gd_fail(&err, GD_ELIMIT, "the arguments are too long") : rc;
    if (rc != GD_OK) {
        dap_refuse(dap, request, err.text);
        gd_buf_deinit(&line);
        return;
    }
    dap->launched = strcmp(request->command, "launch") == 0;
    drive_run(dap->drive, gd_buf_text(&line), START_SECONDS, &answer);
    gd_buf_deinit(&line);
    if (answer.rc != GD_OK) {
        dap_refuse(dap, request, out_text_of(answer.record, "message"));
        drive_answer_free(&answer);
        return;
    }
    drive_answer_free(&answer);
    dap_answer(dap, request, NULL);
    if (!dap->launched && !has_connected(dap)) {
        dap->started = true; /* it stops when a process connects */
        return;
    }
    begin_session(dap, request);
}

/* Breakpoints are set before the training starts: it waits for configurationDone. */
void dap_launch(struct dap *dap, struct dap_request *request)
{
    if (dap->start || dap->started) {
        dap_refuse(dap, request, "the session has begun already");
    } else if (dap->configured) {
        start_training(dap, request);
    } else {
        dap->start = request;
    }
}

void dap_configured(struct dap *dap, struct dap_request *request)
{
    struct dap_request *start = dap->start;

    dap->configured = true;
    dap_answer(dap, request, NULL);
    if (start) {
        dap->start = NULL;
        start_training(dap, start);
        dap_free_request(start);
    }
}

/* ---- moving ---- */

static bool select_thread(struct dap *dap, const struct dap_request *request)
{
    struct gd_debugger *debugger = dap->repl->debugger;
    int number = dap_thread_of(request);

    return !debugger->current || debugger->current->number == number ||
           gd_debugger_select(debugger, number, NULL) == GD_OK;
}

static void move_training(struct dap *dap, const struct dap_request *request, const char *line)
{
    struct drive_answer answer;

    if (!select_thread(dap, request)) {
        dap_refuse(dap, request, "there is no such thread");
        return;
    }
    dap_forget_places(dap);
    if (dap_run(dap, request, line, &answer)) {
        cJSON *body = cJSON_CreateObject();
        out_set(body, OUT_BOOL("allThreadsContinued", true));
        dap_answer(dap, request, body);
        drive_answer_free(&answer);
    }
}

void dap_continue(struct dap *dap, struct dap_request *request)
{
    move_training(dap, request, "continue &");
}

void dap_next(struct dap *dap, struct dap_request *request)
{
    move_training(dap, request, "next &");
}

void dap_step_in(struct dap *dap, struct dap_request *request)
{
    move_training(dap, request, "step &");
}

void dap_step_out(struct dap *dap, struct dap_request *request)
{
    move_training(dap, request, "finish &");
}

void dap_pause(struct dap *dap, struct dap_request *request)
{
    struct drive_answer answer;

    if (is_stopped(dap)) {
        dap_answer(dap, request, NULL);
    } else if (dap_run(dap, request, "interrupt", &answer)) {
        drive_answer_free(&answer);
        dap_answer(dap, request, NULL);
    }
}

/* A launched program ends, one that was attached to continues, unless the client says otherwise. */
void dap_disconnect(struct dap *dap, struct dap_request *request)
{
    const cJSON *ends = cJSON_GetObjectItemCaseSensitive(request->arguments, "terminateDebuggee");
    bool ends_it = strcmp(request->command, "terminate") == 0 ||
                   (cJSON_IsBool(ends) ? cJSON_IsTrue(ends) : dap->launched);
    struct drive_answer answer;

    if (!ends_it) {
        repl_let_go_at_end(dap->repl);
    } else if (dap->repl->debugger->current || launch_is_running(dap->repl)) {
        drive_run(dap->drive, "kill", DAP_SECONDS, &answer);
        drive_answer_free(&answer);
    }
    dap_answer(dap, request, NULL);
    if (strcmp(request->command, "disconnect") == 0) {
        dap->over = true;
    } else if (!dap->told_end) {
        dap->told_end = true;
        dap_event(dap, "terminated", NULL);
    }
}

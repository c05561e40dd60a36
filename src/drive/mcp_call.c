// SPDX-License-Identifier: GPL-3.0-or-later
/* tools/call: from arguments to a command line, and from its answer to the protocol. */
#include "drive/mcp_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

#define DEFAULT_SECONDS 30.
#define MOST_SECONDS    86400.

struct call {
    const struct mcp_tool *tool;
    const cJSON *arguments;
    double seconds;
    size_t budget;
    const char *cursor; /* NULL: none */
};

/* ---- arguments ---- */

static int take_number(const cJSON *arguments, const char *name, double least, double most,
                       double *ret, struct gd_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(arguments, name);

    if (!value || cJSON_IsNull(value)) {
        return GD_OK;
    }
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= least && value->valuedouble <= most)) {
        return gd_fail(err, GD_EINVAL, "the argument \"%s\" is a number from %g to %.9g", name,
                       least, most);
    }
    *ret = value->valuedouble;
    return GD_OK;
}

static int take_common(struct call *call, struct gd_err *err)
{
    const cJSON *cursor = cJSON_GetObjectItemCaseSensitive(call->arguments, "cursor");
    double budget = PAGE_DEFAULT;
    int rc = take_number(call->arguments, "timeout_s", 0, MOST_SECONDS, &call->seconds, err);

    rc = rc == GD_OK
             ? take_number(call->arguments, "max_bytes", PAGE_LEAST, PAGE_MOST, &budget, err)
             : rc;
    call->budget = (size_t)budget;
    call->cursor = cJSON_GetStringValue(cursor);
    if (rc == GD_OK && cursor && !cJSON_IsNull(cursor) && !call->cursor) {
        rc = gd_fail(err, GD_EINVAL, "the argument \"cursor\" is text");
    }
    return rc;
}

static bool is_common(const char *name)
{
    return strcmp(name, "timeout_s") == 0 || strcmp(name, "max_bytes") == 0 ||
           strcmp(name, "cursor") == 0;
}

static void name_arguments(const struct usage *usage, const char *own, struct gd_buf *text)
{
    for (int i = 0; usage && i < usage->count; i++) {
        gd_buf_printf(text, "%s, ", usage->item[i].name);
    }
    gd_buf_printf(text, "%s%stimeout_s, max_bytes, cursor", own, own[0] != '\0' ? ", " : "");
}

/* Names an argument that the tool does not have. */
static int check_names(const struct call *call, const struct usage *usage, const char *own,
                       struct gd_err *err)
{
    const cJSON *value;

    cJSON_ArrayForEach(value, call->arguments)
    {
        if (!is_common(value->string) && strcmp(value->string, own) != 0 &&
            !(usage && usage_find(usage, value->string))) {
            struct gd_buf names = GD_BUF_INIT(2048);
            name_arguments(usage, own, &names);
            gd_fail(err, GD_EINVAL, "%s has no argument \"%.40s\"; it has %s", call->tool->name,
                    value->string, gd_buf_text(&names));
            gd_buf_deinit(&names);
            return GD_EINVAL;
        }
    }
    return GD_OK;
}

/* Text that a line may contain. */
static int check_line(const struct gd_buf *line, bool several, struct gd_err *err)
{
    const char *text = gd_buf_text(line);

    if (line->failed) {
        return gd_fail(err, GD_ELIMIT, "the arguments are longer than %d bytes", PARSE_MAX_LINE);
    }
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < ' ' && c != '\t' && !(several && c == '\n')) || c == 0x7f) {
            return gd_fail(err, GD_EINVAL, "the arguments contain a control character (0x%02x)", c);
        }
    }
    return GD_OK;
}

static int make_line(const struct call *call, struct gd_buf *line, struct gd_err *err)
{
    const struct command *command = mcp_tool_command(call->tool);
    bool plain = command != NULL; /* a tool made from a command */
    const char *own = plain ? "arguments" : strcmp(call->tool->name, "command") == 0 ? "line" : "";
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(call->arguments, own);
    struct usage usage = {.count = 0};

    if (plain) {
        usage_read(command, &usage);
    }
    int rc = check_names(call, &usage, own, err);
    if (rc == GD_OK && text && !cJSON_IsNull(text) && !cJSON_IsString(text)) {
        rc = gd_fail(err, GD_EINVAL, "the argument \"%s\" is text", own);
    }
    if (rc == GD_OK && strcmp(own, "line") == 0 && !cJSON_IsString(text)) {
        rc = gd_fail(err, GD_EINVAL, "the argument \"line\" is missing");
    }
    if (rc == GD_OK && plain) {
        gd_buf_printf(line, "%s%s%s", call->tool->command, call->tool->sub ? " " : "",
                      call->tool->sub ? call->tool->sub : "");
        rc = usage_add_line(&usage, call->arguments, line, err);
    }
    if (rc == GD_OK && cJSON_IsString(text)) {
        gd_buf_printf(line, "%s%s", plain ? " " : "", text->valuestring);
    }
    return rc == GD_OK ? check_line(line, !plain, err) : rc;
}

/* ---- running ---- */

void mcp_on_tick(void *ctx, double seconds)
{
    struct mcp *mcp = ctx;
    const struct gd_session *session = mcp->repl->debugger->current;
    const cJSON *token =
        mcp->current ? cJSON_GetObjectItemCaseSensitive(
                           cJSON_GetObjectItemCaseSensitive(mcp->current->message.params, "_meta"),
                           "progressToken")
                     : NULL;

    if (!cJSON_IsString(token) && !cJSON_IsNumber(token)) {
        return;
    }
    cJSON *params = cJSON_CreateObject();
    out_set(params, OUT_JSON("progressToken", rpc_copy_id(token)), OUT_REAL("progress", seconds));
    if (session && session->state == GD_RUNNING) {
        char text[64];
        snprintf(text, sizeof(text), "the training runs, step %lld",
                 (long long)gd_session_step(session));
        out_set(params, OUT_TEXT("message", text));
    }
    mcp_send(mcp, rpc_notification("notifications/progress", params));
}

bool mcp_is_interrupt(const struct mcp_request *request)
{
    return strcmp(request->message.method, "tools/call") == 0 &&
           strcmp(out_text_of(request->message.params, "name"), "interrupt") == 0;
}

/* The time limit ended it: says what to do next. */
static void tell_timeout(struct mcp *mcp, const struct call *call, struct drive_answer *answer)
{
    bool starting = !mcp->repl->debugger->current && launch_is_running(mcp->repl);
    struct gd_err err;

    if (!answer->running && !starting) {
        gd_buf_clear(&answer->text);
        gd_fail(&err, GD_ETIMEOUT, "not finished after %g s: call it again with a larger timeout_s",
                call->seconds);
        drive_fail(answer, call->tool->name, &err);
        return;
    }
    if (starting) {
        cJSON_Delete(answer->record);
        answer->record = cJSON_CreateObject();
        out_set(answer->record, OUT_TEXT("type", "run"), OUT_TEXT("state", "starting"),
                OUT_TEXT("command", call->tool->name));
        gd_buf_clear(&answer->text);
    }
    answer->rc = GD_OK;
    out_set(answer->record, OUT_BOOL("still_running", true), OUT_REAL("waited_s", call->seconds),
            OUT_TEXT("go_on", "wait, or interrupt"));
    gd_buf_printf(
        &answer->text, "The %s after %g s. Call wait to wait on, or interrupt to stop it.\n",
        starting ? "program has not connected yet" : "training still runs", call->seconds);
}

static bool interrupts_nothing(const struct mcp *mcp, const struct call *call)
{
    const struct gd_session *session = mcp->repl->debugger->current;

    return strcmp(call->tool->name, "interrupt") == 0 && session && session->state == GD_STOPPED;
}

static void run_call(struct mcp *mcp, const struct call *call, const char *line,
                     struct drive_answer *answer)
{
    if (strcmp(call->tool->name, "wait") == 0) {
        drive_wait(mcp->drive, call->seconds, answer);
    } else if (interrupts_nothing(mcp, call)) { /* it stopped by itself, or by this call */
        drive_wait(mcp->drive, 1, answer);
    } else {
        drive_run(mcp->drive, line, call->seconds, answer);
    }
    if (answer->timed_out) {
        tell_timeout(mcp, call, answer);
    }
    if (answer->events->child) {
        cJSON_AddItemToObject(answer->record, "events", answer->events);
        answer->events = NULL;
    }
}

/* ---- the answer ---- */

static cJSON *answer_page(const struct mcp_request *request, struct page *page)
{
    cJSON *result = cJSON_CreateObject();
    cJSON *content = out_push(out_list(result, "content"));

    if (page->wordless && page->record) {
        char *text = cJSON_PrintUnformatted(page->record);
        gd_buf_puts(&page->text, text ? text : "");
        free(text);
    }
    if (page->cursor[0] != '\0') {
        gd_buf_printf(&page->text, "[more is left out: call again with cursor \"%s\"]\n",
                      page->cursor);
    }
    out_set(content, OUT_TEXT("type", "text"), OUT_TEXT("text", gd_buf_text(&page->text)));
    out_set(result, OUT_JSON("structuredContent", page->record), OUT_BOOL("isError", page->failed));
    page->record = NULL;
    page_free(page);
    return rpc_result(request->message.id, mcp_finish(request, result, false));
}

static cJSON *answer_error(const struct mcp_request *request, const struct call *call,
                           const struct gd_err *err)
{
    struct drive_answer answer = {.rc = GD_OK};
    struct page page = {.failed = true};

    gd_buf_init(&answer.text, 65536);
    drive_fail(&answer, call->tool->name, err);
    page.text = answer.text;
    page.record = answer.record;
    return answer_page(request, &page);
}

/* What may be called has changed: a dump may be moved in, a training may not. */
static void tell_offers(struct mcp *mcp)
{
    bool all = mcp_tool_may_run(mcp, mcp_find_tool("continue"));

    if (all != mcp->offered_all) {
        mcp->offered_all = all;
        mcp_send(mcp, rpc_notification("notifications/tools/list_changed", NULL));
    }
}

static cJSON *serve_call(struct mcp *mcp, const struct mcp_request *request, struct call *call)
{
    struct gd_buf line = GD_BUF_INIT(PARSE_MAX_LINE);
    struct gd_err err = {.code = GD_OK};
    struct drive_answer answer;
    struct page page;

    int rc = take_common(call, &err);
    if (rc == GD_OK && call->cursor) {
        rc = page_next(mcp->pages, call->cursor, call->budget, &page, &err);
        return rc == GD_OK ? answer_page(request, &page) : answer_error(request, call, &err);
    }
    rc = rc == GD_OK ? make_line(call, &line, &err) : rc;
    if (rc != GD_OK) {
        gd_buf_deinit(&line);
        return answer_error(request, call, &err);
    }
    run_call(mcp, call, gd_buf_text(&line), &answer);
    gd_buf_deinit(&line);
    page_first(mcp->pages, &answer.text, answer.record, answer.rc != GD_OK, call->budget, &page);
    answer.record = NULL;
    drive_answer_free(&answer);
    tell_offers(mcp);
    return answer_page(request, &page);
}

cJSON *mcp_call_tool(struct mcp *mcp, const struct mcp_request *request)
{
    const cJSON *params = request->message.params;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(params, "name"));
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(params, "arguments");
    struct call call = {.seconds = DEFAULT_SECONDS, .budget = PAGE_DEFAULT};

    if (!name) {
        return rpc_error(request->message.id, RPC_PARAMS,
                         "tools/call needs the \"name\" of a tool");
    }
    call.tool = mcp_find_tool(name);
    if (!call.tool) {
        return rpc_error(request->message.id, RPC_PARAMS,
                         "there is no tool \"%.80s\": see tools/list", name);
    }
    if (arguments && !cJSON_IsNull(arguments) && !cJSON_IsObject(arguments)) {
        return rpc_error(request->message.id, RPC_PARAMS, "the \"arguments\" are an object");
    }
    call.arguments = cJSON_IsObject(arguments) ? arguments : NULL;
    return serve_call(mcp, request, &call);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Ranks as threads; stacks, scopes and variables; the command line as `evaluate`. */
#include "drive/dap_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "repl/core/repl_impl.h"

#define FRAMES     100000 /* a frame's id: session * FRAMES + frame */
#define MOST_SHOWN 32     /* inputs and outputs of a node */
#define MOST_STACK 200
#define MOST_TEXT  ((size_t)20000)

/* ---- references ---- */

void dap_forget_places(struct dap *dap)
{
    for (size_t i = 0; i < dap->place_count; i++) {
        free(dap->places[i].name);
    }
    dap->place_count = 0;
}

/* A variablesReference; 0: none. */
static int add_place(struct dap *dap, enum dap_kind kind, int frame, const char *name)
{
    char *copy = strdup(name);

    if (!copy ||
        !gd_grow_list(&dap->places, dap->place_count, &dap->place_room, sizeof(*dap->places))) {
        free(copy);
        return 0;
    }
    dap->places[dap->place_count++] =
        (struct dap_place){.kind = kind, .frame = frame, .name = copy};
    return (int)dap->place_count;
}

/* ---- threads and stacks ---- */

void dap_threads(struct dap *dap, struct dap_request *request)
{
    const struct gd_debugger *debugger = dap->repl->debugger;
    cJSON *body = cJSON_CreateObject(), *list = out_list(body, "threads");

    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        char name[320];
        snprintf(name, sizeof(name), "rank %d: %s", session->peer.rank,
                 session->peer.program[0] != '\0' ? session->peer.program
                                                  : session->peer.framework);
        if (gd_session_is_live(session) || session == debugger->current) {
            out_set(out_push(list), OUT_INT("id", session->number), OUT_TEXT("name", name));
        }
    }
    dap_answer(dap, request, body);
}

static void add_frame(cJSON *list, int session, const cJSON *frame)
{
    cJSON *item = out_push(list);
    const char *file = out_text_of(frame, "file"), *base = strrchr(file, '/');
    const char *function = out_text_of(frame, "function");

    out_set(item, OUT_INT("id", (int64_t)session * FRAMES + (int)out_number_of(frame, "frame")),
            OUT_TEXT("name", function[0] != '\0' ? function : "?"),
            OUT_INT("line", out_number_of(frame, "line")), OUT_INT("column", 0));
    if (file[0] != '\0') {
        out_set(out_object(item, "source"), OUT_TEXT("name", base ? base + 1 : file),
                OUT_TEXT("path", file));
    }
}

/* Between two steps, or where no stack is known. */
static void add_bare_frame(cJSON *list, const struct gd_session *session)
{
    char name[600];

    if (session->stop.node != GD_NO_NODE) {
        snprintf(name, sizeof(name), "%s, step %lld", session->stop.node_name,
                 (long long)session->stop.step);
    } else {
        snprintf(name, sizeof(name), "end of step %lld", (long long)session->stop.step);
    }
    out_set(out_push(list), OUT_INT("id", (int64_t)session->number * FRAMES),
            OUT_TEXT("name", name), OUT_INT("line", 0), OUT_INT("column", 0));
}

void dap_stack(struct dap *dap, struct dap_request *request)
{
    struct gd_debugger *debugger = dap->repl->debugger;
    int number = dap_thread_of(request);
    struct drive_answer answer;
    const cJSON *frame;

    if (gd_debugger_select(debugger, number, NULL) != GD_OK || !debugger->current ||
        debugger->current->state != GD_STOPPED) {
        dap_refuse(dap, request, "there is no such thread, or it runs");
        return;
    }
    cJSON *body = cJSON_CreateObject(), *list = out_list(body, "stackFrames");
    drive_run(dap->drive, "backtrace", DAP_SECONDS, &answer);
    cJSON_ArrayForEach(frame, cJSON_GetObjectItemCaseSensitive(answer.record, "frames"))
    {
        if (cJSON_GetArraySize(list) < MOST_STACK) {
            add_frame(list, number, frame);
        }
    }
    if (!list->child) {
        add_bare_frame(list, debugger->current);
    }
    drive_answer_free(&answer);
    out_set(body, OUT_INT("totalFrames", cJSON_GetArraySize(list)));
    dap_answer(dap, request, body);
}

/* ---- scopes ---- */

static void add_scope(struct dap *dap, cJSON *list, const char *name, enum dap_kind kind, int frame,
                      bool expensive)
{
    out_set(out_push(list), OUT_TEXT("name", name),
            OUT_INT("variablesReference", add_place(dap, kind, frame, "")),
            OUT_BOOL("expensive", expensive));
}

static bool has_locals(void)
{
    const struct command *info = NULL;

    if (command_find(NULL, "info", 4, &info, NULL) == GD_OK) {
        for (const struct command *sub = info->sub; sub->name; sub++) {
            if (strcmp(sub->name, "locals") == 0) {
                return true;
            }
        }
    }
    return false;
}

void dap_scopes(struct dap *dap, struct dap_request *request)
{
    double given = out_number_of(request->arguments, "frameId");
    int64_t id = given >= 0 && given < 1e15 ? (int64_t)given : 0;
    const struct gd_session *session = dap->repl->debugger->current;
    cJSON *body = cJSON_CreateObject(), *list = out_list(body, "scopes");

    if (session && session->state == GD_STOPPED && session->number == id / FRAMES) {
        if (has_locals() && session->peer.framework[0] != '\0') {
            add_scope(dap, list, "Locals", DAP_LOCALS, (int)(id % FRAMES), false);
        }
        if (session->stop.node != GD_NO_NODE) {
            add_scope(dap, list, "Tensors", DAP_TENSORS, 0, false);
        }
        add_scope(dap, list, "Metrics", DAP_METRICS, 0, false);
    }
    dap_answer(dap, request, body);
}

/* ---- variables ---- */

static void add_variable(cJSON *list, const char *name, const char *value, const char *type,
                         int reference)
{
    out_set(out_push(list), OUT_TEXT("name", name), OUT_TEXT("value", value),
            OUT_SOME("type", type), OUT_INT("variablesReference", reference));
}

/* The text without its last line end, and not endless. */
static void trim_text(struct gd_buf *text)
{
    while (text->len > 0 && text->data[text->len - 1] == '\n') {
        text->data[--text->len] = '\0';
    }
    if (text->len > MOST_TEXT) {
        size_t at = MOST_TEXT;
        while (at > 0 && ((unsigned char)text->data[at] & 0xc0) == 0x80) {
            at--;
        }
        text->data[at] = '\0';
        text->len = at;
        gd_buf_puts(text, "\n...");
    }
}

/* A tensor with its type and statistics, or the reason why there is no value. */
static void add_tensor(struct dap *dap, cJSON *list, const char *label, const char *name)
{
    struct gd_buf line = GD_BUF_INIT(4096);
    struct drive_answer answer;

    gd_buf_printf(&line, "print -s %s", name);
    drive_run(dap->drive, gd_buf_text(&line), DAP_SECONDS, &answer);
    gd_buf_deinit(&line);
    trim_text(&answer.text);
    const char *text = gd_buf_text(&answer.text), *end = strchr(text, '\n');
    bool good = answer.rc == GD_OK;
    add_variable(list, label, good && end ? end + 1 : text, out_text_of(answer.record, "dtype"),
                 good ? add_place(dap, DAP_TENSOR, 0, name) : 0);
    drive_answer_free(&answer);
}

static void list_tensors(struct dap *dap, cJSON *list)
{
    const struct gd_session *session = dap->repl->debugger->current;
    gd_node_id node = session->stop.node;
    struct gd_node_info info;
    struct gd_buf name = GD_BUF_INIT(4096), label = GD_BUF_INIT(4096);

    if (!gd_graph_node(session->graph, node, &info)) {
        return;
    }
    uint32_t outputs = info.output_count, inputs = info.input_count;
    for (uint32_t i = 0; i < outputs && i < MOST_SHOWN; i++) {
        gd_buf_clear(&name);
        gd_buf_clear(&label);
        gd_buf_printf(&name, "%s:%u", gd_graph_name(session->graph, node), i);
        gd_buf_printf(&label, "output %u", i);
        add_tensor(dap, list, gd_buf_text(&label), gd_buf_text(&name));
    }
    for (uint32_t i = 0; i < inputs && i < MOST_SHOWN; i++) {
        const struct gd_session *now = dap->repl->debugger->current; /* the loop has run */
        if (now != session || !gd_graph_node(session->graph, node, &info) ||
            i >= info.input_count) {
            break;
        }
        gd_buf_clear(&name);
        gd_buf_clear(&label);
        gd_buf_printf(&name, "%s:%u", gd_graph_name(session->graph, info.inputs[i].node),
                      (unsigned)info.inputs[i].slot);
        gd_buf_printf(&label, "input %u: %s", i, gd_buf_text(&name));
        add_tensor(dap, list, gd_buf_text(&label), gd_buf_text(&name));
    }
    gd_buf_deinit(&name);
    gd_buf_deinit(&label);
}

static void add_member(cJSON *list, const cJSON *member)
{
    char *text = cJSON_IsString(member) ? NULL : cJSON_PrintUnformatted(member);

    add_variable(list, member->string ? member->string : "",
                 cJSON_IsString(member) ? member->valuestring
                 : text                 ? text
                                        : "",
                 "", 0);
    free(text);
}

/* Its shape, type, statistics, and its elements as text. */
static void list_value(const struct drive_answer *answer, cJSON *list)
{
    static const char *const first[] = {"shape", "dtype", "about"};
    struct gd_buf text = GD_BUF_INIT(OUT_MAX_TEXT);
    const cJSON *member;

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        member = cJSON_GetObjectItemCaseSensitive(answer->record, first[i]);
        if (member) {
            add_member(list, member);
        }
    }
    cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(answer->record, "stats"))
    {
        add_member(list, member);
    }
    gd_buf_puts(&text, gd_buf_text(&answer->text));
    trim_text(&text);
    add_variable(list, "elements", gd_buf_text(&text), "", 0);
    gd_buf_deinit(&text);
}

static void list_tensor(struct dap *dap, const char *name, cJSON *list)
{
    struct gd_buf line = GD_BUF_INIT(4096);
    struct drive_answer answer;

    gd_buf_printf(&line, "print %s", name);
    drive_run(dap->drive, gd_buf_text(&line), DAP_SECONDS, &answer);
    gd_buf_deinit(&line);
    list_value(&answer, list);
    drive_answer_free(&answer);
}

static void list_metrics(struct dap *dap, cJSON *list)
{
    const struct gd_session *session = dap->repl->debugger->current;
    char text[96];

    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        snprintf(text, sizeof(text), "%.9g (step %lld)", scalar->value, (long long)scalar->step);
        add_variable(list, scalar->name, text, "", 0);
    }
}

/* Selects a frame, as `frame` does; where no stack is shown (add_bare_frame), the innermost one of
 * the user's code is meant anyway. */
static bool select_frame(struct dap *dap, int64_t frame)
{
    struct drive_answer answer;
    char line[32];

    snprintf(line, sizeof(line), "frame %lld", (long long)frame);
    drive_run(dap->drive, line, DAP_SECONDS, &answer);
    bool selected = answer.rc == GD_OK;
    drive_answer_free(&answer);
    return selected || frame == 0;
}

/* A tensor among the variables of a frame. No code of the program runs for it. */
static void list_local(struct dap *dap, int frame, const char *name, cJSON *list)
{
    struct gd_buf line = GD_BUF_INIT(4096);
    struct drive_answer answer;

    gd_buf_printf(&line, "info locals %s", name);
    if (!select_frame(dap, frame)) {
        gd_buf_deinit(&line);
        return;
    }
    drive_run(dap->drive, gd_buf_text(&line), DAP_SECONDS, &answer);
    gd_buf_deinit(&line);
    if (answer.rc == GD_OK) {
        list_value(&answer, list);
    } else {
        add_variable(list, "(unavailable)", out_text_of(answer.record, "message"), "", 0);
    }
    drive_answer_free(&answer);
}

static void list_locals(struct dap *dap, int frame, cJSON *list)
{
    struct drive_answer answer;
    const cJSON *one;

    if (!select_frame(dap, frame)) {
        return;
    }
    drive_run(dap->drive, "info locals", DAP_SECONDS, &answer);
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(answer.record, "variables"))
    {
        const char *name = out_text_of(one, "name");
        bool tensor = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(one, "tensor"));
        add_variable(list, name, out_text_of(one, "value"), out_text_of(one, "python_type"),
                     tensor ? add_place(dap, DAP_LOCAL, frame, name) : 0);
    }
    double more = out_number_of(answer.record, "more");
    if (more > 0) {
        char text[64];
        snprintf(text, sizeof(text), "%.0f more variables", more);
        add_variable(list, "...", text, "", 0);
    }
    if (answer.rc != GD_OK) {
        add_variable(list, "(unavailable)", out_text_of(answer.record, "message"), "", 0);
    }
    drive_answer_free(&answer);
}

void dap_variables(struct dap *dap, struct dap_request *request)
{
    double reference = out_number_of(request->arguments, "variablesReference");
    const struct gd_session *session = dap->repl->debugger->current;

    if (!(reference >= 1 && reference <= (double)dap->place_count) || !session ||
        session->state != GD_STOPPED) {
        dap_refuse(dap, request, "no such variables: the training has moved");
        return;
    }
    const struct dap_place *place = &dap->places[(size_t)reference - 1];
    enum dap_kind kind = place->kind;
    int frame = place->frame;
    char *name = strdup(place->name); /* the list may grow meanwhile */
    cJSON *body = cJSON_CreateObject(), *list = out_list(body, "variables");
    switch (kind) {
    case DAP_TENSORS: list_tensors(dap, list); break;
    case DAP_LOCALS: list_locals(dap, frame, list); break;
    case DAP_METRICS: list_metrics(dap, list); break;
    case DAP_TENSOR: list_tensor(dap, name ? name : "", list); break;
    case DAP_LOCAL: list_local(dap, frame, name ? name : "", list); break;
    }
    free(name);
    dap_answer(dap, request, body);
}

/* ---- evaluate ---- */

/* In the console, any command line; elsewhere the value of an expression. */
void dap_evaluate(struct dap *dap, struct dap_request *request)
{
    const char *expression = out_text_of(request->arguments, "expression");
    const char *context = out_text_of(request->arguments, "context");
    bool prints = strcmp(context, "hover") == 0 || strcmp(context, "watch") == 0 ||
                  strcmp(context, "variables") == 0 || strcmp(context, "clipboard") == 0;
    struct gd_buf line = GD_BUF_INIT(65536);
    struct drive_answer answer;

    gd_buf_printf(&line, "%s%s", prints ? "print " : "", expression);
    for (size_t i = 0; prints && i < line.len; i++) { /* a second line would be a command */
        line.data[i] = line.data[i] == '\n' ? ' ' : line.data[i];
    }
    const struct gd_session *session = dap->repl->debugger->current;
    double id = out_number_of(request->arguments, "frameId");
    if (session && session->state == GD_STOPPED && id >= 0 && id < 1e15 &&
        session->number == (int64_t)id / FRAMES) {
        select_frame(dap, (int64_t)id % FRAMES);
    }
    if (line.failed) {
        dap_refuse(dap, request, "the expression is too long");
    } else if (dap_run(dap, request, gd_buf_text(&line), &answer)) {
        cJSON *body = cJSON_CreateObject();
        trim_text(&answer.text);
        out_set(body, OUT_JSON("result", cJSON_CreateString(gd_buf_text(&answer.text))),
                OUT_INT("variablesReference", 0));
        dap_answer(dap, request, body);
        drive_answer_free(&answer);
    }
    gd_buf_deinit(&line);
}

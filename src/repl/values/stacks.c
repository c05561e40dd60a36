// SPDX-License-Identifier: GPL-3.0-or-later
/* Stacks of nodes: the source places that created them, and substitutes for a missing stack. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "engine/line/line.h"
#include "repl/core/command.h"
#include "repl/values/evaluate.h"
#include "repl/values/evaluate_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/srcfile.h"
#include "repl/values/stacks.h"

#define MAKERS_DEEP 4    /* distance of a substitute */
#define MAKERS_MOST 1000 /* nodes that are searched for a substitute */

int stack_places(struct command_call *call, gd_node_id node, struct stack_places *ret,
                 struct gd_err *err)
{
    uint32_t count = 0;
    const struct gd_frame *frame = node == GD_NO_NODE
                                       ? gd_session_line_stack(call->session, &count)
                                       : gd_graph_stack(call->session->graph, node, &count);
    struct stack_places places = {.frame = frame, .frame_count = count};
    places.place = gd_arena_alloc(call->arena, ((size_t)count + 1) * sizeof(*places.place));
    if (!places.place) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!frame[i].is_title && frame[i].file[0]) {
            places.place[places.count++] = i;
        }
    }
    *ret = places;
    return GD_OK;
}

/* ---- the training thread's stack ------------------------------------------------------------- */

#define STACK_COMMAND "stack"

/* Whether it is a stopped Python program whose stack did not come by itself. */
static bool can_ask(const struct gd_session *session)
{
    return session->state == GD_STOPPED && session->current == GD_NO_NODE &&
           !session->stop.at_line && evaluate_is_python(session);
}

static void take_answer(struct gd_session *session, const cJSON *reply)
{
    const cJSON *item, *list = cJSON_GetObjectItem(reply, "frames");
    size_t count = 0;
    struct gd_frame *frame = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*frame));

    cJSON_ArrayForEach(item, list)
    {
        if (frame) {
            double line = out_number_of(item, "line");
            frame[count++] = (struct gd_frame){
                .file = out_text_of(item, "file"),
                .line = line >= 1 && line <= INT32_MAX ? (uint32_t)line : 0,
                .function = out_text_of(item, "function"),
                .code = out_text_of(item, "code"),
                .library = cJSON_IsTrue(cJSON_GetObjectItem(item, "library")),
            };
        }
    }
    gd_session_on_stack(session, frame, count);
    free(frame);
}

static void ask_stack(struct command_call *call)
{
    cJSON *reply = NULL;

    if (can_ask(call->session) && evaluate_send(call, STACK_COMMAND, "{}", &reply, NULL) == GD_OK) {
        take_answer(call->session, reply);
    }
    cJSON_Delete(reply);
}

struct later { /* a request for which nobody waits */
    struct gd_debugger *debugger;
    int session;
    uint64_t stop;
};

static void on_answer(void *ctx, const char *text, const struct gd_err *err)
{
    struct later *later = ctx;
    /* with an error, the debugger may be about to end */
    struct gd_session *session =
        err || !text ? NULL : gd_debugger_session(later->debugger, later->session);

    if (session && session->state == GD_STOPPED && session->stop.sequence == later->stop) {
        cJSON *reply = cJSON_Parse(text);
        take_answer(session, reply);
        cJSON_Delete(reply);
    }
    free(later);
}

void stack_ask_later(struct gd_session *session)
{
    if (!can_ask(session) || !gd_session_begin_stack(session)) {
        return;
    }
    struct later *later = malloc(sizeof(*later));
    if (later) {
        *later = (struct later){session->debugger, session->number, session->stop.sequence};
        if (gd_target_command(session->target, STACK_COMMAND, "{}", GD_NO_NODE, on_answer, later,
                              NULL) != GD_OK) {
            free(later);
        }
    }
}

/* ---- the stack that is meant ----------------------------------------------------------------- */

int stack_subject(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err)
{
    uint32_t count;
    if (!text && !gd_session_line_stack(call->session, &count)) {
        ask_stack(call);
    }
    if (!text && gd_session_line_stack(call->session, &count)) {
        *ret = GD_NO_NODE;
        return GD_OK;
    }
    return inspect_node(call, text, ret, err);
}

/* The gradient of an eager program that nothing produces: the node is a placeholder. */
static bool is_unreached(const struct gd_node_info *info)
{
    const char *dot = strrchr(info->name, '.');
    return info->kind == GD_NODE_GRADIENT && info->input_count == 0 &&
           (strcmp(info->type, "Gradient") == 0 || strcmp(info->type, "InputGradient") == 0) &&
           dot && strcmp(dot, ".grad") == 0;
}

int stack_missing(struct command_call *call, gd_node_id node, struct gd_err *err)
{
    struct gd_node_info info = {.name = ""};
    if (gd_graph_node(call->session->graph, node, &info) && is_unreached(&info)) {
        const char *name = out_safe(call, info.name);
        return gd_fail(err, GD_ENODATA,
                       "%.*s has no gradient: no observed backward pass reached it (`why %.200s` "
                       "explains why)",
                       (int)(strlen(name) > 200 ? 200 : strlen(name) - strlen(".grad")), name,
                       name);
    }
    return gd_fail(err, GD_ENODATA, "the %s no stack for %.300s",
                   gd_catalog_of(call->session) ? "dump has" : "training process sent",
                   out_safe(call, info.name));
}

int stack_need_places(struct command_call *call, gd_node_id node, struct stack_places *ret,
                      struct gd_err *err)
{
    int rc = stack_places(call, node, ret, err);
    if (rc == GD_OK && ret->count == 0) {
        return stack_missing(call, node, err);
    }
    return rc;
}

static const char *frame_text(struct command_call *call, const struct gd_frame *frame)
{
    const char *text = out_safe(call, frame->file);
    if (frame->line > 0) {
        text = inspect_printf(call, "%s:%u", text, frame->line);
    }
    if (frame->function[0]) {
        text = inspect_printf(call, "%s in %s", text, out_safe(call, frame->function));
    }
    return text;
}

/* The source line of a frame: as the training process sent it, else from the file; "": neither has
 * it. */
static const char *frame_code(struct command_call *call, const struct gd_frame *frame)
{
    struct srcfile_part part;
    if (frame->code[0]) {
        return out_safe(call, frame->code + strspn(frame->code, " \t"));
    }
    if (frame->line > 0 && srcfile_read(call, frame->file, frame->line, 1, &part, NULL) == GD_OK &&
        part.count == 1) {
        return part.line[0] + strspn(part.line[0], " ");
    }
    return "";
}

void stack_show_frame(struct command_call *call, cJSON *object, uint32_t number,
                      const struct gd_frame *frame)
{
    out_set(object, OUT_INT("frame", number), OUT_TEXT("file", frame->file),
            OUT_INT("line", frame->line), OUT_SOME("function", frame->function),
            OUT_TEXT("code", frame_code(call, frame)));
    out_say(call->out, object, "#{frame:-2} {text}\n[      {code}\n]",
            OUT_TEXT("text", frame_text(call, frame)));
}

bool stack_own_frame(const struct stack_places *places, uint32_t *ret)
{
    for (uint32_t i = 0; i < places->count; i++) {
        if (!gd_frame_is_library(&places->frame[places->place[i]])) {
            *ret = i;
            return true;
        }
    }
    *ret = 0;
    return places->count > 0;
}

/* Adds the node unless its stack is already there. False: it has no stack. */
static bool take_maker(struct command_call *call, gd_node_id node, struct stack_makers *makers)
{
    uint32_t frames = 0;
    const struct gd_frame *stack = gd_graph_stack(call->session->graph, node, &frames);

    if (frames == 0) {
        return false;
    }
    for (uint32_t i = 0; i < makers->count; i++) {
        if (makers->stack[i] == stack) {
            return true;
        }
    }
    if (makers->count == STACK_MAKERS) {
        makers->more++;
        return true;
    }
    makers->node[makers->count] = node;
    makers->stack[makers->count++] = stack;
    return true;
}

/* A gradient is produced by the backward pass through its node. */
static void find_makers(struct command_call *call, gd_node_id node, int depth,
                        struct stack_makers *makers)
{
    struct gd_node_info info;

    if (!gd_graph_node(call->session->graph, node, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.input_count && makers->looked++ < MAKERS_MOST; i++) {
        if (!info.inputs[i].control && !take_maker(call, info.inputs[i].node, makers) &&
            depth < MAKERS_DEEP) {
            find_makers(call, info.inputs[i].node, depth + 1, makers);
        }
    }
}

/* A weight is shown where it is used. */
static void find_users(struct command_call *call, gd_node_id node, struct stack_makers *makers)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(call->session->graph, node, &edges);

    for (uint32_t i = 0; i < count; i++) {
        take_maker(call, edges[i].node, makers);
    }
}

const char *stack_find_makers(struct command_call *call, const struct gd_node_info *info,
                              gd_node_id node, struct stack_makers *makers)
{
    if (info->kind == GD_NODE_WEIGHT || info->kind == GD_NODE_PARAMETER) {
        find_users(call, node, makers);
        return "used by";
    }
    if (info->kind == GD_NODE_GRADIENT) {
        find_makers(call, node, 1, makers);
    }
    return "made by";
}

gd_node_id stack_node(struct command_call *call, gd_node_id node, bool tell)
{
    struct gd_node_info info, other;
    struct stack_makers makers = {.count = 0};
    uint32_t count = 0;

    gd_graph_stack(call->session->graph, node, &count);
    if (count > 0 || !gd_graph_node(call->session->graph, node, &info)) {
        return node;
    }
    const char *how = stack_find_makers(call, &info, node, &makers);
    if (makers.count == 0 || !gd_graph_node(call->session->graph, makers.node[0], &other)) {
        return node;
    }
    if (tell) {
        out_printf(call->out, "%s (%s) has no source location of its own. It is %s %s (%s)\n",
                   out_safe(call, info.name), out_safe(call, info.type), how,
                   out_safe(call, other.name), out_safe(call, other.type));
    }
    return makers.node[0];
}

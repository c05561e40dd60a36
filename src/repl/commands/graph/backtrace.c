// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: backtrace. Also "info stack". */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/stacks.h"

#define FRAMES_SHOWN 20

static bool any_own(const struct stack_places *places)
{
    uint32_t own;
    return stack_own_frame(places, &own) &&
           !gd_frame_is_library(&places->frame[places->place[own]]);
}

struct trace {
    bool all;
    bool skip_library;
    int64_t limit;
    uint32_t number; /* number of the next frame */
    uint32_t shown, hidden;
    cJSON *list;
};

static void trace_frame(struct command_call *call, struct trace *trace,
                        const struct gd_frame *frame)
{
    if (frame->is_title || !frame->file[0]) {
        cJSON *item = out_push(trace->list);
        out_set(item, OUT_TEXT("title", frame->code));
        out_say(call->out, item, "[    {title}\n]");
        return;
    }
    uint32_t number = trace->number++;
    if (!trace->all &&
        (trace->shown >= trace->limit || (trace->skip_library && gd_frame_is_library(frame)))) {
        trace->hidden++;
        return;
    }
    trace->shown++;
    stack_show_frame(call, out_push(trace->list), number, frame);
}

static int backtrace_of(struct command_call *call, gd_node_id node, bool all, int64_t limit,
                        struct gd_err *err)
{
    struct stack_places places;
    int rc = stack_need_places(call, node, &places, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct trace trace = {.all = all, .limit = limit, .skip_library = any_own(&places)};
    cJSON *record = out_record(call->out, "stack");
    inspect_add_node(call, record, node);
    out_say(call->out, record, "[{node} ({node_type})\n]");
    out_set(record, OUT_INT("selected", inspect_frame(call, node)));
    trace.list = out_list(record, "frames");
    for (uint32_t i = 0; i < places.frame_count; i++) {
        trace_frame(call, &trace, &places.frame[i]);
    }
    if (trace.hidden > 0) {
        out_printf(call->out, "(%s hidden: backtrace all)\n",
                   inspect_plural(call, trace.hidden, "frame"));
    }
    return GD_OK;
}

static int backtrace_around(struct command_call *call, gd_node_id node, bool all, int64_t limit,
                            struct gd_err *err)
{
    struct gd_node_info info;
    struct gd_err refused = *err;
    struct stack_makers makers = {.count = 0};
    const char *how = "";

    if (gd_graph_node(call->session->graph, node, &info)) {
        how = stack_find_makers(call, &info, node, &makers);
    }
    if (makers.count == 0) {
        *err = refused;
        return refused.code;
    }
    out_printf(call->out, "%s (%s) has no source location of its own. It is %s\n",
               out_safe(call, info.name), out_safe(call, info.type), how);
    for (uint32_t i = 0; i < makers.count; i++) {
        int rc = backtrace_of(call, makers.node[i], all, limit, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (makers.more > 0) {
        out_printf(call->out, "and at %s\n", inspect_plural(call, makers.more, "other place"));
    }
    return GD_OK;
}

static bool is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

int info_stack(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "all") || inspect_take_flag(call, "-a");
    int64_t limit = FRAMES_SHOWN;
    int rc = GD_OK;
    if (call->argc > 0 && is_number(call->argv[call->argc - 1])) {
        rc = arg_count(call->argv[--call->argc], 1, INT32_MAX, &limit, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    gd_node_id node;
    rc = stack_subject(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = backtrace_of(call, node, all, limit, err);
    return rc == GD_ENODATA ? backtrace_around(call, node, all, limit, err) : rc;
}

const struct command cmd_backtrace = {
    .name = "backtrace",
    .aliases = "bt where w",
    .group = "graph",
    .usage = "backtrace [NODE] [COUNT] [all]",
    .summary = "Show the call stack that created a node",
    .help =
        "Where the training is stopped at a line, or between operators of a Python program, show\n"
        "the stack of its thread.\n"
        "The innermost frame is #0. Frames of frameworks and their helpers are hidden unless\n"
        "`all` is given or there are no others. A gradient is shown with the stack of its\n"
        "producer, a weight with that of its user.",
    .examples = "backtrace\n"
                "bt model/block0/attn/linear all",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = info_stack,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: frame, up, down. Also "info frame". */
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/stacks.h"

static int select_frame(struct command_call *call, gd_node_id node, int64_t number,
                        const struct stack_places *places, struct gd_err *err)
{
    if (number < 0 || number >= places->count) {
        const char *name =
            node != GD_NO_NODE ? gd_graph_name(call->session->graph, node) : "the stack";
        return gd_fail(err, GD_ENOTFOUND, "there is no frame %lld: %.300s has frames 0 to %u",
                       (long long)number, out_safe(call, name), places->count - 1);
    }
    inspect_set_frame(call, node, (uint32_t)number);
    cJSON *record = out_record(call->out, "frame");
    inspect_add_node(call, record, node);
    stack_show_frame(call, record, (uint32_t)number, &places->frame[places->place[number]]);
    return GD_OK;
}

int info_frame(struct command_call *call, struct gd_err *err)
{
    gd_node_id node;
    struct stack_places places;
    int rc = stack_subject(call, NULL, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, true);
        rc = stack_need_places(call, node, &places, err);
    }
    int64_t number = rc == GD_OK ? inspect_frame(call, node) : 0;
    if (rc == GD_OK && call->argc > 0) {
        rc = arg_count(call->argv[0], 0, UINT32_MAX, &number, err);
    }
    return rc == GD_OK ? select_frame(call, node, number, &places, err) : rc;
}

/* The nearest frame in that direction which `backtrace` shows; negative: there is none. */
static int64_t next_shown(const struct stack_places *places, int64_t from, int direction)
{
    uint32_t own;
    bool any_own =
        stack_own_frame(places, &own) && !gd_frame_is_library(&places->frame[places->place[own]]);

    for (int64_t to = from + direction; to >= 0 && to < places->count; to += direction) {
        if (!any_own || !gd_frame_is_library(&places->frame[places->place[to]])) {
            return to;
        }
    }
    return -1;
}

/* Up is towards the callers, as in gdb. A move past an end stops at the end; at the end itself it
 * is an error. */
static int move_frame(struct command_call *call, struct gd_err *err)
{
    int direction = call->command->variant;
    int64_t count = 1;
    int rc = call->argc > 0 ? arg_count(call->argv[0], 1, INT32_MAX, &count, err) : GD_OK;
    gd_node_id node;
    struct stack_places places;
    rc = rc != GD_OK ? rc : stack_subject(call, NULL, &node, err);
    if (rc == GD_OK) {
        node = stack_node(call, node, false);
        rc = stack_need_places(call, node, &places, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    int64_t from = inspect_frame(call, node);
    int64_t to = from;
    for (int64_t next = from; count > 0; count--) {
        next = next_shown(&places, next, direction);
        if (next < 0) {
            break;
        }
        to = next;
    }
    if (to == from) {
        return gd_fail(err, GD_ENOTFOUND, "this is the %s frame",
                       direction > 0 ? "outermost" : "innermost");
    }
    return select_frame(call, node, to, &places, err);
}

const struct command cmd_frame = {
    .name = "frame",
    .aliases = "f",
    .group = "graph",
    .usage = "frame [N]",
    .summary = "Select frame N of the current node's stack, or show the selected one",
    .help = "For a gradient this is the stack of its producer, for a weight that of its user: the\n"
            "first one that `backtrace` shows.",
    .examples = "frame 1",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = info_frame,
};

const struct command cmd_up = {
    .name = "up",
    .group = "graph",
    .usage = "up [N]",
    .summary = "Select the frame that called this one",
    .examples = "up\n"
                "up 2",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .variant = 1,
    .run = move_frame,
};

const struct command cmd_down = {
    .name = "down",
    .aliases = "dow",
    .group = "graph",
    .usage = "down [N]",
    .summary = "Select the frame that this one called",
    .examples = "down",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .variant = -1,
    .run = move_frame,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: finish */
#include <string.h>

#include "engine/graph/part.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/lines.h"
#include "repl/values/nodes.h"
#include "repl/values/stacks.h"

#define FINISH_COMMAND "finish-frame" /* of the training process */

/* ---- a function ------------------------------------------------------------------------------ */

/* Asks the process to stop where the frame returns, which is number `place` of the stack that it
 * sent. */
static int ask_for_return(struct command_call *call, const struct gd_frame *caller, uint32_t place,
                          struct gd_err *err)
{
    const char *reply = NULL;
    struct gd_breakpoint *at = NULL;
    const char *where = inspect_printf(call, "%s:%u", caller->file, caller->line);

    int rc = gd_line_break_return(call->debugger, where, &at, err);
    if (rc != GD_OK) {
        return rc;
    }
    int number = at->number;
    rc = repl_command(call, FINISH_COMMAND, inspect_printf(call, "%d %u", number, place),
                      GD_NO_NODE, &reply, err);
    if (rc != GD_OK) {
        gd_debugger_delete_breakpoint(call->debugger, number, NULL);
    }
    return rc;
}

/* At a line: until the selected frame returns to its caller. */
static int finish_frame(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    struct stack_places places;
    uint32_t number = inspect_frame(call, GD_NO_NODE);

    int rc = stack_need_places(call, GD_NO_NODE, &places, err);
    if (rc == GD_OK && number + 1 >= places.count) {
        rc = gd_fail(err, GD_EINVAL,
                     "frame %u is the outermost one: nothing called it; \"continue\" runs on",
                     number);
    }
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_frame *frame = &places.frame[places.place[number]];
    const struct gd_frame *caller = &places.frame[places.place[number + 1]];
    const char *text =
        inspect_printf(call, "Run till exit from #%-2u %s:%u in %s\n", number,
                       out_safe(call, frame->file), frame->line, out_safe(call, frame->function));
    rc = ask_for_return(call, caller, places.place[number], err);
    if (rc == GD_OK) {
        out_printf(call->out, "%s", text);
        rc = repl_resume(call, &run, err);
    }
    return rc;
}

/* ---- a module -------------------------------------------------------------------------------- */

/* The innermost module around the node where the training is stopped that has more operators to
 * run. *name: in the arena. False: there is none. */
static bool find_module(struct command_call *call, gd_node_id *last, const char **name)
{
    const struct gd_session *session = call->session;
    const struct gd_graph *graph = session->graph;
    gd_node_id node = session->stop.node;
    struct gd_err ignored;
    struct gd_node_info info;

    if (session->stop.at_step_end || session->stop.reason == GD_STOP_PHASE || node == GD_NO_NODE ||
        !gd_graph_node(graph, node, &info) || gd_graph_part(graph, node) != GD_PART_MODEL ||
        info.order == GD_NO_ORDER) {
        return false;
    }
    char *scope = gd_arena_strdup(call->arena, info.name);
    for (char *end = scope ? strrchr(scope, '/') : NULL; end; end = strrchr(scope, '/')) {
        *end = '\0';
        if (nodes_find_module(call, scope, true, last, &ignored) == GD_OK &&
            gd_graph_part(graph, *last) == GD_PART_MODEL &&
            gd_graph_order(graph, *last) != GD_NO_ORDER &&
            gd_graph_order(graph, *last) > info.order) {
            *name = scope;
            return true;
        }
    }
    return false;
}

/* Where the stop is: out of the function, the module, or the phase. */
static int finish_here(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_FINISH, .node = GD_NO_NODE};
    uint32_t count;
    const char *name = NULL;

    /* elsewhere, a stack that was asked for is inside of the agent's hook */
    if (call->session->stop.at_line && gd_session_line_stack(call->session, &count)) {
        return finish_frame(call, err);
    }
    if (find_module(call, &run.node, &name)) {
        run.kind = GD_RUN_TO_NODE;
        out_printf(call->out, "Run till the end of %s\n", out_safe(call, name));
    }
    return repl_resume(call, &run, err);
}

static int run_finish(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_FINISH, .node = GD_NO_NODE};
    int rc = GD_OK;

    if (call->argc == 0) {
        return finish_here(call, err);
    }
    if (strcmp(call->argv[0], "phase") != 0) {
        run.kind = GD_RUN_TO_NODE;
        rc = nodes_find_module(call, call->argv[0], true, &run.node, err);
    }
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

const struct command cmd_finish = {
    .name = "finish",
    .aliases = "fin",
    .group = "running",
    .usage = "finish [MODULE | CLASS | phase] [&]",
    .summary = "Run to the end of the current function, module or phase",
    .help =
        "At a line: until the selected frame's function returns to its caller, or yields. At an\n"
        "operator of a module: until the last operator of the module in the forward pass; if\n"
        "that was it, of the module around it. Elsewhere, and with \"phase\": until the end of\n"
        "the phase, which is forward, backward or optimizer; a training process that does not\n"
        "know them reports an error.",
    .examples = "finish\n"
                "finish phase\n"
                "finish model.block0.attn",
    .args = {ARG_NODE},
    .words = {0, 1, "specify one module, \"phase\", or nothing for where the training is"},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .run = run_finish,
};

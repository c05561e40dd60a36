// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: run-to */
#include <inttypes.h>
#include <string.h>

#include "engine/graph/part.h"
#include "engine/watch/expected.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/values/lines.h"
#include "repl/values/nodes.h"

/* A module none of whose operators has run: to the first one that does, as `tbreak` would. */
static int run_to_new(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    int rc = gd_debugger_break(call->debugger, call->argv[0], true, NULL, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

/* `until step 10`: to the end of that step. */
static int run_to_step(struct command_call *call, struct gd_err *err)
{
    const struct gd_stop *stop = &call->session->stop;
    bool goes = (call->session->target->capabilities & GD_CAN_GOTO) != 0; /* a dump */
    int64_t over = stop->at_step_end || stop->step < 1 ? stop->step : stop->step - 1;
    int64_t step;

    int rc = arg_count(call->argv[1], goes ? INT64_MIN + 1 : 1, INT64_MAX, &step, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (step <= over) {
        return gd_fail(err, GD_EINVAL,
                       "step %" PRId64 " is over: the training is at step %" PRId64 "%s", step,
                       stop->step, goes ? "; use \"goto\" to go back" : "; specify a later step");
    }
    struct gd_run run = {.kind = goes ? GD_RUN_GOTO : GD_RUN_STEP,
                         .count = goes ? step : step - over,
                         .node = GD_NO_NODE};
    return repl_resume(call, &run, err);
}

static int run_to_node(struct command_call *call, struct gd_err *err);

/* `until LINE`, `until FUNCTION`: a breakpoint that the next stop deletes, wherever that is. */
static int run_to_line(struct command_call *call, const char *place, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    struct gd_breakpoint *at = NULL;

    if (gd_session_is_record(call->session)) {
        return gd_fail(err, GD_EUNSUPPORTED, "a dump has steps and nodes, but runs no lines");
    }
    int rc = lines_break(call, place, LINES_MOMENTARY, "", &at, err);
    if (rc == GD_OK && !at && !strchr(place, ':')) {
        return run_to_node(call, err); /* no function: what it says about nodes */
    }
    return rc == GD_OK && at ? repl_resume(call, &run, err) : rc;
}

static int run_to_node(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_TO_NODE, .node = GD_NO_NODE};
    struct gd_graph_counts counts;
    struct gd_err why;

    int rc = arg_node(call, call->argv[0], &run.node, err);
    bool forward = rc == GD_OK && gd_graph_part(call->session->graph, run.node) <= GD_PART_OUTSIDE;
    int found = forward || !call->session
                    ? GD_ENOTFOUND
                    : nodes_find_module(call, call->argv[0], false, &run.node, &why);
    if (found == GD_ENODATA && gd_session_grows(call->session)) {
        return run_to_new(call, err);
    }
    rc = found == GD_OK ? GD_OK : rc;
    rc = rc == GD_OK ? nodes_must_run(call, run.node, err) : rc;
    gd_graph_counts(call->session->graph, &counts);
    if (rc == GD_ENOTFOUND && counts.nodes == 0) {
        run.name = call->argv[0]; /* a process that sent no graph still knows its nodes */
        rc = GD_OK;
    }
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_run_to(struct command_call *call, struct gd_err *err)
{
    const char *place = NULL;

    if (call->argc == 2 && strcmp(call->argv[0], "step") == 0) {
        return run_to_step(call, err);
    }
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "run-to: specify one place, or \"step\" and a number");
    }
    int rc = lines_place_of(call, call->argv[0], true, &place, err);
    if (rc != GD_OK) {
        return rc;
    }
    return place ? run_to_line(call, place, err) : run_to_node(call, err);
}

const struct command cmd_run_to = {
    .name = "run-to",
    .aliases = "until u advance",
    .group = "running",
    .usage = "run-to PLACE [&]",
    .summary = "Run until a node has executed, or before a line, or until the end of step N",
    .help = "PLACE is a node; a module or a class: its first operator; FILE:LINE; a line of the\n"
            "selected frame's file; FUNCTION, Net.forward or FILE:FUNCTION: its first line; or\n"
            "\"step N\": the end of that step. Another stop on the way ends the run, too.",
    .examples = "run-to model/block0/attn/linear\n"
                "run-to model.block0.attn\n"
                "until train.py:42\n"
                "until 42\n"
                "until step 10",
    .args = {ARG_NODE},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .run = run_run_to,
};

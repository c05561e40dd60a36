// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: watch, trace, twatch
 * Set watchpoints.
 */
#include "repl/core/watch.h"
#include "repl/core/command.h"
#include "repl/core/watch_args.h"

static int set_watchpoint(struct command_call *call, enum gd_watch_action action, bool temporary,
                          struct gd_err *err)
{
    struct watch_args args;
    struct gd_watchpoint *watch = NULL;
    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "%s: name a condition (\"info conditions\" lists them)",
                       call->command->name);
    }
    int rc = watch_args_parse(call->arena, call->line, call->line_at, &args, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_watch_spec spec = {.condition = args.condition,
                                 .values = args.values,
                                 .value_count = args.value_count,
                                 .expression = args.expression,
                                 .guard = args.guard,
                                 .where = args.where,
                                 .when = args.when,
                                 .steps = args.steps,
                                 .action = action,
                                 .temporary = temporary};
    rc = gd_watchpoint_add(call->debugger, &spec, &watch, err);
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

static int run_watch(struct command_call *call, struct gd_err *err)
{
    return set_watchpoint(call, GD_WATCH_STOP, false, err);
}

static int run_twatch(struct command_call *call, struct gd_err *err)
{
    return set_watchpoint(call, GD_WATCH_STOP, true, err);
}

static int run_trace(struct command_call *call, struct gd_err *err)
{
    return set_watchpoint(call, GD_WATCH_TRACE, false, err);
}

#define WATCH_USAGE " [-exact | -step] [-for N] CONDITION [PARAM=VALUE]... [on SELECTOR] [if EXPR]"

const struct command cmd_watch = {
    .name = "watch",
    .aliases = "wa wat",
    .group = "breakpoints",
    .usage = "watch" WATCH_USAGE,
    .summary = "Stop the training when a tensor meets a condition or an expression",
    .help =
        "The condition goes by its name or abbreviation: \"info conditions\" lists them with\n"
        "their parameters. Without a selector it applies to what it is made for (weights,\n"
        "gradients, activations, all, the loss). In its place may stand an expression over\n"
        "figures of the tensor (\"info statistics\" lists them) and over named numbers of the\n"
        "training (loss, lr, step); with \"if\" a second one must be true as well.\n"
        "\n"
        "-exact stops right after the operator, before the next one runs. -step looks at the end\n"
        "of the step; what is gone by then is copied when it is made, which takes memory, and\n"
        "more time than -exact. On weights, where nothing is copied, both cost the same. Without\n"
        "either, \"set watch-when\" decides.\n"
        "-for N fires when it has held in N steps in a row: one step often proves nothing.\n"
        "Infinities that the program asks for (a mask of -inf) do not count: \"info hits\" and\n"
        "\"info watchpoints\" say how many were hidden.\n"
        "Examples:\n"
        "  watch TO on all\n"
        "  watch TL abs_mean_gt=1000 on gradients\n"
        "  watch -for 10 TZ on weights except *bias*, *beta if loss != 0\n"
        "  watch -step GL max_gt=1e6 on gradients except *bias if step > 10\n"
        "  watch weight_overflow\n"
        "  watch 'max > 1e4 || nan > 0' on gradients\n"
        "  watch norm(cur-prev) > 100 * norm(prev) on head.weight\n"
        "  watch loss > 100",
    .args = {ARG_CONDITION, ARG_WATCH},
    .flags = CMD_RAW,
    .run = run_watch};

const struct command cmd_trace = {
    .name = "trace",
    .aliases = "tr tra",
    .group = "breakpoints",
    .usage = "trace" WATCH_USAGE,
    .summary = "Report when a tensor meets a condition, and go on",
    .help = "As watch, but the training does not stop: what fires is printed and kept for\n"
            "\"info hits\".\n"
            "Examples:\n"
            "  trace WNC on weights\n"
            "  trace AR range_start_inclusive=-1 range_end_inclusive=0 range_percentage_gt=99\n"
            "  trace GL max_gt=10\n"
            "  trace 'norm > 50' on gradients",
    .args = {ARG_CONDITION, ARG_WATCH},
    .flags = CMD_RAW,
    .run = run_trace};

const struct command cmd_twatch = {
    .name = "twatch",
    .aliases = "tw twa",
    .group = "breakpoints",
    .usage = "twatch" WATCH_USAGE,
    .summary = "Stop once when a tensor meets a condition",
    .help = "As watch; the watchpoint is deleted when it has stopped the training.\n"
            "Example:\n"
            "  twatch TO on activations",
    .args = {ARG_CONDITION, ARG_WATCH},
    .flags = CMD_RAW,
    .run = run_twatch};

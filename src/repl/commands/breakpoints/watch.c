// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: watch, trace, twatch */
#include <string.h>

#include "repl/core/watch_args.h"
#include "repl/values/figures.h"
#include "repl/values/watch.h"

enum variant { WATCH, WATCH_ONCE, TRACE };

/* The line is one word, which names a node or a module: `watch model`, as of wandb.watch. */
static bool is_place(const struct command_call *call)
{
    const struct gd_session *session = call->debugger->current;
    gd_node_id node;

    if (!session || strpbrk(call->line, " \t=")) {
        return false;
    }
    int rc = gd_graph_find(session->graph, call->line, &node, NULL);
    return rc == GD_OK || rc == GD_EAMBIGUOUS ||
           gd_graph_find_scope(session->graph, call->line, strlen(call->line)) != GD_NO_SCOPE;
}

static int run_watch(struct command_call *call, struct gd_err *err)
{
    struct watch_args args;
    struct gd_watchpoint *watch = NULL;
    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "%s: specify a condition (\"info conditions\" lists them)",
                       call->command->name);
    }
    int rc = watch_args_parse(call->arena, call->line, call->line_at, &args, err);
    if (rc == GD_ENOTFOUND && is_place(call)) {
        return gd_fail(
            err, rc,
            "%s: \"%.100s\" is not a condition; to look for NaN and Inf there: \"%s TO on "
            "%.100s\" (\"info conditions\" lists the others)",
            call->command->name, call->line, call->command->name, call->line);
    }
    if (rc != GD_OK) {
        return rc;
    }
    const char *tensor = NULL;
    if (args.expression) {
        rc = figures_take(call, args.expression, &args.expression, &tensor, err);
    }
    if (rc == GD_OK && tensor && args.where && !figures_same_node(call, tensor, args.where)) {
        rc = gd_fail(err, GD_EINVAL,
                     "%s: the expression is about %.100s, but \"on\" says %.100s: leave one out",
                     call->command->name, out_safe(call, tensor), out_safe(call, args.where));
    }
    if (rc != GD_OK) {
        return rc;
    }
    args.where = args.where ? args.where : tensor;
    struct gd_watch_spec spec = {.condition = args.condition,
                                 .values = args.values,
                                 .value_count = args.value_count,
                                 .expression = args.expression,
                                 .guard = args.guard,
                                 .where = args.where,
                                 .when = args.when,
                                 .steps = args.steps,
                                 .action = call->command->variant == TRACE ? GD_WATCH_TRACE
                                                                           : GD_WATCH_STOP,
                                 .temporary = call->command->variant == WATCH_ONCE};
    rc = gd_watchpoint_add(call->debugger, &spec, &watch, err);
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

#define WATCH_USAGE " [-exact | -step] [-for N] CONDITION [PARAM=VALUE]... [on SELECTOR] [if EXPR]"

const struct command cmd_watch = {
    .name = "watch",
    .aliases = "wa wat",
    .group = "breakpoints",
    .usage = "watch" WATCH_USAGE,
    .summary = "Stop the training when a tensor meets a condition or an expression",
    .help =
        "The condition is given by name or abbreviation; \"info conditions\" lists conditions\n"
        "and their parameters. Without a selector it applies to what it is made for (weights,\n"
        "gradients, activations, all, or the loss). An expression over statistics of the tensor\n"
        "(\"info statistics\") and metrics of the training (loss, lr, step) can be used in place\n"
        "of a condition; with \"if\" a second expression must be true as well (see \"help\n"
        "conditions\").\n"
        "\n"
        "-exact stops right after the operator, before the next one runs. -step checks at the\n"
        "end of the step; values that are gone by then are copied when they are produced, which\n"
        "takes memory and more time than -exact. On weights, which need no copy, both cost the\n"
        "same. The default is \"set watch-when\".\n"
        "-for N fires only after N matching steps in a row: one step often proves nothing.\n"
        "Infinities that the program writes on purpose (a mask of -inf) do not count; \"info\n"
        "hits\" and \"info watchpoints\" say how many were hidden.",
    .examples = "watch TO on all\n"
                "watch TL abs_mean_gt=1000 on gradients\n"
                "watch -for 10 TZ on weights except *bias*, *beta if loss != 0\n"
                "watch -step GL max_gt=1e6 on gradients except *bias if step > 10\n"
                "watch weight_overflow\n"
                "watch 'max > 1e4 || nan > 0' on gradients\n"
                "watch norm(cur-prev) > 100 * norm(prev) on model/head/weight\n"
                "watch loss > 100",
    .args = {ARG_CONDITION, ARG_WATCH},
    .flags = CMD_RAW | CMD_METRICS,
    .run = run_watch,
};

const struct command cmd_trace = {
    .name = "trace",
    .aliases = "tr tra",
    .group = "breakpoints",
    .usage = "trace" WATCH_USAGE,
    .summary = "Report when a tensor meets a condition, without stopping",
    .help = "Like watch, but the training does not stop: hits are printed and listed by \"info\n"
            "hits\".",
    .examples = "trace WNC on weights\n"
                "trace AR range_start_inclusive=-1 range_end_inclusive=0 range_percentage_gt=99\n"
                "trace GL max_gt=10\n"
                "trace 'norm > 50' on gradients",
    .args = {ARG_CONDITION, ARG_WATCH},
    .flags = CMD_RAW | CMD_METRICS,
    .variant = TRACE,
    .run = run_watch,
};

const struct command cmd_twatch = {
    .name = "twatch",
    .aliases = "tw twa",
    .group = "breakpoints",
    .usage = "twatch" WATCH_USAGE,
    .summary = "Stop once when a tensor meets a condition",
    .help = "Like watch, but the watchpoint is deleted when it stops the training.",
    .examples = "twatch TO on activations",
    .args = {ARG_CONDITION, ARG_WATCH},
    .flags = CMD_RAW | CMD_METRICS,
    .variant = WATCH_ONCE,
    .run = run_watch,
};

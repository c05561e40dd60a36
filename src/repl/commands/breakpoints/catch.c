// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: catch, tcatch */
#include <stdio.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/commands/breakpoints/event.h"
#include "repl/commands/breakpoints/oom.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch_args.h"
#include "repl/launch/deferred.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

enum variant { ALWAYS, ONCE };

struct event {
    const char *name;
    const char *condition;  /* abbreviation of its condition; NULL: see expression */
    const char *expression; /* over metrics of the training */
};

/* Events that are not conditions. */
#define OVERFLOW  "overflow"
#define EXCEPTION "exception"
#define OOM       "oom"

static const struct event events[] = {{GD_DIVERGENCE, NULL, "divergent > 0"}, /* see ranks.h */
                                      {"lr", NULL, "lr != prev(lr)"},
                                      {"loss-spike", "LS", NULL},
                                      {"nan-loss", "LN", NULL},
                                      {"scale", NULL, "loss_scale != prev(loss_scale)"},
                                      {"skip", NULL, "skipped > 0"}};

static const struct event *event_of(const char *name)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        if (strcmp(events[i].name, name) == 0) {
            return &events[i];
        }
    }
    return NULL;
}

/* "if EXPR" or nothing. */
static int take_guard(struct command_call *call, const char *event, const char **ret,
                      struct gd_err *err)
{
    const char *guard = arg_after(call->line, "if");
    *ret = NULL;
    if (call->line[0] == '\0') {
        return GD_OK;
    }
    if (!guard || guard[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "catch %s: expected \"if EXPRESSION\"", event);
    }
    *ret = watch_args_unquote(call->arena, guard);
    return *ret ? GD_OK : gd_fail_nomem(err);
}

/* An event that is a condition takes the parameters of the condition. */
static int take_condition(struct command_call *call, const struct event *event,
                          struct watch_args *args, struct gd_err *err)
{
    size_t len = strlen(event->condition) + 1; /* shorter than "catch EVENT" */
    size_t size = len + strlen(call->line) + 1;
    char *text = gd_arena_alloc(call->arena, size);
    if (!text) {
        return gd_fail_nomem(err);
    }
    snprintf(text, size, "%s %s", event->condition, call->line);
    return watch_args_parse(call->arena, text, call->line_at > len ? call->line_at - len : 0, args,
                            err);
}

static int set_catchpoint(struct command_call *call, const struct event *event, bool temporary,
                          struct gd_err *err)
{
    struct gd_watchpoint *watch = NULL;
    struct gd_watch_spec spec = {.expression = event->expression,
                                 .when = GD_WHEN_STEP_END,
                                 .action = GD_WATCH_STOP,
                                 .temporary = temporary,
                                 .event = event->name};
    struct watch_args args;
    int rc;
    if (event->condition) {
        rc = take_condition(call, event, &args, err);
        if (rc == GD_OK && args.where) {
            return gd_fail(err, GD_EUSAGE, "catch %s: applies only to the metric \"loss\"",
                           event->name);
        }
        if (rc == GD_OK) {
            spec.condition = args.condition;
            spec.values = args.values;
            spec.value_count = args.value_count;
            spec.guard = args.guard;
        }
    } else {
        rc = take_guard(call, event->name, &spec.guard, err);
        if (rc == GD_OK && spec.guard && strcmp(event->name, GD_DIVERGENCE) == 0) {
            return gd_fail(err, GD_EUSAGE, "catch %s: takes no condition", event->name);
        }
    }
    rc = rc != GD_OK ? rc : gd_watchpoint_add(call->debugger, &spec, &watch, err);
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

/* Lists the events. */
static int list_events(struct command_call *call)
{
    cJSON *list = out_list(out_record(call->out, "catch"), "events");
    for (const struct command *sub = call->command->sub; sub->name; sub++) {
        out_push_text(list, sub->name);
        out_printf(call->out, "%s %-11s %s\n", call->command->name, sub->name, sub->summary);
    }
    return GD_OK;
}

static const struct exceptions {
    const char *word; /* the word after `catch exception` */
    const char *mode; /* argument of the process's command "exceptions" */
    const char *says;
} exceptions[] = {
    {"", "all",
     "The training will stop where an operator raises an exception, and before an exception ends "
     "the program."},
    {"uncaught", "uncaught",
     "The training will stop before an exception ends the program, at the operator that raised it "
     "if operators are observed."},
    {"off", "off", "Exceptions no longer stop the training."},
};

/* Applies to every process of the training. */
static int catch_exception(struct command_call *call, struct gd_err *err)
{
    const struct exceptions *chosen = NULL;
    const char *reply = NULL;
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
        if (strcmp(call->line, exceptions[i].word) == 0) {
            chosen = &exceptions[i];
        }
    }
    if (!chosen) {
        return gd_fail(err, GD_EUSAGE, "catch exception: expected \"uncaught\" or \"off\"");
    }
    int rc = repl_need_session(call, err);
    rc = rc != GD_OK ? rc
                     : repl_need_commands(call, "catch exception",
                                          "does not report exceptions (PyTorch processes do)", err);
    rc = rc != GD_OK ? rc : everyone_command(call, "exceptions", chosen->mode, &reply, err);
    if (rc == GD_OK) {
        out_set(out_record(call->out, "exceptions"), OUT_TEXT("mode", chosen->mode));
        out_printf(call->out, "%s\n", chosen->says);
    }
    return rc;
}

/* The training process detects it, not the debugger. */
static bool is_of_process(const struct command *sub)
{
    return strcmp(sub->name, OVERFLOW) == 0 || strcmp(sub->name, EXCEPTION) == 0 ||
           strcmp(sub->name, OOM) == 0;
}

/* The line is taken raw: "step > 100" is not a redirection. */
static int run_catch(struct command_call *call, struct gd_err *err)
{
    bool temporary = call->command->variant == ONCE;
    const char *all = call->line;
    const char *rest;
    const char *word = watch_first_word(call, &rest);
    const struct command *sub = NULL;
    if (word[0] == '\0') {
        return list_events(call);
    }
    enum gd_happening kind = event_take(call);
    if (kind) {
        return event_catch(call, kind, temporary, err);
    }
    int rc = command_find(call->command->sub, word, strlen(word), &sub, err);
    if (rc != GD_OK) {
        return rc == GD_ENOTFOUND ? event_unknown(call, word, err) : rc;
    }
    call->line_at += (size_t)(rest - call->line);
    call->line = rest;
    kind = gd_happening_find(sub->name); /* abbreviated */
    if (kind) {
        return event_catch(call, kind, temporary, err);
    }
    if (is_of_process(sub) && !deferred_is_due(call)) {
        return deferred_keep(call, all, err);
    }
    if (strcmp(sub->name, OVERFLOW) == 0) {
        return catch_overflow(call, temporary, err);
    }
    if (strcmp(sub->name, EXCEPTION) == 0) {
        return catch_exception(call, err);
    }
    if (strcmp(sub->name, OOM) == 0) {
        return catch_oom(call, err);
    }
    return set_catchpoint(call, event_of(sub->name), temporary, err);
}

#define SKIP_SUMMARY       "Stop when the gradient scaler skips the optimizer step"
#define SCALE_SUMMARY      "Stop when the loss scale changes"
#define LR_SUMMARY         "Stop when the learning rate changes"
#define SPIKE_SUMMARY      "Stop when the loss rises suddenly"
#define NAN_SUMMARY        "Stop when the loss is NaN or infinite"
#define DIVERGENCE_SUMMARY "Stop when a parameter is not equal on all ranks of the job"
#define OVERFLOW_SUMMARY   "Stop when an operator with finite inputs produces infinity or NaN"

/* Of these entries only the help and the arguments are used: the line is taken raw. */
static const struct command catch_subs[] = {
    EVENT_SUBS("catch", " [if EXPR]", "", run_catch),
    {.name = "skip",
     .usage = "catch skip [if EXPR]",
     .summary = SKIP_SUMMARY,
     .help = "The gradients contained infinities or NaN (GradScaler, DynamicLossScaler).",
     .run = run_catch},
    {.name = "scale",
     .usage = "catch scale [if EXPR]",
     .summary = SCALE_SUMMARY,
     .help = "The metric loss_scale differs from the previous step.",
     .run = run_catch},
    {.name = "lr",
     .usage = "catch lr [if EXPR]",
     .summary = LR_SUMMARY,
     .help = "The step used a different learning rate than the previous one.",
     .examples = "catch lr\n"
                 "catch lr if step > 100",
     .run = run_catch},
    {.name = "loss-spike",
     .usage = "catch loss-spike [PARAM=VALUE]... [if EXPR]",
     .summary = SPIKE_SUMMARY,
     .help = "Like watch LS, with its parameters.",
     .examples = "catch loss-spike\n"
                 "catch loss-spike mean_ratio_gt=5",
     .args = {ARG_WATCH},
     .run = run_catch},
    {.name = "nan-loss",
     .usage = "catch nan-loss [if EXPR]",
     .summary = NAN_SUMMARY,
     .help = "Like watch LN.",
     .run = run_catch},
    {.name = GD_DIVERGENCE,
     .usage = "catch divergence",
     .summary = DIVERGENCE_SUMMARY,
     .help =
         "Compare the ranks' parameters by digests at the end of each step (\"rank check\" does\n"
         "this once) and stop at the first rank that differs.",
     .run = run_catch},
    {.name = OVERFLOW,
     .usage = "catch overflow [N]",
     .summary = OVERFLOW_SUMMARY,
     .help =
         "Stop at the operator itself: its inputs are finite, its output is not. With N, only at\n"
         "the next N of them. \"rerun\" says whether the values or the data type cause it,\n"
         "\"overflow off\" ends the search.",
     .examples = "catch overflow\n"
                 "catch overflow 3",
     .args = {ARG_WORD},
     .run = run_catch},
    {.name = EXCEPTION,
     .usage = "catch exception [uncaught | off]",
     .summary = "Stop when an operator raises an exception, or when one would end the program",
     .help =
         "An uncaught exception always stops the training, at the operator that raised it when\n"
         "that is known. This command observes all operators from the next step on, so that\n"
         "exceptions that the program catches stop the training too. \"uncaught\" returns to the\n"
         "default; with \"off\" no exception stops the training.",
     .examples = "catch exception\n"
                 "catch exception off",
     .args = {ARG_WORD},
     .run = run_catch},
    {.name = OOM,
     .usage = "catch oom [off]",
     .summary = "Stop where an allocation fails, before the exception reaches the program",
     .help =
         "Operators and allocations are observed from the next step on, in forward, backward and\n"
         "optimizer, so \"why\" can say what was asked for, what holds the rest, and what would\n"
         "fit, and \"info memory\" knows the peak within a step. Observing takes time; \"catch\n"
         "oom off\" ends it. A C program stops where it calls gradb_raised().",
     .examples = "catch oom\n"
                 "catch oom off",
     .args = {ARG_CHOICE},
     .run = run_catch},
    {.name = NULL},
};

static const struct command tcatch_subs[] = {
    EVENT_SUBS("tcatch", " [if EXPR]", "", run_catch),
    {.name = "skip", .usage = "tcatch skip [if EXPR]", .summary = SKIP_SUMMARY, .run = run_catch},
    {.name = "scale",
     .usage = "tcatch scale [if EXPR]",
     .summary = SCALE_SUMMARY,
     .run = run_catch},
    {.name = "lr", .usage = "tcatch lr [if EXPR]", .summary = LR_SUMMARY, .run = run_catch},
    {.name = "loss-spike",
     .usage = "tcatch loss-spike [PARAM=VALUE]... [if EXPR]",
     .summary = SPIKE_SUMMARY,
     .args = {ARG_WATCH},
     .run = run_catch},
    {.name = "nan-loss",
     .usage = "tcatch nan-loss [if EXPR]",
     .summary = NAN_SUMMARY,
     .run = run_catch},
    {.name = GD_DIVERGENCE,
     .usage = "tcatch divergence",
     .summary = DIVERGENCE_SUMMARY,
     .run = run_catch},
    {.name = OVERFLOW, .usage = "tcatch overflow", .summary = OVERFLOW_SUMMARY, .run = run_catch},
    {.name = NULL},
};

const struct command cmd_catch = {
    .name = "catch",
    .aliases = "cat",
    .group = "breakpoints",
    .usage = "catch EVENT [if EXPR]",
    .summary = "Stop at an event of the training, or at the end of a step in which one occurred",
    .help =
        "Epochs, steps, evaluations, checkpoints, the beginning and the end: the training\n"
        "stops right there. \"epoch end\" and \"epoch_end\" are epoch-end, too. In a job of\n"
        "several ranks the events of rank 0 count. \"on\" runs a command there without stopping.\n"
        "At the end of a step: the loss is not finite or rises suddenly; the learning rate or\n"
        "the loss scale changes; the gradient scaler skips a step. They are detected in the\n"
        "metrics that the training reports (\"info scalars\").\n"
        "\"info breakpoints\" and \"info watchpoints\" list catchpoints; delete, disable, ignore\n"
        "and commands take their numbers. Without an event, list the events.",
    .examples = "catch nan-loss\n"
                "catch epoch-end if epoch > 2\n"
                "catch lr if step > 100\n"
                "catch loss-spike mean_ratio_gt=5",
    .args = {ARG_SUBCOMMAND},
    .flags = CMD_RAW | CMD_METRICS,
    .run = run_catch,
    .sub = catch_subs,
};

const struct command cmd_tcatch = {
    .name = "tcatch",
    .aliases = "tca",
    .group = "breakpoints",
    .usage = "tcatch EVENT [if EXPR]",
    .summary = "Stop once at the end of a step in which an event occurred",
    .help = "Like catch, but the catchpoint is deleted when it stops the training.",
    .examples = "tcatch skip",
    .args = {ARG_SUBCOMMAND},
    .flags = CMD_RAW | CMD_METRICS,
    .variant = ONCE,
    .run = run_catch,
    .sub = tcatch_subs,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: condition */
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/breakpoints/event.h"
#include "repl/core/watch_args.h"
#include "repl/values/lines.h"
#include "repl/values/watch.h"

/* Of a dprintf. */
static int guard_print(struct command_call *call, struct gd_breakpoint *at, const char *guard,
                       struct gd_err *err)
{
    guard = watch_args_unquote(call->arena, guard);
    int rc = guard ? gd_breakpoint_set_guard(at, guard, err) : gd_fail_nomem(err);

    if (rc == GD_OK) {
        out_printf(call->out,
                   guard[0] ? "Dprintf %d prints only if %s.\n" : "Dprintf %d: guard removed.%s\n",
                   at->number, out_safe(call, guard));
        breakpoint_record(call, out_record(call->out, "breakpoint"), at);
    }
    return rc;
}

static int guard_line(struct command_call *call, struct gd_breakpoint *at, const char *text,
                      struct gd_err *err)
{
    const char *guard = watch_args_unquote(call->arena, text);
    int rc = guard ? lines_set_guard(call, at, guard, err) : gd_fail_nomem(err);

    if (rc == GD_OK) {
        out_printf(call->out,
                   guard[0] ? "Breakpoint %d stops only if %s.\n"
                            : "Breakpoint %d: condition removed.%s\n",
                   at->number, out_safe(call, guard));
        breakpoint_record(call, out_record(call->out, "breakpoint"), at);
    }
    return rc;
}

static int set_event_guard(struct command_call *call, struct gd_breakpoint *at, const char *text,
                           struct gd_err *err)
{
    const char *guard = watch_args_unquote(call->arena, text);
    int rc = guard ? gd_catch_set_guard(call->debugger, at, guard, err) : gd_fail_nomem(err);

    if (rc == GD_OK) {
        event_show(call, at);
    }
    return rc;
}

static int run_condition(struct command_call *call, struct gd_err *err)
{
    const char *guard;
    const char *word = watch_first_word(call, &guard);
    struct gd_watchpoint *watch = NULL;
    int number;
    if (word[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "condition: specify a watchpoint number");
    }
    int rc = watch_number(call, word, &number, err);
    struct gd_breakpoint *at = rc == GD_OK ? gd_debugger_breakpoint(call->debugger, number) : NULL;
    if (at && at->event) {
        return set_event_guard(call, at, guard, err);
    }
    if (at && at->line && !at->print) {
        return guard_line(call, at, guard, err);
    }
    if (at && at->print) {
        return guard_print(call, at, guard, err);
    }
    if (at) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%d is a breakpoint: use \"break NODE if EXPR\" for a conditional one",
                       number);
    }
    rc = rc != GD_OK ? rc : watch_find(call, word, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    guard = watch_args_unquote(call->arena, guard);
    if (!guard) {
        return gd_fail_nomem(err);
    }
    rc = gd_watchpoint_set_guard(call->debugger, number, guard, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (watch->guard) {
        watch_show(call, watch);
    } else {
        out_printf(call->out, "%s %d: guard removed.\n", watch_noun(watch), number);
        watch_record(call, out_record(call->out, "watchpoint"), watch);
    }
    return GD_OK;
}

const struct command cmd_condition = {
    .name = "condition",
    .aliases = "cond",
    .group = "breakpoints",
    .usage = "condition N [EXPR]",
    .summary = "Set the guard of a watchpoint or dprintf: an expression that must also be true",
    .help = "The expression is written as after \"if\" in watch. Without one, remove the guard.",
    .examples = "condition 2 step > 100\n"
                "condition 2 'loss < 4 && max > 10'\n"
                "condition 2",
    .args = {ARG_WATCHPOINT, ARG_WORD},
    .flags = CMD_RAW | CMD_CHANGES | CMD_METRICS,
    .run = run_condition,
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: on */
#include <limits.h>
#include <string.h>

#include "engine/watch/expression.h"
#include "repl/commands/breakpoints/event.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch_args.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

static int list_events(struct command_call *call)
{
    cJSON *list = out_list(out_record(call->out, "on"), "events");

    for (const struct command *sub = call->command->sub; sub->name; sub++) {
        out_push_text(list, sub->name);
        out_printf(call->out, "on %-11s %s\n", sub->name, sub->summary);
    }
    return GD_OK;
}

static void skip_to(struct command_call *call, const char *rest)
{
    rest += strspn(rest, " \t");
    call->line_at += (size_t)(rest - call->line);
    call->line = rest;
}

/* "every N" */
static int take_every(struct command_call *call, int64_t *ret, struct gd_err *err)
{
    const char *rest = arg_after(call->line, "every");

    *ret = 1;
    if (!rest) {
        return GD_OK;
    }
    size_t len = strcspn(rest, " \t");
    const char *count = gd_arena_strndup(call->arena, rest, len);
    int rc = count ? arg_count(count, 1, INT_MAX, ret, err) : gd_fail_nomem(err);
    if (rc != GD_OK) {
        return gd_fail(err, GD_EUSAGE, "on: \"every\" takes a count, as in \"every 100\"");
    }
    skip_to(call, rest + len);
    return GD_OK;
}

/* "'EXPR'", or an EXPR that ends where it cannot be continued: the command begins there. */
static int take_guard(struct command_call *call, const char **ret, struct gd_err *err)
{
    const char *text = arg_after(call->line, "if");
    struct gd_expr *expr = NULL;

    *ret = NULL;
    if (!text) {
        return GD_OK;
    }
    skip_to(call, text);
    const char *end = text[0] == '\'' ? strchr(text + 1, '\'') : NULL;
    if (end) {
        *ret = gd_arena_strndup(call->arena, text + 1, (size_t)(end - text - 1));
        skip_to(call, end + 1);
        return *ret ? GD_OK : gd_fail_nomem(err);
    }
    if (gd_expr_parse(text, &expr, err) == GD_OK) {
        gd_expr_destroy(expr);
        return gd_fail(err, GD_EUSAGE, "on: a command is missing after the condition");
    }
    size_t at = err->offset <= strlen(text) ? err->offset : 0;
    const char *head = gd_arena_strndup(call->arena, text, at);
    if (!head) {
        return gd_fail_nomem(err);
    }
    if (at == 0 || gd_expr_parse(head, &expr, NULL) != GD_OK) {
        return err->code; /* the fault is in the expression itself */
    }
    gd_expr_destroy(expr);
    *ret = head;
    skip_to(call, text + at);
    return GD_OK;
}

/* The command must exist now, and be one line. */
static int check_command(struct command_call *call, struct gd_err *err)
{
    static const char *const bodies[] = {"commands", "define", "document", "on"};
    const struct command *command = NULL;
    struct parsed_line line;
    int rc = call->line[0] != '\0'
                 ? parse_line(call->line, call->arena, &line, err)
                 : gd_fail(err, GD_EUSAGE, "on: specify a command to run at the event");

    if (rc != GD_OK || repl_alias(call->repl, line.name) ||
        repl_user_command(call->repl, line.name, false)) {
        return rc;
    }
    rc = command_find(NULL, line.name, strlen(line.name), &command, err);
    if (rc == GD_ENOTFOUND && repl_user_command(call->repl, line.name, true)) {
        return GD_OK;
    }
    for (size_t i = 0; rc == GD_OK && i < sizeof(bodies) / sizeof(*bodies); i++) {
        if (strcmp(command->name, bodies[i]) == 0) {
            rc = gd_fail(err, GD_EUSAGE, "on: \"%s\" cannot be run at an event", command->name);
        }
    }
    return rc;
}

static int run_on(struct command_call *call, struct gd_err *err)
{
    struct gd_catch_spec spec = {.every = 1};
    struct gd_breakpoint *at = NULL;
    const char *rest;
    const char *word = watch_first_word(call, &rest);

    if (word[0] == '\0') {
        return list_events(call);
    }
    spec.kind = event_take(call);
    int rc = spec.kind ? GD_OK : event_unknown(call, word, err);
    rc = rc != GD_OK ? rc : take_every(call, &spec.every, err);
    rc = rc != GD_OK ? rc : take_guard(call, &spec.guard, err);
    rc = rc != GD_OK ? rc : check_command(call, err);
    spec.command = call->line;
    rc = rc != GD_OK ? rc : gd_debugger_catch(call->debugger, &spec, &at, err);
    if (rc == GD_OK) {
        event_show(call, at);
    }
    return rc;
}

static const struct command on_subs[] = {
    EVENT_SUBS("on", " [every N] [if EXPR] COMMAND", " info scalars", run_on),
    {.name = NULL},
};

const struct command cmd_on = {
    .name = "on",
    .group = "breakpoints",
    .usage = "on EVENT [every N] [if EXPR] COMMAND",
    .summary = "Run a command at an event of the training, which continues",
    .help =
        "The training is held while the command runs, and continues by itself, unless the\n"
        "command moves or ends it. If the command fails, the \"on\" is disabled; where it only\n"
        "needs a value that is not there yet, after the tenth time in a row.\n"
        "every N: at each N-th event; of step-begin and step-end, at the steps whose number N\n"
        "divides. The condition uses metrics (\"info scalars\"), step, epoch, batch, elapsed and\n"
        "functions such as improved(accuracy) or stall(loss, 10); see \"help conditions\". The\n"
        "training is held only when the condition may be true, as far as the process knows.\n"
        "Put it in single quotes if the command could continue it.\n"
        "In a job of several ranks the events of rank 0 count, and the command runs once.\n"
        "\"info breakpoints\" lists what is set; delete, disable, enable and ignore take its\n"
        "number. Without an event, list the events.",
    .examples = "on epoch-end print loss\n"
                "on step-end every 100 if loss < 1 info scalars\n"
                "on step-end if stall(loss, 500) kill",
    .args = {ARG_SUBCOMMAND},
    .flags = CMD_RAW | CMD_METRICS,
    .sub = on_subs,
    .run = run_on,
};

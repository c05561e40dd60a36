// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/commands/breakpoints/event.h"

#include <string.h>

#include "engine/graph/similar.h"
#include "engine/watch/expression.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/core/watch_args.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

#define MAX_NAMES 16

enum gd_happening event_take(struct command_call *call)
{
    static const char *const halves[] = {"epoch", "step", "eval"};
    const char *rest, *second;
    const char *word = watch_first_word(call, &rest);
    size_t len = strcspn(rest, " \t");
    enum gd_happening kind = GD_NO_HAPPENING;

    for (size_t i = 0; i < sizeof(halves) / sizeof(*halves); i++) {
        second = strcmp(word, halves[i]) == 0 ? gd_arena_strndup(call->arena, rest, len) : NULL;
        if (second) {
            kind = gd_happening_find(inspect_printf(call, "%s-%s", word, second));
        }
        if (kind) {
            rest += len + strspn(rest + len, " \t");
            break;
        }
    }
    kind = kind ? kind : gd_happening_find(word);
    if (kind) {
        call->line_at += (size_t)(rest - call->line);
        call->line = rest;
    }
    return kind;
}

int event_unknown(struct command_call *call, const char *word, struct gd_err *err)
{
    struct gd_buf all = GD_BUF_INIT(1024);
    const char *nearest = NULL;

    for (const struct command *sub = call->command->sub; sub->name; sub++) {
        gd_buf_printf(&all, "%s%s", all.len ? ", " : "", sub->name);
        nearest = !nearest && gd_similar_meant(word, sub->name) ? sub->name : nearest;
    }
    int rc = gd_fail(err, GD_ENOTFOUND, "there is no event \"%.40s\"%s%s%s: the events are %s",
                     word, nearest ? " (did you mean \"" : "", nearest ? nearest : "",
                     nearest ? "\"?)" : "", gd_buf_text(&all));
    gd_buf_deinit(&all);
    return rc;
}

const char *event_text(struct command_call *call, const struct gd_breakpoint *at)
{
    const char *every =
        at->every > 1 ? inspect_printf(call, " every %lld", (long long)at->every) : "";
    const char *guard =
        at->guard ? inspect_printf(call, " if %s", out_safe(call, gd_expr_text(at->guard))) : "";
    const char *command =
        at->command ? inspect_printf(call, ": %s", out_safe(call, at->command)) : "";

    return inspect_printf(call, "%s%s%s%s", at->where, every, guard, command);
}

void event_record(struct command_call *call, cJSON *object, const struct gd_breakpoint *at)
{
    (void)call;
    out_set(object, OUT_TEXT("event", at->where), OUT_INT("every", at->every),
            OUT_IF(at->command, OUT_TEXT("runs", at->command ? at->command : "")));
}

/* At the end of a step, the number of an evaluation after the step before is new. */
static void note_evaluation(struct command_call *call, const struct gd_breakpoint *at)
{
    const char *name[MAX_NAMES];
    size_t count = at->guard && at->event == GD_HAPPENED_STEP_END
                       ? gd_expr_names(at->guard, name, MAX_NAMES)
                       : 0;

    for (size_t i = 0; i < count && i < MAX_NAMES; i++) {
        struct gd_expr_function function;
        const char *number = gd_expr_number_in(name[i], &function);

        if (strncmp(number, "eval_", 5) == 0) {
            out_printf(call->out,
                       "  %s is known only after its step has ended: use eval-end to act on the "
                       "weights that were evaluated.\n",
                       out_safe(call, number));
            return;
        }
    }
}

void event_show(struct command_call *call, const struct gd_breakpoint *at)
{
    out_printf(call->out, "%s %d: %s\n",
               at->command     ? "On"
               : at->temporary ? "Temporary catchpoint"
                               : "Catchpoint",
               at->number, event_text(call, at));
    watch_note_unknown(call, at->guard);
    note_evaluation(call, at);
    breakpoint_record(call, out_record(call->out, "breakpoint"), at);
}

int event_catch(struct command_call *call, enum gd_happening kind, bool temporary,
                struct gd_err *err)
{
    struct gd_catch_spec spec = {.kind = kind, .every = 1, .temporary = temporary};
    const char *guard = arg_after(call->line, "if");
    struct gd_breakpoint *at = NULL;

    if (call->line[0] != '\0' && (!guard || guard[0] == '\0')) {
        return gd_fail(err, GD_EUSAGE, "catch %s: expected \"if EXPRESSION\"",
                       gd_happening_name(kind));
    }
    spec.guard = guard ? watch_args_unquote(call->arena, guard) : NULL;
    if (guard && !spec.guard) {
        return gd_fail_nomem(err);
    }
    int rc = gd_debugger_catch(call->debugger, &spec, &at, err);
    if (rc == GD_OK) {
        event_show(call, at);
    }
    return rc;
}

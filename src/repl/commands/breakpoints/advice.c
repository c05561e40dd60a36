// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: advice */
#include <string.h>

#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/breakpoints/hit.h"
#include "repl/core/hits.h"
#include "repl/values/watch.h"

void watch_fold_to(struct command_call *call, const char *text, int indent, int width)
{
    const char *p = text;
    while (*p != '\0') {
        size_t len = strcspn(p, "\n");
        size_t end = len <= (size_t)width ? len : (size_t)width;
        while (end < len && end > 0 && p[end] != ' ') {
            end--;
        }
        end = end == 0 ? strcspn(p, " \n") : end; /* the word is longer than the line */
        out_printf(call->out, "%*s%.*s\n", indent, "", (int)end, p);
        p += end;
        p += *p == '\n' ? 1 : strspn(p, " ");
    }
}

void watch_fold(struct command_call *call, const char *text, int indent)
{
    int width = out_width(call->out) - indent;
    watch_fold_to(call, text, indent, width < 20 ? 20 : width > 96 ? 96 : width);
}

void watch_advice(struct command_call *call, const struct gd_condition *condition)
{
    out_printf(call->out, "Look at:\n");
    watch_fold(call, condition->look, 2);
    if (condition->advice && condition->advice[0] != '\0') {
        out_printf(call->out, "Usual causes, and what to try:\n");
        watch_fold(call, condition->advice, 2);
    }
}

static void show_advice(struct command_call *call, const struct gd_condition *condition)
{
    cJSON *record = out_record(call->out, "advice");
    out_set(record, OUT_TEXT("condition", condition->id), OUT_TEXT("abbreviation", condition->abbr),
            OUT_TEXT("fires", condition->fires), OUT_TEXT("look", condition->look),
            OUT_TEXT("advice", condition->advice ? condition->advice : ""));
    out_printf(call->out, "%s (%s) fires when:\n", condition->id, condition->abbr);
    watch_fold(call, condition->fires, 2);
    watch_advice(call, condition);
}

static int advise_on_expression(struct command_call *call, const char *expression)
{
    cJSON *record = out_record(call->out, "advice");
    out_set(record, OUT_TEXT("expression", expression));
    out_printf(call->out,
               "%s is your own expression: look at the values that it compares\n"
               "(\"stats .\", \"print .\") and at where they come from (\"inputs .\", \"why\").\n",
               out_safe(call, expression));
    return GD_OK;
}

/* The condition of a watchpoint or hit, or the one of that name. NULL and *expression set: none. */
static int find_subject(struct command_call *call, const struct gd_condition **ret,
                        const char **expression, struct gd_err *err)
{
    const char *word = call->argc > 0 ? call->argv[0] : "hit";
    struct gd_watchpoint *watch = NULL;
    *ret = NULL;
    if (strcmp(word, "hit") == 0) {
        const struct gd_hit *hit = hits_current(call, err);
        if (!hit) {
            return err->code;
        }
        *ret = hits_condition(call->debugger, hit);
        *expression = hit->expression;
        return GD_OK;
    }
    if (word[0] >= '0' && word[0] <= '9') {
        int rc = watch_find(call, word, &watch, err);
        if (rc == GD_OK) {
            *ret = watch->condition;
            *expression = watch->expr ? gd_expr_text(watch->expr) : "";
        }
        return rc;
    }
    return gd_condition_find(word, ret, err);
}

static int run_advice(struct command_call *call, struct gd_err *err)
{
    const struct gd_condition *condition = NULL;
    const char *expression = "";
    int rc = find_subject(call, &condition, &expression, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!condition) {
        return advise_on_expression(call, expression);
    }
    show_advice(call, condition);
    return GD_OK;
}

const struct command cmd_advice = {
    .name = "advice",
    .group = "breakpoints",
    .usage = "advice [CONDITION | N | hit]",
    .summary = "Explain what a condition that fired usually means and what to try",
    .help = "The condition is given by name, by watchpoint N, or taken from the current hit (see\n"
            "\"hit\").",
    .examples = "advice GV\n"
                "advice weight_change_too_large",
    .args = {ARG_CONDITION},
    .run = run_advice,
};

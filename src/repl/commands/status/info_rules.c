// SPDX-License-Identifier: GPL-3.0-or-later
/* `info rules`. */
#include <string.h>

#include "engine/why/why.h"
#include "repl/commands/status/info.h"
#include "repl/diagnose/report.h"
#include "repl/diagnose/rule.h"

static const char *cost_text(enum diagnose_cost cost)
{
    return cost == DIAGNOSE_EACH_STEP   ? "noted in each step"
           : cost == DIAGNOSE_OPERATORS ? "operators of some steps"
                                        : "each operator's outputs";
}

static void show_rule(struct command_call *call, cJSON *list, const struct diagnose_rule *rule,
                      bool whole)
{
    cJSON *object = out_push(list);

    out_set(object, OUT_TEXT("rule", rule->name), OUT_TEXT("evidence", rule->evidence),
            OUT_TEXT("cost", cost_text(rule->cost)), OUT_TEXT("cause", rule->cause),
            OUT_TEXT("advice", rule->advice), OUT_TEXT("source", rule->source));
    if (!whole) {
        out_say(call->out, object, "{rule:-26} {evidence:-20} {cost}\n");
        return;
    }
    out_say(call->out, object, "{rule}\n  judges    {evidence} ({cost})\n");
    diagnose_say(call, "says", rule->cause);
    diagnose_say(call, "advises", rule->advice ? rule->advice : "");
    diagnose_say(call, "source", rule->source);
}

static int show_rules_of_why(struct command_call *call, cJSON *list, const char *only)
{
    int shown = 0;

    for (const struct gd_why_rule *rule = gd_why_rules(); rule->name; rule++) {
        if (only && strcmp(only, rule->name) != 0) {
            continue;
        }
        cJSON *object = out_push(list);
        out_set(object, OUT_TEXT("rule", rule->name), OUT_TEXT("evidence", "why"),
                OUT_TEXT("cost", rule->inputs), OUT_TEXT("cause", rule->text));
        out_say(call->out, object,
                only ? "{rule}\n  judges    {cost} (a rule of `why`)\n  finds     {cause}\n"
                     : "{rule:-26} {evidence:-20} {cost}\n");
        shown++;
    }
    return shown;
}

int info_rules(struct command_call *call, struct gd_err *err)
{
    const char *only = call->argc > 0 ? call->argv[0] : NULL;
    cJSON *list = out_list(out_record(call->out, "rules"), "rules");
    int shown = 0;

    for (size_t i = 0; diagnose_tables[i]; i++) {
        for (const struct diagnose_rule *rule = diagnose_tables[i]; rule->name; rule++) {
            if (!only || strcmp(only, rule->name) == 0) {
                show_rule(call, list, rule, only);
                shown++;
            }
        }
    }
    shown += show_rules_of_why(call, list, only);
    if (shown == 0) {
        return gd_fail(err, GD_ENOTFOUND, "there is no rule \"%.60s\": \"info rules\" lists them",
                       only);
    }
    return GD_OK;
}

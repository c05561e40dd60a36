// SPDX-License-Identifier: GPL-3.0-or-later
/* `info conditions`. */
#include "engine/watch/condition.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/status/info.h"

static const char *range_text(const struct gd_condition_param *param)
{
    if (param->type == GD_PARAM_BOOL) {
        return "true or false";
    }
    return gd_param_range_text(param->range);
}

static void show_param(struct command_call *call, cJSON *list,
                       const struct gd_condition_param *param)
{
    cJSON *object = out_push(list);
    out_set(object, OUT_TEXT("name", param->name), OUT_TEXT("range", range_text(param)),
            OUT_IF(param->has_default, param->type == GD_PARAM_BOOL
                                           ? OUT_BOOL("default", param->value != 0)
                                           : OUT_REAL("default", param->value)),
            OUT_BOOL("support", param->support));
    out_say(call->out, object,
            "       {name} ({range}[{?has_default}, default {default}][{?needs_range}, with a "
            "range])\n",
            OUT_BOOL("has_default", param->has_default),
            OUT_BOOL("needs_range", param->needs_range));
}

static void show_condition(struct command_call *call, cJSON *list,
                           const struct gd_condition *condition)
{
    cJSON *object = out_push(list);
    out_set(object, OUT_TEXT("id", condition->id), OUT_TEXT("abbreviation", condition->abbr),
            OUT_TEXT("selector", gd_condition_selector(condition)),
            OUT_BOOL("mindspore", condition->wire != GD_WIRE_OWN),
            OUT_TEXT("fires", condition->fires), OUT_TEXT("look", condition->look),
            OUT_TEXT("advice", condition->advice ? condition->advice : ""));
    out_say(call->out, object, "{abbreviation:-4} {id} ({selector})\n");
    watch_fold(call, condition->fires, 5);
    cJSON *params = out_list(object, "params");
    for (int i = 0; i < condition->param_count; i++) {
        if (!condition->param[i].hidden) {
            show_param(call, params, &condition->param[i]);
        }
    }
}

int info_conditions(struct command_call *call, struct gd_err *err)
{
    const struct gd_condition *condition, *only = NULL;
    if (call->argc > 0) {
        int rc = gd_condition_find(call->argv[0], &only, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    cJSON *list = out_list(out_record(call->out, "conditions"), "conditions");
    for (size_t i = 0; (condition = gd_condition_at(i)); i++) {
        if (!only || condition == only) {
            show_condition(call, list, condition);
        }
    }
    if (only) {
        watch_advice(call, only);
    } else {
        out_printf(call->out,
                   "\"advice CONDITION\" explains one; \"info statistics\" lists the statistics\n"
                   "that an expression can use in place of a condition.\n");
    }
    return GD_OK;
}

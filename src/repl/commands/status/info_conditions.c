// SPDX-License-Identifier: GPL-3.0-or-later
/* `info conditions`. */
#include "engine/watch/condition.h"
#include "repl/commands/breakpoints/advice.h"
#include "repl/commands/status/info.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

static const char *range_text(const struct gd_condition_param *param)
{
    if (param->type == GD_PARAM_BOOL) {
        return "true or false";
    }
    return gd_param_range_text(param->range);
}

static void param_record(cJSON *list, const struct gd_condition_param *param)
{
    cJSON *object = out_push(list);
    out_set(object, OUT_TEXT("name", param->name), OUT_TEXT("range", range_text(param)));
    if (param->has_default && param->type == GD_PARAM_BOOL) {
        out_set(object, OUT_BOOL("default", param->value != 0));
    } else if (param->has_default) {
        out_set(object, OUT_REAL("default", param->value));
    }
    out_set(object, OUT_BOOL("support", param->support));
}

static void param_text(struct command_call *call, const struct gd_condition_param *param)
{
    out_printf(call->out, "       %s (%s", param->name, range_text(param));
    if (param->has_default && param->type == GD_PARAM_BOOL) {
        out_printf(call->out, ", default %s", param->value != 0 ? "true" : "false");
    } else if (param->has_default) {
        out_printf(call->out, ", default %g", param->value);
    }
    out_printf(call->out, "%s)\n", param->needs_range ? ", with a range" : "");
}

static void condition_record(cJSON *list, const struct gd_condition *condition)
{
    cJSON *object = out_push(list);
    out_set(object, OUT_TEXT("id", condition->id), OUT_TEXT("abbreviation", condition->abbr),
            OUT_TEXT("selector", gd_condition_selector(condition)),
            OUT_BOOL("mindspore", condition->wire != GD_WIRE_OWN),
            OUT_TEXT("fires", condition->fires), OUT_TEXT("look", condition->look),
            OUT_TEXT("advice", condition->advice ? condition->advice : ""));
    cJSON *params = out_list(object, "params");
    for (int i = 0; i < condition->param_count; i++) {
        if (!condition->param[i].hidden) {
            param_record(params, &condition->param[i]);
        }
    }
}

static void condition_text(struct command_call *call, const struct gd_condition *condition)
{
    out_printf(call->out, "%-4s %s (%s)\n", condition->abbr, condition->id,
               gd_condition_selector(condition));
    watch_fold(call, condition->fires, 5);
    for (int i = 0; i < condition->param_count; i++) {
        if (!condition->param[i].hidden) {
            param_text(call, &condition->param[i]);
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
            condition_record(list, condition);
            condition_text(call, condition);
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

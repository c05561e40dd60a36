// SPDX-License-Identifier: GPL-3.0-or-later
/* info conditions, info statistics, advice: what there is to watch for, and what it means. */
#include <stdlib.h>
#include <string.h>

#include "repl/core/commands.h"
#include "repl/core/hits.h"
#include "repl/core/watch.h"
#include "repl/values/inspect.h"

/* ---- info conditions ----------------------------------------------------------------------- */

static const char *range_text(const struct gd_condition_param *param)
{
    if (param->type == GD_PARAM_BOOL) {
        return "true or false";
    }
    return gd_param_range_text(param->range);
}

static void param_record(cJSON *list, const struct gd_condition_param *param)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", param->name);
    cJSON_AddStringToObject(object, "range", range_text(param));
    if (param->has_default && param->type == GD_PARAM_BOOL) {
        cJSON_AddBoolToObject(object, "default", param->value != 0);
    } else if (param->has_default) {
        inspect_add_double(object, "default", param->value);
    }
    cJSON_AddBoolToObject(object, "support", param->support);
    cJSON_AddItemToArray(list, object);
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
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "id", condition->id);
    cJSON_AddStringToObject(object, "abbreviation", condition->abbr);
    cJSON_AddStringToObject(object, "selector", gd_condition_selector(condition));
    cJSON_AddBoolToObject(object, "mindspore", condition->wire != GD_WIRE_OWN);
    cJSON_AddStringToObject(object, "fires", condition->fires);
    cJSON_AddStringToObject(object, "look", condition->look);
    cJSON_AddStringToObject(object, "advice", condition->advice ? condition->advice : "");
    cJSON *params = cJSON_AddArrayToObject(object, "params");
    for (int i = 0; i < condition->param_count; i++) {
        if (!condition->param[i].hidden) {
            param_record(params, &condition->param[i]);
        }
    }
    cJSON_AddItemToArray(list, object);
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

int cmd_info_conditions(struct command_call *call, struct gd_err *err)
{
    const struct gd_condition *condition, *only = NULL;
    if (call->argc > 0) {
        int rc = gd_condition_find(call->argv[0], &only, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "conditions"), "conditions");
    for (size_t i = 0; (condition = gd_condition_at(i)); i++) {
        if (!only || condition == only) {
            condition_record(list, condition);
            condition_text(call, condition);
        }
    }
    if (only) {
        watch_advice(call, only);
    } else {
        out_printf(call->out, "\"advice CONDITION\" tells what one usually means; \"info "
                              "statistics\" lists the figures\nthat an expression can use in the "
                              "place of a condition.\n");
    }
    return GD_OK;
}

/* ---- info statistics ----------------------------------------------------------------------- */

int cmd_info_statistics(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"name", "Figure", false},
                                                {"text", "What it is", false}};
    struct out_table *table = out_table_begin(call->out, "statistics", columns, 2);
    (void)err;
    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL; i++) {
        enum gd_statistic statistic = (enum gd_statistic)i;
        if ((gd_statistic_needs(statistic) & GD_NEED_RANGE) == 0) { /* no expression has a range */
            const char *cells[] = {gd_statistic_name(statistic), gd_statistic_text(statistic)};
            out_table_row(table, cells);
        }
    }
    out_table_end(table);
    out_printf(call->out,
               "Besides: step, and what \"info scalars\" lists (loss, lr). They are joined by\n"
               "+ - * / < <= > >= == != && || ! ( ) and abs sqrt log log10 exp min max:\n"
               "  watch 'max > 1e4 || nan > 0' on gradients\n");
    return GD_OK;
}

/* ---- advice -------------------------------------------------------------------------------- */

void watch_fold(struct command_call *call, const char *text, int indent)
{
    int width = out_width(call->out) - indent;
    const char *p = text;
    width = width < 20 ? 20 : width > 96 ? 96 : width;
    while (*p != '\0') {
        size_t len = strcspn(p, "\n");
        size_t end = len <= (size_t)width ? len : (size_t)width;
        while (end < len && end > 0 && p[end] != ' ') {
            end--;
        }
        end = end == 0 ? strcspn(p, " \n") : end; /* a word longer than the line */
        out_printf(call->out, "%*s%.*s\n", indent, "", (int)end, p);
        p += end;
        p += *p == '\n' ? 1 : strspn(p, " ");
    }
}

void watch_advice(struct command_call *call, const struct gd_condition *condition)
{
    out_printf(call->out, "Look at:\n");
    watch_fold(call, condition->look, 2);
    if (condition->advice && condition->advice[0] != '\0') {
        out_printf(call->out, "What it usually means, and what to try:\n");
        watch_fold(call, condition->advice, 2);
    }
}

static void advise(struct command_call *call, const struct gd_condition *condition)
{
    cJSON *record = out_record(call->out, "advice");
    cJSON_AddStringToObject(record, "condition", condition->id);
    cJSON_AddStringToObject(record, "abbreviation", condition->abbr);
    cJSON_AddStringToObject(record, "fires", condition->fires);
    cJSON_AddStringToObject(record, "look", condition->look);
    cJSON_AddStringToObject(record, "advice", condition->advice ? condition->advice : "");
    out_printf(call->out, "%s (%s) fires when:\n", condition->id, condition->abbr);
    watch_fold(call, condition->fires, 2);
    watch_advice(call, condition);
}

static int advise_on_expression(struct command_call *call, const char *expression)
{
    cJSON *record = out_record(call->out, "advice");
    inspect_add_text(call, record, "expression", expression);
    out_printf(call->out,
               "%s is an expression of your own: look at what it compares\n(\"stats .\", \"print "
               ".\"), and at where the value comes from (\"inputs .\", \"why\").\n",
               out_safe(call, expression));
    return GD_OK;
}

/* The condition of a watchpoint, of a hit, or by its name. NULL with *expression set: none. */
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
    advise(call, condition);
    return GD_OK;
}

const struct command cmd_advice_table[] = {
    {.name = "advice",
     .group = "breakpoints",
     .usage = "advice [CONDITION | N | hit]",
     .summary = "Tell what a condition that fired usually means and what to try",
     .help = "Of a condition, of watchpoint N, or of the current hit (see \"hit\").\n"
             "Examples:\n"
             "  advice GV\n"
             "  advice weight_change_too_large",
     .args = {ARG_CONDITION},
     .run = run_advice},
    {.name = NULL},
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Watchpoints: watch, unwatch, recheck, info watchpoints, info hits, info conditions. */
#include "engine/watchpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/commands.h"
#include "repl/repl_impl.h"

#define HITS_SHOWN 40

/* ---- watch --------------------------------------------------------------------------------- */

static int parse_value(const char *text, struct gd_condition_value *value, struct gd_err *err)
{
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->type = GD_PARAM_BOOL;
        value->value = *text == 't';
        return GD_OK;
    }
    value->type = GD_PARAM_FLOAT;
    value->value = strtod(text, &end);
    if (end == text || *end)
        return gd_fail(err, GD_EINVAL, "%s=%.40s: \"%.40s\" is no number", value->name, text, text);
    return GD_OK;
}

/* PARAM=VALUE words from argv[1] on; *used is how many. */
static int parse_values(struct command_call *call, struct gd_condition_value *values, size_t *used,
                        struct gd_err *err)
{
    *used = 0;
    for (int i = 1; i < call->argc && strcmp(call->argv[i], "on") != 0; i++) {
        char *equals = strchr(call->argv[i], '=');
        if (!equals)
            return gd_fail(err, GD_EUSAGE,
                           "watch: \"%.60s\" is neither PARAM=VALUE nor \"on SELECTOR\"",
                           call->argv[i]);
        if (*used == GD_MAX_CONDITION_PARAMS)
            return gd_fail(err, GD_EINVAL, "watch: too many parameters");
        struct gd_condition_value *value = &values[*used];
        value->name =
            gd_arena_strndup(call->arena, call->argv[i], (size_t)(equals - call->argv[i]));
        if (!value->name)
            return gd_fail(err, GD_ENOMEM, "out of memory");
        int rc = parse_value(equals + 1, value, err);
        if (rc)
            return rc;
        (*used)++;
    }
    return GD_OK;
}

/* The text behind "on", as it was typed: a selector may hold blanks. */
static int parse_where(struct command_call *call, size_t values, const char **ret,
                       struct gd_err *err)
{
    int on = 1 + (int)values;
    *ret = NULL;
    if (on >= call->argc)
        return GD_OK;
    if (on + 1 >= call->argc)
        return gd_fail(err, GD_EUSAGE, "watch: a selector is missing behind \"on\"");
    if (on + 2 == call->argc) {
        *ret = call->argv[on + 1]; /* without its quotes */
        return GD_OK;
    }
    const char *at = strstr(call->line, " on ");
    *ret = at ? at + 4 + strspn(at + 4, " \t") : call->argv[on + 1];
    return GD_OK;
}

static size_t count_nodes(const struct gd_watchpoint *watch, struct gd_session *session)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (!session || gd_watchpoint_nodes(watch, session, &nodes, &count, NULL))
        return 0;
    free(nodes);
    return count;
}

static void watch_record(struct command_call *call, cJSON *object,
                         const struct gd_watchpoint *watch)
{
    cJSON_AddNumberToObject(object, "number", watch->number);
    cJSON_AddStringToObject(object, "condition", watch->condition->id);
    cJSON_AddStringToObject(object, "abbreviation", watch->condition->abbr);
    cJSON *params = cJSON_AddObjectToObject(object, "params");
    for (size_t i = 0; i < watch->value_count; i++)
        cJSON_AddNumberToObject(params, watch->values[i].name, watch->values[i].value);
    cJSON_AddStringToObject(object, "where", watch->where);
    cJSON_AddBoolToObject(object, "enabled", watch->enabled);
    cJSON_AddNumberToObject(object, "nodes", (double)count_nodes(watch, call->debugger->current));
    cJSON_AddNumberToObject(object, "hits", (double)watch->hits);
    cJSON_AddNumberToObject(object, "unclear", (double)watch->unclear);
}

static void print_watch(struct command_call *call, const struct gd_watchpoint *watch)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    struct gd_session *session = call->debugger->current;
    gd_watchpoint_text(watch, &text);
    out_printf(call->out, "%s", out_safe(call, gd_buf_text(&text)));
    if (!session || !session->graph_generation) {
        out_printf(call->out, " (pending: no graph yet)\n");
    } else {
        size_t nodes = count_nodes(watch, session);
        out_printf(call->out, ": %zu node%s\n", nodes, nodes == 1 ? "" : "s");
    }
    gd_buf_deinit(&text);
}

static int run_watch(struct command_call *call, struct gd_err *err)
{
    const struct gd_condition *condition;
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS];
    struct gd_watchpoint *watch;
    size_t count;
    const char *where;
    if (call->argc == 0)
        return gd_fail(err, GD_EUSAGE, "watch: name a condition (\"info conditions\" lists them)");
    int rc = gd_condition_find(call->argv[0], &condition, err);
    if (!rc)
        rc = parse_values(call, values, &count, err);
    if (!rc)
        rc = parse_where(call, count, &where, err);
    if (!rc)
        rc = gd_watchpoint_add(
            call->debugger,
            &(struct gd_watch_spec){
                .condition = condition, .values = values, .value_count = count, .where = where},
            &watch, err);
    if (rc)
        return rc;
    out_printf(call->out, "Watchpoint %d: ", watch->number);
    print_watch(call, watch);
    watch_record(call, out_record(call->out, "watchpoint"), watch);
    return GD_OK;
}

static int run_unwatch(struct command_call *call, struct gd_err *err)
{
    if (call->argc == 0)
        return gd_fail(err, GD_EUSAGE, "unwatch: the number of a watchpoint is missing");
    for (int i = 0; i < call->argc; i++) {
        int64_t number;
        int rc = arg_count(call->argv[i], 1, INT32_MAX, &number, err);
        if (!rc)
            rc = gd_watchpoint_delete(call->debugger, (int)number, err);
        if (rc)
            return rc;
        repl_forget_number(call->repl, (int)number);
    }
    return GD_OK;
}

/* ---- recheck ------------------------------------------------------------------------------- */

struct recheck {
    struct gd_session *session;
    uint64_t sequence;
};

static bool has_stopped_again(void *ctx)
{
    const struct recheck *recheck = ctx;
    return recheck->session->state != GD_RUNNING;
}

static int run_recheck(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_RECHECK, .node = GD_NO_NODE};
    struct recheck recheck = {call->session, call->session->stop.sequence};
    if (call->session->target && !(call->session->target->capabilities & GD_CAN_WATCH_REMOTE))
        return gd_fail(err, GD_EUNSUPPORTED, "a %s target cannot evaluate watchpoints yet",
                       call->session->target->ops->kind);
    size_t before = call->session->hit_count;
    int rc = gd_target_resume(call->session->target, &run, err);
    if (rc)
        return rc;
    rc = repl_wait(call->repl, has_stopped_again, &recheck, -1);
    if (rc)
        return gd_fail(err, rc, "interrupted while the watchpoints are checked again");
    size_t hits = call->session->hit_count > before ? call->session->hit_count - before : 0;
    cJSON_AddNumberToObject(out_record(call->out, "recheck"), "hits", (double)hits);
    return GD_OK;
}

/* ---- info watchpoints ---------------------------------------------------------------------- */

int cmd_info_watchpoints(struct command_call *call, struct gd_err *err)
{
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "watchpoints"), "watchpoints");
    (void)err;
    if (!call->debugger->watchpoints)
        out_printf(call->out, "No watchpoints.\n");
    else
        out_printf(call->out, "Num  Enb  Hits  What\n");
    for (const struct gd_watchpoint *watch = call->debugger->watchpoints; watch;
         watch = watch->next) {
        cJSON *object = cJSON_CreateObject();
        watch_record(call, object, watch);
        cJSON_AddItemToArray(list, object);
        out_printf(call->out, "%-3d  %-3s  %4llu  ", watch->number, watch->enabled ? "y" : "n",
                   (unsigned long long)watch->hits);
        print_watch(call, watch);
        if (watch->unclear)
            out_printf(call->out, "                could not be checked %llu time%s\n",
                       (unsigned long long)watch->unclear, watch->unclear == 1 ? "" : "s");
    }
    return GD_OK;
}

/* ---- info hits ----------------------------------------------------------------------------- */

static void add_reason(struct gd_buf *out, unsigned error)
{
    static const struct {
        unsigned bit;
        const char *text;
    } reasons[] = {
        {GD_HIT_NAN, "NaN"},
        {GD_HIT_INF, "Inf"},
        {GD_HIT_NO_PREVIOUS, "no previous value"},
        {GD_HIT_NO_MEMORY, "out of memory"},
        {GD_HIT_NO_HISTORY, "no run history"},
        {GD_HIT_NO_VALUE, "no value"},
    };
    const char *between = " could not be checked: ";
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (error & reasons[i].bit) {
            gd_buf_printf(out, "%s%s", between, reasons[i].text);
            between = ", ";
        }
    if (!(error & 63))
        gd_buf_printf(out, "%sreason %u", between, error);
}

void repl_hit_text(const struct gd_hit *hit, struct gd_buf *out)
{
    gd_buf_printf(out, "%s:%u", hit->node_name, hit->slot);
    if (hit->error) {
        add_reason(out, hit->error);
        return;
    }
    for (int i = 0; i < hit->param_count; i++)
        if (hit->param[i].hit)
            gd_buf_printf(out, " %s=%.9g (%.9g)", hit->param[i].name, hit->param[i].set_value,
                          hit->param[i].actual_value);
}

static void print_hit(struct command_call *call, const struct gd_hit *hit)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    const struct gd_watchpoint *watch = gd_watchpoint_at(call->debugger, hit->watchpoint);
    repl_hit_text(hit, &text);
    out_printf(call->out, "step %lld  watchpoint %d%s%s%s  %s\n", (long long)hit->step,
               hit->watchpoint, watch ? " (" : "", watch ? watch->condition->abbr : "",
               watch ? ")" : "", out_safe(call, gd_buf_text(&text)));
    if (watch && !hit->error)
        out_printf(call->out, "         look at %s\n", watch->condition->look);
    gd_buf_deinit(&text);
}

int cmd_info_hits(struct command_call *call, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    int64_t only = 0;
    bool all = call->argc > 0 && strcmp(call->argv[0], "-a") == 0;
    if (call->argc > 0 && !all) {
        int rc = arg_count(call->argv[0], 1, INT32_MAX, &only, err);
        if (rc)
            return rc;
    }
    cJSON *record = out_record(call->out, "hits");
    cJSON *list = cJSON_AddArrayToObject(record, "hits");
    cJSON_AddNumberToObject(record, "dropped", (double)session->hits_dropped);
    size_t first =
        all || only || session->hit_count <= HITS_SHOWN ? 0 : session->hit_count - HITS_SHOWN;
    if (!session->hit_count)
        out_printf(call->out, "No watchpoint has fired.\n");
    if (first || session->hits_dropped)
        out_printf(call->out, "%zu earlier ones (info hits -a)\n", first + session->hits_dropped);
    for (size_t i = first; i < session->hit_count; i++) {
        if (only && session->hits[i].watchpoint != only)
            continue;
        cJSON_AddItemToArray(list, repl_hit_json(NULL, &session->hits[i]));
        print_hit(call, &session->hits[i]);
    }
    return GD_OK;
}

/* ---- info conditions ----------------------------------------------------------------------- */

static const char *range_text(enum gd_param_range range)
{
    switch (range) {
    case GD_RANGE_NOT_NEGATIVE: return "0 or more";
    case GD_RANGE_POSITIVE: return "above 0";
    case GD_RANGE_PERCENT: return "0 to 100";
    default: return "any number";
    }
}

static void show_param(struct command_call *call, cJSON *list,
                       const struct gd_condition_param *param)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", param->name);
    cJSON_AddStringToObject(object, "range", range_text(param->range));
    if (param->has_default)
        cJSON_AddNumberToObject(object, "default", param->value);
    cJSON_AddBoolToObject(object, "support", param->support);
    cJSON_AddItemToArray(list, object);
    out_printf(call->out, "       %s (%s", param->name, range_text(param->range));
    if (param->has_default)
        out_printf(call->out, ", default %g", param->value);
    out_printf(call->out, "%s)\n", param->needs_range ? ", with a range" : "");
}

int cmd_info_conditions(struct command_call *call, struct gd_err *err)
{
    const struct gd_condition *condition, *only = NULL;
    if (call->argc > 0) {
        int rc = gd_condition_find(call->argv[0], &only, err);
        if (rc)
            return rc;
    }
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "conditions"), "conditions");
    for (size_t i = 0; (condition = gd_condition_at(i)); i++) {
        if (only && condition != only)
            continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "id", condition->id);
        cJSON_AddStringToObject(object, "abbreviation", condition->abbr);
        cJSON_AddStringToObject(object, "selector", gd_condition_selector(condition));
        cJSON_AddStringToObject(object, "fires", condition->fires);
        cJSON *params = cJSON_AddArrayToObject(object, "params");
        out_printf(call->out, "%-4s %s (%s): %s\n", condition->abbr, condition->id,
                   gd_condition_selector(condition), condition->fires);
        for (int p = 0; p < condition->param_count; p++)
            if (!condition->param[p].hidden)
                show_param(call, params, &condition->param[p]);
        cJSON_AddItemToArray(list, object);
    }
    return GD_OK;
}

const struct command cmd_watch_table[] = {
    {.name = "watch",
     .aliases = "wa wat",
     .group = "breakpoints",
     .usage = "watch CONDITION [PARAM=VALUE]... [on SELECTOR]",
     .summary = "Stop the training when a tensor meets a condition",
     .help = "The condition goes by its name or abbreviation: \"info conditions\" lists them with\n"
             "their parameters. Without a selector it applies to what it is made for (weights,\n"
             "gradients, activations, all). The training process evaluates it at each step, a GPU\n"
             "process also behind each operator.\n"
             "Examples:\n"
             "  watch TO on all\n"
             "  watch TL abs_mean_gt=1000 on gradients\n"
             "  watch AR range_start_inclusive=-1 range_end_inclusive=0 range_percentage_gt=99\n"
             "  watch weight_initialization",
     .args = {ARG_CONDITION, ARG_SELECTOR},
     .run = run_watch},
    {.name = "unwatch",
     .group = "breakpoints",
     .usage = "unwatch N...",
     .summary = "Delete watchpoints",
     .help = "As delete, for watchpoints alone.",
     .args = {ARG_BREAKPOINT},
     .flags = CMD_CHANGES,
     .run = run_unwatch},
    {.name = "recheck",
     .group = "breakpoints",
     .usage = "recheck",
     .summary = "Check all watchpoints again on the values of this stop",
     .help = "What fires is reported as at any stop; the training does not move.",
     .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
     .run = run_recheck},
    {.name = NULL},
};

// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/watch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "engine/watch/expected.h"
#include "repl/core/await.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

#define MAX_COVERING 64 /* watchpoints of one node whose numbers are shown */
#define COST_SECONDS 5.0

/* ---- arguments ----------------------------------------------------------------------------- */

int watch_number(struct command_call *call, const char *text, int *ret, struct gd_err *err)
{
    int64_t number;
    if (strcmp(text, "$bpnum") == 0) {
        *ret = call->debugger->next_breakpoint - 1;
        return GD_OK;
    }
    if (arg_count(text, 1, INT_MAX, &number, NULL) != GD_OK) {
        return gd_fail(err, GD_EINVAL, "\"%.40s\" is not a watchpoint's number", text);
    }
    *ret = (int)number;
    return GD_OK;
}

int watch_find(struct command_call *call, const char *text, struct gd_watchpoint **ret,
               struct gd_err *err)
{
    int number = 0;
    int rc = watch_number(call, text, &number, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_watchpoint *watch = gd_watchpoint_at(call->debugger, number);
    if (!watch) {
        return gd_fail(err, GD_ENOTFOUND, "there is no watchpoint %d: see \"info watchpoints\"",
                       number);
    }
    *ret = watch;
    return GD_OK;
}

const char *watch_first_word(struct command_call *call, const char **rest)
{
    size_t len = strcspn(call->line, " \t");
    const char *word = gd_arena_strndup(call->arena, call->line, len);
    *rest = call->line + len + strspn(call->line + len, " \t");
    return word ? word : "";
}

/* ---- words --------------------------------------------------------------------------------- */

const char *watch_kind(const struct gd_watchpoint *watch)
{
    return watch->event                      ? "catch"
           : watch->action == GD_WATCH_TRACE ? "trace"
           : watch->temporary                ? "temporary"
                                             : "watch";
}

const char *watch_noun(const struct gd_watchpoint *watch)
{
    if (watch->event) {
        return watch->temporary ? "Temporary catchpoint" : "Catchpoint";
    }
    return watch->action == GD_WATCH_TRACE ? "Trace"
           : watch->temporary              ? "Temporary watchpoint"
                                           : "Watchpoint";
}

const char *watch_text(struct command_call *call, const struct gd_watchpoint *watch)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    gd_watchpoint_text(watch, &text);
    return out_safe(call, inspect_take(call, &text));
}

size_t watch_nodes(struct command_call *call, const struct gd_watchpoint *watch)
{
    struct gd_session *session = call->debugger->current;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (!session || !watch->selector ||
        gd_watchpoint_nodes(watch, session, &nodes, &count, NULL) != GD_OK) {
        return 0;
    }
    free(nodes);
    return count;
}

const char *watch_hidden(struct command_call *call, const struct gd_watchpoint *watch)
{
    if (!watch->intended) {
        return "";
    }
    return inspect_printf(call, "hid %s of %s: intentional, e.g. masks of -inf",
                          inspect_plural(call, watch->intended, "value"),
                          inspect_plural(call, watch->intended_tensors, "tensor"));
}

const char *watch_waits(struct command_call *call, const struct gd_watchpoint *watch)
{
    struct gd_session *session = call->debugger->current;
    struct gd_err why = {.code = GD_OK};
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (!session || !watch->selector || !gd_session_grows(session)) {
        return NULL;
    }
    int rc = gd_watchpoint_nodes(watch, session, &nodes, &count, &why);
    free(nodes);
    if (rc == GD_OK && count > 0) {
        return NULL;
    }
    return rc == GD_OK ? "no node matches yet" : out_safe(call, why.text);
}

const char *watch_state_name(enum gd_watch_state state)
{
    static const char *const names[] = {"none", "part", "all", "cannot"};
    return names[state];
}

/* ---- records ------------------------------------------------------------------------------- */

static cJSON *list_params(const struct gd_watchpoint *watch)
{
    cJSON *params = cJSON_CreateObject();
    for (size_t i = 0; i < watch->value_count; i++) {
        const struct gd_condition_value *value = &watch->values[i];
        out_set(params, value->type == GD_PARAM_BOOL ? OUT_BOOL(value->name, value->value != 0)
                                                     : OUT_REAL(value->name, value->value));
    }
    return params;
}

static cJSON *list_body(struct command_call *call, int number)
{
    const struct repl_lines *body = repl_commands_of(call->repl, number);
    cJSON *lines = cJSON_CreateArray();
    for (size_t i = 0; body && i < body->count; i++) {
        out_push_text(lines, body->line[i]);
    }
    return lines;
}

void watch_record(struct command_call *call, cJSON *object, const struct gd_watchpoint *watch)
{
    const struct gd_condition *condition = watch->condition;
    out_set(object, OUT_INT("number", watch->number), OUT_TEXT("kind", watch_kind(watch)),
            OUT_IF(condition, OUT_TEXT("condition", condition->id)),
            OUT_IF(condition, OUT_TEXT("abbreviation", condition->abbr)),
            OUT_IF(condition, OUT_JSON("params", list_params(watch))),
            OUT_IF(!condition, OUT_TEXT("expression", gd_expr_text(watch->expr))),
            OUT_TEXT("where", watch->where),
            OUT_IF(watch->guard, OUT_TEXT("if", gd_expr_text(watch->guard))),
            OUT_IF(watch->steps > 1, OUT_INT("steps", watch->steps)),
            OUT_IF(watch->event, OUT_TEXT("event", watch->event)),
            OUT_IF(watch->event, OUT_BOOL("temporary", watch->temporary)),
            OUT_IF(watch->label, OUT_TEXT("label", watch->label)),
            OUT_BOOL("enabled", watch->enabled), OUT_INT("nodes", watch_nodes(call, watch)),
            OUT_INT("ignore", watch->ignore), OUT_INT("hits", watch->hits),
            OUT_INT("unclear", watch->unclear), OUT_INT("checks", watch->checks),
            OUT_IF(watch->intended, OUT_INT("intended", watch->intended)),
            OUT_IF(watch->intended, OUT_INT("intended_tensors", watch->intended_tensors)),
            OUT_JSON("commands", list_body(call, watch->number)));
}

/* A metric that was never reported is probably misspelled. */
void watch_note_unknown(struct command_call *call, const struct gd_expr *expr)
{
    const struct gd_session *session = call->debugger->current;
    bool dump = session && gd_session_is_record(session);
    const char *name[16];
    size_t count = expr ? gd_expr_names(expr, name, 16) : 0;
    for (size_t i = 0; session && (session->scalar_count > 0 || dump) && i < count && i < 16; i++) {
        struct gd_expr_function function;
        const char *of = gd_expr_number_in(name[i], &function);
        bool own = !dump && (strcmp(of, "elapsed") == 0 || strcmp(of, "step_time") == 0);
        if (!own && !gd_session_scalar(session, of)) {
            out_printf(call->out, "  %s a metric \"%s\" %s: the %s waits for it.\n",
                       dump ? "The dump does not have" : "The training has not reported",
                       out_safe(call, of), dump ? "up to this step" : "yet",
                       strcmp(call->command->name, "on") == 0 ? "command" : "watchpoint");
        }
    }
}

void watch_show(struct command_call *call, const struct gd_watchpoint *watch)
{
    const struct gd_session *session = call->debugger->current;
    const char *waits = session && session->graph_generation ? watch_waits(call, watch) : NULL;
    out_printf(call->out, "%s %d: %s", watch_noun(watch), watch->number, watch_text(call, watch));
    if (!watch->selector) {
        out_printf(call->out, "\n");
    } else if (!session || !session->graph_generation) {
        out_printf(call->out, " (pending: no graph yet)\n");
    } else if (waits) {
        out_printf(call->out, " (pending: %s)\n", waits);
    } else {
        out_printf(call->out, ": %s\n", inspect_plural(call, watch_nodes(call, watch), "node"));
    }
    /* never reported as a metric */
    if (!watch->event || strcmp(watch->event, GD_DIVERGENCE) != 0) {
        watch_note_unknown(call, watch->expr);
    }
    watch_note_unknown(call, watch->guard);
    watch_record(call, out_record(call->out, "watchpoint"), watch);
}

/* ---- costs --------------------------------------------------------------------------------- */

struct costs {
    struct await await;
    struct gd_watch_total total;
};

static void on_costs(void *ctx, const struct gd_watch_total *total)
{
    struct costs *costs = ctx;
    if (await_take(costs)) {
        costs->total = *total;
    }
}

int watch_ask_costs(struct command_call *call, struct gd_watch_total *ret, struct gd_err *err)
{
    struct costs *costs = calloc(1, sizeof(*costs));
    if (!costs) {
        return gd_fail_nomem(err);
    }
    int rc = gd_watch_costs(call->debugger, on_costs, costs, err);
    if (rc != GD_OK) {
        free(costs);
        return rc;
    }
    rc = repl_await(call->repl, costs, COST_SECONDS);
    if (rc != GD_OK) {
        return gd_fail(err, rc,
                       rc == GD_EINTR ? "interrupted while waiting for the training process"
                                      : "the training process has not answered");
    }
    *ret = costs->total;
    free(costs);
    return GD_OK;
}

/* ---- marks --------------------------------------------------------------------------------- */

const char *watch_numbers_of(struct command_call *call, gd_node_id node)
{
    int number[MAX_COVERING];
    size_t count = gd_watch_of_node(call->session, node, number, MAX_COVERING);
    const char *text = "";
    for (size_t i = 0; i < count && i < MAX_COVERING; i++) {
        text = inspect_printf(call, "%s%s%d", text, i ? ", " : "", number[i]);
    }
    return count > MAX_COVERING
               ? inspect_printf(call, "%s and %zu more", text, count - MAX_COVERING)
               : text;
}

cJSON *watch_numbers_record(struct command_call *call, gd_node_id node)
{
    int number[MAX_COVERING];
    size_t count = gd_watch_of_node(call->session, node, number, MAX_COVERING);
    return cJSON_CreateIntArray(number, (int)(count < MAX_COVERING ? count : MAX_COVERING));
}

const char *watch_scope_mark(struct command_call *call, gd_scope_id scope)
{
    switch (gd_watch_scope_state(call->session, scope)) {
    case GD_WATCHED_PART: return ", partly watched";
    case GD_WATCHED_ALL: return ", watched";
    default: return "";
    }
}

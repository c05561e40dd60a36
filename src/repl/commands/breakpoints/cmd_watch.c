// SPDX-License-Identifier: GPL-3.0-or-later
/* Making and changing watchpoints: watch, trace, twatch, unwatch, condition, edit, exclude,
 * recheck. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "repl/core/commands.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch.h"
#include "repl/core/watch_args.h"
#include "repl/values/inspect.h"

/* ---- watch, trace, twatch ------------------------------------------------------------------ */

static int set_watchpoint(struct command_call *call, enum gd_watch_action action, bool temporary,
                          struct gd_err *err)
{
    struct watch_args args;
    struct gd_watchpoint *watch = NULL;
    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "%s: name a condition (\"info conditions\" lists them)",
                       call->command->name);
    }
    int rc = watch_args_parse(call->arena, call->line, call->line_at, &args, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_watch_spec spec = {.condition = args.condition,
                                 .values = args.values,
                                 .value_count = args.value_count,
                                 .expression = args.expression,
                                 .guard = args.guard,
                                 .where = args.where,
                                 .when = args.when,
                                 .steps = args.steps,
                                 .action = action,
                                 .temporary = temporary};
    rc = gd_watchpoint_add(call->debugger, &spec, &watch, err);
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

static int run_watch(struct command_call *call, struct gd_err *err)
{
    return set_watchpoint(call, GD_WATCH_STOP, false, err);
}

static int run_twatch(struct command_call *call, struct gd_err *err)
{
    return set_watchpoint(call, GD_WATCH_STOP, true, err);
}

static int run_trace(struct command_call *call, struct gd_err *err)
{
    return set_watchpoint(call, GD_WATCH_TRACE, false, err);
}

static int run_unwatch(struct command_call *call, struct gd_err *err)
{
    if (call->argc == 0) {
        return gd_fail(err, GD_EUSAGE, "unwatch: the number of a watchpoint is missing");
    }
    for (int i = 0; i < call->argc; i++) {
        int number;
        int rc = watch_number(call, call->argv[i], &number, err);
        if (rc == GD_OK) {
            rc = gd_watchpoint_delete(call->debugger, number, err);
        }
        if (rc != GD_OK) {
            return rc;
        }
        repl_forget_number(call->repl, number);
    }
    return GD_OK;
}

/* ---- condition ----------------------------------------------------------------------------- */

static int run_condition(struct command_call *call, struct gd_err *err)
{
    const char *guard;
    const char *word = watch_first_word(call, &guard);
    struct gd_watchpoint *watch = NULL;
    int number;
    if (word[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "condition: the number of a watchpoint is missing");
    }
    int rc = watch_number(call, word, &number, err);
    if (rc == GD_OK && gd_debugger_breakpoint(call->debugger, number)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%d is a breakpoint: \"break NODE if EXPR\" makes one with a condition",
                       number);
    }
    if (rc == GD_OK) {
        rc = watch_find(call, word, &watch, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    guard = watch_args_unquote(call->arena, guard);
    if (!guard) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    rc = gd_watchpoint_set_guard(call->debugger, number, guard, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (watch->guard) {
        watch_show(call, watch);
    } else {
        out_printf(call->out, "%s %d is without a guard now.\n", watch_noun(watch), number);
        watch_record(call, out_record(call->out, "watchpoint"), watch);
    }
    return GD_OK;
}

/* ---- edit ---------------------------------------------------------------------------------- */

struct values {
    struct gd_condition_value value[GD_MAX_CONDITION_PARAMS];
    size_t count;
};

static size_t index_of(const struct values *values, const char *name)
{
    size_t i = 0;
    while (i < values->count && strcmp(values->value[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void drop(struct values *values, size_t index)
{
    if (index < values->count) {
        values->count--;
        memmove(&values->value[index], &values->value[index + 1],
                (values->count - index) * sizeof(values->value[0]));
    }
}

/* Where one test is all that a watchpoint has, a new one takes the place of the old. */
static void drop_other_tests(struct values *values, const struct gd_condition *condition,
                             const struct watch_args *args)
{
    for (size_t i = values->count; i-- > 0;) {
        const struct gd_condition_param *param =
            gd_condition_param(condition, values->value[i].name);
        bool given = false;
        for (size_t k = 0; k < args->value_count; k++) {
            given = given || strcmp(args->values[k].name, values->value[i].name) == 0;
        }
        if (!given && param && !param->support) {
            drop(values, i);
        }
    }
}

/* Parameters of a range are left over when no test wants one any more. */
static void drop_lonely_support(struct values *values, const struct gd_condition *condition,
                                const struct watch_args *args)
{
    bool wanted = false;
    for (size_t i = 0; i < values->count; i++) {
        const struct gd_condition_param *param =
            gd_condition_param(condition, values->value[i].name);
        wanted = wanted || (param && param->needs_range);
    }
    for (size_t k = 0; k < args->value_count; k++) { /* what was typed is not dropped in silence */
        const struct gd_condition_param *param =
            gd_condition_param(condition, args->values[k].name);
        wanted = wanted || (param && param->support);
    }
    for (size_t i = values->count; !wanted && i-- > 0;) {
        const struct gd_condition_param *param =
            gd_condition_param(condition, values->value[i].name);
        if (param && param->support) {
            drop(values, i);
        }
    }
}

/* What the watchpoint had, with what was typed put in, and out. */
static int merge_values(const struct gd_watchpoint *watch, const struct watch_args *args,
                        struct values *ret, struct gd_err *err)
{
    bool new_test = false;
    ret->count = watch->value_count;
    memcpy(ret->value, watch->values, sizeof(watch->values));
    for (size_t k = 0; k < args->value_count; k++) {
        const struct gd_condition_param *param =
            gd_condition_param(watch->condition, args->values[k].name);
        bool off = (args->off >> k & 1) != 0;
        new_test = new_test || (!off && param && !param->support);
        size_t at = index_of(ret, args->values[k].name);
        if (off) {
            drop(ret, at);
        } else if (at < GD_MAX_CONDITION_PARAMS) {
            ret->value[at] = args->values[k];
            ret->count += at == ret->count ? 1 : 0;
        } else {
            return gd_fail(err, GD_EINVAL, "too many parameters");
        }
    }
    if (new_test && !watch->condition->any_tests) {
        drop_other_tests(ret, watch->condition, args);
    }
    drop_lonely_support(ret, watch->condition, args);
    return GD_OK;
}

static int edit_parts(struct command_call *call, struct gd_watchpoint *watch, const char *text,
                      struct gd_err *err)
{
    struct watch_args args;
    struct values values;
    size_t column = call->line_at + (size_t)(text - call->line);
    int number = watch->number;
    int rc = watch_args_parse_edit(call->arena, text, column, watch->condition, &args, err);
    if (rc == GD_OK && args.has_head && watch->condition) {
        rc = merge_values(watch, &args, &values, err);
        rc = rc == GD_OK
                 ? gd_watchpoint_set_values(call->debugger, number, values.value, values.count, err)
                 : rc;
    } else if (rc == GD_OK && args.has_head) {
        rc = gd_watchpoint_set_expression(call->debugger, number, args.expression, err);
    }
    if (rc == GD_OK && args.where) {
        rc = gd_watchpoint_set_where(call->debugger, number, '=', args.where, err);
    }
    if (rc == GD_OK && args.guard) {
        rc = gd_watchpoint_set_guard(call->debugger, number, args.guard, err);
    }
    return rc;
}

/* "add SELECTOR", "remove SELECTOR": '+', '-'; '\0' for anything else. */
static char node_change(const char *text, const char **where)
{
    static const struct {
        const char *word;
        char how;
    } words[] = {{"add", '+'}, {"remove", '-'}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(text, words[i].word, len) == 0 && (text[len] == ' ' || text[len] == '\t')) {
            *where = text + len + strspn(text + len, " \t");
            return words[i].how;
        }
    }
    return '\0';
}

static int run_edit(struct command_call *call, struct gd_err *err)
{
    const char *rest;
    const char *where = NULL;
    const char *word = watch_first_word(call, &rest);
    struct gd_watchpoint *watch = NULL;
    if (word[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "edit: the number of a watchpoint is missing");
    }
    int rc = watch_find(call, word, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    char how = node_change(rest, &where);
    if (how != '\0') {
        where = where[0] == '\'' ? watch_args_unquote(call->arena, where) : where;
        rc = where ? gd_watchpoint_set_where(call->debugger, watch->number, how, where, err)
                   : gd_fail(err, GD_ENOMEM, "out of memory");
    } else {
        rc = edit_parts(call, watch, rest, err);
    }
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

/* ---- exclude ------------------------------------------------------------------------------- */

static size_t excluded_nodes(struct command_call *call, const char *where)
{
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (!call->debugger->current || gd_selector_parse(where, &selector, NULL) != GD_OK) {
        return 0;
    }
    if (gd_selector_resolve(selector, call->debugger->current->graph, &nodes, &count, NULL) !=
        GD_OK) {
        count = 0;
        nodes = NULL;
    }
    free(nodes);
    gd_selector_destroy(selector);
    return count;
}

static void list_excluded(struct command_call *call)
{
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "excluded"), "excluded");
    const char *where;
    if (!gd_exclude_at(call->debugger, 0)) {
        out_printf(call->out,
                   "No place is excluded: values that are not finite count everywhere.\n");
    } else {
        out_printf(call->out, "Values that are not finite are normal on:\n");
    }
    for (size_t i = 0; (where = gd_exclude_at(call->debugger, i)); i++) {
        size_t nodes = excluded_nodes(call, where);
        cJSON *object = cJSON_CreateObject();
        inspect_add_text(call, object, "where", where);
        cJSON_AddNumberToObject(object, "nodes", (double)nodes);
        cJSON_AddItemToArray(list, object);
        out_printf(call->out, "  %s: %s\n", out_safe(call, where),
                   inspect_plural(call, nodes, "node"));
    }
}

static int run_exclude(struct command_call *call, struct gd_err *err)
{
    const char *rest;
    bool remove = strcmp(watch_first_word(call, &rest), "-d") == 0;
    const char *where = remove ? rest : call->line;
    int rc = GD_OK;
    if (where[0] == '\'') {
        where = watch_args_unquote(call->arena, where);
    }
    if (!where) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    if (remove && where[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "exclude -d: which one?");
    }
    if (where[0] != '\0') {
        rc = remove ? gd_exclude_delete(call->debugger, where, err)
                    : gd_exclude_add(call->debugger, where, err);
    }
    if (rc == GD_OK) {
        list_excluded(call);
    }
    return rc;
}

/* ---- recheck ------------------------------------------------------------------------------- */

struct recheck { /* frees itself when the wait was given up */
    bool done, abandoned;
    size_t hits;
    struct gd_err err;
};

static void on_rechecked(void *ctx, size_t hits, const struct gd_err *err)
{
    struct recheck *recheck = ctx;
    if (recheck->abandoned) {
        free(recheck);
        return;
    }
    recheck->done = true;
    recheck->hits = hits;
    if (err) {
        recheck->err = *err;
    }
}

static bool recheck_done(void *ctx)
{
    return ((const struct recheck *)ctx)->done;
}

/* What a process of MindSpore evaluates by itself it does not count. */
static bool counts_checks(const struct command_call *call)
{
    for (const struct gd_watchpoint *w = call->debugger->watchpoints; w; w = w->next) {
        if (w->enabled && gd_watchpoint_place(w, call->debugger, call->session, NULL, 0) ==
                              GD_WATCH_PLACE_PROCESS) {
            return false;
        }
    }
    return true;
}

static int tell_rechecked(struct command_call *call, size_t hits, struct gd_watch_tally tally,
                          struct gd_err *err)
{
    size_t missing = gd_watch_recheck_missing(call->session);
    bool counts = counts_checks(call);
    int rc =
        counts ? hits_need_checked(hits, tally.checks, tally.unclear, tally.errors, err) : GD_OK;

    if (rc != GD_OK) {
        return rc;
    }
    if (hits == 0) {
        out_printf(call->out, "No watchpoint fires on these values: %s",
                   hits_checked(call, tally.checks, tally.unclear, tally.errors));
        out_printf(call->out, "%s", counts ? "" : ", and those of the process, which counts none");
        if (missing > 0) {
            out_printf(call->out, "; %s without a value", inspect_plural(call, missing, "tensor"));
        }
        out_printf(call->out, ".\n");
    }
    cJSON *record = out_record(call->out, "recheck");
    inspect_add_count(record, "hits", hits);
    hits_add_checked(record, tally.checks, tally.unclear, tally.errors);
    inspect_add_count(record, "no_value", missing);
    return GD_OK;
}

static int run_recheck(struct command_call *call, struct gd_err *err)
{
    struct recheck *recheck = calloc(1, sizeof(*recheck));
    if (!recheck) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    struct gd_watch_tally before;
    gd_watch_tally(call->debugger, &before);
    int rc = gd_watch_recheck(call->session, on_rechecked, recheck, err);
    if (rc != GD_OK) {
        free(recheck);
        return rc;
    }
    rc = repl_wait(call->repl, recheck_done, recheck, -1);
    if (rc != GD_OK) {
        recheck->abandoned = true;
        return gd_fail(err, rc, "interrupted while the watchpoints are checked again");
    }
    struct recheck answer = *recheck;
    free(recheck);
    repl_hits_over(call->repl);
    if (answer.err.code != GD_OK) {
        *err = answer.err;
        return answer.err.code;
    }
    return tell_rechecked(call, answer.hits, gd_watch_tally_since(call->debugger, &before), err);
}

#define WATCH_USAGE " [-exact | -step] [-for N] CONDITION [PARAM=VALUE]... [on SELECTOR] [if EXPR]"

const struct command cmd_watch_table[] = {
    {.name = "watch",
     .aliases = "wa wat",
     .group = "breakpoints",
     .usage = "watch" WATCH_USAGE,
     .summary = "Stop the training when a tensor meets a condition or an expression",
     .help =
         "The condition goes by its name or abbreviation: \"info conditions\" lists them with\n"
         "their parameters. Without a selector it applies to what it is made for (weights,\n"
         "gradients, activations, all, the loss). In its place may stand an expression over\n"
         "figures of the tensor (\"info statistics\" lists them) and over named numbers of the\n"
         "training (loss, lr, step); with \"if\" a second one must be true as well.\n"
         "\n"
         "-exact stops right after the operator, before the next one runs. -step looks at the end\n"
         "of the step; what is gone by then is copied when it is made, which takes memory, and\n"
         "more time than -exact. On weights, where nothing is copied, both cost the same. Without\n"
         "either, \"set watch-when\" decides.\n"
         "-for N fires when it has held in N steps in a row: one step often proves nothing.\n"
         "Infinities that the program asks for (a mask of -inf) do not count: \"info hits\" and\n"
         "\"info watchpoints\" say how many were hidden.\n"
         "Examples:\n"
         "  watch TO on all\n"
         "  watch TL abs_mean_gt=1000 on gradients\n"
         "  watch -for 10 TZ on weights except *bias*, *beta if loss != 0\n"
         "  watch -step GL max_gt=1e6 on gradients except *bias if step > 10\n"
         "  watch weight_overflow\n"
         "  watch 'max > 1e4 || nan > 0' on gradients\n"
         "  watch norm(cur-prev) > 100 * norm(prev) on head.weight\n"
         "  watch loss > 100",
     .args = {ARG_CONDITION, ARG_WATCH},
     .flags = CMD_RAW,
     .run = run_watch},
    {.name = "trace",
     .aliases = "tr tra",
     .group = "breakpoints",
     .usage = "trace" WATCH_USAGE,
     .summary = "Report when a tensor meets a condition, and go on",
     .help = "As watch, but the training does not stop: what fires is printed and kept for\n"
             "\"info hits\".\n"
             "Examples:\n"
             "  trace WNC on weights\n"
             "  trace AR range_start_inclusive=-1 range_end_inclusive=0 range_percentage_gt=99\n"
             "  trace GL max_gt=10\n"
             "  trace 'norm > 50' on gradients",
     .args = {ARG_CONDITION, ARG_WATCH},
     .flags = CMD_RAW,
     .run = run_trace},
    {.name = "twatch",
     .aliases = "tw twa",
     .group = "breakpoints",
     .usage = "twatch" WATCH_USAGE,
     .summary = "Stop once when a tensor meets a condition",
     .help = "As watch; the watchpoint is deleted when it has stopped the training.\n"
             "Example:\n"
             "  twatch TO on activations",
     .args = {ARG_CONDITION, ARG_WATCH},
     .flags = CMD_RAW,
     .run = run_twatch},
    {.name = "unwatch",
     .group = "breakpoints",
     .usage = "unwatch N...",
     .summary = "Delete watchpoints",
     .help = "As delete, for watchpoints alone.",
     .args = {ARG_BREAKPOINT},
     .flags = CMD_CHANGES,
     .run = run_unwatch},
    {.name = "condition",
     .aliases = "cond",
     .group = "breakpoints",
     .usage = "condition N [EXPR]",
     .summary = "Give a watchpoint a guard: an expression that must be true as well",
     .help = "It is written as behind \"if\" of watch. Without an expression the guard is taken\n"
             "away.\n"
             "Examples:\n"
             "  condition 2 step > 100\n"
             "  condition 2 'loss < 4 && max > 10'\n"
             "  condition 2",
     .args = {ARG_WATCHPOINT, ARG_WORD},
     .flags = CMD_RAW | CMD_CHANGES,
     .run = run_condition},
    {.name = "edit",
     .group = "breakpoints",
     .usage = "edit N [PARAM=VALUE... | EXPR] [on SELECTOR] [if EXPR] | edit N add | remove "
              "SELECTOR",
     .summary = "Change a watchpoint: its parameters, its expression, what it applies to",
     .help =
         "Parameters that are not named keep their values; PARAM=off takes one away. Where a\n"
         "condition has one test, a new one replaces it. \"on\" replaces the selector, \"add\"\n"
         "and \"remove\" add nodes to it and take nodes away. Counts of hits stay.\n"
         "Examples:\n"
         "  edit 2 abs_mean_gt=500\n"
         "  edit 2 on weights except *bias\n"
         "  edit 2 add type:Softmax\n"
         "  edit 2 remove Default/network/block0",
     .args = {ARG_WATCHPOINT, ARG_WATCH_EDIT},
     .flags = CMD_RAW | CMD_CHANGES,
     .run = run_edit},
    {.name = "exclude",
     .group = "breakpoints",
     .usage = "exclude [-d] [SELECTOR]",
     .summary = "Name nodes where NaN and infinite values are normal, or list them",
     .help = "Masks often hold -inf on purpose. Conditions that look for values that are not\n"
             "finite do not fire there, and no other says \"could not check\" because of them.\n"
             "-d takes a place from the list.\n"
             "Examples:\n"
             "  exclude type:Softmax\n"
             "  exclude -d type:Softmax",
     .args = {ARG_SELECTOR},
     .flags = CMD_RAW | CMD_CHANGES,
     .run = run_exclude},
    {.name = "recheck",
     .group = "breakpoints",
     .usage = "recheck",
     .summary = "Check all watchpoints again on the values of this stop",
     .help =
         "What fires is reported as at any stop, in a new list of this step's hits; the training\n"
         "does not move.",
     .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
     .run = run_recheck},
    {.name = NULL},
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* Breakpoints: break, tbreak, delete, enable, disable, ignore, commands, info breakpoints. */
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch.h"
#include "repl/core/watch_args.h"
#include "repl/values/nodes.h"

#include "engine/graph/selector.h"
#include "engine/watch/watchpoint.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers as arguments ---- */

struct range {
    int first, last;
};

/* "3", "2-5" or "$bpnum". */
static int parse_range(struct command_call *call, const char *text, struct range *ret,
                       struct gd_err *err)
{
    if (strcmp(text, "$bpnum") == 0) {
        ret->first = call->debugger->next_breakpoint - 1;
        ret->last = ret->first;
        return GD_OK;
    }
    int64_t first = 0;
    int64_t last = 0;
    const char *dash = strchr(text, '-');
    char *head = gd_arena_strndup(call->arena, text, dash ? (size_t)(dash - text) : strlen(text));
    struct gd_err ignored;
    if (!head || arg_count(head, 1, INT_MAX, &first, &ignored) != GD_OK ||
        (dash && arg_count(dash + 1, 1, INT_MAX, &last, &ignored) != GD_OK)) {
        return gd_fail(err, GD_EINVAL, "\"%.40s\" is no breakpoint number: write 2 or 2-5", text);
    }
    ret->first = (int)first;
    ret->last = dash ? (int)last : ret->first;
    return GD_OK;
}

static int no_breakpoint(int number, struct gd_err *err)
{
    return gd_fail(err, GD_ENOTFOUND,
                   "there is no breakpoint or watchpoint %d: \"info breakpoints\" lists them",
                   number);
}

typedef int (*number_fn)(struct command_call *call, int number, void *ctx, struct gd_err *err);

/* Calls fn for the watchpoints of a range: they share their numbers with breakpoints. */
static int for_watchpoints(struct command_call *call, const struct range *range, number_fn fn,
                           void *ctx, bool *any, struct gd_err *err)
{
    int rc = GD_OK;
    for (const struct gd_watchpoint *w = call->debugger->watchpoints; rc == GD_OK && w;) {
        const struct gd_watchpoint *next = w->next; /* fn may delete it */
        if (w->number >= range->first && w->number <= range->last) {
            *any = true;
            rc = fn(call, w->number, ctx, err);
        }
        w = next;
    }
    return rc;
}

/* Calls fn for every breakpoint and watchpoint that the words from `first` on name. A number that
 * is not there is an error; a range takes those that are. */
static int for_numbers(struct command_call *call, int first, number_fn fn, void *ctx,
                       struct gd_err *err)
{
    for (int i = first; i < call->argc; i++) {
        struct range range;
        int rc = parse_range(call, call->argv[i], &range, err);
        bool any = false;
        for (const struct gd_breakpoint *b = call->debugger->breakpoints; rc == GD_OK && b;) {
            const struct gd_breakpoint *next = b->next; /* fn may delete it */
            if (b->number >= range.first && b->number <= range.last) {
                any = true;
                rc = fn(call, b->number, ctx, err);
            }
            b = next;
        }
        if (rc == GD_OK) {
            rc = for_watchpoints(call, &range, fn, ctx, &any, err);
        }
        if (rc == GD_OK && !any) {
            rc = no_breakpoint(range.first, err);
        }
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

static int for_all(struct command_call *call, number_fn fn, void *ctx, struct gd_err *err)
{
    for (const struct gd_breakpoint *b = call->debugger->breakpoints; b;) {
        const struct gd_breakpoint *next = b->next;
        int rc = fn(call, b->number, ctx, err);
        if (rc != GD_OK) {
            return rc;
        }
        b = next;
    }
    bool any = false;
    return for_watchpoints(call, &(struct range){1, INT_MAX}, fn, ctx, &any, err);
}

/* ---- break ---- */

/* How many nodes of the current session it covers, the first of them; 0 and why when none. */
static size_t covered(struct command_call *call, const struct gd_breakpoint *at, gd_node_id *first,
                      struct gd_err *why)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    struct gd_session *session = call->debugger->current;

    if (!session || !at->selector ||
        gd_selector_resolve(at->selector, session->graph, &nodes, &count, why) != GD_OK) {
        return 0;
    }
    if (count > 0) {
        *first = nodes[0];
    }
    free(nodes);
    return count;
}

static void describe_place(struct command_call *call, const struct gd_breakpoint *at,
                           struct gd_buf *out)
{
    struct gd_err why = {.code = GD_OK};
    gd_node_id first = GD_NO_NODE;
    size_t count = covered(call, at, &first, &why);
    struct gd_node_info info;

    if (count == 1 && gd_graph_node(call->debugger->current->graph, first, &info)) {
        gd_buf_printf(out, "%s (%s)", out_safe(call, info.name), out_safe(call, info.type));
    } else if (count > 1) {
        gd_buf_printf(out, "%s: %zu nodes", out_safe(call, at->where), count);
    } else if (!call->debugger->current) {
        gd_buf_printf(out, "%s (pending: no training process yet)", out_safe(call, at->where));
    } else {
        gd_buf_printf(out, "%s (pending: %s)", out_safe(call, at->where),
                      why.text[0] != '\0' ? out_safe(call, why.text) : "no node matches yet");
    }
}

static void breakpoint_record(struct command_call *call, cJSON *object,
                              const struct gd_breakpoint *at)
{
    struct gd_err why = {.code = GD_OK};
    gd_node_id first = GD_NO_NODE;
    size_t count = covered(call, at, &first, &why);

    cJSON_AddNumberToObject(object, "number", at->number);
    cJSON_AddStringToObject(object, "where", at->where);
    cJSON_AddBoolToObject(object, "temporary", at->temporary);
    cJSON_AddBoolToObject(object, "enabled", at->enabled);
    cJSON_AddNumberToObject(object, "hits", (double)at->hits);
    cJSON_AddNumberToObject(object, "ignore", (double)at->ignore);
    cJSON_AddNumberToObject(object, "nodes", (double)count);
    const struct repl_lines *body = repl_commands_of(call->repl, at->number);
    cJSON *lines = cJSON_AddArrayToObject(object, "commands");
    for (size_t i = 0; body && i < body->count; i++) {
        cJSON_AddItemToArray(lines, cJSON_CreateString(body->line[i]));
    }
}

static int set_breakpoint(struct command_call *call, bool temporary, struct gd_err *err)
{
    const char *where = watch_args_unquote(call->arena, call->line);
    struct gd_breakpoint *at = NULL;
    struct gd_buf place = GD_BUF_INIT(1 << 20);
    bool has_condition;
    int rc = watch_break_if(call, temporary, &has_condition, err);

    if (rc != GD_OK || has_condition) {
        return rc;
    }
    if (!where) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    if (where[0] == '\0') {
        rc = watch_current_node(call, &where, err);
    }
    rc = rc != GD_OK ? rc : nodes_must_run_any(call, where, err);
    rc = rc != GD_OK ? rc : gd_debugger_break(call->debugger, where, temporary, &at, err);
    if (rc != GD_OK) {
        return rc;
    }
    describe_place(call, at, &place);
    out_printf(call->out, "%s %d at %s\n", temporary ? "Temporary breakpoint" : "Breakpoint",
               at->number, gd_buf_text(&place));
    breakpoint_record(call, out_record(call->out, "breakpoint"), at);
    gd_buf_deinit(&place);
    return GD_OK;
}

static int run_break(struct command_call *call, struct gd_err *err)
{
    return set_breakpoint(call, false, err);
}

static int run_tbreak(struct command_call *call, struct gd_err *err)
{
    return set_breakpoint(call, true, err);
}

/* ---- delete, enable, disable, ignore ---- */

static int delete_one(struct command_call *call, int number, void *ctx, struct gd_err *err)
{
    (void)ctx;
    int rc = gd_watchpoint_at(call->debugger, number)
                 ? gd_watchpoint_delete(call->debugger, number, err)
                 : gd_debugger_delete_breakpoint(call->debugger, number, err);
    if (rc == GD_OK) {
        repl_forget_number(call->repl, number);
    }
    return rc;
}

static int run_delete(struct command_call *call, struct gd_err *err)
{
    int from = call->argc > 0 && strcmp(call->argv[0], "breakpoints") == 0 ? 1 : 0;

    if (call->argc > from) {
        return for_numbers(call, from, delete_one, NULL, err);
    }
    if ((!call->debugger->breakpoints && !call->debugger->watchpoints) ||
        !repl_confirm(call, "Delete all breakpoints and watchpoints?")) {
        return GD_OK;
    }
    return for_all(call, delete_one, NULL, err);
}

struct enable_how {
    bool enable;
    bool then_delete;
    uint64_t count; /* passes until it is disabled again; 0: none */
};

static int enable_one(struct command_call *call, int number, void *ctx, struct gd_err *err)
{
    const struct enable_how *how = ctx;
    struct gd_watchpoint *watch = gd_watchpoint_at(call->debugger, number);
    int rc = watch ? gd_watchpoint_enable(call->debugger, number, how->enable, err)
                   : gd_debugger_enable_breakpoint(call->debugger, number, how->enable, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (how->then_delete && watch) {
        watch->temporary = true;
    } else if (how->then_delete) {
        gd_debugger_breakpoint(call->debugger, number)->temporary = true;
    }
    rc = repl_set_stop_count(call->repl, number, how->count);
    return rc == GD_OK ? rc : gd_fail(err, rc, "out of memory");
}

static int run_enable(struct command_call *call, struct gd_err *err)
{
    struct enable_how how = {.enable = true};
    int from = 0;

    if (call->argc > 0 && strcmp(call->argv[0], "once") == 0) {
        how.count = 1;
        from = 1;
    } else if (call->argc > 0 && strcmp(call->argv[0], "delete") == 0) {
        how.then_delete = true;
        from = 1;
    } else if (call->argc > 0 && strcmp(call->argv[0], "count") == 0) {
        int64_t count = 0;
        int rc = call->argc > 1 ? arg_count(call->argv[1], 1, INT64_MAX, &count, err)
                                : gd_fail(err, GD_EUSAGE, "enable count: a number is missing");
        if (rc != GD_OK) {
            return rc;
        }
        how.count = (uint64_t)count;
        from = 2;
    }
    if (call->argc > from) {
        return for_numbers(call, from, enable_one, &how, err);
    }
    if (from > 0) {
        return gd_fail(err, GD_EUSAGE, "enable %s: the number of a breakpoint is missing",
                       call->argv[0]);
    }
    return for_all(call, enable_one, &how, err);
}

static int run_disable(struct command_call *call, struct gd_err *err)
{
    struct enable_how how = {.enable = false};

    if (call->argc > 0) {
        return for_numbers(call, 0, enable_one, &how, err);
    }
    return for_all(call, enable_one, &how, err);
}

static int run_ignore(struct command_call *call, struct gd_err *err)
{
    int64_t count = 0;
    struct range range;

    if (call->argc != 2) {
        return gd_fail(err, GD_EUSAGE, "ignore: a number and a count are needed");
    }
    int rc = parse_range(call, call->argv[0], &range, err);
    if (rc == GD_OK) {
        rc = arg_count(call->argv[1], 0, INT64_MAX, &count, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_breakpoint *at = gd_debugger_breakpoint(call->debugger, range.first);
    struct gd_watchpoint *watch = gd_watchpoint_at(call->debugger, range.first);
    if (!at && !watch) {
        return no_breakpoint(range.first, err);
    }
    if (at) {
        at->ignore = (uint64_t)count;
        breakpoint_record(call, out_record(call->out, "breakpoint"), at);
    } else {
        rc = gd_watchpoint_set_ignore(call->debugger, watch->number, (uint64_t)count, err);
        if (rc != GD_OK) {
            return rc;
        }
        watch_record(call, out_record(call->out, "watchpoint"), watch);
    }
    const char *noun = at ? "Breakpoint" : watch_noun(watch);
    if (count == 0) {
        out_printf(call->out, "%s %d %s the next time.\n", noun, range.first,
                   watch && watch->action == GD_WATCH_TRACE ? "reports" : "stops");
    } else {
        out_printf(call->out, "%s %d lets %lld more pass.\n", noun, range.first, (long long)count);
    }
    return GD_OK;
}

/* ---- commands ---- */

static int run_commands(struct command_call *call, struct gd_err *err)
{
    struct range range;
    int rc = call->argc > 1
                 ? gd_fail(err, GD_EUSAGE, "commands: at most one number or range")
                 : parse_range(call, call->argc == 1 ? call->argv[0] : "$bpnum", &range, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (range.last - range.first > 1000) {
        return gd_fail(err, GD_ELIMIT, "commands: a range has at most 1000 numbers");
    }
    if (range.first < 1 || range.last >= call->debugger->next_breakpoint) {
        return no_breakpoint(range.first < 1 ? 1 : range.last, err);
    }
    if (call->repl->options.interactive) {
        out_printf(call->out, "Type commands for when %d stops, one a line; \"end\" ends them.\n",
                   range.first);
    }
    return repl_body_open(call->repl, BODY_COMMANDS, "", range.first, range.last, err);
}

/* ---- info breakpoints ---- */

static void print_body(struct command_call *call, int number)
{
    const struct repl_lines *body = repl_commands_of(call->repl, number);
    for (size_t i = 0; body && i < body->count; i++) {
        out_printf(call->out, "        %s\n", out_safe(call, body->line[i]));
    }
}

static void print_breakpoint(struct command_call *call, const struct gd_breakpoint *at)
{
    struct gd_buf place = GD_BUF_INIT(1 << 20);

    describe_place(call, at, &place);
    out_printf(call->out, "%-3d  %-10s  %-4s  %-3s  %s\n", at->number, "breakpoint",
               at->temporary ? "del" : "keep", at->enabled ? "y" : "n", gd_buf_text(&place));
    if (at->hits > 0) {
        out_printf(call->out, "        already hit %llu time%s\n", (unsigned long long)at->hits,
                   at->hits == 1 ? "" : "s");
    }
    if (at->ignore > 0) {
        out_printf(call->out, "        ignore next %llu hit%s\n", (unsigned long long)at->ignore,
                   at->ignore == 1 ? "" : "s");
    }
    print_body(call, at->number);
    gd_buf_deinit(&place);
}

static void print_watchpoint(struct command_call *call, const struct gd_watchpoint *watch)
{
    out_printf(call->out, "%-3d  %-10s  %-4s  %-3s  %s\n", watch->number,
               watch->event                      ? "catchpoint"
               : watch->action == GD_WATCH_TRACE ? "trace"
                                                 : "watchpoint",
               watch->temporary ? "del" : "keep", watch->enabled ? "y" : "n",
               watch_text(call, watch));
    print_body(call, watch->number);
}

/* Both kinds, in order of their numbers, as gdb lists them. */
int cmd_info_breakpoints(struct command_call *call, struct gd_err *err)
{
    cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "breakpoints"), "breakpoints");
    const struct gd_breakpoint *b = call->debugger->breakpoints;
    const struct gd_watchpoint *w = call->debugger->watchpoints;

    (void)err;
    if (!b && !w) {
        out_printf(call->out, "No breakpoints.\n");
        return GD_OK;
    }
    out_printf(call->out, "Num  Type        Disp  Enb  Where\n");
    while (b || w) {
        if (!b || (w && w->number < b->number)) {
            print_watchpoint(call, w); /* their records are those of info watchpoints */
            w = w->next;
            continue;
        }
        if (out_is_json(call->out)) {
            cJSON *object = cJSON_CreateObject();
            breakpoint_record(call, object, b);
            cJSON_AddItemToArray(list, object);
        } else {
            print_breakpoint(call, b);
        }
        b = b->next;
    }
    return GD_OK;
}

const struct command cmd_break_table[] = {
    {.name = "break",
     .aliases = "b br bre brea",
     .group = "breakpoints",
     .usage = "break [NODE | SELECTOR] [if EXPR]",
     .summary = "Stop the training when a node has executed",
     .help =
         "A selector stops at each node that it covers; without an argument the current node is\n"
         "meant. A name that no node has yet is kept until the graph has it; the end of several\n"
         "names is an error that says two of them.\n"
         "With \"if\" it stops where the expression is true of what the node has written; it is a\n"
         "watchpoint then: \"help watch\" says what stands in one.\n"
         "Examples:\n"
         "  break Default/network/block0/attn/MatMul-op4\n"
         "  break type:Softmax\n"
         "  break /LayerNorm.*/\n"
         "  break type:Softmax if max > 0.99 && step > 100",
     .args = {ARG_SELECTOR},
     .flags = CMD_RAW,
     .run = run_break},
    {.name = "tbreak",
     .aliases = "tb tbr",
     .group = "breakpoints",
     .usage = "tbreak [NODE | SELECTOR] [if EXPR]",
     .summary = "Stop once when a node has executed",
     .help = "As break; the breakpoint is deleted when it has stopped the training.\n"
             "Example:\n"
             "  tbreak type:GeLU",
     .args = {ARG_SELECTOR},
     .flags = CMD_RAW,
     .run = run_tbreak},
    {.name = "delete",
     .aliases = "d del",
     .group = "breakpoints",
     .usage = "delete [N | N-M]...",
     .summary = "Delete breakpoints and watchpoints",
     .help = "Without a number all are deleted, after a question.",
     .args = {ARG_BREAKPOINT},
     .flags = CMD_CHANGES,
     .run = run_delete},
    {.name = "enable",
     .aliases = "en",
     .group = "breakpoints",
     .usage = "enable [once | delete | count K] [N | N-M]...",
     .summary = "Let breakpoints and watchpoints stop the training again",
     .help = "once: it stops once, then it is disabled. count K: it is disabled after K stops.\n"
             "delete: it stops once, then it is deleted. Without a number all are enabled.",
     .args = {ARG_BREAKPOINT},
     .run = run_enable},
    {.name = "disable",
     .aliases = "dis disa",
     .group = "breakpoints",
     .usage = "disable [N | N-M]...",
     .summary = "Keep breakpoints and watchpoints from stopping the training",
     .help = "Without a number all are disabled. \"enable\" undoes it.",
     .args = {ARG_BREAKPOINT},
     .run = run_disable},
    {.name = "ignore",
     .group = "breakpoints",
     .usage = "ignore N COUNT",
     .summary = "Let a breakpoint or a watchpoint pass a number of times",
     .help = "The next COUNT times that breakpoint N is reached, or that watchpoint N fires, the\n"
             "training goes on.",
     .args = {ARG_BREAKPOINT, ARG_WORD},
     .run = run_ignore},
    {.name = "commands",
     .group = "breakpoints",
     .usage = "commands [N | N-M]",
     .summary = "Give a breakpoint or watchpoint commands to run when it stops, up to \"end\"",
     .help =
         "Without a number the one set last is meant. \"silent\" as the first command\n"
         "keeps the stop from being reported. A command that resumes the training ends the list.\n"
         "No commands at all take the list away.\n"
         "Example:\n"
         "  commands 1\n"
         "    silent\n"
         "    print .\n"
         "    continue\n"
         "  end",
     .args = {ARG_BREAKPOINT},
     .run = run_commands},
    {.name = NULL},
};

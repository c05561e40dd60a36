// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: break, tbreak. With "if", a watchpoint. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/expression.h"
#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/breakpoints/event.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch_args.h"
#include "repl/values/figures.h"
#include "repl/values/inspect.h"
#include "repl/values/lines.h"
#include "repl/values/nodes.h"
#include "repl/values/watch.h"

enum variant { ALWAYS, ONCE };

/* How many nodes of the current session the breakpoint covers; *first is the first of them. 0:
 * none, *why says why. */
static size_t count_covered(struct command_call *call, const struct gd_breakpoint *at,
                            gd_node_id *first, struct gd_err *why)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    struct gd_session *session = call->debugger->current;

    if (!session || !at->selector ||
        gd_selector_resolve(at->selector, session->graph, &nodes, &count, why) != GD_OK) {
        return 0;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!gd_breakpoint_skips(at, session->graph, nodes[i]) && kept++ == 0) {
            *first = nodes[i];
        }
    }
    free(nodes);
    return kept;
}

/* It stops at a line, or will when a process is there: not at the nodes of the line. */
static bool is_at_line(struct command_call *call, const struct gd_breakpoint *at)
{
    const struct gd_session *session = call->debugger->current;
    if (!at->line || (session && !gd_session_has_lines(session))) {
        return false;
    }
    return at->line->state == GD_LINE_FOUND || gd_line_is_numbered(at->line) ||
           at->line->file[0] != '\0';
}

const char *breakpoint_place(struct command_call *call, const struct gd_breakpoint *at)
{
    if (at->event) {
        return event_text(call, at);
    }
    if (is_at_line(call, at)) {
        return lines_text(call, at);
    }
    struct gd_err why = {.code = GD_OK};
    gd_node_id first = GD_NO_NODE;
    size_t count = count_covered(call, at, &first, &why);
    struct gd_node_info info;
    const char *where = out_safe(call, at->where);

    if (count == 1 && gd_graph_node(call->debugger->current->graph, first, &info)) {
        return inspect_printf(call, "%s (%s)", out_safe(call, info.name),
                              out_safe(call, info.type));
    }
    if (count > 1) {
        return inspect_printf(call, "%s: %zu nodes", where, count);
    }
    if (!call->debugger->current) {
        return inspect_printf(call, "%s (pending: no training process yet)", where);
    }
    return inspect_printf(call, "%s (pending: %s)", where,
                          why.text[0] != '\0' ? out_safe(call, why.text) : "no node matches yet");
}

static void add_event(const struct gd_breakpoint *at, struct gd_buf *out)
{
    gd_buf_printf(out, "%s %s", at->command ? "on" : at->temporary ? "tcatch" : "catch", at->where);
    if (at->every > 1) {
        gd_buf_printf(out, " every %lld", (long long)at->every);
    }
    if (at->guard) {
        gd_buf_printf(out, " if '%s'", gd_expr_text(at->guard));
    }
    gd_buf_printf(out, "%s%s", at->command ? " " : "", at->command ? at->command : "");
}

void breakpoint_line(const struct gd_breakpoint *at, struct gd_buf *out)
{
    if (at->event) {
        add_event(at, out);
        return;
    }
    gd_buf_puts(out, at->print ? "dprintf " : at->temporary ? "tbreak " : "break ");
    if (strpbrk(at->where, " \t\"'\\>&()[]#,")) {
        gd_buf_put_quoted(out, at->where);
    } else {
        gd_buf_puts(out, at->where);
    }
    if (at->print && at->print[0]) {
        gd_buf_printf(out, ",%s", at->print);
    }
    if (at->guard) {
        gd_buf_printf(out, " if %s", gd_expr_text(at->guard));
    }
}

void breakpoint_record(struct command_call *call, cJSON *object, const struct gd_breakpoint *at)
{
    struct gd_err why = {.code = GD_OK};
    gd_node_id first = GD_NO_NODE;
    size_t count = count_covered(call, at, &first, &why);

    out_set(object, OUT_INT("number", at->number), OUT_TEXT("where", at->where),
            OUT_BOOL("temporary", at->temporary), OUT_BOOL("enabled", at->enabled),
            OUT_INT("hits", at->hits), OUT_INT("ignore", at->ignore), OUT_INT("nodes", count),
            OUT_IF(at->print, OUT_TEXT("print", at->print)),
            OUT_IF(at->guard, OUT_TEXT("condition", gd_expr_text(at->guard))));
    if (at->event) {
        event_record(call, object, at);
    } else if (is_at_line(call, at)) {
        lines_record(object, at);
    }
    const struct repl_lines *body = repl_commands_of(call->repl, at->number);
    cJSON *lines = out_list(object, "commands");
    for (size_t i = 0; body && i < body->count; i++) {
        out_push_text(lines, body->line[i]);
    }
}

static void show_breakpoint(struct command_call *call, const struct gd_breakpoint *at)
{
    out_printf(call->out, "%s %d at %s\n", at->temporary ? "Temporary breakpoint" : "Breakpoint",
               at->number, breakpoint_place(call, at));
    breakpoint_record(call, out_record(call->out, "breakpoint"), at);
}

/* The word "if" begins here. */
static bool is_if(const char *text)
{
    return strncmp(text, "if", 2) == 0 && (text[2] == ' ' || text[2] == '\0');
}

static bool has_if(const char *line)
{
    bool found = is_if(line);
    for (const char *at = line; !found && (at = strchr(at, ' ')); at++) {
        found = is_if(at + 1);
    }
    return found;
}

/* Splits "WHERE if EXPR". Both may be quoted; without WHERE, "on WHERE if EXPR" is parsed. */
static int parse_condition(struct command_call *call, struct watch_args *ret, struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    size_t added = is_if(call->line) ? 0 : strlen("on ");
    int rc = gd_buf_printf(&text, "%s%s", added > 0 ? "on " : "", call->line);
    if (rc == GD_OK) {
        size_t column = call->line_at > added ? call->line_at - added : 0;
        rc = watch_args_parse_edit(call->arena, gd_buf_text(&text), column, NULL, ret, err);
    }
    if (rc != GD_OK && err->offset >= added) {
        err->offset -= added;
    }
    gd_buf_deinit(&text);
    return rc;
}

/* An expression without a statistic of the tensor is about the training: use it as the guard. */
static int split_condition(const char *text, struct gd_watch_spec *ret, struct gd_err *err)
{
    struct gd_expr *expression = NULL;
    int rc = gd_expr_parse(text, &expression, err);
    if (rc != GD_OK) {
        return rc;
    }
    bool of_tensor = gd_expr_has_statistic(expression);
    gd_expr_destroy(expression);
    ret->expression = of_tensor ? text : "count >= 0";
    ret->guard = of_tensor ? NULL : text;
    return GD_OK;
}

/* "WHERE", "WHERE if EXPR" or "if EXPR" of a line; *ret: it is one. */
static int break_line(struct command_call *call, bool temporary, bool *ret, struct gd_err *err)
{
    const char *text = call->line, *guard = "";
    const char *at = is_if(text) ? text : strstr(text, " if ");
    if (at) {
        size_t length = (size_t)(at - text);
        guard = watch_args_unquote(call->arena, at + strspn(at, " ") + strlen("if"));
        text = gd_arena_strndup(call->arena, text, length);
    }
    text = text ? watch_args_unquote(call->arena, text) : NULL;
    if (!text || !guard) {
        return gd_fail_nomem(err);
    }
    const char *where = NULL;
    struct gd_breakpoint *set = NULL;
    int rc = lines_place_of(call, text, true, &where, err);
    if (rc != GD_OK) {
        return rc;
    }
    *ret = where != NULL;
    rc = where ? lines_break(call, where, temporary ? LINES_ONCE : LINES_STAYS, guard, &set, err)
               : GD_OK;
    if (rc == GD_OK && set) {
        show_breakpoint(call, set);
    }
    return rc;
}

static int find_current_node(struct command_call *call, const char **ret, struct gd_err *err)
{
    const struct gd_session *session = call->debugger->current;
    if (!session || session->current == GD_NO_NODE) {
        return gd_fail(err, GD_EUSAGE, "%s: no node is selected: name one", call->command->name);
    }
    *ret = gd_graph_name(session->graph, session->current);
    return GD_OK;
}

/* If the line has an `if`, sets the watchpoint that it means, which checks the node right after it
 * was executed, and sets *ret; otherwise does nothing. */
static int break_if(struct command_call *call, bool temporary, bool *ret, struct gd_err *err)
{
    struct watch_args args;
    struct gd_watchpoint *watch = NULL;
    *ret = has_if(call->line);
    int rc = *ret ? parse_condition(call, &args, err) : GD_OK;
    *ret = *ret && (rc != GD_OK || args.guard); /* may be quoted */
    if (rc != GD_OK || !*ret) {
        return rc;
    }
    struct gd_watch_spec spec = {.where = args.where,
                                 .when = GD_WHEN_EXACT,
                                 .action = GD_WATCH_STOP,
                                 .temporary = temporary};
    rc = args.where ? GD_OK : find_current_node(call, &spec.where, err);
    const char *tensor = NULL, *guard = args.guard;
    rc = rc == GD_OK ? figures_take(call, args.guard, &guard, &tensor, err) : rc;
    if (rc == GD_OK && tensor && !figures_same_node(call, tensor, spec.where)) {
        rc = gd_fail(err, GD_EINVAL,
                     "a condition at %.100s is of its own output (max > 1) and of metrics, not of "
                     "%.100s: use \"watch %.100s on %.100s\"",
                     out_safe(call, spec.where), out_safe(call, tensor), out_safe(call, guard),
                     out_safe(call, tensor));
    }
    rc = rc == GD_OK ? split_condition(guard, &spec, err) : rc;
    rc = rc == GD_OK ? gd_watchpoint_add(call->debugger, &spec, &watch, err) : rc;
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

static int run_break(struct command_call *call, struct gd_err *err)
{
    bool temporary = call->command->variant == ONCE;
    const char *where = watch_args_unquote(call->arena, call->line);
    struct gd_breakpoint *at = NULL;
    bool has_condition = false, at_line = false;
    int rc = break_line(call, temporary, &at_line, err);
    rc = rc != GD_OK || at_line ? rc : break_if(call, temporary, &has_condition, err);

    if (rc != GD_OK || at_line || has_condition) {
        return rc;
    }
    if (!where) {
        return gd_fail_nomem(err);
    }
    rc = where[0] != '\0' ? GD_OK : find_current_node(call, &where, err);
    rc = rc != GD_OK ? rc : nodes_must_run_any(call, where, err);
    rc = rc != GD_OK ? rc : gd_debugger_break(call->debugger, where, temporary, &at, err);
    if (rc != GD_OK) {
        return rc;
    }
    int number = at->number;
    if (!at->matched && call->session && gd_session_is_live(call->session) &&
        !repl_confirm(call, "No node matches %s yet. Make the breakpoint pending until one does?",
                      out_safe(call, where))) {
        gd_debugger_delete_breakpoint(call->debugger, number, NULL);
        return GD_OK;
    }
    at = gd_debugger_breakpoint(call->debugger, number);
    if (at) {
        show_breakpoint(call, at);
    }
    return GD_OK;
}

const struct command cmd_break = {
    .name = "break",
    .aliases = "b br bre brea",
    .group = "breakpoints",
    .usage = "break [NODE | MODULE | CLASS | SELECTOR | FILE:LINE | LINE | FUNCTION] [if EXPR]",
    .summary = "Stop the training after a node has executed, or before a line",
    .help =
        "A module stops at its first operator, a class of modules at the first one of each;\n"
        "MODULE/ is each of its operators. A selector stops at each node that it covers; the\n"
        "default is the current node. A name\n"
        "that no node has yet is kept until the graph contains it. If a name could be that of\n"
        "several nodes, see \"help selectors\".\n"
        "With \"if\", stop only when the expression is true of the node's output; this sets a\n"
        "watchpoint (see \"help conditions\" for expressions).\n"
        "\n"
        "FILE:LINE stops before the line is executed, on any line that the training thread of a\n"
        "Python program runs; LINE is in the selected frame's file, and FUNCTION, Net.forward or\n"
        "FILE:FUNCTION is the first line of a function. Its condition uses metrics and step. A\n"
        "line without code means the next one that has some. Where the program is not Python,\n"
        "stop at the nodes that were made there. A breakpoint whose source or node is not loaded\n"
        "yet asks whether to wait for it; with --batch it waits, and the exit status is 1 if it\n"
        "never came.",
    .examples = "break model/block0/attn/linear\n"
                "break type:softmax\n"
                "break /layer_norm.*/\n"
                "break type:softmax if max > 0.99 && step > 100\n"
                "break train.py:42 if step == 20",
    .args = {ARG_SELECTOR},
    .flags = CMD_RAW | CMD_METRICS,
    .run = run_break,
};

const struct command cmd_tbreak = {
    .name = "tbreak",
    .aliases = "tb tbr",
    .group = "breakpoints",
    .usage = "tbreak [NODE | SELECTOR | FILE:LINE | LINE | FUNCTION] [if EXPR]",
    .summary = "Stop once after a node has executed, or before a line",
    .help = "Like break, but the breakpoint is deleted when it stops the training.",
    .examples = "tbreak type:gelu",
    .args = {ARG_SELECTOR},
    .flags = CMD_RAW | CMD_METRICS,
    .variant = ONCE,
    .run = run_break,
};

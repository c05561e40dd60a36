// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: dprintf */
#include "repl/commands/breakpoints/dprintf.h"

#include <stdlib.h>
#include <string.h>

#include "engine/statistic.h"
#include "engine/watch/numbers.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/breakpoints/dprintf_text.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch_args.h"
#include "repl/values/evaluate.h"
#include "repl/values/lines.h"
#include "repl/values/nodes.h"

/* Whether an argument can only be Python: no name of a node, metric or statistic looks like it. */
static bool is_python(const char *text)
{
    const char *open = strpbrk(text, "([");

    return strpbrk(text, "'\"") || strstr(text, "](") || strstr(text, ").") ||
           (open && memchr(text, '.', (size_t)(open - text)) && *open == '(');
}

/* Whether it is a name that is none of gradb's: at a line, a variable. */
static bool is_variable(struct command_call *call, const char *text)
{
    struct gd_numbers numbers = {.session = call->session, .step = gd_session_step(call->session)};
    gd_node_id node;
    double number;
    char *end;

    strtod(text, &end);
    return *end != '\0' && !strchr(text, ':') && gd_statistic_find(text, NULL) == GD_STAT_NONE &&
           !gd_numbers_get(&numbers, text, &number) &&
           gd_graph_find(call->session->graph, text, &node, NULL) != GD_OK;
}

/* Asks now, for nobody is asked while the training runs. */
static void allow_python(struct command_call *call, const struct dprintf_text *text, bool at_line)
{
    struct gd_err why;

    call->session = call->debugger->current;
    for (int i = 0; i < text->arg_count && evaluate_is_python(call->session); i++) {
        const char *arg = text->arg[i].text;
        if (!text->arg[i].is_string && (is_python(arg) || (at_line && is_variable(call, arg)))) {
            if (evaluate_may(call, &why) != GD_OK) {
                out_printf(call->out, "Its Python arguments have no value: %s\n", why.text);
            }
            return;
        }
    }
}

/* A line has no output that could be printed by default. */
static int check_line(struct command_call *call, const char *print, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    bool has_nodes = session && gd_session_is_live(session) && !gd_session_has_lines(session);

    return print[0] != '\0' || has_nodes
               ? GD_OK
               : gd_fail(err, GD_EUSAGE,
                         "dprintf: a line has no output: say what to print, as in dprintf "
                         "nano.py:38,\"step %%d\\n\",step");
}

static int run_dprintf(struct command_call *call, struct gd_err *err)
{
    const char *where, *print, *guard;
    struct dprintf_text text;
    struct gd_breakpoint *at = NULL;
    int rc = dprintf_split(call->arena, call->line, &where, &print, &guard, err);

    where = rc == GD_OK ? watch_args_unquote(call->arena, where) : NULL;
    if (rc == GD_OK && !where) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK && where[0] == '\0') {
        rc = gd_fail(err, GD_EUSAGE, "dprintf: name a node or a selector");
    }
    const char *place = rc == GD_OK ? lines_place(call, where) : NULL;
    rc = rc != GD_OK ? rc : dprintf_parse(call->arena, print, &text, err);
    rc = rc != GD_OK ? rc
         : place     ? check_line(call, print, err)
                     : nodes_must_run_any(call, where, err);
    rc = rc != GD_OK ? rc : dprintf_watch_events(call->repl, err);
    where = place ? place : where;
    rc = rc != GD_OK
             ? rc
             : gd_debugger_dprintf(call->debugger, where, print, place ? "" : guard, &at, err);
    rc = rc == GD_OK && place ? lines_set_guard(call, at, guard ? guard : "", err) : rc;
    if (rc != GD_OK && at) {
        gd_debugger_delete_breakpoint(call->debugger, at->number, NULL);
    }
    rc = rc == GD_OK ? lines_settle(call, &at, err) : rc;
    if (rc != GD_OK || !at) {
        return rc;
    }
    out_printf(call->out, "Dprintf %d at %s\n", at->number, breakpoint_place(call, at));
    allow_python(call, &text, place != NULL);
    breakpoint_record(call, out_record(call->out, "breakpoint"), at);
    return GD_OK;
}

const struct command cmd_dprintf = {
    .name = "dprintf",
    .group = "breakpoints",
    .usage = "dprintf NODE|SELECTOR|FILE:LINE[,\"FORMAT\"][,ARG]... [if EXPR]",
    .summary = "Print text and tensors whenever a node has run, or before a line, without stopping",
    .help =
        "FORMAT is that of C's printf, with one argument for each conversion. %s prints a tensor\n"
        "as MindSpore's Print does; %g and %d take numbers, also of a tensor with one element.\n"
        "Without FORMAT, or with a string that has no conversion, each string, number and tensor\n"
        "is printed on lines of its own, as Print does. Without an argument, it is the node's\n"
        "output. An argument is\n"
        "\n"
        "  NODE[:SLOT][SLICE]  a tensor, as for print; \".\" is the node that has run\n"
        "  in0[SLICE]          its first input, as far as known; in1 the second, ...\n"
        "  mean(TENSOR)        a statistic of a tensor: mean, std, min, max, norm, nan, ...\n"
        "  mean                that of the node's output\n"
        "  loss, lr, step      a metric as last reported; prev(loss) is that of the previous step\n"
        "  \"TEXT\", 1.5         a string, a number\n"
        "  opt.param_groups[0]['lr'], h.std(), ...\n"
        "                      Python in the frame that called the operator, as for `print`\n"
        "\n"
        "The training waits until the values are read. \"if\", condition, ignore, enable, disable\n"
        "and delete work as for a breakpoint. A name that does not exist yet is looked up when "
        "the\n"
        "node has run. At FILE:LINE (see break) there is no output, so name the nodes. A name "
        "there is\n"
        "first the variable of the frame, except `step`, which is gradb's.",
    .examples = "dprintf conv1,\"step %d: mean %g, loss %g\\n\",step,mean,loss\n"
                "dprintf conv1,\"weight and output:\",conv1.weight[0, :2],.\n"
                "dprintf type:softmax if max > 0.99\n"
                "dprintf train.py:42,\"step %d: loss %g\\n\",step,loss",
    .args = {ARG_DPRINTF},
    .flags = CMD_RAW | CMD_METRICS,
    .run = run_dprintf,
};

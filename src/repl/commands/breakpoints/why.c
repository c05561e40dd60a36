// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: why */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/why/why.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/breakpoints/oom.h"
#include "repl/commands/breakpoints/why_find.h"
#include "repl/commands/breakpoints/why_question.h"
#include "repl/commands/breakpoints/why_snapshot.h"
#include "repl/core/await.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"
#include "repl/diagnose/report.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/stacks.h"
#include "repl/values/value.h"
#include "repl/values/why.h"

struct why_answer {
    struct await await;
    int code;
    struct gd_err err;
    struct gd_why why; /* its nodes are a copy */
};

static void on_answer(void *ctx, const struct gd_why *why, const struct gd_err *err)
{
    struct why_answer *answer = ctx;
    if (!await_take(answer)) {
        return;
    }
    if (!why) {
        answer->err = *err;
        answer->code = err->code != GD_OK ? err->code : GD_EIO;
        return;
    }
    answer->why = *why;
    answer->why.nodes = malloc((why->count + 1) * sizeof(*why->nodes));
    if (!answer->why.nodes) {
        answer->code = gd_fail_nomem(&answer->err);
        return;
    }
    if (why->count > 0) {
        memcpy(answer->why.nodes, why->nodes, why->count * sizeof(*why->nodes));
    }
}

/* The caller frees *ret with answer_free. */
static int ask_origin(struct command_call *call, gd_node_id node, uint32_t slot, enum gd_bad bad,
                      const struct gd_why_facts *facts, struct why_answer **ret, struct gd_err *err)
{
    struct why_answer *answer = calloc(1, sizeof(*answer));
    if (!answer) {
        return gd_fail_nomem(err);
    }
    int rc = gd_why_ask(call->session, node, slot, bad, facts, on_answer, answer, err);
    if (rc != GD_OK) {
        free(answer);
        return rc;
    }
    rc = repl_await(call->repl, answer, -1);
    if (rc != GD_OK) {
        return gd_fail(err, rc, "interrupted while searching the graph");
    }
    if (answer->code != GD_OK) {
        rc = answer->code;
        *err = answer->err;
        err->code = rc;
        free(answer->why.nodes);
        free(answer);
        return rc;
    }
    *ret = answer;
    return GD_OK;
}

static void answer_free(struct why_answer *answer)
{
    free(answer->why.nodes);
    free(answer);
}

/* The origin's input in the tree: its value is of the step in question. */
static const struct gd_why_node *input_in_tree(const struct gd_why *why, gd_node_id node,
                                               uint32_t slot)
{
    const struct gd_why_node *found = NULL;
    for (size_t i = 0; i < why->count; i++) {
        if (why->nodes[i].node == node && why->nodes[i].slot == slot &&
            (!found || why->nodes[i].has_stats)) {
            found = &why->nodes[i];
        }
    }
    return found;
}

static void show_input(struct command_call *call, const struct gd_why *why,
                       const struct gd_edge *edge, cJSON *list)
{
    const struct gd_why_node *seen = input_in_tree(why, edge->node, edge->slot);
    const struct gd_stats *stats = seen && seen->has_stats ? &seen->stats : NULL;
    struct gd_node_info info;
    struct gd_output output = {0};
    if (edge->control || !gd_graph_node(call->session->graph, edge->node, &info)) {
        return;
    }
    gd_graph_output(call->session->graph, edge->node, edge->slot, &output);
    cJSON *item = out_push(list);
    inspect_add_node(call, item, edge->node);
    out_set(item, OUT_INT("slot", edge->slot),
            OUT_IF(stats, OUT_JSON("stats", value_stats_record(stats))));
    out_say(call->out, item, "  reads {node}:{slot}\n        {values}[{?noted}[, {note}]]\n",
            OUT_TEXT("values", why_figures(call, output.dtype, &output.shape, stats)),
            OUT_BOOL("noted", !stats && seen), OUT_TEXT("note", seen ? seen->note : ""));
}

static void show_origin(struct command_call *call, const struct gd_why *why, cJSON *record)
{
    struct gd_node_info info;
    struct stack_places places;
    uint32_t own = 0;
    if (why->origin == GD_NO_NODE || !gd_graph_node(call->session->graph, why->origin, &info)) {
        return;
    }
    cJSON *origin = out_object(record, "origin");
    inspect_add_node(call, origin, why->origin);
    out_set(origin, OUT_INT("slot", why->origin_slot));
    if (stack_places(call, why->origin, &places, NULL) == GD_OK && stack_own_frame(&places, &own)) {
        stack_show_frame(call, origin, own, &places.frame[places.place[own]]);
    }
    cJSON *list = out_list(origin, "inputs");
    for (uint32_t i = 0; i < info.input_count && i < 8; i++) {
        show_input(call, why, &info.inputs[i], list);
    }
}

static void record_node(struct command_call *call, const struct gd_why_node *node, cJSON *list)
{
    cJSON *item = out_push(list);
    inspect_add_node(call, item, node->node);
    out_set(item, OUT_INT("slot", node->slot), OUT_INT("depth", node->depth),
            OUT_TEXT("verdict", node->verdict == GD_WHY_BAD    ? "bad"
                                : node->verdict == GD_WHY_GOOD ? "good"
                                                               : "unknown"),
            OUT_IF(node->origin, OUT_BOOL("origin", true)),
            OUT_IF(node->shown_above, OUT_BOOL("seen", true)), OUT_TEXT("note", node->note),
            OUT_IF(node->value_step >= 0, OUT_INT("step", node->value_step)));
    why_add_hits(call, item, node->node, node->slot);
    out_set(item, OUT_IF(node->has_stats, OUT_JSON("stats", value_stats_record(&node->stats))));
}

static void record_why(struct command_call *call, const struct why_question *q,
                       const struct gd_why *why)
{
    static const char *const words[] = {"nonfinite", "large", "zero", "small", "failed"};
    cJSON *record = out_record(call->out, "why");
    inspect_add_node(call, record, q->node);
    out_set(record, OUT_INT("slot", q->slot), OUT_INT("step", call->session->stop.step),
            OUT_IF(q->facts.followed > 0, OUT_INT("graph_step", q->facts.followed)),
            OUT_TEXT("looked_for", words[why->bad]), OUT_TEXT("rule", why->rule),
            OUT_TEXT("text", why->text), OUT_IF(why->since >= 0, OUT_INT("since", why->since)),
            OUT_BOOL("cut", why->cut));
    if (!out_is_text(call->out)) { /* it comes after the tree */
        show_origin(call, why, record);
    }
    struct inspect_checked checked = {.done = 0};
    cJSON *list = out_list(record, "tree");
    for (size_t i = 0; i < why->count; i++) {
        record_node(call, &why->nodes[i], list);
        if (why->nodes[i].has_stats) {
            checked.done++;
        } else {
            inspect_not_checked(call, &checked, why->nodes[i].note);
        }
    }
    inspect_add_checked(record, &checked); /* how much of the tree the answer is based on */
}

/* A program may run other operators in steps that are not observed. */
static void show_graph_age(struct command_call *call, int64_t followed, const struct gd_why *why)
{
    long long step = (long long)call->session->stop.step;

    if (followed > 0 && followed < step && why->count > 1) {
        out_printf(
            call->out,
            "The graph is that of step %lld: the operators of step %lld were not recorded.\n",
            (long long)followed, step);
    }
}

/* Where a step is over, most values that led to the loss are gone, and the tree would say nothing.
 */
static bool is_gone(const struct command_call *call, const struct gd_why *why)
{
    const struct gd_session *session = call->session;
    size_t operators = 0, gone = 0;

    for (size_t i = 0; i < why->count; i++) {
        bool runs = gd_graph_order(session->graph, why->nodes[i].node) != GD_NO_ORDER;
        operators += runs;
        gone += runs && !why->nodes[i].has_stats;
    }
    return gd_session_is_live(session) && session->stop.at_step_end && why->origin == GD_NO_NODE &&
           why->rule[0] == '\0' && gone > operators / 2;
}

/* Goes where the values of the next step are there, if the user wants that. */
static int offer_next_step(struct command_call *call, const struct why_question *q)
{
    const char *name = gd_graph_name(call->session->graph, q->node);

    out_printf(call->out, "`why%s%s -a` lists them.\n", call->argc > 0 ? " " : "",
               out_safe(call, inspect_join(call, 0, call->argc)));
    if (!repl_can_ask(call->repl) || nodes_must_run(call, q->node, NULL) != GD_OK ||
        !repl_confirm(call, "Run to %s in the next step, and ask there?", name)) {
        return GD_OK;
    }
    const char *run = inspect_printf(call, "run-to %s", name),
               *why = inspect_printf(call, "why %s", name);
    int rc = repl_run_line(call->repl, run, LINE_SCRIPT);
    return rc == GD_OK ? repl_run_line(call->repl, why, LINE_SCRIPT) : rc;
}

static int show_answer(struct command_call *call, const struct why_question *q,
                       const struct gd_why *why, bool all, struct gd_err *err)
{
    if (out_is_json(call->out)) {
        record_why(call, q, why);
    }
    if (!out_is_text(call->out)) {
        return GD_OK;
    }
    bool gone = !all && is_gone(call, why);
    struct gd_why shown = *why;
    shown.count = gone ? 1 : why->count;
    int rc = why_show_tree(call, &shown, all, err);
    if (rc != GD_OK) {
        return rc;
    }
    out_printf(call->out, "\n");
    int width = out_width(call->out) > 40 ? out_width(call->out) : 40;
    watch_fold_to(call, out_safe(call, why->text), 0, width - 2);
    show_graph_age(call, q->facts.followed, why);
    show_origin(call, why, out_record(call->out, "why"));
    return gone ? offer_next_step(call, q) : GD_OK;
}

/* The question in call->argv, and its answer; the caller frees it with answer_free. */
static int ask_why(struct command_call *call, struct why_question *q, struct why_answer **answer,
                   struct gd_err *err)
{
    int rc = why_question_parse(call, q, err);
    rc = rc != GD_OK ? rc : why_ask_facts(call, q->node, &q->facts, err);
    if (rc == GD_OK && q->scalar) { /* the most recent one */
        gd_node_id made = gd_why_loss(call->session->graph, &q->facts);
        q->node = made != GD_NO_NODE ? made : q->node;
    }
    q->facts.told = q->scalar && !isfinite(q->scalar->value);
    if (q->scalar) {
        snprintf(q->facts.scalar, sizeof(q->facts.scalar), "%s", q->scalar->name);
    }
    if (rc == GD_OK && q->apart && q->facts.of_parameter) {
        rc = why_ask_ranks(call, &q->facts, err);
    }
    rc = rc != GD_OK ? rc : why_choose_slot(call, q, err);
    rc = rc != GD_OK ? rc : why_choose_bad(call, q, err);
    rc = rc != GD_OK ? rc : why_take_gradient(call, q, err);
    return rc != GD_OK ? rc : ask_origin(call, q->node, q->slot, q->bad, &q->facts, answer, err);
}

static void add_origin(struct command_call *call, const struct gd_why *why, cJSON *ret)
{
    struct stack_places places;
    uint32_t own = 0;
    const char *name = gd_graph_name(call->session->graph, why->origin);

    if (why->origin == GD_NO_NODE || !name) {
        return;
    }
    out_set(ret, OUT_TEXT("node", name));
    if (stack_places(call, why->origin, &places, NULL) == GD_OK && stack_own_frame(&places, &own)) {
        const struct gd_frame *frame = &places.frame[places.place[own]];
        out_set(ret, OUT_TEXT("file", frame->file), OUT_INT("line", frame->line));
    }
}

int why_find(struct command_call *call, cJSON *ret, struct gd_err *err)
{
    struct why_question q = {.node = GD_NO_NODE};
    struct why_answer *answer = NULL;
    int rc = ask_why(call, &q, &answer, err);

    if (rc == GD_OK) {
        const struct gd_why *why = &answer->why;
        out_set(ret, OUT_TEXT("rule", why->rule), OUT_TEXT("text", why->text),
                OUT_IF(why->bad == GD_BAD_NONFINITE, OUT_BOOL("nonfinite", true)),
                OUT_INT("step", call->session->stop.step),
                OUT_IF(why->since >= 0, OUT_INT("since", why->since)));
        add_origin(call, why, ret);
        answer_free(answer);
    }
    return rc;
}

/* The rules of `diagnose`, about the loss. Where the process is not observed yet, and nothing was
 * found otherwise, it is from now on. */
static void add_findings(struct command_call *call, bool found)
{
    struct gd_err ignored;
    const char *reply = NULL;
    cJSON *findings = diagnose_so_far(call);

    if (findings) {
        if (cJSON_GetArraySize(findings) == 0) {
            out_printf(call->out, "The rules of `diagnose` find nothing so far.\n");
        }
        diagnose_say_findings(call, findings);
        out_set(out_record(call->out, "why"), OUT_JSON("findings", findings));
        return;
    }
    if (!found && !call->repl->read_only && gd_session_is_live(call->session) &&
        call->session->target->capabilities & GD_CAN_COMMAND &&
        everyone_command(call, "observe", "on", &reply, &ignored) == GD_OK) {
        out_printf(call->out,
                   "From now on the order of calls, updates, data and operators are "
                   "observed: run some steps, then ask again. `diagnose off` ends it.\n");
    }
}

static int run_why(struct command_call *call, struct gd_err *err)
{
    struct why_question q = {.node = GD_NO_NODE};
    struct why_answer *answer = NULL;
    bool all = inspect_take_flag(call, "-a"), done = false;
    int rc = call->argc == 0 ? why_oom(call, &done, err) : GD_OK;
    if (rc == GD_OK && call->argc == 0 && !done) {
        rc = why_snapshot(call, &done, err);
    }
    if (rc != GD_OK || done) {
        return rc;
    }
    rc = ask_why(call, &q, &answer, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = show_answer(call, &q, &answer->why, all, err);
    bool found = answer->why.rule[0] != '\0';
    answer_free(answer);
    if (rc == GD_OK && q.scalar && strcasestr(q.scalar->name, "loss")) {
        add_findings(call, found);
    }
    return rc;
}

const struct command cmd_why = {
    .name = "why",
    .group = "breakpoints",
    .usage = "why [TENSOR | hit N] [-a]",
    .summary = "Find where a bad value came from",
    .help =
        "Search upstream from the tensor, through its inputs, from gradients to the forward\n"
        "pass and from weights to the optimizer, for the first node in execution order whose\n"
        "output is bad while its inputs are good, and say what happened there.\n"
        "Without an argument, start at the hit of this stop, else at the current node, else at\n"
        "the loss. Of several hits, start at the strongest: a non-finite one, then the first in\n"
        "execution order, then the largest statistic. `hit N` is hit N of `info hits`. What is\n"
        "searched for (NaN and infinity, zeros, large values, where a gradient became small)\n"
        "follows from the condition that fired on the tensor at this stop, else from the value.\n"
        "For a weight that does not change, say why it is not trained; for an operator that\n"
        "failed, show its inputs (PyTorch). For the loss, say whether it grew over the steps\n"
        "and which parameters receive no gradient.\n"
        "\n"
        "After an allocation that failed (\"catch oom\"), and in a memory snapshot: what was "
        "asked\n"
        "for, what holds the rest; of a training also the batch that would fit by the peaks of\n"
        "earlier steps.\n"
        "\n"
        "Each line has a verdict: BAD, ok, or ? when the value is unknown: not computed yet in\n"
        "this step, not kept, or nothing to compare it with. -a shows every node that was\n"
        "checked, not only the path to the origin. The graph of a PyTorch program is that of\n"
        "the last step in which something was watched, caught or stopped; if that is an earlier\n"
        "step, a line says so.",
    .examples = "why\n"
                "why loss\n"
                "why model/loss/nll_loss -a",
    .args = {ARG_TENSOR},
    .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_REPEATS | CMD_SHOWS,
    .run = run_why,
};

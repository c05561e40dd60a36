// SPDX-License-Identifier: GPL-3.0-or-later
/* lockstep: the report. */
#include "repl/compare/lockstep_impl.h"

#include <string.h>

#include "repl/compare/compare_rows.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

static const char *node_text(struct lockstep *l, const struct gd_session *session, gd_node_id node)
{
    return node == GD_NO_NODE ? "the end of the step"
                              : out_safe(l->call, gd_graph_name(session->graph, node));
}

/* Nodes to be compared that the other side lacks. */
static uint64_t alone_in(const struct lockstep *l, const struct gd_session *session)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(session->graph, &count);
    bool is_b = session == l->b;
    uint64_t alone = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;
        gd_node_id partner =
            is_b ? lockstep_partner_of_b(l, order[i]) : lockstep_partner_of_a(l, order[i]);

        alone += partner == GD_NO_NODE && (is_b ? lockstep_is_chosen(l, order[i]) : !l->narrow) &&
                 gd_graph_node(session->graph, order[i], &info) &&
                 info.output_count > info.input_slots && info.kind != GD_NODE_CONSTANT;
    }
    return alone;
}

static void add_record(struct lockstep *l, cJSON *record)
{
    static const char *const names[] = {"", "parted", "order", "steps", "over", "lost", "stopped"};
    const struct gd_difference *d = &l->difference;

    out_set(record, OUT_TEXT("ended", names[l->ended]), OUT_INT("a", l->a->number),
            OUT_INT("b", l->b->number), OUT_INT("step", l->b->stop.step),
            OUT_INT("step_a", l->a->stop.step), OUT_INT("steps", l->steps_done),
            OUT_INT("nodes", l->compared), OUT_INT("tensors", l->checked.done),
            OUT_INT("left_out", l->checked.not_done),
            OUT_IF(l->checked.why, OUT_TEXT("why_left_out", l->checked.why)),
            OUT_INT("unmatched_a", alone_in(l, l->a)), OUT_INT("unmatched_b", alone_in(l, l->b)));
    if (l->ended == LOCKSTEP_PARTED || l->ended == LOCKSTEP_ORDER) {
        out_set(record, OUT_TEXT("node", node_text(l, l->b, l->node_b)),
                OUT_TEXT("node_a", node_text(l, l->a, l->node_a)));
    }
    if (l->ended == LOCKSTEP_PARTED) {
        out_set(record, OUT_INT("slot", l->slot), OUT_TEXT("verdict", gd_verdict_name(d->verdict)));
        compare_difference_add(record, d);
    }
    out_set(record,
            OUT_IF(l->good != GD_NO_NODE, OUT_TEXT("last_good", node_text(l, l->b, l->good))));
}

static void show_end(struct lockstep *l, const cJSON *record)
{
    static const char *const sentences[] = {
        [LOCKSTEP_GOES_ON] = "[{?tensors}No divergence.\n]",
        [LOCKSTEP_PARTED] = "{label_a} and {label_b} diverge at {node}:{slot}, step {step}\n"
                            "[{!same}  matches {node_a} of {label_a}\n]  {verdict}",
        [LOCKSTEP_ORDER] = "{label_a} and {label_b} run different nodes in step {step}: {node_a}, "
                           "and {node}\n",
        [LOCKSTEP_STEPS] = "[{?tensors}No divergence.\n]",
        [LOCKSTEP_OVER] = "{culprit} has ended[{?tensors}: no divergence up to then]\n",
        [LOCKSTEP_LOST] = "{culprit} was lost ({why})[{?tensors}: no divergence up to then]\n",
        [LOCKSTEP_STOPPED] = "{culprit} stopped for another reason ({reason})[{?tensors}: no "
                             "divergence up to then]\n",
    };
    struct repl_out *out = l->call->out;
    const struct gd_session *culprit = l->culprit ? l->culprit : l->b;

    out_say(
        out, record, sentences[l->ended], OUT_TEXT("label_a", l->label_a),
        OUT_TEXT("label_b", l->label_b),
        OUT_BOOL("same", strcmp(node_text(l, l->a, l->node_a), node_text(l, l->b, l->node_b)) == 0),
        OUT_TEXT("culprit", culprit == l->a ? l->label_a : l->label_b),
        OUT_TEXT("why", culprit->end_text),
        OUT_TEXT("reason", gd_stop_reason_name(culprit->stop.reason)));
    if (l->ended == LOCKSTEP_PARTED) {
        compare_difference_show(l->call, &l->difference);
        out_say(out, record, "  last that agreed: [{last_good}][{!last_good}none]\n");
    }
    out_say(
        out, record,
        "[{?tensors}Agreed in {steps|step}; {nodes|node}, ]{checked}[{?alone}; without a "
        "counterpart: {unmatched_a|node} of {label_a}, {unmatched_b:n} of {label_b}]\n",
        OUT_TEXT("checked", inspect_checked_text(l->call, &l->checked, "tensor", "compared")),
        OUT_BOOL("alone",
                 out_number_of(record, "unmatched_a") + out_number_of(record, "unmatched_b") > 0),
        OUT_TEXT("label_a", l->label_a), OUT_TEXT("label_b", l->label_b));
}

/* Selects the node where they diverged, for commands without an argument. */
int lockstep_show(struct lockstep *l, struct gd_err *err)
{
    bool differ = l->ended == LOCKSTEP_PARTED || l->ended == LOCKSTEP_ORDER;

    if (differ) {
        repl_add_status(l->call->repl, STATUS_DIFFERS);
        l->a->current = l->node_a != GD_NO_NODE ? l->node_a : l->a->current;
        l->b->current = l->node_b != GD_NO_NODE ? l->node_b : l->b->current;
    }
    cJSON *record = out_record(l->call->out, "lockstep");
    add_record(l, record);
    show_end(l, record);
    if (l->ended == LOCKSTEP_STOPPED) { /* this stop is reported after all */
        out_flush(l->call->out);
        repl_note_stop(l->call->repl, l->culprit);
        repl_report_stop(l->call->repl, l->culprit);
    }
    if (differ || l->checked.done > 0) {
        return GD_OK;
    }
    return l->checked.not_done > 0 ? inspect_need_checked(&l->checked, "tensor", "compared", err)
                                   : gd_fail(err, GD_ENODATA,
                                             "no tensor was compared: no chosen node of %s matches "
                                             "one of %s; map them with --map FILE",
                                             l->label_a, l->label_b);
}

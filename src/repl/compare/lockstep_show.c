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

static void show_parted(struct lockstep *l)
{
    struct command_call *call = l->call;
    const struct gd_difference *d = &l->difference;
    const char *a = gd_graph_name(l->a->graph, l->node_a);
    const char *b = gd_graph_name(l->b->graph, l->node_b);

    out_printf(call->out, "%s and %s diverge at %s:%u, step %lld\n", l->label_a, l->label_b,
               out_safe(call, b), l->slot, (long long)l->b->stop.step);
    if (strcmp(a, b) != 0) {
        out_printf(call->out, "  matches %s of %s\n", out_safe(call, a), l->label_a);
    }
    out_printf(call->out, "  %s", gd_verdict_name(d->verdict));
    compare_difference_show(call, d);
    out_printf(call->out, "  last that agreed: %s\n",
               l->good == GD_NO_NODE ? "none" : node_text(l, l->b, l->good));
}

static const char *name_culprit(const struct lockstep *l)
{
    return l->culprit == l->a ? l->label_a : l->label_b;
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

static void show_counts(struct lockstep *l)
{
    struct command_call *call = l->call;
    uint64_t a = alone_in(l, l->a), b = alone_in(l, l->b);

    if (l->checked.done > 0) {
        out_printf(call->out, "Agreed in %s; %s, ",
                   inspect_plural(call, (uint64_t)l->steps_done, "step"),
                   inspect_plural(call, l->compared, "node"));
    }
    out_printf(call->out, "%s", inspect_checked_text(call, &l->checked, "tensor", "compared"));
    if (a + b > 0) {
        out_printf(call->out, "; without a counterpart: %s of %s, %s of %s",
                   inspect_plural(call, a, "node"), l->label_a, inspect_number(call, b),
                   l->label_b);
    }
    out_printf(call->out, "\n");
}

static void show_end(struct lockstep *l)
{
    struct command_call *call = l->call;
    const char *until = l->checked.done > 0 ? ": no divergence up to then" : "";

    switch (l->ended) {
    case LOCKSTEP_PARTED: show_parted(l); break;
    case LOCKSTEP_ORDER:
        out_printf(call->out, "%s and %s run different nodes in step %lld: %s, and %s\n",
                   l->label_a, l->label_b, (long long)l->b->stop.step,
                   node_text(l, l->a, l->node_a), node_text(l, l->b, l->node_b));
        break;
    case LOCKSTEP_STOPPED:
        out_printf(call->out, "%s stopped for another reason (%s)%s\n", name_culprit(l),
                   gd_stop_reason_name(l->culprit->stop.reason), until);
        break;
    case LOCKSTEP_OVER: out_printf(call->out, "%s has ended%s\n", name_culprit(l), until); break;
    case LOCKSTEP_LOST:
        out_printf(call->out, "%s was lost (%s)%s\n", name_culprit(l),
                   out_safe(call, l->culprit->end_text), until);
        break;
    default:
        if (l->checked.done > 0) {
            out_printf(call->out, "No divergence.\n");
        }
        break;
    }
    show_counts(l);
}

static void record_end(struct lockstep *l)
{
    static const char *const names[] = {"", "parted", "order", "steps", "over", "lost", "stopped"};
    struct command_call *call = l->call;
    const struct gd_difference *d = &l->difference;
    cJSON *object = out_record(call->out, "lockstep");

    out_set(object, OUT_TEXT("ended", names[l->ended]), OUT_INT("a", l->a->number),
            OUT_INT("b", l->b->number), OUT_INT("step", l->b->stop.step),
            OUT_INT("step_a", l->a->stop.step), OUT_INT("steps", l->steps_done),
            OUT_INT("nodes", l->compared), OUT_INT("tensors", l->checked.done),
            OUT_INT("left_out", l->checked.not_done),
            OUT_IF(l->checked.why, OUT_TEXT("why_left_out", l->checked.why)),
            OUT_INT("unmatched_a", alone_in(l, l->a)), OUT_INT("unmatched_b", alone_in(l, l->b)));
    if (l->ended == LOCKSTEP_PARTED || l->ended == LOCKSTEP_ORDER) {
        out_set(object, OUT_TEXT("node", node_text(l, l->b, l->node_b)),
                OUT_TEXT("node_a", node_text(l, l->a, l->node_a)));
    }
    if (l->ended == LOCKSTEP_PARTED) {
        out_set(object, OUT_INT("slot", l->slot), OUT_TEXT("verdict", gd_verdict_name(d->verdict)));
        compare_difference_add(object, d);
    }
    out_set(object,
            OUT_IF(l->good != GD_NO_NODE, OUT_TEXT("last_good", node_text(l, l->b, l->good))));
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
    if (out_is_json(l->call->out)) {
        record_end(l);
    } else {
        show_end(l);
    }
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

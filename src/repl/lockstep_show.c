// SPDX-License-Identifier: GPL-3.0-or-later
/* lockstep: what it says. */
#include "repl/lockstep_impl.h"

#include <string.h>

#include "repl/inspect.h"
#include "repl/repl_impl.h"

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

    out_printf(call->out, "%s and %s part at %s:%u, step %lld\n", l->label_a, l->label_b,
               out_safe(call, b), l->slot, (long long)l->b->stop.step);
    if (strcmp(a, b) != 0) {
        out_printf(call->out, "  it stands for %s of %s\n", out_safe(call, a), l->label_a);
    }
    out_printf(call->out, "  %s", gd_verdict_name(d->verdict));
    if (d->has_metrics) {
        out_printf(call->out, ", %.2f%% close (rtol=%g atol=%g), max |a-b| %s, relative l2 %s",
                   100 * gd_metrics_close(&d->metrics), d->tolerance.rtol, d->tolerance.atol,
                   inspect_double(call, d->metrics.max_abs),
                   inspect_double(call, d->metrics.rel_l2));
    }
    out_printf(call->out, "%s%s\n", d->note[0] ? "; " : "", out_safe(call, d->note));
    out_printf(call->out, "  last that agreed: %s\n",
               l->good == GD_NO_NODE ? "none" : node_text(l, l->b, l->good));
}

static const char *culprit(const struct lockstep *l)
{
    return l->culprit == l->a ? l->label_a : l->label_b;
}

static void show_end(struct lockstep *l)
{
    struct command_call *call = l->call;

    switch (l->ended) {
    case LOCKSTEP_PARTED: show_parted(l); break;
    case LOCKSTEP_ORDER:
        out_printf(call->out, "%s and %s run different nodes in step %lld: %s, and %s\n",
                   l->label_a, l->label_b, (long long)l->b->stop.step,
                   node_text(l, l->a, l->node_a), node_text(l, l->b, l->node_b));
        break;
    case LOCKSTEP_STOPPED:
        out_printf(call->out, "%s stopped by itself (%s): no divergence until then\n", culprit(l),
                   gd_stop_reason_name(l->culprit->stop.reason));
        break;
    case LOCKSTEP_OVER:
        out_printf(call->out, "%s is over: no divergence until then\n", culprit(l));
        break;
    case LOCKSTEP_LOST:
        out_printf(call->out, "%s broke off (%s): no divergence until then\n", culprit(l),
                   out_safe(call, l->culprit->end_text));
        break;
    default: out_printf(call->out, "No divergence.\n"); break;
    }
    out_printf(call->out, "Agreed in %s steps; %s nodes, %s tensors compared",
               inspect_number(call, (uint64_t)l->steps_done), inspect_number(call, l->compared),
               inspect_number(call, l->tensors));
    if (l->left_out > 0) {
        out_printf(call->out, "; %s were not to be had: %s", inspect_number(call, l->left_out),
                   out_safe(call, l->why_left_out));
    }
    out_printf(call->out, "\n");
}

static void record_end(struct lockstep *l)
{
    static const char *const names[] = {"", "parted", "order", "steps", "over", "lost", "stopped"};
    struct command_call *call = l->call;
    const struct gd_difference *d = &l->difference;
    cJSON *object = out_record(call->out, "lockstep");

    cJSON_AddStringToObject(object, "ended", names[l->ended]);
    cJSON_AddNumberToObject(object, "a", l->a->number);
    cJSON_AddNumberToObject(object, "b", l->b->number);
    cJSON_AddNumberToObject(object, "step", (double)l->b->stop.step);
    cJSON_AddNumberToObject(object, "step_a", (double)l->a->stop.step);
    inspect_add_count(object, "steps", (uint64_t)l->steps_done);
    inspect_add_count(object, "nodes", l->compared);
    inspect_add_count(object, "tensors", l->tensors);
    inspect_add_count(object, "left_out", l->left_out);
    if (l->ended == LOCKSTEP_PARTED || l->ended == LOCKSTEP_ORDER) {
        inspect_add_text(call, object, "node", node_text(l, l->b, l->node_b));
        inspect_add_text(call, object, "node_a", node_text(l, l->a, l->node_a));
    }
    if (l->ended == LOCKSTEP_PARTED) {
        cJSON_AddNumberToObject(object, "slot", l->slot);
        cJSON_AddStringToObject(object, "verdict", gd_verdict_name(d->verdict));
        if (d->has_metrics) {
            inspect_add_double(object, "close", gd_metrics_close(&d->metrics));
            inspect_add_double(object, "max_abs", d->metrics.max_abs);
            inspect_add_double(object, "rel_l2", d->metrics.rel_l2);
        }
    }
    if (l->good != GD_NO_NODE) {
        inspect_add_text(call, object, "last_good", node_text(l, l->b, l->good));
    }
}

/* Commands without an argument look at where they parted. */
void lockstep_show(struct lockstep *l)
{
    if (l->ended == LOCKSTEP_PARTED || l->ended == LOCKSTEP_ORDER) {
        compare_set_status(l->call->repl);
        l->a->current = l->node_a != GD_NO_NODE ? l->node_a : l->a->current;
        l->b->current = l->node_b != GD_NO_NODE ? l->node_b : l->b->current;
    }
    if (out_is_json(l->call->out)) {
        record_end(l);
    } else {
        show_end(l);
    }
    if (l->ended == LOCKSTEP_STOPPED) { /* that is news after all */
        out_flush(l->call->out);
        repl_note_stop(l->call->repl, l->culprit);
        repl_report_stop(l->call->repl, l->culprit);
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* lockstep: two trainings that run side by side, and are stopped where they part. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "repl/commands.h"
#include "repl/compare_files.h"
#include "repl/inspect.h"
#include "repl/repl_impl.h"
#include "repl/work.h"

#define CONNECT_SECONDS   60.0 /* that a session which is named may take to come */
#define INTERRUPT_SECONDS 10.0

enum ended { /* why it is over */
             ENDED_NOT,
             ENDED_PARTED, /* a tensor differs */
             ENDED_ORDER,  /* they ran different nodes */
             ENDED_STEPS,  /* as many as were asked for */
             ENDED_OVER,   /* a training is over */
             ENDED_STOPPED /* something else stopped one of them */
};

struct partners { /* by node of B */
    gd_node_id *of_b;
    bool *chosen;
    bool *taken; /* by node of A: it has a partner */
    uint32_t limit_a, limit_b;
    uint64_t generation_a, generation_b;
};

struct lockstep {
    struct command_call *call;
    struct gd_session *a, *b;
    const char *label_a, *label_b;
    struct compare_options options;
    struct gd_selector *selector; /* NULL: what is watched, else all */
    bool narrow;                  /* not all are chosen */
    bool by_node;
    int64_t steps; /* 0: until one is over */
    int64_t step;  /* by node: the one that they are in */
    struct partners partners;
    /* so far */
    enum ended ended;
    int64_t steps_done;
    uint64_t nodes, tensors, left_out; /* compared; values that one side could not give */
    const char *reason_left_out;
    gd_node_id good;           /* of B, the last that agreed */
    gd_node_id node_a, node_b; /* where they parted */
    uint32_t slot;
    struct gd_difference difference;
    struct gd_session *culprit; /* whose stop or end it was */
    bool *seen;                 /* nodes of B that were compared in this step */
};

/* ---- which nodes ----------------------------------------------------------------------------- */

static void partners_free(struct lockstep *l)
{
    free(l->partners.of_b);
    free(l->partners.chosen);
    free(l->partners.taken);
    free(l->seen);
    l->partners = (struct partners){.of_b = NULL};
    l->seen = NULL;
}

static int mark(struct lockstep *l, const struct gd_selector *selector, struct gd_err *err)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = gd_selector_resolve(selector, l->b->graph, &nodes, &count, err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        l->partners.chosen[nodes[i]] = true;
    }
    free(nodes);
    return rc;
}

/* What was asked for; else what is watched; else all. */
static int choose(struct lockstep *l, struct gd_err *err)
{
    int rc = GD_OK;

    l->narrow = l->selector != NULL;
    if (l->selector != NULL) {
        return mark(l, l->selector, err);
    }
    for (const struct gd_watchpoint *w = l->call->debugger->watchpoints; rc == GD_OK && w != NULL;
         w = w->next) {
        if (w->selector != NULL && w->enabled && w->event == NULL) {
            l->narrow = true;
            rc = mark(l, w->selector, NULL) == GD_ENOMEM ? gd_fail(err, GD_ENOMEM, "out of memory")
                                                         : GD_OK;
        }
    }
    if (!l->narrow) {
        memset(l->partners.chosen, true, l->partners.limit_b);
    }
    return rc;
}

static void take_matches(struct lockstep *l, const struct gd_table *a, const struct gd_table *b,
                         const struct gd_matching *matching)
{
    for (size_t i = 0; i < matching->count; i++) {
        const struct gd_match *m = &matching->match[i];

        if (m->a != UINT32_MAX && m->b != UINT32_MAX && b->unit[m->b].node < l->partners.limit_b) {
            l->partners.of_b[b->unit[m->b].node] = a->unit[m->a].node;
            if (a->unit[m->a].node < l->partners.limit_a) {
                l->partners.taken[a->unit[m->a].node] = true;
            }
        }
    }
}

static int match_graphs(struct lockstep *l, struct gd_err *err)
{
    struct gd_match_options options = {.map = l->options.map,
                                       .last = l->options.last < GD_HOW_RULES ? l->options.last
                                                                              : GD_HOW_RULES};
    struct side side_a = {.kind = SIDE_LIVE, .session = l->a, .label = l->label_a};
    struct side side_b = {.kind = SIDE_LIVE, .session = l->b, .label = l->label_b};
    struct gd_table a, b;
    struct gd_matching matching;
    int rc = side_load(l->call, &side_a, 0, -1, &a, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = side_load(l->call, &side_b, 0, -1, &b, err);
    if (rc == GD_OK) {
        rc = gd_match_tables(&a, &b, &options, &matching, err);
        if (rc == GD_OK) {
            take_matches(l, &a, &b, &matching);
            gd_matching_free(&matching);
        }
        gd_table_deinit(&b);
    }
    gd_table_deinit(&a);
    return rc;
}

static int begin_partners(struct lockstep *l, struct gd_err *err)
{
    struct partners *p = &l->partners;

    p->limit_a = gd_graph_node_limit(l->a->graph);
    p->limit_b = gd_graph_node_limit(l->b->graph);
    p->generation_a = l->a->graph_generation;
    p->generation_b = l->b->graph_generation;
    p->of_b = malloc(((size_t)p->limit_b + 1) * sizeof(*p->of_b));
    p->chosen = calloc((size_t)p->limit_b + 1, sizeof(*p->chosen));
    p->taken = calloc((size_t)p->limit_a + 1, sizeof(*p->taken));
    l->seen = calloc((size_t)p->limit_b + 1, sizeof(*l->seen));
    if (p->of_b == NULL || p->chosen == NULL || p->taken == NULL || l->seen == NULL) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the nodes of two graphs");
    }
    for (uint32_t i = 0; i <= p->limit_b; i++) {
        p->of_b[i] = GD_NO_NODE;
    }
    return GD_OK;
}

/* Graphs may have grown since the last look: what is new has no partner yet, and is not chosen. */
static int update_partners(struct lockstep *l, bool new_step, struct gd_err *err)
{
    const struct partners *p = &l->partners;
    uint32_t had = new_step ? 0 : p->limit_b;

    if (p->of_b != NULL && p->generation_a == l->a->graph_generation &&
        p->generation_b == l->b->graph_generation) {
        memset(l->seen, false, new_step ? p->limit_b : 0);
        return GD_OK;
    }
    bool *seen = l->seen;
    l->seen = NULL;
    partners_free(l);
    int rc = begin_partners(l, err);
    if (rc == GD_OK && seen != NULL) {
        memcpy(l->seen, seen, had < p->limit_b ? had : p->limit_b);
    }
    free(seen);
    rc = rc == GD_OK ? choose(l, err) : rc;
    return rc == GD_OK ? match_graphs(l, err) : rc;
}

/* Of a node that came after the last look, by its name. */
static gd_node_id partner_of(const struct lockstep *l, gd_node_id node)
{
    const char *name = gd_graph_name(l->b->graph, node);

    return node < l->partners.limit_b ? l->partners.of_b[node]
                                      : gd_graph_lookup(l->a->graph, name, strlen(name));
}

static bool is_chosen(const struct lockstep *l, gd_node_id node)
{
    return node < l->partners.limit_b ? l->partners.chosen[node] : !l->narrow;
}

/* ---- their values ---------------------------------------------------------------------------- */

static int fetch(struct lockstep *l, struct gd_session *session, gd_node_id node, uint32_t slot,
                 struct gd_source **ret, struct gd_err *err)
{
    struct gd_tensor_ref ref = {.node = node, .slot = slot};
    struct gd_session *before = l->call->session;
    struct gd_err why = {.text = ""};
    struct gd_tensor *tensor;
    int64_t step;
    int rc;

    l->call->session = session;
    rc = repl_fetch(l->call, &ref, NULL, &tensor, &step, &why);
    l->call->session = before;
    if (rc == GD_OK) {
        rc = gd_source_of_tensor(tensor, ret, &why);
        gd_tensor_unref(tensor);
    }
    if (rc == GD_EINTR || rc == GD_ENOMEM || rc == GD_ELOST) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (rc != GD_OK) {
        *ret = NULL;
        l->left_out++;
        if (l->reason_left_out == NULL) {
            l->reason_left_out = inspect_printf(l->call, "%s", why.text);
        }
    }
    return GD_OK;
}

static int compare_slot(struct lockstep *l, gd_node_id node_a, gd_node_id node_b, uint32_t slot,
                        struct gd_err *err)
{
    struct gd_compare_options options = {.profile = l->options.profile, .threads = 1};
    struct gd_source *a = NULL, *b = NULL;
    int rc;

    options.has_tolerance =
        compare_tolerance(&l->options, gd_graph_name(l->a->graph, node_a),
                          gd_graph_name(l->b->graph, node_b), &options.tolerance);
    rc = fetch(l, l->b, node_b, slot, &b, err);
    if (rc == GD_OK && b != NULL) {
        rc = fetch(l, l->a, node_a, slot, &a, err);
    }
    if (rc == GD_OK && a != NULL) {
        rc = gd_compare_sources(a, b, &options, &l->difference, err);
        l->tensors++;
    }
    if (rc == GD_OK && a != NULL && gd_verdict_is_bad(l->difference.verdict)) {
        l->ended = ENDED_PARTED;
        l->node_a = node_a;
        l->node_b = node_b;
        l->slot = slot;
    }
    gd_source_unref(a);
    gd_source_unref(b);
    return rc;
}

static int compare_node(struct lockstep *l, gd_node_id node_b, struct gd_err *err)
{
    gd_node_id node_a = partner_of(l, node_b);
    struct gd_node_info a, b;
    uint64_t before = l->tensors;
    int rc = GD_OK;

    if (node_a == GD_NO_NODE || !is_chosen(l, node_b) || !gd_graph_node(l->a->graph, node_a, &a) ||
        !gd_graph_node(l->b->graph, node_b, &b)) {
        return GD_OK;
    }
    for (uint32_t slot = 0;
         rc == GD_OK && l->ended == ENDED_NOT && slot < b.output_count && slot < a.output_count;
         slot++) {
        rc = compare_slot(l, node_a, node_b, slot, err);
    }
    if (rc == GD_OK && l->tensors > before) {
        l->nodes++;
        l->good = l->ended == ENDED_NOT ? node_b : l->good;
        if (node_b < l->partners.limit_b) {
            l->seen[node_b] = true;
        }
    }
    return rc;
}

/* What no operator of this step made, or everything. */
static int compare_rest(struct lockstep *l, struct gd_err *err)
{
    int rc = update_partners(l, false, err);

    for (uint32_t i = 0, count = 1; rc == GD_OK && l->ended == ENDED_NOT && i < count; i++) {
        /* anew each time: the loop runs while a value is waited for */
        const gd_node_id *order = gd_graph_execution(l->b->graph, &count);
        if (i < count && (order[i] >= l->partners.limit_b || !l->seen[order[i]])) {
            rc = compare_node(l, order[i], err);
        }
    }
    return rc;
}

/* ---- moving both ----------------------------------------------------------------------------- */

static bool stand(void *ctx)
{
    const struct lockstep *l = ctx;

    return !gd_ranks_is_running(l->a) && !gd_ranks_is_running(l->b);
}

/* Stops that were asked for are not news. */
static bool is_usual(const struct gd_session *session)
{
    return session->stop.reason == GD_STOP_STEP || session->stop.reason == GD_STOP_NODE;
}

static void note_end(struct lockstep *l, struct gd_session *session)
{
    if (l->ended != ENDED_NOT) {
        return;
    }
    if (session->state != GD_STOPPED) {
        l->ended = ENDED_OVER;
        l->culprit = session;
    } else if (!is_usual(session)) {
        l->ended = ENDED_STOPPED;
        l->culprit = session;
    }
}

/* Both as far as `run` says. GD_EINTR: Ctrl-C; they stand all the same. */
static int move(struct lockstep *l, const struct gd_run *run, bool a, bool b, struct gd_err *err)
{
    int rc = a ? gd_ranks_resume(l->a, run, err) : GD_OK;

    if (rc == GD_OK && b) {
        rc = gd_ranks_resume(l->b, run, err);
    }
    int waited = repl_wait(l->call->repl, stand, l, -1);
    if (waited == GD_EINTR) {
        gd_ranks_interrupt(l->a, NULL);
        gd_ranks_interrupt(l->b, NULL);
        repl_wait(l->call->repl, stand, l, INTERRUPT_SECONDS);
        return gd_fail(err, GD_EINTR, "interrupted: @%d and @%d stand where they are", l->a->number,
                       l->b->number);
    }
    note_end(l, l->a);
    note_end(l, l->b);
    return rc;
}

/* A node that has a partner, or the end of the step. */
static bool counts(const struct lockstep *l, const struct gd_session *session)
{
    gd_node_id node = session->stop.node;

    if (session->stop.at_step_end || node == GD_NO_NODE) {
        return true;
    }
    if (session == l->b) {
        return partner_of(l, node) != GD_NO_NODE;
    }
    const char *name = gd_graph_name(l->a->graph, node);

    return node < l->partners.limit_a
               ? l->partners.taken[node]
               : gd_graph_lookup(l->b->graph, name, strlen(name)) != GD_NO_NODE;
}

static void note_other_order(struct lockstep *l)
{
    l->ended = ENDED_ORDER;
    l->node_a = l->a->stop.at_step_end ? GD_NO_NODE : l->a->stop.node;
    l->node_b = l->b->stop.at_step_end ? GD_NO_NODE : l->b->stop.node;
}

/* Those that are to move, each to its next node that has a partner. */
static int next_node(struct lockstep *l, bool a, bool b, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_NEXT, .count = 1, .node = GD_NO_NODE};
    int rc = GD_OK;

    while (rc == GD_OK && l->ended == ENDED_NOT && (a || b)) {
        rc = move(l, &run, a, b, err);
        if (rc == GD_OK && l->ended == ENDED_NOT && l->narrow) { /* else a name is enough */
            rc = update_partners(l, false, err);
        }
        a = a && !counts(l, l->a);
        b = b && !counts(l, l->b);
    }
    return rc;
}

/* A run from node to node may pass over the end of the step. */
static bool is_behind(const struct lockstep *l, const struct gd_session *session)
{
    return session->stop.at_step_end || session->stop.step > l->step;
}

static int compare_here(struct lockstep *l, struct gd_err *err)
{
    if (partner_of(l, l->b->stop.node) != l->a->stop.node) {
        note_other_order(l);
        return GD_OK;
    }
    return compare_node(l, l->b->stop.node, err);
}

/* Both at the end, or both at the first node behind it, whose step is the next. */
static int end_step(struct lockstep *l, struct gd_err *err)
{
    bool a = l->a->stop.at_step_end, b = l->b->stop.at_step_end;
    int rc = a == b ? GD_OK : next_node(l, a, b, err);

    if (!b && l->b->stop.node < l->partners.limit_b) {
        l->seen[l->b->stop.node] = true;
    }
    return rc == GD_OK && l->ended == ENDED_NOT ? compare_rest(l, err) : rc;
}

static int step_by_node(struct lockstep *l, struct gd_err *err)
{
    const struct gd_stop *at = &l->b->stop;
    bool between = at->at_step_end || gd_stop_is_before_first(at);
    int rc = between ? GD_OK : compare_here(l, err);

    l->step = between ? at->step + 1 : at->step;
    while (rc == GD_OK && l->ended == ENDED_NOT) {
        rc = next_node(l, true, true, err);
        if (rc != GD_OK || l->ended != ENDED_NOT) {
            break;
        }
        if (is_behind(l, l->a) && is_behind(l, l->b)) {
            return end_step(l, err);
        }
        if (is_behind(l, l->a) != is_behind(l, l->b)) {
            note_other_order(l);
        } else {
            rc = compare_here(l, err);
        }
    }
    return rc;
}

/* A dump may lack the step. */
static int need_same_step(const struct lockstep *l, struct gd_err *err)
{
    const struct gd_stop *a = &l->a->stop, *b = &l->b->stop;

    if (a->step != b->step || !a->at_step_end != !b->at_step_end) {
        return gd_fail(err, GD_ESTATE,
                       "%s stands in step %lld and %s in step %lld: bring them to the end of the "
                       "same step first",
                       l->label_a, (long long)a->step, l->label_b, (long long)b->step);
    }
    return GD_OK;
}

static int step_whole(struct lockstep *l, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    int rc = move(l, &run, true, true, err);

    if (rc != GD_OK || l->ended != ENDED_NOT) {
        return rc;
    }
    rc = need_same_step(l, err);
    return rc == GD_OK ? compare_rest(l, err) : rc;
}

static int drive(struct lockstep *l, struct gd_err *err)
{
    struct repl_work work;
    int rc = update_partners(l, true, err);

    if (rc == GD_OK) {
        rc = repl_wait_initial(l->call->repl, l->a, err);
    }
    if (rc == GD_OK) {
        rc = repl_wait_initial(l->call->repl, l->b, err);
    }
    if (rc == GD_EINTR) {
        return rc;
    }
    repl_work_begin_count(&work, l->call, "lockstep", "steps", (uint64_t)l->steps);
    if (rc == GD_OK) {
        rc = compare_rest(l, err); /* they may differ before they begin */
        l->left_out = 0;           /* what nothing has computed yet */
        l->reason_left_out = NULL;
    }
    while (rc == GD_OK && l->ended == ENDED_NOT) {
        rc = update_partners(l, true, err);
        if (rc == GD_OK) {
            rc = l->by_node ? step_by_node(l, err) : step_whole(l, err);
        }
        l->steps_done += rc == GD_OK && l->ended == ENDED_NOT;
        if (!repl_work_at(&work, (uint64_t)l->steps_done)) {
            break;
        }
        if (l->ended == ENDED_NOT && l->steps_done == l->steps) {
            l->ended = ENDED_STEPS;
        }
    }
    return repl_work_end(&work, rc, err);
}

/* ---- what it says ---------------------------------------------------------------------------- */

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

static void show_end(struct lockstep *l)
{
    struct command_call *call = l->call;

    switch (l->ended) {
    case ENDED_PARTED: show_parted(l); break;
    case ENDED_ORDER:
        out_printf(call->out, "%s and %s run different nodes in step %lld: %s, and %s\n",
                   l->label_a, l->label_b, (long long)l->b->stop.step,
                   node_text(l, l->a, l->node_a), node_text(l, l->b, l->node_b));
        break;
    case ENDED_STOPPED:
        out_printf(call->out, "%s stopped by itself (%s): no divergence until then\n",
                   l->culprit == l->a ? l->label_a : l->label_b,
                   gd_stop_reason_name(l->culprit->stop.reason));
        break;
    case ENDED_OVER:
        out_printf(call->out, "%s is over: no divergence until then\n",
                   l->culprit == l->a ? l->label_a : l->label_b);
        break;
    default: out_printf(call->out, "No divergence.\n"); break;
    }
    out_printf(call->out, "Agreed in %s steps; %s nodes, %s tensors compared",
               inspect_number(call, (uint64_t)l->steps_done), inspect_number(call, l->nodes),
               inspect_number(call, l->tensors));
    if (l->left_out > 0) {
        out_printf(call->out, "; %s were not to be had: %s", inspect_number(call, l->left_out),
                   out_safe(call, l->reason_left_out));
    }
    out_printf(call->out, "\n");
}

static void record_end(struct lockstep *l)
{
    static const char *const names[] = {"", "parted", "order", "steps", "over", "stopped"};
    struct command_call *call = l->call;
    const struct gd_difference *d = &l->difference;
    cJSON *object = out_record(call->out, "lockstep");

    cJSON_AddStringToObject(object, "ended", names[l->ended]);
    cJSON_AddNumberToObject(object, "a", l->a->number);
    cJSON_AddNumberToObject(object, "b", l->b->number);
    cJSON_AddNumberToObject(object, "step", (double)l->b->stop.step);
    inspect_add_count(object, "steps", (uint64_t)l->steps_done);
    inspect_add_count(object, "nodes", l->nodes);
    inspect_add_count(object, "tensors", l->tensors);
    inspect_add_count(object, "left_out", l->left_out);
    if (l->ended == ENDED_PARTED || l->ended == ENDED_ORDER) {
        inspect_add_text(call, object, "node", node_text(l, l->b, l->node_b));
        inspect_add_text(call, object, "node_a", node_text(l, l->a, l->node_a));
    }
    if (l->ended == ENDED_PARTED) {
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
static void show(struct lockstep *l)
{
    if (l->ended == ENDED_PARTED || l->ended == ENDED_ORDER) {
        compare_set_status(l->call->repl);
        l->a->current = l->node_a != GD_NO_NODE ? l->node_a : l->a->current;
        l->b->current = l->node_b != GD_NO_NODE ? l->node_b : l->b->current;
    }
    if (out_is_json(l->call->out)) {
        record_end(l);
    } else {
        show_end(l);
    }
    if (l->ended == ENDED_STOPPED) { /* that is news after all */
        out_flush(l->call->out);
        repl_note_stop(l->call->repl, l->culprit);
        repl_report_stop(l->call->repl, l->culprit);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

struct expected {
    struct gd_debugger *debugger;
    int number;
};

static bool has_come(void *ctx)
{
    const struct expected *e = ctx;
    const struct gd_session *session = gd_debugger_session(e->debugger, e->number);

    return session != NULL && session->state != GD_WAITING && session->state != GD_CONNECTED &&
           !gd_ranks_is_running(session);
}

static int find_session(struct lockstep *l, const char *word, struct gd_session **ret,
                        struct gd_err *err)
{
    struct expected e = {.debugger = l->call->debugger};
    int64_t number;
    int rc = arg_count(word + (word[0] == '@'), 1, INT32_MAX, &number, err);

    if (rc != GD_OK) {
        return gd_fail(err, GD_EUSAGE,
                       "%.60s: @ and the number of a session, as `info ranks` has it", word);
    }
    e.number = (int)number;
    rc = has_come(&e) ? GD_OK : repl_wait(l->call->repl, has_come, &e, CONNECT_SECONDS);
    if (rc == GD_EINTR) {
        return gd_fail(err, rc, "interrupted while waiting for session %d", e.number);
    }
    if (rc != GD_OK) {
        return gd_fail(err, GD_ENOTFOUND,
                       "session %d does not stand, or has not connected within %g s", e.number,
                       CONNECT_SECONDS);
    }
    *ret = gd_debugger_session(l->call->debugger, e.number);
    if (!gd_session_is_live(*ret)) {
        return gd_fail(err, GD_ESTATE,
                       "@%d is no training that runs: `compare` and "
                       "`first-divergence` take what is over",
                       e.number);
    }
    return GD_OK;
}

static int find_both(struct lockstep *l, struct gd_err *err)
{
    int rc = find_session(l, l->label_a, &l->a, err);

    rc = rc == GD_OK ? find_session(l, l->label_b, &l->b, err) : rc;
    if (rc != GD_OK) {
        return rc;
    }
    if (l->a == l->b) {
        return gd_fail(err, GD_EINVAL, "lockstep: two different trainings are needed");
    }
    if (gd_ranks_of(l->a) != NULL && gd_ranks_of(l->a) == gd_ranks_of(l->b)) {
        return gd_fail(err, GD_EINVAL,
                       "@%d and @%d are ranks of one job, which move together: `catch divergence`",
                       l->a->number, l->b->number);
    }
    return need_same_step(l, err);
}

/* Ranks of a job move by steps. */
static bool can_by_node(const struct gd_session *session)
{
    return (session->target->capabilities & GD_CAN_NEXT) != 0 && gd_ranks_of(session) == NULL;
}

/* --by node|step, else by node where both can. */
static int take_by(struct lockstep *l, const char *by, struct gd_err *err)
{
    const struct gd_session *sides[] = {l->a, l->b};
    bool both = true;

    if (by != NULL && strcmp(by, "step") != 0 && strcmp(by, "node") != 0) {
        return gd_fail(err, GD_EUSAGE, "--by %.40s: \"step\" or \"node\"", by);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!can_by_node(sides[i])) {
            both = false;
            if (by != NULL && strcmp(by, "node") == 0) {
                return gd_fail(err, GD_EUNSUPPORTED, "@%d cannot stop at each node: --by step",
                               sides[i]->number);
            }
        }
    }
    l->by_node = both && (by == NULL || strcmp(by, "node") == 0);
    return GD_OK;
}

static int parse(struct lockstep *l, struct gd_err *err)
{
    struct command_call *call = l->call;
    const char *by = inspect_take_word(call, "--by"), *steps = inspect_take_word(call, "--steps");
    int rc = steps != NULL ? arg_count(steps, 1, INT64_MAX, &l->steps, err) : GD_OK;

    if (rc == GD_OK) {
        rc = compare_options_take(call, &l->options, err);
    }
    if (rc == GD_OK && (call->argc < 2 || (call->argc > 2 && (strcmp(call->argv[2], "on") != 0 ||
                                                              call->argc == 3)))) {
        rc = gd_fail(err, GD_EUSAGE, "lockstep: two sessions, and perhaps on SELECTOR");
    }
    if (rc == GD_OK && call->argc > 3) {
        rc = gd_selector_parse(inspect_join(call, 3, call->argc), &l->selector, err);
    }
    if (rc == GD_OK) {
        l->label_a = call->argv[0];
        l->label_b = call->argv[1];
        rc = find_both(l, err);
    }
    return rc == GD_OK ? take_by(l, by, err) : rc;
}

static int run_lockstep(struct command_call *call, struct gd_err *err)
{
    struct lockstep l = {
        .call = call, .good = GD_NO_NODE, .node_a = GD_NO_NODE, .node_b = GD_NO_NODE};
    int rc = parse(&l, err);

    if (rc == GD_OK) {
        out_flush(call->out);
        call->repl->drives[0] = l.a->number;
        call->repl->drives[1] = l.b->number;
        rc = drive(&l, err);
        call->repl->drives[0] = call->repl->drives[1] = 0;
    }
    if (rc == GD_OK && l.ended != ENDED_NOT) {
        show(&l);
    }
    partners_free(&l);
    gd_selector_destroy(l.selector);
    compare_options_free(&l.options);
    return rc;
}

const struct command cmd_lockstep_table[] = {
    {
        .name = "lockstep",
        .group = "running",
        .usage = "lockstep A B [on SELECTOR] [--by step|node] [--steps N] [--map FILE] [rtol=X] "
                 "[atol=X]",
        .summary = "Run two trainings side by side until they part",
        .help =
            "A and B are sessions (@1 and @2, see `info ranks`; one that has not connected is\n"
            "waited for), which stand at the end of the same step: two processes, two frameworks,\n"
            "two devices. Both are run to the same place again and again, and what is watched is\n"
            "compared there: after every node where both can stop at nodes, else, or with --by\n"
            "step, after every step. Both stop where a tensor differs beyond its tolerance first,\n"
            "and there they can be looked at. B is the reference; the options are those of\n"
            "`compare`. Without \"on SELECTOR\" the nodes that watchpoints cover are compared,\n"
            "and all nodes where there is no watchpoint. Nodes are matched by name, by the rules\n"
            "between frameworks, or by --map. A stop of another kind ends it, too.\n"
            "gradb --batch ends with status 6 when they part.\n"
            "\n"
            "  lockstep @1 @2\n"
            "  lockstep @1 @2 on weights|gradients --by step --steps 100 rtol=1e-3\n",
        .args = {ARG_WORD, ARG_WORD, ARG_WORD, ARG_SELECTOR},
        .flags = 0,
        .run = run_lockstep,
    },
    {.name = NULL},
};

// SPDX-License-Identifier: GPL-3.0-or-later
/* lockstep: runs two trainings from place to place and compares them there. */
#include "repl/compare/lockstep_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/dump_target.h"
#include "engine/ranks.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/checked.h"

#define INTERRUPT_SECONDS 10.0

/* Stops that lockstep asked for are not reported. */
static bool is_usual(const struct gd_session *session)
{
    return session->stop.reason == GD_STOP_STEP || session->stop.reason == GD_STOP_NODE;
}

static void note_end(struct lockstep *l, struct gd_session *session)
{
    if (l->ended != LOCKSTEP_GOES_ON) {
        return;
    }
    if (session->state != GD_STOPPED) {
        l->ended = session->state == GD_LOST ? LOCKSTEP_LOST : LOCKSTEP_OVER;
        l->culprit = session;
    } else if (!is_usual(session)) {
        l->ended = LOCKSTEP_STOPPED;
        l->culprit = session;
    }
}

/* A value that was held although the training has gone on; NULL: there is none. */
static struct gd_source *find_held(struct lockstep *l, const struct gd_session *session,
                                   gd_node_id node, uint32_t slot)
{
    struct lockstep_held *held = &l->held;

    for (size_t i = 0; session == held->session && i < held->count; i++) {
        size_t at = (held->at + i) % held->count;
        if (held->list[at].node == node && held->list[at].slot == slot) {
            held->at = at;
            return gd_source_ref(held->list[at].source);
        }
    }
    return NULL;
}

/* NULL in *ret: the value is skipped, or the training was lost. */
static int fetch_value(struct lockstep *l, struct gd_session *session, gd_node_id node,
                       uint32_t slot, struct gd_source **ret, struct gd_err *err)
{
    struct gd_tensor_ref ref = {.node = node, .slot = slot};
    const char *why = NULL;

    *ret = find_held(l, session, node, slot);
    if (*ret) {
        return GD_OK;
    }
    int rc = side_fetch_value(l->call, session, &ref, ret, &why, NULL, err);
    if (rc == GD_ELOST || (rc != GD_OK && session->state != GD_STOPPED)) {
        l->ended = session->state == GD_FINISHED ? LOCKSTEP_OVER : LOCKSTEP_LOST;
        l->culprit = session;
        return GD_OK;
    }
    if (why) {
        inspect_not_checked(l->call, &l->checked, why);
    }
    return rc;
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
    rc = fetch_value(l, l->b, node_b, slot, &b, err);
    if (rc == GD_OK && b) {
        rc = fetch_value(l, l->a, node_a, slot, &a, err);
    }
    if (rc == GD_OK && a) {
        rc = gd_compare_sources(a, b, &options, &l->difference, err);
        if (rc == GD_OK && l->difference.verdict == GD_V_UNREADABLE) {
            inspect_not_checked(l->call, &l->checked, l->difference.note);
        } else if (gd_difference_is_empty(&l->difference)) {
            inspect_not_checked(l->call, &l->checked, "it has no elements");
        } else {
            l->checked.done++;
        }
    }
    if (rc == GD_OK && a && l->difference.verdict != GD_V_UNREADABLE &&
        gd_verdict_is_bad(l->difference.verdict)) {
        l->ended = LOCKSTEP_PARTED;
        l->node_a = node_a;
        l->node_b = node_b;
        l->slot = slot;
    }
    gd_source_unref(a);
    gd_source_unref(b);
    return rc;
}

/* Only outputs; of operators that are similar but not the same, only the first. */
static uint32_t slots_of(const struct gd_node_info *a, const struct gd_node_info *b)
{
    uint32_t of_a = a->output_count - a->input_slots, of_b = b->output_count - b->input_slots;
    uint32_t both = of_a < of_b ? of_a : of_b;

    return strcmp(a->type, b->type) != 0 && both > 1 ? 1 : both;
}

static int compare_node(struct lockstep *l, gd_node_id node_b, struct gd_err *err)
{
    gd_node_id node_a = lockstep_partner_of_b(l, node_b);
    struct gd_node_info a, b;
    uint64_t before = l->checked.done;
    int rc = GD_OK;

    if (node_a == GD_NO_NODE || !lockstep_is_chosen(l, node_b) ||
        !gd_graph_node(l->a->graph, node_a, &a) || !gd_graph_node(l->b->graph, node_b, &b)) {
        return GD_OK;
    }
    uint32_t slots = slots_of(&a, &b); /* graphs may change while a value is awaited */
    for (uint32_t slot = 0; rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && slot < slots; slot++) {
        rc = compare_slot(l, node_a, node_b, slot, err);
    }
    if (rc == GD_OK && l->checked.done > before) {
        l->compared++;
        l->good = l->ended != LOCKSTEP_PARTED ? node_b : l->good;
        if (node_b < l->nodes.limit_b) {
            l->nodes.seen[node_b] = true;
        }
    }
    return rc;
}

static int compare_rest(struct lockstep *l, struct gd_err *err)
{
    int rc = lockstep_match(l, false, err);

    for (uint32_t i = 0, count = 1; rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && i < count; i++) {
        /* looked up each time: the loop runs while a value is awaited */
        const gd_node_id *order = gd_graph_execution(l->b->graph, &count);
        if (i < count && (order[i] >= l->nodes.limit_b || !l->nodes.seen[order[i]])) {
            rc = compare_node(l, order[i], err);
        }
    }
    return rc;
}

/* ---- moving both ----------------------------------------------------------------------------- */

static bool are_stopped(void *ctx)
{
    const struct lockstep *l = ctx;

    return !gd_ranks_is_running(l->a) && !gd_ranks_is_running(l->b);
}

/* Resumes with `run` and waits. GD_EINTR: Ctrl-C; both are stopped. A session that has ended is not
 * an error: it ends lockstep. */
static int move_sides(struct lockstep *l, const struct gd_run *run, bool a, bool b,
                      struct gd_err *err)
{
    int rc = a ? gd_ranks_resume(l->a, run, err) : GD_OK;

    if (rc == GD_OK && b) {
        rc = gd_ranks_resume(l->b, run, err);
    }
    int waited = repl_wait(l->call->repl, are_stopped, l, -1);
    if (waited == GD_EINTR) {
        gd_ranks_interrupt(l->a, NULL);
        gd_ranks_interrupt(l->b, NULL);
        repl_wait(l->call->repl, are_stopped, l, INTERRUPT_SECONDS);
        return gd_fail(err, GD_EINTR, "interrupted: @%d and @%d stay where they are", l->a->number,
                       l->b->number);
    }
    if (a) {
        note_end(l, l->a);
    }
    if (b) {
        note_end(l, l->b);
    }
    return l->ended == LOCKSTEP_LOST || l->ended == LOCKSTEP_OVER ? GD_OK : rc;
}

/* The step as B counts. */
static int64_t step_of(const struct lockstep *l, const struct gd_session *session)
{
    return session == l->a ? session->stop.step - l->shift : session->stop.step;
}

static bool is_between(const struct gd_session *session)
{
    return session->stop.at_step_end || gd_stop_is_before_first(&session->stop);
}

/* Whether frameworks make it at different times of a step: the gradients of parameters, and what
 * the optimizer makes of them. Its value is still there at the end of the step. */
static bool is_at_any_time(const struct lockstep *l, const struct gd_session *session,
                           gd_node_id node)
{
    struct gd_node_info info;

    return strcmp(l->a->peer.framework, l->b->peer.framework) != 0 &&
           gd_graph_node(session->graph, node, &info) &&
           (strcmp(info.type, "Gradient") == 0 || strncmp(info.name, "optimizer/", 10) == 0);
}

/* At a node with a counterpart, or at the end of the step. */
static bool is_counted(const struct lockstep *l, const struct gd_session *session)
{
    gd_node_id node = session->stop.node;

    if (session->stop.at_step_end || node == GD_NO_NODE) {
        return true;
    }
    if (is_at_any_time(l, session, node)) {
        return false;
    }
    return (session == l->b ? lockstep_partner_of_b(l, node) : lockstep_partner_of_a(l, node)) !=
           GD_NO_NODE;
}

static void note_other_order(struct lockstep *l)
{
    l->ended = LOCKSTEP_ORDER;
    l->node_a = l->a->stop.at_step_end ? GD_NO_NODE : l->a->stop.node;
    l->node_b = l->b->stop.at_step_end ? GD_NO_NODE : l->b->stop.node;
}

/* A run from node to node may pass the end of the step. */
static bool is_behind(const struct lockstep *l, const struct gd_session *session)
{
    return session->stop.at_step_end || step_of(l, session) > l->step;
}

static bool is_there(const struct lockstep *l, const struct gd_session *session)
{
    return is_counted(l, session) || is_behind(l, session);
}

/* Moves the given sides, each to its next node with a counterpart, or past the end of the step. */
static int next_node(struct lockstep *l, bool a, bool b, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_NEXT, .count = 1, .node = GD_NO_NODE};
    int rc = GD_OK;

    while (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && (a || b)) {
        rc = move_sides(l, &run, a, b, err);
        /* otherwise a name is enough */
        if (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && l->narrow) {
            rc = lockstep_match(l, false, err);
        }
        a = a && !is_there(l, l->a);
        b = b && !is_there(l, l->b);
    }
    return rc;
}

static int compare_here(struct lockstep *l, struct gd_err *err)
{
    if (lockstep_partner_of_b(l, l->b->stop.node) != l->a->stop.node) {
        note_other_order(l);
        return GD_OK;
    }
    return compare_node(l, l->b->stop.node, err);
}

/* Both are at the end, or at the first node after it, which belongs to the next step. */
static int end_step(struct lockstep *l, struct gd_err *err)
{
    bool a = l->a->stop.at_step_end, b = l->b->stop.at_step_end;
    int rc = a == b ? GD_OK : next_node(l, a, b, err);

    if (!b && l->b->stop.node < l->nodes.limit_b) {
        l->nodes.seen[l->b->stop.node] = true;
    }
    return rc == GD_OK && l->ended == LOCKSTEP_GOES_ON ? compare_rest(l, err) : rc;
}

static int step_by_node(struct lockstep *l, struct gd_err *err)
{
    bool between = is_between(l->b);

    l->step = l->b->stop.step + between;
    int rc = next_node(l, between || !is_counted(l, l->a), between || !is_counted(l, l->b), err);
    while (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON) {
        bool a = is_behind(l, l->a), b = is_behind(l, l->b);
        if (a && b) {
            return end_step(l, err);
        }
        if (a != b) {
            note_other_order(l);
            break;
        }
        rc = compare_here(l, err);
        if (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON) {
            rc = next_node(l, true, true, err);
        }
    }
    return rc;
}

/* ---- the first step of two frameworks --------------------------------------------------------
 *
 * Operators of different names are matched when all of the step is known. A MindSpore process keeps
 * their outputs until it runs on; those of the other side are fetched one by one. */

/* The side that keeps nothing, while the other does; NULL: both are alike. */
static struct gd_session *forgetful_of(const struct lockstep *l)
{
    bool a = strcmp(l->a->peer.framework, "mindspore") == 0;
    bool b = strcmp(l->b->peer.framework, "mindspore") == 0;
    return a == b ? NULL : a ? l->b : l->a;
}

static int hold_value(struct lockstep *l, gd_node_id node, uint32_t slot, struct gd_err *err)
{
    struct lockstep_held *held = &l->held;
    struct gd_source_info info;
    struct gd_source *source = NULL;
    int rc = fetch_value(l, held->session, node, slot, &source, err);

    if (rc != GD_OK || !source) {
        return rc;
    }
    if (!gd_grow_list(&held->list, held->count, &held->room, sizeof(*held->list))) {
        gd_source_unref(source);
        return gd_fail_nomem(err);
    }
    held->list[held->count++] =
        (struct lockstep_value){.node = node, .slot = slot, .source = source};
    held->bytes += gd_source_info(source, &info, NULL) == GD_OK ? info.bytes : 0;
    return GD_OK;
}

static int hold_node(struct lockstep *l, struct gd_err *err)
{
    const struct gd_session *session = l->held.session;
    gd_node_id node = session->stop.node;
    struct gd_node_info info;
    int rc = GD_OK;

    if (node == GD_NO_NODE || !gd_graph_node(session->graph, node, &info)) {
        return GD_OK;
    }
    uint32_t count = info.output_count - info.input_slots;
    for (uint32_t slot = 0; rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && slot < count &&
                            l->held.bytes < l->call->debugger->settings.max_cache;
         slot++) {
        rc = hold_value(l, node, slot, err);
    }
    return rc;
}

static void free_held(struct lockstep *l)
{
    for (size_t i = 0; i < l->held.count; i++) {
        gd_source_unref(l->held.list[i].source);
    }
    free(l->held.list);
    l->held = (struct lockstep_held){.list = NULL};
}

/* In the order in which the nodes ran. */
static int compare_held(struct lockstep *l, struct gd_err *err)
{
    int rc = lockstep_match(l, false, err);

    for (size_t i = 0; rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && i < l->held.count; i++) {
        gd_node_id node = l->held.list[i].node;
        gd_node_id node_b = l->held.session == l->b ? node : lockstep_partner_of_a(l, node);
        if (l->held.list[i].slot == 0 && node_b != GD_NO_NODE &&
            !is_at_any_time(l, l->held.session, node)) {
            rc = compare_node(l, node_b, err);
        }
    }
    return rc;
}

/* The first update of a weight: what comes after it is still there at the end of the step. */
static bool is_in_optimizer(const struct gd_session *session)
{
    return strncmp(session->stop.node_name, "optimizer/", 10) == 0;
}

/* To the end of the step; by a node first, because a compiled step is only looked into when a node
 * is asked for. */
static int run_looked_into(struct lockstep *l, struct gd_session *session, struct gd_err *err)
{
    struct gd_run step = {.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    struct gd_run next = {.kind = GD_RUN_NEXT, .count = 1, .node = GD_NO_NODE};
    int rc = move_sides(l, &next, session == l->a, session == l->b, err);

    return rc == GD_OK && l->ended == LOCKSTEP_GOES_ON && !is_behind(l, session)
               ? move_sides(l, &step, session == l->a, session == l->b, err)
               : rc;
}

/* The side that keeps its outputs goes first, the other one from node to node. */
static int step_apart(struct lockstep *l, struct gd_err *err)
{
    struct gd_run step = {.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    struct gd_run next = {.kind = GD_RUN_NEXT, .count = 1, .node = GD_NO_NODE};
    struct gd_session *side = forgetful_of(l);

    l->held.session = side;
    l->step = l->b->stop.step + 1;
    int rc = run_looked_into(l, side == l->a ? l->b : l->a, err);
    while (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON) {
        rc = move_sides(l, &next, side == l->a, side == l->b, err);
        if (rc != GD_OK || l->ended != LOCKSTEP_GOES_ON || is_behind(l, side)) {
            break;
        }
        if (is_in_optimizer(side)) {
            rc = move_sides(l, &step, side == l->a, side == l->b, err);
            break;
        }
        rc = hold_node(l, err);
    }
    l->checked.not_done = 0; /* they are counted when they are compared */
    l->checked.why = NULL;
    if (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON) {
        rc = compare_held(l, err);
    }
    free_held(l);
    return rc == GD_OK && l->ended == LOCKSTEP_GOES_ON ? end_step(l, err) : rc;
}

/* ---- a training that follows a dump ---------------------------------------------------------- */

static struct gd_session *live_of(const struct lockstep *l)
{
    return l->dump == l->a ? l->b : l->a;
}

/* Moves the dump to the training's step, if the dump has it. */
static bool dump_to(struct lockstep *l, int64_t step)
{
    struct gd_run run = {.kind = GD_RUN_GOTO, .node = GD_NO_NODE};

    run.count = l->dump == l->a ? step + l->shift : step;
    return gd_target_resume(l->dump->target, &run, NULL) == GD_OK;
}

/* The first step of the dump after the one that the training has finished. */
static bool next_of_dump(struct lockstep *l, int64_t done, int64_t *ret)
{
    size_t count = 0;
    const struct gd_catalog_step *steps = gd_catalog_steps(gd_catalog_of(l->dump), &count);

    for (size_t i = 0; i < count; i++) {
        *ret = l->dump == l->a ? steps[i].step - l->shift : steps[i].step;
        if (*ret > done) {
            return true;
        }
    }
    return false;
}

static int follow_node(struct lockstep *l, struct gd_err *err)
{
    const struct gd_session *live = live_of(l);
    int rc = lockstep_match(l, false, err);
    gd_node_id node = live == l->b ? live->stop.node : lockstep_partner_of_a(l, live->stop.node);

    return rc == GD_OK && node != GD_NO_NODE ? compare_node(l, node, err) : rc;
}

/* A training that is stopped in the next step already has the input of that step, unlike the
 * dump. */
static void pass_over_inputs(struct lockstep *l)
{
    struct gd_node_info info;

    for (uint32_t i = 0; i < l->nodes.limit_b; i++) {
        if (gd_graph_node(l->b->graph, i, &info) && info.kind == GD_NODE_PARAMETER) {
            l->nodes.seen[i] = true;
        }
    }
}

/* From node to node of the training; the dump has all of them. */
static int follow_nodes(struct lockstep *l, int64_t step, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_NEXT, .count = 1, .node = GD_NO_NODE};
    struct gd_session *live = live_of(l);
    int rc = is_between(live) ? GD_OK : follow_node(l, err);

    while (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON) {
        rc = move_sides(l, &run, live == l->a, live == l->b, err);
        if (rc != GD_OK || l->ended != LOCKSTEP_GOES_ON) {
            break;
        }
        if (live->stop.at_step_end || step_of(l, live) > step) {
            rc = lockstep_match(l, false, err);
            if (rc == GD_OK && !live->stop.at_step_end) {
                pass_over_inputs(l);
            }
            return rc == GD_OK ? compare_rest(l, err) : rc;
        }
        rc = follow_node(l, err);
    }
    return rc;
}

/* Moves the training to the dump's next step, and the dump with it. */
static int step_with_dump(struct lockstep *l, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_STEP, .node = GD_NO_NODE};
    struct gd_session *live = live_of(l);
    int64_t step, done = step_of(l, live) - !is_between(live);
    int rc = GD_OK;

    if (!next_of_dump(l, done, &step)) {
        l->ended = LOCKSTEP_OVER;
        l->culprit = l->dump;
        return GD_OK;
    }
    run.count = step - done - l->by_node;
    if (run.count > 0) {
        rc = move_sides(l, &run, live == l->a, live == l->b, err);
    }
    if (rc != GD_OK || l->ended != LOCKSTEP_GOES_ON) {
        return rc;
    }
    if (!dump_to(l, step)) {
        return gd_fail(err, GD_EIO, "@%d cannot go to step %lld", l->dump->number, (long long)step);
    }
    return l->by_node ? follow_nodes(l, step, err) : compare_rest(l, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

int lockstep_check_place(const struct lockstep *l, struct gd_err *err)
{
    const struct gd_stop *a = &l->a->stop, *b = &l->b->stop;
    const struct gd_session *live = live_of(l);

    if (l->dump) {
        return is_between(live)
                   ? GD_OK
                   : gd_fail(err, GD_ESTATE,
                             "@%d is stopped inside step %lld: run it to the end of the step first",
                             live->number, (long long)live->stop.step);
    }
    if (a->step - l->shift != b->step || !a->at_step_end != !b->at_step_end) {
        return gd_fail(err, GD_ESTATE,
                       "%s is stopped at step %lld and %s at step %lld: run them to the end of the "
                       "same step first, or give the offset of A's steps (--shift %lld)",
                       l->label_a, (long long)a->step, l->label_b, (long long)b->step,
                       (long long)(a->step - b->step));
    }
    return GD_OK;
}

static int step_whole(struct lockstep *l, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    int rc = move_sides(l, &run, true, true, err);

    if (rc != GD_OK || l->ended != LOCKSTEP_GOES_ON) {
        return rc;
    }
    rc = lockstep_check_place(l, err);
    return rc == GD_OK ? compare_rest(l, err) : rc;
}

/* Whether the operators are not known yet that would be matched by other rules than their names. */
static bool is_unknown_yet(const struct lockstep *l)
{
    return strcmp(l->a->peer.framework, l->b->peer.framework) != 0 &&
           gd_stop_is_before_first(&l->a->stop) && gd_stop_is_before_first(&l->b->stop);
}

static int run_step(struct lockstep *l, struct gd_err *err)
{
    int rc = lockstep_match(l, true, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (l->dump) {
        return step_with_dump(l, err);
    }
    if (l->by_node && is_unknown_yet(l)) {
        return forgetful_of(l) ? step_apart(l, err) : step_whole(l, err);
    }
    return l->by_node ? step_by_node(l, err) : step_whole(l, err);
}

/* They may differ at the start. */
static int compare_start(struct lockstep *l, struct gd_err *err)
{
    int rc = lockstep_match(l, true, err);

    if (rc == GD_OK && (!l->dump || dump_to(l, step_of(l, live_of(l))))) {
        rc = compare_rest(l, err);
    }
    l->checked.not_done = 0; /* nodes that have not been computed yet */
    l->checked.why = NULL;
    return rc;
}

int lockstep_run(struct lockstep *l, struct gd_err *err)
{
    struct repl_work work;
    int rc = repl_wait_initial(l->call->repl, l->a, err);

    if (rc == GD_OK) {
        rc = repl_wait_initial(l->call->repl, l->b, err);
    }
    if (rc == GD_EINTR) {
        return rc;
    }
    repl_work_begin_count(&work, l->call, "lockstep", "steps", (uint64_t)l->steps);
    rc = rc == GD_OK ? compare_start(l, err) : rc;
    while (rc == GD_OK && l->ended == LOCKSTEP_GOES_ON) {
        rc = run_step(l, err);
        l->steps_done += rc == GD_OK && l->ended == LOCKSTEP_GOES_ON;
        if (!repl_work_at(&work, (uint64_t)l->steps_done)) {
            break;
        }
        if (l->ended == LOCKSTEP_GOES_ON && l->steps_done == l->steps) {
            l->ended = LOCKSTEP_STEPS;
        }
    }
    return repl_work_end(&work, rc, err);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes runs end where a step has to be dumped, and resumes what the user had asked for. */
#include <stdio.h>

#include "engine/ranks.h"
#include "repl/commands/files/dump_live.h"
#include "repl/core/repl_impl.h"

/* ---- before a run ---------------------------------------------------------------------------- */

/* The first step of the grammar after `step`; INT64_MAX: none. */
static int64_t step_after(const struct gd_steps *steps, int64_t step)
{
    int64_t next = steps->all && step < INT64_MAX ? step + 1 : INT64_MAX;

    for (uint32_t i = 0; !steps->all && step < INT64_MAX && i < steps->count; i++) {
        int64_t first = steps->range[i].first > step ? steps->range[i].first : step + 1;
        next = first <= steps->range[i].last && first < next ? first : next;
    }
    return next;
}

int64_t dump_live_ended(const struct gd_stop *at)
{
    return at->at_step_end ? at->step : at->step - 1;
}

/* A run from node to node cannot be shortened: it is interrupted at the end of the step, on all
 * ranks that move together. This is requested before the run starts, since a short step could end
 * first. step 0 cancels it. */
static bool hold_at(struct gd_session *session, enum gd_run_kind kind, int64_t step)
{
    const struct gd_ranks *ranks =
        gd_ranks_move_together(session, kind) ? gd_ranks_of(session) : NULL;
    int world = ranks ? gd_ranks_world_size(ranks) : 1;
    bool held = false;

    for (int rank = 0; rank < world; rank++) {
        struct gd_session *member = ranks ? gd_ranks_member(ranks, rank) : session;
        if (member && gd_session_is_live(member) &&
            (member->target->capabilities & GD_CAN_INTERRUPT_AT) &&
            gd_target_interrupt_at(member->target, step, NULL) == GD_OK) {
            held = held || member == session;
        }
    }
    return held;
}

static void remember_run(struct live_dump *d, const struct gd_session *session,
                         const struct gd_run *run)
{
    d->session = session->number;
    d->asked = *run;
    if (run->name != d->asked_name) { /* else this is the rest of that run */
        snprintf(d->asked_name, sizeof(d->asked_name), "%s", run->name ? run->name : "");
    }
    d->asked.name = d->asked_name;
    d->from = session->stop;
    d->behind = dump_live_ended(&session->stop);
    d->cut = 0;
    d->interrupted = false;
}

static void aim_run(struct repl *repl, struct gd_session *session, struct gd_run *run)
{
    struct live_dump *d = dump_live_find(repl);

    if (d && d->held) { /* of a run that did not start */
        hold_at(session, d->asked.kind, 0);
        d->held = false;
    }
    if (!d || !d->armed) {
        if (d) {
            dump_live_release(repl, d);
        }
        return;
    }
    remember_run(d, session, run);
    int64_t next = step_after(&d->steps, d->behind);
    if (next == INT64_MAX) {
        dump_live_release(repl, d);
        return;
    }
    dump_live_capture(repl, session, d, next);
    switch (run->kind) {
    case GD_RUN_NEXT:
    case GD_RUN_TO_NODE:
    case GD_RUN_FINISH:
        d->held = hold_at(session, run->kind, next);
        d->cut = d->held ? next : 0;
        return;
    case GD_RUN_STEP:
        if (run->count <= next - d->behind) {
            return;
        }
        d->asked_end = run->count > INT64_MAX - d->behind ? INT64_MAX : d->behind + run->count;
        break;
    case GD_RUN_CONTINUE: break;
    default: return;
    }
    run->kind = GD_RUN_STEP;
    run->count = next - d->behind;
    d->cut = next;
}

static bool is_passing(struct repl *repl, const struct gd_session *session)
{
    const struct live_dump *d = dump_live_find(repl);
    const struct gd_stop *at = &session->stop;

    if (!d || !d->armed || d->cut == 0 || d->interrupted || !at->at_step_end ||
        at->step != d->cut || at->reason != (d->held ? GD_STOP_INTERRUPT : GD_STOP_STEP)) {
        return false;
    }
    const struct gd_session *moved = gd_debugger_session(repl->debugger, d->session);
    const struct gd_ranks *ranks = gd_ranks_of(session);
    return moved == session || (ranks && moved && gd_ranks_of(moved) == ranks);
}

static void take_interrupt(struct repl *repl)
{
    struct live_dump *d = dump_live_find(repl);

    if (d) {
        d->interrupted = true;
    }
}

/* ---- after it -------------------------------------------------------------------------------- */

/* Dumps in a call of its own. An error ends the dump, not the training. */
static int dump_due(struct repl *repl, struct live_dump *d, struct gd_session *session)
{
    struct own_call own;
    struct gd_err err = {.text = ""};
    struct command_call *call = repl_begin_call(&own, repl, &cmd_dump, session);
    int rc = dump_live_step(call, d, &err);
    out_end(call->out, rc != GD_OK, NULL);
    if (rc == GD_EINTR) {
        repl_printf(repl, true, "warning: the dump of step %lld is incomplete: %s\n",
                    (long long)session->stop.step, err.text);
    } else if (rc != GD_OK) {
        repl_printf(repl, true, "warning: the dump ends here: %s\n", out_safe(call, err.text));
        dump_live_clear(d);
    }
    gd_arena_deinit(call->arena);
    return rc;
}

/* Nodes still to run of `next N`, which counts nodes that compute; at least one, as far as the
 * order is known. */
static int64_t nodes_left(const struct live_dump *d, const struct gd_session *session)
{
    uint32_t count = 0;
    const gd_node_id *node = gd_graph_execution(session->graph, &count);
    struct gd_node_info info, first;
    bool inside = gd_graph_node(session->graph, d->from.node, &first) && !d->from.at_step_end;
    int64_t whole = 0, rest = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(session->graph, node[i], &info) && info.order != GD_NO_ORDER &&
            info.kind != GD_NODE_PARAMETER && info.kind != GD_NODE_CONSTANT) {
            whole++;
            rest += inside && info.order > first.order;
        }
    }
    int64_t steps = session->stop.step - d->from.step; /* from the end of a step, or later */
    int64_t left = steps < INT32_MAX ? d->asked.count - rest - whole * steps : 1;
    return left < 1 ? 1 : left;
}

/* Resumes the rest of the user's run. */
static bool run_on(struct repl *repl, struct live_dump *d, const struct gd_run *asked, int64_t end,
                   struct gd_session *session)
{
    struct gd_run run = *asked;
    struct gd_err err;

    if (run.kind == GD_RUN_STEP) {
        run.count = end - session->stop.step;
    }
    aim_run(repl, session, &run);
    if (d->armed && asked->kind == GD_RUN_STEP) {
        d->asked_end = end;
    }
    if (gd_ranks_resume(session, &run, &err) == GD_OK) {
        return true;
    }
    repl_printf(repl, true, "warning: the training remains stopped after the dump: %s\n", err.text);
    return false;
}

/* Warns of steps that were passed: the training cannot stop there, or it ran without gradb's
 * command. */
static void warn_of_passed(struct repl *repl, struct live_dump *d, const struct gd_session *session)
{
    const struct gd_stop *at = &session->stop;
    int64_t last = dump_live_ended(at) - (at->at_step_end ? 1 : 0);
    int64_t first = step_after(&d->steps, d->behind);

    if (session->number != d->session) {
        return;
    }
    if (first <= last) {
        int64_t more = step_after(&d->steps, first);
        repl_printf(repl, true,
                    "warning: step %lld%s not dumped: the training ran past %s end without "
                    "stopping; use step or continue\n",
                    (long long)first, more <= last ? " and others are" : " is",
                    more <= last ? "their" : "its");
    }
    d->behind = dump_live_ended(at);
}

static bool dump_at_stop(struct repl *repl, struct gd_session *session)
{
    struct live_dump *d = dump_live_find(repl);

    if (!d || !d->armed || session != repl->debugger->current) {
        return false;
    }
    warn_of_passed(repl, d, session);
    bool passing = is_passing(repl, session);
    d->held = false; /* a stop that is reported cancels it */
    if (!session->stop.at_step_end || !gd_steps_have(&d->steps, session->stop.step) ||
        (d->done_session == session->number && d->done_sequence == session->stop.sequence)) {
        return false;
    }
    struct gd_run asked = d->asked;
    int64_t end = d->asked_end;
    if (asked.kind == GD_RUN_NEXT) {
        asked.count = nodes_left(d, session);
    }
    int rc = dump_due(repl, d, session);
    if (!passing || session->state != GD_STOPPED) {
        return false;
    }
    if (rc == GD_EINTR || repl->end.quit || repl->front.left) {
        repl_report_stop(repl, session);
        return false;
    }
    return run_on(repl, d, &asked, end, session);
}

const struct repl_dump_ops dump_live_ops = {.aim = aim_run,
                                            .is_passing = is_passing,
                                            .at_stop = dump_at_stop,
                                            .graph_grew = dump_live_graph_grew,
                                            .interrupted = take_interrupt};

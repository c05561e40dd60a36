// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A process's position, and whether it should continue. cur_step is not our counter: from 1.6 on it
 * advances after the wait at the end of a step, in earlier releases before it; a GPU process also
 * stops inside a step, and does not say which kind of stop it is.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/ms/ms_target_impl.h"

/* ---- position ------------------------------------------------------------------------------ */

static void copy_name(char *out, size_t size, const char *name)
{
    size_t len = strnlen(name, size - 1);
    memcpy(out, name, len);
    out[len] = '\0';
}

/* The part after the device. Some clients always send the same, or nothing, which means nothing. */
static void note_graph(struct ms_position *at, const struct gd_ms_metadata *metadata)
{
    const char *id = strchr(metadata->device_name, ':');
    if (!id || !id[1]) {
        return;
    }
    at->tells_graph = at->tells_graph || (at->graph_id[0] && strcmp(at->graph_id, id + 1) != 0);
    copy_name(at->graph_id, sizeof(at->graph_id), id + 1);
}

uint32_t ms_current_graph(const struct gd_ms_target *target)
{
    const struct gd_graph *graph = target->base.session->graph;
    struct gd_graph_counts counts;
    if (!target->at.tells_graph) {
        return GD_NO_SUBGRAPH;
    }
    gd_graph_counts(graph, &counts);
    for (uint32_t i = 0; i < counts.subgraphs; i++) {
        const char *name = gd_graph_subgraph_name(graph, i), *end = strrchr(name, '_');
        if (strcmp(end ? end + 1 : name, target->at.graph_id) == 0) {
            return i;
        }
    }
    return GD_NO_SUBGRAPH;
}

void ms_position_first(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    struct ms_position *at = &target->at;
    note_graph(at, metadata);
    at->counts_after = target->version.counts_after_wait;
    at->cur_step = metadata->cur_step;
    copy_name(at->cur_node, sizeof(at->cur_node), metadata->cur_node);
    /* Not 0: we connected late, after a restart of gradb or a lost connection. */
    at->step = metadata->cur_step > 0 ? metadata->cur_step + (at->counts_after ? 1 : 0) : 0;
    at->at_end = true;
}

/* Ascend stops only at the end of a step, so each stop is at least one step further. */
static void update_ascend(struct ms_position *at, const struct gd_ms_metadata *metadata)
{
    int64_t delta = (int64_t)metadata->cur_step - at->cur_step;
    at->step += delta > 1 ? delta : 1;
    at->at_end = true;
}

/* Inside a step, a list of hits belongs to the operator that has just run; at the end of a step, to
 * what was not checked before. */
static bool hit_by_operator(const struct ms_run *run, const struct gd_ms_metadata *metadata)
{
    return run->any_hits && !run->end_hits && !run->other_hits &&
           strcmp(run->hit_name, metadata->cur_node) == 0;
}

/* GPU, counter advanced after the wait: both the end and the middle of step n report n - 1. */
static void update_after(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    struct ms_position *at = &target->at;
    const struct ms_run *run = &target->run;
    if (run->sent == MS_SENT_STEP) {
        at->at_end = !hit_by_operator(run, metadata);
    } else {
        bool reached = run->sent == MS_SENT_NEXT || strcmp(metadata->cur_node, run->sent_name) == 0;
        at->at_end = !reached && !hit_by_operator(run, metadata);
    }
    int64_t step = at->base + metadata->cur_step + 1;
    if (step < at->step) { /* the counter was reset */
        at->base += at->step - step + (at->at_end ? 1 : 0);
        step = at->base + metadata->cur_step + 1;
    }
    at->step = step;
}

/* GPU, counter advanced before the wait: the end of step n reports n, the middle n - 1. */
static void update_before(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    struct ms_position *at = &target->at;
    const struct ms_run *run = &target->run;
    bool grown = metadata->cur_step > at->cur_step;
    bool reached = run->sent == MS_SENT_NEXT || strcmp(metadata->cur_node, run->sent_name) == 0;
    if (run->sent == MS_SENT_STEP || target->version.stops_twice) {
        at->at_end = grown;
    } else { /* from 1.3 on, a node stop at the last kernel means the end of the step */
        at->at_end = grown && !reached && !hit_by_operator(run, metadata);
    }
    int64_t step = at->base + metadata->cur_step + (at->at_end ? 0 : 1);
    if (step < at->step) {
        at->base += at->step - step;
        step = at->step;
    }
    at->step = step;
}

/* From 1.6 on, a process without the actor runtime counts as before. It shows at a certain end of
 * step, reached from a certain place; and inside the following step, if the counter has not
 * advanced since: steps are then counted from what was reported there. */
static void notice_counter(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    struct ms_position *at = &target->at;
    const struct ms_run *run = &target->run;
    if (at->counts_after && at->at_end && run->sent != MS_SENT_STEP &&
        at->step == at->base + at->cur_step + 1 && metadata->cur_step == at->cur_step) {
        at->counts_after = false;
        at->base++; /* the end was reported as that of the current step */
    }
    if (!at->counts_after || run->sent != MS_SENT_STEP || hit_by_operator(run, metadata) ||
        at->base) {
        return;
    }
    int64_t ended = at->at_end ? at->step + 1 : at->step;
    if (metadata->cur_step == ended) {
        at->counts_after = false;
    }
}

/* A graph compiled later is waited for before its first step. No step has ended here, but one may
 * have ended on the way in releases that stop only at the start of a step. */
static void update_between(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    struct ms_position *at = &target->at;
    int64_t done = ms_steps_done(target);
    if (target->is_gpu && at->base + metadata->cur_step > done) {
        done = at->base + metadata->cur_step;
    }
    at->step = done;
    at->at_end = true;
}

void ms_position_update(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    struct ms_position *at = &target->at;
    if (target->new_graph) {
        update_between(target, metadata);
    } else if (!target->is_gpu) {
        update_ascend(at, metadata);
    } else {
        notice_counter(target, metadata);
        if (at->counts_after) {
            update_after(target, metadata);
        } else {
            update_before(target, metadata);
        }
    }
    target->moves++;
    note_graph(at, metadata);
    at->cur_step = metadata->cur_step;
    copy_name(at->cur_node, sizeof(at->cur_node), metadata->cur_node);
}

int64_t ms_position_last(const struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    const struct ms_position *at = &target->at;
    int64_t counted = at->cur_step + (at->counts_after && at->step > 0 ? 1 : 0);
    int64_t last = at->step + metadata->cur_step - counted;
    if (target->is_gpu) {
        last = at->base + metadata->cur_step;
    }
    return last > at->step ? last : at->step;
}

int64_t ms_steps_done(const struct gd_ms_target *target)
{
    return target->at.at_end ? target->at.step : target->at.step - 1;
}

/* ---- the run ------------------------------------------------------------------------------- */

static bool is_operator(const struct gd_node_info *info)
{
    return strcmp(info->type, "Parameter") != 0 && strcmp(info->type, "Const") != 0;
}

static int begin_to_node(struct gd_ms_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct gd_node_info info;
    struct ms_run *mine = &target->run;
    if (run->node != GD_NO_NODE && gd_graph_node(target->base.session->graph, run->node, &info)) {
        if (!is_operator(&info)) {
            return gd_fail(err, GD_EINVAL, "%s is not an operator: it does not execute", info.name);
        }
        mine->is_kernel = true;
        mine->node = run->node;
        copy_name(mine->name, sizeof(mine->name), info.wire_name);
    } else {
        copy_name(mine->name, sizeof(mine->name), run->name ? run->name : "");
    }
    return GD_OK;
}

int ms_run_begin(struct gd_ms_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct ms_run *mine = &target->run;
    bool by_node = run->kind == GD_RUN_NEXT || run->kind == GD_RUN_TO_NODE;
    if (run->kind == GD_RUN_FINISH) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a MindSpore process does not report its phases: use step, or run-to NODE");
    }
    if (by_node && !target->is_gpu) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a MindSpore process on %s stops only at the end of a step: use step",
                       target->base.session->peer.device[0] ? "Ascend" : "this device");
    }
    struct ms_run before = *mine;
    memset(mine, 0, sizeof(*mine));
    mine->node = GD_NO_NODE;
    mine->kind = run->kind;
    mine->left = run->count > 0 ? run->count : 1;
    mine->start_step = ms_steps_done(target);
    if (run->kind == GD_RUN_TO_NODE) {
        int rc = begin_to_node(target, run, err);
        if (rc != GD_OK) {
            *mine = before;
            return rc;
        }
    }
    return GD_OK;
}

static bool at_breakpoint(const struct gd_ms_target *target)
{
    if (!target->is_gpu || target->at.at_end) {
        return false;
    }
    for (size_t i = 0; i < target->breakpoint_count; i++) {
        if (ms_is_node(target, target->break_nodes[i], target->breakpoints[i],
                       target->at.cur_node)) {
            return true;
        }
    }
    return false;
}

/* A name unknown to the graph may be a scope: stops at its first kernel. */
static bool at_target_node(const struct gd_ms_target *target)
{
    const struct ms_run *run = &target->run;
    size_t len = strlen(run->name);
    if (target->at.at_end && run->sent != MS_SENT_NAMED) {
        return false;
    }
    if (ms_is_node(target, run->node, run->name, target->at.cur_node)) {
        return true;
    }
    return !run->is_kernel && len && strncmp(target->at.cur_node, run->name, len) == 0 &&
           (target->at.cur_node[len] == '/' || run->name[len - 1] == '/');
}

static void tell_what_is_left(struct gd_ms_target *target, const char *what)
{
    int64_t left = target->run.left - (ms_steps_done(target) - target->run.start_step);
    if (target->run.kind == GD_RUN_STEP && left > 0) {
        ms_warn(target, "%s ended the run with %" PRId64 " of %" PRId64 " steps left", what, left,
                target->run.left);
    }
}

static bool run_is_done(struct gd_ms_target *target, enum gd_stop_reason *reason)
{
    struct ms_run *run = &target->run;
    switch (run->kind) {
    case GD_RUN_STEP:
        *reason = GD_STOP_STEP;
        return ms_steps_done(target) - run->start_step >= run->left;
    case GD_RUN_NEXT: *reason = GD_STOP_NODE; return --run->left <= 0;
    case GD_RUN_TO_NODE:
        *reason = GD_STOP_NODE;
        if (at_target_node(target)) {
            return true;
        }
        /* The rest of a step and one complete step have passed without it. */
        *reason = GD_STOP_STEP;
        if (ms_steps_done(target) - run->start_step < 2) {
            return false;
        }
        ms_warn(target, "%s did not execute in a whole step", run->name);
        return true;
    default: return false;
    }
}

bool ms_run_decide(struct gd_ms_target *target, enum gd_stop_reason *reason)
{
    if (target->run.hit && target->debugger->settings.stop_on_hit) {
        *reason = GD_STOP_HIT;
        tell_what_is_left(target, "a watchpoint");
        return true;
    }
    bool steps_only = target->new_graph && target->run.kind != GD_RUN_STEP; /* no node ran */
    if (!steps_only && run_is_done(target, reason)) {
        return true;
    }
    if (at_breakpoint(target)) {
        *reason = GD_STOP_BREAKPOINT;
        return true;
    }
    if (target->want_interrupt) {
        *reason = GD_STOP_INTERRUPT;
        tell_what_is_left(target, "the interrupt");
        return true;
    }
    return false;
}

/* The only name at which the process must stop; NULL: it must be stepped node by node; "": only
 * steps matter. */
static const char *only_name(const struct gd_ms_target *target)
{
    const struct ms_run *run = &target->run;
    bool to_node = run->kind == GD_RUN_TO_NODE;
    if (!target->is_gpu) {
        return "";
    }
    if (run->kind == GD_RUN_NEXT || (to_node && !run->is_kernel)) {
        return NULL;
    }
    if (!target->breakpoint_count) {
        return to_node ? run->name : "";
    }
    if (target->breakpoint_count == 1 &&
        (!to_node || strcmp(run->name, target->breakpoints[0]) == 0)) {
        return target->breakpoints[0];
    }
    return NULL;
}

int ms_run_write(struct gd_ms_target *target, struct gd_buf *out)
{
    struct ms_run *run = &target->run;
    const char *name = only_name(target);
    run->hit = run->any_hits = run->end_hits = run->other_hits = false;
    run->hit_name[0] = '\0';
    run->hit_text[0] = '\0';
    run->sent_name[0] = '\0';
    if (name && !*name) {
        run->sent = MS_SENT_STEP;
        return gd_ms_write_step(out);
    }
    run->sent = name ? MS_SENT_NAMED : MS_SENT_NEXT;
    if (name) {
        copy_name(run->sent_name, sizeof(run->sent_name), name);
    }
    return gd_ms_write_node(out, run->sent_name);
}

/* ---- breakpoints --------------------------------------------------------------------------- */

void ms_run_free(struct gd_ms_target *target)
{
    for (size_t i = 0; i < target->breakpoint_count; i++) {
        free(target->breakpoints[i]);
    }
    free(target->breakpoints);
    free(target->break_nodes);
    target->break_nodes = NULL;
    target->breakpoints = NULL;
    target->breakpoint_count = 0;
}

int ms_run_set_breakpoints(struct gd_target *base, const gd_node_id *nodes, size_t count,
                           struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    ms_run_free(target);
    if (!count) {
        return GD_OK;
    }
    if (!target->is_gpu) {
        return gd_fail(
            err, GD_EUNSUPPORTED,
            "a MindSpore process on Ascend stops only at the end of a step, not at nodes");
    }
    target->breakpoints = calloc(count, sizeof(*target->breakpoints));
    target->break_nodes = calloc(count, sizeof(*target->break_nodes));
    if (!target->breakpoints || !target->break_nodes) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu breakpoints", count);
    }
    for (size_t i = 0; i < count; i++) {
        struct gd_node_info info;
        if (!gd_graph_node(base->session->graph, nodes[i], &info) || !is_operator(&info)) {
            continue;
        }
        char *name = strdup(info.wire_name);
        if (!name) {
            return gd_fail(err, GD_ENOMEM, "out of memory for %zu breakpoints", count);
        }
        target->break_nodes[target->breakpoint_count] = nodes[i];
        target->breakpoints[target->breakpoint_count++] = name;
    }
    return GD_OK;
}

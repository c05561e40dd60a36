// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/ms/ms_target.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/progress.h"
#include "mindspore/ms_graph.h"
#include "proto/ms/ms_target_impl.h"

#define SILENT_PERIODS 3 /* missed heartbeats before it is reported */
#define MIN_PERIOD     5 /* a busy process may miss shorter ones */
#define MAX_PERIOD     3600

static struct gd_ms_target *from_base(struct gd_target *base)
{
    return (struct gd_ms_target *)base;
}

static double read_clock(const struct gd_ms_target *target)
{
    return target->debugger->now ? target->debugger->now(target->debugger->now_ctx) : 0;
}

void ms_warn(struct gd_ms_target *target, const char *format, ...)
{
    char text[GD_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    gd_session_on_warning(target->base.session, text);
}

gd_node_id ms_find_node(const struct gd_ms_target *target, const char *name)
{
    if (!*name) {
        return GD_NO_NODE;
    }
    /* A parameter is returned under the place in the graph under which it was watched. */
    const struct gd_graph *graph = target->base.session->graph;
    size_t len = strlen(name);
    gd_node_id node = gd_graph_lookup(graph, name, len);
    if (node == GD_NO_NODE) {
        node = gd_graph_lookup_wire(graph, name, len);
    }
    uint32_t subgraph = node == GD_NO_NODE ? ms_current_graph(target) : GD_NO_SUBGRAPH;
    return subgraph == GD_NO_SUBGRAPH ? node : gd_graph_lookup_in(graph, subgraph, name, len);
}

bool ms_is_node(const struct gd_ms_target *target, gd_node_id node, const char *wire,
                const char *told)
{
    struct gd_node_info info;
    uint32_t subgraph = ms_current_graph(target);
    return strcmp(wire, told) == 0 &&
           (subgraph == GD_NO_SUBGRAPH ||
            !gd_graph_node(target->base.session->graph, node, &info) || info.subgraph == subgraph ||
            gd_graph_lookup_in(target->base.session->graph, subgraph, told, strlen(told)) ==
                GD_NO_NODE);
}

void ms_tell_shared(struct gd_ms_target *target, const char *name)
{
    if (target->told_shared) {
        return;
    }
    target->told_shared = true;
    ms_warn(target,
            "several graphs have a node %s: MindSpore does not say which one it means, and keeps "
            "one value for all, that of the graph that ran last",
            name);
}

/* Where the process stopped; of several graphs, the one in which it was asked to stop. */
gd_node_id ms_stopped_node(const struct gd_ms_target *target)
{
    const struct ms_run *run = &target->run;
    const char *cur = target->at.cur_node;
    gd_node_id node = ms_find_node(target, cur);
    if (node == GD_NO_NODE && run->kind == GD_RUN_TO_NODE && strcmp(run->name, cur) == 0) {
        node = run->node;
    }
    for (size_t i = 0; node == GD_NO_NODE && i < target->breakpoint_count; i++) {
        if (strcmp(target->breakpoints[i], cur) == 0) {
            node = target->break_nodes[i];
        }
    }
    return node;
}

/* ---- stops --------------------------------------------------------------------------------- */

static void stop_at(struct gd_ms_target *target, enum gd_stop_reason reason)
{
    struct gd_stop stop;
    memset(&stop, 0, sizeof(stop));
    target->phase = MS_SUSPENDED;
    target->reason = reason;
    target->want_interrupt = false;
    stop.reason = reason;
    stop.step = target->at.step;
    stop.at_step_end = target->at.at_end;
    stop.node = GD_NO_NODE;
    if (reason == GD_STOP_HIT) {
        snprintf(stop.text, sizeof(stop.text), "%s", target->run.hit_text);
    }
    if (target->is_gpu && !target->at.at_end) {
        stop.node = ms_stopped_node(target);
        if (stop.node != ms_find_node(target, target->at.cur_node)) {
            ms_tell_shared(target, target->at.cur_node);
        }
        snprintf(stop.node_name, sizeof(stop.node_name), "%s",
                 stop.node == GD_NO_NODE ? target->at.cur_node
                                         : gd_graph_name(target->base.session->graph, stop.node));
    }
    gd_session_on_stopped(target->base.session, &stop);
}

static void stop_first(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    ms_position_first(target, metadata);
    if (target->mismatch) {
        ms_warn(target, "no graph will arrive: `continue` lets it train, `kill` ends it");
    } else if (!target->got_graph) {
        ms_warn(target, "it is waiting without having sent a graph, because it began before gradb "
                        "was listening: `continue` and `kill` work, and a graph may arrive later");
    }
    stop_at(target, GD_STOP_CONNECTED);
}

void ms_arrived(struct gd_ms_target *target)
{
    enum gd_stop_reason reason;
    if (target->ending) {
        return;
    }
    if (ms_run_decide(target, &reason)) {
        stop_at(target, reason);
    } else {
        target->phase = MS_SUSPENDED;
        target->want_run = true;
    }
}

static void finish_recheck(struct gd_ms_target *target)
{
    target->phase = MS_SUSPENDED;
    /* A recheck before a run is like any other check: its hits may only need to be reported. */
    if (target->recheck_hit && (target->recheck_asked || target->debugger->settings.stop_on_hit)) {
        target->want_run = false;
        stop_at(target, GD_STOP_HIT);
    } else if (target->recheck_asked) {
        stop_at(target, target->reason);
    }
    target->recheck_asked = target->recheck_hit = false;
}

/* ---- the wait loop ------------------------------------------------------------------------- */

static void answer_request(struct gd_ms_target *target, const struct gd_buf *reply)
{
    void *call = target->held;
    target->held = NULL;
    target->io->reply(call, gd_buf_text(reply), reply->len);
}

static int write_command(struct gd_ms_target *target, struct gd_buf *out)
{
    struct ms_command *command = target->commands;
    int rc = gd_buf_add(out, command->data, command->len);
    target->commands = command->next;
    if (!target->commands) {
        target->commands_end = &target->commands;
    }
    free(command);
    return rc;
}

static int write_next(struct gd_ms_target *target, struct gd_buf *out)
{
    if (target->want_exit) {
        target->phase = MS_EXITING;
        return gd_ms_write_exit(out);
    }
    if (target->commands) {
        return write_command(target, out);
    }
    if (target->views) {
        return ms_view_write(target, out);
    }
    ms_plan_capture(target);
    if (target->commands) {
        return write_command(target, out);
    }
    if (target->want_recheck) {
        target->want_recheck = target->init_watch = false;
        target->recheck_hit = false;
        target->phase = MS_RECHECKING;
        return gd_ms_write_recheck(out);
    }
    target->want_run = false;
    target->phase = MS_RUNNING;
    return ms_run_write(target, out);
}

/* Sends the next command if there is one and the process is waiting. */
void ms_pump(struct gd_ms_target *target)
{
    bool any = target->want_exit || target->commands || target->views || target->want_recheck ||
               target->want_run;
    if (!target->held || !any || target->ending) {
        return;
    }
    struct gd_buf reply = GD_BUF_INIT(GD_MS_MAX_REPLY);
    if (write_next(target, &reply) != GD_OK) {
        gd_buf_clear(&reply); /* out of memory: an empty reply makes it ask again */
    }
    answer_request(target, &reply);
    gd_buf_deinit(&reply);
}

static void note_backend(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    if (!metadata->backend[0]) {
        return;
    }
    target->is_gpu = strcasecmp(metadata->backend, "GPU") == 0;
    if (target->is_gpu) {
        target->base.capabilities |= GD_CAN_NEXT;
    }
}

static void heard_from(struct gd_ms_target *target, const char *call)
{
    target->heard = read_clock(target);
    target->last_call = call;
    if (target->silent) {
        ms_warn(target, "it is responding again");
    }
    target->silent = false;
}

void gd_ms_target_on_wait(struct gd_ms_target *target, void *call,
                          const struct gd_ms_metadata *metadata)
{
    heard_from(target, "WaitCMD");
    note_backend(target, metadata);
    if (target->held) { /* the old call is dead on its side */
        struct gd_buf nothing = GD_BUF_INIT(16);
        answer_request(target, &nothing);
    }
    target->held = call;
    target->held_since = target->heard;
    target->waits++;
    /* An answer sent below may resume the process, but this call belongs to the suspension
     * before. */
    enum ms_phase phase = target->phase;
    ms_view_unanswered(target);
    ms_watch_report(target);
    switch (phase) {
    case MS_FRESH: stop_first(target, metadata); break;
    case MS_RUNNING:
        ms_position_update(target, metadata);
        gd_session_on_step(target->base.session, target->at.step);
        ms_watch_check_previous(target);
        if (target->new_graph || !ms_plan_begin(target)) {
            ms_arrived(target);
        }
        target->new_graph = false;
        break;
    case MS_RECHECKING: finish_recheck(target); break;
    case MS_SUSPENDED: break;                         /* the same suspension continues */
    case MS_EXITING: target->want_exit = true; break; /* it had to finish a step first */
    }
    ms_pump(target);
}

void gd_ms_target_on_wait_closed(struct gd_ms_target *target, const void *call)
{
    if (target->held == call) {
        target->held = NULL;
    }
}

void gd_ms_target_tick(struct gd_ms_target *target)
{
    double now = read_clock(target);
    double pace = target->debugger->settings.keepalive;
    if (target->held && pace > 0 && now - target->held_since >= pace) {
        struct gd_buf nothing = GD_BUF_INIT(16);
        answer_request(target, &nothing); /* it asks again immediately */
        return;
    }
    /* The heartbeat thread may die alone, so silence counts only if nothing else arrived. */
    int32_t period = target->heartbeat_period < MIN_PERIOD ? MIN_PERIOD : target->heartbeat_period;
    double limit = SILENT_PERIODS * (period + 0.5);
    if (!target->heartbeat_period || target->held || target->silent ||
        now - target->heard < limit || target->phase == MS_EXITING) {
        return;
    }
    target->silent = true;
    ms_warn(target, "not responding: no heartbeat for %.0f s; what is already known stays readable",
            now - target->heard);
}

/* ---- messages from the service ------------------------------------------------------------- */

void gd_ms_target_on_metadata(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    heard_from(target, "SendMetadata");
    note_backend(target, metadata);
    target->graphs_expected = metadata->graph_num;
    if (!target->version_text[0] && metadata->ms_version[0]) {
        snprintf(target->version_text, sizeof(target->version_text), "%s", metadata->ms_version);
        gd_ms_version_parse(metadata->ms_version, &target->version);
    }
}

void gd_ms_target_on_mismatch(struct gd_ms_target *target)
{
    target->mismatch = true;
}

int gd_ms_target_graph_begin(struct gd_ms_target *target, const uint8_t *data, size_t len,
                             struct gd_ms_graph_load **ret, struct gd_err *err)
{
    heard_from(target, "SendGraph");
    target->new_graph = target->phase == MS_RUNNING;
    return gd_ms_graph_begin(target->base.session->graph, data, len, ret, err);
}

static void tell_flaws(struct gd_ms_target *target, const struct gd_ms_graph_info *info)
{
    struct gd_graph_counts counts;
    gd_graph_counts(target->base.session->graph, &counts);
    if (info->broken || counts.missing_inputs) {
        ms_warn(
            target,
            "graph %s: %" PRIu64
            " inputs refer to missing nodes, %u details are malformed; everything else was loaded",
            info->name, counts.missing_inputs, info->broken);
    }
}

void gd_ms_target_graph_end(struct gd_ms_target *target, struct gd_ms_graph_load *load, size_t len,
                            const struct gd_err *err)
{
    if (err) {
        target->failures++;
        ms_warn(target, "rejected a graph of %zu bytes: %s", len, err->text);
    } else {
        tell_flaws(target, gd_ms_graph_info(load));
    }
    gd_ms_graph_end(load);
    if (err && err->code == GD_EPROTO) {
        return;
    }
    target->got_graph = true;
    target->graphs++;
    gd_session_on_graph(target->base.session);
}

void gd_ms_target_graph_stopped(struct gd_ms_target *target, struct gd_ms_graph_load *load)
{
    struct gd_progress_info at = {.unit = "nodes"};
    char amount[128];
    struct gd_err err = {0};
    gd_ms_graph_at(load, &at.done, &at.total);
    gd_progress_amount(&at, amount, sizeof(amount));
    ms_warn(target, "graph %s was not loaded: interrupted %s%s; `refresh graph` loads it",
            gd_ms_graph_info(load)->name, at.total ? "after " : "while it arrived",
            at.total ? amount : "");
    if (gd_ms_graph_drop(load, &err) != GD_OK) {
        ms_warn(target, "%s", err.text);
    }
    gd_ms_graph_end(load);
    target->got_graph = true; /* it has sent one */
    gd_session_on_graph(target->base.session);
}

void gd_ms_target_on_graph(struct gd_ms_target *target, const uint8_t *data, size_t len)
{
    struct gd_ms_graph_load *load = NULL;
    struct gd_err err;
    bool done = false;
    int rc = gd_ms_target_graph_begin(target, data, len, &load, &err);
    while (rc == GD_OK && !done) {
        rc = gd_ms_graph_step(load, UINT32_MAX, &done, &err);
    }
    gd_ms_target_graph_end(target, load, len, rc != GD_OK ? &err : NULL);
}

void gd_ms_target_on_heartbeat(struct gd_ms_target *target, int32_t period)
{
    heard_from(target, "SendHeartbeat");
    period = period < 1 ? MIN_PERIOD : period;
    target->heartbeat_period = period > MAX_PERIOD ? MAX_PERIOD : period;
}

static void end_requests(struct gd_ms_target *target, const char *why)
{
    ms_watch_report(target);
    target->ending = true;
    ms_view_fail_all(target, GD_ELOST, why);
    ms_plan_free(target);
    void *call = target->held;
    target->held = NULL;
    if (call) {
        target->io->reply(call, NULL, 0);
    }
}

void gd_ms_target_on_done(struct gd_ms_target *target, const struct gd_ms_metadata *metadata)
{
    target->owner = NULL;
    if (target->phase == MS_RUNNING || target->phase == MS_EXITING) {
        gd_session_on_step(target->base.session, ms_position_last(target, metadata));
    }
    end_requests(target, "the training has ended");
    gd_session_on_finished(target->base.session,
                           target->phase == MS_EXITING ? "ended on request" : "");
}

void gd_ms_target_on_closed(struct gd_ms_target *target)
{
    target->held = NULL;
    target->owner = NULL;
    end_requests(target, "the training process closed its connection");
    if (target->phase == MS_EXITING) {
        gd_session_on_finished(target->base.session, "ended on request");
    } else {
        gd_session_on_lost(target->base.session,
                           "it closed its connection without reporting the end of the training");
    }
}

/* ---- requests of the user ------------------------------------------------------------------ */

static int resume_run(struct gd_target *base, const struct gd_run *run, struct gd_err *err)
{
    struct gd_ms_target *target = from_base(base);
    if (target->want_run || target->want_exit || target->phase != MS_SUSPENDED) {
        return gd_fail(err, GD_ESTATE, "it is already running");
    }
    if (run->kind == GD_RUN_RECHECK) {
        if (!target->watches) {
            return gd_fail(err, GD_ESTATE, "there are no watchpoints to check again");
        }
        target->want_recheck = target->recheck_asked = true;
    } else {
        int rc = ms_run_begin(target, run, err);
        if (rc != GD_OK) {
            return rc;
        }
        target->want_run = true;
        /* Initial weights can be checked only now, and only by a recheck. */
        target->want_recheck = target->init_watch && ms_steps_done(target) <= 0;
    }
    gd_session_on_running(base->session);
    ms_pump(target);
    return GD_OK;
}

static int interrupt_run(struct gd_target *base, struct gd_err *err)
{
    struct gd_ms_target *target = from_base(base);
    (void)err;
    if (!target->want_interrupt && !target->is_gpu) {
        ms_warn(target, "will stop at the end of step %" PRId64, ms_steps_done(target) + 1);
    }
    target->want_interrupt = true;
    return GD_OK;
}

static int kill_process(struct gd_target *base, struct gd_err *err)
{
    struct gd_ms_target *target = from_base(base);
    (void)err;
    target->want_exit = true;
    if (!target->at.at_end) {
        ms_warn(target, "it will finish its step first, and end at the start of the next");
    }
    ms_pump(target);
    return GD_OK;
}

static int detach_target(struct gd_target *base, struct gd_err *err)
{
    struct gd_ms_target *target = from_base(base);
    (void)err;
    target->io->gone(target->owner, true, target->next_client_id - 1);
    target->owner = NULL;
    end_requests(target, "it was detached"); /* it asks again, and the service resumes it */
    gd_session_on_finished(base->session, "detached");
    return GD_OK;
}

static int take_graphs(struct gd_target *base, struct gd_err *err)
{
    struct gd_ms_target *target = from_base(base);
    if (!target->owner || !target->io->take_graphs) {
        return gd_fail(err, GD_ESTATE, "the training process is gone");
    }
    return target->io->take_graphs(target->owner, err);
}

struct facts {
    void (*fact)(void *ctx, const char *name, const char *value);
    void *ctx;
};

__attribute__((format(printf, 3, 4))) static void
tell_fact(const struct facts *facts, const char *name, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    facts->fact(facts->ctx, name, text);
}

static const char *phase_text(const struct gd_ms_target *target)
{
    static const char *const text[] = {
        [MS_FRESH] = "starting",      [MS_SUSPENDED] = "waiting for a command",
        [MS_RUNNING] = "running",     [MS_RECHECKING] = "checking watchpoints again",
        [MS_EXITING] = "told to end",
    };
    return target->silent ? "not responding" : text[target->phase];
}

static void describe_target(struct gd_target *base,
                            void (*fact)(void *ctx, const char *name, const char *value), void *ctx)
{
    struct gd_ms_target *target = from_base(base);
    struct facts facts = {fact, ctx};
    tell_fact(&facts, "protocol", "debugger.EventListener");
    tell_fact(&facts, "version", "%s", target->version_text[0] ? target->version_text : "unknown");
    tell_fact(&facts, "device", "%s", target->device);
    tell_fact(&facts, "process", "%s", phase_text(target));
    tell_fact(&facts, "own step count", "%" PRId32, target->at.cur_step);
    if (target->at.cur_node[0]) {
        tell_fact(&facts, "last kernel", "%s", target->at.cur_node);
    }
    if (target->graphs_expected) {
        tell_fact(&facts, "graphs announced", "%" PRId32, target->graphs_expected);
    }
    if (target->heartbeat_period) {
        tell_fact(&facts, "heartbeat", "every %" PRId32 " s", target->heartbeat_period);
    }
    tell_fact(&facts, "last call", "%s", target->last_call ? target->last_call : "none");
    tell_fact(&facts, "waits", "%" PRIu64, target->waits);
    tell_fact(&facts, "views", "%" PRIu64, target->views_sent);
    tell_fact(&facts, "hits received", "%" PRIu64, target->hits_seen);
    tell_fact(&facts, "refused messages", "%" PRIu64, target->failures);
    if (target->version.gpu_lacks_previous && target->is_gpu) {
        tell_fact(&facts, "change conditions",
                  "evaluated by gradb: the process keeps no previous values");
    }
}

static void destroy_target(struct gd_target *base)
{
    struct gd_ms_target *target = from_base(base);
    end_requests(target, "the session is gone");
    if (target->owner) {
        target->io->gone(target->owner, false, 0);
    }
    for (struct ms_command *command = target->commands; command;) {
        struct ms_command *next = command->next;
        free(command);
        command = next;
    }
    ms_plan_free(target);
    ms_watch_free(target);
    ms_run_free(target);
    free(target->ran);
    free(target);
}

static const struct gd_target_ops ops = {
    .kind = "mindspore",
    .resume = resume_run,
    .interrupt = interrupt_run,
    .set_breakpoints = ms_run_set_breakpoints,
    .fetch = ms_view_fetch,
    .stats = ms_view_stats,
    .watch = ms_watch_set,
    .unwatch = ms_watch_unset,
    .watch_plan = ms_plan_set,
    .watch_costs = ms_plan_costs,
    .take_graphs = take_graphs,
    .detach = detach_target,
    .kill = kill_process,
    .describe = describe_target,
    .destroy = destroy_target,
};

/* ---- creation ------------------------------------------------------------------------------ */

static void introduce_peer(const struct gd_ms_target *target, const char *peer,
                           const struct gd_ms_metadata *first, struct gd_peer *ret)
{
    memset(ret, 0, sizeof(*ret));
    /* No message contains the rank; processes on one host differ by device. */
    long device = strtol(first->device_name, NULL, 10);
    ret->rank = device > 0 && device < INT32_MAX ? (int)device : 0;
    snprintf(ret->framework, sizeof(ret->framework), "MindSpore");
    snprintf(ret->version, sizeof(ret->version), "%s", target->version_text);
    snprintf(ret->device, sizeof(ret->device), "%.63s", target->device);
    snprintf(ret->address, sizeof(ret->address), "%s", peer);
    ret->world_size = 1;
}

int gd_ms_target_create(struct gd_debugger *debugger, const struct gd_ms_io *io, void *owner,
                        const char *peer, const struct gd_ms_metadata *first,
                        struct gd_ms_target **ret, struct gd_err *err)
{
    struct gd_ms_target *target = calloc(1, sizeof(*target));
    struct gd_session *session;
    struct gd_peer told;
    if (!target) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a session");
    }
    target->base.ops = &ops;
    target->base.capabilities = GD_CAN_STEP | GD_CAN_INTERRUPT | GD_CAN_FETCH | GD_CAN_STATS |
                                GD_CAN_PREVIOUS | GD_CAN_DETACH | GD_CAN_KILL |
                                GD_CAN_WATCH_REMOTE | GD_CAN_WATCH | GD_CAN_WATCH_BINS;
    target->debugger = debugger;
    target->io = io;
    target->owner = owner;
    target->commands_end = &target->commands;
    target->views_end = &target->views;
    target->next_client_id = 1;
    target->heard = read_clock(target);
    target->graphs_expected = first->graph_num;
    size_t id_len = strcspn(first->device_name, ":");
    snprintf(target->device, sizeof(target->device), "%s %.*s",
             first->backend[0] ? first->backend : "device", (int)id_len, first->device_name);
    snprintf(target->version_text, sizeof(target->version_text), "%s", first->ms_version);
    gd_ms_version_parse(first->ms_version, &target->version);
    note_backend(target, first);
    introduce_peer(target, peer, first, &told);
    int rc = gd_session_create(debugger, &target->base, &told, &session, err);
    if (rc != GD_OK) {
        return rc; /* the target was freed with it */
    }
    *ret = target;
    return GD_OK;
}

struct gd_session *gd_ms_target_session(const struct gd_ms_target *target)
{
    return target->base.session;
}

const struct gd_ms_version *gd_ms_target_version(const struct gd_ms_target *target)
{
    return &target->version;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* The times that a training reports: of steps, of nodes, and what it knows about them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/session_impl.h"
#include "engine/timing/facts.h"
#include "engine/timing/report.h"

#define BACKWARD  "backward/"
#define OPTIMIZER "optimizer/"

int gd_session_times(struct gd_session *session, struct gd_time_report **ret, struct gd_err *err)
{
    int rc = session->times ? GD_OK : gd_time_report_create(&session->times, err);
    *ret = session->times;
    return rc;
}

static double known_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0 ? seconds : -1;
}

static int64_t count_of(const struct gd_session *session, const char *name, int64_t step)
{
    const struct gd_scalar *scalar = gd_session_scalar(session, name);
    return scalar && scalar->step == step && scalar->value >= 1 && scalar->value < 1e15
               ? (int64_t)scalar->value
               : 0;
}

void session_note_batch(struct gd_session *session, const struct gd_scalar *scalar)
{
    if (session->times && scalar->value >= 1 && scalar->value < 1e15) {
        gd_time_note_place(session->times, scalar->step, scalar->name, (int64_t)scalar->value);
    }
}

bool session_make_timeline(struct gd_session *session)
{
    session->timeline = session->timeline ? session->timeline : gd_timeline_create();
    return session->timeline != NULL;
}

void gd_session_on_step_times(struct gd_session *session, const struct gd_step_times *times)
{
    struct gd_step_times *last = &session->step_times;
    int count = times->op_count < GD_MAX_OP_TIMES ? times->op_count : GD_MAX_OP_TIMES;
    struct gd_time_report *report;

    if (session_has_ended(session) || gd_session_times(session, &report, NULL) != GD_OK) {
        return;
    }
    last->step = times->step > 0 ? times->step : 1; /* 0 means that none came */
    session_reach(session, last->step);
    struct gd_time_step step = gd_time_unknown_step(last->step);
    for (int i = 0; i < GD_TIMES; i++) {
        step.part[i] = last->part[i] = known_time(times->part[i]);
    }
    last->op_count = count > 0 ? 0 : last->op_count; /* those of the last measured step stay */
    for (int i = 0; i < count; i++) {
        if (known_time(times->op[i].seconds) >= 0) {
            last->op[last->op_count++] = times->op[i];
        }
    }
    step.timed = count > 0;
    step.epoch = count_of(session, "epoch", last->step);
    step.batch = count_of(session, "batch", last->step);
    gd_time_add_step(report, &step);
    if (session_make_timeline(session)) {
        gd_timeline_on_step(session->timeline, last, session->graph,
                            debugger_now(session->debugger));
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct gd_time_tensor tensor_of(const struct gd_output *output)
{
    struct gd_time_tensor tensor = {.dtype = output->dtype,
                                    .rank = output->shape.rank <= GD_TIME_DIMS ? output->shape.rank
                                                                               : -1};
    for (int i = 0; i < tensor.rank; i++) {
        tensor.dim[i] = output->shape.dim[i];
    }
    return tensor;
}

static void add_shapes(const struct gd_graph *graph, gd_node_id node,
                       const struct gd_node_info *info, struct gd_time_record *record)
{
    struct gd_output output;
    record->out.rank = -1;
    if (gd_graph_output(graph, node, 0, &output)) {
        record->out = tensor_of(&output);
    }
    for (uint32_t i = 0; i < info->input_count && record->in_count < GD_TIME_INPUTS; i++) {
        const struct gd_edge *edge = &info->inputs[i];
        if (!edge->control && gd_graph_output(graph, edge->node, edge->slot, &output)) {
            record->in[record->in_count++] = tensor_of(&output);
        }
    }
}

/* The node of the operator whose gradients it computes, by its attribute. */
static gd_node_id forward_of(const struct gd_graph *graph, const struct gd_node_info *info)
{
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (strcmp(info->attrs[i].name, "forward") == 0) {
            const char *name = info->attrs[i].value;
            return gd_graph_lookup(graph, name, strlen(name));
        }
    }
    return GD_NO_NODE;
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* MindSpore's, with and without the prefix of its mint.distributed. */
static bool is_collective(const char *type)
{
    static const char *const types[] = {
        "AllReduce", "AllGather",  "ReduceScatter", "Broadcast",        "AlltoAll",
        "AlltoAllV", "AllGatherV", "Reduce",        "CollectiveGather", "CollectiveScatter",
        "Send",      "Receive",    "Barrier",       "ReduceScatterV"};
    bool prefixed = begins_with(type, "DistComm");
    type += prefixed ? strlen("DistComm") : 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i]) == 0) {
            return true;
        }
    }
    return prefixed;
}

void gd_session_on_op_time(struct gd_session *session, int64_t step, const struct gd_op_time *op)
{
    struct gd_graph *graph = session->graph;
    struct gd_time_report *report;
    struct gd_node_info info, own;
    struct gd_scope_info scope = {.name = ""};
    char place[256] = "";
    if (session_has_ended(session) || !gd_graph_node(graph, op->node, &info) ||
        gd_session_times(session, &report, NULL) != GD_OK) {
        return;
    }
    if (session_make_timeline(session)) {
        gd_timeline_on_op(session->timeline, op);
    }
    struct gd_time_record record = {
        .type = info.type,
        .name = info.name,
        .phase = begins_with(info.name, BACKWARD)    ? GD_TIME_IN_BACKWARD
                 : begins_with(info.name, OPTIMIZER) ? GD_TIME_IN_OPTIMIZER
                                                     : GD_TIME_IN_FORWARD,
        .lane = is_collective(info.type) ? GD_LANE_COMMUNICATION : GD_LANE_HOST,
        .step = step,
        .calls = op->calls,
        .seconds = op->seconds};
    gd_node_id forward = forward_of(graph, &info);
    bool is_product = forward != GD_NO_NODE && gd_graph_node(graph, forward, &own);
    add_shapes(graph, is_product ? forward : op->node, is_product ? &own : &info, &record);
    gd_graph_scope(graph, info.scope, &scope);
    record.module = begins_with(scope.name, BACKWARD) ? scope.name + strlen(BACKWARD) : scope.name;
    const struct gd_frame *frame = gd_graph_place(graph, op->node);
    if (frame && frame->line > 0) {
        const char *slash = strrchr(frame->file, '/');
        snprintf(place, sizeof(place), "%s:%u", slash ? slash + 1 : frame->file, frame->line);
    }
    record.place = place;
    gd_time_add_operator(report, &record, NULL);
}

void gd_session_on_time_facts(struct gd_session *session, const char *json)
{
    struct gd_time_report *report;
    if (!session_has_ended(session) && gd_session_times(session, &report, NULL) == GD_OK) {
        gd_time_read_facts(report, json);
    }
}

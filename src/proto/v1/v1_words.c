// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a training process reports without being asked: scalars, log lines, events, times,
 * checkpoints.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/metric/over_ranks.h"
#include "proto/v1/v1_impl.h"

#define MAX_LINE 4096

static void on_scalars(struct v1_target *t, const Gradb__V1__Scalars *m)
{
    for (size_t i = 0; i < m->n_values; i++) {
        const Gradb__V1__Scalar *s = m->values[i];
        t->scalars++;
        if (s->name[0] && s->late) {
            gd_session_on_late_scalar(t->base.session, s->name, s->value, s->step);
        } else if (s->name[0]) {
            gd_session_on_scalar(t->base.session, s->name, s->value, s->step);
        }
    }
}

static void on_metric_counts(struct v1_target *t, const Gradb__V1__MetricCounts *m)
{
    const struct gd_metric_part part = {.definition = m->definition,
                                        .evaluation = m->evaluation != 0,
                                        .step = m->step,
                                        .late = m->late != 0,
                                        .epoch = m->epoch,
                                        .counts = m->counts,
                                        .missing = m->missing};
    gd_session_on_metric_part(t->base.session, &part);
}

static void on_log(struct v1_target *t, const Gradb__V1__Log *m)
{
    char line[MAX_LINE + 1];
    size_t count = m->n_lines < V1_MAX_LINES ? m->n_lines : V1_MAX_LINES;
    uint64_t lost = m->dropped + (m->n_lines - count);
    for (size_t i = 0; i < count; i++) {
        snprintf(line, sizeof(line), "%s", m->lines[i]);
        gd_session_on_log(t->base.session, line);
    }
    if (lost > 0) {
        snprintf(line, sizeof(line), "(%llu lines were lost)", (unsigned long long)lost);
        gd_session_on_log(t->base.session, line);
    }
}

static void on_event(struct v1_target *t, const Gradb__V1__Event *m)
{
    int64_t step = m->step > 0 ? m->step : 0;
    gd_session_on_event(t->base.session, m->kind, m->text, step, v1_graph_node(t, m->node));
}

static void on_checkpoint(struct v1_target *t, const Gradb__V1__CheckpointDone *m)
{
    gd_session_on_event(t->base.session, "checkpoint", m->path, m->step, GD_NO_NODE);
}

/* Inserts an operator, slowest first; the fastest drops out of a full list. */
static void add_op(struct gd_step_times *times, const struct gd_op_time *op)
{
    int at = times->op_count;
    while (at > 0 && times->op[at - 1].seconds < op->seconds) {
        at--;
    }
    if (at == GD_MAX_OP_TIMES) {
        return;
    }
    if (times->op_count < GD_MAX_OP_TIMES) {
        times->op_count++;
    }
    size_t behind = (size_t)(times->op_count - 1 - at);
    memmove(&times->op[at + 1], &times->op[at], behind * sizeof(*op));
    times->op[at] = *op;
}

static void on_timing(struct v1_target *t, const Gradb__V1__Timing *m)
{
    struct gd_step_times times = {.step = m->step,
                                  .part = {[GD_TIME_DATA] = m->data,
                                           [GD_TIME_COMPILED] = m->compiled > 0 ? m->compiled : -1,
                                           [GD_TIME_FORWARD] = m->forward,
                                           [GD_TIME_BACKWARD] = m->backward,
                                           [GD_TIME_OPTIMIZER] = m->optimizer,
                                           [GD_TIME_REST] = m->gap,
                                           [GD_TIME_TOTAL] = m->total}};
    if (m->step < 1) {
        return;
    }
    for (size_t i = 0; i < m->n_ops; i++) {
        struct gd_op_time op = {.node = v1_graph_node(t, m->ops[i]->node),
                                .calls = m->ops[i]->calls,
                                .seconds = m->ops[i]->seconds};
        if (op.node != GD_NO_NODE && isfinite(op.seconds) && op.seconds >= 0) {
            add_op(&times, &op);
            gd_session_on_op_time(t->base.session, m->step, &op);
        }
    }
    gd_session_on_step_times(t->base.session, &times);
}

void v1_words(struct v1_target *t, const v1_from *m)
{
    switch (m->msg_case) {
    case GRADB__V1__FROM_TRAINER__MSG_SCALARS: on_scalars(t, m->scalars); break;
    case GRADB__V1__FROM_TRAINER__MSG_METRIC_COUNTS: on_metric_counts(t, m->metric_counts); break;
    case GRADB__V1__FROM_TRAINER__MSG_LOG: on_log(t, m->log); break;
    case GRADB__V1__FROM_TRAINER__MSG_EVENT: on_event(t, m->event); break;
    case GRADB__V1__FROM_TRAINER__MSG_HAPPENING: v1_event_happened(t, m->happening); break;
    case GRADB__V1__FROM_TRAINER__MSG_LINE_PLACES: v1_line_places(t, m->line_places); break;
    case GRADB__V1__FROM_TRAINER__MSG_TIMING: on_timing(t, m->timing); break;
    case GRADB__V1__FROM_TRAINER__MSG_TIMING_FACTS:
        gd_session_on_time_facts(t->base.session, m->timing_facts->json);
        break;
    case GRADB__V1__FROM_TRAINER__MSG_CHECKPOINT_DONE: on_checkpoint(t, m->checkpoint_done); break;
    default: break; /* a newer message than we know */
    }
}

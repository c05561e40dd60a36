// SPDX-License-Identifier: GPL-3.0-or-later
/* The steps of a trace and their parts. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/io/file_name.h"
#include "dump/trace/trace_nest.h"

#define STEP      "ProfilerStep#"
#define OPTIMIZER "Optimizer.step"
#define MAX_STEPS 1000000

/* ---- steps ----------------------------------------------------------------------------------- */

static int add_step(struct trace_run *run, int64_t number, int64_t start, int64_t end,
                    struct gd_err *err)
{
    if (run->steps == MAX_STEPS) {
        return gd_fail(err, GD_ELIMIT, "more than %d steps", MAX_STEPS);
    }
    if (!gd_grow_list(&run->step, run->steps, &run->step_cap, sizeof(*run->step))) {
        return gd_fail_nomem(err);
    }
    run->step[run->steps++] = (struct trace_step){number, start, end};
    return GD_OK;
}

/* Steps as the profiler marks them. One that begins before the previous one ends is a copy for
 * another thread. */
static int find_marked(struct trace_run *run, struct gd_err *err)
{
    int64_t end = INT64_MIN;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];
        uint64_t number;

        if (span->kind == TRACE_STEP && span->start >= end &&
            gd_json_unsigned(run->spans.text[span->name] + strlen(STEP), &number) &&
            number < (UINT64_C(1) << 62)) {
            end = span->start + span->duration;
            rc = add_step(run, (int64_t)number, span->start, end, err);
        }
    }
    return rc;
}

/* A step ends with the optimizer's. */
static int find_by_optimizer(struct trace_run *run, struct gd_err *err)
{
    int64_t start = run->start;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];
        int64_t end = span->start + span->duration;

        if (span->kind == TRACE_ANNOTATION && span->start >= start &&
            gd_starts_with(run->spans.text[span->name], OPTIMIZER)) {
            rc = add_step(run, (int64_t)run->steps + 1, start, end, err);
            start = end;
        }
    }
    return rc;
}

int trace_find_steps(struct trace_run *run, struct gd_err *err)
{
    int rc = run->steps ? GD_OK : find_marked(run, err);

    if (rc == GD_OK && run->steps == 0) {
        run->steps_by = TRACE_BY_OPTIMIZER;
        rc = find_by_optimizer(run, err);
    }
    if (rc == GD_OK && run->steps == 0 && run->spans.count > 0) {
        run->steps_by = TRACE_BY_WHOLE;
        rc = add_step(run, 1, run->start, run->end, err);
    }
    return rc;
}

/* ---- parts ----------------------------------------------------------------------------------- */

enum gd_time trace_part_of(const char *name, enum trace_kind kind)
{
    static const struct {
        const char *begin;
        bool whole;
        enum gd_time part;
    } marks[] = {
        {"Optimizer.", false, GD_TIME_OPTIMIZER},
        {"optimizer", true, GD_TIME_OPTIMIZER},
        {"enumerate(DataLoader)", false, GD_TIME_DATA},
        {"data", true, GD_TIME_DATA},
        {"forward", true, GD_TIME_FORWARD},
        {"backward", true, GD_TIME_BACKWARD},
        {"compiled", true, GD_TIME_COMPILED}, /* these two of gradb's own traces */
        {"rest", true, GD_TIME_REST},
    };

    for (size_t i = 0; kind == TRACE_ANNOTATION && i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (marks[i].whole ? strcmp(name, marks[i].begin) == 0
                           : gd_starts_with(name, marks[i].begin)) {
            return marks[i].part;
        }
    }
    return GD_TIMES;
}

/* Operators of one part, one after another, are one phase with the gaps between them. */
int trace_add_phase(struct trace_run *run, int64_t start, int64_t end, enum gd_time part,
                    struct gd_err *err)
{
    struct trace_phase *last = run->phases ? &run->phase[run->phases - 1] : NULL;

    run->has[part] = true;
    if (last && last->part == part) {
        last->end = end > last->end ? end : last->end;
        return GD_OK;
    }
    if (last && start < last->end) { /* in another thread */
        last->end = start;
    }
    if (!gd_grow_list(&run->phase, run->phases, &run->phase_cap, sizeof(*run->phase))) {
        return gd_fail_nomem(err);
    }
    run->phase[run->phases++] = (struct trace_phase){start, end, part};
    return GD_OK;
}

static int64_t overlap_of(int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t start = a > c ? a : c, end = b < d ? b : d;

    return end > start ? end - start : 0;
}

static size_t first_phase_after(const struct trace_run *run, int64_t start)
{
    size_t low = 0, high = run->phases;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (run->phase[middle].end <= start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A phase that reaches into the next step: two steps' operators of one part without another in
 * between. Only operators that begin in the step count, so it is cut. */
void trace_step_parts(const struct trace_run *run, size_t index, struct gd_time_step *ret)
{
    const struct trace_step *step = &run->step[index];
    int64_t sum[GD_TIMES] = {0}, known = 0;
    bool seen_backward = false;

    for (size_t i = first_phase_after(run, step->start);
         i < run->phases && run->phase[i].start < step->end; i++) {
        const struct trace_phase *phase = &run->phase[i];

        seen_backward |= phase->part == GD_TIME_BACKWARD;
        /* after the backward pass: metrics, logging */
        if (phase->part != GD_TIME_FORWARD || !seen_backward) {
            sum[phase->part] += overlap_of(phase->start, phase->end, step->start, step->end);
        }
    }
    for (int part = 0; part < GD_TIME_REST; part++) {
        ret->part[part] = run->has[part] ? (double)sum[part] / 1e9 : -1;
        known += sum[part];
    }
    ret->part[GD_TIME_TOTAL] = (double)(step->end - step->start) / 1e9;
    if (run->phases > 0) {
        int64_t rest = step->end - step->start - known;
        ret->part[GD_TIME_REST] = rest > 0 ? (double)rest / 1e9 : 0;
    }
}

/* ---- communication --------------------------------------------------------------------------- */

struct edge { /* where something begins or ends */
    int64_t at;
    int8_t communication, computation;
};

static int order_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static size_t collect_edges(const struct trace_run *run, bool device, struct edge *edge)
{
    size_t count = 0;

    for (size_t i = 0; i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];
        bool communication = span->kind == TRACE_COMMUNICATION;

        if (span->op == TRACE_NONE ||
            (!communication && span->kind != (device ? TRACE_KERNEL : TRACE_OP))) {
            continue;
        }
        edge[count++] = (struct edge){span->start, communication, !communication};
        edge[count++] = (struct edge){span->start + span->duration, communication ? -1 : 0,
                                      communication ? 0 : -1};
    }
    qsort(edge, count, sizeof(*edge), order_edges);
    return count;
}

static void add_interval(const struct trace_run *run, struct gd_time_step *steps, size_t *step,
                         int64_t start, int64_t end, bool exposed)
{
    while (*step < run->steps && run->step[*step].end <= start) {
        (*step)++;
    }
    for (size_t i = *step; i < run->steps && run->step[i].start < end; i++) {
        double seconds = (double)overlap_of(start, end, run->step[i].start, run->step[i].end) / 1e9;

        steps[i].communication += seconds;
        steps[i].exposed += exposed ? seconds : 0;
    }
}

/* Computation is kernels where the trace has some, otherwise operators of the host. */
int trace_communication(const struct trace_run *run, struct gd_time_step *steps, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_free) struct edge *edge = NULL;
    bool device = false;
    size_t count, step = 0;
    int64_t communicating = 0, computing = 0;

    if (!run->has_communication) {
        return GD_OK;
    }
    edge = malloc((2 * run->spans.count + 1) * sizeof(*edge));
    if (!edge) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < run->steps; i++) {
        steps[i].communication = steps[i].exposed = 0;
    }
    for (size_t i = 0; !device && i < run->spans.count; i++) {
        device = run->spans.span[i].kind == TRACE_KERNEL;
    }
    count = collect_edges(run, device, edge);
    for (size_t i = 0; i + 1 < count; i++) {
        communicating += edge[i].communication;
        computing += edge[i].computation;
        if (communicating > 0 && edge[i + 1].at > edge[i].at) {
            add_interval(run, steps, &step, edge[i].at, edge[i + 1].at, computing == 0);
        }
    }
    return GD_OK;
}

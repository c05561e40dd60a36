// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * step_trace_raw_R_detail_time.csv: the steps on the device, in units of 10 ns, and after them a
 * row of means, whose step is "-". Waiting for data ends where the forward pass begins; the tail is
 * all that follows the backward pass. Collectives have three columns each:
 * stream_STREAM_INDEX_NAME, and that with _start_point and _end_point. An inference has no tail,
 * and "fp" for the whole pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/io/csv.h"
#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"

#define MAX_STEPS   1000000
#define UNIT        10 /* nanoseconds */
#define MAX_COUNTER (INT64_MAX / UNIT / 2)

struct span_of {
    int64_t start, end;
};

/* False: not a counter. */
static bool counter_of(const char *text, int64_t *ret)
{
    uint64_t value;

    if (!gd_json_unsigned(text, &value) || value > MAX_COUNTER) {
        return false;
    }
    *ret = (int64_t)value * UNIT;
    return true;
}

static double seconds_in(const struct profile_row *row, const char *column)
{
    int64_t value;

    return counter_of(profile_cell(row, column), &value) ? (double)value / 1e9 : -1;
}

/* "stream_48_0_Receive-op663": the name; NULL: not a collective. */
static const char *collective_in(const char *column)
{
    const char *at = column;

    if (!gd_starts_with(at, "stream_") || gd_ends_with(at, "_point")) {
        return NULL;
    }
    for (int parts = 0; at && parts < 3; parts++) {
        at = strchr(at, '_');
        at = at ? at + 1 : NULL;
    }
    return at && *at ? at : column;
}

/* Where the collective in a column began and ended; false: it did not run in this step. Its points
 * are before or after its duration, depending on the release. */
static bool place_of(const struct profile_row *row, size_t column, struct span_of *ret)
{
    const char *name = profile_column(row, column);
    size_t len = strlen(name);
    int found = 0;

    for (int away = -2; away <= 2; away++) {
        size_t i = column + (size_t)away;
        const char *other = away < 0 && column < (size_t)-away ? "" : profile_column(row, i);
        bool of_it = strncmp(other, name, len) == 0;

        if (of_it && strcmp(other + len, "_start_point") == 0) {
            found += counter_of(profile_cell_at(row, i), &ret->start) && ret->start > 0;
        } else if (of_it && strcmp(other + len, "_end_point") == 0) {
            found += counter_of(profile_cell_at(row, i), &ret->end);
        }
    }
    return found == 2 && ret->end > ret->start;
}

static int add_collective(struct profile *profile, const char *name, const struct span_of *at,
                          struct gd_err *err)
{
    struct trace_spans *spans = &profile->run.spans;
    struct trace_span span = {.op = TRACE_NONE,
                              .kind = TRACE_COMMUNICATION,
                              .start = at->start,
                              .duration = at->end - at->start};
    int rc = trace_lane_of(spans, "step_trace_raw", "collectives", &span.lane, err);

    profile->has_collectives = true;
    rc = rc != GD_OK ? rc : trace_text(spans, name, strnlen(name, TRACE_MAX_NAME), &span.name, err);
    return rc != GD_OK ? rc : trace_add_span(spans, &span, err);
}

static int order_places(const void *a, const void *b)
{
    const struct span_of *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

/* Seconds in which at least one of them ran. */
static double seconds_of(struct span_of *at, size_t count)
{
    int64_t sum = 0, until = INT64_MIN;

    if (count > 0) {
        qsort(at, count, sizeof(*at), order_places);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t start = at[i].start > until ? at[i].start : until;

        sum += at[i].end > start ? at[i].end - start : 0;
        until = at[i].end > until ? at[i].end : until;
    }
    return (double)sum / 1e9;
}

static int take_collectives(struct profile *profile, const struct profile_row *row,
                            struct gd_time_step *step, struct gd_err *err)
{
    struct span_of place[GD_CSV_MAX_FIELDS];
    size_t count = 0, columns = 0;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && *profile_column(row, i); i++) {
        const char *name = collective_in(profile_column(row, i));

        columns += name != NULL;
        if (name && count < GD_CSV_MAX_FIELDS && place_of(row, i, &place[count])) {
            /* without kernels all of it would look as if nothing hid it */
            rc = profile->has_kernels ? add_collective(profile, name, &place[count], err) : GD_OK;
            count++;
        }
    }
    step->communication = columns > 0 ? seconds_of(place, count) : -1;
    return rc;
}

static int take_step(struct profile *profile, const struct profile_row *row, void *ctx,
                     struct gd_err *err)
{
    struct trace_run *run = &profile->run;
    struct gd_time_step *step;
    struct trace_step bounds = {.number = 0};
    uint64_t number;

    (void)ctx;
    if (!gd_json_unsigned(profile_cell(row, "step_num"), &number) || number >= UINT64_C(1) << 62) {
        return GD_OK; /* the means */
    }
    if (run->tolds == MAX_STEPS) {
        return gd_fail(err, GD_ELIMIT, "more than %d steps", MAX_STEPS);
    }
    if (!gd_grow_list(&run->told, run->tolds, &run->told_cap, sizeof(*run->told)) ||
        !gd_grow_list(&run->step, run->steps, &run->step_cap, sizeof(*run->step))) {
        return gd_fail_nomem(err);
    }
    step = &run->told[run->tolds++];
    *step = gd_time_unknown_step((int64_t)number);
    step->part[GD_TIME_DATA] = seconds_in(row, "iteration_interval");
    step->part[GD_TIME_COMPILED] = seconds_in(row, "fp_and_bp");
    if (step->part[GD_TIME_COMPILED] < 0) {
        step->part[GD_TIME_COMPILED] = seconds_in(row, "fp");
    }
    step->part[GD_TIME_REST] = step->tail = seconds_in(row, "tail");
    step->part[GD_TIME_TOTAL] = seconds_in(row, "total");
    step->timed = true; /* not passed on yet */
    bounds.number = step->step;
    if (counter_of(profile_cell(row, "start_point"), &bounds.start) &&
        counter_of(profile_cell(row, "end_point"), &bounds.end) && bounds.end > bounds.start) {
        run->step[run->steps++] = bounds;
    }
    return take_collectives(profile, row, step, err);
}

static int order_steps(const void *a, const void *b)
{
    const struct trace_step *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

/* Whether most operators ran in these steps: that the clocks of both files are the same. */
static bool are_aligned(const struct trace_run *run)
{
    size_t inside = 0, all = 0;

    for (size_t i = 0; i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];

        if (span->kind == TRACE_KERNEL) {
            all++;
            inside +=
                span->start >= run->step[0].start && span->start < run->step[run->steps - 1].end;
        }
    }
    return all > 0 && 2 * inside > all;
}

static void settle_steps(struct profile *profile)
{
    struct trace_run *run = &profile->run;

    if (run->steps > 0) {
        qsort(run->step, run->steps, sizeof(*run->step), order_steps);
    }
    for (size_t i = 0; i + 1 < run->steps; i++) {
        int64_t next = run->step[i + 1].start;
        run->step[i].end = run->step[i].end > next ? next : run->step[i].end;
    }
    if (run->steps > 0 && are_aligned(run)) {
        run->steps_by = TRACE_BY_STEP_TRACE;
        return;
    }
    run->steps = 0;
    profile->has_collectives = false;
    for (size_t i = 0; i < run->spans.count; i++) { /* in no step: what hides them is unknown */
        struct trace_span *span = &run->spans.span[i];
        span->kind = span->kind == TRACE_COMMUNICATION ? TRACE_LEFT_OUT : span->kind;
    }
}

int profile_read_step_trace(struct profile *profile, struct gd_err *err)
{
    struct trace_run *run = &profile->run;
    struct gd_time_report *report;
    int rc =
        profile_each_rank_row(profile, "step_trace_raw_", "_detail_time.csv", take_step, NULL, err);

    if (rc != GD_OK || run->tolds == 0) {
        return rc;
    }
    settle_steps(profile);
    rc = gd_catalog_times(profile->catalog, &report, err);
    if (rc == GD_OK) {
        snprintf(report->facts.note, sizeof(report->facts.note),
                 "On the device (step_trace_raw): data is the time before the forward pass, "
                 "compiled the forward and backward pass, rest what follows them: collectives and "
                 "the optimizer");
    }
    return rc;
}

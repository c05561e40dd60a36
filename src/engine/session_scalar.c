// SPDX-License-Identifier: GPL-3.0-or-later
/* The metrics that a training reports, with their past, and the times of its steps. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/session_impl.h"

/* Only the first value of a step counts: a step reported twice is still one. */
static void remember_past(struct gd_scalar_past *past, double value, int64_t step)
{
    if (!isfinite(value) || (past->count > 0 && step <= past->last_step)) {
        return;
    }
    if (past->count == 0) {
        past->first = past->least = value;
        past->first_step = past->least_step = step;
    } else if (value < past->least) {
        past->least = value;
        past->least_step = step;
    }
    if (past->count > 0 && value > past->last) {
        past->rises++;
    } else {
        past->rises = 0;
        past->rose_from = value;
        past->rose_at = step;
    }
    past->last = value;
    past->last_step = step;
    past->count++;
}

void gd_session_on_scalar(struct gd_session *session, const char *name, double value, int64_t step)
{
    int i = 0;

    while (i < session->scalar_count &&
           strncmp(session->scalar[i].name, name, sizeof(session->scalar[i].name) - 1) != 0) {
        i++;
    }
    if (i == GD_MAX_SCALARS) {
        return;
    }
    if (i == session->scalar_count) {
        session->scalar_count++;
        snprintf(session->scalar[i].name, sizeof(session->scalar[i].name), "%s", name);
        session->scalar[i].first = value;
        session->scalar[i].first_step = step;
    } else if (session->scalar[i].step != step) {
        session->scalar[i].before = session->scalar[i].value;
        session->scalar[i].has_before = true;
    }
    session->scalar[i].value = value;
    session->scalar[i].step = step;
    session_reach(session, step);
    remember_past(&session->scalar[i].past, value, step);
    session_history_scalar(session, session->scalar[i].name, value, step);
    session_emit(session, GD_EV_SCALAR, session->scalar[i].name, NULL);
}

static double known_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0 ? seconds : -1;
}

void gd_session_on_step_times(struct gd_session *session, const struct gd_step_times *times)
{
    struct gd_step_times *last = &session->step_times;
    int count = times->op_count < GD_MAX_OP_TIMES ? times->op_count : GD_MAX_OP_TIMES;

    if (session_has_ended(session)) {
        return;
    }
    last->step = times->step > 0 ? times->step : 1; /* 0 means that none came */
    session_reach(session, last->step);
    for (int i = 0; i < GD_TIMES; i++) {
        last->part[i] = known_time(times->part[i]);
    }
    last->op_count = 0;
    for (int i = 0; i < count; i++) {
        if (known_time(times->op[i].seconds) >= 0) {
            last->op[last->op_count++] = times->op[i];
        }
    }
    gd_past_times_add(&session->past_times, last);
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* The metrics that a training reports, with their past. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/part.h"
#include "engine/session_impl.h"

const struct gd_scalar *gd_session_scalar(const struct gd_session *session, const char *name)
{
    for (int i = 0; i < session->scalar_count; i++) {
        if (strcmp(session->scalar[i].name, name) == 0) {
            return &session->scalar[i];
        }
    }
    return NULL;
}

/* "lr_g" is of the optimizer g, "lr_1" of a parameter group. */
static bool is_of_other_optimizer(const char *name)
{
    return strncmp(name, "lr_", 3) == 0 && strspn(name + 3, "0123456789") != strlen(name + 3);
}

int gd_session_micro_batches(const struct gd_session *session)
{
    const struct gd_scalar *count = gd_session_scalar(session, GD_MICRO_BATCH);
    bool several = session->graph && gd_graph_micro_batches(session->graph) > 1;

    for (int i = 0; several && i < session->scalar_count; i++) {
        /* the metric counts only the passes of the main optimizer */
        several = !is_of_other_optimizer(session->scalar[i].name);
    }
    return several && count && count->value >= 1 && count->value <= INT_MAX ? (int)count->value : 0;
}

int gd_session_micro_batch(const struct gd_session *session, gd_node_id node)
{
    struct gd_node_info info;
    int number = session->graph && gd_graph_node(session->graph, node, &info)
                     ? gd_node_micro_batch(&info)
                     : 0;

    return number > 1 || gd_session_micro_batches(session) > 1 ? number : 0;
}

void gd_session_micro_batch_text(const struct gd_session *session, gd_node_id node, char *ret,
                                 size_t size)
{
    int number = gd_session_micro_batch(session, node), all = gd_session_micro_batches(session);

    if (number == 0) {
        snprintf(ret, size, "%s", "");
    } else if (number <= all) {
        snprintf(ret, size, "[%d/%d]", number, all);
    } else {
        snprintf(ret, size, "[%d]", number);
    }
}

bool gd_session_shows_attr(const struct gd_session *session, gd_node_id node,
                           const struct gd_attr *attr)
{
    return strcmp(attr->name, GD_MICRO_BATCH) != 0 || gd_session_micro_batch(session, node) > 0;
}

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

/* NULL: there is no room for another one. */
static struct gd_scalar *store_scalar(struct gd_session *session, const char *name, double value,
                                      int64_t step, bool late, bool *fresh)
{
    struct gd_scalar *scalar = session->scalar;
    const struct gd_scalar *end = session->scalar + session->scalar_count;

    while (scalar < end && strncmp(scalar->name, name, sizeof(scalar->name) - 1) != 0) {
        scalar++;
    }
    if (scalar == end && session->scalar_count == GD_MAX_SCALARS) {
        return NULL;
    }
    *fresh = scalar == end;
    bool again = !*fresh && scalar->step == step;
    if (*fresh) {
        session->scalar_count++;
        snprintf(scalar->name, sizeof(scalar->name), "%s", name);
        scalar->first = value;
        scalar->first_step = step;
    } else if (!again) {
        scalar->before = scalar->value;
        scalar->has_before = true;
    }
    scalar->value = value;
    scalar->step = step;
    scalar->late = late && (!again || scalar->late);
    remember_past(&scalar->past, value, step);
    gd_past_values_add(&scalar->values, value, step);
    return scalar;
}

void gd_session_recall_scalar(struct gd_session *session, const char *name, double value,
                              int64_t step)
{
    bool fresh;

    store_scalar(session, name, value, step, false, &fresh);
}

void gd_session_forget_scalars(struct gd_session *session)
{
    for (int i = 0; i < session->scalar_count; i++) {
        gd_past_values_free(&session->scalar[i].values);
        session->scalar[i] = (struct gd_scalar){.step = 0};
    }
    session->scalar_count = 0;
}

void gd_session_forget_scalar(struct gd_session *session, const char *name)
{
    struct gd_scalar *scalar = session->scalar, *end = scalar + session->scalar_count;

    while (scalar < end && strncmp(scalar->name, name, sizeof(scalar->name) - 1) != 0) {
        scalar++;
    }
    if (scalar == end) {
        return;
    }
    gd_past_values_free(&scalar->values);
    memmove(scalar, scalar + 1, (size_t)(end - scalar - 1) * sizeof(*scalar));
    end[-1] = (struct gd_scalar){.step = 0};
    session->scalar_count--;
    if (session->impl->has_wishes) {
        happenings_push(session); /* the target can test it no longer */
    }
}

static void take_scalar(struct gd_session *session, const char *name, double value, int64_t step,
                        bool late)
{
    bool fresh;
    const struct gd_scalar *scalar = store_scalar(session, name, value, step, late, &fresh);

    if (!scalar) {
        return;
    }
    session_reach(session, step);
    session_history_scalar(session, scalar->name, value, step);
    session_note_batch(session, scalar);
    if (fresh && session->impl->has_wishes) {
        happenings_push(session); /* the target can test it */
    }
    if (!gd_session_is_record(session) && session_make_timeline(session)) {
        gd_timeline_on_scalar(session->timeline, scalar->name, value, step,
                              debugger_now(session->debugger));
    }
    session_emit(session, GD_EV_SCALAR, scalar->name, NULL);
}

void gd_session_on_scalar(struct gd_session *session, const char *name, double value, int64_t step)
{
    take_scalar(session, name, value, step, false);
}

void gd_session_on_late_scalar(struct gd_session *session, const char *name, double value,
                               int64_t step)
{
    take_scalar(session, name, value, step, true);
}

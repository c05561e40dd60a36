// SPDX-License-Identifier: GPL-3.0-or-later
/* The history of a session: made when the first value comes, fed with every one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/history_impl.h"
#include "engine/session_impl.h"

static void warn(struct gd_session *session, const struct gd_err *err)
{
    char text[GD_ERR_TEXT_MAX + 64];

    snprintf(text, sizeof(text), "%s%s",
             err->code == GD_ELIMIT ? "" : "no history is kept: ", err->text);
    gd_session_on_warning(session, text);
}

/* False: none is wanted, or it cannot be had. */
static bool have_history(struct gd_session *session)
{
    const struct gd_settings *settings = &session->debugger->settings;
    char path[sizeof(settings->history_file) + 16];
    struct gd_err err;

    if (session->history) {
        return gd_session_is_live(session);
    }
    if (session->impl->history_failed || settings->history_bytes == 0) {
        return false;
    }
    snprintf(path, sizeof(path), "%s", settings->history_file);
    if (path[0] && session->number > 1) {
        snprintf(path, sizeof(path), "%s.%d", settings->history_file, session->number);
    }
    if (gd_history_create(path[0] ? path : NULL, settings->history_bytes, &session->peer,
                          &session->history, &err) != GD_OK) {
        session->impl->history_failed = true;
        warn(session, &err);
        return false;
    }
    for (int i = 0; i < session->scalar_count; i++) { /* they came before the first value */
        const struct gd_scalar *scalar = &session->scalar[i];
        session_history_scalar(session, scalar->name, scalar->value, scalar->step);
    }
    return true;
}

/* What cannot be recorded is told once. */
static bool took(struct gd_session *session, int rc, const struct gd_err *err)
{
    if (rc && rc != GD_EINVAL && !session->impl->history_warned) {
        session->impl->history_warned = true;
        warn(session, err);
    }
    return rc == GD_OK;
}

/* The place in the user's program that made the node. */
static void describe_source(struct gd_session *session, gd_node_id node,
                            struct gd_history_tensor *ret)
{
    uint32_t count = 0;
    const struct gd_frame *frames = gd_graph_stack(session->graph, node, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (!frames[i].is_title && frames[i].file[0]) {
            ret->file = frames[i].file;
            ret->line = frames[i].line;
            return;
        }
    }
}

/* What the file is to say of a new tensor. */
static void describe(struct gd_session *session, const struct gd_watch_value *value,
                     const struct gd_node_info *info, struct gd_history_tensor *ret)
{
    struct gd_output output;

    *ret = (struct gd_history_tensor){.slot = value->slot,
                                      .dtype = value->dtype,
                                      .order = info->order,
                                      .kind = info->kind,
                                      .type = info->type,
                                      .file = "",
                                      .is_scalar = value->scalar != NULL,
                                      .name = info->name};
    if (value->shape) {
        ret->shape = *value->shape;
    }
    if (value->scalar) {
        return;
    }
    if ((!value->shape || value->dtype == GD_DT_NONE) &&
        gd_graph_output(session->graph, value->node, value->slot, &output)) {
        ret->shape = output.shape;
        ret->dtype = output.dtype;
    }
    describe_source(session, value->node, ret);
}

/* The value's tensor in the history; false: it has none. This is on the way of every value. */
static bool find(struct gd_session *session, const struct gd_watch_value *value, uint32_t *ret)
{
    struct gd_node_info info = {
        .name = value->scalar, .type = "", .kind = GD_NODE_OTHER, .order = GD_NO_ORDER};
    struct gd_history_tensor tensor;
    struct gd_err err;

    if (!value->scalar && !gd_graph_node(session->graph, value->node, &info)) {
        return false;
    }
    *ret = history_find(session->history, info.name, value->slot, value->scalar != NULL);
    if (*ret != HISTORY_NONE) {
        return true;
    }
    describe(session, value, &info, &tensor);
    return took(session, history_enter(session->history, &tensor, ret, &err), &err);
}

void gd_session_history_add(struct gd_session *session, const struct gd_watch_value *value,
                            int64_t step)
{
    struct gd_history_record record = {.step = step, .error = value->error};
    struct gd_err err;
    uint32_t index;

    if (step < 0 || !have_history(session) || !find(session, value, &index)) {
        return;
    }
    if (value->stats) {
        record.has_stats = true;
        record.stats = *value->stats;
    }
    took(session, history_record(session->history, index, &record, false, &err), &err);
}

/* A trainer reports its numbers when it gets to it: values of a later step may have come before. */
void session_history_scalar(struct gd_session *session, const char *name, double value,
                            int64_t step)
{
    struct gd_history_tensor tensor = {.name = name,
                                       .type = "",
                                       .file = "",
                                       .dtype = GD_FLOAT64,
                                       .kind = GD_NODE_OTHER,
                                       .order = GD_NO_ORDER,
                                       .is_scalar = true};
    struct gd_history_record record = {.step = step, .has_stats = true};
    struct gd_stats *stats = &record.stats;
    struct gd_err err;
    uint32_t index;

    if (step < 0 || !session->history || !gd_session_is_live(session)) {
        return;
    }
    *stats = (struct gd_stats){.count = 1,
                               .nan = isnan(value) ? 1u : 0u,
                               .pos_inf = isinf(value) && value > 0,
                               .neg_inf = isinf(value) && value < 0,
                               .zero = value == 0,
                               .neg_zero = value == 0 && signbit(value),
                               .positive = isfinite(value) && value > 0,
                               .negative = isfinite(value) && value < 0,
                               .denormal = fpclassify(value) == FP_SUBNORMAL,
                               .min = INFINITY,
                               .max = -INFINITY};
    if (isfinite(value)) {
        stats->min = stats->max = stats->mean = value;
        stats->abs_mean = fabs(value);
        stats->sum_sq = value * value;
    }
    if (took(session, history_enter(session->history, &tensor, &index, &err), &err)) {
        took(session, history_record(session->history, index, &record, true, &err), &err);
    }
}

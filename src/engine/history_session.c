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

static void add(struct gd_session *session, const struct gd_history_tensor *tensor,
                const struct gd_history_record *record, bool late)
{
    struct gd_err err;
    int rc = history_add(session->history, tensor, record, late, &err);

    if (rc && rc != GD_EINVAL && !session->impl->history_warned) {
        session->impl->history_warned = true;
        warn(session, &err);
    }
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

/* What the file says of a tensor. The stack is looked at only when the tensor is new. */
static bool describe(struct gd_session *session, const struct gd_watch_value *value,
                     struct gd_history_tensor *ret)
{
    struct gd_node_info info;
    struct gd_output output;

    *ret = (struct gd_history_tensor){.slot = value->slot,
                                      .dtype = value->dtype,
                                      .order = GD_NO_ORDER,
                                      .kind = GD_NODE_OTHER,
                                      .type = "",
                                      .file = "",
                                      .is_scalar = value->scalar != NULL,
                                      .name = value->scalar};
    if (value->shape) {
        ret->shape = *value->shape;
    }
    if (value->scalar) {
        return true;
    }
    if (!gd_graph_node(session->graph, value->node, &info)) {
        return false;
    }
    ret->name = info.name;
    ret->type = info.type;
    ret->kind = info.kind;
    ret->order = info.order;
    if (history_find(session->history, info.name, value->slot, false) != HISTORY_NONE) {
        return true;
    }
    if ((!value->shape || value->dtype == GD_DT_NONE) &&
        gd_graph_output(session->graph, value->node, value->slot, &output)) {
        ret->shape = output.shape;
        ret->dtype = output.dtype;
    }
    describe_source(session, value->node, ret);
    return true;
}

void gd_session_history_add(struct gd_session *session, const struct gd_watch_value *value,
                            int64_t step)
{
    struct gd_history_record record = {.step = step, .error = value->error};
    struct gd_history_tensor tensor;

    if (!have_history(session) || !describe(session, value, &tensor)) {
        return;
    }
    if (value->stats) {
        record.has_stats = true;
        record.stats = *value->stats;
    }
    add(session, &tensor, &record, false);
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

    if (!session->history || !gd_session_is_live(session)) {
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
    add(session, &tensor, &record, true);
}

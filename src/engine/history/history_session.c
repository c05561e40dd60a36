// SPDX-License-Identifier: GPL-3.0-or-later
/* A session's history: created with the first value, and given every value. */
#include <stdio.h>
#include <string.h>

#include "engine/history/history_impl.h"
#include "engine/session_impl.h"
#include "engine/watch/watch_report.h"

bool gd_session_can_recall(const struct gd_session *session)
{
    return session->target && session->target->ops->recall;
}

static void warn_once(struct gd_session *session, const struct gd_err *err)
{
    char text[GD_ERR_TEXT_MAX + 64];

    snprintf(text, sizeof(text), "%s%s",
             err->code == GD_ELIMIT ? "" : "no history is kept: ", err->text);
    gd_session_on_warning(session, text);
}

/* False: none is wanted, or it could not be created. */
static bool have_history(struct gd_session *session)
{
    const struct gd_settings *settings = &session->debugger->settings;
    char path[sizeof(settings->history_file) + 16];
    struct gd_err err;

    if (gd_session_can_recall(session)) {
        return false; /* values of any step may come by, and it may go back */
    }
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
        warn_once(session, &err);
        return false;
    }
    for (int i = 0; i < session->scalar_count; i++) { /* they came before the first value */
        const struct gd_scalar *scalar = &session->scalar[i];
        session_history_scalar(session, scalar->name, scalar->value, scalar->step);
    }
    return true;
}

void gd_session_keep_history(struct gd_session *session)
{
    if (gd_session_is_live(session)) {
        (void)have_history(session);
    }
}

/* Warns once about what cannot be recorded. */
static bool note_result(struct gd_session *session, int rc, const struct gd_err *err)
{
    if (rc != GD_OK && rc != GD_EINVAL && !session->impl->history_warned) {
        session->impl->history_warned = true;
        warn_once(session, err);
    }
    return rc == GD_OK;
}

/* The place in the user's program that created the node. */
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

/* What the file records about a new tensor. */
static void describe_tensor(struct gd_session *session, const struct gd_watch_value *value,
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

/* The value's tensor in the history; false: none. Runs for every value. */
static bool find_tensor(struct gd_session *session, const struct gd_watch_value *value, bool bins,
                        uint32_t *ret)
{
    struct gd_node_info info = {
        .name = value->scalar, .type = "", .kind = GD_NODE_OTHER, .order = GD_NO_ORDER};
    struct gd_history_tensor tensor;
    struct gd_err err;

    if (!value->scalar && !gd_graph_node(session->graph, value->node, &info)) {
        return false;
    }
    *ret = history_find(session->history, info.name, value->slot,
                        bins            ? HISTORY_OF_BINS
                        : value->scalar ? HISTORY_OF_SCALAR
                                        : HISTORY_OF_NODE);
    if (*ret != HISTORY_NONE) {
        return true;
    }
    describe_tensor(session, value, &info, &tensor);
    tensor.is_bins = bins;
    return note_result(session, history_enter(session->history, &tensor, ret, &err), &err);
}

static void add_bins(struct gd_session *session, const struct gd_watch_value *value, int64_t step)
{
    struct gd_history_bins bins = {.step = step, .lo = value->stats->min, .hi = value->stats->max};
    struct gd_err err;
    uint32_t index;

    memcpy(bins.bin, value->bins, sizeof(bins.bin));
    if (find_tensor(session, value, true, &index)) {
        note_result(session, history_record_bins(session->history, index, &bins, &err), &err);
    }
}

void gd_session_history_add(struct gd_session *session, const struct gd_watch_value *value,
                            int64_t step)
{
    struct gd_history_record record = {.step = step, .error = value->error};
    struct gd_err err;
    uint32_t index;

    if (step < 0 || !have_history(session) || !find_tensor(session, value, false, &index)) {
        return;
    }
    if (value->stats) {
        record.has_stats = true;
        record.stats = *value->stats;
    }
    note_result(session, history_record(session->history, index, &record, false, &err), &err);
    if (value->bins && value->stats && !value->scalar) {
        add_bins(session, value, step);
    }
}

/* A process reports its metrics late: values of a later step may already be there. */
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
    struct gd_err err;
    uint32_t index;

    if (step < 0 || !session->history || !gd_session_is_live(session)) {
        return;
    }
    gd_number_stats(value, &record.stats);
    if (note_result(session, history_enter(session->history, &tensor, &index, &err), &err)) {
        note_result(session, history_record(session->history, index, &record, true, &err), &err);
    }
}

/* ---- records, which know the past ------------------------------------------------------------ */

#define RECALL_BYTES (UINT64_C(256) << 20) /* only the used part takes memory */

struct recalling {
    struct gd_session *session;
    struct gd_watch_value value;
    bool (*go_on)(void *ctx, uint64_t steps);
    void *ctx;
    uint64_t steps;
};

static bool take_step(void *ctx, int64_t step, enum gd_dtype dtype, const struct gd_shape *shape,
                      const struct gd_stats *stats)
{
    struct recalling *recalling = ctx;
    struct gd_history_record record = {.step = step, .error = stats ? 0 : GD_HIT_NO_VALUE};
    uint32_t index;

    recalling->value.dtype = dtype;
    recalling->value.shape = shape;
    if (step >= 0 && find_tensor(recalling->session, &recalling->value, false, &index)) {
        record.has_stats = stats != NULL;
        record.stats = stats ? *stats : record.stats;
        history_record(recalling->session->history, index, &record, true, NULL);
    }
    return !recalling->go_on || recalling->go_on(recalling->ctx, ++recalling->steps);
}

/* All that was taken in is still there. */
static bool is_recalled(const struct gd_session *session, const struct gd_tensor_ref *ref)
{
    const char *name = gd_graph_name(session->graph, ref->node);
    uint32_t index = history_find(session->history, name, ref->slot, HISTORY_OF_NODE);
    uint32_t place, steps = 0;

    if (index == HISTORY_NONE) {
        return false;
    }
    const struct history_tensor *tensor = &session->history->tensors[index];
    for (place = tensor->last; place != HISTORY_NONE && steps < tensor->about.seen &&
                               session->history->tensor_of[place] == index;
         place = session->history->before[place]) {
        steps++;
    }
    return steps > 0 && steps == tensor->about.seen;
}

/* A part of the past would look like all of it. */
static void forget_history(struct gd_session *session, const struct gd_tensor_ref *ref)
{
    const char *name = gd_graph_name(session->graph, ref->node);
    uint32_t index = history_find(session->history, name, ref->slot, HISTORY_OF_NODE);

    if (index != HISTORY_NONE) {
        session->history->tensors[index].last = HISTORY_NONE;
        session->history->tensors[index].about.seen = 0;
    }
}

int gd_session_recall(struct gd_session *session, const struct gd_tensor_ref *ref,
                      bool (*go_on)(void *ctx, uint64_t steps), void *ctx, struct gd_err *err)
{
    struct recalling recalling = {.session = session,
                                  .value = {.node = ref->node, .slot = ref->slot},
                                  .go_on = go_on,
                                  .ctx = ctx};
    int rc = GD_OK;

    if (!gd_session_can_recall(session)) {
        return GD_OK;
    }
    if (!session->history) {
        rc = gd_history_create("", RECALL_BYTES, &session->peer, &session->history, err);
    }
    if (rc != GD_OK || is_recalled(session, ref)) {
        return rc;
    }
    rc = session->target->ops->recall(session->target, ref, take_step, &recalling, err);
    if (rc != GD_OK) {
        forget_history(session, ref);
    }
    return rc;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/* A recorded history file as a target: statistics by step, no values, no edges. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "dump/dump.h"
#include "engine/history/history.h"

/* ---- the graph ------------------------------------------------------------------------------- */

struct part { /* a recorded tensor and its place in the file */
    struct gd_history_tensor tensor;
    uint32_t at;
};

static int by_name(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int order = strcmp(x->tensor.name, y->tensor.name);

    return order ? order : (x->tensor.slot > y->tensor.slot) - (x->tensor.slot < y->tensor.slot);
}

struct group { /* the parts of one node */
    const struct part *first;
    uint32_t count;
};

static int by_place(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    return (x->first->at > y->first->at) - (x->first->at < y->first->at);
}

static int add_node(struct gd_graph *graph, const struct group *group, struct gd_err *err)
{
    const struct gd_history_tensor *first = &group->first->tensor;
    uint32_t outputs = group->first[group->count - 1].tensor.slot + 1;
    struct gd_output *output = calloc(outputs, sizeof(*output));
    struct gd_frame frame = {.file = first->file, .line = first->line, .function = "", .code = ""};
    struct gd_node_desc desc = {.name = first->name,
                                .type = first->type,
                                .kind = first->kind,
                                .outputs = output,
                                .output_count = outputs,
                                .frames = &frame,
                                .frame_count = first->file[0] ? 1 : 0,
                                .order = first->order};
    int rc;

    if (!output) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const struct gd_history_tensor *tensor = &group->first[i].tensor;

        output[tensor->slot] = (struct gd_output){.dtype = tensor->dtype, .shape = tensor->shape};
    }
    rc = gd_graph_add(graph, &desc, NULL, err);
    free(output);
    return rc;
}

static int add_nodes(struct gd_graph *graph, struct part *parts, uint32_t count,
                     struct group *groups, struct gd_err *err)
{
    uint32_t group_count = 0;
    int rc = GD_OK;

    if (count) {
        qsort(parts, count, sizeof(*parts), by_name);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(parts[i].tensor.name, parts[i - 1].tensor.name) == 0) {
            groups[group_count - 1].count++;
        } else {
            groups[group_count++] = (struct group){.first = &parts[i], .count = 1};
        }
    }
    if (group_count) {
        qsort(groups, group_count, sizeof(*groups), by_place);
    }
    for (uint32_t i = 0; rc == GD_OK && i < group_count; i++) {
        rc = add_node(graph, &groups[i], err);
    }
    return rc != GD_OK ? rc : gd_graph_commit(graph, err);
}

static int make_graph(const struct gd_history *history, uint64_t max_bytes, struct gd_graph **ret,
                      struct gd_err *err)
{
    struct gd_history_head head;
    struct gd_graph *graph = NULL;
    struct part *parts;
    struct group *groups;
    uint32_t count = 0;
    int rc;

    gd_history_head(history, &head);
    parts = calloc((size_t)head.tensors + 1, sizeof(*parts));
    groups = calloc((size_t)head.tensors + 1, sizeof(*groups));
    rc = parts && groups ? gd_graph_create((size_t)max_bytes, &graph, err) : gd_fail_nomem(err);
    for (uint32_t i = 0; rc == GD_OK && gd_history_tensor(history, i, &parts[count].tensor); i++) {
        parts[count].at = i;
        count += parts[count].tensor.is_scalar || parts[count].tensor.is_bins ? 0 : 1;
    }
    rc = rc != GD_OK ? rc : add_nodes(graph, parts, count, groups, err);
    free(parts);
    free(groups);
    if (rc != GD_OK) {
        gd_graph_destroy(graph);
        return rc;
    }
    *ret = graph;
    return GD_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int fetch_tensor(struct gd_target *target, const struct gd_tensor_ref *ref,
                        const struct gd_slice *slice, gd_tensor_fn fn, void *ctx,
                        struct gd_err *err)
{
    (void)slice;
    (void)fn;
    (void)ctx;
    return gd_fail(err, GD_ENODATA,
                   "the values of %.300s were not recorded: a history file has only statistics",
                   gd_graph_name(target->session->graph, ref->node));
}

/* A tensor's last record is its current value, the one before is its previous value. */
static int answer_stats(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                        void *ctx, struct gd_err *err)
{
    const struct gd_history *history = target->session->history;
    const char *name = gd_graph_name(target->session->graph, ref->node);
    struct gd_history_record records[2];
    struct gd_history_tensor tensor;
    size_t wanted = ref->iter == GD_PREVIOUS ? 2 : 1, count;
    uint32_t index;

    if (!gd_history_find(history, name, ref->slot, &index) ||
        !gd_history_tensor(history, index, &tensor) || tensor.is_scalar) {
        return gd_fail(err, GD_ENODATA, "%.300s:%u was not recorded", name, ref->slot);
    }
    count = gd_history_read(history, index, records, wanted);
    if (count < wanted) {
        return gd_fail(err, GD_ENODATA, "%.300s:%u has no record of %s step", name, ref->slot,
                       wanted == 2 && count == 1 ? "an earlier" : "these last");
    }
    if (!records[0].has_stats) {
        return gd_fail(err, GD_ENODATA, "%.300s:%u had no value in step %lld", name, ref->slot,
                       (long long)records[0].step);
    }
    fn(ctx, tensor.dtype, &tensor.shape, &records[0].stats, records[0].step, NULL);
    return GD_OK;
}

static const char *time_text(double seconds, char *out, size_t size)
{
    time_t when = seconds > 0 && seconds < 1e11 ? (time_t)seconds : 0;
    struct tm tm;

    if (!localtime_r(&when, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm)) {
        snprintf(out, size, "unknown");
    }
    return out;
}

static void describe_target(struct gd_target *target,
                            void (*fact)(void *ctx, const char *name, const char *value), void *ctx)
{
    struct gd_history_head head;
    char text[64];

    gd_history_head(target->session->history, &head);
    fact(ctx, "file", gd_history_path(target->session->history));
    fact(ctx, "recorded since", time_text(head.started, text, sizeof(text)));
    if (head.last_step >= 0) {
        snprintf(text, sizeof(text), "%lld to %lld", (long long)head.first_step,
                 (long long)head.last_step);
        fact(ctx, "recorded steps", text);
    }
    snprintf(text, sizeof(text), "%u", head.tensors);
    fact(ctx, "recorded tensors", text);
    if (head.left_out) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)head.left_out);
        fact(ctx, "tensors left out", text);
    }
    if (head.damaged) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)head.damaged);
        fact(ctx, "damaged parts", text);
    }
}

static void destroy_target(struct gd_target *target)
{
    free(target);
}

static const struct gd_target_ops recorder_ops = {
    .kind = "history",
    .fetch = fetch_tensor,
    .stats = answer_stats,
    .describe = describe_target,
    .destroy = destroy_target,
};

/* ---- opening --------------------------------------------------------------------------------- */

static double scalar_value(const struct gd_stats *stats)
{
    if (stats->nan) {
        return NAN;
    }
    return stats->pos_inf ? INFINITY : stats->neg_inf ? -INFINITY : stats->mean;
}

/* A session knows a scalar's first, last but one and last value. */
static void take_scalars(struct gd_session *session)
{
    struct gd_history_tensor tensor;
    struct gd_history_record *records = NULL, *grown;
    struct gd_history_head head;
    size_t room = 0;

    gd_history_head(session->history, &head);
    for (uint32_t i = 0; gd_history_tensor(session->history, i, &tensor); i++) {
        size_t count, wanted;

        if (!tensor.is_scalar) {
            continue;
        }
        wanted = head.records < tensor.seen ? head.records : (size_t)tensor.seen;
        grown = gd_grow_to(records, wanted, &room, sizeof(*records));
        if (!grown) {
            break;
        }
        records = grown;
        count = gd_history_read(session->history, i, records, wanted);
        for (size_t k = 0; k < count; k++) {
            if (records[k].has_stats && (k == 0 || k + 2 >= count)) {
                gd_session_on_scalar(session, tensor.name, scalar_value(&records[k].stats),
                                     records[k].step);
            }
        }
    }
    free(records);
}

static int make_session(struct gd_debugger *debugger, struct gd_history *history,
                        struct gd_session **ret, struct gd_err *err)
{
    struct gd_target *target = calloc(1, sizeof(*target));
    struct gd_history_head head;
    struct gd_session_record record = {.history = history, .stop = {.node = GD_NO_NODE}};
    char why[64];
    int rc;

    if (!target) {
        return gd_fail_nomem(err);
    }
    target->ops = &recorder_ops;
    target->capabilities = GD_CAN_STATS | GD_CAN_PREVIOUS;
    gd_history_head(history, &head);
    rc = make_graph(history, debugger->settings.max_graph_memory, &record.graph, err);
    if (rc != GD_OK) {
        free(target);
        return rc;
    }
    if (head.last_step < 0) {
        snprintf(why, sizeof(why), "recorded by gradb, no step");
    } else {
        snprintf(why, sizeof(why), "recorded by gradb, last step %lld", (long long)head.last_step);
    }
    record.peer = &head.peer;
    record.why = why;
    record.stop.step = head.last_step < 0 ? 0 : head.last_step;
    record.stop.at_step_end = head.last_step >= 0;
    rc = gd_session_create_record(debugger, target, &record, ret, err);
    if (rc != GD_OK) {
        gd_graph_destroy(record.graph);
    }
    return rc;
}

int gd_recorder_open(struct gd_debugger *debugger, const char *path, struct gd_session **ret,
                     struct gd_err *err)
{
    struct gd_history *history;
    int rc = gd_history_open(path, &history, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = make_session(debugger, history, ret, err);
    if (rc != GD_OK) {
        gd_history_close(history);
        return rc;
    }
    take_scalars(*ret);
    return GD_OK;
}

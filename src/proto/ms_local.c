// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Change conditions for processes that keep no previous values (GPU since 1.6.1): at the end of
 * each step their tensors are fetched, compared with our copy of the step before, and kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/condition.h"
#include "proto/ms_target_impl.h"

struct kept { /* the last value that was seen of a node */
    gd_node_id node;
    struct gd_tensor *tensor;
    int64_t step;
};

struct ms_local {
    struct gd_ms_target *target;
    struct kept *kept;
    size_t count, cap;
    size_t waiting; /* values that are on their way */
    bool beginning; /* still asking: answers that come at once do not end it */
    uint64_t bytes;
    bool warned;
};

struct local_request {
    struct ms_local *local;
    gd_node_id node;
};

static struct kept *kept_slot(struct ms_local *local, gd_node_id node)
{
    for (size_t i = 0; i < local->count; i++)
        if (local->kept[i].node == node)
            return &local->kept[i];
    if (local->count == local->cap) {
        size_t cap = local->cap ? local->cap * 2 : 64;
        struct kept *kept = realloc(local->kept, cap * sizeof *kept);
        if (!kept)
            return NULL;
        local->kept = kept;
        local->cap = cap;
    }
    local->kept[local->count] = (struct kept){.node = node};
    return &local->kept[local->count++];
}

static void check_one(struct gd_ms_target *target, const struct ms_watch *watch,
                      const struct kept *before, const struct gd_tensor *now)
{
    struct gd_stats_options options;
    struct gd_stats stats;
    struct gd_hit hit;
    bool fired;
    memset(&hit, 0, sizeof hit);
    gd_condition_options(watch->condition, watch->params, watch->param_count, &options);
    if (gd_stats_compute(now, before->tensor, &options, &stats, NULL))
        return;
    hit.error = gd_condition_evaluate(watch->condition, watch->params, watch->param_count, &stats,
                                      hit.param, &fired);
    if (!fired && !hit.error)
        return;
    hit.watchpoint = watch->id;
    hit.condition = watch->condition;
    hit.step = target->at.step;
    hit.stop_sequence = target->base.session->stop.sequence + 1;
    hit.node = before->node;
    snprintf(hit.node_name, sizeof hit.node_name, "%s",
             gd_graph_name(target->base.session->graph, before->node));
    hit.param_count = (int)watch->param_count;
    ms_watch_report(target, &hit);
}

static bool covers(const struct ms_watch *watch, gd_node_id node)
{
    for (size_t i = 0; i < watch->node_count; i++)
        if (watch->nodes[i] == node)
            return true;
    return false;
}

static void compare_and_keep(struct ms_local *local, gd_node_id node, struct gd_tensor *tensor)
{
    struct gd_ms_target *target = local->target;
    struct kept *kept = kept_slot(local, node);
    if (!kept)
        return;
    bool same = kept->tensor && kept->tensor->dtype == tensor->dtype &&
                gd_shape_equal(&kept->tensor->shape, &tensor->shape);
    for (struct ms_watch *watch = target->watches; watch && same; watch = watch->next)
        if (watch->local && covers(watch, node))
            check_one(target, watch, kept, tensor);
    if (kept->tensor)
        local->bytes -= gd_tensor_bytes(kept->tensor);
    gd_tensor_unref(kept->tensor);
    kept->tensor = NULL;
    if (local->bytes + gd_tensor_bytes(tensor) > target->debugger->settings.max_cache) {
        if (!local->warned)
            ms_warn(target,
                    "max-cache is too small to keep the previous values of all weights that "
                    "watchpoints on changes cover");
        local->warned = true;
        return;
    }
    kept->tensor = gd_tensor_ref(tensor);
    kept->step = target->at.step;
    local->bytes += gd_tensor_bytes(tensor);
}

static void on_value(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct local_request *request = ctx;
    struct ms_local *local = request->local;
    (void)step;
    if (!err && tensor)
        compare_and_keep(local, request->node, tensor);
    free(request);
    if (--local->waiting == 0 && !local->beginning) {
        ms_arrived(local->target);
        ms_pump(local->target);
    }
}

static void ask_for(struct ms_local *local, gd_node_id node)
{
    struct local_request *request = malloc(sizeof *request);
    if (!request)
        return;
    *request = (struct local_request){local, node};
    struct gd_tensor_ref ref = {.node = node, .slot = 0, .iter = GD_CURRENT};
    local->waiting++;
    if (ms_view_fetch(&local->target->base, &ref, NULL, on_value, request, NULL)) {
        local->waiting--;
        free(request);
    }
}

static bool asked_before(const struct gd_ms_target *target, const struct ms_watch *until,
                         gd_node_id node)
{
    for (const struct ms_watch *watch = target->watches; watch != until; watch = watch->next)
        if (watch->local && covers(watch, node))
            return true;
    return false;
}

bool ms_local_begin(struct gd_ms_target *target)
{
    bool any = false;
    for (const struct ms_watch *watch = target->watches; watch; watch = watch->next)
        any = any || watch->local;
    if (!any || !target->at.at_end)
        return false;
    if (!target->local) {
        target->local = calloc(1, sizeof *target->local);
        if (!target->local)
            return false;
        target->local->target = target;
    }
    struct ms_local *local = target->local;
    target->phase = MS_SUSPENDED; /* its polls between the views are no arrivals */
    local->beginning = true;
    for (const struct ms_watch *watch = target->watches; watch; watch = watch->next)
        for (size_t i = 0; watch->local && i < watch->node_count; i++)
            if (!asked_before(target, watch, watch->nodes[i]))
                ask_for(local, watch->nodes[i]);
    local->beginning = false;
    return local->waiting > 0;
}

void ms_local_forget(struct gd_ms_target *target)
{
    struct ms_local *local = target->local;
    if (!local)
        return;
    for (size_t i = 0; i < local->count; i++)
        gd_tensor_unref(local->kept[i].tensor);
    free(local->kept);
    free(local);
    target->local = NULL;
}

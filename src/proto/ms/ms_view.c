// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tensors of a MindSpore process. Replies carry no id, and those about shapes not even a name: so
 * one ViewCMD is pending at a time, with one tensor or several small ones, which are answered in
 * the order of the requests. From 1.5 on the shape is requested first, because a process that is
 * asked for too large a value throws, and the training dies.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/ms/ms_target_impl.h"

/* Larger values are not fetched for their statistics: the process computes those itself, although
 * fewer of them. */
#define MAX_FETCH_FOR_STATS (256u * 1024 * 1024)
#define MAX_VIEWS           128          /* per command */
#define MAX_TOGETHER        (256 * 1024) /* bytes of values per command */
/* A tensor that was no larger than this before will not have grown beyond what may be requested. */
#define MAX_WITHOUT_BASE    (16u * 1024 * 1024)

/* ---- the queue ----------------------------------------------------------------------------- */

static void add_view(struct gd_ms_target *target, struct ms_view *view)
{
    *target->views_end = view;
    target->views_end = &view->next;
}

static void add_view_first(struct gd_ms_target *target, struct ms_view *view)
{
    view->next = target->views;
    target->views = view;
    if (!view->next) {
        target->views_end = &view->next;
    }
}

static void remove_view(struct gd_ms_target *target, struct ms_view *view)
{
    struct ms_view **link = &target->views;
    while (*link != view) {
        link = &(*link)->next;
    }
    *link = view->next;
    if (!view->next) {
        target->views_end = link;
    }
    view->next = NULL;
}

/* The first one being answered; pending views are at the head of the queue, in order. */
static struct ms_view *first_out(const struct gd_ms_target *target)
{
    struct ms_view *view = target->views;
    while (view && !view->out) {
        view = view->next;
    }
    return view;
}

static bool is_stored(const struct gd_node_info *info) /* parameters and constants */
{
    return strcmp(info->type, "Parameter") == 0 || strcmp(info->type, "Const") == 0;
}

/* Operators are requested by full name; parameters and constants by any path whose last component
 * is their stored name: we use their place in the graph, as MindInsight did. */
void ms_view_name(const struct gd_node_info *info, char *out, size_t size)
{
    const char *name = info->own_name; /* the process does not know the name of the graph */
    size_t len = strlen(name), tail = strlen(info->wire_name);
    bool placed = is_stored(info) && len > tail && name[len - tail - 1] == '/' &&
                  strcmp(name + len - tail, info->wire_name) == 0;
    snprintf(out, size, "%s", placed ? name : info->wire_name);
}

/* A process keeps outputs of operators by name: those of one graph hide those of another. */
static int check_graph(struct gd_ms_target *target, const struct gd_node_info *info,
                       struct gd_err *err)
{
    uint32_t current = ms_current_graph(target);
    if (info->name == info->own_name || is_stored(info)) {
        return GD_OK;
    }
    if (current == GD_NO_SUBGRAPH) {
        ms_tell_shared(target, info->own_name);
        return GD_OK;
    }
    if (current == info->subgraph ||
        gd_graph_lookup_in(target->base.session->graph, current, info->wire_name,
                           strlen(info->wire_name)) == GD_NO_NODE) {
        return GD_OK;
    }
    return gd_fail(err, GD_ENODATA,
                   "%.300s has no value at this stop: graph %.100s ran last, and a MindSpore "
                   "process keeps one value per name",
                   info->name, gd_graph_subgraph_name(target->base.session->graph, current));
}

/* Exactly one of the functions gets the answer; the other is NULL. */
static int make_view(struct gd_ms_target *target, const struct gd_tensor_ref *ref,
                     gd_tensor_fn tensor_fn, gd_stats_fn stats_fn, void *ctx, struct ms_view **ret,
                     struct gd_err *err)
{
    struct gd_node_info info;
    if (!gd_graph_node(target->base.session->graph, ref->node, &info)) {
        return gd_fail(err, GD_ENOTFOUND, "there is no such node");
    }
    if (ref->iter == GD_PREVIOUS && strcmp(info.type, "Parameter") != 0) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a MindSpore process keeps previous values of parameters only, not of %s",
                       info.name);
    }
    int rc = check_graph(target, &info, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_output output;
    size_t bytes = 0;
    if (gd_graph_output(target->base.session->graph, ref->node, ref->slot, &output) &&
        gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) == GD_OK &&
        bytes > GD_MS_MAX_VALUE && !target->version.has_levels) {
        return gd_fail(err, GD_ELIMIT,
                       "%s:%u has %zu bytes according to its shape; this process exits when asked "
                       "for more than %u",
                       info.name, ref->slot, bytes, GD_MS_MAX_VALUE);
    }
    struct ms_view *view = calloc(1, sizeof(*view));
    if (!view) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a request");
    }
    view->ref = *ref;
    view->tensor_fn = tensor_fn;
    view->stats_fn = stats_fn;
    view->ctx = ctx;
    view->bytes = bytes;
    view->level = target->version.has_levels ? GD_MS_BASE : GD_MS_VALUE;
    view->base_tried = target->version.has_levels;
    ms_view_name(&info, view->name, sizeof(view->name));
    *ret = view;
    return GD_OK;
}

int ms_view_fetch(struct gd_target *base, const struct gd_tensor_ref *ref,
                  const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    struct ms_view *view;
    int rc = make_view(target, ref, fn, NULL, ctx, &view, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (slice) {
        view->slice = *slice;
    }
    add_view(target, view);
    ms_pump(target);
    return GD_OK;
}

int ms_view_value(struct gd_ms_target *target, const struct gd_tensor_ref *ref,
                  uint64_t known_bytes, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    struct ms_view *view;
    int rc = make_view(target, ref, fn, NULL, ctx, &view, err);
    if (rc != GD_OK) {
        return rc;
    }
    /* With several graphs, the base also says whether the tensor belongs to this step. */
    if (known_bytes && known_bytes <= MAX_WITHOUT_BASE && target->graphs <= 1) {
        view->level = GD_MS_VALUE;
    }
    view->base_tried = view->level == GD_MS_BASE;
    view->together = true;
    if (known_bytes) {
        view->bytes = known_bytes;
    }
    if (ref->iter == GD_PREVIOUS) {
        add_view_first(target, view);
    } else {
        add_view(target, view);
    }
    return GD_OK;
}

int ms_view_summary(struct gd_ms_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                    void *ctx, struct gd_err *err)
{
    struct ms_view *view;
    int rc = make_view(target, ref, NULL, fn, ctx, &view, err);
    if (rc != GD_OK) {
        return rc;
    }
    view->level = GD_MS_STATISTICS;
    view->together = true;
    add_view(target, view);
    return GD_OK;
}

int ms_view_stats(struct gd_target *base, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                  void *ctx, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    struct ms_view *view;
    int rc = make_view(target, ref, NULL, fn, ctx, &view, err);
    if (rc != GD_OK) {
        return rc;
    }
    add_view(target, view);
    ms_pump(target);
    return GD_OK;
}

/* Whether `view` may be sent with others that take `bytes` together: only if it is small, because
 * the process copies everything requested before it sends any of it. */
static bool goes_along(const struct ms_view *view, const struct ms_view *first, uint64_t bytes)
{
    if (!first->together || !view->together || view->level != first->level) {
        return false;
    }
    return view->level != GD_MS_VALUE ||
           (view->bytes && view->bytes <= MAX_TOGETHER && bytes <= MAX_TOGETHER - view->bytes);
}

static struct gd_ms_view_item item_of(const struct gd_ms_target *target, const struct ms_view *view)
{
    struct gd_node_info info;
    bool truncate =
        gd_graph_node(target->base.session->graph, view->ref.node, &info) && is_stored(&info);
    return (struct gd_ms_view_item){view->name, view->ref.slot, view->ref.iter == GD_PREVIOUS,
                                    truncate};
}

int ms_view_write(struct gd_ms_target *target, struct gd_buf *out)
{
    struct ms_view *first = target->views;
    struct gd_ms_view_item items[MAX_VIEWS] = {item_of(target, first)};
    uint64_t bytes = first->bytes && first->bytes < MAX_TOGETHER ? first->bytes : MAX_TOGETHER;
    size_t count = 1;
    for (const struct ms_view *view = first->next;
         view && count < MAX_VIEWS && goes_along(view, first, bytes); view = view->next) {
        items[count++] = item_of(target, view);
        bytes += first->level == GD_MS_VALUE ? view->bytes : 0;
    }
    int rc = gd_ms_write_views(out, items, count, first->level);
    for (struct ms_view *view = first; rc == GD_OK && count; view = view->next, count--) {
        view->out = true;
    }
    target->views_sent++;
    return rc;
}

bool gd_ms_target_expects(const struct gd_ms_target *target, size_t *bytes)
{
    const struct ms_view *view = first_out(target);
    *bytes = 0;
    if (!view) {
        return false;
    }
    bool alone = !view->next || !view->next->out;
    if (alone && view->has_base && view->level == GD_MS_VALUE) {
        *bytes = (size_t)view->base.bytes;
    }
    return true;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Marks the predecessors or successors of a node: of two nodes connected by an edge, one ran before
 * the other. */
static void mark_from(struct gd_ms_target *target, gd_node_id from, bool forward, gd_node_id *stack)
{
    const struct gd_graph *graph = target->base.session->graph;
    uint8_t mark = forward ? MS_RAN_NOT : MS_RAN;
    size_t depth = 1;
    stack[0] = from;
    while (depth > 0) {
        gd_node_id node = stack[--depth];
        struct gd_node_info info;
        const struct gd_edge *edges;
        uint32_t count;
        if (!gd_graph_node(graph, node, &info)) {
            continue;
        }
        edges = info.inputs;
        count = forward ? gd_graph_consumers(graph, node, &edges) : info.input_count;
        for (uint32_t i = 0; i < count; i++) {
            if (edges[i].node < target->ran_limit && !target->ran[edges[i].node]) {
                target->ran[edges[i].node] = mark;
                stack[depth++] = edges[i].node;
            }
        }
    }
}

/* Whether it has run at a stop inside a step, as far as the edges say. */
static enum ms_ran has_run(struct gd_ms_target *target, gd_node_id node)
{
    const struct gd_graph *graph = target->base.session->graph;
    gd_node_id here = ms_stopped_node(target);
    if (here == GD_NO_NODE) {
        return MS_RAN_UNKNOWN;
    }
    if (target->ran_at != target->moves || !target->ran) {
        free(target->ran);
        target->ran_limit = gd_graph_node_limit(graph);
        target->ran = calloc((size_t)target->ran_limit + 1, 1);
        gd_node_id *stack = malloc(((size_t)target->ran_limit + 1) * sizeof(*stack));
        if (target->ran && stack) {
            target->ran[here] = MS_RAN;
            mark_from(target, here, true, stack);
            mark_from(target, here, false, stack);
        }
        free(stack);
        target->ran_at = target->moves;
    }
    return target->ran && node < target->ran_limit ? (enum ms_ran)target->ran[node]
                                                   : MS_RAN_UNKNOWN;
}

/* For an operator that has not run in this step, the process still holds its value of the previous
 * step. */
static int64_t step_of(struct gd_ms_target *target, const struct ms_view *view)
{
    struct gd_node_info info;
    if (view->ref.iter == GD_PREVIOUS) {
        return target->at.step - 1;
    }
    if (target->at.at_end || !target->is_gpu ||
        !gd_graph_node(target->base.session->graph, view->ref.node, &info) || is_stored(&info)) {
        return target->at.step;
    }
    switch (has_run(target, view->ref.node)) {
    case MS_RAN: return target->at.step;
    case MS_RAN_NOT: return target->at.step - 1;
    case MS_RAN_UNKNOWN: break;
    }
    return -1;
}

static void give_tensor(struct gd_ms_target *target, struct ms_view *view, struct gd_tensor *tensor)
{
    struct gd_tensor *cut = NULL;
    struct gd_err err;
    int64_t step = step_of(target, view);
    if (!view->slice.count) {
        view->tensor_fn(view->ctx, tensor, step, NULL);
        return;
    }
    /* The complete value is here now: the next slice needs no request. */
    gd_session_keep(target->base.session, &view->ref, tensor, step);
    if (gd_tensor_slice(tensor, &view->slice, &cut, &err) != GD_OK) {
        view->tensor_fn(view->ctx, NULL, step, &err);
    } else {
        view->tensor_fn(view->ctx, cut, step, NULL);
    }
    gd_tensor_unref(cut);
}

static void give_stats(struct gd_ms_target *target, struct ms_view *view, struct gd_tensor *tensor,
                       const struct gd_stats *stats)
{
    struct gd_stats own;
    struct gd_err err;
    int64_t step = step_of(target, view);
    if (!tensor) {
        view->stats_fn(view->ctx, view->base.dtype, &view->base.shape, stats, step, NULL);
        return;
    }
    gd_session_keep(target->base.session, &view->ref, tensor, step);
    if (gd_stats_compute(tensor, NULL, NULL, &own, &err) != GD_OK) {
        view->stats_fn(view->ctx, tensor->dtype, &tensor->shape, NULL, step, &err);
    } else {
        view->stats_fn(view->ctx, tensor->dtype, &tensor->shape, &own, step, NULL);
    }
}

/* Ends a request. */
static void finish_view(struct gd_ms_target *target, struct ms_view *view, struct gd_tensor *tensor,
                        const struct gd_stats *stats, const struct gd_err *err)
{
    remove_view(target, view);
    if (tensor && view->ref.iter == GD_CURRENT) { /* shapes that the graph left open */
        struct gd_output output = {tensor->dtype, tensor->shape};
        gd_graph_set_output(target->base.session->graph, view->ref.node, view->ref.slot, &output);
    }
    if (err && view->tensor_fn) {
        view->tensor_fn(view->ctx, NULL, -1, err);
    } else if (err) {
        view->stats_fn(view->ctx, GD_DT_NONE, NULL, NULL, -1, err);
    } else if (view->tensor_fn) {
        give_tensor(target, view, tensor);
    } else {
        give_stats(target, view, tensor, stats);
    }
    free(view);
}

static void fail_view(struct gd_ms_target *target, struct ms_view *view, int code, const char *why)
{
    struct gd_err err;
    gd_fail(&err, code, "%s:%" PRIu32 " %s", view->name, view->ref.slot, why);
    finish_view(target, view, NULL, NULL, &err);
}

static void not_available(struct gd_ms_target *target, struct ms_view *view)
{
    if (view->ref.iter == GD_PREVIOUS) {
        fail_view(target, view, GD_ENODATA,
                  target->is_gpu && target->version.gpu_lacks_previous
                      ? "has no previous value: since 1.6.1 MindSpore keeps none on GPU"
                      : "has no previous value yet");
    } else if (target->is_gpu) {
        fail_view(target, view, GD_ENODATA,
                  "has no value at this stop: on GPU a process keeps only what a watchpoint covers "
                  "and the node that it stopped at");
    } else {
        fail_view(target, view, GD_ENODATA,
                  target->at.step > 0
                      ? "has no value at this stop: a process with MS_DEBUGGER_PARTIAL_MEM=1 keeps "
                        "only what was watched before its first step"
                      : "has no value before the first step");
    }
}

static void give_empty(struct gd_ms_target *target, struct ms_view *view)
{
    struct gd_tensor *tensor;
    struct gd_err err;
    const struct gd_ms_base *base = &view->base;
    if (gd_tensor_create(base->dtype, &base->shape, 0, &tensor, &err) != GD_OK) {
        finish_view(target, view, NULL, NULL, &err);
        return;
    }
    finish_view(target, view, tensor, NULL, NULL);
    gd_tensor_unref(tensor);
}

/* The shape is known: decides what to request next, or ends the request. */
static void use_base(struct gd_ms_target *target, struct ms_view *view)
{
    const struct gd_ms_base *base = &view->base;
    uint64_t limit = target->debugger->settings.max_tensor;
    char text[200];
    view->out = false;
    view->bytes = (uint64_t)base->bytes;
    if (!base->bytes && !base->dtype) {
        not_available(target, view);
    } else if (!base->dtype) {
        snprintf(text, sizeof(text),
                 "has elements of type %" PRId64 ", which is not a numeric type", base->wire_dtype);
        fail_view(target, view, GD_EUNSUPPORTED, text);
    } else if (!base->bytes && gd_shape_count(&base->shape) != 0) {
        fail_view(target, view, GD_EPROTO, "arrived with a non-empty shape but a size of 0 bytes");
    } else if (!base->bytes) {
        give_empty(target, view); /* the process would send nothing for it */
    } else if (view->stats_fn && base->bytes > MAX_FETCH_FOR_STATS) {
        view->level = GD_MS_STATISTICS;
    } else if (base->bytes > GD_MS_MAX_VALUE) {
        snprintf(text, sizeof(text),
                 "has %" PRId64
                 " bytes; a MindSpore process can send at most %u (its statistics are available)",
                 base->bytes, GD_MS_MAX_VALUE);
        fail_view(target, view, GD_ELIMIT, text);
    } else if (limit && (uint64_t)base->bytes > limit) {
        snprintf(text, sizeof(text),
                 "has %" PRId64 " bytes, which exceeds max-tensor (%" PRIu64 ")", base->bytes,
                 limit);
        fail_view(target, view, GD_ELIMIT, text);
    } else {
        view->level = GD_MS_VALUE;
    }
}

void gd_ms_target_on_base(struct gd_ms_target *target, const struct gd_ms_base *base)
{
    struct ms_view *view = first_out(target);
    if (!view || view->level != GD_MS_BASE || view->has_base) {
        return;
    }
    view->base = *base;
    view->has_base = true;
    use_base(target, view);
}

void gd_ms_target_on_summary(struct gd_ms_target *target, const struct gd_ms_summary *summary)
{
    struct ms_view *view = first_out(target);
    if (!view || view->level != GD_MS_STATISTICS) {
        return;
    }
    if (!summary->base.bytes && !summary->base.dtype) {
        not_available(target, view);
        return;
    }
    struct gd_stats stats;
    view->base = summary->base;
    memset(&stats, 0, sizeof(stats));
    stats.count = summary->count;
    stats.nan = summary->nan;
    stats.pos_inf = summary->pos_inf;
    stats.neg_inf = summary->neg_inf;
    stats.zero = summary->zero;
    stats.positive = summary->positive;
    stats.negative = summary->negative;
    stats.min = (double)summary->min;
    stats.max = (double)summary->max;
    /* From 1.6 on, the average of more than 10,000 elements covers only the first part. */
    bool wrong = target->version.average_wrong && summary->count > 10000;
    stats.mean = wrong ? NAN : (double)summary->avg;
    stats.abs_mean = stats.sum_sq = stats.std = NAN; /* not reported */
    gd_stats_prove(stats.max, stats.min, wrong ? 0 : stats.mean, 0, &stats);
    finish_view(target, view, NULL, &stats, NULL);
}

static bool is_asked_for(const struct ms_view *view, const char *name, const char *slot,
                         const char *iter)
{
    char own_slot[16];
    snprintf(own_slot, sizeof(own_slot), "%" PRIu32, view->ref.slot);
    const char *own_iter = view->ref.iter == GD_PREVIOUS ? "prev" : "";
    return strcmp(view->name, name) == 0 && strcmp(own_slot, slot) == 0 &&
           strcmp(own_iter, iter) == 0;
}

void gd_ms_target_on_tensor(struct gd_ms_target *target, const char *name, const char *slot,
                            const char *iter, struct gd_tensor *tensor, const struct gd_err *err)
{
    struct ms_view *view = target->views;
    /* Also if the shape was requested: releases before 1.5 answer everything with the value. */
    while (view && (!view->out || !is_asked_for(view, name, slot, iter))) {
        view = view->next;
    }
    if (!view) {
        return;
    }
    if (err) {
        target->failures++;
    }
    if (err || tensor) {
        finish_view(target, view, err ? NULL : tensor, NULL, err);
    } else {
        not_available(target, view);
    }
}

static void find_unanswered(struct gd_ms_target *target, struct ms_view *view)
{
    struct gd_output output;
    bool known =
        gd_graph_output(target->base.session->graph, view->ref.node, view->ref.slot, &output);
    if (view->level == GD_MS_VALUE && known && gd_dtype_size(output.dtype) &&
        gd_shape_count(&output.shape) == 0) {
        view->base.dtype = output.dtype; /* nothing is sent for an empty tensor */
        view->base.shape = output.shape;
        give_empty(target, view);
        return;
    }
    if (view->level == GD_MS_VALUE && target->version.has_levels && !view->base_tried) {
        view->level = GD_MS_BASE; /* its size was assumed to be unchanged */
        view->base_tried = true;
        view->out = false;
        return;
    }
    /* it does not support levels after all: falls back to a plain request */
    if (view->level == GD_MS_BASE) {
        view->level = GD_MS_VALUE;
        view->out = false;
        return;
    }
    fail_view(target, view, GD_ENODATA, "was requested, but the training process did not send it");
}

void ms_view_unanswered(struct gd_ms_target *target)
{
    for (struct ms_view *view; (view = first_out(target));) {
        find_unanswered(target, view);
    }
}

void ms_view_fail_all(struct gd_ms_target *target, int code, const char *why)
{
    size_t count = 0; /* current ones only: the callbacks may add requests */
    for (const struct ms_view *view = target->views; view; view = view->next) {
        count++;
    }
    while (count-- > 0) {
        struct gd_err err;
        struct ms_view *view = target->views;
        gd_fail(&err, code, "%s:%" PRIu32 " is unavailable: %s", view->name, view->ref.slot, why);
        finish_view(target, view, NULL, NULL, &err);
    }
}

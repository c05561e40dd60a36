// SPDX-License-Identifier: GPL-3.0-or-later
/* Statistics of a tensor: from the cache, from the target, or computed here of its value. */
#include "engine/cache.h"
#include "engine/session_request.h"

/* The held value that `tensor`, the value of `ref`, is compared with; NULL: none. */
static struct gd_tensor *previous_of(struct gd_session *session, const struct gd_tensor_ref *ref,
                                     const struct gd_tensor *tensor)
{
    struct gd_tensor_ref before = *ref;

    if (ref->iter != GD_CURRENT) {
        return NULL;
    }
    before.iter = GD_PREVIOUS;
    struct gd_tensor *prev = gd_cache_get(session->impl->cache, &before, NULL);
    return prev && gd_tensor_is_alike(prev, tensor) ? prev : NULL;
}

static int compute_stats(struct gd_session *session, const struct gd_tensor_ref *ref,
                         struct gd_tensor *tensor, const struct gd_stats_options *options,
                         struct gd_stats *ret, struct gd_err *err)
{
    struct gd_tensor *prev = previous_of(session, ref, tensor);

    gd_tensor_ref(tensor); /* options->go_on may run the loop, which may empty the cache */
    prev = prev ? gd_tensor_ref(prev) : NULL;
    int rc = gd_stats_compute(tensor, prev, options, ret, err);
    gd_tensor_unref(prev);
    gd_tensor_unref(tensor);
    return rc;
}

int gd_session_stats_of(struct gd_session *session, const struct gd_tensor_ref *ref,
                        struct gd_tensor *tensor, int64_t step,
                        const struct gd_stats_options *options, struct gd_stats *ret,
                        struct gd_err *err)
{
    uint64_t sequence = session->stop.sequence;
    int rc = compute_stats(session, ref, tensor, options, ret, err);

    if (rc == GD_OK && session->state != GD_RUNNING && session->stop.sequence == sequence) {
        gd_cache_put_stats(session->impl->cache, ref, tensor->dtype, &tensor->shape, ret, step);
    }
    return rc;
}

bool gd_session_computes_stats(const struct gd_session *session, const struct gd_tensor_ref *ref)
{
    const struct gd_target *target = session->target;

    return (!target || (target->capabilities & GD_CAN_STATS) == 0) &&
           (session->state == GD_RUNNING || !gd_cache_has_stats(session->impl->cache, ref));
}

static void answer_stats(struct session_request *request, enum gd_dtype dtype,
                         const struct gd_shape *shape, const struct gd_stats *stats, int64_t step)
{
    if (request_is_current(request)) {
        gd_cache_put_stats(request->session->impl->cache, &request->ref, dtype, shape, stats, step);
    }
    request->answered = true;
    request->stats_fn(request->ctx, dtype, shape, stats, step, NULL);
}

static void tensor_came(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct session_request *request = ctx;
    struct gd_stats stats;
    struct gd_err failed;

    if (!request_accept(request, tensor, &step, err)) {
        return;
    }
    gd_tensor_ref(tensor); /* the cache may be emptied by what the callback does */
    if (compute_stats(request->session, &request->ref, tensor, NULL, &stats, &failed) == GD_OK) {
        answer_stats(request, tensor->dtype, &tensor->shape, &stats, step);
    } else {
        request_fail(request, &failed);
    }
    gd_tensor_unref(tensor);
    request_free(request);
}

/* For a target that cannot compute them. */
static int fetch_for_stats(struct session_request *request, struct gd_err *err)
{
    request->whole = true;
    return gd_target_fetch(request->session->target, &request->ref, NULL, tensor_came, request,
                           err);
}

static void stats_came(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                       const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct session_request *request = ctx;
    struct gd_err failed;

    if (request->answered) {
        request_free(request);
        return;
    }
    if (err && err->code == GD_EUNSUPPORTED && request->session->target) {
        if (fetch_for_stats(request, &failed) == GD_OK) {
            return;
        }
        err = &failed;
    }
    if (!err && (!stats || !shape)) {
        gd_fail(&failed, GD_EPROTO, "the target answered without statistics");
        err = &failed;
    }
    if (err) {
        request_fail(request, err);
    } else {
        answer_stats(request, dtype, shape, stats, request_step(request, step));
    }
    request_free(request);
}

/* Statistics without asking the target; GD_ENODATA if there is nothing to compute them from. */
static int stats_from_cache(struct gd_session *session, const struct gd_tensor_ref *ref,
                            gd_stats_fn fn, void *ctx, struct gd_err *err)
{
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step;

    if (gd_cache_get_stats(session->impl->cache, ref, &dtype, &shape, &stats, &step)) {
        fn(ctx, dtype, &shape, &stats, step, NULL);
        return GD_OK;
    }
    struct gd_tensor *tensor = gd_cache_get(session->impl->cache, ref, &step);
    if (!tensor) {
        return session_no_value(session, ref, err);
    }
    gd_tensor_ref(tensor); /* the cache may be emptied by what the callback does */
    int rc = gd_session_stats_of(session, ref, tensor, step, NULL, &stats, err);
    if (rc == GD_OK) {
        fn(ctx, tensor->dtype, &tensor->shape, &stats, step, NULL);
    }
    gd_tensor_unref(tensor);
    return rc;
}

int gd_session_stats(struct gd_session *session, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                     void *ctx, struct gd_err *err)
{
    struct gd_err scratch;

    err = err ? err : &scratch;
    if (gd_graph_is_compiled(session->graph, ref->node, err)) {
        return GD_ENODATA;
    }
    int rc =
        session->state != GD_RUNNING ? stats_from_cache(session, ref, fn, ctx, err) : GD_ENODATA;
    if (rc != GD_ENODATA) {
        return rc;
    }
    if (!session->target) {
        return session_no_value(session, ref, err);
    }
    struct session_request *request = request_add(session, ref, ctx, err);
    if (!request) {
        return GD_ENOMEM;
    }
    request->stats_fn = fn;
    rc = gd_target_stats(session->target, ref, stats_came, request, err);
    if (rc == GD_EUNSUPPORTED) {
        rc = fetch_for_stats(request, err);
    }
    if (rc != GD_OK) {
        request_free(request);
    }
    return rc;
}

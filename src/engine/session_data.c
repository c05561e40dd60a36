// SPDX-License-Identifier: GPL-3.0-or-later
/* The values of tensors: those that the session keeps, and fetching one from the target. */
#include "engine/cache.h"
#include "engine/session_request.h"

void gd_session_keep(struct gd_session *session, const struct gd_tensor_ref *ref,
                     struct gd_tensor *tensor, int64_t step)
{
    gd_cache_put(session->impl->cache, ref, tensor, step);
}

uint64_t gd_session_cached_bytes(const struct gd_session *session)
{
    return gd_cache_bytes(session->impl->cache);
}

void gd_session_limit_cache(struct gd_session *session, uint64_t max_bytes)
{
    gd_cache_set_max(session->impl->cache, max_bytes);
}

void gd_session_forget_values(struct gd_session *session)
{
    gd_cache_set_max(session->impl->cache, 0);
    gd_cache_set_max(session->impl->cache, session->debugger->settings.max_cache);
}

struct gd_tensor *gd_session_held(struct gd_session *session, const struct gd_tensor_ref *ref,
                                  int64_t *step)
{
    struct gd_tensor *held = gd_cache_get(session->impl->cache, ref, step);

    return held ? gd_tensor_ref(held) : NULL;
}

static void tensor_came(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct session_request *request = ctx;

    if (request_accept(request, tensor, &step, err)) {
        gd_tensor_ref(tensor); /* the cache may be emptied by what the callback does */
        request->answered = true;
        request->tensor_fn(request->ctx, tensor, step, NULL);
        gd_tensor_unref(tensor);
        request_free(request);
    }
}

static int answer_from(struct gd_tensor *whole, const struct gd_slice *slice, int64_t step,
                       gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    bool all = !slice || slice->count == 0;
    struct gd_tensor *part = all ? gd_tensor_ref(whole) : NULL;
    int rc = all ? GD_OK : gd_tensor_slice(whole, slice, &part, err);

    if (rc == GD_OK) {
        fn(ctx, part, step, NULL);
        gd_tensor_unref(part);
    }
    return rc;
}

int gd_session_fetch(struct gd_session *session, const struct gd_tensor_ref *ref,
                     const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    if (gd_graph_is_compiled(session->graph, ref->node, err)) {
        return GD_ENODATA;
    }
    int64_t step = -1;
    struct gd_tensor *whole =
        session->state != GD_RUNNING ? gd_cache_get(session->impl->cache, ref, &step) : NULL;

    if (whole) {
        return answer_from(whole, slice, step, fn, ctx, err);
    }
    if (!session->target) {
        return session_no_value(session, ref, err);
    }
    struct session_request *request = request_add(session, ref, ctx, err);
    if (!request) {
        return GD_ENOMEM;
    }
    request->whole = !slice || (slice->count == 0 && !slice->abridge);
    request->tensor_fn = fn;
    int rc = gd_target_fetch(session->target, ref, slice, tensor_came, request, err);
    if (rc != GD_OK) {
        request_free(request);
    }
    return rc;
}

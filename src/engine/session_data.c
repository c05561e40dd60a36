// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>

#include "engine/cache.h"
#include "engine/session_impl.h"

/*
 * A request that was passed to the target. The front end gets its answer exactly once: from the
 * target, or when the session ends. In the latter case the request stays until the target releases
 * it.
 */
struct session_request {
    struct gd_session *session;
    struct session_request *next, *prev;
    struct gd_tensor_ref ref;
    uint64_t sequence; /* of the stop whose value was asked for */
    bool whole;        /* not a slice: may be cached */
    bool answered;
    gd_tensor_fn tensor_fn; /* one of the two */
    gd_stats_fn stats_fn;
    void *ctx;
};

static struct session_request *add_request(struct gd_session *session,
                                           const struct gd_tensor_ref *ref, void *ctx,
                                           struct gd_err *err)
{
    struct session_request *request = calloc(1, sizeof(*request));

    if (!request) {
        gd_fail_nomem(err);
        return NULL;
    }
    request->session = session;
    request->ref = *ref;
    request->sequence = session->stop.sequence;
    request->ctx = ctx;
    request->next = session->impl->requests;
    if (request->next) {
        request->next->prev = request;
    }
    session->impl->requests = request;
    return request;
}

static void free_request(struct session_request *request)
{
    if (request->next) {
        request->next->prev = request->prev;
    }
    if (request->prev) {
        request->prev->next = request->next;
    } else {
        request->session->impl->requests = request->next;
    }
    free(request);
}

static void answer_error(struct session_request *request, const struct gd_err *err)
{
    request->answered = true;
    if (request->tensor_fn) {
        request->tensor_fn(request->ctx, NULL, -1, err);
    } else {
        request->stats_fn(request->ctx, GD_DT_NONE, NULL, NULL, -1, err);
    }
}

static void answer_all(struct gd_session *session, const struct gd_err *err)
{
    struct session_request *request = session->impl->requests;

    while (request) {
        if (request->answered) {
            request = request->next;
            continue;
        }
        answer_error(request, err);
        /* The callback may have freed requests by asking for more: start over. Answered ones are
         * skipped, so this ends. */
        request = session->impl->requests;
    }
}

void session_drop_requests(struct gd_session *session)
{
    struct gd_err err;

    gd_fail(&err, GD_ELOST, "the training process went away before it answered");
    answer_all(session, &err);
    while (session->impl->requests) {
        free_request(session->impl->requests);
    }
}

/* A value belongs in the cache only if the session is still at the stop where it was asked for. */
static bool still_there(const struct session_request *request)
{
    const struct gd_session *session = request->session;

    return session->stop.sequence == request->sequence && session->state != GD_RUNNING;
}

static int64_t step_of(const struct gd_session *session, int64_t step)
{
    return step < 0 && session->stop.at_step_end ? session->stop.step : step;
}

/* ---- statistics of what we hold -------------------------------------------------------------- */

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

struct gd_tensor *gd_session_held(struct gd_session *session, const struct gd_tensor_ref *ref,
                                  int64_t *step)
{
    struct gd_tensor *held = gd_cache_get(session->impl->cache, ref, step);

    return held ? gd_tensor_ref(held) : NULL;
}

static void answer_stats(struct session_request *request, enum gd_dtype dtype,
                         const struct gd_shape *shape, const struct gd_stats *stats, int64_t step)
{
    if (still_there(request)) {
        gd_cache_put_stats(request->session->impl->cache, &request->ref, dtype, shape, stats, step);
    }
    request->answered = true;
    request->stats_fn(request->ctx, dtype, shape, stats, step, NULL);
}

/* ---- answers of the target ------------------------------------------------------------------- */

static void tensor_came(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct session_request *request = ctx;
    struct gd_session *session = request->session;
    struct gd_stats stats;
    struct gd_err failed;

    if (request->answered) {
        free_request(request);
        return;
    }
    if (!err && !tensor) {
        gd_fail(&failed, GD_EPROTO, "the target answered without a value");
        err = &failed;
    }
    if (err) {
        answer_error(request, err);
        free_request(request);
        return;
    }
    step = step_of(session, step);
    gd_tensor_ref(tensor); /* the cache may be emptied by what the callback does */
    if (request->whole && still_there(request)) {
        gd_cache_put(session->impl->cache, &request->ref, tensor, step);
    }
    if (!request->stats_fn) {
        request->answered = true;
        request->tensor_fn(request->ctx, tensor, step, NULL);
    } else if (compute_stats(session, &request->ref, tensor, NULL, &stats, &failed) == GD_OK) {
        answer_stats(request, tensor->dtype, &tensor->shape, &stats, step);
    } else {
        answer_error(request, &failed);
    }
    gd_tensor_unref(tensor);
    free_request(request);
}

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
    struct gd_session *session = request->session;
    struct gd_err failed;

    if (request->answered) {
        free_request(request);
        return;
    }
    if (err && err->code == GD_EUNSUPPORTED && session->target) {
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
        answer_error(request, err);
    } else {
        answer_stats(request, dtype, shape, stats, step_of(session, step));
    }
    free_request(request);
}

/* ---- for front ends -------------------------------------------------------------------------- */

static int no_value(const struct gd_session *session, const struct gd_tensor_ref *ref,
                    struct gd_err *err)
{
    return gd_fail(err, GD_ENODATA, "%.300s:%u is not among the values that this %s session kept",
                   gd_graph_name(session->graph, ref->node), ref->slot,
                   gd_state_name(session->state));
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
    int64_t step = -1;
    struct gd_tensor *whole =
        session->state != GD_RUNNING ? gd_cache_get(session->impl->cache, ref, &step) : NULL;

    if (whole) {
        return answer_from(whole, slice, step, fn, ctx, err);
    }
    if (!session->target) {
        return no_value(session, ref, err);
    }
    struct session_request *request = add_request(session, ref, ctx, err);
    if (!request) {
        return GD_ENOMEM;
    }
    request->whole = !slice || slice->count == 0;
    request->tensor_fn = fn;
    int rc = gd_target_fetch(session->target, ref, slice, tensor_came, request, err);
    if (rc != GD_OK) {
        free_request(request);
    }
    return rc;
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
        return no_value(session, ref, err);
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
    int rc =
        session->state != GD_RUNNING ? stats_from_cache(session, ref, fn, ctx, err) : GD_ENODATA;
    if (rc != GD_ENODATA) {
        return rc;
    }
    if (!session->target) {
        return no_value(session, ref, err);
    }
    struct session_request *request = add_request(session, ref, ctx, err);
    if (!request) {
        return GD_ENOMEM;
    }
    request->stats_fn = fn;
    rc = gd_target_stats(session->target, ref, stats_came, request, err);
    if (rc == GD_EUNSUPPORTED) {
        rc = fetch_for_stats(request, err);
    }
    if (rc != GD_OK) {
        free_request(request);
    }
    return rc;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void end_session(struct gd_session *session, enum gd_state state, bool failed,
                        const char *why)
{
    struct gd_target *target = session->target;
    struct gd_event event = {.session = session};
    struct gd_err err;

    if (session->state == GD_LOST || session->state == GD_FINISHED) {
        return;
    }
    session_count_time(session, session->reached);
    session->state = state;
    session->failed = failed;
    session->target = NULL;
    session->interrupt_asked = false;
    snprintf(session->end_text, sizeof(session->end_text), "%s", why ? why : "");
    if (target) {
        debugger_bury(session->debugger, target);
    }
    gd_fail(&err, GD_ELOST,
            state == GD_LOST ? "the training process was lost: %s" : "the training ended: %s",
            session->end_text[0] ? session->end_text : "before it answered");
    answer_all(session, &err);
    event.type = state == GD_LOST ? GD_EV_LOST : GD_EV_FINISHED;
    event.text = session->end_text;
    gd_debugger_emit(session->debugger, &event);
    ranks_on_end(session);
}

void gd_session_on_finished(struct gd_session *session, const char *why)
{
    end_session(session, GD_FINISHED, false, why);
}

void gd_session_on_failed(struct gd_session *session, const char *why)
{
    end_session(session, GD_FINISHED, true, why);
}

void gd_session_on_lost(struct gd_session *session, const char *why)
{
    end_session(session, GD_LOST, true, why);
}

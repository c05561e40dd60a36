// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/session_request.h"

#include <stdlib.h>

#include "engine/cache.h"

struct session_request *request_add(struct gd_session *session, const struct gd_tensor_ref *ref,
                                    void *ctx, struct gd_err *err)
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

void request_free(struct session_request *request)
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

void request_fail(struct session_request *request, const struct gd_err *err)
{
    request->answered = true;
    if (request->tensor_fn) {
        request->tensor_fn(request->ctx, NULL, -1, err);
    } else {
        request->stats_fn(request->ctx, GD_DT_NONE, NULL, NULL, -1, err);
    }
}

void session_fail_requests(struct gd_session *session, const struct gd_err *err)
{
    struct session_request *request = session->impl->requests;

    while (request) {
        if (request->answered) {
            request = request->next;
            continue;
        }
        request_fail(request, err);
        /* The callback may have freed requests by asking for more: start over. Answered ones are
         * skipped, so this ends. */
        request = session->impl->requests;
    }
}

void session_drop_requests(struct gd_session *session)
{
    struct gd_err err;

    gd_fail(&err, GD_ELOST, "the training process went away before it answered");
    session_fail_requests(session, &err);
    while (session->impl->requests) {
        request_free(session->impl->requests);
    }
}

bool request_is_current(const struct session_request *request)
{
    const struct gd_session *session = request->session;

    return session->stop.sequence == request->sequence && session->state != GD_RUNNING;
}

int64_t request_step(const struct session_request *request, int64_t step)
{
    const struct gd_stop *stop = &request->session->stop;

    return step < 0 && stop->at_step_end ? stop->step : step;
}

bool request_accept(struct session_request *request, struct gd_tensor *tensor, int64_t *step,
                    const struct gd_err *err)
{
    struct gd_err failed;

    if (!err && !tensor) {
        gd_fail(&failed, GD_EPROTO, "the target answered without a value");
        err = &failed;
    }
    if (err && !request->answered) {
        request_fail(request, err);
    }
    if (request->answered) {
        request_free(request);
        return false;
    }
    *step = request_step(request, *step);
    if (request->whole && request_is_current(request)) {
        gd_cache_put(request->session->impl->cache, &request->ref, tensor, *step);
    }
    return true;
}

int session_no_value(const struct gd_session *session, const struct gd_tensor_ref *ref,
                     struct gd_err *err)
{
    return gd_fail(err, GD_ENODATA, "%.300s:%u is not among the values that this %s session kept",
                   gd_graph_name(session->graph, ref->node), ref->slot,
                   gd_state_name(session->state));
}

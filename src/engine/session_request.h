// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A fetch or statistics request that was passed to the target. The front end gets its answer
 * exactly once: from the target, or when the session ends. In the latter case the request stays
 * until the target releases it.
 */
#ifndef GD_ENGINE_SESSION_REQUEST_H
#define GD_ENGINE_SESSION_REQUEST_H

#include "engine/session_impl.h"

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

/* NULL: out of memory. */
struct session_request *request_add(struct gd_session *session, const struct gd_tensor_ref *ref,
                                    void *ctx, struct gd_err *err);
void request_free(struct session_request *request);
void request_fail(struct session_request *request, const struct gd_err *err);
/* The session is still at the stop where the value was asked for, so it may be cached. */
bool request_is_current(const struct session_request *request);
/* The step of an answer whose target gave none (-1). */
int64_t request_step(const struct session_request *request, int64_t step);
/* The target's answer to a fetch: caches the value. False: the request has ended and is freed. */
bool request_accept(struct session_request *request, struct gd_tensor *tensor, int64_t *step,
                    const struct gd_err *err);
/* GD_ENODATA: the value is not kept. */
int session_no_value(const struct gd_session *session, const struct gd_tensor_ref *ref,
                     struct gd_err *err);

#endif

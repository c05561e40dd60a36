// SPDX-License-Identifier: GPL-3.0-or-later
/* A debugger with one fake trainer whose clock and whose stops the test makes, and what was
 * observed of it. */
#ifndef TESTS_ENGINE_SESSION_BENCH_H
#define TESTS_ENGINE_SESSION_BENCH_H

#include "fake_target.h"

struct bench {
    struct gd_debugger *debugger;
    struct gd_session *session;
    struct fake_target *fake;
    bool destroyed;
    double clock;
    char log[4096]; /* a letter an event */
    char text[256]; /* of the last event that had one */
};

/* With the nodes of add_nodes, and an empty log. */
struct bench *make(bool full);
/* Fails when the target outlives its debugger. */
void finish(struct bench *bench);
/* net/a, net/b and net/c, and the session told of them. */
void add_nodes(struct gd_session *session);
struct gd_session *connect_fake(struct gd_debugger *debugger, struct fake_target *fake);

/* The observer that make() sets; ctx is the bench. */
void observe(void *ctx, const struct gd_event *event);
/* What was observed since it was asked last. */
void expect_log(struct bench *bench, const char *want);
void stop_at(struct bench *bench, enum gd_stop_reason reason, int64_t step, gd_node_id node);
int resume(struct bench *bench, enum gd_run_kind kind, int64_t count, struct gd_err *err);

struct answer {
    int calls;
    int code;
    int64_t step;
    float first;
    int64_t count;
    struct gd_stats stats;
};

/* Callbacks of gd_target_fetch and gd_target_stats; ctx is a struct answer. */
void got_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err);
void got_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
               const struct gd_stats *stats, int64_t step, const struct gd_err *err);

#endif

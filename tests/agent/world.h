// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the agent's tests share: a debugger with the gradb.v1 service on a free port, driven by the
 * test's own thread, and a toy training run in another thread of the same process.
 *
 * The toy's values tell by themselves where they come from: element i of node n in step s is
 * 1000 * s + 10 * n + i (see toy_value), except the weight, which counts as written by its
 * optimizer node and holds -1 - i before the first step.
 */
#ifndef TESTS_AGENT_WORLD_H
#define TESTS_AGENT_WORLD_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../unit.h"
#include "agent/gradb.h"
#include "engine/debugger.h"
#include "proto/grpc/grpc_server.h"
#include "proto/v1/v1_service.h"

struct world {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_grpc_server *server;
    struct gd_v1_service *service;
    char address[64];
    unsigned stops, graphs, lost, finished, connected, logs;
    char last_log[256];
};

/* port 0 takes a free one. */
void world_open(struct world *world, int port);
void world_close(struct world *world);
int world_port(const struct world *world);
/* Runs the loop until the predicate holds; fails the test after the deadline. */
typedef bool (*world_fn)(struct world *world);
void world_until(struct world *world, const char *what, world_fn done);
void world_until_stops(struct world *world, unsigned stops);
bool world_has_ended(struct world *world); /* a session finished or was lost */
/* The only or last session. */
struct gd_session *world_session(const struct world *world);
/* Resumes and waits for the next stop. */
void world_run(struct world *world, enum gd_run_kind kind, int64_t count, const char *node);
void world_resume(struct world *world, enum gd_run_kind kind, int64_t count, const char *node);
gd_node_id world_node(const struct world *world, const char *name);
/* Fetches through the session and waits. *tensor is a reference of the caller's; on failure the
 * code is returned and *tensor is NULL. slice and err may be NULL; "~" before the slice, or alone,
 * asks for what a print shows. */
int world_fetch(struct world *world, const char *node, enum gd_iter iter, const char *slice,
                struct gd_tensor **tensor, int64_t *step, struct gd_err *err);
int world_stats(struct world *world, const char *node, enum gd_iter iter, struct gd_stats *ret,
                int64_t *step, struct gd_err *err);

#define TOY_ROWS 4
#define TOY_COLS 6
#define TOY_BIG  (1 << 16) /* elements of the node that is large enough for shared memory */

enum toy_node { TOY_W = 1, TOY_X, TOY_MATMUL, TOY_RELU, TOY_GRAD, TOY_ADAM, TOY_BIG_NODE };

struct toy {
    pthread_t thread;
    char address[64];
    const char *token; /* NULL: none */
    double wait;       /* gradb_wait at the start */
    int64_t steps;     /* 0: until told to end */
    atomic_int end;
    bool program_stop;    /* gradb_stop inside step 2 */
    bool nan_at_3;        /* the ReLU's value holds NaN in step 3 */
    _Atomic int64_t step; /* the last step done */
    atomic_int waited;    /* what gradb_wait said, plus 1 */
    atomic_int checkpoints;
    atomic_int done;
    bool tries_steps;      /* gradb_try_step comes first */
    bool evaluates;        /* after each step, with numbers in it and after it */
    atomic_int ended[2];   /* steps: [true] by gradb_try_step */
    atomic_int entered[2]; /* phases: [true] at once, [false] where the run might have stood */
    gradb *agent;
    double w[TOY_ROWS * TOY_COLS], x[8], matmul[TOY_ROWS * TOY_COLS], relu[TOY_ROWS * TOY_COLS];
    double grad[TOY_ROWS * TOY_COLS], adam[1], *big;
};

double toy_value(int64_t step, enum toy_node node, int64_t i);
void toy_start(struct toy *toy, const struct world *world);
void toy_join(struct toy *toy); /* tells it to end and waits */

#endif

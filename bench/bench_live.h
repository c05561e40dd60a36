// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Training processes of toy graphs, and a debugger in this process: the engine with the server. The
 * training processes only report that each node was executed.
 */
#ifndef BENCH_BENCH_LIVE_H
#define BENCH_BENCH_LIVE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "bench.h"
#include "engine/debugger.h"

#define LIVE_MAX_STEPS 4096

struct live_graph {
    unsigned nodes;    /* a multiple of `watched` */
    unsigned watched;  /* nodes in the scope net/hot, spread over the graph */
    unsigned elements; /* float32, of each value */
    bool shared;       /* all values are the same memory */
};

struct live_shared { /* written by the training process, read by the debugger */
    char address[64];
    atomic_uint steps;
    double took[LIVE_MAX_STEPS]; /* seconds; a ring buffer */
};

struct live_trainer {
    pid_t pid;
    int go; /* closing it starts the training */
    struct live_shared *shared;
    struct gd_session *session; /* NULL until it is connected */
};

struct live {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_server *server;
    unsigned stops, ended;
    unsigned watched; /* tensors that the training processes must confirm, each */
    bool confirmed;
};

/* Call it before live_open, so that the fork does not copy the debugger. */
struct live_trainer live_start(const struct live_graph *graph);
void live_open(struct live *live);
/* Until the training stops before its first step. */
void live_connect(struct live *live, struct live_trainer *trainer);
/* Seconds of the median of the next steps; at most 60. */
double live_time_steps(struct live *live, struct live_trainer *trainer, unsigned steps);
/* Watches net/hot (TO, exact). Seconds from the command until the training processes confirm it. */
double live_watch(struct live *live);
void live_unwatch(struct live *live);
/* Ends the training processes, too. */
void live_close(struct live *live, struct live_trainer *const *trainers, size_t count);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A watch on 10,000 nodes of a large graph: milliseconds from the command until the plan is live in
 * the training process (which then reports its cost), and its cost per step in a graph of 100,000
 * nodes compared with 20,000. The training processes only report that each node was executed; the
 * debugger is the engine with the server.
 *
 * BENCH_REPEAT (default 7) rounds.
 */
#include <ev.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gradb.h"
#include "bench.h"
#include "engine/debugger.h"
#include "engine/watch/watchpoint.h"
#include "proto/server.h"

#define WATCHED    10000
#define ELEMENTS   256 /* per value */
#define STEPS      60  /* timed together */
#define MAX_STEPS  4096
#define MAX_ROUNDS 99

struct shared { /* written by the training process, read by the debugger */
    char address[64];
    atomic_uint steps;
    double took[MAX_STEPS]; /* seconds; a ring buffer */
};

struct trainer {
    pid_t pid;
    int go; /* closing it starts the training */
    struct shared *shared;
    struct gd_session *session;
};

struct bench {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_server *server;
    unsigned stops, ended;
    bool confirmed;
};

/* ---- training processes ---------------------------------------------------------------------- */

static gradb_node add_node(gradb *g, const char *scope, unsigned i, const float *data)
{
    static const int64_t shape[1] = {ELEMENTS};
    char name[64];
    gradb_tensor tensor = {GRADB_FLOAT32, 1, shape, NULL, data};
    gradb_node_info info = {
        .name = name, .type = "Op", .phase = GRADB_FORWARD, .outputs = &tensor, .output_count = 1};
    snprintf(name, sizeof(name), "net/%s/op%u", scope, i);
    return gradb_add_node(g, &info);
}

static void run_training(struct shared *shared, unsigned nodes)
{
    float *data = calloc((size_t)WATCHED * ELEMENTS, sizeof(*data));
    gradb_options options = {.framework = "bench", .address = shared->address};
    setenv("GRADB_RUN", shared->address, 1); /* else the agent prints a notice on stderr */
    gradb *g = gradb_open(&options);

    if (!data || !g) {
        bench_fail("the training process cannot start");
    }
    for (unsigned i = 0; i < nodes; i++) { /* watched nodes are spread over the graph */
        bool watched = i % (nodes / WATCHED) == 0;
        add_node(g, watched ? "hot" : "cold", i, data + (size_t)(i % WATCHED) * ELEMENTS);
    }
    gradb_publish(g);
    if (!gradb_wait(g, 60)) {
        bench_fail("the training process did not connect: %s", gradb_error(g));
    }
    for (int64_t step = 1; !gradb_wants_stop(g); step++) {
        double start_trainer = bench_now();
        gradb_step_begin(g, step);
        gradb_enter(g, GRADB_FORWARD);
        for (gradb_node node = 1; node <= nodes; node++) {
            gradb_did(g, node);
        }
        gradb_step_end(g);
        unsigned n = atomic_load(&shared->steps);
        shared->took[n % MAX_STEPS] = bench_now() - start_trainer;
        atomic_store(&shared->steps, n + 1);
    }
    gradb_close(g, NULL);
}

/* Called before the debugger exists, so that the fork does not copy it. */
static struct trainer start_trainer(unsigned nodes)
{
    struct trainer t = {.go = -1};
    int ends[2];
    char byte;

    t.shared =
        mmap(NULL, sizeof(*t.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    if (t.shared == MAP_FAILED || pipe(ends) < 0 || (t.pid = fork()) < 0) {
        bench_fail("cannot start a training process");
    }
    if (t.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        if (read(ends[0], &byte, 1) == 1) {
            run_training(t.shared, nodes);
        }
        _exit(0);
    }
    close(ends[0]);
    t.go = ends[1];
    return t;
}

/* ---- the debugger ---------------------------------------------------------------------------- */

static void fail_with(const struct gd_err *err)
{
    bench_fail("debugger: %s", err->text);
}

static void on_event(void *ctx, const struct gd_event *event)
{
    struct bench *b = ctx;
    b->stops += event->type == GD_EV_STOPPED;
    b->ended += event->type == GD_EV_FINISHED || event->type == GD_EV_LOST;
}

static void run_loop(struct bench *b)
{
    ev_run(b->loop, EVRUN_ONCE);
    gd_debugger_reap(b->debugger);
}

static void wait_for_stops(struct bench *b, unsigned stops)
{
    while (b->stops < stops && b->ended == 0) {
        run_loop(b);
    }
    if (b->ended) {
        bench_fail("a training process ended too early");
    }
}

static void open_debugger(struct bench *b)
{
    struct gd_err err;
    *b = (struct bench){.loop = ev_default_loop(0)};
    if (gd_debugger_create(&b->debugger, &err) != GD_OK ||
        gd_server_create(b->loop, b->debugger, &b->server, &err) != GD_OK ||
        gd_debugger_observe(b->debugger, on_event, b) != GD_OK) {
        fail_with(&err);
    }
    b->debugger->settings.history_bytes = 0;
    const struct gd_server_ops *wire = b->debugger->server;
    if (wire->listen(b->debugger->server_ctx, "127.0.0.1:0", &err) != GD_OK) {
        fail_with(&err);
    }
}

static void connect_trainer(struct bench *b, struct trainer *t)
{
    const struct gd_server_ops *wire = b->debugger->server;
    unsigned stops = b->stops;
    snprintf(t->shared->address, sizeof(t->shared->address), "%s",
             wire->address(b->debugger->server_ctx));
    if (write(t->go, "", 1) != 1) {
        bench_fail("cannot start the training");
    }
    wait_for_stops(b, stops + 1);
    t->session = b->debugger->sessions[b->debugger->session_count - 1];
}

/* Seconds of the median of the next steps. */
static double time_steps(struct bench *b, struct trainer *t)
{
    double took[STEPS];
    const struct gd_run run = {.kind = GD_RUN_STEP, .count = STEPS, .node = GD_NO_NODE};
    struct gd_err err;
    unsigned stops = b->stops, first = atomic_load(&t->shared->steps);

    if (gd_target_resume(t->session->target, &run, &err) != GD_OK) {
        fail_with(&err);
    }
    wait_for_stops(b, stops + 1);
    for (unsigned i = 1; i < STEPS; i++) { /* the last one stops at its end */
        took[i] = t->shared->took[(first + i - 1) % MAX_STEPS];
    }
    return bench_median(took + 1, STEPS - 1);
}

static void on_costs(void *ctx, const struct gd_watch_total *total)
{
    struct bench *b = ctx;
    if (total->tensors == 0 || total->tensors % WATCHED != 0) {
        bench_fail("unexpected number of watched tensors: %llu",
                   (unsigned long long)total->tensors);
    }
    b->confirmed = true;
}

/* Seconds from the command until a training process confirms the plan. */
static double time_watch(struct bench *b)
{
    struct gd_watch_spec spec = {.where = "net/hot", .when = GD_WHEN_EXACT};
    struct gd_err err;
    double begin = bench_now();

    b->confirmed = false;
    if (gd_condition_find("TO", &spec.condition, &err) != GD_OK ||
        gd_watchpoint_add(b->debugger, &spec, NULL, &err) != GD_OK ||
        gd_watch_costs(b->debugger, on_costs, b, &err) != GD_OK) {
        fail_with(&err);
    }
    while (!b->confirmed) {
        run_loop(b);
    }
    return bench_now() - begin;
}

static void remove_watch(struct bench *b)
{
    struct gd_err err;
    if (gd_watchpoint_delete(b->debugger, b->debugger->watchpoints->number, &err) != GD_OK) {
        fail_with(&err);
    }
}

static void measure_round(struct bench *b, struct trainer *large, struct trainer *small,
                          unsigned rounds)
{
    double armed[MAX_ROUNDS], ratio[MAX_ROUNDS], cost[2] = {0, 0};

    connect_trainer(b, large);
    for (unsigned i = 0; i < rounds; i++) {
        armed[i] = time_watch(b) * 1e3;
        remove_watch(b);
    }
    bench_report("watch.arm_ms", bench_median(armed, rounds), 100, false);
    connect_trainer(b, small);
    for (unsigned i = 0; i < rounds; i++) {
        double plain[2] = {time_steps(b, large), time_steps(b, small)};
        time_watch(b);
        cost[0] = time_steps(b, large) - plain[0];
        cost[1] = time_steps(b, small) - plain[1];
        remove_watch(b);
        ratio[i] = cost[0] / cost[1];
    }
    bench_note("watch.per_node: %u watched nodes of %u elements cost %.2f ms per step in the "
               "larger graph, %.2f ms in the smaller one",
               WATCHED, ELEMENTS, cost[0] * 1e3, cost[1] * 1e3);
    bench_report("watch.per_node", bench_median(ratio, rounds), 1.10, false);
}

int main(void)
{
    struct trainer large = start_trainer(100000), small = start_trainer(20000);
    struct trainer *all[] = {&large, &small};
    unsigned rounds = bench_setting("BENCH_REPEAT", 7);
    struct bench b;

    if (rounds == 0 || rounds > MAX_ROUNDS) {
        rounds = MAX_ROUNDS;
    }
    open_debugger(&b);
    measure_round(&b, &large, &small, rounds);
    for (size_t i = 0; i < 2; i++) {
        gd_target_kill(all[i]->session->target, NULL);
    }
    while (b.ended < 2) {
        run_loop(&b);
    }
    waitpid(large.pid, NULL, 0);
    waitpid(small.pid, NULL, 0);
    gd_server_destroy(b.server);
    gd_debugger_destroy(b.debugger);
    ev_loop_destroy(b.loop);
    return 0;
}

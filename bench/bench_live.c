// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench_live.h"

#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gradb.h"
#include "engine/watch/watchpoint.h"
#include "proto/server.h"

#define MOST_TIMED 60 /* steps */

/* ---- training processes ---------------------------------------------------------------------- */

static gradb_node add_node(gradb *g, const char *scope, unsigned i, int64_t elements,
                           const float *data)
{
    char name[64];
    gradb_tensor tensor = {GRADB_FLOAT32, 1, &elements, NULL, data};
    gradb_node_info info = {
        .name = name, .type = "Op", .phase = GRADB_FORWARD, .outputs = &tensor, .output_count = 1};
    snprintf(name, sizeof(name), "net/%s/op%u", scope, i);
    return gradb_add_node(g, &info);
}

static void add_nodes(gradb *g, const struct live_graph *graph)
{
    size_t buffers = graph->shared ? 1 : graph->watched, count = buffers * graph->elements;
    float *data = malloc(count * sizeof(*data));

    if (!data) {
        bench_fail("no memory for the values of the training process");
    }
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)(i % 1000) - 500.0f;
    }
    for (unsigned i = 0; i < graph->nodes; i++) {
        bool watched = i % (graph->nodes / graph->watched) == 0;
        add_node(g, watched ? "hot" : "cold", i, graph->elements,
                 data + i % buffers * graph->elements);
    }
}

static void run_steps(gradb *g, struct live_shared *shared, unsigned nodes)
{
    for (int64_t step = 1; !gradb_wants_stop(g); step++) {
        double start = bench_now();
        gradb_step_begin(g, step);
        gradb_enter(g, GRADB_FORWARD);
        for (gradb_node node = 1; node <= nodes; node++) {
            gradb_did(g, node);
        }
        gradb_step_end(g);
        unsigned n = atomic_load(&shared->steps);
        shared->took[n % LIVE_MAX_STEPS] = bench_now() - start;
        atomic_store(&shared->steps, n + 1);
    }
}

static void run_training(struct live_shared *shared, const struct live_graph *graph)
{
    gradb_options options = {.framework = "bench", .address = shared->address};
    setenv("GRADB_RUN", shared->address, 1); /* else the agent prints a notice on stderr */
    gradb *g = gradb_open(&options);

    if (!g) {
        bench_fail("the training process cannot start");
    }
    add_nodes(g, graph);
    gradb_publish(g);
    if (!gradb_wait(g, 60)) {
        bench_fail("the training process did not connect: %s", gradb_error(g));
    }
    run_steps(g, shared, graph->nodes);
    gradb_close(g, NULL);
}

struct live_trainer live_start(const struct live_graph *graph)
{
    struct live_trainer trainer = {.go = -1};
    int ends[2];
    char byte;

    trainer.shared = mmap(NULL, sizeof(*trainer.shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    if (trainer.shared == MAP_FAILED || pipe(ends) < 0 || (trainer.pid = fork()) < 0) {
        bench_fail("cannot start a training process");
    }
    if (trainer.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        if (read(ends[0], &byte, 1) == 1) {
            run_training(trainer.shared, graph);
        }
        _exit(0);
    }
    close(ends[0]);
    trainer.go = ends[1];
    return trainer;
}

/* ---- the debugger ---------------------------------------------------------------------------- */

static void fail_with(const struct gd_err *err)
{
    bench_fail("debugger: %s", err->text);
}

static void on_event(void *ctx, const struct gd_event *event)
{
    struct live *live = ctx;
    live->stops += event->type == GD_EV_STOPPED;
    live->ended += event->type == GD_EV_FINISHED || event->type == GD_EV_LOST;
}

static void run_loop(struct live *live)
{
    ev_run(live->loop, EVRUN_ONCE);
    gd_debugger_reap(live->debugger);
}

static void wait_for_stops(struct live *live, unsigned stops)
{
    while (live->stops < stops && live->ended == 0) {
        run_loop(live);
    }
    if (live->ended) {
        bench_fail("a training process ended too early");
    }
}

void live_open(struct live *live)
{
    struct gd_err err;
    *live = (struct live){.loop = ev_default_loop(0)};
    if (gd_debugger_create(&live->debugger, &err) != GD_OK ||
        gd_server_create(live->loop, live->debugger, &live->server, &err) != GD_OK ||
        gd_debugger_observe(live->debugger, on_event, live) != GD_OK) {
        fail_with(&err);
    }
    live->debugger->settings.history_bytes = 0;
    const struct gd_server_ops *wire = live->debugger->server;
    if (wire->listen(live->debugger->server_ctx, "127.0.0.1:0", &err) != GD_OK) {
        fail_with(&err);
    }
}

void live_connect(struct live *live, struct live_trainer *trainer)
{
    const struct gd_server_ops *wire = live->debugger->server;
    unsigned stops = live->stops;
    snprintf(trainer->shared->address, sizeof(trainer->shared->address), "%s",
             wire->address(live->debugger->server_ctx));
    if (write(trainer->go, "", 1) != 1) {
        bench_fail("cannot start the training");
    }
    wait_for_stops(live, stops + 1);
    trainer->session = live->debugger->sessions[live->debugger->session_count - 1];
}

double live_time_steps(struct live *live, struct live_trainer *trainer, unsigned steps)
{
    double took[MOST_TIMED];
    const struct gd_run run = {.kind = GD_RUN_STEP, .count = steps, .node = GD_NO_NODE};
    struct gd_err err;
    unsigned stops = live->stops, first = atomic_load(&trainer->shared->steps);

    if (gd_target_resume(trainer->session->target, &run, &err) != GD_OK) {
        fail_with(&err);
    }
    wait_for_stops(live, stops + 1);
    for (unsigned i = 0; i + 1 < steps; i++) { /* the last one stops at its end */
        took[i] = trainer->shared->took[(first + i) % LIVE_MAX_STEPS];
    }
    return bench_median(took, steps - 1);
}

static void on_costs(void *ctx, const struct gd_watch_total *total)
{
    struct live *live = ctx;
    if (total->tensors == 0 || total->tensors % live->watched != 0) {
        bench_fail("unexpected number of watched tensors: %llu",
                   (unsigned long long)total->tensors);
    }
    live->confirmed = true;
}

double live_watch(struct live *live)
{
    struct gd_watch_spec spec = {.where = "net/hot", .when = GD_WHEN_EXACT};
    struct gd_err err;
    double begin = bench_now();

    live->confirmed = false;
    if (gd_condition_find("TO", &spec.condition, &err) != GD_OK ||
        gd_watchpoint_add(live->debugger, &spec, NULL, &err) != GD_OK ||
        gd_watch_costs(live->debugger, on_costs, live, &err) != GD_OK) {
        fail_with(&err);
    }
    while (!live->confirmed) {
        run_loop(live);
    }
    return bench_now() - begin;
}

void live_unwatch(struct live *live)
{
    struct gd_err err;
    if (gd_watchpoint_delete(live->debugger, live->debugger->watchpoints->number, &err) != GD_OK) {
        fail_with(&err);
    }
}

void live_close(struct live *live, struct live_trainer *const *trainers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gd_target_kill(trainers[i]->session->target, NULL);
    }
    while (live->ended < count) {
        run_loop(live);
    }
    for (size_t i = 0; i < count; i++) {
        waitpid(trainers[i]->pid, NULL, 0);
    }
    gd_server_destroy(live->server);
    gd_debugger_destroy(live->debugger);
    ev_loop_destroy(live->loop);
}

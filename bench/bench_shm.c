// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A tensor of 256 MiB from a stopped training process through shared memory, from the request until
 * the debugger has the value, against one memcpy of the same size, alternately. The first fetches,
 * which create and map the segment, do not count.
 */
#include <ev.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gradb.h"
#include "bench.h"
#include "engine/debugger.h"
#include "proto/grpc/grpc_server.h"
#include "proto/v1/v1_service.h"

#define BYTES  ((size_t)256 << 20)
#define WARMUP 3

struct bench {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_grpc_server *server;
    struct gd_v1_service *service;
    char address[64];
    float *values;
    bool stopped, ended;
    struct gd_tensor *tensor;
    bool answered;
};

static void *run_training(void *arg)
{
    struct bench *b = arg;
    gradb_options options = {.framework = "bench", .address = b->address};
    gradb *g = gradb_open(&options);
    int64_t shape[1] = {(int64_t)(BYTES / sizeof(float))};
    gradb_tensor tensor = {GRADB_FLOAT32, 1, shape, NULL, b->values};
    gradb_node_info info = {
        .name = "weight", .type = "Parameter", .outputs = &tensor, .output_count = 1};
    gradb_add_node(g, &info);
    gradb_publish(g);
    if (!gradb_wait(g, 60)) {
        bench_fail("the training process did not connect: %s", gradb_error(g));
    }
    gradb_close(g, NULL);
    return NULL;
}

static void on_event(void *ctx, const struct gd_event *event)
{
    struct bench *b = ctx;
    b->stopped |= event->type == GD_EV_STOPPED;
    b->ended |= event->type == GD_EV_FINISHED || event->type == GD_EV_LOST;
}

static void run_until(struct bench *b, const bool *flag)
{
    while (!*flag) {
        ev_run(b->loop, EVRUN_ONCE);
        gd_debugger_reap(b->debugger);
    }
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct bench *b = ctx;
    (void)step;
    if (err) {
        bench_fail("the fetch failed: %s", err->text);
    }
    b->tensor = gd_tensor_ref(tensor);
    b->answered = true;
}

static double time_fetch(struct bench *b)
{
    struct gd_target *target = b->debugger->sessions[0]->target;
    struct gd_tensor_ref ref = {.node = 0};
    struct gd_err err;
    double start = bench_now();
    b->answered = false;
    if (gd_target_fetch(target, &ref, NULL, on_tensor, b, &err) != GD_OK) {
        bench_fail("the fetch failed: %s", err.text);
    }
    run_until(b, &b->answered);
    double seconds = bench_now() - start;
    if (gd_tensor_bytes(b->tensor) != BYTES ||
        gd_tensor_get(b->tensor, (int64_t)(BYTES / sizeof(float)) - 1) != 7) {
        bench_fail("the value is wrong");
    }
    gd_tensor_unref(b->tensor);
    return seconds;
}

static double time_copy(const struct bench *b, void *to)
{
    double start = bench_now();
    memcpy(to, b->values, BYTES);
    __asm__ volatile("" : : "r"(to) : "memory"); /* keeps the compiler from dropping the copy */
    return bench_now() - start;
}

static void measure_all(struct bench *b)
{
    unsigned repeat = bench_setting("BENCH_REPEAT", 15);
    double *ratios = calloc(repeat, sizeof(*ratios)), *times = calloc(repeat, sizeof(*times));
    char *to = malloc(BYTES);
    if (!ratios || !times || !to) {
        bench_fail("out of memory");
    }
    memset(to, 1, BYTES);
    for (unsigned i = 0; i < WARMUP; i++) {
        time_fetch(b);
        time_copy(b, to);
    }
    for (unsigned i = 0; i < repeat; i++) {
        double a = time_copy(b, to);
        times[i] = time_fetch(b);
        double c = time_copy(b, to);
        ratios[i] = (a + c) / 2 / times[i];
    }
    bench_note("%zu MiB in %.1f ms, %.2f GB/s", BYTES >> 20, bench_median(times, repeat) * 1e3,
               (double)BYTES / bench_median(times, repeat) / 1e9);
    bench_report("idle.shm_fetch", bench_median(ratios, repeat), 0.50, true);
    free(to);
    free(times);
    free(ratios);
}

static void open_debugger(struct bench *b)
{
    struct gd_err err;
    b->loop = ev_loop_new(EVFLAG_AUTO);
    if (gd_debugger_create(&b->debugger, &err) != GD_OK ||
        gd_debugger_observe(b->debugger, on_event, b) != GD_OK ||
        gd_grpc_server_create(b->loop, &b->debugger->settings, &b->server, &err) != GD_OK ||
        gd_v1_service_create(b->loop, b->debugger, b->server, &b->service, &err) != GD_OK ||
        gd_grpc_server_listen(b->server, "127.0.0.1:0", &err) != GD_OK) {
        bench_fail("cannot create the debugger: %s", err.text);
    }
    snprintf(b->address, sizeof(b->address), "%s", gd_grpc_server_address(b->server));
}

int main(void)
{
    struct bench b = {0};
    pthread_t thread;
    struct gd_run on = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    open_debugger(&b);
    b.values = malloc(BYTES);
    if (!b.values) {
        bench_fail("out of memory");
    }
    for (size_t i = 0; i < BYTES / sizeof(float); i++) {
        b.values[i] = 7;
    }
    setenv("GRADB_RUN", b.address, 1); /* else the agent prints a notice on stderr */
    if (pthread_create(&thread, NULL, run_training, &b) != 0) {
        bench_fail("cannot create a thread");
    }
    run_until(&b, &b.stopped);
    measure_all(&b);
    gd_target_resume(b.debugger->sessions[0]->target, &on, NULL);
    run_until(&b, &b.ended);
    pthread_join(thread, NULL);
    gd_grpc_server_destroy(b.server);
    gd_v1_service_destroy(b.service);
    gd_debugger_destroy(b.debugger);
    ev_loop_destroy(b.loop);
    free(b.values);
    return 0;
}

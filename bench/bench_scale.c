// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How cost and memory grow: each amount at three sizes, of which each is ten times the one before.
 * A figure is the cost of one node or tensor at the largest size, over that at the middle one: 1
 * where growth is linear.
 *
 *   scale.graph_*    a live graph of 10^4, 10^5, 10^6 nodes: time until the training stops before
 *                    its first step, and memory of both processes
 *   scale.watched_*  10^3, 10^4, 10^5 nodes watched exactly, of 256 elements: time of a step, and
 *                    memory of both processes
 *   scale.tensor_*   10, 100, 1000 tensors of 10^7 elements watched exactly: time of a step
 */
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_live.h"

#define SIZES  3
#define TARGET 1.2

struct amount {
    double time;              /* seconds, of one node or tensor */
    double trainer, debugger; /* bytes, of one node or tensor */
};

static double memory_of(pid_t pid)
{
    return (double)bench_memory_of(pid, "VmRSS");
}

static void measure_graph(const struct live_graph *graph, struct amount *ret)
{
    struct live_trainer trainer = live_start(graph);
    struct live live;
    live_open(&live);
    double before = memory_of(getpid()), begin = bench_now();
    live_connect(&live, &trainer);
    ret->time = (bench_now() - begin) / graph->nodes;
    ret->trainer = memory_of(trainer.pid) / graph->nodes;
    ret->debugger = (memory_of(getpid()) - before) / graph->nodes;
    live_close(&live, (struct live_trainer *const[]){&trainer}, 1);
}

static void measure_watch(const struct live_graph *graph, unsigned steps, struct amount *ret)
{
    struct live_trainer trainer = live_start(graph);
    struct live live;
    live_open(&live);
    live.watched = graph->watched;
    live_connect(&live, &trainer);
    double plain = live_time_steps(&live, &trainer, steps);
    malloc_trim(0); /* what the graph has left free would be used first, and not be counted */
    double before[2] = {memory_of(trainer.pid), memory_of(getpid())};
    live_watch(&live);
    live_time_steps(&live, &trainer, 3);
    ret->time = (live_time_steps(&live, &trainer, steps) - plain) / graph->watched;
    ret->trainer = (memory_of(trainer.pid) - before[0]) / graph->watched;
    ret->debugger = (memory_of(getpid()) - before[1]) / graph->watched;
    live_close(&live, (struct live_trainer *const[]){&trainer}, 1);
}

/* In a process of its own, so that no memory is left over from the measurement before. */
static struct amount measure_apart(const struct live_graph *graph, unsigned steps)
{
    struct amount *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = shared == MAP_FAILED ? -1 : fork();
    int status = 1;
    if (pid == 0) {
        if (steps) {
            measure_watch(graph, steps, shared);
        } else {
            measure_graph(graph, shared);
        }
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        bench_fail("a measurement failed");
    }
    struct amount found = *shared;
    munmap(shared, sizeof(*shared));
    return found;
}

static void report_growth(const char *what, const char *figure, double middle, double large)
{
    char name[64];
    snprintf(name, sizeof(name), "scale.%s_%s", what, figure);
    bench_report(name, large / middle, TARGET, false);
}

/* steps: timed together; 0: the graph alone. */
static void measure_growth(const char *what, const struct live_graph graphs[SIZES], unsigned steps)
{
    struct amount found[SIZES];
    for (int i = 0; i < SIZES; i++) {
        const struct live_graph *graph = &graphs[i];
        found[i] = measure_apart(graph, steps);
        bench_note(
            "scale.%s: %u nodes, %u watched, of %u elements: each %.3f us, %.0f bytes in the "
            "training process, %.0f in the debugger",
            what, graph->nodes, steps ? graph->watched : 0, graph->elements, found[i].time * 1e6,
            found[i].trainer, found[i].debugger);
    }
    report_growth(what, "time", found[1].time, found[2].time);
    if (graphs[2].shared) {
        return; /* few nodes: their memory is not measurable */
    }
    report_growth(what, "trainer_memory", found[1].trainer, found[2].trainer);
    report_growth(what, "debugger_memory", found[1].debugger, found[2].debugger);
}

int main(void)
{
    static const struct live_graph graphs[SIZES] = {
        {10000, 1, 4, false}, {100000, 1, 4, false}, {1000000, 1, 4, false}};
    static const struct live_graph watched[SIZES] = {
        {1000, 1000, 256, false}, {10000, 10000, 256, false}, {100000, 100000, 256, false}};
    static const struct live_graph tensors[SIZES] = {
        {10, 10, 10000000, true}, {100, 100, 10000000, true}, {1000, 1000, 10000000, true}};
    measure_growth("graph", graphs, 0);
    measure_growth("watched", watched, 20);
    measure_growth("tensor", tensors, 3);
    return 0;
}

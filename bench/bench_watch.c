// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Cost of watching: charlm's step with watchpoints over its step without a debugger, in three model
 * sizes. First every weight, gradient and activation is checked for NaN and Inf before the next
 * operator runs; then the recommended watchpoints. The three alternate; the median of the ratios
 * counts. The history is on: each value is also recorded once per step.
 *
 * BENCH_REPEAT (default 5) rounds; arguments: GRADB CHARLM.
 */
#include <stdio.h>

#include "bench.h"
#include "bench_charlm.h"

#define MAX_ROUNDS 99
#define TARGET     1.05

struct size {
    const char *name;
    struct bench_charlm run;
};

/* The recommended conditions are set later: they rightly fire in the first steps of a training. */
static const char *const overflow[] = {"watch -exact TO on weights, gradients, activations",
                                       "step 12", "info watchpoints", "continue", NULL};
static const char *const recommended[] = {"step 6",           "recommend yes", "step 6",
                                          "info watchpoints", "continue",      NULL};

/* Fails if a watchpoint stopped the training or was not set: the result would be meaningless. */
static void check_watch(const struct bench_charlm_watch *watch, const char *what)
{
    if (watch->tensors == 0) {
        bench_fail("%s: nothing was watched", what);
    }
}

static void note_result(const char *what, const struct size *size,
                        const struct bench_charlm_watch *watch, unsigned steps, double alone,
                        double took)
{
    bench_note("watch.%s_%s: step %.2f ms, watched %.2f ms; %llu tensors, %.2f ms to compute and "
               "%llu bytes on the wire per step",
               what, size->name, alone * 1e3, took * 1e3, (unsigned long long)watch->tensors,
               (double)watch->compute_ns / 1e6 / steps,
               (unsigned long long)(watch->report_bytes / steps));
}

static void measure_size(const struct size *size, unsigned rounds)
{
    double to[MAX_ROUNDS], rest[MAX_ROUNDS], alone = 0, to_took = 0, rest_took = 0;
    struct bench_charlm_watch to_watch, rest_watch;
    char name[64];

    for (unsigned i = 0; i < rounds; i++) {
        to_took = i % 2 ? bench_charlm_attached(&size->run, overflow, &to_watch) : to_took;
        alone = bench_charlm_alone(&size->run);
        rest_took = bench_charlm_attached(&size->run, recommended, &rest_watch);
        to_took = i % 2 ? to_took : bench_charlm_attached(&size->run, overflow, &to_watch);
        check_watch(&to_watch, "TO");
        check_watch(&rest_watch, "recommended");
        to[i] = to_took / alone;
        rest[i] = rest_took / alone;
    }
    note_result("to", size, &to_watch, 12, alone, to_took);
    note_result("recommended", size, &rest_watch, 6, alone, rest_took);
    snprintf(name, sizeof(name), "watch.to_%s", size->name);
    bench_report(name, bench_median(to, rounds), TARGET, false);
    snprintf(name, sizeof(name), "watch.recommended_%s", size->name);
    bench_report(name, bench_median(rest, rounds), TARGET, false);
}

int main(int argc, char **argv)
{
    struct size small = {"small", {.steps = 150, .warm_up = 20}};
    struct size large = {
        "large", {.size = {"--width", "256", "--layers", "3", NULL}, .steps = 40, .warm_up = 14}};
    /* More arithmetic per watched value: closer to real models. */
    struct size wide = {"wide",
                        {.size = {"--width", "512", "--layers", "1", "--batch", "16", NULL},
                         .steps = 26,
                         .warm_up = 14}};
    unsigned rounds = bench_setting("BENCH_REPEAT", 5);

    if (argc != 3) {
        fprintf(stderr, "usage: bench_watch GRADB CHARLM\n");
        return 2;
    }
    if (rounds == 0 || rounds > MAX_ROUNDS) {
        rounds = MAX_ROUNDS;
    }
    small.run.gradb = large.run.gradb = wide.run.gradb = argv[1];
    small.run.charlm = large.run.charlm = wide.run.charlm = argv[2];
    bench_charlm_alone(&small.run); /* warms up files and caches */
    measure_size(&small, rounds);
    measure_size(&large, rounds);
    measure_size(&wide, rounds);
    return 0;
}

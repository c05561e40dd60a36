// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What watching costs: the bundled trainer's step under watchpoints over its step with nobody
 * listening, at three model sizes. First every weight, gradient and activation is watched for NaN
 * and Inf before the next operator runs; then all that is recommended. The three take turns; the
 * median of the ratios counts. The history is off in neither: each value is also recorded once a
 * step.
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

/* The recommended conditions fire on the very first steps of a training, as they should. */
static const char *const overflow[] = {"watch -exact TO on weights, gradients, activations",
                                       "step 12", "info watchpoints", "continue", NULL};
static const char *const recommended[] = {"step 6",           "recommend yes", "step 6",
                                          "info watchpoints", "continue",      NULL};

/* A watchpoint that stopped the training, or that could not be set, makes the figure worthless. */
static void check(const struct bench_charlm_watch *watch, const char *what)
{
    if (watch->tensors == 0) {
        bench_fail("%s: nothing was watched", what);
    }
}

static void note(const char *what, const struct size *size, const struct bench_charlm_watch *watch,
                 unsigned steps, double alone, double took)
{
    bench_note("watch.%s_%s: step %.2f ms, watched %.2f ms; %llu tensors, %.2f ms to compute and "
               "%llu bytes on the wire per step",
               what, size->name, alone * 1e3, took * 1e3, (unsigned long long)watch->tensors,
               (double)watch->compute_ns / 1e6 / steps,
               (unsigned long long)(watch->report_bytes / steps));
}

static void measure(const struct size *size, unsigned rounds)
{
    double to[MAX_ROUNDS], rest[MAX_ROUNDS], alone = 0, to_took = 0, rest_took = 0;
    struct bench_charlm_watch to_watch, rest_watch;
    char name[64];

    for (unsigned i = 0; i < rounds; i++) {
        to_took = i % 2 ? bench_charlm_attached(&size->run, overflow, &to_watch) : to_took;
        alone = bench_charlm_alone(&size->run);
        rest_took = bench_charlm_attached(&size->run, recommended, &rest_watch);
        to_took = i % 2 ? to_took : bench_charlm_attached(&size->run, overflow, &to_watch);
        check(&to_watch, "TO");
        check(&rest_watch, "recommended");
        to[i] = to_took / alone;
        rest[i] = rest_took / alone;
    }
    note("to", size, &to_watch, 12, alone, to_took);
    note("recommended", size, &rest_watch, 6, alone, rest_took);
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
    /* More arithmetic for each value that is watched: nearer to what people train. */
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
    bench_charlm_alone(&small.run); /* files and caches are warm */
    measure(&small, rounds);
    measure(&large, rounds);
    measure(&wide, rounds);
    return 0;
}

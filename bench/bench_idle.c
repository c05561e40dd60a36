// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Cost of an attached debugger that lets the training run: charlm's time for the same steps with
 * gradb attached, over its time without a debugger. The two alternate; the median of the pairs'
 * ratios counts.
 *
 * BENCH_REPEAT (default 15) pairs of BENCH_STEPS (default 100) steps; arguments: GRADB CHARLM.
 */
#include <stdio.h>

#include "bench.h"
#include "bench_charlm.h"

#define MAX_PAIRS 99

int main(int argc, char **argv)
{
    static const char *const commands[] = {"continue", NULL};
    unsigned pairs = bench_setting("BENCH_REPEAT", 15);
    struct bench_charlm run = {.steps = bench_setting("BENCH_STEPS", 100), .warm_up = 10};
    struct bench_charlm_watch watch;
    double ratio[MAX_PAIRS];

    if (argc != 3) {
        fprintf(stderr, "usage: bench_idle GRADB CHARLM\n");
        return 2;
    }
    run.gradb = argv[1];
    run.charlm = argv[2];
    if (pairs == 0 || pairs > MAX_PAIRS) {
        pairs = MAX_PAIRS;
    }
    bench_charlm_alone(&run); /* warms up files and caches */
    for (unsigned i = 0; i < pairs; i++) {
        /* The order alternates, so that a drift of the machine cancels out. */
        double attached = i % 2 ? bench_charlm_attached(&run, commands, &watch) : 0.0;
        double alone = bench_charlm_alone(&run);
        if (!(i % 2)) {
            attached = bench_charlm_attached(&run, commands, &watch);
        }
        ratio[i] = attached / alone;
    }
    bench_report("idle.attached", bench_median(ratio, pairs), 1.01, false);
    bench_note("idle.attached: %u pairs of %u steps, lowest %.4f, highest %.4f", pairs, run.steps,
               ratio[0], ratio[pairs - 1]);
    return 0;
}

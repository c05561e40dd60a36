// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A watch on 10,000 nodes of a large graph: milliseconds from the command until the plan is live in
 * the training process (which then reports its cost), and its cost per step in a graph of 100,000
 * nodes compared with 20,000.
 *
 * BENCH_REPEAT (default 7) rounds.
 */
#include "bench_live.h"

#define WATCHED    10000
#define ELEMENTS   256 /* per value */
#define STEPS      60  /* timed together */
#define MAX_ROUNDS 99

static void measure_round(struct live *live, struct live_trainer *large, struct live_trainer *small,
                          unsigned rounds)
{
    double armed[MAX_ROUNDS], ratio[MAX_ROUNDS], cost[2] = {0, 0};

    live_connect(live, large);
    for (unsigned i = 0; i < rounds; i++) {
        armed[i] = live_watch(live) * 1e3;
        live_unwatch(live);
    }
    bench_report("watch.arm_ms", bench_median(armed, rounds), 100, false);
    live_connect(live, small);
    for (unsigned i = 0; i < rounds; i++) {
        double plain[2] = {live_time_steps(live, large, STEPS),
                           live_time_steps(live, small, STEPS)};
        live_watch(live);
        cost[0] = live_time_steps(live, large, STEPS) - plain[0];
        cost[1] = live_time_steps(live, small, STEPS) - plain[1];
        live_unwatch(live);
        ratio[i] = cost[0] / cost[1];
    }
    bench_note("watch.per_node: %u watched nodes of %u elements cost %.2f ms per step in the "
               "larger graph, %.2f ms in the smaller one",
               WATCHED, ELEMENTS, cost[0] * 1e3, cost[1] * 1e3);
    bench_report("watch.per_node", bench_median(ratio, rounds), 1.10, false);
}

int main(void)
{
    struct live_trainer large = live_start(&(struct live_graph){100000, WATCHED, ELEMENTS, false});
    struct live_trainer small = live_start(&(struct live_graph){20000, WATCHED, ELEMENTS, false});
    unsigned rounds = bench_setting("BENCH_REPEAT", 7);
    struct live live;

    if (rounds == 0 || rounds > MAX_ROUNDS) {
        rounds = MAX_ROUNDS;
    }
    live_open(&live);
    live.watched = WATCHED;
    measure_round(&live, &large, &small, rounds);
    live_close(&live, (struct live_trainer *const[]){&large, &small}, 2);
    return 0;
}

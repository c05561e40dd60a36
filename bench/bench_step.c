// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One step of a training process under the debugger, from its WaitCMD to the run command in the
 * reply, against a TCP ping-pong of the same sizes. The session handles the stop and requests the
 * next step, as a front end does.
 *
 * BENCH_ROUNDS (2000) steps per pair, BENCH_REPEAT (15) pairs.
 */
#include <stdlib.h>

#include "bench.h"
#include "bench_trainer.h"

#define MAX_REPEAT 1000

static int32_t run_steps(struct bench_trainer *trainer, int32_t step, unsigned count)
{
    for (unsigned i = 0; i < count; i++, step++) {
        Debugger__EventReply *reply = bench_trainer_wait(trainer, step);
        if (reply->cmd_case != DEBUGGER__EVENT_REPLY__CMD_RUN_CMD) {
            bench_fail("expected a run command from the debugger, got command %d",
                       (int)reply->cmd_case);
        }
        debugger__event_reply__free_unpacked(reply, NULL);
    }
    return step;
}

int main(void)
{
    unsigned rounds = bench_setting("BENCH_ROUNDS", 2000);
    unsigned repeat = bench_setting("BENCH_REPEAT", 15);
    double ratios[MAX_REPEAT], tcp[MAX_REPEAT], wire[MAX_REPEAT];
    struct bench_debugger debugger;
    uint64_t out, in, out_after, in_after;

    repeat = repeat < MAX_REPEAT ? repeat : MAX_REPEAT;
    bench_debugger_start(&debugger, false);
    struct bench_trainer *trainer = bench_trainer_start(debugger.address, 16);
    int32_t step = run_steps(trainer, 0, 500);
    bench_trainer_traffic(trainer, &out, &in);
    step = run_steps(trainer, step, 100);
    bench_trainer_traffic(trainer, &out_after, &in_after);
    size_t there = (size_t)(out_after - out) / 100, back = (size_t)(in_after - in) / 100;
    for (unsigned i = 0; i < repeat; i++) {
        tcp[i] = bench_tcp_ping_pong(rounds, there, back) / rounds;
        double start = bench_now();
        step = run_steps(trainer, step, rounds);
        wire[i] = (bench_now() - start) / rounds;
        ratios[i] = wire[i] / tcp[i];
    }
    bench_trainer_end(trainer);
    bench_debugger_end(&debugger);
    bench_note("a step takes %.1f us, a TCP round trip of %zu and %zu bytes %.1f us",
               bench_median(wire, repeat) * 1e6, there, back, bench_median(tcp, repeat) * 1e6);
    bench_report("step.turnaround", bench_median(ratios, repeat), 6.00, false);
    return 0;
}

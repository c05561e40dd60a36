// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A tensor of 1 GiB from a MindSpore training process to the debugger's session, over gRPC in
 * messages of 3 MiB, against plain TCP over loopback with writes of that size.
 *
 * wire.ingest_first is the first transfer, into untouched memory, each in its own process. A note
 * shows the same for plain TCP that keeps its data in untouched memory instead of reading it into
 * one buffer. wire.ingest is the steady state, a run that is stepped and inspected again and again:
 * from the second step on, the memory of old values is reused. wire.peak_memory is measured for one
 * transfer in its own process.
 *
 * BENCH_MIB (1024), BENCH_REPEAT (7) and BENCH_FIRST (5) make it smaller or longer.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_trainer.h"

#define MAX_REPEAT 100
#define MAX_FIRST  20
#define READ_SIZE  (1 << 20)
#define WARM_UP    3 /* the current and the previous value are kept, and one is in flight */

static void free_reply(Debugger__EventReply *reply)
{
    debugger__event_reply__free_unpacked(reply, NULL);
}

/* Waits until the debugger requests the value; answers a request for its size first. */
static void wait_for_view(struct bench_trainer *trainer, int32_t step, size_t elements)
{
    for (;;) {
        Debugger__EventReply *reply = bench_trainer_wait(trainer, step);
        int command = (int)reply->cmd_case;
        bool view = command == DEBUGGER__EVENT_REPLY__CMD_VIEW_CMD;
        bool value = view && reply->view_cmd->level == DEBUGGER__VIEW_CMD__LEVEL__value;
        if (view && !value) {
            bench_trainer_send_base(trainer, elements);
        }
        free_reply(reply);
        if (value) {
            return;
        }
        if (!view && command != DEBUGGER__EVENT_REPLY__CMD__NOT_SET) {
            bench_fail("expected a request for the value from the debugger, got command %d",
                       command);
        }
    }
}

static void wait_for_run(struct bench_trainer *trainer, int32_t step)
{
    Debugger__EventReply *reply = bench_trainer_wait(trainer, step);

    if (reply->cmd_case != DEBUGGER__EVENT_REPLY__CMD_RUN_CMD) {
        bench_fail("expected a run command from the debugger, got command %d",
                   (int)reply->cmd_case);
    }
    free_reply(reply);
}

static double time_transfer(struct bench_trainer *trainer, int32_t step, const float *data,
                            size_t elements)
{
    wait_for_view(trainer, step, elements);
    double start = bench_now();
    bench_trainer_send_tensor(trainer, data, elements);
    double seconds = bench_now() - start;
    wait_for_run(trainer, step);
    return seconds;
}

static void measure_memory(struct bench_debugger *debugger, const float *data, size_t elements)
{
    struct bench_trainer *trainer = bench_trainer_start(debugger->address, elements);
    time_transfer(trainer, 0, data, elements);
    bench_trainer_end(trainer);
    struct bench_memory_use use = bench_debugger_end(debugger);
    if (use.fetched != 1) {
        bench_fail("%llu values arrived instead of one", (unsigned long long)use.fetched);
    }
    bench_note("peak resident memory %.1f MiB, idle %.1f MiB", (double)use.peak / 1048576,
               (double)use.idle / 1048576);
    bench_report("wire.peak_memory", (double)(use.peak - use.idle) / ((double)elements * 4), 1.20,
                 false);
}

static void measure_first(struct bench_debugger *debugger, const float *data, size_t elements,
                          unsigned repeat)
{
    double ratios[MAX_FIRST], tcp[MAX_FIRST], wire[MAX_FIRST], keep[MAX_FIRST];
    double kept_ratios[MAX_FIRST];
    size_t bytes = elements * 4;
    double gib = (double)bytes / (1 << 30);

    for (unsigned i = 0; i < repeat; i++) {
        tcp[i] = bench_tcp_send(data, bytes, BENCH_PIECE, READ_SIZE, false);
        struct bench_trainer *trainer = bench_trainer_start(debugger[i].address, elements);
        wire[i] = time_transfer(trainer, 0, data, elements);
        bench_trainer_end(trainer);
        if (bench_debugger_end(&debugger[i]).fetched != 1) {
            bench_fail("the first value is missing");
        }
        keep[i] = bench_tcp_send(data, bytes, BENCH_PIECE, READ_SIZE, true);
        ratios[i] = tcp[i] / wire[i];
        kept_ratios[i] = tcp[i] / keep[i];
    }
    bench_note(
        "into untouched memory: TCP %.2f GiB/s, %.3f of TCP that drops the data; wire %.2f GiB/s",
        gib / bench_median(keep, repeat), bench_median(kept_ratios, repeat),
        gib / bench_median(wire, repeat));
    bench_report("wire.ingest_first", bench_median(ratios, repeat), 0.60, true);
}

static void measure_speed(struct bench_debugger *debugger, const float *data, size_t elements,
                          unsigned repeat)
{
    double ratios[MAX_REPEAT], tcp[MAX_REPEAT], wire[MAX_REPEAT];
    size_t bytes = elements * 4;
    double gib = (double)bytes / (1 << 30);
    struct bench_trainer *trainer = bench_trainer_start(debugger->address, elements);
    for (int32_t step = 0; step < WARM_UP; step++) {
        time_transfer(trainer, step, data, elements);
    }
    for (unsigned i = 0; i < repeat; i++) {
        tcp[i] = bench_tcp_send(data, bytes, BENCH_PIECE, READ_SIZE, false);
        wire[i] = time_transfer(trainer, (int32_t)(WARM_UP + i), data, elements);
        ratios[i] = tcp[i] / wire[i];
    }
    bench_trainer_end(trainer);
    if (bench_debugger_end(debugger).fetched != WARM_UP + repeat) {
        bench_fail("values are missing");
    }
    bench_note("TCP %.2f GiB/s, wire %.2f GiB/s", gib / bench_median(tcp, repeat),
               gib / bench_median(wire, repeat));
    bench_report("wire.ingest", bench_median(ratios, repeat), 0.60, true);
}

int main(void)
{
    size_t elements = (size_t)bench_setting("BENCH_MIB", 1024) * 1048576 / 4;
    unsigned repeat = bench_setting("BENCH_REPEAT", 7);
    unsigned first = bench_setting("BENCH_FIRST", 5);
    struct bench_debugger for_speed, for_memory, for_first[MAX_FIRST];

    first = first < MAX_FIRST ? first : MAX_FIRST;
    repeat = repeat < MAX_REPEAT ? repeat : MAX_REPEAT;
    /* Started before the data exists: a forked process would count it as its own. */
    bench_debugger_start(&for_speed, true);
    bench_debugger_start(&for_memory, true);
    for (unsigned i = 0; i < first; i++) {
        bench_debugger_start(&for_first[i], true);
    }
    float *data = malloc(elements * 4);
    if (!data) {
        bench_fail("out of memory for the tensor");
    }
    for (size_t i = 0; i < elements; i++) {
        data[i] = (float)(i % 1000) * 0.001f;
    }
    measure_first(for_first, data, elements, first);
    measure_speed(&for_speed, data, elements, repeat);
    measure_memory(&for_memory, data, elements);
    free(data);
    return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The two ends of the wire benchmarks: a MindSpore training process as seen on the wire, and a
 * debugger in another process. The graph has one parameter, BENCH_NODE, of type float32.
 */
#ifndef BENCH_BENCH_TRAINER_H
#define BENCH_BENCH_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "debug_grpc.pb-c.h"

#define BENCH_NODE  "network.embedding.weight"
#define BENCH_PIECE 3145728u /* content bytes per TensorProto, as real clients send */

/* The real server, session and target in their own process. At each stop the debugger fetches
 * BENCH_NODE (if `fetch`), then steps. */
struct bench_debugger {
    pid_t pid;
    char address[64];
    int report; /* source of struct bench_memory_use, after the training process has ended */
};
struct bench_memory_use {
    uint64_t idle; /* resident memory before the first fetch */
    uint64_t peak;
    uint64_t fetched; /* complete values received */
};
void bench_debugger_start(struct bench_debugger *debugger, bool fetch);
/* Call after the training process has closed its connection. */
struct bench_memory_use bench_debugger_end(struct bench_debugger *debugger);

struct bench_trainer;

/* Connects, sends metadata and graph. */
struct bench_trainer *bench_trainer_start(const char *address, size_t elements);
void bench_trainer_end(struct bench_trainer *trainer);
/* One WaitCMD and its reply; free it with debugger__event_reply__free_unpacked. */
Debugger__EventReply *bench_trainer_wait(struct bench_trainer *trainer, int32_t step);
/* Type and size, which a debugger requests before a value. */
void bench_trainer_send_base(struct bench_trainer *trainer, size_t elements);
/* Sends the value in pieces, without copying it; waits for the answer. */
void bench_trainer_send_tensor(struct bench_trainer *trainer, const void *data, size_t elements);
/* Bytes written to and read from the socket so far. */
void bench_trainer_traffic(const struct bench_trainer *trainer, uint64_t *out, uint64_t *in);

#endif

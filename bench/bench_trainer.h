// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A MindSpore training process as the wire sees it, and a debugger of our own in a process beside
 * it: the two ends of the wire's benchmarks. A graph has one parameter, BENCH_NODE, of float32.
 */
#ifndef BENCH_BENCH_TRAINER_H
#define BENCH_BENCH_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "debug_grpc.pb-c.h"

#define BENCH_NODE  "network.embedding.weight"
#define BENCH_PIECE 3145728u /* bytes of content in one TensorProto, as real clients cut it */

/* The debugger: the real server, session and target in a process of their own. At each stop it
 * looks at BENCH_NODE's value (when `fetch`), then goes on by one step. */
struct bench_debugger {
    pid_t pid;
    char address[64];
    int report; /* reads struct bench_memory_use when the trainer has gone */
};
struct bench_memory_use {
    uint64_t idle; /* resident, before the first value was asked for */
    uint64_t peak;
    uint64_t fetched; /* values that came whole */
};
void bench_debugger_start(struct bench_debugger *debugger, bool fetch);
/* After the trainer has closed its connection. */
struct bench_memory_use bench_debugger_end(struct bench_debugger *debugger);

struct bench_trainer;

/* Connects, introduces itself, sends the graph. */
struct bench_trainer *bench_trainer_start(const char *address, size_t elements);
void bench_trainer_end(struct bench_trainer *trainer);
/* One WaitCMD and its reply, to be freed with debugger__event_reply__free_unpacked. */
Debugger__EventReply *bench_trainer_wait(struct bench_trainer *trainer, int32_t step);
/* Type and size, which a debugger asks for before a value. */
void bench_trainer_send_base(struct bench_trainer *trainer, size_t elements);
/* Sends the value in pieces, from where it lies; waits for the answer. */
void bench_trainer_send_tensor(struct bench_trainer *trainer, const void *data, size_t elements);
/* Bytes written to and read from the socket so far. */
void bench_trainer_traffic(const struct bench_trainer *trainer, uint64_t *out, uint64_t *in);

#endif

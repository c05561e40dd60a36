// SPDX-License-Identifier: MIT
/*
 * All calls to gradb: reports the graph, each executed operator and the metrics of each step.
 * Without a debugger these functions do nothing.
 */
#ifndef CHARLM_TRACE_H
#define CHARLM_TRACE_H

#include <stdbool.h>

#include "optim.h"

struct trace;

/* What the debugger may change while the training is stopped. */
struct trace_rate {
    void *ctx;
    double (*get)(void *ctx); /* the learning rate of the next step */
    void (*set)(void *ctx, double rate);
};

/* Describes the graph, which must be complete, and waits for the debugger if one was requested.
 * Returns NULL when tracing is disabled or out of memory; the other functions accept NULL. */
struct trace *trace_open(struct graph *graph, const struct trace_rate *rate);
void trace_close(struct trace *trace, const char *why);

void trace_step_begin(struct trace *trace, int64_t step);
void trace_phase(struct trace *trace, enum phase phase);
void trace_scalar(struct trace *trace, const char *name, double value);
void trace_step_end(struct trace *trace);
/* An event of the training, "begin" or "epoch-end": the debugger may stop there. */
void trace_happened(struct trace *trace, const char *kind, int64_t epoch, const char *path);
bool trace_wants_stop(struct trace *trace);
bool trace_wants_checkpoint(struct trace *trace);
/* Reports the path of the checkpoint, or why it failed. */
void trace_checkpoint(struct trace *trace, const char *text, bool saved);

#endif

// SPDX-License-Identifier: MIT
/*
 * Everything that this program has to do with gradb: telling the debugger of the graph, of each
 * operator that ran, of the step's numbers. With no debugger listening all of it does nothing.
 */
#ifndef CHARLM_TRACE_H
#define CHARLM_TRACE_H

#include <stdbool.h>

#include "optim.h"

struct trace;

/* NULL when tracing is switched off or memory is short; the other functions accept that. Describes
 * the graph, which must be complete, and waits for a debugger that was asked for. */
struct trace *trace_open(struct graph *graph);
void trace_close(struct trace *trace, const char *why);

void trace_step_begin(struct trace *trace, int64_t step);
void trace_phase(struct trace *trace, enum phase phase);
void trace_scalar(struct trace *trace, const char *name, double value);
void trace_step_end(struct trace *trace);
bool trace_wants_stop(struct trace *trace);
bool trace_wants_checkpoint(struct trace *trace);
/* Where the checkpoint lies, or why it could not be written. */
void trace_checkpoint(struct trace *trace, int64_t step, const char *text, bool saved);

#endif

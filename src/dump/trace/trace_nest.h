// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The operators of a trace: which spans call which others, how long each runs itself, and to which
 * node, phase and step it belongs.
 *
 * A span is inside another of its thread if it lies wholly within; of spans that merely overlap,
 * neither is inside the other. An operator whose only callee has its own name counts once. Both are
 * torch.profiler's rules (EventList), so the numbers are those of its key_averages(). Only where
 * times are in whole microseconds, as its older versions write them, may a callee end one later.
 */
#ifndef GD_DUMP_TRACE_NEST_H
#define GD_DUMP_TRACE_NEST_H

#include "dump/catalog.h"
#include "dump/trace/trace_spans.h"
#include "engine/timing/report.h"

#define TRACE_FRAMES 24

struct trace_node {               /* an operator at one place, or a kernel that it launches */
    uint32_t name, module, place; /* texts */
    enum gd_time_phase phase;
    enum gd_time_lane lane;
    uint32_t first_frame, frames; /* in trace_run.frame, innermost first */
    uint64_t calls;
    double total, self, device; /* nanoseconds; device: in kernels it launched */
    uint32_t args;              /* of its first call */
    gd_node_id id;
};

struct trace_op { /* a node with one set of shapes */
    uint32_t node, args;
    double seconds; /* in the step being added up */
    uint32_t calls;
};

struct trace_phase { /* a part of a step as it ran */
    int64_t start, end;
    enum gd_time part;
};

struct trace_step {
    int64_t number, start, end;
};

enum trace_steps_by {
    TRACE_BY_MARKS,
    TRACE_BY_TABLE,
    TRACE_BY_STEP_TRACE,
    TRACE_BY_OPTIMIZER,
    TRACE_BY_WHOLE
};

struct trace_run { /* one trace, analysed; {0} is empty */
    struct trace_spans spans;
    struct trace_node *node;
    size_t nodes, node_cap;
    struct trace_op *op;
    size_t ops, op_cap;
    uint32_t *frame;
    size_t frames, frame_cap;
    struct trace_phase *phase;
    size_t phases, phase_cap;
    struct trace_step *step;
    size_t steps, step_cap;
    enum trace_steps_by steps_by;
    struct gd_time_step *told; /* of steps, as a table says */
    size_t tolds, told_cap;
    int64_t start, end;
    bool has[GD_TIMES]; /* the trace has this part somewhere */
    bool has_communication;
    /* private: */
    struct gd_hash_index by_node, by_op;
};

void trace_run_deinit(struct trace_run *run);
/* The spans were read and sorted. GD_ENOMEM, GD_ELIMIT. */
int trace_run_analyse(struct trace_run *run, struct gd_err *err);

/* ---- trace_nodes.c --------------------------------------------------------------------------- */

/* The node with that name, module, place, phase and lane; a new one has no frames. */
int trace_node_of(struct trace_run *run, const struct trace_node *key, uint32_t *ret,
                  struct gd_err *err);
int trace_op_of(struct trace_run *run, uint32_t node, uint32_t args, uint32_t *ret,
                struct gd_err *err);
int trace_add_frame(struct trace_run *run, struct trace_node *node, uint32_t text,
                    struct gd_err *err);
/* "model.py(12): forward" taken apart; false: not of that form. */
struct trace_place {
    const char *file;
    size_t file_size;
    uint32_t line;
    const char *function;
    size_t function_size;
};
bool trace_place_parse(const char *text, size_t size, struct trace_place *ret);
/* Of the framework, the interpreter or an installed package. */
bool trace_place_is_library(const struct trace_place *place);
/* "model.py:12" as a text; 0: the frame is not the user's. */
int trace_place_text(struct trace_spans *spans, const char *frame, size_t size, uint32_t *ret,
                     struct gd_err *err);
/* "TOP(Net)::forward.conv(Conv2d)::forward" as "Net/conv". */
int trace_module_text(struct trace_spans *spans, const char *text, size_t size, uint32_t *ret,
                      struct gd_err *err);

/* ---- trace_phases.c -------------------------------------------------------------------------- */

int trace_find_steps(struct trace_run *run, struct gd_err *err);
/* The part of a step that the span's name marks; GD_TIMES: none. */
enum gd_time trace_part_of(const char *name, enum trace_kind kind);
int trace_add_phase(struct trace_run *run, int64_t start, int64_t end, enum gd_time part,
                    struct gd_err *err);
void trace_step_parts(const struct trace_run *run, size_t index, struct gd_time_step *ret);
/* Communication, and what of it no computation hides, in all steps: index by step. */
int trace_communication(const struct trace_run *run, struct gd_time_step *steps,
                        struct gd_err *err);

/* ---- trace_report.c -------------------------------------------------------------------------- */

/* Tensors among the arguments; numbers and missing ones are left out. */
void trace_inputs(const struct trace_spans *spans, uint32_t args, struct gd_time_record *record);
/* Says that a file is truncated at that byte. */
int trace_note_cut(struct gd_catalog *catalog, const char *path, uint64_t cut, struct gd_err *err);
/* Adds nodes, steps, times and facts to the catalog, and frees what is no longer needed. */
int trace_fill(struct trace_run *run, struct gd_catalog *catalog, struct gd_err *err);

#endif

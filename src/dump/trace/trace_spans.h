// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a trace says, in memory: its events as spans of fixed size, and each different text once. So
 * memory grows with the number of events (56 bytes each), not with the size of the file; both are
 * limited.
 */
#ifndef GD_DUMP_TRACE_SPANS_H
#define GD_DUMP_TRACE_SPANS_H

#include "base/arena.h"
#include "dump/trace/trace_events.h"
#include "engine/hash_index.h"

#define TRACE_MAX_SPANS (UINT32_C(1) << 24)
#define TRACE_MAX_TEXT  ((size_t)512 << 20) /* bytes of all texts */
#define TRACE_MAX_LANES 4096
#define TRACE_NONE      UINT32_MAX

enum trace_kind {
    TRACE_UNKNOWN, /* until its process has a name */
    TRACE_OP,
    TRACE_ANNOTATION, /* record_function, Optimizer.step, enumerate(DataLoader), ... */
    TRACE_STEP,       /* ProfilerStep#N */
    TRACE_PYTHON,     /* a function of the program, a module */
    TRACE_RUNTIME,    /* launches kernels */
    TRACE_KERNEL,
    TRACE_COPY,
    TRACE_COMMUNICATION,
    TRACE_LEFT_OUT, /* says nothing new: what a profiler adds up itself */
};

/* FLAT: its lane has no nesting; BEGUN: its end is missing so far */
enum { TRACE_BACKWARD = 1, TRACE_FLAT = 2, TRACE_BEGUN = 4 };

struct trace_span {
    int64_t start, duration; /* nanoseconds */
    int64_t self;            /* of that, not in the operators inside */
    uint32_t name, args;     /* texts; args: see trace_arg */
    uint32_t external, sequence;
    uint32_t op;    /* trace_nest.h; TRACE_NONE: none */
    uint32_t order; /* in the file */
    uint16_t lane;
    uint8_t kind, flags;
};

struct trace_lane {                       /* a thread or stream */
    uint32_t process, thread;             /* texts */
    uint32_t process_label, thread_label; /* 0: none */
};

struct trace_counter {
    int64_t at;
    uint32_t name;
    double value;
};

struct trace_spans { /* {0} is empty */
    struct trace_span *span;
    size_t count, cap;
    struct trace_lane *lane;
    size_t lanes, lane_cap;
    struct trace_counter *counter;
    size_t counters, counter_cap;
    const char **text; /* 0: "" */
    size_t texts, text_cap;
    uint64_t bad_times, unpaired, dropped; /* events left out */
    int64_t base;             /* nanoseconds since the epoch at which times begin; 0: unknown */
    int64_t rank, world_size; /* -1: the trace does not say */
    char backend[32], host[64], framework[64];
    bool is_kineto; /* it names its schema: written by torch.profiler */
    bool has_parts; /* times have fractions of microseconds */
    /* private: */
    struct gd_arena arena;
    struct gd_hash_index by_text;
    struct gd_buf scratch;
    uint32_t *open; /* spans that began and have not ended */
    size_t open_count, open_cap;
};

void trace_spans_deinit(struct trace_spans *spans);
/* The number of a text. GD_ELIMIT, GD_ENOMEM. */
int trace_text(struct trace_spans *spans, const char *text, size_t size, uint32_t *ret,
               struct gd_err *err);
enum trace_arg { TRACE_DIMS, TRACE_TYPES, TRACE_STACK, TRACE_MODULES, TRACE_OP_TYPE };
/* A part of args; not NUL-terminated. */
const char *trace_arg(const struct trace_spans *spans, uint32_t args, enum trace_arg which,
                      size_t *size);
int trace_add_span(struct trace_spans *spans, const struct trace_span *span, struct gd_err *err);
/* The lane of a process and thread. GD_ELIMIT. */
int trace_lane_of(struct trace_spans *spans, const char *process, const char *thread, uint16_t *ret,
                  struct gd_err *err);

/* Reads a whole file, to its end or until it is truncated: *cut is then the byte at which the file
 * ends, otherwise 0. Kinds are known and spans sorted afterwards: by start, the longer first. */
int trace_spans_read(struct trace_spans *spans, struct gd_disk *disk,
                     bool (*go_on)(void *ctx, uint64_t done), void *ctx, uint64_t *cut,
                     struct gd_err *err);
void trace_spans_sort(struct trace_spans *spans);

#endif

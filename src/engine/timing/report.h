// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where the time of a training went: its steps, their parts, and the operators in them. A live
 * session fills its report from what the training process sends (gd_session_on_step_times), a
 * target for trace files from what it reads; `info timing` prints both, and advice.h judges both.
 *
 * The reading side pushes steps and executions of operators in any order. All text is copied; what
 * readers see belongs to the report and lives until the next push. Seconds; negative: unknown. One
 * thread.
 */
#ifndef GD_ENGINE_TIMING_REPORT_H
#define GD_ENGINE_TIMING_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/timing/step_times.h"

#define GD_TIME_STEPS     1024  /* the last ones, of which median and spread are */
#define GD_TIME_SLOWEST   16    /* of all steps */
#define GD_TIME_OPERATORS 65536 /* different ones; others are only counted */
#define GD_TIME_INPUTS    4
#define GD_TIME_DIMS      8
#define GD_TIME_WAITS     64
#define GD_TIME_BUCKETS   256
#define GD_TIME_GRADIENTS 2048
#define GD_TIME_COMPILES  32
#define GD_TIME_CALLS     64 /* kinds and places of collectives */

/* ---- what is pushed -------------------------------------------------------------------------- */

struct gd_time_step {
    int64_t step;
    int64_t epoch, batch;  /* 0: unknown */
    double part[GD_TIMES]; /* data: waiting for a batch; rest: between the parts */
    double tail;           /* between the last gradient and the end of the backward pass */
    double communication;  /* in collectives, hidden by computation or not */
    double exposed;        /* of that, not hidden */
    double cost;           /* in gradb's own hooks; not in the parts */
    bool timed;            /* its operators were measured */
};

/* A step of which nothing is known. */
struct gd_time_step gd_time_unknown_step(int64_t step);

enum gd_time_phase {
    GD_TIME_IN_OTHER,
    GD_TIME_IN_FORWARD,
    GD_TIME_IN_BACKWARD,
    GD_TIME_IN_OPTIMIZER,
    GD_TIME_IN_COUNT
};
const char *gd_time_phase_name(enum gd_time_phase phase); /* "forward"; "" for the first */

enum gd_time_lane { GD_LANE_HOST, GD_LANE_DEVICE, GD_LANE_COMMUNICATION, GD_LANE_COUNT };
const char *gd_time_lane_name(enum gd_time_lane lane); /* "host", "device", "communication" */

struct gd_time_tensor {
    enum gd_dtype dtype; /* GD_DT_NONE: unknown */
    int rank;            /* negative: unknown */
    int64_t dim[GD_TIME_DIMS];
};

/* An operator's executions in one step (or one execution). Text may be NULL: unknown. */
struct gd_time_record {
    const char *type;   /* "linear", "aten::mm", "MatMul" */
    const char *name;   /* of the node, or of the operator in the trace */
    const char *module; /* "net/fc1" */
    const char *place;  /* "model.py:42" */
    enum gd_time_phase phase;
    enum gd_time_lane lane;
    struct gd_time_tensor in[GD_TIME_INPUTS], out;
    int in_count;
    int64_t step;   /* 0: unknown */
    uint32_t calls; /* 0 counts as 1 */
    double seconds; /* of all calls, without the operators called inside */
};

/* ---- what readers see ------------------------------------------------------------------------ */

struct gd_time_operator {
    const char *type, *name, *module, *place; /* never NULL */
    enum gd_time_phase phase;
    enum gd_time_lane lane;
    struct gd_time_tensor in[GD_TIME_INPUTS], out;
    int in_count;
    uint64_t calls;
    int64_t steps; /* in how many it ran */
    int64_t last_step;
    double seconds;
    double flops, bytes; /* of one call, by the shapes; negative: unknown. cost.h */
};

/* A place at which the training waits for a value: x.item(). */
struct gd_time_wait {
    char function[32];
    char place[160];
    uint64_t calls;
    double seconds;
    int64_t steps; /* during which it was counted */
};

/* What feeds the training; -1: unknown. */
struct gd_time_loader {
    char kind[48]; /* "DataLoader"; "": none is known */
    char place[160];
    char operations[256]; /* of MindSpore, with their settings: "map (num_parallel_workers=2)" */
    int64_t workers, prefetch, batch_size;
    int pinned, persistent;
    int stream;               /* of an IterableDataset, which each worker would read as a whole */
    uint64_t requests, empty; /* requests for a batch; how many found none ready */
    bool knows_queue;         /* `empty` was counted */
};

struct gd_time_gradient { /* in the order in which they become ready */
    uint64_t bytes;
    double ready; /* since the backward pass began */
};

struct gd_time_compile {
    char name[64], place[96];
    int64_t step;
    double seconds;
};

/* Collectives that the program calls at a line, added up over `steps`. */
struct gd_time_collective {
    char kind[40]; /* "all_reduce" */
    char place[160];
    int64_t steps;
    double elapsed; /* seconds of those */
    uint64_t calls, bytes;
    double seconds; /* in the calls, and waiting for them */
    uint64_t begun; /* asynchronous ones that were waited for */
    double ahead;   /* seconds between their calls and that */
    int on_device;  /* where the calls only begin the work */
};

struct gd_time_facts {
    char framework[32];
    char device[48];                       /* "cpu", "cuda:0" */
    char mode[24];                         /* of MindSpore: "graph", "jit", "pynative" */
    char sink[8];                          /* "on", "off", "": unknown */
    char note[240];                        /* what the times mean, where that is not obvious */
    double compile;                        /* seconds of compiling, all of it */
    int64_t compiles, compiles_late;       /* how often; after step 2 */
    char compiled[64], compile_place[160]; /* what was compiled last, or most often */
    double compiled_seconds;               /* of that */
    char compile_cause[160];               /* why so often, and what to do */
    int64_t compilations;                  /* of all that was compiled */
    struct gd_time_compile compilation[GD_TIME_COMPILES]; /* the last ones, oldest first */
    int compilation_count;
    int64_t processors; /* that the process may use; 0: unknown */
    struct gd_time_loader loader;
    struct gd_time_wait wait[GD_TIME_WAITS];
    int wait_count;
    char reducer[32]; /* "DDP"; "": none */
    int64_t world_size;
    double bucket_limit; /* bytes that the user allows; negative: unknown */
    double communication,
        hidden; /* seconds of one step, from the first bucket's reduction to the end
                   of the last one, and of that beside the backward pass; -1 */
    struct gd_time_collective collective[GD_TIME_CALLS];
    int collective_count;
    uint64_t bucket[GD_TIME_BUCKETS];
    int bucket_count;
    struct gd_time_gradient *gradient; /* owned */
    int gradient_count;
};

struct gd_time_report {
    struct gd_time_step first, last;
    int64_t count;               /* of steps */
    double sum[GD_TIMES];        /* of all; negative: unknown in one of them */
    struct gd_time_step *recent; /* a ring: the next one is put at count modulo its size */
    struct gd_time_step slowest[GD_TIME_SLOWEST]; /* the slowest first, without the first step */
    int slowest_count;
    int64_t timed_steps, first_timed, last_timed; /* with operators */
    double timed_seconds;                         /* of those */
    const struct gd_time_operator *op;
    uint32_t op_count;
    uint64_t op_dropped; /* executions of operators beyond the limit */
    struct gd_time_facts facts;
    struct time_report_impl *impl;
};

int gd_time_report_create(struct gd_time_report **ret, struct gd_err *err);
void gd_time_report_destroy(struct gd_time_report *report);

/* Unknown and impossible numbers become -1. */
void gd_time_add_step(struct gd_time_report *report, const struct gd_time_step *step);
/* What becomes known of a step afterwards, if it is the last one. name: "epoch" or "batch". */
void gd_time_note_place(struct gd_time_report *report, int64_t step, const char *name,
                        int64_t number);
void gd_time_note_costs(struct gd_time_report *report, int64_t step, double tail, double cost);
/* GD_ENOMEM. Beyond GD_TIME_OPERATORS different ones, another is counted only. */
int gd_time_add_operator(struct gd_time_report *report, const struct gd_time_record *record,
                         struct gd_err *err);

/* ---- numbers --------------------------------------------------------------------------------- */

double gd_time_mean(const struct gd_time_report *report, enum gd_time part);

/* Of the last GD_TIME_STEPS steps, without the first of all and measured ones where there are
 * others; negative: unknown in one of them. */
struct gd_time_spread {
    double median, low, high; /* quartiles */
    double deviation;         /* the median of the distances from the median */
    int count;
};
enum gd_time_series { GD_SERIES_PART, GD_SERIES_TAIL, GD_SERIES_COST };
struct gd_time_spread gd_time_spread_of(const struct gd_time_report *report,
                                        enum gd_time_series series, enum gd_time part);
/* What measuring operators costs: by how much a measured step is longer than the median of others,
 * and the share of that in the time of all steps but the first. Negative: unknown. */
void gd_time_measuring(const struct gd_time_report *report, double *each, double *share);
/* The last steps, oldest first: copies at most `most`. Returns how many. */
int gd_time_recent(const struct gd_time_report *report, struct gd_time_step *ret, int most);

/* Operators added up by what they have in common, the slowest first. */
enum gd_time_by { GD_BY_OPERATOR, GD_BY_TYPE, GD_BY_SHAPE, GD_BY_MODULE };
struct gd_time_group {
    const char *key;    /* of BY_SHAPE: the type */
    uint32_t first;     /* the slowest operator in it */
    uint32_t operators; /* how many different ones */
    uint64_t calls;
    double seconds;
    double flops, bytes; /* of all calls whose shapes say so; 0: of none */
    double known;        /* seconds of those */
};
/* *ret is to be freed. GD_ENOMEM. */
int gd_time_group_by(const struct gd_time_report *report, enum gd_time_by by,
                     struct gd_time_group **ret, uint32_t *count, struct gd_err *err);
double gd_time_operator_seconds(const struct gd_time_report *report); /* of all of them */

/* "float32 (64, 32) x (32, 16)" */
char *gd_time_shape_text(const struct gd_time_operator *op, char *out, size_t size);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A report of who holds the memory: what a training process counted at a stop, what a snapshot of
 * an allocator recorded, or what the shapes in a dump say. `info memory` prints it.
 *
 * Sizes are bytes. An unknown number is negative, an unknown text "". Texts given to the functions
 * are copied into the report. Each gd_memory_add function returns GD_OK, or GD_ENOMEM; rows after
 * the first GD_MEMORY_MAX_ROWS of a list are counted as left out. One thread.
 */
#ifndef GD_MEMORY_H
#define GD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum gd_memory_kind {
    GD_MEMORY_WEIGHTS,
    GD_MEMORY_GRADIENTS,
    GD_MEMORY_OPTIMIZER,   /* the state of optimizers */
    GD_MEMORY_BUFFERS,     /* of modules: running means */
    GD_MEMORY_ACTIVATIONS, /* kept for the backward pass */
    GD_MEMORY_INPUTS,      /* from outside the graph: batches, labels */
    GD_MEMORY_OTHER,
    GD_MEMORY_KINDS,
};
const char *gd_memory_kind_name(enum gd_memory_kind kind); /* "weights", ... */
/* GD_MEMORY_OTHER for any other name. */
enum gd_memory_kind gd_memory_kind_of(const char *name);

struct gd_memory_total {
    int64_t bytes;
    int64_t count; /* tensors, or blocks of an allocator */
};

/* A node or a module that holds memory. */
struct gd_memory_row {
    const char *name;
    const char *where;  /* FILE:LINE */
    const char *detail; /* shapes, a function, what holds it */
    enum gd_memory_kind kind;
    int64_t bytes, count;
};

/* Something that grew from step to step. */
struct gd_memory_growth {
    const char *name;
    const char *where;
    const char *holder; /* "the list losses in train.py:12" */
    int64_t bytes, count;
    double per_step;               /* bytes */
    int64_t first_step, last_step; /* of the steps that were compared */
};

/* One device, as its allocator reports it. */
struct gd_memory_device {
    const char *name; /* "cuda:0" */
    int64_t allocated, reserved;
    int64_t requested; /* by the program: of `allocated`, before rounding */
    int64_t peak, peak_reserved;
    int64_t unused; /* reserved, but in no allocated block: the allocator's cache */
    int64_t
        largest_free; /* block of them, the largest that can be given without asking the device */
    int64_t split;    /* of `unused`, in segments that other blocks keep */
    int64_t segments, blocks;
    int64_t free, total; /* of the device, all processes together */
};

struct gd_memory_process {
    int64_t pid;
    const char *name;
    const char *device; /* "" for the machine's memory */
    int64_t bytes;
};

/* When most was held. */
struct gd_memory_peak {
    int64_t bytes, step;
    const char *name;  /* the node that was running */
    const char *where; /* FILE:LINE */
    const char *phase;
    const char *note; /* why it is unknown, and what to do */
};

/* The last time that memory ran out. */
struct gd_memory_oom {
    int64_t asked;          /* -1: it did not run out */
    int64_t free;           /* on the device, as the device reported it */
    int64_t held, reserved; /* by the process; held: as requested, without rounding */
    bool expandable;        /* the allocator's segments can grow already */
    const char *device;
    const char *name, *where; /* the function that asked, FILE:LINE */
    const char *note;         /* when */
};

#define GD_MEMORY_MAX_ROWS 65536

struct gd_memory {
    struct gd_arena arena;
    const char *source; /* what was counted, a line: "tensors of the training process" */
    const char *unit;   /* what a count counts: "tensor", "block" */
    bool counted;       /* the tensors exist now, in the process; else: an estimate */
    int64_t step;
    struct gd_memory_total kind[GD_MEMORY_KINDS]; /* zero when there is none of a kind */
    struct gd_memory_row *nodes, *modules;        /* sorted by gd_memory_sort */
    size_t node_count, module_count;
    struct gd_memory_row *peak_nodes, *oom_nodes; /* that held it then */
    size_t peak_node_count, oom_node_count;
    struct gd_memory_growth *growth;
    size_t growth_count;
    struct gd_memory_device *devices;
    size_t device_count;
    struct gd_memory_process *processes;
    size_t process_count;
    const char **notes; /* what could not be counted */
    size_t note_count;
    size_t left_out; /* rows over the limit */
    struct gd_memory_peak peak;
    struct gd_memory_oom oom;
    int64_t rss, rss_peak;          /* of the process */
    int64_t limit;                  /* the lowest that applies to the process */
    const char *limit_name;         /* "cgroup", "RLIMIT_AS", "RAM" */
    int64_t limit_used;             /* of the limit */
    int64_t machine, machine_free;  /* RAM */
    int64_t growth_from, growth_to; /* steps that were compared; -1: growth is unknown */
    size_t node_cap, module_cap, peak_node_cap, oom_node_cap, growth_cap, device_cap, process_cap,
        note_cap;
};

void gd_memory_init(struct gd_memory *report); /* everything is unknown */
void gd_memory_deinit(struct gd_memory *report);

/* A copy that lives as long as the report; "" for NULL or when memory is short. */
const char *gd_memory_text(struct gd_memory *report, const char *text);

int gd_memory_add_node(struct gd_memory *report, const struct gd_memory_row *row);
int gd_memory_add_module(struct gd_memory *report, const struct gd_memory_row *row);
int gd_memory_add_peak_node(struct gd_memory *report, const struct gd_memory_row *row);
int gd_memory_add_oom_node(struct gd_memory *report, const struct gd_memory_row *row);
int gd_memory_add_growth(struct gd_memory *report, const struct gd_memory_growth *growth);
int gd_memory_add_device(struct gd_memory *report, const struct gd_memory_device *device);
int gd_memory_add_process(struct gd_memory *report, const struct gd_memory_process *process);
int gd_memory_add_note(struct gd_memory *report, const char *note);

/* Fills an initialised report with a copy. GD_ENOMEM. */
int gd_memory_copy(const struct gd_memory *from, struct gd_memory *ret);
void gd_memory_sort(struct gd_memory *report); /* lists by bytes, the largest first; by name */
struct gd_memory_total gd_memory_sum(const struct gd_memory *report);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The output directory of MindSpore's and torch_npu's profilers (ASCEND_PROFILER_OUTPUT), table by
 * table. Columns are found by their names, for versions have different ones.
 */
#ifndef GD_DUMP_PROFILE_TABLES_H
#define GD_DUMP_PROFILE_TABLES_H

#include "dump/trace/trace_nest.h"

struct profile {
    const struct gd_listing *listing;
    uint32_t entry; /* the directory with the tables */
    uint32_t above; /* the one that contains it; GD_NO_ENTRY: not listed */
    struct trace_run run;
    struct gd_catalog *catalog;
    int64_t rank; /* in the names of files, before ASCEND_PROFILER_OUTPUT; -1 */
    bool has_kernels, has_operators, has_runtime, has_collectives;
};

/* ---- before the trace is analysed ------------------------------------------------------------ */

/* Kernels, each with its type, shapes and step; they replace those of the trace. */
int profile_read_kernels(struct profile *profile, struct gd_err *err);
/* Collectives, if neither the trace nor the kernels have some. */
int profile_read_communication(struct profile *profile, struct gd_err *err);
/* What MindSpore says about its operators on a CPU: the shapes of their inputs. */
int profile_read_shapes(struct profile *profile, struct gd_err *err);
/* The time of each step and what of it was computation and communication. */
int profile_read_steps(struct profile *profile, struct gd_err *err);

/* ---- afterwards: the catalog and its report are filled --------------------------------------- */

/* Totals of operators and calls of which the trace has no single ones. */
int profile_add_totals(struct profile *profile, struct gd_err *err);
/* The data pipeline, links between devices. */
int profile_add_facts(struct profile *profile, struct gd_err *err);

/* Who held the memory, if the profiler was asked for that. */
int profile_add_memory(struct profile *profile, struct gd_err *err);
/* memory_usage_R.pb: what the planner of a graph (SOMAS) assigned. */
int profile_add_planned_memory(struct profile *profile, const char *path, struct gd_err *err);

/* ---- files of one rank, as releases before 2.3 write them: NAME_RANK_MORE -------------------- */

/* Executions of operators, with types and shapes. */
int profile_read_timeline(struct profile *profile, struct gd_err *err);
/* The steps and what of them was waiting, computation and collectives. */
int profile_read_step_trace(struct profile *profile, struct gd_err *err);
/* Afterwards: totals of operators without single executions, floating-point operations. */
int profile_add_rank_totals(struct profile *profile, struct gd_err *err);
int profile_add_flops(struct profile *profile, struct gd_err *err);

/* ---- tables ---------------------------------------------------------------------------------- */

/* Calls fn for each row; a file that is not there has none. */
struct profile_row;
typedef int (*profile_row_fn)(struct profile *profile, const struct profile_row *row, void *ctx,
                              struct gd_err *err);
int profile_each_row(struct profile *profile, uint32_t directory, const char *name,
                     profile_row_fn fn, void *ctx, struct gd_err *err);
const char *profile_cell(const struct profile_row *row, const char *column); /* "": none */
const char *profile_cell_at(const struct profile_row *row, size_t column);
const char *profile_column(const struct profile_row *row, size_t column); /* its name; "": none */
/* Seconds of a cell in microseconds; negative: none. */
double profile_seconds(const struct profile_row *row, const char *column);
/* The same for a table whose name is BEFORE, the profile's rank, AFTER. */
int profile_each_rank_row(struct profile *profile, const char *before, const char *after,
                          profile_row_fn fn, void *ctx, struct gd_err *err);
/* The entry of that table; GD_NO_ENTRY: none. */
uint32_t profile_rank_file(const struct profile *profile, const char *before, const char *after);
/* The file's JSON; *ret NULL: there is no such file. */
int profile_read_tree(const struct profile *profile, uint32_t entry, cJSON **ret,
                      struct gd_err *err);
/* "profiler_info_3.json": 3; negative: another name. */
int64_t profile_number_in(const char *name, const char *before, const char *after);
/* "profiler_info_3.json": 3; negative: no such file. */
int64_t profile_number_of(const struct gd_listing *listing, uint32_t directory, const char *before,
                          const char *after);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes the layout of MindSpore's synchronous dump (2.4 and later):
 *
 *     ROOT/rank_R/.dump_metadata/{data_dump.json,config.json,stood_at.csv}
 *     ROOT/rank_R/execution_order/ms_[global_]execution_order_graph_G.csv
 *     ROOT/rank_R/graphs/ms_output_trace_code_graph_G.pb
 *     ROOT/rank_R/NET/G/constants/Parameter.NAME....npy
 *     ROOT/rank_R/NET/G/STEP/TYPE.NAME.0.0.TIME.(input|output).SLOT.DefaultFormat.DTYPE.npy
 *     ROOT/rank_R/NET/G/STEP/{statistic.csv,mapping.csv}
 *
 * A file gets its name only when it is complete, however the process ends.
 */
#ifndef GD_DUMP_MS_DUMP_WRITER_H
#define GD_DUMP_MS_DUMP_WRITER_H

#include "base/stats.h"
#include "engine/graph/graph.h"

struct gd_ms_writer;

struct gd_ms_writer_options {
    const char *root;
    int rank;
    const char *net;
    const char *device, *version; /* for config.json */
    const char *config;           /* the unchanged data_dump.json */
    size_t config_size;
};

/* Creates the directories, including ROOT, whose parent must exist. GD_EIO, GD_EINVAL. */
int gd_ms_writer_open(const struct gd_ms_writer_options *options, struct gd_ms_writer **ret,
                      struct gd_err *err);
void gd_ms_writer_close(struct gd_ms_writer *writer);           /* NULL is fine */
uint64_t gd_ms_writer_bytes(const struct gd_ms_writer *writer); /* written so far */

/* Writes the subgraphs and their orders; call again when the graph has grown. */
int gd_ms_writer_graph(struct gd_ms_writer *writer, struct gd_graph *graph, struct gd_err *err);

/* Begins a step; what follows may belong to any subgraph. The following calls fail with GD_EINVAL
 * if a dump of the step already exists. */
void gd_ms_writer_begin(struct gd_ms_writer *writer, int64_t step);

struct gd_ms_item {
    const struct gd_node_info *node;
    bool is_input;
    uint32_t slot;
};
/* The size its file would have. */
uint64_t gd_ms_writer_size(enum gd_dtype dtype, const struct gd_shape *shape);
/* C-contiguous. bfloat16 is widened to float32, as in MindSpore. Constants are written only once.
 * go_on (may be NULL) is called now and then with the bytes done; if it returns false: GD_EINTR,
 * and no file. GD_EUNSUPPORTED: its type has no elements. */
int gd_ms_writer_tensor(struct gd_ms_writer *writer, const struct gd_ms_item *item,
                        const struct gd_tensor *tensor, bool (*go_on)(void *ctx, uint64_t done),
                        void *ctx, struct gd_err *err);

/* The statistics of statistic.csv, in column order. */
enum gd_ms_category {
    GD_MS_MAX,
    GD_MS_MIN,
    GD_MS_AVG,
    GD_MS_COUNT,
    GD_MS_NEGATIVE, /* elements below 0; MindSpore's name is "negative zero count" */
    GD_MS_POSITIVE,
    GD_MS_NAN,
    GD_MS_NEG_INF,
    GD_MS_POS_INF,
    GD_MS_ZERO,
    GD_MS_L2NORM,
    GD_MS_MD5,
    GD_MS_CATEGORIES
};
/* As in data_dump.json: "negative zero count"; NULL after the last. */
const char *gd_ms_category_name(int category);
void gd_ms_writer_columns(struct gd_ms_writer *writer, const int *category, int count);
/* Adds a row to the step's statistic.csv. tensor: for MD5; NULL: unknown. */
int gd_ms_writer_row(struct gd_ms_writer *writer, const struct gd_ms_item *item,
                     enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, const struct gd_tensor *tensor,
                     struct gd_err *err);
/* Records in stood_at.csv that the training was stopped inside the step, at this node. */
int gd_ms_writer_stood(struct gd_ms_writer *writer, const char *node, struct gd_err *err);
/* Writes statistic.csv if there are rows; with `whole`, marks the step as complete. */
int gd_ms_writer_end(struct gd_ms_writer *writer, bool whole, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes the layout of MindSpore's synchronous dump, as 2.4 and later have it:
 *
 *     ROOT/rank_R/.dump_metadata/{data_dump.json,config.json,stood_at.csv}
 *     ROOT/rank_R/execution_order/ms_[global_]execution_order_graph_G.csv
 *     ROOT/rank_R/graphs/ms_output_trace_code_graph_G.pb
 *     ROOT/rank_R/NET/G/constants/Parameter.NAME....npy
 *     ROOT/rank_R/NET/G/STEP/TYPE.NAME.0.0.TIME.(input|output).SLOT.DefaultFormat.DTYPE.npy
 *     ROOT/rank_R/NET/G/STEP/{statistic.csv,mapping.csv}
 *
 * A file has its name when it is whole, whatever ends the process.
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
    const char *device, *version; /* of config.json */
    const char *config;           /* data_dump.json, word for word */
    size_t config_size;
};

/* The directories are made, ROOT too, its parent must be there. GD_EIO, GD_EINVAL. */
int gd_ms_writer_open(const struct gd_ms_writer_options *options, struct gd_ms_writer **ret,
                      struct gd_err *err);
void gd_ms_writer_close(struct gd_ms_writer *writer);           /* NULL is fine */
uint64_t gd_ms_writer_bytes(const struct gd_ms_writer *writer); /* written so far */

/* The subgraphs and their orders; again when the graph has grown. */
int gd_ms_writer_graph(struct gd_ms_writer *writer, struct gd_graph *graph, struct gd_err *err);

/* What a step has follows, of whichever subgraph. It is GD_EINVAL there when a dump of the step
 * lies there from before. */
void gd_ms_writer_begin(struct gd_ms_writer *writer, int64_t step);

struct gd_ms_item {
    const struct gd_node_info *node;
    bool is_input;
    uint32_t slot;
};
/* Bytes that its file would have. */
uint64_t gd_ms_writer_size(enum gd_dtype dtype, const struct gd_shape *shape);
/* C-contiguous. bfloat16 is widened to float32, as MindSpore does it. Constants are written once.
 * go_on (may be NULL) is asked now and then, with the bytes of the tensor that are done. GD_EINTR:
 * it said no, and there is no file. GD_EUNSUPPORTED: its type has no elements. */
int gd_ms_writer_tensor(struct gd_ms_writer *writer, const struct gd_ms_item *item,
                        const struct gd_tensor *tensor, bool (*go_on)(void *ctx, uint64_t done),
                        void *ctx, struct gd_err *err);

/* The figures of statistic.csv, in the order of its columns. */
enum gd_ms_category {
    GD_MS_MAX,
    GD_MS_MIN,
    GD_MS_AVG,
    GD_MS_COUNT,
    GD_MS_NEGATIVE, /* elements below 0, which MindSpore calls "negative zero count" */
    GD_MS_POSITIVE,
    GD_MS_NAN,
    GD_MS_NEG_INF,
    GD_MS_POS_INF,
    GD_MS_ZERO,
    GD_MS_L2NORM,
    GD_MS_MD5,
    GD_MS_CATEGORIES
};
/* As data_dump.json spells it: "negative zero count"; NULL behind the last. */
const char *gd_ms_category_name(int category);
void gd_ms_writer_columns(struct gd_ms_writer *writer, const int *category, int count);
/* A row of the step's statistic.csv. tensor: for MD5; NULL: not known. */
int gd_ms_writer_row(struct gd_ms_writer *writer, const struct gd_ms_item *item,
                     enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, const struct gd_tensor *tensor,
                     struct gd_err *err);
/* The step was dumped while the training stood inside it, at a node: stood_at.csv tells it. */
int gd_ms_writer_stood(struct gd_ms_writer *writer, const char *node, struct gd_err *err);
/* Writes statistic.csv, where there are rows, and with `whole` says that the step is complete. */
int gd_ms_writer_end(struct gd_ms_writer *writer, bool whole, struct gd_err *err);

#endif

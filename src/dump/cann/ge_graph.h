// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A graph that GE (the graph engine of CANN) wrote as text: ge_proto_*_Build.txt. The first graph
 * of a file is the main one; the others are bodies of its operators, which name them.
 */
#ifndef GD_DUMP_GE_GRAPH_H
#define GD_DUMP_GE_GRAPH_H

#include "base/arena.h"
#include "dump/io/disk.h"
#include "engine/graph/graph.h"

struct gd_ge_tensor {
    int32_t data_type; /* as dumps number them; 0 not told */
    struct gd_shape shape;
    bool has_shape;
    int32_t layout;          /* enum gd_cann_format; -1 not told */
    int32_t origin_format;   /* the framework's; -1 not told */
    const char *origin_name; /* the operator that it was the output of before fusion; NULL none */
    uint32_t origin_index;
};

struct gd_ge_op {
    const char *name, *type;
    int64_t id; /* place in the order of execution */
    bool no_task;
    const char **input; /* "operator:slot"; slot -1 orders and carries nothing */
    uint32_t input_count;
    struct gd_ge_tensor *in, *out;
    uint32_t in_count, out_count;
    struct gd_attr *attr; /* numbers, words and lists of them */
    uint32_t attr_count;
    const char **original; /* operators that were merged into it; it is mostly one of them */
    uint32_t original_count;
    const char **subgraph;
    uint32_t subgraph_count;
};

struct gd_ge_graph {
    const char *name;
    struct gd_ge_op *op;
    uint32_t op_count;
    bool has_iterator; /* it reads the training data: the computation graph does */
};

struct gd_ge_model {
    struct gd_ge_graph *graph;
    uint32_t graph_count; /* at least 1 */
    struct gd_arena arena;
};

/* GD_EPROTO: it is no such text, or has no graph: file and line. GD_ELIMIT. */
int gd_ge_read(struct gd_disk *disk, struct gd_ge_model **ret, struct gd_err *err);
void gd_ge_free(struct gd_ge_model *model); /* NULL is fine */
/* The name of the first graph alone, cut at size: reads no more than it must. */
int gd_ge_read_name(struct gd_disk *disk, char *out, size_t size, struct gd_err *err);

/* "operator:slot" taken apart at its last colon; false: it names nothing. */
bool gd_ge_input(const char *text, size_t *name_len, int64_t *slot);

#endif

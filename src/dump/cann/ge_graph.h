// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A graph that CANN's graph engine (GE) wrote as text: ge_proto_*_Build.txt. The first graph of a
 * file is the main one; the others are bodies of operators, which refer to them by name.
 */
#ifndef GD_DUMP_GE_GRAPH_H
#define GD_DUMP_GE_GRAPH_H

#include "base/arena.h"
#include "dump/io/disk.h"
#include "engine/graph/graph.h"

struct gd_ge_tensor {
    int32_t data_type; /* dump numbering; 0: unknown */
    struct gd_shape shape;
    bool has_shape;
    int32_t layout;          /* enum gd_cann_format; -1: unknown */
    int32_t origin_format;   /* the framework's; -1: unknown */
    const char *origin_name; /* the operator it belonged to before fusion; NULL: none */
    uint32_t origin_index;
};

struct gd_ge_op {
    const char *name, *type;
    int64_t id; /* position in execution order */
    bool no_task;
    const char **input; /* "operator:slot"; slot -1 only orders */
    uint32_t input_count;
    struct gd_ge_tensor *in, *out;
    uint32_t in_count, out_count;
    struct gd_attr *attr; /* numbers, strings and lists of them */
    uint32_t attr_count;
    const char **original; /* operators merged into it; usually itself among them */
    uint32_t original_count;
    const char **subgraph;
    uint32_t subgraph_count;
};

struct gd_ge_graph {
    const char *name;
    struct gd_ge_op *op;
    uint32_t op_count;
    bool has_iterator; /* reads training data, as the computation graph does */
};

struct gd_ge_model {
    struct gd_ge_graph *graph;
    uint32_t graph_count; /* at least 1 */
    struct gd_arena arena;
};

/* GD_EPROTO: not a graph text, or without a graph: names file and line. GD_ELIMIT. */
int gd_ge_read(struct gd_disk *disk, struct gd_ge_model **ret, struct gd_err *err);
void gd_ge_free(struct gd_ge_model *model); /* NULL is fine */
/* Reads only the name of the first graph, cut at size, and no more of the file than needed. */
int gd_ge_read_name(struct gd_disk *disk, char *out, size_t size, struct gd_err *err);

/* Splits "operator:slot" at its last colon; false: no operator. */
bool gd_ge_input(const char *text, size_t *name_len, int64_t *slot);

#endif

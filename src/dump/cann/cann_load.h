// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One rank of a CANN dump while it is read: its files, their operators, and the graph with details
 * about them, if there is one. Private to the readers of CANN's formats.
 */
#ifndef GD_DUMP_CANN_LOAD_H
#define GD_DUMP_CANN_LOAD_H

#include "base/grow.h"
#include "dump/cann/cann_dirs.h"
#include "dump/cann/cann_opdebug.h"
#include "dump/cann/cann_source.h"
#include "dump/cann/ge_graph.h"
#include "dump/catalog.h"

#define CANN_NO_OP UINT32_MAX

struct cann_value { /* a tensor in a file */
    enum gd_cann_io io;
    uint32_t index;
    enum gd_dtype dtype;
    const struct gd_shape *shape; /* NULL: unknown */
    struct gd_source *source;     /* NULL: only statistics */
    const struct gd_stats *stats; /* NULL: none */
    const char *note;             /* NULL: none */
};

struct cann_file {
    uint32_t entry;
    enum cann_file_kind kind;
    enum gd_cann_name_kind name_kind;
    uint32_t dir, model; /* index in the tree; in the load */
    int64_t step;
    const char *type, *name;
    const char *real; /* the name in the graph; NULL: unknown */
    int64_t task, stream, context, thread;
    uint64_t time;
    struct cann_value *value;
    uint32_t value_count, inputs, outputs; /* slots, including those without a value */
    uint32_t op;                           /* index in the load; CANN_NO_OP: none */
    const char *text;                      /* what a record reports; NULL: unreadable */
};

struct cann_known { /* an operator of a compiled graph */
    const struct gd_ge_op *op;
    uint32_t graph;  /* index in the model */
    uint32_t at;     /* index in the graph */
    char *escaped;   /* as in file names */
    gd_node_id node; /* GD_NO_NODE: its name is ambiguous */
    uint32_t first;  /* index in the load of its first execution, or CANN_NO_OP */
    uint32_t outputs;
};

struct cann_model { /* a network, or one of its graphs */
    const char *name;
    struct gd_ge_model *ge;   /* NULL: no graph */
    struct cann_known *known; /* all operators, by graph, then in the graph's order */
    uint32_t known_count;
    const struct cann_known **by_escaped, **by_name; /* sorted; by_name by graph first */
    uint32_t rank_dir;    /* MindSpore keeps its graphs there; GD_NO_ENTRY: none */
    const char *graph_id; /* identifies the graph there */
};

/* an execution of a model's operator within a step; an immediate repetition does not count as
 * another */
struct cann_op {
    uint32_t model;
    const char *type, *name, *real;
    uint32_t occurrence; /* 0: the first within a step */
    uint32_t inputs, outputs;
    uint32_t first_file;
    uint64_t time; /* of the first file */
    gd_node_id node;
    uint32_t node_outputs;    /* number of output slots of the node; inputs follow */
    struct cann_known *known; /* NULL: in no graph */
};

struct cann_load {
    const struct gd_listing *listing;
    const struct cann_dirs *tree;
    struct gd_dump *dump;
    struct gd_catalog *catalog;
    int rank;
    bool is_mindspore;
    bool is_inside; /* its directory is below what was opened */
    bool joins; /* only has records, next to a dump that another format has read into the catalog */
    uint32_t looked_for; /* records matched that way */
    struct gd_arena arena;
    struct cann_file *file;
    size_t file_count, file_cap;
    struct cann_model *model;
    uint32_t model_count;
    size_t model_cap;
    struct cann_op *op;
    uint32_t op_count;
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    uint64_t done;
    struct gd_err *err;
};

/* ---- cann_load.c ----------------------------------------------------------------------------- */

/* Lists the files of a directory, by name; nothing is opened. */
int cann_load_dir(struct cann_load *load, uint32_t dir, int64_t step);
/* Sorts files by operator and time, and groups them into operators. */
int cann_load_ops(struct cann_load *load);
void cann_load_free(struct cann_load *load);

/* ---- cann_open.c ----------------------------------------------------------------------------- */

/* Reads every file. Unreadable ones are left out with a reason. */
int cann_open_all(struct cann_load *load);

/* ---- cann_graph.c ---------------------------------------------------------------------------- */

/* Finds the models' graphs among the texts of the listing. */
int cann_graph_find(struct cann_load *load);
/* Looks up a file's operator in the graphs; NULL: unknown. */
struct cann_known *cann_graph_known(const struct cann_load *load, uint32_t model, const char *name);
/* By its name in the graph; NULL: none. */
struct cann_known *cann_graph_named(const struct cann_model *model, uint32_t graph,
                                    const char *name, size_t len);
void cann_graph_free(struct cann_model *model);

/* ---- cann_nodes.c ---------------------------------------------------------------------------- */

/* Adds nodes for the graphs' operators and for operators in no graph. */
int cann_add_nodes(struct cann_load *load);

/* ---- cann_catalog.c -------------------------------------------------------------------------- */

/* Adds everything to the catalog: nodes, values, events, facts. */
int cann_fill(struct cann_load *load);

/* ---- cann_overflow_join.c -------------------------------------------------------------------- */

/* If records are all there is of a rank: the catalog of the MindSpore synchronous dump under `root`
 * that they belong to; NULL: none. */
struct gd_catalog *cann_join_find(struct gd_dump *dump, const struct cann_dirs *tree, uint32_t root,
                                  const char *where, int rank);
/* The node that a record blames, by the names of MindSpore's files next to it. GD_NO_NODE: none. */
gd_node_id cann_join_blamed(struct cann_load *load, const struct cann_file *record);

#endif

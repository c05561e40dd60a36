// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One rank of a CANN dump while it is read: its files, the operators that they are of, and the
 * graph that says more about them, where there is one. Private to the readers of CANN's formats.
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

struct cann_value { /* a tensor of a file */
    enum gd_cann_io io;
    uint32_t index;
    enum gd_dtype dtype;
    const struct gd_shape *shape; /* NULL: not known */
    struct gd_source *source;     /* NULL: statistics alone */
    const struct gd_stats *stats; /* NULL none */
    const char *note;             /* NULL none */
};

struct cann_file {
    uint32_t entry;
    enum cann_file_kind kind;
    enum gd_cann_name_kind name_kind;
    uint32_t dir, model; /* of the tree; of the load */
    int64_t step;
    const char *type, *name;
    const char *real; /* the name as the graph spells it; NULL not told */
    int64_t task, stream, context, thread;
    uint64_t time;
    struct cann_value *value;
    uint32_t value_count, inputs, outputs; /* slots, with those that have no value */
    uint32_t op;                           /* of the load; CANN_NO_OP: it is of none */
    const char *text; /* of a record: what happened; NULL: it could not be read */
};

struct cann_known { /* an operator of a compiled graph */
    const struct gd_ge_op *op;
    uint32_t graph;  /* of the model */
    uint32_t at;     /* in it */
    char *escaped;   /* as the names of files have it */
    gd_node_id node; /* GD_NO_NODE: its name is there twice */
    uint32_t first;  /* the first of the load's operators that are executions of it; CANN_NO_OP */
    uint32_t outputs;
};

struct cann_model { /* a network, or a graph of it */
    const char *name;
    struct gd_ge_model *ge;   /* NULL: no graph is known */
    struct cann_known *known; /* all operators of its graphs, in the order of graph and operator */
    uint32_t known_count;
    const struct cann_known **by_escaped, **by_name; /* sorted; the latter by graph first */
    uint32_t rank_dir;    /* of MindSpore, which keeps its graphs there; GD_NO_ENTRY none */
    const char *graph_id; /* which of them */
};

struct cann_op { /* an operator of a model; every execution within a step that is not a repetition
                    of the one before is one */
    uint32_t model;
    const char *type, *name, *real;
    uint32_t occurrence; /* 0 the first within a step */
    uint32_t inputs, outputs;
    uint32_t first_file;
    uint64_t time; /* of the first */
    gd_node_id node;
    uint32_t node_outputs;    /* slots of the node that are outputs; inputs come behind them */
    struct cann_known *known; /* NULL: no graph knows it */
};

struct cann_load {
    const struct gd_listing *listing;
    const struct cann_dirs *tree;
    struct gd_dump *dump;
    struct gd_catalog *catalog;
    int rank;
    bool is_mindspore;
    bool is_inside; /* its directory is below what was opened */
    bool joins;     /* only records, beside a dump that another format has read into the catalog */
    uint32_t looked_for; /* records that were joined so */
    struct gd_arena arena;
    struct cann_file *file;
    size_t file_count, file_cap;
    struct cann_model *model;
    uint32_t model_count;
    struct cann_op *op;
    uint32_t op_count;
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    uint64_t done;
    struct gd_err *err;
};

/* ---- cann_load.c ---- */

/* The files of a directory, by name: nothing is opened. */
int cann_load_dir(struct cann_load *load, uint32_t dir, int64_t step);
/* Files are put into the order of operators and times; operators are made of them. */
int cann_load_ops(struct cann_load *load);
void cann_load_free(struct cann_load *load);
int cann_no_memory(struct cann_load *load);

/* ---- cann_open.c ---- */

/* What is in each file. What cannot be read is left out with a reason. */
int cann_open_all(struct cann_load *load);

/* ---- cann_graph.c ---- */

/* Finds the graphs of the models among the texts of the listing. */
int cann_graph_find(struct cann_load *load);
/* What a graph says about a file's operator; NULL: nothing. */
struct cann_known *cann_graph_known(const struct cann_load *load, uint32_t model, const char *name);
/* By the name that the graph itself has; NULL: none. */
struct cann_known *cann_graph_named(const struct cann_model *model, uint32_t graph,
                                    const char *name, size_t len);
void cann_graph_free(struct cann_model *model);

/* ---- cann_nodes.c ---- */

/* Nodes of the graphs, and of operators that no graph knows. */
int cann_add_nodes(struct cann_load *load);

/* ---- cann_catalog.c ---- */

/* All of it into the catalog: nodes, values, events, facts. */
int cann_fill(struct cann_load *load);

/* ---- cann_overflow_join.c ---- */

/* The catalog of MindSpore's synchronous dump under `root` that a rank's records belong to, when
 * they are all that there is of the rank; NULL: none. */
struct gd_catalog *cann_join_find(struct gd_dump *dump, const struct cann_dirs *tree, uint32_t root,
                                  const char *where, int rank);
/* The node that a record blames, by the names of MindSpore's files beside it. GD_NO_NODE: none. */
gd_node_id cann_join_blamed(struct cann_load *load, const struct cann_file *record);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One side of a comparison, as a list: a tensor file, a directory of them, a checkpoint, or one
 * step of a dump. What belongs to one node is consecutive and forms a unit, which is matched as a
 * whole.
 */
#ifndef GD_COMPARE_TENSOR_TABLE_H
#define GD_COMPARE_TENSOR_TABLE_H

#include "base/arena.h"
#include "dump/catalog.h"
#include "dump/files/archive.h"

struct gd_item {
    const char *name;  /* as shown: "conv1.weight", "conv1:0", "conv1:in0" */
    uint32_t slot;     /* of the node */
    bool input;        /* otherwise an output */
    uint16_t position; /* among the node's inputs or outputs */
    enum gd_entry_kind kind;
    enum gd_trainable trainable;
    struct gd_source *source;     /* NULL: only the following is known */
    const struct gd_stats *stats; /* NULL: none */
    const char *digest;           /* NULL: none */
    const char *problem;          /* why it cannot be read; NULL: it can */
    bool of_other_step;  /* the problem is that its value is from another step than the stop */
    enum gd_dtype dtype; /* GD_DT_NONE: unknown */
    enum gd_stored stored;
    bool has_shape;
    struct gd_shape shape;
};

enum gd_phase { GD_PHASE_FORWARD, GD_PHASE_BACKWARD, GD_PHASE_OPTIMIZER };

struct gd_unit {
    const char *name; /* of the node or tensor */
    const char *own;  /* name within its graph; NULL: the same */
    const char *wire; /* the framework's name for it ("fc.weight"); NULL: the same */
    const char *op;   /* operator type; "" unknown */
    enum gd_phase phase;
    bool ordered;          /* in execution order; otherwise in file order */
    bool leaf;             /* a parameter, constant or input: not an operator */
    bool left;             /* a leaf that was dumped after the operators, with its updated value */
    double time;           /* when its first value was dumped, in seconds; 0: unknown */
    gd_node_id node;       /* GD_NO_NODE: not from a dump */
    uint32_t first, count; /* items: outputs, then inputs, by position */
};

/* Its name within its graph, if other graphs have nodes of that name too. */
static inline const char *gd_unit_own(const struct gd_unit *unit)
{
    return unit->own ? unit->own : unit->name;
}

struct gd_table {
    struct gd_item *item;
    size_t item_count, item_room;
    struct gd_unit *unit; /* in execution order */
    size_t unit_count, unit_room;
    uint32_t *trainable; /* units in the order an optimizer would number them; created on demand */
    size_t trainable_count;
    size_t skipped;                   /* files in the directory that were not read */
    int64_t step;                     /* -1: none */
    int rank;                         /* -1: none */
    const struct gd_graph *graph;     /* NULL: none. Lives as long as what it was loaded from */
    const struct gd_catalog *catalog; /* NULL: none */
    struct gd_arena arena;            /* of the names */
};

void gd_table_init(struct gd_table *table);
void gd_table_deinit(struct gd_table *table);
/* Begins a unit; items added next belong to it. Strings are copied. */
int gd_table_unit(struct gd_table *table, const char *name, const char *op, struct gd_err *err);
/* Begins a unit for a node, with all its names. */
int gd_table_node(struct gd_table *table, gd_node_id node, const struct gd_node_info *info,
                  struct gd_err *err);
/* Strings are copied, a reference on the source is taken; stats stay the caller's. */
int gd_table_add(struct gd_table *table, const struct gd_item *item, struct gd_err *err);

/* Adds a unit for each tensor in the archive. */
int gd_table_of_archive(struct gd_table *table, const struct gd_archive *archive,
                        const char *prefix, struct gd_err *err);
/* Adds all tensor files below a directory, ordered by their numbers. go_on: see gd_listing_read. */
int gd_table_of_directory(struct gd_table *table, const char *path,
                          bool (*go_on)(void *ctx, uint64_t entries), void *ctx,
                          struct gd_err *err);
/* Adds one step of a catalog, in execution order. */
int gd_table_of_catalog(struct gd_table *table, const struct gd_catalog *catalog, int64_t step,
                        struct gd_err *err);

/* The unit of each node of its graph, UINT32_MAX: none; malloc'd. *limit: their number now: the
 * graph of a running training may grow. */
int gd_table_units_of_nodes(const struct gd_table *table, uint32_t **ret, uint32_t *limit,
                            struct gd_err *err);
/* Whether both have the same dimensions, not counting those of size 1. */
bool gd_shape_alike(const struct gd_shape *a, const struct gd_shape *b);
/* Reads type and shape of an item that is opened on demand; sets its problem if that fails. */
int gd_table_look(struct gd_table *table, struct gd_item *item, struct gd_err *err);

#endif

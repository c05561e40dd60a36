// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One side of a comparison: what there is to compare, as a list. A side is a tensor file, a
 * directory of them, a checkpoint, one step of a dump. What belongs to one node lies together: a
 * unit, which is matched as a whole.
 */
#ifndef GD_COMPARE_TENSOR_TABLE_H
#define GD_COMPARE_TENSOR_TABLE_H

#include "base/arena.h"
#include "dump/catalog.h"
#include "dump/files/archive.h"

struct gd_item {
    const char *name;  /* as it is shown: "conv1.weight", "conv1:0", "conv1:in0" */
    uint32_t slot;     /* of the node */
    bool input;        /* it is one */
    uint16_t position; /* among the inputs or the outputs of its node */
    enum gd_entry_kind kind;
    enum gd_trainable trainable;
    struct gd_source *source;     /* NULL: only what follows is known */
    const struct gd_stats *stats; /* NULL: none */
    const char *digest;           /* NULL: none */
    const char *problem;          /* why it cannot be read; NULL: it can */
    bool of_other_step;           /* the problem: its value is not of the step of the stop */
    enum gd_dtype dtype;          /* GD_DT_NONE: not known */
    enum gd_stored stored;
    bool has_shape;
    struct gd_shape shape;
};

enum gd_phase { GD_PHASE_FORWARD, GD_PHASE_BACKWARD, GD_PHASE_OPTIMIZER };

struct gd_unit {
    const char *name; /* of the node, or of the tensor */
    const char *own;  /* within its graph; NULL: the same */
    const char *wire; /* what the framework calls it elsewhere ("fc.weight"); NULL: nothing else */
    const char *op;   /* its type; "" unknown */
    enum gd_phase phase;
    bool ordered;          /* by execution; else as they stood in the file */
    bool leaf;             /* a parameter, a constant or an input: not an operator */
    bool left;             /* a leaf that was dumped after the operators, as they left it */
    double time;           /* of the dump of its first value, seconds; 0 unknown */
    gd_node_id node;       /* GD_NO_NODE: no dump */
    uint32_t first, count; /* items: outputs, then inputs, in order of position */
};

/* Of one that other graphs have, too, the name within its graph. */
static inline const char *gd_unit_own(const struct gd_unit *unit)
{
    return unit->own ? unit->own : unit->name;
}

struct gd_table {
    struct gd_item *item;
    size_t item_count, item_room;
    struct gd_unit *unit; /* in execution order */
    size_t unit_count, unit_room;
    uint32_t *trainable; /* units, as an optimizer would number them; made when they are wanted */
    size_t trainable_count;
    size_t skipped;                   /* files in the directory that are none of ours */
    int64_t step;                     /* -1: none */
    int rank;                         /* -1: none */
    const struct gd_graph *graph;     /* NULL: none. Lives as long as what was loaded */
    const struct gd_catalog *catalog; /* NULL: none */
    struct gd_arena arena;            /* of the names */
};

void gd_table_init(struct gd_table *table);
void gd_table_deinit(struct gd_table *table);
/* A new unit; items that are added then are its own. Texts are copied. */
int gd_table_unit(struct gd_table *table, const char *name, const char *op, struct gd_err *err);
/* The same of a node, by all of its names. */
int gd_table_node(struct gd_table *table, gd_node_id node, const struct gd_node_info *info,
                  struct gd_err *err);
/* Names and texts are copied, a reference is taken on the source; stats stay the caller's. */
int gd_table_add(struct gd_table *table, const struct gd_item *item, struct gd_err *err);

/* What an archive holds: a unit for each entry that is a tensor. */
int gd_table_of_archive(struct gd_table *table, const struct gd_archive *archive,
                        const char *prefix, struct gd_err *err);
/* All tensor files under a directory, in the order of their numbers. go_on: see gd_listing_read. */
int gd_table_of_directory(struct gd_table *table, const char *path,
                          bool (*go_on)(void *ctx, uint64_t entries), void *ctx,
                          struct gd_err *err);
/* One step of a catalog, in execution order. */
int gd_table_of_catalog(struct gd_table *table, const struct gd_catalog *catalog, int64_t step,
                        struct gd_err *err);

/* Of a graph's node: gd_unit.leaf. */
bool gd_table_is_leaf(const struct gd_node_info *info);
/* Type and shape of what is read only now; what cannot be opened has a problem then. */
int gd_table_look(struct gd_table *table, struct gd_item *item, struct gd_err *err);

#endif

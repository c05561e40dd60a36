// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The values of a MindSpore dump as they are found, before the nodes have their slots: files and
 * rows of statistics. When all are there, nodes get their slots, a file and the row that tells of
 * the same value become one, and all goes to the catalog. Private to the readers of MindSpore's
 * formats.
 */
#ifndef GD_DUMP_MS_VALUES_H
#define GD_DUMP_MS_VALUES_H

#include "base/arena.h"
#include "dump/catalog.h"
#include "dump/mindspore/ms_nodes.h"

struct ms_value {
    gd_node_id node; /* or MS_WANTED with a number */
    bool is_input;
    uint32_t slot;
    int64_t step;
    uint64_t time;                /* microseconds; 0 not told */
    struct gd_source *source;     /* of a file; owned by the list. NULL: a row */
    enum gd_stored stored;        /* GD_STORED_NONE: not told */
    const struct gd_shape *shape; /* copied; NULL: not told */
    const struct gd_stats *stats; /* copied; NULL: a file */
    const char *digest;           /* copied */
    const char *note;             /* copied */
    const char *raw;              /* the file, where it has elements alone: copied; NULL */
};

struct ms_values {
    struct ms_value *item;
    size_t count, cap;
    struct gd_arena arena;
};

/* Takes over the reference to the source, also on failure. */
int ms_values_add(struct ms_values *values, const struct ms_value *value, struct gd_err *err);
/* Those from `first` on are of `nodes`, which are settled: what was wanted is known now. */
int ms_values_settle(struct ms_values *values, size_t first, const struct ms_nodes *nodes,
                     struct gd_err *err);
/* Gives the nodes of the graph their slots and order (by time, for those without), and everything
 * to the catalog. */
int ms_values_finish(struct ms_values *values, struct gd_catalog *catalog, uint32_t next_order,
                     struct gd_err *err);
void ms_values_clear(struct ms_values *values);

/* A tensor of an .npy file that is opened when somebody asks. */
int ms_npy_source(const char *path, const char *dtype, struct gd_source **ret, struct gd_err *err);
/* A file of elements alone, in the shape, or in a row where that is NULL or does not fit. */
int ms_raw_source(const char *path, enum gd_stored stored, const struct gd_shape *shape,
                  struct gd_source **ret, struct gd_err *err);

#endif

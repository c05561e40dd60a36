// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The values found in a MindSpore dump, before the nodes have their slots: files and rows of
 * statistics. At the end nodes get their slots, a file and the row about the same value are merged,
 * and everything is added to the catalog. Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_VALUES_H
#define GD_DUMP_MS_VALUES_H

#include "base/arena.h"
#include "dump/catalog.h"
#include "dump/mindspore/ms_nodes.h"

struct ms_value {
    gd_node_id node; /* or MS_WANTED plus a number */
    bool is_input;
    uint32_t slot;
    int64_t step;
    uint64_t time;                /* microseconds; 0: unknown */
    struct gd_source *source;     /* of a file, owned by the list; NULL: a row */
    enum gd_stored stored;        /* GD_STORED_NONE: unknown */
    const struct gd_shape *shape; /* copied; NULL: unknown */
    const struct gd_stats *stats; /* copied; NULL: a file */
    const char *digest;           /* copied */
    const char *note;             /* copied */
    const char *raw;              /* path of a file of raw elements, copied; otherwise NULL */
};

struct ms_values {
    struct ms_value *item;
    size_t count, cap;
    struct gd_arena arena;
};

/* Takes over the reference to the source, also on failure. */
int ms_values_add(struct ms_values *values, const struct ms_value *value, struct gd_err *err);
/* Resolves the values from `first` on with `nodes`, which are settled. */
int ms_values_settle(struct ms_values *values, size_t first, const struct ms_nodes *nodes,
                     struct gd_err *err);
/* Gives the graph's nodes their slots and order (by time if they have none), and adds everything to
 * the catalog. */
int ms_values_finish(struct ms_values *values, struct gd_catalog *catalog, uint32_t next_order,
                     struct gd_err *err);
void ms_values_clear(struct ms_values *values);

/* A tensor in an .npy file, opened on demand. */
int ms_npy_source(const char *path, enum gd_stored stored, struct gd_source **ret,
                  struct gd_err *err);
/* A file of raw elements. `exact`: of that shape; GD_EPROTO when read: its size does not match.
 * Otherwise as one row if the shape is NULL or has more elements. */
int ms_raw_source(const char *path, enum gd_stored stored, const struct gd_shape *shape, bool exact,
                  struct gd_source **ret, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Statistics that CANN dumped instead of tensors (dump_data: stats): one row per tensor, with the
 * columns that the header names.
 */
#ifndef GD_DUMP_CANN_STATS_H
#define GD_DUMP_CANN_STATS_H

#include "base/stats.h"
#include "dump/io/disk.h"
#include "dump/io/stored_type.h"

struct gd_cann_stats_row {
    bool is_output;
    uint32_t index;
    enum gd_stored stored; /* NONE: unknown */
    bool has_shape;
    struct gd_shape shape;
    struct gd_stats stats;
};

/* Calls fn for each row; a non-zero return ends the reading and is returned. GD_EPROTO: names file
 * and line. */
int gd_cann_stats_read(struct gd_disk *disk,
                       int (*fn)(void *ctx, const struct gd_cann_stats_row *row), void *ctx,
                       struct gd_err *err);

#endif

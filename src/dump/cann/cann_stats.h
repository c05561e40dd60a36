// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Statistics that CANN dumped in the place of tensors (dump_data: stats): one row a tensor, columns
 * as the header names them.
 */
#ifndef GD_DUMP_CANN_STATS_H
#define GD_DUMP_CANN_STATS_H

#include "base/stats.h"
#include "dump/io/disk.h"
#include "dump/io/stored_type.h"

struct gd_cann_stats_row {
    bool is_output;
    uint32_t index;
    enum gd_stored stored; /* NONE: not told */
    bool has_shape;
    struct gd_shape shape;
    struct gd_stats stats;
};

/* Rows one by one; fn's non-zero return ends it and is returned. GD_EPROTO: file, line and what is
 * wrong. */
int gd_cann_stats_read(struct gd_disk *disk,
                       int (*fn)(void *ctx, const struct gd_cann_stats_row *row), void *ctx,
                       struct gd_err *err);

#endif

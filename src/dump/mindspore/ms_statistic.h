// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * statistic.csv of a MindSpore dump: a row of statistics for every tensor. Which columns there are,
 * and in which order, its header says. Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_STATISTIC_H
#define GD_DUMP_MS_STATISTIC_H

#include "base/stats.h"
#include "dump/io/disk.h"
#include "dump/io/stored_type.h"

struct ms_statistic { /* a row; texts are good during the call */
    const char *type, *name;
    bool is_input;
    uint32_t slot;
    uint64_t time; /* microseconds since the epoch; 0 not told */
    enum gd_stored stored;
    struct gd_shape shape;
    bool has_shape;
    struct gd_stats stats; /* stats.unknown: what there is no column of, or no figure */
    const char *digest;    /* "md5:...", "sha1:..."; NULL none */
    const char *note;      /* worth a line; NULL none */
};

/* fn's non-zero return ends it and is returned. A row that makes no sense is told to `bad` (may be
 * NULL) and passed over. GD_EPROTO: no such header; what else csv.h says. */
int ms_statistic_read(struct gd_disk *disk,
                      int (*fn)(void *ctx, const struct ms_statistic *row, struct gd_err *err),
                      void (*bad)(void *ctx, const char *why), void *ctx, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * statistic.csv of a MindSpore dump: a row of statistics per tensor. Its header gives the columns
 * and their order. Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_STATISTIC_H
#define GD_DUMP_MS_STATISTIC_H

#include "base/stats.h"
#include "dump/io/disk.h"
#include "dump/io/stored_type.h"

struct ms_statistic { /* a row; strings are valid during the call */
    const char *type, *name;
    bool is_input;
    uint32_t slot;
    uint64_t time; /* microseconds since the epoch; 0: unknown */
    enum gd_stored stored;
    struct gd_shape shape;
    bool has_shape;
    struct gd_stats stats; /* stats.unknown: statistics without a column or value */
    const char *digest;    /* "md5:...", "sha1:..."; NULL: none */
    const char *note;      /* one line for the user; NULL: none */
};

/* Calls fn for each row; a non-zero return ends the reading and is returned. Invalid rows are
 * skipped and reported to `bad` (may be NULL). GD_EPROTO: not the expected header; other errors as
 * in csv.h. */
int ms_statistic_read(struct gd_disk *disk,
                      int (*fn)(void *ctx, const struct ms_statistic *row, struct gd_err *err),
                      void (*bad)(void *ctx, const char *why), void *ctx, struct gd_err *err);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The reading of one root of a MindSpore dump, in what the layout of 1.0 to 1.2 and that of 1.3 and
 * later have in common. Private to their readers.
 */
#ifndef GD_DUMP_MS_READING_H
#define GD_DUMP_MS_READING_H

#include "dump/mindspore/ms_dirs.h"
#include "dump/mindspore/ms_values.h"

struct ms_reading {
    const struct gd_listing *listing;
    struct gd_dump *dump;
    struct gd_catalog *catalog; /* NULL: not before ms_reading_begin */
    struct ms_nodes nodes;      /* of the graph at hand */
    struct ms_values values;
    uint64_t done; /* files */
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
};

/* The read of a format whose detail is a struct ms_dirs_rule. */
int ms_reading_run(const struct gd_listing *listing, const struct gd_finding *finding,
                   struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                   struct gd_err *err);
/* The catalog of the rank that the directory is of, and who wrote it. */
int ms_reading_begin(struct ms_reading *reading, const struct ms_dir *dir, struct gd_err *err);
/* One more file is done. GD_EINTR */
int ms_reading_count(struct ms_reading *reading, struct gd_err *err);

#endif

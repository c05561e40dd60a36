// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads one root of a MindSpore dump: what the layouts of 1.0 to 1.2 and of 1.3 and later have in
 * common. Private to their readers.
 */
#ifndef GD_DUMP_MS_READING_H
#define GD_DUMP_MS_READING_H

#include "dump/mindspore/ms_dirs.h"
#include "dump/mindspore/ms_values.h"

struct ms_reading {
    const struct gd_listing *listing;
    struct gd_dump *dump;
    struct gd_catalog *catalog; /* NULL before ms_reading_begin */
    struct ms_nodes nodes;      /* of the current graph */
    struct ms_values values;
    uint64_t done; /* files done */
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
};

/* The `read` of a format whose detail is a struct ms_dirs_rule. */
int ms_reading_run(const struct gd_listing *listing, const struct gd_finding *finding,
                   struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                   struct gd_err *err);
/* Selects the catalog of the directory's rank and records who wrote it. */
int ms_reading_begin(struct ms_reading *reading, const struct ms_dir *dir, struct gd_err *err);
/* Counts a file as done. GD_EINTR */
int ms_reading_count(struct ms_reading *reading, struct gd_err *err);

#endif
